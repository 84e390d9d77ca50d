"""What words speak for by their spelling: a logistic regression on words and their letters, derived a second time."""

import math
from collections import Counter

import numpy as np
import pytest
import torch

from wordward.config import ModelSettings
from wordward.models import Convolution
from wordward.text.corpus import Corpus
from wordward.text.vocabulary import SPECIALS
from wordward.train import spelt
from wordward.train.spelt import fit_spelt
from wordward.train.yardstick import C, fit_linear, linear_probabilities

WORDS = ("warm", "warmly", "warmer", "cold", "coldly", "a", "film", "films", "!", "42", "bland")
NAMES = (*SPECIALS, *WORDS)


def texts(classes: int) -> Corpus:
    rng = np.random.default_rng(classes)
    labels = np.arange(60) % classes
    rows = [
        np.array([*rng.integers(3, len(NAMES) - 1, rng.integers(1, 9)), *([3 + label] * 2)], np.int32)
        for label in labels
    ]
    return Corpus(rows, labels)


def parts(word: str) -> Counter[str]:
    whole = f" {word} "
    stretches = [whole[at : at + n] for n in (2, 3, 4) for at in range(len(whole) - n + 1)]
    return Counter([f"={word}", *(stretches if len(word) > 1 and word[0].isalpha() else [])])


def lengths(corpus: Corpus) -> tuple[dict[str, float], dict[int, float]]:
    """The idf of each part, and how long the vector of each word's parts is."""
    total = len(corpus.rows)
    documents = Counter(part for row in corpus.rows for part in {p for at in row for p in parts(NAMES[at])})
    idf = {part: math.log((1 + total) / (1 + n)) + 1 for part, n in documents.items() if n > 1 or part[0] == "="}
    own = {
        at: math.sqrt(sum(often * idf.get(part, 0.0) ** 2 for part, often in parts(NAMES[at]).items()))
        for at in range(len(SPECIALS), len(NAMES))
    }
    return idf, own


@pytest.mark.parametrize("classes", [2, 3])
def test_it_is_scikit_learns_logistic_regression_on_words_and_their_letters(classes: int) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    corpus = texts(classes)
    idf, own = lengths(corpus)
    columns = {part: at for at, part in enumerate(idf)}
    matrix = np.zeros((len(corpus.rows), len(columns)))
    for values, row in zip(matrix, corpus.rows, strict=True):
        length = math.sqrt(sum(own[at] ** 2 for at in row))
        for part, often in (each for at in row for each in parts(NAMES[at]).items()):
            values[columns[part]] += often * idf[part] / length
    other = linear_model.LogisticRegression(C=C, tol=1e-8, max_iter=5000).fit(matrix, corpus.labels)
    found = fit_spelt(corpus, NAMES, classes)
    for at, row in enumerate(corpus.rows):
        length = math.sqrt(sum(float(found.idf[each]) ** 2 for each in row))
        scores = found.evidence[row].sum(0) / length + found.bias
        expected = other.predict_proba(matrix[at : at + 1])[0]
        np.testing.assert_allclose(torch.tensor(scores).softmax(0), expected, atol=2e-3)
    assert found.idf[: len(SPECIALS)].tolist() == [0.0] * len(SPECIALS)


def test_a_convolution_says_what_it_says() -> None:
    corpus = texts(2)
    found = fit_spelt(corpus, NAMES, 2)
    model = Convolution(len(NAMES), 2, ModelSettings(kind="convolution", dim=4, hidden=4)).eval()
    evidence, idf, bias = map(torch.from_numpy, found)
    model.set_evidence(evidence, idf, bias, torch.ones(len(NAMES)))
    torch.nn.init.zeros_(model.head.weight)
    torch.nn.init.zeros_(model.head.bias)
    row = corpus.rows[0]
    length = np.sqrt((found.idf[row] ** 2).sum())
    (logits,) = model(torch.from_numpy(row.astype(np.int64))[None]).detach().numpy()
    np.testing.assert_allclose(logits, found.evidence[row].sum(0) / length + found.bias, rtol=1e-4, atol=1e-5)


def test_forms_that_few_texts_have_speak_as_their_relatives_do() -> None:
    warm, cold, warmly, other = (NAMES.index(word) for word in ("warm", "cold", "warmly", "42"))
    rows = [np.array([word], np.int32) for word in [warm, cold] * 6]
    found = fit_spelt(Corpus(rows, [0, 1] * 6), NAMES, 2)
    assert found.evidence[warmly, 0] > found.evidence[warmly, 1]
    assert not fit_linear(Corpus(rows, [0, 1] * 6), len(NAMES), 2).evidence[warmly].any()
    assert not found.evidence[other].any()


def test_of_very_many_texts_words_alone_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = texts(2)
    monkeypatch.setattr(spelt, "ENTRIES", 10)
    found, words = fit_spelt(corpus, NAMES, 2), fit_linear(corpus, len(NAMES), 2)
    assert np.array_equal(found.evidence, words.evidence)
    assert np.array_equal(linear_probabilities(found, corpus), linear_probabilities(words, corpus))
