"""Word vectors counter-fitted with synonyms and antonyms, after Mrkšić et al. 2016.

Synonyms are drawn to each other and antonyms apart until their cosine is 0. Where they keep the distances between
neighbours, each vector is drawn to where it was (as Attract-Repel does, Mrkšić et al. 2017), which needs no search.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
import torch.nn.functional as F

from wordward.attack.wordnet import Relations

EPOCHS = 20
ATTRACT, REPEL, STAY = 0.03, 0.05, 0.1  # how far each pair, and where a vector was, pull in an epoch
LEAST = 0.2  # cosine of a pair before: less alike synonyms share a sense that is seldom meant (script, hand)
ENDINGS = ("s", "es", "ed", "d", "ing", "er", "r", "est", "st", "ly")


def counter_fitted(words: Sequence[str], table: np.ndarray, relations: Relations) -> np.ndarray:
    """Vectors of unit length for the words, in lower case, that are near each other where their meanings are."""
    numbers = {word: at for at, word in enumerate(words)}
    start = F.normalize(torch.from_numpy(np.asarray(table, dtype=np.float32)), dim=1)
    vectors = start.clone()
    pulls = [(_alike(relations.synonyms, numbers, start), ATTRACT)]
    pulls += [(_alike(relations.antonyms, numbers, start), -REPEL)]
    for _ in range(EPOCHS):
        moved = STAY * (start - vectors)
        for (first, second), rate in pulls:
            one, other = vectors[first], vectors[second]
            cosine = (one * other).sum(1, keepdim=True)
            rates = torch.where((cosine > 0) | torch.tensor(rate > 0), rate, 0.0)  # apart, until the cosine is 0
            moved.index_add_(0, first, rates * (other - cosine * one))
            moved.index_add_(0, second, rates * (one - cosine * other))
        vectors = F.normalize(vectors + moved, dim=1)
    return vectors.numpy()


def _alike(
    pairs: Iterable[tuple[str, str]], numbers: dict[str, int], table: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The pairs of which both words have vectors not too far apart, with the same endings on both, too."""
    found = set()
    for one, other in pairs:
        for first, second in ((one, other), *_inflected(one, other)):
            if first in numbers and second in numbers:
                found.add((numbers[first], numbers[second]))
    first, second = torch.tensor(sorted(found), dtype=torch.long).reshape(-1, 2).T
    near = (table[first] * table[second]).sum(1) >= LEAST
    return first[near], second[near]


def _inflected(one: str, other: str) -> Iterable[tuple[str, str]]:
    """Both words with one ending; the silent e before -ing is left out."""
    for ending in ENDINGS:
        stems = [word[:-1] if ending == "ing" and word.endswith("e") else word for word in (one, other)]
        yield stems[0] + ending, stems[1] + ending
    for first, second in (("s", "es"), ("ed", "d"), ("er", "r"), ("est", "st")):
        yield one + first, other + second
        yield one + second, other + first
