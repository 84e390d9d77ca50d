"""Texts of the user's own beside a known corpus: read from disk, with words in common, the same in all commands."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from reviews import reviews

from wordward.cli.main import main
from wordward.config.settings import DataSettings, PretrainConfig, TextSettings, TrainConfig
from wordward.datasets import DataError, read
from wordward.runs import run_folder
from wordward.runs.opening import load_run
from wordward.text.corpora import open_corpus
from wordward.text.on_disk import Texts
from wordward.text.ragged import Joined, Rows
from wordward.train.data import prepare
from wordward.train.pretraining import _texts

SMALL = ["--dim", "8", "--hidden", "8", "--head", "4", "--epochs", "1", "--device", "cpu", "--quiet"]
METHOD = ["--method", "ivat", "--k", "3", "--epsilon", "1"]


@pytest.fixture
def more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Texts with words that the known corpus, also laid out here, does not have."""
    monkeypatch.setenv("WORDWARD_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("WORDWARD_CACHE", str(tmp_path / "cache"))
    place = tmp_path / "data" / "rotten_tomatoes"
    place.mkdir(parents=True)
    for name, label in (("rt-polarity.pos", "good"), ("rt-polarity.neg", "bad")):
        texts = [example.text for example in reviews(200) if example.label == label]
        (place / name).write_text("\n".join(texts) + "\n")
    (place / "unlabelled.txt").write_text("the opera was warm\nthe opera was cold\n")
    path = tmp_path / "more.txt"
    path.write_text("the novel was funny\nthe novel was dull\n" * 20)
    return path


def test_own_texts_come_to_those_of_the_corpus(more: Path) -> None:
    data = DataSettings(corpus="rotten_tomatoes", unlabelled=str(more))
    _, found = prepare(TrainConfig(method="ivat", data=data), quiet=True)
    assert found.unlabelled is not None
    assert len(found.unlabelled.rows) == 42
    assert {"opera", "novel"} <= set(found.vocabulary.words)
    assert [found.vocabulary.word(at) for at in found.unlabelled.rows[2]][:3] == ["the", "novel", "was"]
    assert isinstance(found.unlabelled.rows, Joined)
    stored = found.unlabelled.rows.parts[1]
    assert isinstance(stored, Rows)
    assert isinstance(stored.flat, np.memmap)
    assert len(list(more.with_name("cache").glob("rotten_tomatoes-*"))) == 1  # not with its own words first
    own = open_corpus("rotten_tomatoes", TextSettings(), quiet=True)
    assert "novel" not in own.vocabulary
    for name in ("train", "dev"):
        words = [
            [vocabulary.word(at) for row in corpus.rows for at in row]
            for vocabulary, corpus in (
                (own.vocabulary, own.splits[name]),
                (found.vocabulary, found.corpora[name]),
            )
        ]
        assert words[0] == words[1]


def test_a_language_model_has_the_same_words(more: Path) -> None:
    config = PretrainConfig(corpus="rotten_tomatoes", texts=(str(more),))
    vocabulary, rows, held_out = _texts(config, quiet=True)
    data = DataSettings(corpus="rotten_tomatoes", unlabelled=str(more))
    _, found = prepare(TrainConfig(method="ivat", data=data), quiet=True)
    assert vocabulary.fingerprint == found.vocabulary.fingerprint
    assert len(rows) + len(held_out) == len(found.train.rows) + 42


@pytest.mark.parametrize("method", [METHOD, ["--method", "advt", "--epsilon", "1"]])
def test_from_pretraining_to_the_test_texts(
    method: list[str], more: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also with a method that takes no unlabelled texts: its words are the language model's."""
    corpus, lm, run = ["--corpus", "rotten_tomatoes"], str(tmp_path / "lm"), str(tmp_path / "run")
    assert main(["pretrain", *corpus, "--texts", str(more), "--out", lm, *SMALL]) == 0
    extra = ["--unlabelled", str(more)] if method == METHOD else []
    assert main(["train", *corpus, *extra, "--pretrained", lm, "--out", run, *method, *SMALL]) == 0
    read_so = run_folder.load_vocabulary(lm).fingerprint
    assert run_folder.load_vocabulary(run).fingerprint == read_so
    assert main(["evaluate", run, "test", "--device", "cpu"]) == 0
    loaded = load_run(run, device="cpu")
    test = read(tmp_path / "data" / "rotten_tomatoes" / "rt-polarity.pos", labelled=False, format="txt")
    known = {tuple(row.tolist()) for row in loaded.encode(test, labelled=False).rows}
    positive = loaded.labels.index("positive")
    split = loaded.split("test")
    assert split.labels is not None
    pairs = zip(split.rows, split.labels, strict=True)
    assert all(tuple(row.tolist()) in known for row, label in pairs if label == positive)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("more.csv", "review,stars\nthe novel was funny,5\n"),
        ("more.jsonl", '{"review": "the novel was funny"}\n'),
    ],
)
def test_the_column_of_texts_without_labels_is_that_of_the_labelled(
    name: str, content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Naming it with --text-column alone would be refused next, for the other file."""
    (tmp_path / name).write_text(content)
    labelled = tmp_path / "films.tsv"
    labelled.write_text("text\tlabel\n" + "".join(f"{each.text}\t{each.label}\n" for each in reviews(60)))
    files = ["--train", str(labelled), "--unlabelled", str(tmp_path / name)]
    assert main(["train", *files, "--out", str(tmp_path / "run"), *METHOD, *SMALL]) == 1
    told = capsys.readouterr().err
    assert "'text'; found review" in told
    assert f"--train, {labelled}, is read with the same --text-column: use the same column name" in told
    labelled.write_text(labelled.read_text().replace("text\tlabel", "review\tlabel"))
    column = ["--text-column", "review"]
    assert main(["train", *files, *column, "--out", str(tmp_path / "run"), *METHOD, *SMALL]) == 0


def test_the_column_of_texts_beside_a_corpus_is_theirs_alone(more: Path) -> None:
    table = more.with_name("more.csv")
    table.write_text("review\nthe novel was funny\n")
    data = DataSettings(corpus="rotten_tomatoes", unlabelled=str(table))
    with pytest.raises(DataError, match=r"found review: name it with `text_column`, .*header line$"):
        prepare(TrainConfig(method="ivat", data=data), quiet=True)


def test_a_packed_corpus_takes_no_texts(more: Path, tmp_path: Path) -> None:
    pack = str(tmp_path / "little.pack")
    assert main(["data", "pack", "rotten_tomatoes", pack, "--quiet"]) == 0
    with pytest.raises(DataError, match=r"a corpus by name .* got .*little\.pack, which holds only word numbers"):
        open_corpus(pack, TextSettings(), texts=Texts([more]))
    other = open_corpus("rotten_tomatoes", TextSettings(), texts=Texts([more]), quiet=True).vocabulary
    with pytest.raises(DataError, match=r"little\.pack: expected the vocabulary it was packed with"):
        open_corpus(pack, TextSettings(), vocabulary=other)


def test_a_hugging_face_model_reads_them_too(more: Path) -> None:
    train = pytest.importorskip("wordward.train.finetuning_start")
    tiny, folder = pytest.importorskip("hf_tiny"), more.with_name("tiny")
    tokenizer = tiny.word_pieces()
    for part in (tokenizer, tiny.bert("sequence", len(tokenizer))):
        part.save_pretrained(folder)
    data = DataSettings(corpus="rotten_tomatoes", unlabelled=str(more))
    start = train.start_of(TrainConfig(method="vat", transformer=str(folder), data=data))
    assert len(start.examples["unlabelled"]) == 42


def test_the_limit_is_that_of_all_unlabelled_texts(more: Path) -> None:
    found = open_corpus("rotten_tomatoes", TextSettings(), limit=7, texts=Texts([more]), quiet=True)
    assert {len(corpus.rows) for corpus in found.splits.values()} == {7}


def test_amazon_reviews_are_read_by_their_text(tmp_path: Path) -> None:
    path = tmp_path / "films.txt.gz"
    block = "product/productId: B{0}\nreview/score: 5.0\nreview/text: Seen {0} times: caf\xe9\n\n"
    path.write_bytes(gzip.compress("".join(map(block.format, range(2))).encode("latin-1")))
    assert [each.text for each in Texts([path])] == ["Seen 0 times: café", "Seen 1 times: café"]
