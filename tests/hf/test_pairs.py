"""Two texts that are judged together: read from two columns, trained on, and used by each command."""

import csv
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import torch
import transformers
from hf_tiny import bert, byte_pieces, family, saved, word_pieces
from reviews import BLAME, PRAISE, THINGS
from serving import serving
from tokenizers import processors

from wordward.attack import AttackSettings
from wordward.cli import main as cli
from wordward.config import DataSettings, ModelSettings, TrainConfig
from wordward.datasets import ColumnError, DataError, Example, examples_of, joined, read
from wordward.datasets.pairs import parted
from wordward.runs.opening import load_run, open_model
from wordward.runs.pieces import separator_of, text_numbers
from wordward.runs.transformer import TransformerRun
from wordward.support.errors import SettingError
from wordward.train import finetuner, train
from wordward.train.augmenting import Augmenter
from wordward.train.finetuning_data import Collator
from wordward.train.finetuning_start import encode, start_of

COLUMNS = ("--text-column", "first", "--pair-column", "second")
PAIR = "the film was warm", "this story was dull"


def wordward_(*arguments: Any) -> int:
    return cli.main([str(each) for each in arguments])


def comparisons(count: int, seed: int = 0) -> list[tuple[str, str, str]]:
    """Two little reviews, of which the first or the second is the better one."""
    rng = random.Random(seed)
    found = []
    for _ in range(count):
        good, bad = (f"the {rng.choice(THINGS)} was {rng.choice(words)}" for words in (PRAISE[:4], BLAME[:4]))
        first_better = rng.random() < 0.5
        found.append((good, bad, "first") if first_better else (bad, good, "second"))
    return found


