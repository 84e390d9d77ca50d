"""A guard: what its threshold flags, attacks that hide flagged texts, and checks of it."""

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from any_model import Guard as Function
from any_model import fine_tuned, good, word_vectors
from hypothesis import given
from hypothesis import strategies as st
from reviews import reviews, tagged, write_conll, write_csv

import wordward
from wordward.attack import AttackSettings, CheckLimits, CheckSettings, Guard, check
from wordward.attack.cases import Target
from wordward.attack.goal import Labels, Tags
from wordward.attack.guard import STEP, Flags, guard_at
from wordward.cli.main import main
from wordward.datasets import Example
from wordward.report.checked import flags
from wordward.runs.prediction import Prediction, TokenPrediction
from wordward.runs.run import Run
from wordward.support.errors import ColumnError, DataError, SettingError

# Praise twice is 96 % good, once beside blame 55 %, as is a text of neither; blame twice 6 %.
TEXTS = [*reviews(24), Example("a text of no praise", "bad"), Example("this film was warm but dull", "good")]
GOOD = [each for each in TEXTS if each.label == "good"]
BAD = [each for each in TEXTS if each.label == "bad"]


@pytest.fixture
def settings(tmp_path: Path) -> AttackSettings:
    return AttackSettings(word_space=str(word_vectors(tmp_path / "vectors.txt")), words="any")


@pytest.fixture
def function() -> Function:
    return Function()


@pytest.fixture
def run(function: Function) -> Run:
    return wordward.open_model(function)


@given(st.lists(st.floats(-8, 8, width=32), min_size=2, max_size=5), st.floats(1e-3, 1 - 1e-3), st.data())
def test_the_margin_is_below_0_where_the_probability_is_below_the_threshold(
    logits: list[float], threshold: float, data: st.DataObject
):
    target = data.draw(st.integers(0, len(logits) - 1))
    values = np.array(logits, dtype=np.float64)
    p = round(float((np.exp(values) / np.exp(values).sum())[target]), 6)
    margin = Target(target, odds=Guard("x", threshold).odds).margin(values)
    if abs(p - threshold) > 2 * STEP:
        assert (margin < 0) == (p < threshold)


@pytest.mark.parametrize(
    ("good", "close"), [(0.905, True), (0.885, True), (0.95, False), (0.505, True), (0.7, False)]
)
def test_a_prediction_is_close_to_another_verdict_at_the_threshold_and_between_labels(
    run: Run, good: float, close: bool
):
    predicted = Prediction("", "good", {"good": good, "bad": 1 - good})
    assert Flags(run, None, Guard("good", 0.9)).close(predicted) == close
    tokens = (
        TokenPrediction("a", "good", {"good": 0.99, "bad": 0.01}),
        TokenPrediction("b", "good", predicted.probabilities),
    )
    between = abs(good - 0.5) < 0.01
    assert Labels(run, None).close(predicted) == between
    assert Tags(run, 0, {}).close(Prediction("a b", tokens=tokens)) == between


@pytest.mark.parametrize("threshold", [STEP, 0.25, 0.9, 1.0])
def test_odds_follow_the_rounding_of_predictions(threshold: float):
    least = 1 / (1 + np.exp(-Guard("x", threshold).odds))
    assert round(least + STEP / 10, 6) == pytest.approx(threshold)
    assert round(least - STEP / 10, 6) == pytest.approx(threshold - STEP)


def test_a_threshold_below_what_predictions_tell_apart():
    assert Guard("x", 1e-10).odds == Guard("x", STEP).odds


def test_a_decision_among_several_labels():
    predicted = Prediction("", "spam", {"news": 0.3, "spam": 0.4, "chat": 0.3})
    assert Guard("spam", 0.4).decision(predicted) == "spam"
    assert Guard("spam", 0.5).decision(predicted) == "news"
    assert Guard("chat", 0.2).decision(predicted) == "chat"


def test_a_flip_is_to_fall_below_the_threshold(run: Run, settings: AttackSettings):
    found = check(run, TEXTS, CheckSettings(settings, target="good", threshold=0.9))
    flagged = [each for each in found.results if each.label == "good" and good(each.text) >= 0.9]
    assert found.attacked == flagged
    assert len(flagged) == len(GOOD) - 1
    for each in found.flipped:
        assert good(each.adversarial) < 0.9 <= good(each.text)
        assert (each.before, each.after) == ("good", "bad")
    assert found.flipped
    assert any(good(each.adversarial) > 0.5 for each in found.flipped)  # the likeliest label is the same still
    assert {len(each.changes) for each in found.flipped} == {1}


