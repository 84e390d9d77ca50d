"""A simple model to measure a run against: a linear one on word counts, or each word's most frequent tag."""

import time
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from wordward.runs.compared import Yardstick
from wordward.runs.metrics import Interval
from wordward.runs.scoring import scores
from wordward.support.console import waiting
from wordward.text.corpus import COUNTED, Corpus
from wordward.text.vocabulary import SPECIALS
from wordward.train.data import Data

C = 10.0  # weight of the texts against that of short coefficients, as scikit-learn has it
MOST = 100_000  # texts to learn from: more take long and change little
ENOUGH = 1e-5  # a slope of the mean loss at which the search ends
NAMES = {False: "linear model on word counts", True: "most frequent tag of each word"}  # by whether it tags
_LAST: dict[Any, tuple[Yardstick, float]] = {}  # the last one measured, which the trials of a sweep have in common
STEPS, WORK = 200, 4e9  # at most so many steps, and so many products of a count and a coefficient


class Linear(NamedTuple):
    """A multinomial logistic regression on tf-idf."""

    evidence: np.ndarray  # (words, classes): what one occurrence adds to a class's score, before the text's length
    idf: np.ndarray  # (words,): 0 for special ids, and for words that the training texts do not have
    bias: np.ndarray  # (classes,)


class Counts(NamedTuple):
    """The words of texts, each once for a text: a matrix (texts, words) of weights, as its entries row by row.

    Examples:
        >>> counts_of(Corpus([np.array([5, 6, 5]), np.array([6])])).weights.tolist()
        [2.0, 1.0, 1.0]
    """

    words: np.ndarray  # (entries,) int32
    weights: np.ndarray  # (entries,) float32: how often the text has the word, or what stands for it
    starts: np.ndarray  # (texts,) int32: where the entries of each text begin

    @property
    def texts(self) -> np.ndarray:
        """Which text each entry belongs to."""
        lengths = np.diff(self.starts, append=len(self.words))
        return np.repeat(np.arange(len(self.starts), dtype=np.int32), lengths)

    def times(self, table: Tensor) -> Tensor:
        """The matrix times a table (words, columns): (texts, columns)."""
        words, starts, weights = map(torch.from_numpy, (self.words, self.starts, self.weights))
        return torch.nn.functional.embedding_bag(words, table, starts, mode="sum", per_sample_weights=weights)

    def turned(self, words: int) -> "Counts":
        """The matrix (words, texts)."""
        order, texts = np.argsort(self.words, kind="stable"), self.texts
        sizes = np.bincount(self.words, minlength=words)
        return Counts(texts[order], self.weights[order], (np.cumsum(sizes) - sizes).astype(np.int32))


def fit_linear(corpus: Corpus, words: int, classes: int) -> Linear:
    """The coefficients with the least C * (sum of cross-entropies) + |w|^2 / 2; draws no random numbers.

    Args:
        corpus: Texts with their classes.
        words: The size of the vocabulary.
        classes: How many classes there are.

    Returns:
        The model; two classes share one row of coefficients, half of it each way, as in scikit-learn.

    Examples:
        >>> import numpy as np
        >>> from wordward.text.corpus import Corpus
        >>> texts = Corpus([np.array([3, 4]), np.array([3, 5])], labels=[0, 1])
        >>> model = fit_linear(texts, words=6, classes=2)
        >>> [int(found.argmax()) for found in linear_probabilities(model, texts)]
        [0, 1]
    """
    corpus = corpus.sample(MOST)
    gold = torch.from_numpy(np.asarray(corpus.labels, dtype=np.int64))
    counts, total = _tempered(counts_of(corpus)), len(corpus.rows)
    documents = np.bincount(counts.words, minlength=words)
    idf = np.where(documents > 0, np.log((1 + total) / (1 + documents)) + 1, 0).astype(np.float32)
    used = np.flatnonzero(documents)
    place = np.zeros(words, dtype=np.int32)
    place[used] = np.arange(len(used), dtype=np.int32)
    matrix = counts._replace(words=place[counts.words], weights=_to_unit(counts, idf) * idf[counts.words])
    with torch.no_grad():
        found = least(matrix, gold, len(used), classes).numpy()  # (used + 1, classes)
    evidence = np.zeros((words, classes), dtype=np.float32)
    evidence[used] = found[:-1] * idf[used, None]
    return Linear(evidence, idf, found[-1].copy())


