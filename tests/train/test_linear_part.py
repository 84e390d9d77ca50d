"""What words, their vectors or letters, and pairs speak for: a linear model on all of them, derived anew."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

from wordward.config import ModelSettings
from wordward.models import Convolution
from wordward.models.convolution import ROWS, rows_of
from wordward.text.corpus import Corpus
from wordward.text.vocabulary import SPECIALS
from wordward.train import linear_part
from wordward.train.linear import C, Counts, counts_of
from wordward.train.linear_part import SCALES, SHARED, Spoken, fit_spoken

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


def parts(word: str, *, letters: bool) -> Counter[str]:
    whole = f" {word} "
    stretches = [whole[at : at + n] for n in (2, 3, 4) for at in range(len(whole) - n + 1)]
    return Counter([f"={word}", *(stretches if letters and len(word) > 1 and word[0].isalpha() else [])])


def heard(names: Iterable[str]) -> dict[str, float]:
    """Each word of a text, or pair, with what all its occurrences count for together."""
    return {name: 1 + math.log(often) for name, often in Counter(names).items()}


def parts_of(row: np.ndarray, *, letters: bool, pairs: bool) -> dict[str, float]:
    names = [NAMES[at] for at in row]
    found = heard(f"{one}+{other}" for one, other in pairwise(names) if pairs)
    for name, count in heard(names).items():
        for part, often in parts(name, letters=letters).items():
            found[part] = found.get(part, 0.0) + count * often
    return found


def idf_of(corpus: Corpus, known: np.ndarray, **what: bool) -> dict[str, float]:
    pairs = {f"{NAMES[pair // len(NAMES)]}+{NAMES[pair % len(NAMES)]}" for pair in known.tolist()}
    total = len(corpus.rows)
    documents = Counter(part for row in corpus.rows for part in parts_of(row, **what))
    return {
        part: (math.log((1 + total) / (1 + n)) + 1) * (1.0 if part[0] == "=" or "+" in part else 0.5)
        for part, n in documents.items()
        if part in pairs or part[0] == "=" or (n > 1 and "+" not in part)
    }


def length_of(row: np.ndarray, idf: dict[str, float], *, letters: bool, pairs: bool) -> float:
    """The text's own, if its words and pairs are at right angles."""
    words = [(count, parts(name, letters=letters)) for name, count in heard(NAMES[at] for at in row).items()]
    squares = [
        sum(count**2 * often * idf.get(part, 0.0) ** 2 for part, often in word.items()) for count, word in words
    ]
    more = parts_of(row, letters=False, pairs=pairs)
    return math.sqrt(
        sum(squares) + sum((count * idf.get(pair, 0)) ** 2 for pair, count in more.items() if "+" in pair)
    )


def in_a_model(found: Spoken, classes: int, names: Sequence[str] = NAMES) -> Convolution:
    """A convolution that says nothing but what is spoken."""
    settings = ModelSettings(kind="convolution", dim=4, hidden=4, pairs=True)
    model = Convolution(len(names), classes, settings).eval()
    evidence, idf, bias = map(torch.from_numpy, found.words)
    model.set_evidence(evidence, idf, bias, torch.ones(len(names)))
    assert model.pairs is not None
    model.pairs.set_evidence(torch.from_numpy(found.pairs), *map(torch.from_numpy, (found.evidence, found.idf)))
    torch.nn.init.zeros_(model.head.weight)
    torch.nn.init.zeros_(model.head.bias)
    return model


