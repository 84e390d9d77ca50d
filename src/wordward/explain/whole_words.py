"""Words of several pieces, pulled as wholes: all pieces of a word move together, from the middle of their vectors."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from wordward.explain.candidates import FittingWords
from wordward.explain.sensible import Sensible
from wordward.perturbation.adversary import Adversary
from wordward.perturbation.outcome import Found
from wordward.perturbation.space import Neighbors
from wordward.runs.reading import Reading
from wordward.runs.run import Run


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
        found = [(text, at) for text in texts for at in np.nonzero(~text.row.single)[0].tolist()]
        if not found:
            return [[] for _ in texts]
        table = self._run.table().float() if self._near.space is None else self._near.space.table
        pieces = [np.nonzero(text.row.word == at)[0] for text, at in found]
        ids = [torch.from_numpy(text.row.ids[of_word]).long() for (text, _), of_word in zip(found, pieces, strict=True)]
        vectors = torch.stack([table[each.to(table.device)].mean(0) for each in ids])
        evidence = None
        if self._sensible is not None:
            evidence = torch.cat([self._sensible.of(text.row, 0).speaks[~text.row.single] for text in texts])
        spelt = [self._spelt(text, at) for text, at in found]
        candidates = self._near.of_others(spelt, vectors, table, evidence).cpu()
        first = torch.stack([each[0] for each in ids]).unsqueeze(-1)
        wholes = map(Whole, pieces, torch.where(candidates >= 0, candidates, first))
        return [[next(wholes) for at in np.nonzero(~text.row.single)[0]] for text in texts]

    def _spelt(self, text: Reading, position: int) -> str:
        """A word as the vocabulary would spell it: in lower case if its pieces are."""
        written, first = text.written(position), self._run.vocabulary.word(int(text.row.ids[text.row.first[position]]))
        return written.lower() if first == first.lower() else written


def whole_pulls(
    adversary: Adversary, ids: Tensor, gradient: Tensor, found: Found, places: Sequence[tuple[int, Whole]]
) -> tuple[Tensor, Tensor, Tensor]:
    """What pulls words of several pieces, strongest first: ids, strengths and cosines, each (words, k).

    The direction toward a word is the same for all pieces of another, and of length 1 for them together; strengths
    are in the measure of the others in the text. `places`: the number of the text in the batch, and the word.
    """
    steepest = adversary.space(ids).strengths(gradient)
    scale = found.strengths.flatten(1).norm(dim=-1) / steepest.flatten(1).norm(dim=-1).clamp(min=1e-30)
    along = torch.stack(
        [scale[at] * gradient[at, of.pieces].sum(0) / len(of.pieces) ** 0.5 for at, of in places]
    ).unsqueeze(1)
    middles = torch.stack([adversary.tap.words(ids[at, of.pieces]).mean(0) for at, of in places])
    candidates = torch.stack([of.candidates for _, of in places]).to(ids.device).unsqueeze(1)  # (words, 1, k)

    def vectors(words: Tensor) -> Tensor:
        """Of the words themselves, (words, 1), or of candidates."""
        return middles.unsqueeze(1) if words is own else adversary.tap.words(words)

    own = torch.arange(len(places), device=ids.device).unsqueeze(1)
    space = Neighbors(own, candidates, vectors)
    strengths = space.strengths(along.to(middles.dtype))
    r = space.vectors(strengths)
    length = r.norm(dim=-1, keepdim=True)
    cosines = torch.where(length > 0, space.strengths(r) / length, 0.0)
    strengths, order = strengths.squeeze(1).sort(dim=-1, descending=True)
    return candidates.squeeze(1).gather(-1, order), strengths, cosines.squeeze(1).gather(-1, order)