def test_another_threshold_needs_more_edits(run: Run, settings: AttackSettings):
    low = check(run, TEXTS, CheckSettings(settings, target="good", threshold=0.3))
    assert {len(each.changes) for each in low.flipped if good(each.text) > 0.9} == {2}
    assert all(good(each.adversarial) < 0.3 for each in low.flipped)


def test_benign_texts_are_not_attacked(function: Function, run: Run, settings: AttackSettings):
    found = check(run, TEXTS, CheckSettings(settings, target="good", threshold=0.9))
    for each in found.results:
        if each.label == "bad":
            assert not each.changes
    assert not [text for text in function.asked if text not in {each.text for each in BAD} and "no praise" in text]


def test_numbers(run: Run, settings: AttackSettings):
    found = check(run, TEXTS, CheckSettings(settings, target="good", threshold=0.5, budgets=(1, 2)))
    assert found.accuracy == {}
    hidden = {n: sum(each.flipped and len(each.changes) <= n for each in found.results) for n in (0, 1, 2)}
    assert {n: each.value for n, each in found.recalls.items()} == {
        n: (len(GOOD) - hidden[n]) / len(GOOD) for n in (0, 1, 2)
    }
    assert 0 < hidden[1] < hidden[2]
    assert found.recall == found.recalls[0]
    assert found.flip_rate is not None
    assert found.false_positives is not None
    assert found.flip_rate.value == hidden[2] / len(GOOD)
    assert found.false_positives.value == 1 / len(BAD)


class TestFalsePositiveRate:
    @pytest.mark.parametrize(("rate", "flagged"), [(0.0, 0), (1 / len(BAD), 1), (1.9 / len(BAD), 1), (0.5, None)])
    def test_the_lowest_threshold_that_keeps_to_it(self, rate: float, flagged: int | None, run: Run):
        guard = guard_at(run, TEXTS, "good", rate)
        scores = [each.probabilities["good"] for each in run.predict(BAD)]
        above = [p for p in scores if p >= guard.threshold]
        assert len(above) <= rate * len(BAD)
        assert sum(p >= guard.threshold - 2 * STEP for p in scores) > rate * len(BAD)
        assert flagged is None or len(above) == flagged
        assert (guard.false_positive_rate, guard.found_on) == (rate, len(BAD))

    def test_in_a_check(self, run: Run, settings: AttackSettings):
        found = check(run, TEXTS, CheckSettings(settings, target="good", false_positive_rate=0.0))
        assert found.guard == guard_at(run, TEXTS, "good", 0.0)
        assert found.false_positives is not None
        assert found.false_positives.value == 0
        assert found.recall is not None
        assert found.recall.value == (len(GOOD) - 1) / len(GOOD)  # one is as probable as the benign text

    @pytest.mark.parametrize(("rate", "told"), [(0.01, "1%"), (0.0004, "0.04%")])
    def test_it_is_told_as_it_was_given(self, rate: float, told: str, run: Run, settings: AttackSettings):
        found = check(run, TEXTS, CheckSettings(settings, target="good", false_positive_rate=rate))
        assert f"flags at most {told} of the {len(BAD)} texts" in flags(found)

    def test_none_that_keeps_to_it(self):
        sure = wordward.open_model(lambda texts: [[0.0, 1.0] for _ in texts], labels=("bad", "good"))
        with pytest.raises(SettingError, match=r"no threshold flags at most 0\.01 .* 13 of 13"):
            guard_at(sure, [*BAD[:13], *GOOD], "good", 0.01)

    @pytest.mark.parametrize("texts", [GOOD, [Example("a film")]])
    def test_texts_that_cannot_tell(self, texts: Sequence[Example], run: Run):
        with pytest.raises(SettingError, match=r"false_positive_rate|to find a threshold on"):
            guard_at(run, texts, "good", 0.1)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"threshold": 0.5}, "needs `target`"),
        ({"threshold": 0.0, "target": "good"}, "above 0"),
        ({"threshold": 1.5, "target": "good"}, "up to 1"),
        ({"false_positive_rate": 1.0, "target": "good"}, "below 1"),
        ({"threshold": 0.5, "false_positive_rate": 0.1, "target": "good"}, "not both"),
        ({"threshold": 0.5, "target": "cake"}, "one of|expected a label"),
        ({"threshold": 0.5, "target": "good", "limits": CheckLimits(min_accuracy=0.5)}, "give `min_recall`"),
        ({"limits": CheckLimits(min_recall=0.5)}, "needs `target`"),
    ],
)
def test_what_does_not_fit_is_refused(how: dict[str, Any], said: str, function: Function, settings: AttackSettings):
    run = wordward.open_model(function)
    asked = len(function.asked)
    with pytest.raises(SettingError, match=said):
        check(run, TEXTS, CheckSettings(settings, **how))
    assert len(function.asked) == asked


