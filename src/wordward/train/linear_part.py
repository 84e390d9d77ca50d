"""The linear model beside a convolution: what words, their vectors or letters, and pairs of neighbours speak for."""

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from wordward.models.convolution import rows_of
from wordward.text.corpus import Corpus
from wordward.text.spelling import BEGINNING
from wordward.text.vocabulary import SPECIALS
from wordward.train.linear import MOST, Counts, Linear, counts_of, least, squared_hinge, tempered

LETTERS = 2, 3, 4  # of the stretches of a word that are looked at, its ends included
LIGHTER = 0.5  # weight of a stretch, of which a word has many
SHARED = 0.7  # length of a common word's vector, beside 1 of the word itself
SCALES = tuple(2 ** (at / 2) for at in range(-2, 5))  # by which margins may be multiplied to be logits: 0.5 to 4
FOLDS, ENOUGH = 5, 100  # one text in five is held out to tell the scale, in turn until so many texts were
ENTRIES = 8_000_000  # stretches in all texts, above which none are looked at: there are enough words then


class Spoken(NamedTuple):
    """A linear model on tf-idf, given back as what each word, and each known pair of neighbours, adds."""

    words: Linear
    pairs: np.ndarray  # (pairs,) int64: first * words + second
    evidence: np.ndarray  # (pairs, classes)
    idf: np.ndarray  # (pairs,)


def fit_spoken(
    corpus: Corpus, words: Sequence[str], classes: int, *, letters: bool, pairs: bool, vectors: Tensor | None = None
) -> Spoken:
    """Fit texts by their words and, if so asked, these words' vectors or letters, and pairs of neighbours.

    Args:
        corpus: Texts with their classes.
        words: Each id's word, special ones first; a form's evidence is that of the letters that words begin with.
        classes: How many classes there are.
        letters: Whether forms of a word are to share what they speak for: its evidence is the sum of its parts'.
        pairs: Whether pairs that more than one text has speak, too.
        vectors: Of each id, (words, dim), at unit deviation: words near each other share what they speak for, and
            those that no text has speak for what their vectors do.

    Returns:
        The model. A word's idf is the length of its parts' vector, so that a text's length is that of its words' and
        pairs' lengths, which are taken to be at right angles.

    Examples:
        >>> texts = Corpus([np.array([3]), np.array([4])] * 3, labels=[0, 1] * 3)
        >>> names = ["<pad>", "<unk>", "<eos>", "warmly", "coldly", "warmer"]
        >>> found = fit_spoken(texts, names, classes=2, letters=True, pairs=True)
        >>> bool(found.words.evidence[5, 0] > found.words.evidence[5, 1])
        True
    """
    corpus = corpus.sample(MOST)
    counts, total = tempered(counts_of(corpus)), len(corpus.rows)
    spelt = _parts(words, LETTERS if letters else ())
    sizes = np.diff(spelt.starts, append=len(spelt.words))
    if letters and sizes[counts.words].sum() > ENTRIES:
        return fit_spoken(corpus, words, classes, letters=False, pairs=pairs, vectors=vectors)
    parts = _in_texts(counts, spelt, sizes)
    idf = _idf_of_parts(parts, spelt, total, every=vectors is not None)
    known, paired = _pairs(corpus, len(words)) if pairs else (np.zeros(0, np.int64), _nothing(total))
    pair_idf = _idf(np.bincount(paired.words, minlength=len(known)), total)
    spelt, parts, paired = _times(spelt, idf), _times(parts, idf), _times(tempered(paired), pair_idf)
    own = np.bincount(spelt.texts, spelt.weights.astype(np.float64) ** 2, len(words))
    squares = np.bincount(counts.texts, counts.weights**2 * own[counts.words], total)
    squares += np.bincount(paired.texts, paired.weights**2, total)
    lengths = np.sqrt(np.maximum(squares, 1))
    matrix = _beside(parts, paired, len(idf))
    matrix = matrix._replace(weights=matrix.weights / lengths[matrix.texts].astype(np.float32))
    own = np.sqrt(own).astype(np.float32)
    gold = torch.from_numpy(np.asarray(corpus.labels, dtype=np.int64))
    with torch.no_grad():
        near, more = _near(counts, own, vectors)
        found = _fitted(
            matrix, gold, len(idf) + len(known), classes, more / torch.from_numpy(lengths[:, None]).float()
        )
        evidence = spelt.times(found[: len(idf)]) + near @ found[len(idf) + len(known) : -1]
    of_pairs = found[len(idf) : len(idf) + len(known)].numpy() * pair_idf[:, None]
    return Spoken(Linear(evidence.numpy(), own, found[-1].numpy().copy()), known, of_pairs, pair_idf)


def _fitted(matrix: Counts, gold: Tensor, columns: int, classes: int, beside: Tensor) -> Tensor:
    """Coefficients of what tells of a text: of many classes by margins, which tell rare ones better."""
    if classes == 2:
        return least(matrix, gold, columns, classes, beside)
    margins = least(matrix, gold, columns, classes, beside, loss=squared_hinge, c=1.0)
    return _scale(matrix, gold, beside, margins) * margins


def _scale(matrix: Counts, gold: Tensor, beside: Tensor, margins: Tensor) -> float:
    """What makes logits of margins: the factor of least cross-entropy on texts that a fit was not made of."""
    columns, classes = len(margins) - beside.shape[1] - 1, margins.shape[1]
    place = np.random.default_rng(0).permutation(len(gold)) % FOLDS
    losses = torch.zeros(len(SCALES), dtype=torch.float64)
    for turn in range(min(FOLDS, ceil(ENOUGH * FOLDS / len(gold)))):
        kept, held = np.flatnonzero(place != turn), np.flatnonzero(place == turn)
        found = least(
            matrix.rows(kept), gold[kept], columns, classes, beside[kept], loss=squared_hinge, c=1.0, start=margins
        )
        scores = matrix.rows(held).times(found[:columns]) + beside[held] @ found[columns:-1] + found[-1]
        for at, scale in enumerate(SCALES):
            losses[at] += torch.nn.functional.cross_entropy(scale * scores.double(), gold[held], reduction="sum")
    return SCALES[int(losses.argmin())]


