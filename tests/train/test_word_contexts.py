"""Where words stand: those with the same neighbours are alike, and rare ones are as others with their ending."""

from typing import Any

import numpy as np
import pytest
import torch

from wordward.config.texts import TextSettings
from wordward.datasets import Example
from wordward.text.tokens import words_of
from wordward.text.vocabulary import SPECIALS, Vocabulary
from wordward.train import word_contexts as module
from wordward.train.word_contexts import DIM, capitals, context_vectors

NOUNS, VERBS = "table chaise fenêtre lampe".split(), "tombait brillait grinçait tremblait".split()


def in_texts(texts: list[str]) -> tuple[Vocabulary, torch.Tensor]:
    """The words of texts, and where they stand."""
    words = [text.split() for text in texts]
    vocabulary = Vocabulary.build(words, min_documents=1)
    return vocabulary, context_vectors([[np.array(vocabulary.encode(each)) for each in words]], vocabulary.words)


def cosine(vocabulary: Vocabulary, vectors: torch.Tensor, one: str, other: str) -> float:
    return float(vectors[vocabulary[one]] @ vectors[vocabulary[other]])


def sentences() -> list[str]:
    return [f"la {noun} {verb} ici" for noun in NOUNS for verb in VERBS] * 3


def test_words_with_the_same_neighbours_are_alike() -> None:
    vocabulary, vectors = in_texts(sentences())
    assert vectors.shape == (len(vocabulary), DIM)
    assert not vectors[: len(SPECIALS)].any()
    torch.testing.assert_close(vectors[len(SPECIALS) :].norm(dim=-1), torch.ones(len(vocabulary) - len(SPECIALS)))
    for kind, others in ((NOUNS, VERBS), (VERBS, NOUNS)):
        assert cosine(vocabulary, vectors, kind[0], kind[1]) > 0.8
        assert cosine(vocabulary, vectors, kind[0], others[0]) < 0.3


def test_a_rare_word_stands_as_others_with_its_ending() -> None:
    vocabulary, vectors = in_texts([*sentences(), "xu chantait", "xu zorbel"])  # each seen once, in the same place
    assert (
        cosine(vocabulary, vectors, "chantait", "brillait") > cosine(vocabulary, vectors, "zorbel", "brillait") + 0.2
    )


def test_left_and_right_are_told_apart() -> None:
    texts = [text for word in ("ba", "fe") for text in (f"{word} mo", f"mo {word}")]  # both on either side of "mo"
    texts += ["du mo", "ri mo", "mo ka", "mo ze", "fo li", "li fu"]  # these on one
    vocabulary, vectors = in_texts(texts * 20)
    assert cosine(vocabulary, vectors, "du", "ri") > 0.9
    assert cosine(vocabulary, vectors, "ka", "ze") > 0.9
    assert cosine(vocabulary, vectors, "du", "ka") < 0.0
    assert cosine(vocabulary, vectors, "du", "fo") < 0.9  # both begin a text, before another word
    assert cosine(vocabulary, vectors, "ka", "fu") < 0.9


def test_words_of_two_texts_are_no_neighbours() -> None:
    vocabulary, _ = in_texts(["ba mo du", "fe ri"])
    rows = [np.array(vocabulary.encode(text.split(), eos=False)) for text in ("ba mo du", "fe ri", "mo fe", "ri ba")]
    found = [context_vectors([each], vocabulary.words) for each in (rows, rows[::-1])]
    torch.testing.assert_close(found[0] @ found[0].T, found[1] @ found[1].T)


def test_the_same_texts_give_the_same_vectors_and_others_without_labels_count() -> None:
    (_, one), (vocabulary, other) = in_texts(sentences()), in_texts(sentences())
    assert torch.equal(one, other)
    rows = [np.array(vocabulary.encode(text.split())) for text in sentences()]
    torch.testing.assert_close(context_vectors([rows[:20], rows[20:]], vocabulary.words), one)


def test_words_after_the_commonest_and_a_vocabulary_of_none_have_no_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", len(SPECIALS) + 4)
    _, vectors = in_texts(sentences())
    assert vectors[len(SPECIALS) : len(SPECIALS) + 4].any(-1).all()
    assert not vectors[len(SPECIALS) + 4 :].any()
    assert not context_vectors([[np.array([2])]], SPECIALS).any()


def test_words_that_are_written_with_a_capital_within_sentences() -> None:
    texts = ["Wir sehen die Zeitung, die neue Zeitung. Neue Ideen!", "Die Wohnung ist neu"] * 20 + ["eine Leitung"]
    settings = TextSettings(lowercase=True)
    vocabulary = Vocabulary.build(
        [["zeitung", "neue", "die", "wohnung", "wir", "leitung", "leiten"]], min_documents=1
    )
    found = capitals([Example(text) for text in texts], vocabulary, settings)
    share = {word: float(found[vocabulary[word]]) for word in ("zeitung", "neue", "die", "wohnung", "leitung")}
    assert share["zeitung"] > 0.9
    assert share["wohnung"] > 0.9
    assert share["leitung"] > 0.9  # seen once, as others with its ending
    assert share["neue"] < 0.1  # but where a sentence begins
    assert share["die"] < 0.1
    assert not found[: len(SPECIALS)].any()


def test_how_words_are_written_is_read_from_so_many_words_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = Vocabulary.build([["die", "zeitung"]], min_documents=1)
    texts = [Example("die Zeitung"), *[Example("die zeitung")] * 50]
    settings = TextSettings(lowercase=True)
    few = float(capitals(texts, vocabulary, settings)[vocabulary["zeitung"]])
    monkeypatch.setattr(module, "WRITTEN", 1)
    assert float(capitals(texts, vocabulary, settings)[vocabulary["zeitung"]]) > few + 0.5


@pytest.mark.parametrize("tokenizer", ["words", "punctuation", "whitespace"])
def test_a_capital_that_begins_a_sentence_says_nothing_however_words_are_told(tokenizer: Any) -> None:
    settings = TextSettings(tokenizer=tokenizer, lowercase=True)
    slow = "The cast is slow and the plot is as slow as the cast, in all of it. Wonderful film."
    texts = [Example(slow)] * 50 + [Example("the old cafe\u0301 Paris was as it was and is")] * 50
    vocabulary = Vocabulary.build([words_of(example, settings) for example in texts], min_documents=1)
    found = capitals(texts, vocabulary, settings)
    assert found[vocabulary["wonderful"]] < 0.1
    assert found[vocabulary["paris"]] > 0.9
