"""Word vectors from the texts themselves, where none are at hand: words that share neighbours are near each other."""

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from wordward.text.corpus import Corpus
from wordward.text.vocabulary import SPECIALS

WINDOW = 5  # words on either side that count as neighbours, the nearer the more
TOKENS = 3_000_000  # that are read, which takes some seconds
SMOOTHING = 0.75  # of the frequencies of neighbours (Levy et al. 2015)


def text_vectors(corpora: Iterable[Corpus], words: int, dim: int) -> Tensor:
    """Vectors (words, dim): a truncated SVD of how much more often than by chance words occur near each other.

    Positive pointwise mutual information, as in Levy et al. 2015. The same texts give the same vectors.
    """
    pairs, counts = _pairs(corpora, words)
    first, second = pairs // words, pairs % words
    total = torch.zeros(words, dtype=torch.float64).index_add_(0, first, counts)
    smooth = total**SMOOTHING
    information = (counts * smooth.sum() / (total[first] * smooth[second])).log().clamp(min=0).float()
    places = torch.stack([first, second])
    matrix = torch.sparse_coo_tensor(places, information, (words, words), check_invariants=True).coalesce()
    rank = min(dim, words - 1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        left, strength, _ = torch.svd_lowrank(matrix, q=min(rank + 10, words), niter=4)
    vectors = torch.zeros(words, dim)
    vectors[:, :rank] = left[:, :rank] * strength[:rank].sqrt()
    return vectors


def _pairs(corpora: Iterable[Corpus], words: int) -> tuple[Tensor, Tensor]:
    """Pairs of neighbours as first * words + second, and how often they occur, in both orders."""
    text = np.concatenate([np.append(row, 0) for row in _rows(corpora)]).astype(np.int64)  # 0 ends a text
    found, weights = [], []
    for distance in range(1, WINDOW + 1):
        one, other = text[:-distance], text[distance:]
        both = (one >= len(SPECIALS)) & (other >= len(SPECIALS))
        for first, second in ((one, other), (other, one)):
            numbers, counts = np.unique(first[both] * words + second[both], return_counts=True)
            found.append(numbers)
            weights.append(counts / distance)
    pairs, inverse = np.unique(np.concatenate(found), return_inverse=True)
    return torch.from_numpy(pairs), torch.from_numpy(np.bincount(inverse, np.concatenate(weights), len(pairs)))


def _rows(corpora: Iterable[Corpus]) -> Iterable[np.ndarray]:
    read = 0
    for corpus in corpora:
        for row in corpus.rows:
            if read > TOKENS:
                return
            read += len(row)
            yield row
