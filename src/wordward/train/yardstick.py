"""A simple model to measure a run against: a linear one on word counts, or each word's most frequent tag."""

import time
from typing import Any

import numpy as np
import torch

from wordward.runs.metrics import Interval
from wordward.runs.scoring import scores
from wordward.runs.yardstick_scores import Yardstick
from wordward.support.console import waiting
from wordward.text.corpus import Corpus
from wordward.text.vocabulary import SPECIALS
from wordward.train.data import Data
from wordward.train.linear import MOST, Counts, Linear, counts_of, least, tempered

NAMES = {False: "linear model on word counts", True: "most frequent tag of each word"}  # by whether it tags
_LAST: dict[Any, tuple[Yardstick, float]] = {}  # the last one measured, which the trials of a sweep have in common


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
    counts, total = tempered(counts_of(corpus)), len(corpus.rows)
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
    counts = tempered(counts_of(corpus))
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


def _to_unit(counts: Counts, idf: np.ndarray) -> np.ndarray:
    """The weights over the length of their text's tf-idf vector."""
    squares = (counts.weights * idf[counts.words]).astype(np.float64) ** 2
    lengths = np.sqrt(np.bincount(counts.texts, weights=squares, minlength=len(counts.starts)))
    return (counts.weights / np.where(lengths > 0, lengths, 1)[counts.texts]).astype(np.float32)
