"""A check: its numbers, its limits, and the comparison with an earlier one."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from any_model import Guard, good, word_vectors
from reviews import reviews
from small_training import config

import wordward
from wordward.attack import AttackSettings, Check, CheckLimits, CheckSettings, check
from wordward.attack.conditions import limited
from wordward.cli.check_output import show
from wordward.report import card, check_page, junit
from wordward.report.checked import rows, verdict
from wordward.runs.metrics import mcnemar, share
from wordward.runs.run import Run
from wordward.support.errors import DataError, SettingError

TEXTS = [*reviews(24), wordward.Example("a text of praise without its words", "bad")]  # the last is a false positive


@pytest.fixture
def settings(tmp_path: Path) -> AttackSettings:
    return AttackSettings(word_space=str(word_vectors(tmp_path / "vectors.txt")), words="any")


@pytest.fixture
def run() -> Run:
    return wordward.open_model(Guard())


def test_numbers_are_those_of_the_texts(run: Run, settings: AttackSettings):
    found = check(run, TEXTS, CheckSettings(settings, budgets=(2, 1)))
    assert found.budgets == (1, 2)
    right = [each for each in found.results if (good(each.text) > 0.5) == (each.label == "good")]
    assert len(right) == len(TEXTS) - 1
    flipped = {n: [each for each in right if each.flipped and len(each.changes) <= n] for n in (0, 1, 2)}
    for number, interval in found.accuracy.items():
        assert interval.value == (len(right) - len(flipped[number])) / len(TEXTS)
    assert found.flip_rate is not None
    assert found.flip_rate.value == len(flipped[2]) / len(right)
    assert sum(found.senses.values()) == len(flipped[2])
    assert max(len(each.changes) for each in found.results) <= 2


def test_words_that_break_it(run: Run, settings: AttackSettings):
    found = check(run, TEXTS, CheckSettings(settings))
    for word in found.words(100):
        with_it = [each for each in found.flipped if word.word in [change.word for change in each.changes]]
        assert word.flipped == len(with_it)
        assert word.flipped <= word.texts == sum(word.word in each.text.split() for each in found.attacked)
    first, *_, last = [word.word for word in found.words(100)]
    shares = {
        word: sum([change.word for change in each.changes].count(word) / len(each.changes) for each in found.flipped)
        for word in (first, last)
    }
    assert shares[first] >= shares[last]


def test_sense_is_judged_by_labelled_texts(run: Run, settings: AttackSettings):
    """Praise for blame loses what speaks for the label; the words of many reviews tell so."""
    found = check(run, TEXTS, CheckSettings(settings), sense_from=reviews(400, seed=5))
    assert found.senses == {"changed": len(found.flipped)}
    kept = check(run, TEXTS, CheckSettings(replace(settings, sense="kept")), sense_from=reviews(400, seed=5))
    assert not kept.flipped
    assert kept.attacked


def test_words_that_break_it_are_lowered_with_what_comes_in_their_place(run: Run, settings: AttackSettings):
    """But where case is all that was edited."""
    found = check(run, TEXTS[:40], CheckSettings(settings))
    flipped = found.flipped[0]
    changes = [("Warm", "Wa rm"), ("warm", "wa rm"), ("Warm", "warm"), ("", "The")]
    edited = replace(
        flipped, changes=[replace(flipped.changes[0], word=word, toward=toward) for word, toward in changes]
    )
    words = replace(found, results=(edited,)).words()
    assert {(each.word, each.toward) for each in words} == {
        ("warm", ("wa rm",)),
        ("Warm", ("warm",)),
        ("", ("the",)),
    }
    assert all(each.flipped <= each.texts for each in words)


def test_texts_left_as_they_are_are_told_where_they_are_many(
    run: Run, settings: AttackSettings, capsys: pytest.CaptureFixture[str]
):
    """That nothing flips says little where nothing may be done."""
    found = check(run, TEXTS, CheckSettings(settings))
    assert all(each.changes for each in found.attacked)
    kept = check(run, TEXTS, CheckSettings(replace(settings, sense="kept")), sense_from=reviews(400, seed=5))
    left = sum(not each.changes for each in kept.attacked)
    assert left > len(kept.attacked) / 4
    for one, wanted in ((found, False), (kept, True)):
        show(one, 0)
        for told in (card(one), check_page(one), capsys.readouterr().out):
            assert (f"{left} of {len(kept.attacked)} texts were left as they are: for " in told) == wanted


def test_a_target(run: Run, settings: AttackSettings):
    found = check(run, TEXTS, CheckSettings(settings, target="good"))
    bad = [each for each in TEXTS if each.label == "bad"]
    assert found.false_positives is not None
    assert found.recall is not None
    assert found.false_positives.value == 1 / len(bad)
    assert found.recall.value == 1
    assert {each.label for each in found.attacked} == {"good"}


@pytest.mark.parametrize(
    ("limits", "holds"),
    [
        ({"min_accuracy": 0.9}, True),
        ({"min_accuracy": 0.99}, False),
        ({"min_accuracy_under_attack": 0.0}, True),
        ({"min_accuracy_under_attack": 0.01}, False),
        ({"max_flip_rate": 1.0}, True),
        ({"max_flip_rate": 0.99}, False),
        ({"max_false_positives": 0.2}, True),
        ({"max_false_positives": 0.01}, False),
        ({"min_accuracy": 0.9, "max_flip_rate": 0.99}, False),
        ({}, True),
    ],
)
def test_limits_decide(limits: dict[str, float], holds: bool, run: Run, settings: AttackSettings):
    found = check(run, TEXTS, CheckSettings(settings, limits=CheckLimits(**limits), target="good"))
    assert found.holds is holds
    assert [condition.name for condition in found.conditions] == list(limits)


@pytest.mark.parametrize(
    ("right", "texts", "limit", "asked", "found"),
    [
        (17, 20, 0.9, "at least 90.0%", "85.0%"),
        (18, 20, 0.9, "at least 90.0%", "90.0%"),
        (2249, 2500, 0.9, "at least 90.0%", "89.96%"),
        (2499, 2500, 0.9997, "at least 99.97%", "99.96%"),
        (9999, 10000, 0.99994, "at least 99.994%", "99.990%"),
    ],
)
def test_what_is_found_does_not_look_like_a_limit_that_it_misses(
    right: int, texts: int, limit: float, asked: str, found: str
):
    condition = limited("min_accuracy", share(right, texts), limit)
    assert (condition.asked, condition.found) == (asked, found)


def written(found: Check, path: Path, **changes: Any) -> Path:
    path.write_text(json.dumps(found.to_json() | changes), encoding="utf-8")
    return path


class TestAgainst:
    def test_itself(self, run: Run, settings: AttackSettings, tmp_path: Path):
        earlier = written(check(run, TEXTS, CheckSettings(settings)), tmp_path / "earlier.json")
        found = check(run, TEXTS, CheckSettings(settings, against=str(earlier)))
        assert found.holds
        assert [condition.numbers["p"] for condition in found.conditions] == [1, 1]

    def test_equal_texts_count_once_which_is_told(self, run: Run, settings: AttackSettings, tmp_path: Path):
        once = list({each.text: each for each in TEXTS}.values())
        earlier = written(check(run, once, CheckSettings(settings)), tmp_path / "earlier.json")
        for texts, told in ((once, "(p = 1)"), ([*once, *once[:2]], "(p = 1); equal texts count once (2 more)")):
            found = check(run, texts, CheckSettings(settings, against=str(earlier)))
            assert all(condition.found.endswith(told) for condition in found.conditions)
            assert all(condition.numbers["texts"] == len(once) for condition in found.conditions)

    @pytest.mark.parametrize("lost", [3, 10])
    def test_worse_beyond_chance(self, lost: int, run: Run, settings: AttackSettings, tmp_path: Path):
        """The model now errs on some texts that it got right; p decides whether these are many."""
        earlier = written(check(run, TEXTS, CheckSettings(settings)), tmp_path / "earlier.json")
        gone = {each.text for each in TEXTS[:lost]}

        def worse(texts: list[str]) -> list[list[float]]:
            right = [(1 - good(text), good(text)) for text in texts]
            return [[q, p] if text not in gone else [p, q] for text, (q, p) in zip(texts, right, strict=True)]

        model = wordward.open_model(worse, labels=["bad", "good"])
        found = check(model, TEXTS, CheckSettings(settings, against=str(earlier)))
        clean = found.conditions[0]
        texts = len({each.text for each in TEXTS})
        assert clean.numbers == {
            "edits": 0,
            "texts": texts,
            "before": (texts - 1) / texts,
            "after": (texts - 1 - lost) / texts,
            "lost": lost,
            "won": 0,
        } | {"p": mcnemar(lost, 0)}
        for shown in (card(found), check_page(found)):
            assert (
                f"{1 - 1 / texts:.1%} before, {1 - (lost + 1) / texts:.1%} now; of {texts} texts {lost} lost, 0 won"
                in shown
            )
        assert clean.holds is found.holds is (mcnemar(lost, 0) >= 0.05)

    def test_better_is_no_fault(self, run: Run, settings: AttackSettings, tmp_path: Path):
        record = check(run, TEXTS, CheckSettings(settings)).to_json()
        each = [one | {"right": False} for one in record["each"]]
        (tmp_path / "earlier.json").write_text(json.dumps(record | {"each": each}))
        assert check(run, TEXTS, CheckSettings(settings, against=str(tmp_path / "earlier.json"))).holds

    def test_what_cannot_be_compared(self, run: Run, settings: AttackSettings, tmp_path: Path):
        path = written(check(run, TEXTS, CheckSettings(settings)), tmp_path / "earlier.json")
        with pytest.raises(DataError, match="the largest of `budgets`: 4 then, 2 now"):
            check(run, TEXTS, CheckSettings(settings, budgets=(1, 2), against=str(path)))
        with pytest.raises(DataError, match="beam: 1 then, 2 now"):
            check(run, TEXTS, CheckSettings(replace(settings, beam=2), against=str(path)))
        with pytest.raises(DataError, match="none of these are in it"):
            check(run, [wordward.Example("the film was bright", "good")], CheckSettings(settings, against=str(path)))
        with pytest.raises(DataError, match=r"only 1 of these 1 are in it, on which nothing can be shown: 6"):
            check(run, TEXTS[:1], CheckSettings(settings, against=str(path)))
        whole = json.loads(path.read_text())
        others: dict[str, Any] = {"other.json": {}, "a.json": [], "b.json": whole | {"guard": "x"}}
        others |= {
            "c.json": whole | {"each": [whole["each"][0] | {"flips_at": "x"}]},
            "d.json": whole | {"settings": 1},
        }
        for name, content in others.items():
            (tmp_path / name).write_text(json.dumps(content))
        (tmp_path / "deep.json").write_text("[" * 9_000)
        for name in (*others, "deep.json", "none.json"):
            with pytest.raises(DataError, match="expected the JSON of an earlier `wordward check`"):
                check(run, TEXTS, CheckSettings(settings, against=str(tmp_path / name)))

    def test_a_setting_that_was_not_known_then(self, run: Run, settings: AttackSettings, tmp_path: Path):
        record = check(run, TEXTS, CheckSettings(settings)).to_json()
        del record["settings"]["beam"]
        (tmp_path / "earlier.json").write_text(json.dumps(record))
        assert check(run, TEXTS, CheckSettings(settings, against=str(tmp_path / "earlier.json"))).holds


def test_what_cannot_be_measured(run: Run, settings: AttackSettings):
    plain = [wordward.Example(each.text) for each in TEXTS]
    with pytest.raises(SettingError, match="`min_accuracy` needs texts with their true labels"):
        check(run, plain, CheckSettings(settings, limits=CheckLimits(min_accuracy=0.5)))
    with pytest.raises(SettingError, match="`max_false_positives` needs `target`, one of bad, good"):
        check(run, TEXTS, CheckSettings(settings, limits=CheckLimits(max_false_positives=0.5)))
    with pytest.raises(SettingError, match="expected a label of the model, bad, good; got 'fine'"):
        check(run, TEXTS, CheckSettings(settings, target="fine"))
    assert check(run, TEXTS, CheckSettings(settings, target="GOOD")).target == "good"
    with pytest.raises(SettingError, match="numbers of edits, 1 or more"):
        check(run, TEXTS, CheckSettings(settings, budgets=()))
    with pytest.raises(DataError, match="there are none"):
        check(run, [], CheckSettings(settings))
    with pytest.raises(SettingError, match=r"a share from 0 to 1, .* but is 90"):
        CheckLimits(min_accuracy=90)
    found = check(run, plain, CheckSettings(settings, limits=CheckLimits(max_flip_rate=1)))
    assert found.holds
    assert found.accuracy == {}


@pytest.mark.parametrize(
    ("label", "name"), [("good", "max_false_positives"), ("bad", "min_recall"), ("bad", "min_recall_under_attack")]
)
def test_a_limit_on_texts_that_are_not_there_is_refused_before_any_is_read(
    label: str, name: str, settings: AttackSettings
):
    function = Guard()
    texts = [each for each in TEXTS if each.label == label]
    with pytest.raises(DataError, match="cannot be measured: no text to measure it on is among those given"):
        check(
            wordward.open_model(function),
            texts,
            CheckSettings(settings, limits=CheckLimits(**{name: 0.5}), target="good"),
        )
    assert not set(function.asked) & {each.text for each in texts}


def test_a_text_is_identified_but_not_shown_for_later(run: Run, settings: AttackSettings):
    record = check(run, TEXTS[:6], CheckSettings(settings)).to_json()
    assert {"text", "right", "flips_at"} == set(record["each"][0])
    assert not any(each.text in json.dumps(record["each"]) for each in TEXTS)


def test_edits_that_cannot_be_seen_are_told(run: Run):
    for kind, told in (("typo", "emtpy"), ("homoglyph", " with U+0"), ("invisible", "<U+")):
        found = check(run, TEXTS, CheckSettings(AttackSettings(edits=(kind,), sense="any"), budgets=(4,)))
        assert found.flipped
        page, text = check_page(found), card(found)
        assert f"<dt>edit</dt><dd>{kind}: " in page
        assert f"makes up to 4 edits ({kind}) in each text" in text
        words, worst = text.partition("| word |")[2].split("## Worst")
        assert told.replace("<", "&lt;") in words
        assert told.replace("<", "&lt;") in worst


def test_without_settings_only_edits_that_keep_the_sense_are_made(run: Run, capsys: pytest.CaptureFixture[str]):
    found = check(run, TEXTS, sense_from=reviews(400, seed=5), quiet=False)
    assert found.settings.sense == "kept"
    assert set(found.senses) <= {"kept"}
    said = capsys.readouterr().err
    assert "labelled texts or more, so the sense of few swaps can be judged" in said
    assert "`sense_from`" in said


def test_how_little_there_is_to_judge_by_is_told_wherever_the_numbers_are(run: Run):
    found = check(run, TEXTS, sense_from=reviews(400, seed=5))
    few = "words are in 5 labelled texts or more, so the sense of few swaps can be judged; others are not made"
    assert few in found.caveat
    for told in (card(found), check_page(found), junit(found), json.dumps(found.to_json())):
        assert few in told
    for settled in (
        check(run, TEXTS, CheckSettings(AttackSettings(sense="any"))),
        check(run, TEXTS, CheckSettings(AttackSettings(edits=("typo",)))),
    ):
        assert not settled.caveat
        assert "caveat" not in junit(settled)


def test_what_most_texts_have_no_words_to_judge_for_neither_holds_nor_falls_short(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Of the texts all words are left but two, so that most of them cannot be edited."""
    limits = CheckLimits(max_flip_rate=1.0, min_accuracy=0.0)
    by = [
        wordward.Example("fine fine" if each.label == "good" else "awful", each.label) for each in reviews(40, seed=5)
    ]
    found = check(run, TEXTS, CheckSettings(limits=limits), sense_from=by)
    assert len(found.attacked) == found.untried == found.unedited
    flips, accuracy = (
        next(one for one in found.conditions if one.name == name) for name in ("max_flip_rate", "min_accuracy")
    )
    assert accuracy.holds
    assert not flips.holds
    why = f"{found.untried} of {len(found.attacked)} texts to attack have no words that can be judged"
    assert flips.found == f"not measured: {why}"
    assert (flips.measured, found.holds, found.falls_short) == (False, False, False)
    assert {name for name, interval, _ in rows(found) if interval is None} == {
        "flip rate",
        *(f"accuracy under {n} edit{'s' * (n != 1)}" for n in found.budgets),
    }
    show(found, 0)
    shown = capsys.readouterr().out
    assert [line.split()[2] for line in shown.splitlines() if line.startswith("flip rate ")] == ["\N{EN DASH}", "at"]
    assert "`sense='any'`" in shown.splitlines()[-1]
    assert "`sense_from`" in shown.splitlines()[-1]
    assert shown.splitlines()[-1].startswith(f"could not be measured: 1 of 2 conditions; {why}; to measure it")
    assert shown.count(why) == 1
    assert "**could not be measured: 1 of 2 conditions.**" in card(found)
    assert "| flip rate | at most 100.0% | not measured" in card(found)
    assert "<b>not measured</b>" in check_page(found)
    suite = ElementTree.fromstring(junit(found).encode())[0]
    assert [suite.get(name) for name in ("tests", "failures", "errors")] == ["2", "0", "1"]
    (error,) = suite.iter("error")
    assert str(error.get("message")).startswith("could not be measured: flip rate at most 100.0%; to measure it")
    assert "| flip rate | \N{EN DASH} |  |" in card(found)
    assert "sense='any'" in card(found)
    assert "<b>\N{EN DASH}</b>" in check_page(found)
    assert 'name="flip rate" value' not in junit(found)
    told = found.to_json()
    assert told["unmeasured"] == flips.found
    assert told["flip_rate"]["value"] == 0
    assert [each["measured"] for each in told["conditions"]] == [True, False]
    missed = CheckLimits(max_flip_rate=0.5, min_accuracy_under_attack=1.0)  # and so it is under more edits
    short = check(run, TEXTS, CheckSettings(limits=missed), sense_from=by)
    assert short.falls_short
    assert verdict(short) == "falls short: 1 of 2 conditions not fulfilled, 1 not measured"
    (tmp_path / "earlier.json").write_text(json.dumps(told))
    later = check(run, TEXTS, CheckSettings(against=str(tmp_path / "earlier.json")), sense_from=by)
    assert [each.standing for each in later.conditions] == ["holds", "not measured"]
    any_sense = CheckSettings(AttackSettings(sense="any"), limits)
    show(check(run, TEXTS, any_sense, sense_from=by), 0)
    assert "--sense" not in capsys.readouterr().out


