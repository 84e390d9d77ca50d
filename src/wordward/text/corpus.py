"""Encoded texts, and endless streams of batches of them that can be resumed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from wordward.config.texts import TextSettings
from wordward.datasets import DataError, Example, sample
from wordward.perturbation.objective import IGNORE
from wordward.support.distributed import ALONE, Part, Shares, Team
from wordward.text.batches import length_batches, pad
from wordward.text.labels import label_numbers
from wordward.text.ragged import Joined, Rows, lengths_of
from wordward.text.tokens import words_of
from wordward.text.vocabulary import PAD, SPECIALS, Vocabulary

COUNTED = 1 << 22  # tokens counted at a time, since a corpus may not fit in memory
AT_ONCE = 1 << 15  # tokens, padding included, that a GPU scores at once


class Batch(NamedTuple):
    """Several texts as one padded batch."""

    ids: Tensor  # (batch, time)
    mask: Tensor  # (batch, time), True at tokens
    labels: Tensor | None  # (batch,) classes or (batch, time) tags
    part: Part | None = None  # of a batch shared by several processes
    shares: Shares = Shares()  # of the whole batch

    def take(self, part: Part | None) -> "Batch":
        """The rows assigned to this process."""
        if part is None:
            return self
        labels = None if self.labels is None else self.labels[part.rows]
        return Batch(self.ids[part.rows], self.mask[part.rows], labels, part, part.shares)

    def parts(self, most: int) -> Iterator["Batch"]:
        """Even parts of at most `most` ids, or of one text, each cut to its longest text (waits for the device)."""
        lengths = self.mask.sum(1).cpu()
        count = min(len(lengths), -(-self.ids.numel() // most))
        edges = [len(lengths) * at // count for at in range(count + 1)]
        for start, end in pairwise(edges):
            rows, time = slice(start, end), slice(int(lengths[start:end].max()))
            labels = None if self.labels is None else self.labels[rows]
            if labels is not None and labels.dim() == 2:
                labels = labels[:, time]
            texts = self.shares.texts * (end - start) / len(lengths)
            tokens = self.shares.tokens * float(lengths[rows].sum() / lengths.sum())
            yield Batch(self.ids[rows, time], self.mask[rows, time], labels, shares=Shares(texts, tokens))


def to_device(values: Tensor, device: torch.device) -> Tensor:
    """The values on a device; a GPU fetches them from pinned memory while the program continues."""
    return values.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else values.to(device)


@dataclass(frozen=True)
class Corpus:
    """Texts as ids, with their classes or tags if they have any."""

    rows: Sequence[np.ndarray]
    labels: Sequence[int] | Sequence[np.ndarray] | np.ndarray | None = None
    unknown: tuple[str, ...] = ()  # true tags that a tagger does not know, numbered after those that it knows

    @property
    def lengths(self) -> np.ndarray:
        """Number of tokens in each text."""
        return lengths_of(self.rows)

    def batch(self, index: np.ndarray, device: torch.device) -> Batch:
        """The texts at `index`, padded to the longest."""
        ids = to_device(torch.from_numpy(pad([self.rows[at] for at in index])), device)
        return Batch(ids, ids != PAD, self.labels_of(index, device))

    def labels_of(self, index: np.ndarray, device: torch.device, multiple: int = 1) -> Tensor | None:
        """The classes (batch,) or tags (batch, time) of the texts at `index`; time is a multiple of `multiple`."""
        if self.labels is None:
            return None
        return to_device(padded_labels([self.labels[at] for at in index], multiple), device)

    def of_row(self, at: int, each: np.ndarray) -> np.ndarray:
        """A tagger's output for a row's tokens, (tokens, classes), from that for the padded row, (time, classes)."""
        return each[: len(self.rows[at])]

    def in_order(self, batch_size: int, device: torch.device) -> Iterator[tuple[np.ndarray, Batch]]:
        """All texts once, in batches of similar length with their indices, for evaluation."""
        for index in evaluation_batches(self.lengths, batch_size, device):
            yield index, self.batch(index, device)

    def word_counts(self, size: int) -> np.ndarray:
        """How often each word occurs."""
        counts = np.zeros(size, dtype=np.int64)
        if isinstance(self.rows, Rows):
            for start in range(0, len(self.rows.flat), COUNTED):
                counts += np.bincount(self.rows.flat[start : start + COUNTED], minlength=size)
        else:
            for row in self.rows:
                np.add.at(counts, row, 1)
        return counts

    def class_counts(self, size: int, classes: int) -> np.ndarray:
        """How many texts of each class hold each word, (words, classes); the row of <pad> counts all texts."""
        assert self.labels is not None
        counts = np.zeros((size, classes), dtype=np.int32)
        for row, label in zip(self.rows, self.labels, strict=True):
            counts[np.unique(row), label] += 1
            counts[PAD, label] += 1
        return counts

    def sample(self, limit: int | None) -> "Corpus":
        """At most `limit` texts, drawn as `wordward.datasets.sample` draws them; every label is kept."""
        if limit is None or len(self.rows) <= limit:
            return self
        labels = self.labels
        if labels is None:
            return Corpus([self.rows[at] for at in sample(range(len(self.rows)), limit)])
        drawn = sample(range(len(self.rows)), limit, labels=lambda at: np.atleast_1d(labels[at]).tolist())
        return Corpus([self.rows[at] for at in drawn], [labels[at] for at in drawn])  # type: ignore[arg-type]

    def __add__(self, other: "Corpus") -> "Corpus":
        """The texts of both, without labels."""
        return Corpus(Joined(self.rows, other.rows))


def padded_labels(labels: Sequence[Any], multiple: int = 1) -> Tensor:
    """The classes of some texts, (batch,), or their tags, (batch, time), IGNORE where there is padding."""
    tagged = isinstance(labels[0], np.ndarray)
    return torch.from_numpy(pad(labels, IGNORE, multiple) if tagged else np.array(labels, dtype=np.int64))


def evaluation_batches(lengths: np.ndarray, batch_size: int, device: torch.device) -> Iterator[np.ndarray]:
    """Indices in order of length; on a GPU, batches are joined, since several take little longer than one."""
    batches = length_batches(lengths, batch_size, rng=None)
    if device.type != "cuda":
        yield from batches
        return
    held = np.zeros(0, dtype=np.int64)
    for batch in batches:
        if len(held) and (len(held) + len(batch)) * lengths[batch[-1]] > AT_ONCE:
            yield held
            held = held[:0]
        held = np.concatenate([held, batch])
    if len(held):
        yield held


class Stream:
    """Batches of a corpus, epoch after epoch, in an order determined by seed and epoch alone.

    With several processes, each gets its rows of the same batches.
    """

    def __init__(self, corpus: Corpus, batch_size: int, *, seed: Sequence[int], team: Team = ALONE) -> None:
        self.batch_size, self.seed, self.team = batch_size, tuple(seed), team
        self.epoch = self.at = 0
        self.read(corpus)

    def read(self, corpus: Corpus) -> None:
        """Take the batches from this corpus instead, from the same place on."""
        self.corpus, self._lengths = corpus, corpus.lengths
        self.go_to(self.epoch, self.at)

    def go_to(self, epoch: int, at: int) -> None:
        """Continue with the batch numbered `at` of an epoch."""
        self.epoch, self.at = epoch, at
        rng = np.random.default_rng([*self.seed, epoch])
        self._order = length_batches(self._lengths, self.batch_size, rng=rng)

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self._order)

    def next(self, device: torch.device) -> Batch:
        """The next batch, starting a new epoch when this one is over."""
        if self.at == len(self._order):
            self.go_to(self.epoch + 1, 0)
        self.at += 1
        index = self._order[self.at - 1]
        batch = self.corpus.batch(index, device)
        return batch.take(self.team.part(batch.ids, self._lengths[index]))


def encode_words(words: Sequence[str], vocabulary: Vocabulary, settings: TextSettings, *, eos: bool) -> np.ndarray:
    """Ids of a text, cut to the maximum length; a classifier's end with <eos>."""
    unknown = settings.unknown if eos else "unk"
    ids = vocabulary.encode(words, eos=False, unknown=unknown)[: settings.max_length]
    return np.array([*ids, *vocabulary.encode([], eos=eos)], dtype=np.int32)


def encode(
    examples: Sequence[Example],
    vocabulary: Vocabulary,
    settings: TextSettings,
    classes: Sequence[str] | None = None,
    *,
    tagging: bool = False,
    source: str = "",
) -> Corpus:
    """Examples as ids, and their labels as numbers of `classes` if these are given."""
    rows = [encode_words(words_of(example, settings), vocabulary, settings, eos=not tagging) for example in examples]
    if tagging and (empty := next((e for e, row in zip(examples, rows, strict=True) if not len(row)), None)):
        raise DataError("expected a sentence; it has no tokens", source, empty.line)
    if classes is None:
        return Corpus(rows)
    return Corpus(rows, label_numbers(examples, classes, settings, tagging=tagging, source=source))


def share_unknown(corpus: Corpus) -> float:
    """The share of texts without any known word."""
    return float(np.mean([not (row >= len(SPECIALS)).any() for row in corpus.rows]))
