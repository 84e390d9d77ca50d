"""Context vectors of words, from neighbours and endings, and how often words have a capital; for any language."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from wordward.config.texts import TextSettings
from wordward.datasets import Example
from wordward.text.tokenizers import within_sentence, word_spans
from wordward.text.vocabulary import PAD, SPECIALS, UNK, Vocabulary

BESIDE = 100  # commonest words, which are told apart as neighbours; all others are one
DIM = 32  # of the vectors
ENDING = 4  # letters of an ending, at most
SHARED = 20  # neighbours that count for an ending as much as those of the ending a letter shorter
OWN = 5  # neighbours that count for a word as much as those of its ending
MOST = 50_000  # words that have a vector, the commonest
TOKENS = 3_000_000  # that are read
WRITTEN = 200_000  # of them, how they are written
PIECE = 500_000  # of them at a time
NOTHING = np.zeros(0, np.int64)


def context_vectors(corpora: Sequence[Sequence[np.ndarray]], words: Sequence[str]) -> Tensor:
    """A unit vector for each word, (words, DIM), by what stands directly to its left and to its right.

    A word that is rare stands as words with its ending do, and one with a rare ending as those with a shorter one.
    Words that are alike have a large cosine. Special words, and all after the commonest, have a vector of zeros.

    Args:
        corpora: Texts as ids, words in order of frequency.
        words: Each id's word, special ones first.
    """
    size, first = min(len(words), MOST), len(SPECIALS)
    vectors = torch.zeros(len(words), DIM)
    if size == first:
        return vectors
    sides = _beside(chain(*corpora), size)
    endings = _endings(words[first:size])
    both = torch.from_numpy(np.concatenate([_beyond_chance(side[first:], endings) for side in sides], axis=1))
    _, directions = torch.linalg.eigh(both.T @ both)  # ascending: the last have most
    vectors[first:size] = torch.nn.functional.normalize(both @ directions[:, -DIM:], dim=-1).float()
    return vectors


def capitals(examples: Iterable[Example], vocabulary: Vocabulary, settings: TextSettings) -> Tensor:
    """How large a share of each word in lower case is written with a capital within sentences, (ids,).

    A German noun is, and a name in other languages. A rare word is written as words with its ending are.
    """
    size, first, read = min(len(vocabulary), MOST), len(SPECIALS), 0
    counts = np.zeros((size, 2))
    for example in examples:
        text = example.text
        spans = word_spans(text, settings.tokenizer)
        for start, end in spans:
            if within_sentence(text, start):
                number = vocabulary[text[start:end].lower()]
                if first <= number < size:
                    counts[number, int(text[start].isupper())] += 1
        if (read := read + len(spans)) > WRITTEN:
            break
    found = torch.zeros(len(vocabulary))
    if size > first:
        endings = _endings(vocabulary.words[first:size])
        found[first:size] = torch.from_numpy(_drawn_by_ending(counts[first:], endings)[:, 1])
    return found


def _beside(rows: Iterable[np.ndarray], size: int) -> tuple[np.ndarray, np.ndarray]:
    """How often what is directly to the left, and to the right, of each word, (size, neighbours) each."""
    left, right = _counts(NOTHING, NOTHING, size), _counts(NOTHING, NOTHING, size)
    for text in _pieces(rows):
        left += _counts(text[1:], text[:-1], size)
        right += _counts(text[:-1], text[1:], size)
    return left, right


def _pieces(rows: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Texts with padding around each, some together, up to TOKENS words in all."""
    read, held, piece = 0, 1, [[PAD]]
    for row in rows:
        if read > TOKENS:
            break
        read, held = read + len(row), held + len(row) + 1
        piece += [row, [PAD]]
        if held > PIECE:
            yield np.concatenate(piece).astype(np.int64)
            held, piece = 1, [[PAD]]
    yield np.concatenate(piece).astype(np.int64)


def _counts(words: np.ndarray, beside: np.ndarray, size: int) -> np.ndarray:
    """How often each of the commonest words, an end of the text (column 0) or another (1) is beside each word."""
    first = len(SPECIALS)
    column = np.where(beside >= first, np.where(beside < first + BESIDE, beside - first + 2, 1), 0)
    column[beside == UNK] = 1
    wanted = (words < size) & (words >= first)
    width = BESIDE + 2
    found = np.bincount(words[wanted] * width + column[wanted], minlength=size * width)
    return found.reshape(size, width).astype(np.float64)


def _endings(words: Sequence[str]) -> list[np.ndarray]:
    """The number of each word's ending of one letter, of two and so on, the space before the word being one."""
    lengths = range(1, ENDING + 1)
    return [np.unique([f" {word}"[-length:] for word in words], return_inverse=True)[1] for length in lengths]


def _beyond_chance(counts: np.ndarray, endings: Sequence[np.ndarray]) -> np.ndarray:
    """The roots of the shares of a word's neighbours, less those of all words' (Hellinger), (words, neighbours)."""
    return np.sqrt(_drawn_by_ending(counts, endings)) - np.sqrt(_overall(counts))


def _drawn_by_ending(counts: np.ndarray, endings: Sequence[np.ndarray]) -> np.ndarray:
    """The shares in counts of words, (words, n), drawn toward those of words with their endings."""
    shares = np.broadcast_to(_overall(counts), counts.shape)
    for numbers in endings:
        of_ending = torch.zeros(numbers.max() + 1, counts.shape[1], dtype=torch.float64)
        of_ending.index_add_(0, torch.from_numpy(numbers), torch.from_numpy(counts))  # far faster than numpy's add.at
        shares = _drawn(of_ending.numpy()[numbers], shares, SHARED)
    return _drawn(counts, shares, OWN)


def _overall(counts: np.ndarray) -> np.ndarray:
    """The shares in the counts of all words together."""
    return counts.sum(0) / max(1.0, counts.sum())


def _drawn(counts: np.ndarray, toward: np.ndarray, weight: float) -> np.ndarray:
    """Shares in counts, (n, neighbours), drawn toward others as if so many had been counted with these."""
    return (counts + weight * toward) / (counts.sum(1, keepdims=True) + weight)