def test_a_label_that_is_a_number_reads_as_a_label(settings: AttackSettings):
    def numbers(texts: list[str]) -> list[list[float]]:
        return [[1 - good(text), good(text)] for text in texts]

    texts = [replace(each, label=str(int(each.label == "good"))) for each in TEXTS]
    found = check(wordward.open_model(numbers), texts, CheckSettings(settings, target="1", threshold=0.5))
    page = wordward.report.card(found)
    assert f"| {len(GOOD)} texts labelled 1 |" in page
    assert f"| {len(BAD)} texts not labelled 1 |" in page
    assert " texts labelled 1 that are found |" in page


@pytest.mark.parametrize(
    ("limits", "holds"),
    [
        ({"min_recall": 1.0}, True),
        ({"min_recall_under_attack": 0.01}, False),
        ({"max_flip_rate": 0.99}, False),
        ({"max_false_positives": 0.05}, False),
        ({"max_false_positives": 0.1, "min_recall": 0.9}, True),
    ],
)
def test_limits_decide(limits: dict[str, float], holds: bool, run: Run, settings: AttackSettings):
    found = check(run, TEXTS, CheckSettings(settings, target="good", threshold=0.5, limits=CheckLimits(**limits)))
    assert found.holds is holds
    assert sorted(condition.name for condition in found.conditions) == sorted(limits)


def test_recall_without_a_threshold(run: Run, settings: AttackSettings):
    found = check(run, TEXTS, CheckSettings(settings, target="good", limits=CheckLimits(min_recall=1.0)))
    assert found.holds
    assert found.accuracy


def test_without_labels_what_is_flagged_is_attacked(run: Run, settings: AttackSettings):
    texts = [replace(each, label=None) for each in TEXTS]
    found = check(run, texts, CheckSettings(settings, target="good", threshold=0.9))
    assert found.attacked
    assert all(good(each.text) >= 0.9 for each in found.attacked)
    assert (found.recall, found.false_positives) == (None, None)


def test_against_an_earlier_guard(run: Run, settings: AttackSettings, tmp_path: Path):
    earlier = tmp_path / "earlier.json"
    earlier.write_text(json.dumps(check(run, TEXTS, CheckSettings(settings, target="good", threshold=0.5)).to_json()))
    again = check(run, TEXTS, CheckSettings(settings, target="good", threshold=0.5, against=str(earlier)))
    assert again.holds
    assert again.conditions[0].title == "right decisions"
    worse = check(run, TEXTS, CheckSettings(settings, target="good", threshold=0.99, against=str(earlier)))
    assert not worse.holds
    with pytest.raises(DataError, match="flagged for 'good' then, and are flagged by no threshold now"):
        check(run, TEXTS, CheckSettings(settings, against=str(earlier)))


@pytest.mark.parametrize("edits", [("swap",), ("delete", "typo")])
def test_a_model_with_gradients(edits: tuple[str, ...], tmp_path: Path):
    """The whole pipeline: what the search takes for a flip is one for the model that predicts the text."""
    run = wordward.open_model(str(fine_tuned(tmp_path / "sentiment")), device="cpu")
    settings = AttackSettings(edits=edits, words="any", sense="any", word_space="own")
    found = check(run, TEXTS, CheckSettings(settings, target="good", threshold=0.97))
    assert found.flipped
    for each in found.flipped:
        first, last = run.predict([each.text, each.adversarial])
        assert first.probabilities["good"] >= 0.97 > last.probabilities["good"]
    stayed = [each for each in found.attacked if not each.flipped]
    assert all(run.predict([each.adversarial])[0].probabilities["good"] >= 0.97 for each in stayed)