def write(path: Path, rows: list[tuple[str, str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("first", "second", "label"), *rows])
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with texts, a tiny model, and a run of it by the command line."""
    folder = tmp_path_factory.mktemp("pairs")
    saved(folder / "tiny")
    write(folder / "train.csv", comparisons(200))
    write(folder / "test.csv", comparisons(30, seed=5))
    flags = ("--epsilon", 0.3, "--k", 5, "--learning-rate", 0.01, "--epochs", 10, "--batch-size", 16, "--quiet")
    texts = ("--train", folder / "train.csv", *COLUMNS)
    assert wordward_("train", "--model", folder / "tiny", *texts, "--out", folder / "run", *flags) == 0
    return folder


def test_a_model_that_is_not_told_where_texts_end_reads_both_as_plain_transformers_do(tmp_path: Path):
    """It has no token types, so the mark between the two texts is its tokenizer's alone."""
    tokenizer = word_pieces()
    family("distilbert", "sequence", vocab_size=len(tokenizer), num_labels=2).float().save_pretrained(
        tmp_path / "tiny"
    )
    tokenizer.save_pretrained(tmp_path / "tiny")
    data = DataSettings(str(write(tmp_path / "t.csv", comparisons(40))), text_column="first", pair_column="second")
    start = start_of(TrainConfig("advt", transformer=str(tmp_path / "tiny"), data=data))
    assert start.separator is None
    rows = encode(start, quiet=True).data.train.rows
    for example, row in zip(start.examples["train"], rows, strict=True):
        first, second, _ = parted(example.text)
        assert list(row) == start.tokenizer(first, second)["input_ids"]
    single = [*start.examples["train"], Example("one text alone", "first")]
    with pytest.raises(DataError, match="expected two texts"):
        encode(replace(start, examples=start.examples | {"train": single}), quiet=True)


def plainly(place: Path, texts: list[str]) -> np.ndarray:
    """What plain transformers makes of pairs, (texts, labels)."""
    folder = place / "run" / "model"
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    first, second = zip(*(text.split(" ||| ") for text in texts), strict=True)
    read = tokenizer(list(first), list(second), padding=True, return_tensors="pt", return_token_type_ids=True)
    with torch.no_grad():
        return model(**read).logits.softmax(-1).numpy()


class TestReading:
    def test_two_texts_are_one_string_with_a_mark_that_neither_holds(self) -> None:
        assert joined(" a |||| b ", "c") == "a || b ||| c"
        assert joined("a", "  ") == ""
        assert parted("a ||| b ||| c") == ("a", "b ||| c", 6)
        assert parted("a") == ("a", "", 1)
        assert not parted("||| b").whole

    def test_of_any_format(self, tmp_path: Path) -> None:
        rows = comparisons(3)
        table = write(tmp_path / "a.csv", rows)
        lines = tmp_path / "a.jsonl"
        lines.write_text(
            "".join(json.dumps(dict(zip(("first", "second", "label"), r, strict=True))) + "\n" for r in rows)
        )
        bare = tmp_path / "b.csv"
        bare.write_text("".join(",".join(row) + "\n" for row in rows))
        wanted = [(f"{first} ||| {second}", label) for first, second, label in rows]
        by_name: Any = {"text_column": "first", "pair_column": "second"}
        found = [read(table, **by_name), read(lines, **by_name)]
        found.append(read(bare, text_column="0", pair_column="1", label_column="2"))
        pandas = pytest.importorskip("pandas")
        found.append(examples_of(pandas.read_csv(table), "texts", **by_name))
        for examples in found:
            assert [(each.text, each.label) for each in examples] == wanted

    def test_plain_lines_hold_the_mark(self, tmp_path: Path) -> None:
        file = tmp_path / "a.txt"
        file.write_text("a film ||| a play\n")
        assert read(file, labelled=False, pair_column="any")[0].text == "a film ||| a play"
        file.write_text("a film ||| a play\na film\n")
        with pytest.raises(DataError, match=r"line 2: expected two texts with \|\|\| between"):
            read(file, labelled=False, pair_column="any")

    def test_an_empty_one_is_an_empty_text(self, tmp_path: Path) -> None:
        file = write(tmp_path / "a.csv", [("a film", "", "first"), ("a", "b", "second")])
        with pytest.raises(DataError, match="line 2: expected a text; it is empty"):
            read(file, text_column="first", pair_column="second")
        assert len(read(file, text_column="first", pair_column="second", skip_empty=True)) == 1

    def test_a_missing_column_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(ColumnError, match=r"'third'.*`pair_column`"):
            read(write(tmp_path / "a.csv", comparisons(2)), text_column="first", pair_column="third")
        (tmp_path / "texts" / "good").mkdir(parents=True)
        with pytest.raises(ColumnError, match="`pair_column` needs a file of columns"):
            read(tmp_path / "texts", pair_column="second")


class TestPieces:
    def test_texts_are_numbered_as_by_the_tokenizer(self) -> None:
        tokenizer = word_pieces()
        model = bert("sequence", len(tokenizer))
        separator = separator_of(tokenizer, model)
        assert separator is not None
        assert separator == tokenizer.sep_token_id
        read = tokenizer(*PAIR, return_token_type_ids=True)
        assert text_numbers(torch.tensor([read["input_ids"]]), separator)[0].tolist() == read["token_type_ids"]
        rows = [{"input_ids": np.array(read["input_ids"])}]
        assert Collator(tokenizer, separator)(rows)["token_type_ids"][0].tolist() == read["token_type_ids"]
        assert "token_type_ids" not in Collator(tokenizer)(rows)

    def test_a_model_that_is_told_nothing_of_them_needs_no_numbers(self) -> None:
        tokenizer = word_pieces()
        end = [("[CLS]", 2), ("[SEP]", 3)]
        tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] [SEP] $B [SEP]", special_tokens=end
        )
        assert separator_of(tokenizer, bert("sequence", len(tokenizer))) is None

    def test_a_tokenizer_with_nothing_between_them_is_refused(self) -> None:
        tokenizer = byte_pieces()
        with pytest.raises(SettingError, match="puts nothing between two texts"):
            separator_of(tokenizer, bert("sequence", len(tokenizer)))


