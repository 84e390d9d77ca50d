"""What words speak for, told by their spelling too: where no word vectors are at hand, forms of a word share it."""

from collections.abc import Sequence

import numpy as np
import torch

from wordward.text.corpus import Corpus
from wordward.text.vocabulary import SPECIALS
from wordward.train.yardstick import MOST, Counts, Linear, counts_of, fit_linear, least

LETTERS = 2, 3, 4  # of the stretches of a word that are looked at, its ends included
ENTRIES = 8_000_000  # stretches in all texts, above which words alone are looked at: there are enough of them then


def fit_spelt(corpus: Corpus, words: Sequence[str], classes: int) -> Linear:
    """As `fit_linear`, on words and on stretches of their letters: a word's evidence is the sum of its parts'.

    Args:
        corpus: Texts with their classes.
        words: Each id's word, special ones first.
        classes: How many classes there are.

    Returns:
        The model. A word's idf is the length of its parts' vector, so that a text's length is that of its words'
        lengths, which are taken to be at right angles.

    Examples:
        >>> texts = Corpus([np.array([3]), np.array([4])] * 3, labels=[0, 1] * 3)
        >>> model = fit_spelt(texts, ["<pad>", "<unk>", "<eos>", "warmly", "coldly", "warmer"], classes=2)
        >>> bool(model.evidence[5, 0] > model.evidence[5, 1])
        True
    """
    corpus = corpus.sample(MOST)
    counts, spelt, total = counts_of(corpus), _parts(words), len(corpus.rows)
    sizes = np.diff(spelt.starts, append=len(spelt.words))
    if sizes[counts.words].sum() > ENTRIES:
        return fit_linear(corpus, len(words), classes)
    parts = _in_texts(counts, spelt, sizes)
    documents = np.bincount(parts.words, minlength=int(spelt.words.max(initial=0)) + 1)
    enough = np.full(len(documents), 2)  # texts: a stretch that one has tells no more than its word
    enough[spelt.words[spelt.starts[len(SPECIALS) :]]] = 1  # the first part of each word is the word itself
    idf = np.where(documents >= enough, np.log((1 + total) / (1 + documents)) + 1, 0).astype(np.float32)
    weights = spelt.weights * idf[spelt.words]
    squares = np.bincount(spelt.texts, weights=weights.astype(np.float64) ** 2, minlength=len(words))
    lengths = np.sqrt(np.bincount(counts.texts, counts.weights * squares[counts.words], total))
    matrix = parts._replace(
        weights=(parts.weights * idf[parts.words] / np.where(lengths > 0, lengths, 1)[parts.texts]).astype(np.float32)
    )
    with torch.no_grad():
        found = least(matrix, torch.from_numpy(np.asarray(corpus.labels, dtype=np.int64)), len(idf), classes)
        evidence = spelt._replace(weights=weights).times(found[:-1]).numpy()
    return Linear(evidence, np.sqrt(squares).astype(np.float32), found[-1].numpy().copy())


def _parts(words: Sequence[str]) -> Counts:
    """Of each word first itself, then the stretches of its letters, numbered over all words; of special ones none."""
    numbers: dict[str, int] = {}
    found: list[int] = []
    starts = [0] * len(SPECIALS)
    for word in words[len(SPECIALS) :]:
        starts.append(len(found))
        found.append(numbers.setdefault(f"={word}", len(numbers)))
        whole = f" {word} " if len(word) > 1 and word[0].isalpha() else ""
        stretches = (whole[at : at + n] for n in LETTERS for at in range(len(whole) - n + 1))
        found += [numbers.setdefault(stretch, len(numbers)) for stretch in stretches]
    return Counts(np.array(found, np.int32), np.ones(len(found), np.float32), np.array(starts, np.int32))


def _in_texts(counts: Counts, spelt: Counts, sizes: np.ndarray) -> Counts:
    """How often each text has each part of its words."""
    many = sizes[counts.words]
    first = np.repeat(spelt.starts[counts.words] - (np.cumsum(many) - many), many)
    parts = spelt.words[first + np.arange(len(first))].astype(np.int64)
    keys, places = np.unique(np.repeat(counts.texts, many).astype(np.int64) << 32 | parts, return_inverse=True)
    often = np.bincount(places, np.repeat(counts.weights, many)).astype(np.float32)
    entries = np.bincount(keys >> 32, minlength=len(counts.starts))
    return Counts((keys & 0xFFFFFFFF).astype(np.int32), often, (np.cumsum(entries) - entries).astype(np.int32))
