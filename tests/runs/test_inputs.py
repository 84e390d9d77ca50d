"""What may be given as texts in Python, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hf_tiny import bert, word_pieces
from reviews import reviews, tagged, write_conll, write_csv

import wordward
from wordward.attack import AttackSettings, CheckLimits, CheckSettings, check
from wordward.cli.main import main
from wordward.datasets import DataError, Example
from wordward.hf.explainer import open_model
from wordward.hf.trainer import AdversarialSettings
from wordward.runs.run import Run
from wordward.support.errors import SettingError, SettingTypeError

SMALL = "--dim 10 --hidden 10 --head 5 --epochs 1 --epsilon 1 --k 5 --device cpu --quiet"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier and a tagger beside files like those that they learnt from."""
    place = tmp_path_factory.mktemp("given")
    write_csv(place / "texts.csv", reviews(60))
    write_conll(place / "tags.conll", tagged(40))
    for name, data in (("classifier", "texts.csv"), ("tagger", "tags.conll")):
        assert main(["train", "--train", str(place / data), "--out", str(place / name), *SMALL.split()]) == 0
    return place


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    return wordward.load_run(folder / "classifier", device="cpu")


@pytest.fixture(scope="module")
def external() -> Run:
    """A model that had its labels before."""
    tokenizer = word_pieces()
    model = bert("sequence", len(tokenizer), id2label={0: "bad", 1: "good"})
    return open_model(model, tokenizer, AdversarialSettings(k=4), tagging=False)


@pytest.mark.parametrize(
    "texts", ["a warm film", b"a warm film", Path("texts.csv"), {"text": ["a warm film"]}, Example("a film")]
)
def test_one_text_or_a_file_is_no_list_of_texts(run: Run, texts: Any) -> None:
    for use in (run.predict, run.evaluate, run.explain, run.attack, lambda given: check(run, given)):
        with pytest.raises(SettingTypeError, match=r"texts must be a list of them, but is .*: give \[text\]"):
            use(texts)


def test_texts_of_an_array_are_plain_strings(run: Run) -> None:
    texts: Any = np.array(["a warm film", "a dull film"])
    assert run.predict(texts) == run.predict(texts.tolist())
    given: Any = [(text, "good") for text in texts]
    found = [*run.predict(texts), *run.predict(given), *run.explain(texts)]
    assert {type(each.text) for each in found} == {str}


@pytest.mark.parametrize("text", [None, 3, ["a", "film"], ("a film", "good", "fine")])
def test_what_is_no_text_is_refused(run: Run, text: Any) -> None:
    with pytest.raises(SettingTypeError, match=r"strings, Examples or pairs \(text, label\), but one is"):
        run.predict(["a warm film", text])


def test_pairs_are_texts_with_labels(run: Run) -> None:
    pairs: Any = [("the film was warm", "good"), ("the film was dull", "bad")]
    assert run.examples(pairs) == [Example("the film was warm", "good"), Example("the film was dull", "bad")]
    assert run.evaluate(pairs).scores == run.evaluate([Example(*pair) for pair in pairs]).scores
    assert [found.label for found in run.attack(pairs)] == ["good", "bad"]
    with pytest.raises(DataError, match="expected texts with labels to score the model on; there are none"):
        run.evaluate([])


def test_labels_of_a_model_from_elsewhere_may_be_numbers_or_in_another_case(external: Run, run: Run) -> None:
    given: Any = [("the film was warm", 1), ("the film was dull", "BAD"), ("the cast was cold", "bad")]
    assert [each.label for each in external.examples(given)] == ["good", "bad", "bad"]
    assert {each.label for each in check(external, given, CheckSettings(AttackSettings(sense="any"))).results} == {
        "good",
        "bad",
    }
    with pytest.raises(DataError, match=r"a label that the model knows \(bad, good\); got '1'"):
        run.evaluate(given)  # its labels are those of its training texts, as they are written there


def test_labels_of_another_task_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts, tags = str(folder / "texts.csv"), str(folder / "tags.conll")
    for name, file, wanted in (("tagger", texts, "a tag for every token"), ("classifier", tags, "a label")):
        for command in ("check", "attack"):
            assert main([command, str(folder / name), file, "--device", "cpu", "--quiet"]) in (1, 2)
            assert f"expected {wanted}; it has" in capsys.readouterr().err
    limits = ["--max-flip-rate", "1", "--sense", "any", "--device", "cpu", "--quiet", "--no-labels", "--limit", "3"]
    assert main(["check", str(folder / "classifier"), tags, *limits]) == 0