class TestRun:
    def test_it_predicts_as_plain_transformers_does(self, place: Path) -> None:
        run = load_run(place / "run", device="cpu")
        texts = [joined(first, second) for first, second, _ in comparisons(20, seed=7)]
        found = [[each.probabilities[label] for label in run.labels] for each in run.predict(texts)]
        np.testing.assert_allclose(found, plainly(place, texts), atol=1e-5)
        assert (
            run.evaluate(read(place / "test.csv", text_column="first", pair_column="second")).scores["error"].value
            < 0.2
        )

    def test_which_of_the_texts_is_first_matters(self, place: Path) -> None:
        run = load_run(place / "run", device="cpu")
        assert [each.label for each in run.predict(["the film was warm ||| the film was dull"])] == ["first"]
        assert [each.label for each in run.predict(["the film was dull ||| the film was warm"])] == ["second"]

    def test_words_of_both_are_perturbed_and_no_mark(self, place: Path) -> None:
        run: Any = load_run(place / "run", device="cpu")
        text = "warm ||| the film, dull"  # a first text of one word, whose number the second's first word has too
        reading = run.read(Example(text))
        assert [reading.written(at) for at in range(len(reading.tokens))] == ["warm", "the", "film", ",", "dull"]
        batch = run.corpus([reading.row.ids]).batch(np.array([0]), run.device)
        ids, kept = batch.ids[0], run.perturbed(batch)[0]
        assert run.tokenizer.convert_ids_to_tokens(ids[~kept].tolist()) == ["[CLS]", "[SEP]", "[SEP]"]
        (found,) = run.explain([text], method="advt")
        assert [place.word for place in found.places] == ["warm", "the", "film", ",", "dull"]
        assert all(text[place.start : place.end] == place.word for place in found.places)

    def test_words_beyond_the_longest_are_counted_in_both(self, place: Path) -> None:
        run: Any = load_run(place / "run", device="cpu")
        reading = run.read(Example(" ".join(["film"] * 40) + " ||| " + " ".join(["story"] * 30)))
        assert len(reading.tokens) == 45
        assert (reading.words, reading.unread) == (70, 25)

    def test_attacks_keep_the_mark_and_are_verified(self, place: Path) -> None:
        run = load_run(place / "run", device="cpu")
        texts = [Example(joined(first, second), label) for first, second, label in comparisons(12, seed=8)]
        kinds = ("swap", "typo", "delete", "insert", "append", "punctuation")
        found = run.attack(texts, AttackSettings(edits=kinds, max_swaps=4))
        flipped = [each for each in found if each.flipped]
        assert flipped
        assert all(each.adversarial.count(" ||| ") == 1 for each in found)
        probabilities = plainly(place, [each.adversarial for each in flipped])
        assert [run.labels[at] for at in probabilities.argmax(-1)] == [each.after for each in flipped]

    def test_one_text_is_no_pair(self, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
        run = load_run(place / "run", device="cpu")
        (found,) = run.predict(["the film was warm"])
        assert found.problem is not None
        assert "expected two texts with ||| between them" in found.problem
        with pytest.raises(DataError, match="expected two texts"):
            run.evaluate([Example("the film was warm", "first")])
        assert wordward_("predict", place / "run", "the film was warm ||| this story was dull") == 0
        assert '"label"' in capsys.readouterr().out


class TestCommands:
    def test_those_that_read_files(self, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        test, run, few = place / "test.csv", place / "run", ("--limit", 6, "--quiet")
        assert wordward_("evaluate", run, test) == 0
        own = capsys.readouterr().out
        assert wordward_("evaluate", place / "run" / "model", test, *COLUMNS) == 0
        assert capsys.readouterr().out == own
        assert wordward_("predict", run, "--file", test, "--quiet") == 0
        first, *_ = (json.loads(line) for line in capsys.readouterr().out.splitlines())
        assert first["text"].count(" ||| ") == 1
        assert wordward_("explain", run, "--file", test, *few) == 0
        assert wordward_("attack", run, test, *few) == 0
        flags = ("--edits", "typo", "--budgets", 1, 2, "--json", tmp_path / "a.json")
        assert wordward_("check", run / "model", test, *COLUMNS, *few, *flags) == 0
        assert wordward_("report", run, "--test", test, "--attack", 4, "--out", tmp_path / "a.html", "--quiet") == 0
        assert "|||" in (tmp_path / "a.html").read_text()

    def test_adversarial_texts_are_written_as_two_columns(self, place: Path, tmp_path: Path) -> None:
        out = tmp_path / "more.csv"
        flags = ("--edits", "typo", "space", "--limit", 10, "--quiet")
        assert wordward_("augment", place / "run", place / "train.csv", "--out", out, *flags) == 0
        with out.open(newline="") as file:
            header, *rows = csv.reader(file)
        assert header == ["first", "second", "label", "changed"]
        assert len(rows) > 200
        assert [tuple(row[:3]) for row in rows[:200]] == comparisons(200)
        assert all("|||" not in "".join(row) for row in rows)

    def test_the_page(self, place: Path) -> None:
        with serving(load_run(place / "run", device="cpu")) as address:
            answer = httpx.post(f"{address}/api/predict", json={"text": " ||| ".join(PAIR)})
            assert answer.json()["label"] == "first"
            refused = httpx.post(f"{address}/api/predict", json={"text": PAIR[0]})
            assert "expected two texts" in refused.text

    def test_help_names_the_column(self, capsys: pytest.CaptureFixture[str]) -> None:
        for command in ("train", "predict", "evaluate", "explain", "attack", "check", "report", "serve", "augment"):
            with pytest.raises(SystemExit):
                wordward_(command, "--help")
            assert "--pair-column" in capsys.readouterr().out, command


class TestRefusals:
    def test_our_own_models_read_one_text(self, place: Path, tmp_path: Path) -> None:
        data = DataSettings(train=str(place / "train.csv"), text_column="first", pair_column="second")
        config = TrainConfig(data=data, model=ModelSettings(dim=8, hidden=8))
        with pytest.raises(SettingError, match="judged together by a Hugging Face model"):
            train(config, tmp_path / "run", quiet=True)
        assert not (tmp_path / "run").exists()

    def test_a_corpus_has_single_texts(self) -> None:
        with pytest.raises(SettingError, match="pair_column"):
            DataSettings(corpus="imdb", pair_column="second")

    def test_a_run_on_single_texts_takes_no_pairs(self, place: Path, tmp_path: Path) -> None:
        flags = ("--epochs", 1, "--text-column", "first", "--quiet", "--method", "baseline")
        given = ("--model", place / "tiny", "--train", place / "train.csv")
        assert wordward_("train", *given, "--out", tmp_path / "run", *flags) == 0
        with pytest.raises(SettingError, match="was trained on single texts"):
            open_model(tmp_path / "run", device="cpu", pair_column="second")

    def test_sentences_with_tags_are_single(self, place: Path) -> None:
        tagger = bert("token", len(word_pieces()), id2label={0: "c", 1: "i"})
        with pytest.raises(SettingError, match="gives tags"):
            open_model((tagger, word_pieces()), device="cpu", pair_column="second")


def test_a_function_is_given_both_as_one_string() -> None:
    seen: list[str] = []

    def longer(texts: list[str]) -> list[list[float]]:
        seen.extend(texts)
        sizes = [tuple(map(len, text.split(" ||| "))) for text in texts]
        return [[0.9, 0.1] if first > second else [0.1, 0.9] for first, second in sizes]

    run = open_model(longer, labels=["first", "second"], pair_column="second")
    assert run.predict([joined("a long film", "a play")])[0].label == "first"
    settings = AttackSettings(edits=("insert", "append"), max_swaps=4)
    (found,) = run.attack([Example(joined("a long long film", "a play"), "first")], settings)
    assert found.flipped
    assert all(text.count(" ||| ") == 1 for text in seen)


def test_other_processes_open_it_as_a_model_of_pairs(place: Path) -> None:
    from wordward.runs.opening import opener

    run: Any = open_model(str(place / "run" / "model"), device="cpu", pair_column="second")
    again: Any = opener(run)()
    assert again.paired
    assert again.model.separator == run.model.separator is not None


def test_texts_that_fool_a_model_of_pairs_are_looked_for_as_it_reads_them(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int | None] = []

    def augmenter(run: TransformerRun, *given: Any, **how: Any) -> Augmenter:
        seen.append(run.model.separator)
        return Augmenter(run, *given, **how)

    monkeypatch.setattr(finetuner, "Augmenter", augmenter)
    texts = ("--train", place / "train.csv", *COLUMNS, "--out", tmp_path / "run", "--augment", 2, "--epochs", 1)
    assert wordward_("train", "--model", place / "tiny", *texts, "--batch-size", 64, "--quiet") == 0
    assert seen == [load_run(place / "run").model.separator]
    assert seen != [None]
