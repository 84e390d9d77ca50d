"""Whether words are nouns, verbs, adjectives or names, by their form and by their vectors."""

from pathlib import Path

import pytest
import torch

from wordward.explain.english import NAMES
from wordward.explain.word_classes import (
    CLASSES,
    _by_installed,
    by_class,
    class_by_form,
    foretold,
    installed_classes,
    told_by_form,
    word_classes,
)
from wordward.explain.word_kinds import BIT, Fitting
from wordward.runs.input_table import installed_model

FORMS = "tables bake baking kind kindly rain rains raining"
KNOWN = frozenset(FORMS.split())


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("hopeful", "adjective"),
        ("dryness", "noun"),
        ("good", "adjective"),
        ("week", "noun"),
        ("london", "name"),
        ("table", "noun"),  # tables; and not "able"
        ("bake", "verb"),  # baking
        ("kind", "adjective"),  # kindly
        ("rain", None),  # rains and raining
        ("glum", None),
        ("tables", None),  # inflected
        ("the", None),
        ("ox", None),
    ],
)
def test_what_the_form_of_a_word_tells(word: str, expected: str | None) -> None:
    assert class_by_form(word, KNOWN) == expected


def a_language(each: int = 40, *, noise: float = 0.3) -> tuple[list[str], torch.Tensor]:
    """Words of four classes, half of which tell by their form; their vectors lie around a point for each class."""
    torch.manual_seed(0)
    letters = [f"{a}{b}" for a in "bdfgklmnprst" for b in "aeiou"][:each]
    told = [
        [f"{two}{two}ness" for two in letters],
        [f"w{two}sp" for two in letters],
        [f"{two}{two}ous" for two in letters],
    ]
    untold = [[f"{start}{two}lk" for two in letters] for start in ("n", "v", "q")]
    names = sorted(NAMES)[:each]
    words = [word for of_class in (*told, names, *untold) for word in of_class]
    words += [f"{verb}ing" for verb in told[1]]
    points = torch.eye(4)[[at for at in (0, 1, 2, 3, 0, 1, 2) for _ in range(each)] + [1] * each]
    return words, points + noise * torch.randn(len(words), 4)


def test_words_whose_form_does_not_tell_are_of_the_class_of_those_near_them() -> None:
    words, vectors = a_language()
    found = word_classes(words, vectors)
    assert found is not None
    for start, name in (("n", "noun"), ("v", "verb"), ("q", "adjective")):
        of_class = [at for at, word in enumerate(words) if word.startswith(start) and word.endswith("lk")]
        right = found[of_class].argmax(-1) == CLASSES.index(name)
        assert right.float().mean() > 0.9
    sure = words.index("babaness")
    assert found[sure].tolist() == [1.0, 0.0, 0.0, 0.0]  # the form tells


def test_a_word_whose_form_tells_otherwise_than_all_others_is_what_they_say_and_teaches_nothing() -> None:
    words, vectors = a_language(noise=0.1)
    adjectives = [words.index(f"q{two}lk") for two in ("ba", "be", "bi", "bo")]  # as economic: there are plurals
    words += [f"{words[at]}s" for at in adjectives]
    vectors = torch.cat([vectors, torch.eye(4)[[0] * 4]])
    told = told_by_form(words)
    assert told[adjectives].tolist() == [CLASSES.index("noun")] * 4
    found = word_classes(words, vectors)
    assert found is not None
    assert found[adjectives].argmax(-1).tolist() == [CLASSES.index("adjective")] * 4
    told[adjectives] = -1
    assert torch.equal(found[told < 0], foretold(told, vectors)[told < 0])
    assert torch.equal(found[told >= 0], torch.eye(4)[told[told >= 0]])


def test_vectors_that_know_nothing_of_classes_are_not_asked() -> None:
    words, vectors = a_language()
    assert word_classes(words, torch.randn_like(vectors)) is None
    few, of_few = a_language(10)
    assert word_classes(few, of_few) is None


def kinds_of(word: str, **classes: float) -> set[str]:
    """The kinds of a word, in a vocabulary that knows some forms, after it was told how much it is of each class."""
    words = [word, *FORMS.split(), "work", "bore", "quick"]
    fits = Fitting(words, frozenset(words))
    told = torch.full((len(words), len(CLASSES)), torch.nan)
    if classes:
        told[0] = torch.tensor([classes.get(name, 0.0) for name in CLASSES])
    kind = int(by_class(fits, told).kinds[0])
    return {name for name, bit in BIT.items() if kind & bit}


def test_a_word_has_the_kinds_of_its_classes() -> None:
    assert kinds_of("glum") == {"noun", "adjective"}
    assert kinds_of("glum", adjective=0.9) == {"adjective"}
    assert kinds_of("glum", adjective=0.5, verb=0.35) == {"adjective", "verb"}
    assert kinds_of("glum", adjective=0.5, verb=0.28) == {"adjective"}
    assert kinds_of("glum", adjective=0.4, verb=0.25) == {"adjective"}  # too little of a verb
    assert kinds_of("glum", adjective=0.2, verb=0.1) == {"adjective"}
    assert kinds_of("works", verb=0.7) == {"verbs"}
    assert kinds_of("works", noun=0.7, verb=0.6) == {"s", "verbs"}
    assert kinds_of("boring", adjective=0.8) == {"adjective"}
    assert kinds_of("boring", verb=0.8, adjective=0.7) == {"ing"}
    assert kinds_of("quickly", adjective=0.8) == {"ly"}
    assert kinds_of("hamburg", name=0.7, noun=0.6) == set()
    assert kinds_of("12", name=0.7) == {"number"}


def test_words_of_grammar_stay_what_they_are() -> None:
    words = ["the", "was", "is"]
    fits = Fitting(words, frozenset(words))
    assert by_class(fits, torch.eye(4)[[3, 0, 2]]).kinds.tolist() == fits.kinds.tolist()


def test_the_installed_table_knows_classes() -> None:
    folder = installed_model()
    assert folder is not None, "make .venv/demo installs one"
    found = installed_classes(folder)
    best = {word: CLASSES[int(found[word].argmax())] for word in found}
    for name, words in {
        "noun": "tragedy money music soup tunnel",
        "verb": "buy deny",
        "adjective": "fantastic superb sorry stale",
        "name": "william hamburg",
    }.items():
        assert {best[word] for word in words.split()} == {name}


def test_a_word_that_the_table_lacks_has_the_classes_of_its_ending() -> None:
    words = ("flabbify", "gloopiness", "simplifies", "fantastic", "bit", "decent")
    kinds = dict(zip(words, _by_installed(words, installed_model() or Path()).kinds.tolist(), strict=True))
    assert kinds["flabbify"] == BIT["verb"]
    assert kinds["gloopiness"] == BIT["noun"]
    assert kinds["simplifies"] == BIT["verbs"]
    assert kinds["bit"] & kinds["decent"] == 0