def linear_probabilities(linear: Linear, corpus: Corpus) -> list[np.ndarray]:
    """p(Y|X) of each text, (classes,).

    Args:
        linear: A model of `fit_linear`.
        corpus: Texts; labels are not needed.

    Returns:
        One array for each text, as `wordward.runs.scoring.scores` takes them.

    Examples:
        >>> import numpy as np
        >>> from wordward.text.corpus import Corpus
        >>> model = Linear(np.eye(4, 2, dtype=np.float32), np.ones(4, np.float32), np.zeros(2, np.float32))
        >>> linear_probabilities(model, Corpus([np.array([3])]))
        [array([0.5, 0.5], dtype=float32)]
    """
    counts = _tempered(counts_of(corpus))
    unit = counts._replace(weights=_to_unit(counts, linear.idf))
    with torch.no_grad():
        found = unit.times(torch.from_numpy(linear.evidence)) + torch.from_numpy(linear.bias)
        return list(found.softmax(-1).numpy())


def frequent_tags(corpus: Corpus, words: int, classes: int) -> np.ndarray:
    """The most frequent tag of each word, (words,); that of all words for special ids and words without a tag.

    Args:
        corpus: Sentences with their tags.
        words: The size of the vocabulary.
        classes: How many tags there are.

    Returns:
        A tag for each id.

    Examples:
        >>> import numpy as np
        >>> from wordward.text.corpus import Corpus
        >>> sentences = Corpus([np.array([3, 4, 4])], labels=[np.array([0, 1, 1])])
        >>> frequent_tags(sentences, words=5, classes=2)
        array([1, 1, 1, 0, 1])
    """
    assert corpus.labels is not None
    counts = np.zeros(words * classes, dtype=np.int64)
    for row, tags in zip(corpus.rows, corpus.labels, strict=True):
        np.add.at(counts, row.astype(np.int64) * classes + tags, 1)
    by_word = counts.reshape(words, classes)
    own = by_word.sum(1) > 0
    own[: len(SPECIALS)] = False
    return np.where(own, by_word.argmax(1), by_word.sum(0).argmax())


def tag_probabilities(tags: np.ndarray, corpus: Corpus, classes: int) -> list[np.ndarray]:
    """The tags of `frequent_tags` for each sentence, (time, classes), as probabilities of 0 and 1.

    Args:
        tags: A tag for each id.
        corpus: Sentences; tags are not needed.
        classes: How many tags there are.

    Returns:
        One array for each sentence, as `wordward.runs.scoring.scores` takes them.

    Examples:
        >>> import numpy as np
        >>> from wordward.text.corpus import Corpus
        >>> tag_probabilities(np.array([1, 1, 1, 0]), Corpus([np.array([3, 1])]), classes=2)[0].argmax(-1)
        array([0, 1])
    """
    certain = np.eye(classes, dtype=np.float32)
    return [certain[tags[row]] for row in corpus.rows]


def measured(data: Data, on: Corpus | None = None) -> dict[str, Interval]:
    """The yardstick's scores on dev or other texts, as the run is scored, with their intervals."""
    words, classes, on = len(data.vocabulary), len(data.classes), data.dev if on is None else on
    if data.tagging:
        found = tag_probabilities(frequent_tags(data.train, words, classes), on, classes)
    else:
        found = linear_probabilities(fit_linear(data.train, words, classes), on)
    return scores(on, found, data.classes, positive=data.positive)


