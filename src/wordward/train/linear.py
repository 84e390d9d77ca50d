"""Linear models on counts of words, fitted without scikit-learn."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from wordward.text.corpus import COUNTED, Corpus
from wordward.text.vocabulary import SPECIALS

C = 10.0  # weight of the texts against that of short coefficients, as scikit-learn has it
MOST = 100_000  # texts to learn from: more take long and change little
ENOUGH = 1e-5  # a slope of the mean loss at which the search ends
STEPS, WORK = 200, 4e9  # at most so many steps, and so many products of a count and a coefficient

Loss = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # of scores and one-hot classes: the mean, and its slope


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

    def rows(self, texts: np.ndarray) -> "Counts":
        """Those of some texts, given by their numbers in order."""
        sizes = np.diff(self.starts, append=len(self.words))[texts]
        chosen = np.zeros(len(self.starts), bool)
        chosen[texts] = True
        entries = chosen[self.texts]
        return Counts(self.words[entries], self.weights[entries], (np.cumsum(sizes) - sizes).astype(np.int32))

    def turned(self, words: int) -> "Counts":
        """The matrix (words, texts)."""
        order, texts = np.argsort(self.words, kind="stable"), self.texts
        sizes = np.bincount(self.words, minlength=words)
        return Counts(texts[order], self.weights[order], (np.cumsum(sizes) - sizes).astype(np.int32))


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


def tempered(counts: Counts) -> Counts:
    """The same with 1 + log of how often a text has a word."""
    return counts._replace(weights=1 + np.log(counts.weights))


def cross_entropy(scores: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """That of a logistic regression, (texts, classes), or (texts, 1) of two classes."""
    logs = (torch.cat([-scores / 2, scores / 2], 1) if scores.shape[1] == 1 else scores).log_softmax(-1)
    slope = (logs.exp() - right)[:, -scores.shape[1] :] / len(scores)
    return -(logs * right).sum(dtype=torch.float64) / len(scores), slope


def squared_hinge(scores: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """That of a support vector machine for each class against all others."""
    side = 2 * right - 1
    short = (1 - side * scores).clamp(min=0)  # of a margin of 1
    return short.square().sum(dtype=torch.float64) / len(scores), -2 * side * short / len(scores)


def least(
    matrix: Counts,
    gold: Tensor,
    words: int,
    classes: int,
    beside: Tensor | None = None,
    *,
    loss: Loss = cross_entropy,
    c: float = C,
    start: Tensor | None = None,
) -> Tensor:
    """The coefficients (words, classes) and below them the biases with the least c * (sum of losses) + |w|^2 / 2.

    By L-BFGS, of more than two classes from a `start` if there is one. With more of each text `beside` the words,
    (texts, dim), its coefficients (dim, classes) are above the biases. Two classes share one column of scores, half
    of it each way.
    """
    more = torch.zeros(len(gold), 0) if beside is None else beside
    columns, total = 1 if classes == 2 else classes, len(gold)
    right = torch.nn.functional.one_hot(gold, classes).float()
    shares = (right.sum(0) + 0.5) / (total + 0.5 * classes)
    found = torch.zeros(words + more.shape[1] + 1, columns, dtype=torch.float32, device="cpu")
    found[-1] = (shares[1] / shares[0]).log() if classes == 2 else shares.log()
    if start is not None:
        found.copy_(start)
    turned, weight = matrix.turned(words), 1 / (c * total)

    def whole() -> Tensor:
        scores = matrix.times(found) + more @ found[words:-1] + found[-1]  # (texts, columns)
        value, slope = loss(scores, right)
        found.grad = torch.cat([turned.times(slope), more.T @ slope, slope.sum(0, keepdim=True)])
        found.grad[:-1] += weight * found[:-1]
        return value + weight / 2 * found[:-1].square().sum(dtype=torch.float64)

    steps = int(max(20, min(STEPS, WORK / (1 + len(matrix.words) * (4 + columns)))))
    search = torch.optim.LBFGS(
        [found], max_iter=steps, history_size=10, tolerance_grad=ENOUGH, line_search_fn="strong_wolfe"
    )
    search.step(whole)  # type: ignore[arg-type]
    return torch.cat([-found / 2, found / 2], 1) if classes == 2 else found
