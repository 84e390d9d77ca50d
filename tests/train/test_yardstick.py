"""The model that every run is measured against: scikit-learn's logistic regression, and the most frequent tag."""

import time
from typing import Any

import numpy as np
import pytest
import torch

from wordward.text.corpus import Corpus
from wordward.text.ragged import Rows
from wordward.text.vocabulary import EOS, PAD, UNK, Vocabulary
from wordward.train.data import Data
from wordward.train.yardstick import (
    fit_linear,
    frequent_tags,
    linear_probabilities,
    tag_probabilities,
    yardstick_scores,
)

WORDS = 400


def texts(count: int, classes: int, *, seed: int) -> Corpus:
    """Texts whose words depend on their class; some are empty, words repeat, and the first class is the largest."""
    rng = np.random.default_rng([seed, 1])
    labels = rng.choice(classes, count, p=np.geomspace(8, 1, classes) / np.geomspace(8, 1, classes).sum())
    often = 1 / np.arange(1, WORDS - 2)
    tilt = np.random.default_rng(0).normal(0, 0.7, (classes, WORDS - 3))
    rows = []
    for label in labels:
        shares = often * np.exp(tilt[label])
        own = rng.choice(WORDS - 3, rng.integers(0, 50), p=shares / shares.sum()) + 3
        rows.append(np.array([*own, *own[:2], *[UNK] * rng.integers(0, 3), EOS], dtype=np.int32))
    rows[0] = np.array([EOS], dtype=np.int32)
    return Corpus(rows, labels)


def random_state() -> str:
    return str(np.random.get_state(legacy=False))


def words_of(corpus: Corpus) -> list[list[str]]:
    return [[f"w{number:04d}" for number in row if number > EOS] for row in corpus.rows]


@pytest.mark.parametrize("classes", [2, 6])
def test_it_is_scikit_learns_logistic_regression_on_tf_idf(classes: int) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    vectorizer = pytest.importorskip("sklearn.feature_extraction.text").TfidfVectorizer(
        sublinear_tf=True, analyzer=lambda words: words
    )
    train, test = texts(600, classes, seed=0), texts(1000, classes, seed=1)
    theirs = linear_model.LogisticRegression(C=10, tol=1e-8, max_iter=5000)
    theirs.fit(vectorizer.fit_transform(words_of(train)), train.labels)
    expected = theirs.predict_proba(vectorizer.transform(words_of(test)))

    ours = fit_linear(train, WORDS, classes)
    found = np.stack(linear_probabilities(ours, test))
    assert (found.argmax(1) == expected.argmax(1)).mean() >= 0.99
    assert np.abs(found - expected).max() < 0.01
    used = np.array([int(word[1:]) for word in vectorizer.get_feature_names_out()])
    np.testing.assert_allclose(ours.idf[used], vectorizer.idf_, rtol=1e-5)
    coefficients = (ours.evidence[used] / ours.idf[used, None]).T
    if classes == 2:
        np.testing.assert_allclose(coefficients[0], -coefficients[1])
        coefficients = coefficients[1:] - coefficients[:1]
    assert np.linalg.norm(coefficients - theirs.coef_) < 0.01 * np.linalg.norm(theirs.coef_)


def test_special_ids_and_words_of_no_training_text_count_for_nothing() -> None:
    train = Corpus([np.array([3, 4, UNK, EOS]), np.array([3, 5, EOS]), np.array([EOS])], [0, 1, 1])
    linear = fit_linear(train, words=8, classes=2)
    assert linear.evidence.dtype == linear.idf.dtype == linear.bias.dtype == np.float32
    assert linear.evidence.shape == (8, 2)
    assert linear.idf.shape == (8,)
    assert linear.bias.shape == (2,)
    nothing = [PAD, UNK, EOS, 6, 7]
    assert not linear.idf[nothing].any()
    assert not linear.evidence[nothing].any()
    assert linear.idf[[3, 4, 5]].all()
    plain, more = linear_probabilities(linear, Corpus([np.array([4]), np.array([UNK, 4, 6, 7, EOS])]))
    np.testing.assert_array_equal(plain, more)
    assert plain.argmax() == 0
    assert plain[0] > 0.5


