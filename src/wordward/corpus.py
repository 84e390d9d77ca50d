"""Encoded texts, and endless streams of batches of them whose place can be kept."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from wordward.config import TextSettings
from wordward.datasets import DataError, Example
from wordward.objective import IGNORE
from wordward.text import PAD, SPECIALS, Vocabulary, length_batches, pad, split_words


class Batch(NamedTuple):
    """Texts side by side."""

    ids: Tensor  # (batch, time)
    mask: Tensor  # (batch, time), True where a token is
    labels: Tensor | None  # (batch,) classes or (batch, time) tags


@dataclass(frozen=True)
class Corpus:
    """Texts as ids, with their classes or tags where they have any."""

    rows: Sequence[np.ndarray]
    labels: Sequence[int] | Sequence[np.ndarray] | None = None

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each text."""
        return np.fromiter(map(len, self.rows), dtype=np.int64, count=len(self.rows))

    def batch(self, index: np.ndarray, device: torch.device) -> Batch:
        """The texts of `index`, padded to the longest."""
        ids = torch.from_numpy(pad([self.rows[at] for at in index]))
        labels = None
        if self.labels is not None:
            chosen = [self.labels[at] for at in index]
            tagged = isinstance(chosen[0], np.ndarray)
            labels = torch.from_numpy(pad(chosen, IGNORE)) if tagged else torch.tensor(chosen)  # type: ignore[arg-type]
            labels = labels.to(device, non_blocking=True)
        ids = ids.to(device, non_blocking=True)
        return Batch(ids, ids != PAD, labels)

    def in_order(self, batch_size: int, device: torch.device) -> Iterator[tuple[np.ndarray, Batch]]:
        """All texts once in batches of similar length, with their indices, for evaluation."""
        for index in length_batches(self.lengths, batch_size, rng=None):
            yield index, self.batch(index, device)

    def word_counts(self, size: int) -> np.ndarray:
        """How often each word occurs."""
        return np.bincount(np.concatenate(list(self.rows)), minlength=size)

    def __add__(self, other: "Corpus") -> "Corpus":
        """The texts of both, without labels."""
        return Corpus([*self.rows, *other.rows])


class Stream:
    """Batches of a corpus epoch after epoch, the order fixed by seed and epoch alone."""

    def __init__(self, corpus: Corpus, batch_size: int, *, seed: Sequence[int]) -> None:
        self.corpus, self.batch_size, self.seed = corpus, batch_size, tuple(seed)
        self._lengths = corpus.lengths
        self.go_to(0, 0)

    def go_to(self, epoch: int, at: int) -> None:
        """Take up at the batch numbered `at` of an epoch."""
        self.epoch, self.at = epoch, at
        rng = np.random.default_rng([*self.seed, epoch])
        self._order = length_batches(self._lengths, self.batch_size, rng=rng)

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self._order)

    def next(self, device: torch.device) -> Batch:
        """The next batch, of the next epoch where this one is over."""
        if self.at == len(self._order):
            self.go_to(self.epoch + 1, 0)
        self.at += 1
        return self.corpus.batch(self._order[self.at - 1], device)


def words_of(example: Example, settings: TextSettings) -> list[str]:
    """The words of a text: its tokens where it comes with them."""
    if example.tokens is None:
        return split_words(example.text, settings.tokenizer, settings.lowercase)
    return [token.lower() for token in example.tokens] if settings.lowercase else list(example.tokens)


def encode_words(
    words: Sequence[str], vocabulary: Vocabulary, settings: TextSettings, *, eos: bool
) -> np.ndarray:
    """Ids of a text, cut to the longest length; a classifier's end with <eos>."""
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
    """Examples as ids, and as numbers of `classes` where these are given."""
    rows = [
        encode_words(words_of(example, settings), vocabulary, settings, eos=not tagging)
        for example in examples
    ]
    if tagging and (empty := next((e for e, row in zip(examples, rows, strict=True) if not len(row)), None)):
        raise DataError("expected a sentence; it has no tokens", source, empty.line)
    if classes is None:
        return Corpus(rows)
    numbers = {name: number for number, name in enumerate(classes)}
    labels = [_labels(example, numbers, settings, tagging, source) for example in examples]
    return Corpus(rows, labels)  # type: ignore[arg-type]


def _labels(
    example: Example, numbers: dict[str, int], settings: TextSettings, tagging: bool, source: str
) -> int | np.ndarray:
    given = example.tags if tagging else (example.label,)
    if given is None or given == (None,):
        wanted = "a tag for every token" if tagging else "a label"
        raise DataError(f"expected {wanted}; there is none", source, example.line)
    for name in given:
        if name not in numbers:
            raise DataError(
                f"expected a label that the model knows ({', '.join(numbers)}); got {name!r}",
                source,
                example.line,
            )
    if tagging:
        return np.array([numbers[str(name)] for name in given][: settings.max_length], dtype=np.int64)
    return numbers[str(given[0])]


def share_unknown(corpus: Corpus) -> float:
    """Share of the texts without any known word."""
    return float(np.mean([not (row >= len(SPECIALS)).any() for row in corpus.rows]))