def of_scikit_learn(classes: int, matrix: np.ndarray, labels: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The scores of rows (texts, classes): a logistic regression of two classes, a support vector machine of more."""
    if classes == 2:
        model = pytest.importorskip("sklearn.linear_model").LogisticRegression(C=C, tol=1e-8, max_iter=5000)
        return model.fit(matrix, labels).predict_log_proba
    svm = pytest.importorskip("sklearn.svm").LinearSVC(dual=False, intercept_scaling=1000, tol=1e-8, max_iter=50_000)
    svm.fit(matrix, labels)
    return lambda rows: SCALES[-1] * svm.decision_function(rows)


def softmax(scores: np.ndarray) -> np.ndarray:
    return np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()


def probabilities(model: Convolution, row: np.ndarray) -> np.ndarray:
    return model(torch.from_numpy(row.astype(np.int64))[None])[0].softmax(0).detach().numpy()


@pytest.mark.parametrize(
    "what", [{"letters": True, "pairs": True}, {"letters": False, "pairs": True}, {"letters": True, "pairs": False}]
)
@pytest.mark.parametrize("classes", [2, 3])
def test_a_convolution_says_what_scikit_learn_makes_of_words_letters_and_pairs(
    classes: int, what: dict[str, Any]
) -> None:
    corpus = texts(classes)
    found = fit_spoken(corpus, NAMES, classes, **what)
    idf = idf_of(corpus, found.pairs, **what)
    columns = {part: at for at, part in enumerate(idf)}
    matrix = np.zeros((len(corpus.rows), len(columns)))
    for values, row in zip(matrix, corpus.rows, strict=True):
        length = length_of(row, idf, **what)
        for part, often in parts_of(row, **what).items():
            if part in columns:
                values[columns[part]] += often * idf[part] / length
    scores = of_scikit_learn(classes, matrix, np.asarray(corpus.labels))
    model = in_a_model(found, classes)
    for at, row in enumerate(corpus.rows):
        np.testing.assert_allclose(probabilities(model, row), softmax(scores(matrix[at : at + 1])[0]), atol=2e-3)
    assert found.words.idf[: len(SPECIALS)].tolist() == [0.0] * len(SPECIALS)
    assert bool(len(found.pairs)) == what["pairs"]


@pytest.mark.parametrize("classes", [2, 3])
def test_a_convolution_says_what_scikit_learn_makes_of_words_and_their_vectors(classes: int) -> None:
    corpus, vectors = texts(classes), torch.randn(len(NAMES), 4, generator=torch.Generator().manual_seed(0))
    unseen = np.array([NAMES.index("bland"), NAMES.index("cold")], np.int32)
    rows = [*corpus.rows, unseen]
    documents = np.bincount(np.concatenate([np.unique(row) for row in corpus.rows]), minlength=len(NAMES))
    idf = np.log((1 + len(corpus.rows)) / (1 + documents)) + 1
    matrix = np.zeros((len(rows), len(NAMES) + 4))
    for values, row in zip(matrix, rows, strict=True):
        words, often = np.unique(row, return_counts=True)
        counted = (1 + np.log(often)) * idf[words]
        values[words] = counted
        values[len(NAMES) :] = SHARED / 2 * counted @ vectors[words].numpy()
        values /= np.linalg.norm(counted)
    scores = of_scikit_learn(classes, matrix[:-1], np.asarray(corpus.labels))
    model = in_a_model(fit_spoken(corpus, NAMES, classes, letters=False, pairs=False, vectors=vectors), classes)
    assert not documents[unseen[0]]
    for at, row in enumerate(rows):
        np.testing.assert_allclose(probabilities(model, row), softmax(scores(matrix[at : at + 1])[0]), atol=2e-3)


def test_words_that_no_text_has_speak_as_those_near_them_do() -> None:
    warm, cold, near, far = (NAMES.index(word) for word in ("warm", "cold", "warmly", "coldly"))
    vectors = torch.zeros(len(NAMES), 2)
    vectors[[warm, near]], vectors[[cold, far]] = torch.tensor([1.0, 0.2]), torch.tensor([-1.0, 0.2])
    corpus = Corpus([np.array([word], np.int32) for word in [warm, cold] * 6], [0, 1] * 6)
    found = fit_spoken(corpus, NAMES, 2, letters=False, pairs=False, vectors=vectors).words
    assert found.evidence[near, 0] > found.evidence[near, 1]
    assert found.evidence[far, 0] < found.evidence[far, 1]
    assert not found.evidence[NAMES.index("film")].any()  # which has no vector
    assert found.evidence[warm, 0] > found.evidence[near, 0]  # by itself, too
    assert not found.evidence[: len(SPECIALS)].any()


def test_a_pair_tells_what_its_words_do_not() -> None:
    one, other = NAMES.index("a"), NAMES.index("film")
    rows = [np.array(pair, np.int32) for pair in ((one, other), (other, one))] * 8
    model = in_a_model(fit_spoken(Corpus(rows, [0, 1] * 8), NAMES, 2, letters=False, pairs=True), 2)
    assert [int(probabilities(model, row).argmax()) for row in rows[:2]] == [0, 1]
    filled = torch.tensor([[one, other, 0, 0], [other, one, one, other]])
    alone, _ = model(filled)
    torch.testing.assert_close(alone, model(filled[:1, :2])[0])  # padding makes no pairs


def test_a_row_of_the_table_is_that_of_the_pair_that_most_texts_have() -> None:
    size = len(NAMES)
    ids = range(len(SPECIALS), size)
    places: dict[int, list[tuple[int, int]]] = {}
    for pair in ((one, other) for one in ids for other in ids):
        places.setdefault(int(rows_of(torch.tensor(pair[0]), torch.tensor(pair[1]), size)), []).append(pair)
    rare, often = next(pairs for pairs in places.values() if len(pairs) > 1)[:2]
    rows = [np.array(pair, np.int32) for pair in (rare, rare, often, often, often)]
    found = fit_spoken(Corpus(rows, [0, 1, 0, 1, 0]), NAMES, 2, letters=False, pairs=True)
    assert found.pairs.tolist() == [often[0] * size + often[1]]
    assert len(in_a_model(found, 2).pairs.known) == ROWS * size  # type: ignore[union-attr]


def test_forms_that_few_texts_have_speak_as_their_relatives_do() -> None:
    warm, cold, warmly, other = (NAMES.index(word) for word in ("warm", "cold", "warmly", "42"))
    rows = [np.array([word], np.int32) for word in [warm, cold] * 6]
    corpus = Corpus(rows, [0, 1] * 6)
    found = fit_spoken(corpus, NAMES, 2, letters=True, pairs=True).words.evidence
    assert found[warmly, 0] > found[warmly, 1]
    assert not fit_spoken(corpus, NAMES, 2, letters=False, pairs=True).words.evidence[warmly].any()
    assert not found[other].any()


def test_of_very_many_texts_no_letters_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = texts(2)
    monkeypatch.setattr(linear_part, "ENTRIES", 10)
    found = fit_spoken(corpus, NAMES, 2, letters=True, pairs=True)
    other = fit_spoken(corpus, NAMES, 2, letters=False, pairs=True)
    assert np.array_equal(found.words.evidence, other.words.evidence)
    assert np.array_equal(found.evidence, other.evidence)


def test_a_form_speaks_for_what_the_letters_speak_for_that_words_begin_with() -> None:
    """As the word of these letters would, but for its end, which none of the texts has."""
    ends = "warmqx", "coldqx", "filmqx"
    forms = [f"<unk> from {word[:4]}" for word in ends]
    one, other = (fit_spoken(texts(2), (*NAMES, *more), 2, letters=True, pairs=True).words for more in (forms, ends))
    known = len(NAMES)
    np.testing.assert_allclose(one.evidence[:known], other.evidence[:known], atol=1e-4)  # the fit is of known words
    np.testing.assert_allclose(one.evidence[known:], other.evidence[known:], atol=1e-4)
    np.testing.assert_allclose(one.idf, other.idf, atol=1e-4)
    assert one.evidence[known, 0] > one.evidence[known, 1]
    assert one.idf[known:].min() > 0


def noisy(many: int, seed: int) -> Corpus:
    """Texts of four words of a hundred, each label with some that are twice as frequent: most texts may be either."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, many)
    shares = np.ones((3, 100))
    for label in range(3):
        shares[label, 30 * label : 30 * label + 30] = 2
    shares /= shares.sum(1, keepdims=True)
    rows = [3 + rng.choice(100, 4, p=shares[label]) for label in labels]
    return Corpus([row.astype(np.int32) for row in rows], labels)


def test_of_labels_that_texts_hardly_tell_margins_are_made_no_certainties() -> None:
    names = [*SPECIALS, *(f"word{at}" for at in range(100))]
    found = fit_spoken(noisy(300, 0), names, 3, letters=False, pairs=False)
    others = noisy(1_000, 1)
    model = in_a_model(found, 3, names)
    said = np.stack([probabilities(model, row) for row in others.rows])
    loss = -np.log(said[np.arange(1_000), np.asarray(others.labels)]).mean()
    assert loss < np.log(3)  # what the shares of the labels alone give
    assert (said.argmax(1) == np.asarray(others.labels)).mean() > 0.4


def test_some_rows_of_counts() -> None:
    corpus = texts(3)
    counts, some = counts_of(corpus), np.array([0, 4, 5, 59])
    assert_same(counts.rows(some), counts_of(Corpus([corpus.rows[at] for at in some])))
    assert_same(counts.rows(np.arange(60)), counts)


def assert_same(one: Counts, other: Counts) -> None:
    for found, expected in zip(one, other, strict=True):
        np.testing.assert_array_equal(found, expected)