def yardstick_of(data: Data, *, quiet: bool = True) -> dict[str, Any]:
    """The yardstick of a run, as result.json holds it; that of the same texts as last time is not fitted again."""
    key = data.fingerprint, data.tagging, data.positive, data.classes
    if key not in _LAST:
        started = time.monotonic()
        with waiting("measuring a simple model to compare with", quiet=quiet):
            found = Yardstick(NAMES[data.tagging], measured(data))
        _LAST.clear()
        _LAST[key] = found, time.monotonic() - started
    found, seconds = _LAST[key]
    return found.entry(seconds)


def _tempered(counts: Counts) -> Counts:
    """The same with 1 + log of how often a text has a word."""
    return counts._replace(weights=1 + np.log(counts.weights))


def counts_of(corpus: Corpus) -> Counts:
    """The words of each text with how often it has them; special ids are left out."""
    lengths, start, parts = corpus.lengths, 0, []
    while start < len(lengths):
        many = max(1, int(np.searchsorted(np.cumsum(lengths[start : start + COUNTED]), COUNTED, side="right")))
        rows = [corpus.rows[at] for at in range(start, min(start + many, len(lengths)))]
        ids, texts = np.concatenate(rows).astype(np.int64), np.repeat(np.arange(len(rows)), list(map(len, rows)))
        keys = (texts << 32 | ids)[ids >= len(SPECIALS)]
        once, often = np.unique(keys, return_counts=True)
        sizes = np.bincount(once >> 32, minlength=len(rows))
        parts.append(((once & 0xFFFFFFFF).astype(np.int32), often.astype(np.float32), sizes))
        start += len(rows)
    words, weights, sizes = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Counts(words, weights, (np.cumsum(sizes) - sizes).astype(np.int32))


def _to_unit(counts: Counts, idf: np.ndarray) -> np.ndarray:
    """The weights over the length of their text's tf-idf vector."""
    squares = (counts.weights * idf[counts.words]).astype(np.float64) ** 2
    lengths = np.sqrt(np.bincount(counts.texts, weights=squares, minlength=len(counts.starts)))
    return (counts.weights / np.where(lengths > 0, lengths, 1)[counts.texts]).astype(np.float32)


def least(matrix: Counts, gold: Tensor, words: int, classes: int, beside: Tensor | None = None) -> Tensor:
    """The coefficients (words, classes) and below them the biases with the least loss, by L-BFGS.

    With more of each text `beside` the words, (texts, dim), its coefficients (dim, classes) are above the biases.
    """
    more = torch.zeros(len(gold), 0) if beside is None else beside
    columns, total = 1 if classes == 2 else classes, len(gold)
    right = torch.nn.functional.one_hot(gold, classes).float()
    shares = (right.sum(0) + 0.5) / (total + 0.5 * classes)
    found = torch.zeros(words + more.shape[1] + 1, columns, dtype=torch.float32, device="cpu")
    found[-1] = (shares[1] / shares[0]).log() if classes == 2 else shares.log()
    turned, weight = matrix.turned(words), 1 / (C * total)

    def loss() -> Tensor:
        raw = matrix.times(found) + more @ found[words:-1] + found[-1]  # (texts, columns)
        logs = (torch.cat([-raw / 2, raw / 2], 1) if classes == 2 else raw).log_softmax(-1)
        slope = (logs.exp() - right)[:, classes - columns :] / total
        found.grad = torch.cat([turned.times(slope), more.T @ slope, slope.sum(0, keepdim=True)])
        found.grad[:-1] += weight * found[:-1]
        mean = -logs.gather(1, gold[:, None]).mean(dtype=torch.float64)
        return mean + weight / 2 * found[:-1].square().sum(dtype=torch.float64)

    steps = int(max(20, min(STEPS, WORK / (1 + len(matrix.words) * (4 + columns)))))
    search = torch.optim.LBFGS(
        [found], max_iter=steps, history_size=10, tolerance_grad=ENOUGH, line_search_fn="strong_wolfe"
    )
    search.step(loss)  # type: ignore[arg-type]
    return torch.cat([-found / 2, found / 2], 1) if classes == 2 else found