def test_a_tagger_has_no_threshold(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    write_conll(tmp_path / "tags.conll", tagged(40))
    flags = "--epochs 1 --dim 4 --hidden 4 --positive i --device cpu --quiet --method baseline --kind lstm"
    out = str(tmp_path / "run")
    assert main(["train", "--train", str(tmp_path / "tags.conll"), "--out", out, *flags.split()]) == 0
    assert main(["check", out, str(tmp_path / "tags.conll"), "--threshold", "0.5", "--target", "i", "--quiet"]) == 2
    assert "is for a classifier" in capsys.readouterr().err


class TestGroups:
    def written(self, folder: Path) -> Path:
        with (folder / "grouped.csv").open("w", newline="", encoding="utf-8") as file:
            rows = [(each.text, each.label, ("en", "de", "")[at % 3]) for at, each in enumerate(TEXTS)]
            csv.writer(file).writerows([("text", "label", "language"), *rows])
        return folder / "grouped.csv"

    def test_each_is_a_check_of_its_texts(self, run: Run, settings: AttackSettings, tmp_path: Path):
        texts = wordward.datasets.read(self.written(tmp_path), group_column="language")
        found = check(run, texts, CheckSettings(settings, target="good", threshold=0.5))
        assert list(found.by_group) == ["(none)", "de", "en"]
        for name, of in found.by_group.items():
            own = [each for each in texts if (each.group or "(none)") == name]
            assert [each.text for each in of.results] == [each.text for each in own]
        assert sum(len(of.flipped) for of in found.by_group.values()) == len(found.flipped)
        shares = {name: of["recall"]["value"] for name, of in found.to_json()["groups"].items()}
        assert shares == {name: of.recall.value for name, of in found.by_group.items() if of.recall}

    @pytest.mark.parametrize("name", ["texts.jsonl", "texts.txt", "folder"])
    def test_other_files(self, name: str, tmp_path: Path):
        path = tmp_path / name
        if name == "folder":
            (path / "good").mkdir(parents=True)
            (path / "good" / "1.txt").write_text("a warm film")
        else:
            path.write_text('{"text": "a warm film", "label": "good", "year": 1999}\n')
        if name == "texts.jsonl":
            (read,) = wordward.datasets.read(path, group_column="year")
            assert read.group == "1999"
        else:
            with pytest.raises(ColumnError, match="group_column"):
                wordward.datasets.read(path, group_column="year", labelled=False)

    def test_a_column_that_is_not_there(self, tmp_path: Path):
        with pytest.raises(ColumnError, match="group_column"):
            wordward.datasets.read(write_csv(tmp_path / "a.csv", TEXTS), group_column="language")

    def test_every_output_shows_them(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ):
        monkeypatch.chdir(tmp_path)
        word_vectors(tmp_path / "vectors.txt")
        (tmp_path / "guarded_model.py").write_text("from any_model import Guard\n\nguard = Guard()\n")
        self.written(tmp_path)
        command = "check guarded_model:guard grouped.csv --word-space vectors.txt --words any --sense any --quiet"
        files = "--json a.json --junit a.xml --card a.md --html a.html --group-column language --target good"
        limits = "--false-positive-rate 0.1 --min-recall 0.9 --max-flip-rate 0.2"
        assert main([*command.split(), *files.split(), *limits.split()]) == 1
        said = capsys.readouterr().out
        record = json.loads((tmp_path / "a.json").read_text())
        assert record["guard"]["false_positive_rate"] == 0.1
        threshold = f"{record['guard']['threshold']:g}"
        card, page = (tmp_path / "a.md").read_text(), (tmp_path / "a.html").read_text()
        for shown in (" ".join(said.split()), card, page):
            assert f"p(good) is {threshold} or more" in shown
            assert "found on these texts" in shown
            for part in ("recall under 4 edits", "false positives", "de", "falls short", "(none)"):
                assert part in shown
        suite = ElementTree.parse(tmp_path / "a.xml").getroot()[0]
        properties = {str(each.get("name")): str(each.get("value")) for each in suite.iter("property")}
        assert properties["threshold of good"] == threshold
        assert float(properties["de: recall"]) == pytest.approx(record["groups"]["de"]["recall"]["value"], abs=1e-4)
        assert {str(each.get("name")) for each in suite.iter("testcase")} == {
            "recall at least 90.0%",
            "flip rate at most 20.0%",
        }
