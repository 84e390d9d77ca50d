"""Negations of many languages: they come or go with the sense, and are no English words where texts are English."""

import numpy as np
import pytest
import torch

from wordward.attack.edits import deletion, words_in
from wordward.attack.negations import NEGATIONS, negates
from wordward.attack.sense import make_judge
from wordward.attack.stopwords import STOP_WORDS
from wordward.explain.english import looks_english
from wordward.text.vocabulary import SPECIALS, Vocabulary


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("nicht", "einfach"),
        ("keinen", "einen"),
        ("PAS", "UNE"),
        ("ne", "se"),
        ("n’est", "c’est"),
        ("jamas", "siempre"),
        ("não", "muito"),
        ("niet", "heel"),
        ("nie", "bardzo"),
        ("не", "очень"),
        ("ніколи", "завжди"),
        ("DEĞİL", "çok"),
        ("δεν", "πολύ"),
        ("tidak", "sangat"),
        ("inte", "mycket"),
        ("不", "很"),
        ("没有", "大概"),
        ("ない", "ある"),
        ("않는", "있는"),
        ("ليس", "جدا"),
        ("לא", "מאוד"),
        ("नहीं", "बहुत"),
    ],
)
def test_a_negation_of_any_language_comes_or_goes_with_the_sense(word: str, other: str) -> None:
    vocabulary = Vocabulary((*SPECIALS, word, other), np.ones(5))
    judge = make_judge(torch.full((5, 2), 1000), vocabulary)
    there, back = (vocabulary[word], vocabulary[other]), (vocabulary[other], vocabulary[word])
    assert judge.of(0, *there) == judge.of(0, *back) == "changed"


@pytest.mark.parametrize(("common", "sense"), [("the of and", "kept"), ("el de la", "changed")])
def test_words_that_negate_elsewhere_are_ordinary_in_english(common: str, sense: str) -> None:
    vocabulary = Vocabulary((*SPECIALS, *common.split(), "sin", "vice"), np.ones(8))
    judge = make_judge(torch.full((8, 2), 1000), vocabulary)
    assert judge.of(0, vocabulary["sin"], vocabulary["vice"]) == sense
    assert judge.of(0, vocabulary[common.split()[0]], vocabulary["vice"]) == "kept"


def test_texts_are_english_by_their_commonest_words() -> None:
    rare = [f"word{number}" for number in range(100)]
    assert looks_english(["the", "of", "and", *rare], [9, 8, 7, *[1] * 100])
    assert not looks_english(["the", "of", "and", *rare], [1, 1, 1, *[5] * 100])
    assert not looks_english([], [])


def test_no_word_is_left_out_beside_a_negation() -> None:
    text = "it is niet really warm"
    assert [deletion(text, span) for span in words_in(text)] == [None] * 5


def test_frequent_english_words_are_no_negations() -> None:
    ordinary = "die plus also was more man den on in an as at am so but all us sense point cap".split()
    assert not any(negates(word) for word in ordinary)
    assert (STOP_WORDS & NEGATIONS).isdisjoint({"the", "a", "me", "s", "d", "has"})
