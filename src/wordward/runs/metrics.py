"""Measure predictions, each number with its 95 % interval."""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from wordward.support.errors import DataError

Labels = Sequence[Hashable] | np.ndarray

_Z = 1.959963984540054  # the 97.5 % point of the normal distribution


class Interval(NamedTuple):
    """A measured value between the ends of its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def tells_nothing(self) -> bool:
        """Whether every resample gave the same number (as when all is right): the interval is uninformative."""
        return self.low == self.high


def intervals_to_json(intervals: Mapping[Any, Interval]) -> dict[str, dict[str, float]]:
    """Each value with the ends of its interval, by name, for `json.dumps`."""
    return {str(name): interval._asdict() for name, interval in intervals.items()}


class PrecisionRecallF(NamedTuple):
    """Precision, recall and F-beta of one positive class."""

    precision: Interval
    recall: Interval
    f: Interval


class ClassScores(NamedTuple):
    """Scores of one class: how many belong to it (support), how many are predicted to, how far these agree."""

    support: int
    predicted: int
    precision: float
    recall: float
    f1: float


def error_rate(gold: Labels, predicted: Labels) -> Interval:
    """Share of wrong predictions, with the Wilson interval."""
    _check_lengths(gold, predicted, "texts")
    return share(sum(1 for expected, actual in zip(gold, predicted, strict=True) if expected != actual), len(gold))


def share(part: int, n: int) -> Interval:
    """part / n, with the Wilson interval."""
    if not 0 <= part <= n or not n:
        raise DataError(f"expected a part of a total of 1 or more; got {part} of {n}")
    value = part / n
    middle = (value + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * math.sqrt(value * (1 - value) / n + _Z**2 / (4 * n**2))
    # At 0 and 1 the interval ends there exactly; rounding must not move the end past the value.
    return Interval(value, min(max(0.0, middle - half), value), max(min(1.0, middle + half), value))


def mean(values: Sequence[float] | np.ndarray, *, resamples: int = 1000, seed: int = 0) -> Interval:
    """The mean of one value a text, with a bootstrap interval over texts."""
    array = np.asarray(values, dtype=float)
    if not len(array):
        raise DataError("expected values of 1 or more texts to take the mean of; got none")
    rng = np.random.default_rng(seed)
    drawn = [rng.choice(array, len(array)).mean() for _ in range(resamples)]
    return _interval(np.array([array.mean(), *drawn]))


def macro_f1(
    gold: Labels, predicted: Labels, classes: Sequence[Hashable], *, resamples: int = 1000, seed: int = 0
) -> Interval:
    """Mean F1 of the classes that occur among gold or predicted, with a bootstrap interval over texts."""
    _check_lengths(gold, predicted, "texts")
    numbers = {name: number for number, name in enumerate(classes)}
    if unknown := {label for label in (*gold, *predicted) if label not in numbers}:
        raise DataError(f"expected labels among {list(classes)}; got {sorted(map(str, unknown))[:5]}")
    pairs = np.array([[numbers[expected], numbers[actual]] for expected, actual in zip(gold, predicted, strict=True)])
    kinds, sizes = np.unique(pairs, axis=0, return_counts=True)  # (kinds, 2), (kinds,)
    one_hot = np.eye(len(classes), dtype=np.int64)
    is_gold, is_predicted = one_hot[kinds[:, 0]], one_hot[kinds[:, 1]]  # (kinds, classes)
    draws = _draw(sizes, resamples, seed)  # (1 + resamples, kinds)
    hits = draws @ (is_gold * is_predicted)  # (1 + resamples, classes)
    counted = draws @ (is_gold + is_predicted)
    return _interval(_ratio(2 * hits, counted).sum(axis=1) / (counted > 0).sum(axis=1))


def mean_f1(
    hits: np.ndarray, gold: np.ndarray, predicted: np.ndarray, *, resamples: int = 1000, seed: int = 0
) -> Interval:
    """Mean F1 of the labels that occur among gold or predicted, (texts, labels) bool each; bootstrap over texts."""
    kinds, sizes = np.unique(np.hstack([hits, gold, predicted]).astype(np.int64), axis=0, return_counts=True)
    right, true, found = np.split(_draw(sizes, resamples, seed) @ kinds, 3, axis=1)  # (1 + resamples, labels) each
    counted = true + found
    return _interval(_ratio(_ratio(2 * right, counted).sum(axis=1), (counted > 0).sum(axis=1)))


def mean_of_runs(values: np.ndarray, *, resamples: int = 2000, seed: int = 0) -> Interval:
    """The mean of values (runs, texts), e.g. 1 where a run errs; the bootstrap draws runs, and apart from them texts.

    The difference of two models, each trained with the same seeds and read on the same texts, gets a paired interval.
    """
    runs, texts = values.shape
    rng = np.random.default_rng(seed)
    of_runs = rng.multinomial(runs, np.full(runs, 1 / runs), size=resamples) / runs
    of_texts = rng.multinomial(texts, np.full(texts, 1 / texts), size=resamples) / texts
    drawn = (of_runs @ values * of_texts).sum(axis=1)
    return _interval(np.concatenate([[values.mean()], drawn]))


def by_class(confusion: np.ndarray) -> list[ClassScores]:
    """The scores of each class, from counts (true, predicted); a ratio with denominator 0 is 0."""
    hits, gold, predicted = np.diag(confusion), confusion.sum(1), confusion.sum(0)
    ratios = _ratio(hits, predicted), _ratio(hits, gold), _ratio(2 * hits, gold + predicted)
    rows = zip(gold, predicted, *ratios, strict=True)
    return [ClassScores(int(g), int(s), float(p), float(r), float(f)) for g, s, p, r, f in rows]


def scores_of_counts(hits: int, gold: int, predicted: int) -> ClassScores:
    """The scores of one class from its counts; a ratio with denominator 0 is 0."""
    precision, recall, f1 = (
        part / whole if whole else 0.0
        for part, whole in ((hits, predicted), (hits, gold), (2 * hits, gold + predicted))
    )
    return ClassScores(gold, predicted, precision, recall, f1)


def precision_recall_f(
    gold_sentences: Sequence[Labels],
    predicted_sentences: Sequence[Labels],
    positive: Hashable,
    beta: float = 0.5,
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> PrecisionRecallF:
    """Precision, recall and F-beta over all tokens, with bootstrap intervals over sentences.

    F = (1 + beta^2) P R / (beta^2 P + R) = (1 + beta^2) hits / (beta^2 gold + predicted)
    """
    _check_lengths(gold_sentences, predicted_sentences, "sentences")
    rows = [
        _count(gold, predicted, positive, number)
        for number, (gold, predicted) in enumerate(zip(gold_sentences, predicted_sentences, strict=True))
    ]
    return f_of_counts(rows, beta, resamples=resamples, seed=seed)


def f_of_counts(
    rows: Sequence[tuple[int, int, int]], beta: float, *, resamples: int = 1000, seed: int = 0
) -> PrecisionRecallF:
    """Precision, recall and F-beta from what each sentence holds of hits, gold and predicted."""
    kinds, sizes = np.unique(np.array(rows), axis=0, return_counts=True)  # (kinds, 3), (kinds,)
    hits, gold, predicted = (_draw(sizes, resamples, seed) @ kinds).T  # each (1 + resamples,)
    square = beta**2
    return PrecisionRecallF(
        _interval(_ratio(hits, predicted)),
        _interval(_ratio(hits, gold)),
        _interval(_ratio((1 + square) * hits, square * gold + predicted)),
    )


def mcnemar(only_first: int, only_second: int) -> float:
    """Two-sided exact p that one of two models errs more, from the texts that only one of them gets wrong."""
    n, k = only_first + only_second, min(only_first, only_second)
    if n == 0:
        return 1.0
    # sum_{i<=k} C(n, i) / 2^n, in logarithms since n may be thousands
    logs = [math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) - n * math.log(2) for i in range(k + 1)]
    return min(1.0, 2 * math.fsum(map(math.exp, logs)))


def perplexity(total_nll: float, tokens: int) -> float:
    """exp of the mean negative log-likelihood of a token, in nats."""
    if tokens < 1:
        raise DataError(f"expected 1 token or more to measure perplexity on; got {tokens}")
    try:
        return math.exp(total_nll / tokens)
    except OverflowError:
        return math.inf


def _count(gold: Labels, predicted: Labels, positive: Hashable, number: int) -> tuple[int, int, int]:
    """Tokens of a sentence that are positive in both, in gold, in the prediction."""
    if len(gold) != len(predicted):
        raise DataError(
            f"expected one predicted tag a token; sentence {number} has {len(gold)} tokens "
            f"and {len(predicted)} predictions"
        )
    hits = sum(1 for expected, actual in zip(gold, predicted, strict=True) if expected == actual == positive)
    return hits, sum(1 for tag in gold if tag == positive), sum(1 for tag in predicted if tag == positive)


def _draw(sizes: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """How often each kind of text occurs in the data (row 0) and in each bootstrap resample of them.

    Texts that count alike are interchangeable, so drawing n texts is one multinomial draw over the kinds.
    """
    total = int(sizes.sum())
    draws = np.random.default_rng(seed).multinomial(total, sizes / total, size=resamples)
    return np.vstack([sizes, draws])


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole, with 0 where whole is 0."""
    return np.divide(part, whole, out=np.zeros(part.shape), where=whole != 0)


def _interval(scores: np.ndarray) -> Interval:
    """The first score is the value, the others are the resamples."""
    low, high = np.percentile(scores[1:], [2.5, 97.5])
    return Interval(float(scores[0]), float(low), float(high))


def _check_lengths(gold: Sequence[Any] | np.ndarray, predicted: Sequence[Any] | np.ndarray, what: str) -> None:
    if len(gold) != len(predicted) or not len(gold):
        raise DataError(
            f"expected one prediction for each of 1 or more {what}; "
            f"got {len(gold)} gold and {len(predicted)} predicted"
        )
