"""How words are spelt, and the forms as which unknown words are read."""

from pathlib import Path

import numpy as np
import pytest

from wordward.text.spelling import FORM, beginnings_of, forms_of, shape_of, spelling_of
from wordward.text.vocabulary import SPECIALS, UNK, Vocabulary

TEXTS = [["Anna", "met", "Johanna", "in", "1997"], ["Maria", "met", "Julia", "in", "2004"]]


@pytest.fixture
def known() -> Vocabulary:
    return Vocabulary.build(TEXTS, min_documents=1).with_forms()


@pytest.mark.parametrize(
    ("word", "shape"),
    [
        ("Anna", "Aa"),
        ("NATO", "A"),
        ("o'clock", "a'a"),
        ("3.50", "0.0"),
        ("--", "-"),
        ("Ärzte", "Aa"),
        ("a-b-c-d", "a-a-a-"),
    ],
)
def test_the_shape_of_a_word(word: str, shape: str) -> None:
    assert shape_of(word) == shape


def test_a_form_tells_what_each_of_its_words_tells() -> None:
    for word in ("Johanna", "1997", "o'clock", "U.S.", "a", ")"):
        for form in forms_of(word):
            assert form.startswith(FORM)
            assert set(spelling_of(form)) <= set(spelling_of(word)), (word, form)


def test_an_unknown_word_is_read_as_the_form_that_tells_most(known: Vocabulary) -> None:
    read = {word: known.word(known[word]) for word in ("Susanna", "Lydia", "Peter", "1812", "met", "x(y")}
    assert read == {
        "Susanna": "<unk> Aa nna",  # as Anna and Johanna end
        "Lydia": "<unk> Aa ia",
        "Peter": "<unk> Aa",
        "1812": "<unk> 0",
        "met": "met",
        "x(y": "<unk>",  # no known word is shaped like this
    }
    assert "Susanna" not in known
    assert known.encode(["Susanna", "met"], eos=False) == [known["Susanna"], known["met"]]


def test_forms_come_after_the_words_and_are_never_candidates(known: Vocabulary, tmp_path: Path) -> None:
    plain = Vocabulary.build(TEXTS, min_documents=1)
    assert known.words[: known.plain] == plain.words
    assert all(word.startswith(FORM) for word in known.words[known.plain :])
    assert len(known) > known.plain == len(plain)
    counted = Vocabulary(known.words, np.full(len(known), 9))  # rare words read as forms are counted there
    assert counted.candidates().tolist() == list(range(len(SPECIALS), known.plain))
    known.save(tmp_path / "words.tsv")
    again = Vocabulary.load(tmp_path / "words.tsv")
    assert (again.words, again.plain, again["Susanna"]) == (known.words, known.plain, known["Susanna"])


def test_without_forms_an_unknown_word_is_unk() -> None:
    plain = Vocabulary.build(TEXTS, min_documents=1)
    assert plain["Susanna"] == plain.form("Anna") == UNK
    assert plain.plain == len(plain)


def test_an_unknown_word_is_read_as_the_longest_beginning_that_two_known_words_have(tmp_path: Path) -> None:
    words = ["filmar", "filmade", "fiskar", "42", "4200", "ö", "vän"]
    known = Vocabulary.build([words], min_documents=1).with_forms(beginnings_of)
    assert known.words[known.plain :] == tuple(f"<unk> from {letters}" for letters in ("fi", "fil", "film", "filma"))
    read = {
        word: known.word(known[word]) for word in ("filmats", "filur", "fira", "filmar", "4201", "vänner", "ön", "x")
    }
    assert read == {
        "filmats": "<unk> from filma",
        "filur": "<unk> from fil",
        "fira": "<unk> from fi",
        "filmar": "filmar",
        "4201": "<unk>",  # no letters
        "vänner": "<unk>",  # of one known word alone
        "ön": "<unk>",
        "x": "<unk>",
    }
    assert "filmats" not in known
    assert known.candidates(0).tolist() == list(range(len(SPECIALS), known.plain))
    known.save(tmp_path / "words.tsv")
    assert Vocabulary.load(tmp_path / "words.tsv")["filmats"] == known["filmats"]