def test_a_run_of_ours_is_not_to_be_given_texts_to_count(
    csv_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """It has counted its training texts, and counts no others."""
    wordward.train.train(config(csv_file, epochs=1), tmp_path / "run", quiet=True)
    check(wordward.load_run(tmp_path / "run"), TEXTS[:4], quiet=False)
    said = capsys.readouterr().err
    assert "training texts or more, so the sense of few swaps can be judged" in said
    assert "sense_from" not in said


def test_a_model_that_no_edit_moves_is_measured(tmp_path: Path):
    """By so few texts that few words can be judged; but edits were tried, and did nothing."""

    class Marks(Guard):
        def __call__(self, texts: Sequence[str]) -> Any:
            return [[0.1, 0.9] if text.rstrip().endswith("!") else [0.9, 0.1] for text in texts]

    texts = [
        replace(each, text=f"{each.text} {'!' if each.label == 'good' else '.'}") for each in reviews(40, seed=5)
    ]
    limits = CheckLimits(max_flip_rate=0.0, min_accuracy_under_attack=1.0)
    found = check(
        wordward.open_model(Marks()),
        texts,
        CheckSettings(AttackSettings(edits=("typo",), sense="kept"), limits=limits),
    )
    assert found.unedited == len(found.attacked) == 40
    assert found.untried == 0
    assert not found.caveat
    assert found.holds


def test_any_edit_is_made_where_nothing_tells_the_sense(run: Run, capsys: pytest.CaptureFixture[str]):
    plain = [replace(each, label=None) for each in TEXTS]
    found = check(run, plain, quiet=False)
    assert found.settings.sense == "any"
    assert "any may be made" in capsys.readouterr().err
