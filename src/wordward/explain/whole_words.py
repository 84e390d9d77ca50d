"""Words of several pieces, pulled as wholes: all pieces of a word move together, from the middle of their vectors."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from wordward.explain.candidates import FittingWords
from wordward.explain.sensible import Sensible
from wordward.explain.word_classes import fitting_others
from wordward.perturbation.adversary import Adversary
from wordward.perturbation.outcome import Found
from wordward.perturbation.recipes import Method
from wordward.perturbation.space import Neighbors
from wordward.runs.reading import Reading
from wordward.runs.run import Run

TINY = 1e-30  # a gradient so short is none


class Whole(NamedTuple):
    """A word of several pieces."""

    pieces: np.ndarray  # their places among the ids of the text
    candidates: Tensor  # (k,) ids of words that fit its place, filled up with that of its first piece


class WholeWords:
    """Finds the words of several pieces in texts, and the words that may pull them."""

    def __init__(self, run: Run, near: FittingWords, sensible: Sensible | None) -> None:
        self._run, self._near, self._sensible = run, near, sensible

    def __call__(self, texts: Sequence[Reading]) -> list[list[Whole]]:
        """Those of each text."""
        positions = [np.nonzero(~text.row.single)[0].tolist() for text in texts]
        found = [(text, at) for text, of_text in zip(texts, positions, strict=True) for at in of_text]
        if not found:
            return [[] for _ in texts]
        table = self._run.table().float() if self._near.space is None else self._near.space.table
        pieces = [np.nonzero(text.row.word == at)[0] for text, at in found]
        ids = [text.row.ids[of_word] for (text, _), of_word in zip(found, pieces, strict=True)]
        middles = torch.stack([table[torch.from_numpy(of_word).long().to(table.device)].mean(0) for of_word in ids])
        evidence = None
        if self._sensible is not None:
            evidence = torch.cat([self._sensible.of(text.row, 0).speaks[~text.row.single] for text in texts])
        spelt = [self._spelt(text, at) for text, at in found]
        fits = fitting_others(self._run, spelt, self._near.fits)
        candidates = self._near.of_others(spelt, fits, middles, table, evidence).cpu()
        first = torch.tensor([int(of_word[0]) for of_word in ids]).unsqueeze(-1)
        wholes = map(Whole, pieces, torch.where(candidates >= 0, candidates, first))
        return [[next(wholes) for _ in of_text] for of_text in positions]

    def _spelt(self, text: Reading, position: int) -> str:
        """A word as the vocabulary would spell it: in lower case if its pieces are."""
        first = self._run.vocabulary.word(int(text.row.ids[text.row.first[position]]))
        return text.written(position).lower() if first == first.lower() else text.written(position)


def whole_words(run: Run, method: Method, near: FittingWords, sensible: Sensible | None) -> WholeWords | None:
    """Finds words of several pieces, if a run has such and the method moves every word as its gradient says."""
    if run.config.transformer is None or method.recipe.choice != "steepest":
        return None
    return WholeWords(run, near, sensible)


def whole_pulls(
    adversary: Adversary, ids: Tensor, gradient: Tensor, found: Found, words: Sequence[tuple[int, Whole]]
) -> tuple[Tensor, Tensor, Tensor]:
    """What pulls words of several pieces, strongest first: ids, strengths and cosines, each (words, k).

    The direction toward a candidate is the same for all pieces of a word, and of length 1 for them together.
    Strengths are in the measure of those found for the text. `words`: each with the number of its text in the batch.
    """
    ascent = adversary.space(ids).strengths(gradient).flatten(1)
    scale = found.strengths.flatten(1).norm(dim=-1) / ascent.norm(dim=-1).clamp(min=TINY)
    slopes = [scale[at] * gradient[at, word.pieces].sum(0) / len(word.pieces) ** 0.5 for at, word in words]
    middles = torch.stack([adversary.tap.words(ids[at, word.pieces]).mean(0) for at, word in words]).unsqueeze(1)
    candidates = torch.stack([word.candidates for _, word in words]).to(ids.device).unsqueeze(1)  # (words, 1, k)
    space = Neighbors.around(middles, candidates, adversary.tap.words)
    strengths = space.strengths(torch.stack(slopes).unsqueeze(1).to(middles.dtype))
    r = space.vectors(strengths)
    length = r.norm(dim=-1, keepdim=True)
    cosines = torch.where(length > 0, space.strengths(r) / length, 0.0)
    strengths, order = strengths.squeeze(1).sort(dim=-1, descending=True)
    return candidates.squeeze(1).gather(-1, order), strengths, cosines.squeeze(1).gather(-1, order)