def test_other_texts_do_not_judge_the_sense_for_a_run_of_ours(folder: Path, run: Run) -> None:
    with pytest.raises(SettingError, match=r"has counted its own training texts.*leave `sense_from` out"):
        check(run, reviews(3), sense_from=reviews(9))
    tagger = wordward.load_run(folder / "tagger", device="cpu", positive="i")
    with pytest.raises(SettingError, match="`sense_from` is for classifiers"):
        check(tagger, tagged(3), sense_from=tagged(9))


def test_checks_that_other_texts_judged_are_not_compared(external: Run, tmp_path: Path) -> None:
    import json

    file, texts = tmp_path / "earlier.json", reviews(20)
    first = check(external, texts, sense_from=reviews(120, seed=1))
    assert first.judged_by
    file.write_text(json.dumps(first.to_json()))
    assert check(external, texts, CheckSettings(against=str(file)), sense_from=reviews(120, seed=1)).holds
    with pytest.raises(DataError, match="was judged by other texts, so what it tells cannot be compared"):
        check(external, texts, CheckSettings(against=str(file)), sense_from=reviews(120, seed=2))
    model, tokenizer = bert("sequence", len(word_pieces()), id2label={0: "good", 1: "bad"}), word_pieces()
    turned = open_model(model, tokenizer, AdversarialSettings(k=4), tagging=False)
    assert check(
        turned, texts, CheckSettings(against=str(file)), sense_from=reviews(120, seed=1)
    ).conditions  # the same texts judge
    older = first.to_json()
    del older["judged_by"]  # as versions before wrote it
    file.write_text(json.dumps(older))
    assert check(external, texts, CheckSettings(against=str(file)), sense_from=reviews(120, seed=2)).conditions


def test_texts_that_no_edit_was_made_in_are_counted(run: Run, external: Run) -> None:
    found = check(
        external, reviews(20), CheckSettings(limits=CheckLimits(max_flip_rate=1.0)), sense_from=reviews(120, seed=3)
    )
    left = sum(not each.changes for each in found.attacked)
    assert found.to_json()["unedited"] == found.unedited == left
    assert f'value="{left} of {len(found.attacked)}"' in wordward.report.junit(found)


def test_labels_that_are_numbers_are_to_be_named(tmp_path: Path) -> None:
    def half(texts: list[str]) -> list[list[float]]:
        return [[0.5, 0.5] for _ in texts]

    with pytest.raises(DataError, match=r"\(0, 1\); got 'good': give numbers, or, of a model that wordward"):
        wordward.open_model(half).evaluate([Example("a warm film", "good")])


def test_a_second_list_of_labels_is_told_to_come_with_the_texts(run: Run) -> None:
    labels: Any = ["good"]
    remedy = r"but is \['good'\]: give true labels with the texts, as pairs \(text, label\)"
    with pytest.raises(SettingTypeError, match="`settings` must be `AttackSettings`, " + remedy):
        run.attack(["a warm film"], labels)
    with pytest.raises(SettingTypeError, match="`settings` must be `CheckSettings`, " + remedy):
        check(run, ["a warm film"], labels)  # type: ignore[list-item]
    with pytest.raises(SettingTypeError, match="`source` must be a string, " + remedy):
        run.evaluate(["a warm film"], labels)  # type: ignore[list-item]
    with pytest.raises(SettingTypeError, match="`source` must be a string, but is array"):
        run.evaluate(["a warm film"], np.array(labels))  # type: ignore[list-item]


def test_what_no_edit_was_made_for_is_not_fulfilled(external: Run, tmp_path: Path) -> None:
    import json

    limits, texts = CheckLimits(max_flip_rate=1.0, min_accuracy=0.0), reviews(8)
    found = check(external, texts, CheckSettings(limits=limits))
    assert found.unedited == len(found.attacked) > 0  # no word is in enough of these texts
    assert {each.name: each.holds for each in found.conditions} == {"min_accuracy": True, "max_flip_rate": False}
    assert not found.holds
    assert "not measured: 1 of 1 texts to attack have no words" in found.conditions[1].found
    (tmp_path / "earlier.json").write_text(json.dumps(found.to_json()))
    later = check(external, texts, CheckSettings(against=str(tmp_path / "earlier.json")))
    assert [each.holds for each in later.conditions] == [True, False]


def test_all_texts_of_a_file_judge_edits_of_some(tmp_path: Path) -> None:
    import json

    place, tokenizer = tmp_path / "model", word_pieces()
    bert("sequence", len(tokenizer), id2label={0: "bad", 1: "good"}).save_pretrained(place)
    tokenizer.save_pretrained(place)
    file = write_csv(tmp_path / "texts.csv", reviews(120))
    judged = []
    for limit in ("10", "20"):
        out = tmp_path / f"{limit}.json"
        flags = ["--limit", limit, "--json", str(out), "--quiet"]
        assert main(["check", str(place), str(file), *flags]) == 0
        judged.append(json.loads(out.read_text())["judged_by"])
    assert judged[0] == judged[1]