def test_one_occurrence_adds_its_evidence_before_the_text_is_normalised() -> None:
    linear = fit_linear(texts(200, 3, seed=0), WORDS, 3)
    (found,) = linear_probabilities(linear, Corpus([np.array([10, 20, 20])]))
    weights = np.array([1, 1 + np.log(2)])
    length = np.linalg.norm(weights * linear.idf[[10, 20]])
    scores = weights @ linear.evidence[[10, 20]] / length + linear.bias
    np.testing.assert_allclose(found, np.exp(scores) / np.exp(scores).sum(), rtol=1e-5)


def test_a_class_without_texts_is_never_predicted_and_every_number_is_finite() -> None:
    train = texts(200, 3, seed=0)
    linear = fit_linear(train, WORDS, classes=4)
    assert all(np.isfinite(each).all() for each in linear)
    found = np.stack(linear_probabilities(linear, train))
    assert found.shape == (200, 4)
    assert 3 not in found.argmax(1)


def test_texts_without_known_words_are_predicted_by_the_shares_of_the_classes() -> None:
    train = Corpus([np.array([EOS])] * 4, [1, 1, 1, 0])
    (found,) = linear_probabilities(fit_linear(train, words=3, classes=2), Corpus([np.array([UNK, EOS])]))
    np.testing.assert_allclose(found, [0.25, 0.75], atol=0.01)


def test_rows_of_any_kind_give_the_same_model_twice_and_leave_torch_as_it_was() -> None:
    train = texts(300, 2, seed=0)
    before, drawn, threads = torch.random.get_rng_state(), random_state(), torch.get_num_threads()
    first = fit_linear(train, WORDS, 2)
    again = fit_linear(Corpus(Rows.of(train.rows), train.labels), WORDS, 2)
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert random_state() == drawn
    assert torch.get_num_threads() == threads
    assert torch.is_grad_enabled()


def test_texts_are_counted_alike_in_one_part_and_in_many(monkeypatch: pytest.MonkeyPatch) -> None:
    train = texts(50, 2, seed=0)
    whole = fit_linear(train, WORDS, 2)
    monkeypatch.setattr("wordward.train.yardstick.COUNTED", 60)
    parts = fit_linear(train, WORDS, 2)
    np.testing.assert_array_equal(whole.evidence, parts.evidence)


def test_it_takes_seconds() -> None:
    ids = np.random.default_rng(0).geometric(1 / 3000, (5000, 120)).clip(max=20_000 - 4) + 3
    train = Corpus(list(ids), (ids == 3).any(1).astype(int))
    started = time.process_time()
    fit_linear(train, 20_000, 2)
    assert time.process_time() - started < 6  # about 1.5 on one core


def test_each_word_has_its_most_frequent_tag_and_unknown_words_that_of_all() -> None:
    sentences = [np.array([3, 4, UNK]), np.array([3, 4, 4]), np.array([3, 5])]
    tags = [np.array([0, 1, 2]), np.array([0, 2, 1]), np.array([2, 0])]
    found = frequent_tags(Corpus(sentences, tags), words=7, classes=3)
    assert found.tolist() == [0, 0, 0, 0, 1, 0, 0]
    short, empty = tag_probabilities(found, Corpus([np.array([4, UNK]), np.zeros(0, np.int32)]), 3)
    np.testing.assert_array_equal(short, [[0, 1, 0], [1, 0, 0]])
    assert empty.shape == (0, 3)


@pytest.mark.parametrize("tagging", [False, True])
def test_scores_are_those_of_the_run(tagging: bool) -> None:
    words = Vocabulary.build([["warm", "dull", "film"]], min_documents=1)
    warm, dull, film = (words[word] for word in ("warm", "dull", "film"))
    rows = [np.array([warm, film]), np.array([dull, film])] * 3
    labels: Any = [np.array([0, 1]), np.array([1, 1])] * 3 if tagging else [0, 1] * 3
    wrong = [*labels[:5], labels[0]]
    positive = 1 if tagging else None
    data = Data(words, ("a", "b"), Corpus(rows, labels), Corpus(rows, wrong), None, tagging, positive)
    found = yardstick_scores(data)
    assert found["error"] == pytest.approx(1 / 12 if tagging else 1 / 6)
    assert set(found) == {"error", "macro_f1", *(("precision", "recall", "f0.5") if tagging else ())}