def _near(counts: Counts, idf: np.ndarray, vectors: Tensor | None) -> tuple[Tensor, Tensor]:
    """What one occurrence of each word adds to its text's vector, (words, dim), and the vectors, (texts, dim)."""
    if vectors is None:
        return torch.zeros(len(idf), 0), torch.zeros(len(counts.starts), 0)
    near = SHARED / vectors.shape[1] ** 0.5 * torch.from_numpy(idf)[:, None] * vectors
    return near, counts.times(near)


def _idf(documents: np.ndarray, total: int) -> np.ndarray:
    return (np.log((1 + total) / (1 + documents)) + 1).astype(np.float32)


def _idf_of_parts(parts: Counts, spelt: Counts, total: int, *, every: bool) -> np.ndarray:
    """The weight of each part of words, the first of which is the word; 0 for those that tell nothing.

    `every`: words that no text has tell something, too.
    """
    whole = np.zeros(int(spelt.words.max(initial=-1)) + 1, bool)
    whole[spelt.words[spelt.starts[len(SPECIALS) :]]] = True
    documents = np.bincount(parts.words, minlength=len(whole))
    enough = np.where(whole, 0 if every else 1, 2)  # texts: a stretch that one has tells no more than its word
    return np.where(documents >= enough, _idf(documents, total) * np.where(whole, 1, LIGHTER), 0).astype(np.float32)


def _times(counts: Counts, weights: np.ndarray) -> Counts:
    return counts._replace(weights=counts.weights * weights[counts.words])


def _nothing(texts: int) -> Counts:
    return Counts(np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(texts, np.int32))


def _parts(words: Sequence[str], letters: Sequence[int]) -> Counts:
    """Of each word first itself, then stretches of so many letters, numbered over all words; of special ones none."""
    numbers: dict[str, int] = {}
    found: list[int] = []
    starts = [0] * len(SPECIALS)
    for word in words[len(SPECIALS) :]:
        starts.append(len(found))
        found.append(numbers.setdefault(f"={word}", len(numbers)))
        whole = _letters(word)
        stretches = (whole[at : at + n] for n in letters for at in range(len(whole) - n + 1))
        found += [numbers.setdefault(stretch, len(numbers)) for stretch in stretches]
    return Counts(np.array(found, np.int32), np.ones(len(found), np.float32), np.array(starts, np.int32))


def _letters(word: str) -> str:
    """What stretches are taken of: a word between blanks; of a form the letters that words begin with."""
    if word.startswith(BEGINNING):
        return f" {word.removeprefix(BEGINNING)}"
    return f" {word} " if len(word) > 1 and word[0].isalpha() else ""


def _in_texts(counts: Counts, spelt: Counts, sizes: np.ndarray) -> Counts:
    """How often each text has each part of its words."""
    many = sizes[counts.words]
    first = np.repeat(spelt.starts[counts.words] - (np.cumsum(many) - many), many)
    parts = spelt.words[first + np.arange(len(first))].astype(np.int64)
    keys, places = np.unique(np.repeat(counts.texts, many).astype(np.int64) << 32 | parts, return_inverse=True)
    often = np.bincount(places, np.repeat(counts.weights, many)).astype(np.float32)
    entries = np.bincount(keys >> 32, minlength=len(counts.starts))
    return Counts((keys & 0xFFFFFFFF).astype(np.int32), often, (np.cumsum(entries) - entries).astype(np.int32))


def _pairs(corpus: Corpus, words: int) -> tuple[np.ndarray, Counts]:
    """The pairs of neighbours that are known, as first * words + second, and how often each text has each of them.

    Those of two texts or more; of those that share a row in the model's table the one that most texts have.
    """
    ids = np.concatenate(list(corpus.rows)).astype(np.int64)
    texts = np.repeat(np.arange(len(corpus.rows)), corpus.lengths)
    real = ids >= len(SPECIALS)
    beside = (texts[:-1] == texts[1:]) & real[:-1] & real[1:]
    found, numbers = np.unique((ids[:-1] * words + ids[1:])[beside], return_inverse=True)
    once, often = np.unique(texts[:-1][beside] << 32 | numbers, return_counts=True)
    documents = np.bincount(once & 0xFFFFFFFF, minlength=len(found))
    order = np.argsort(-documents, kind="stable")
    order = order[documents[order] > 1]
    keys = torch.from_numpy(found[order])
    _, best = np.unique(rows_of(keys // words, keys % words, words).numpy(), return_index=True)
    place = np.full(len(found), -1)
    place[order[best]] = np.arange(len(best))
    at = place[once & 0xFFFFFFFF]
    entries = np.bincount((once >> 32)[at >= 0], minlength=len(corpus.rows))
    starts = (np.cumsum(entries) - entries).astype(np.int32)
    return found[order[best]], Counts(at[at >= 0].astype(np.int32), often[at >= 0].astype(np.float32), starts)


def _beside(one: Counts, other: Counts, shift: int) -> Counts:
    """The entries of both for each text, the other's numbered from `shift` on."""
    order = np.argsort(np.concatenate([one.texts, other.texts]), kind="stable")
    words = np.concatenate([one.words, other.words + np.int32(shift)])[order]
    return Counts(words, np.concatenate([one.weights, other.weights])[order], one.starts + other.starts)
