"""Words of several pieces, pulled as wholes: all pieces of a word move together, from the middle of their vectors."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from wordward.explain.candidates import FittingWords
from wordward.explain.filtering import Sensible
from wordward.explain.word_classes import fitting_others
from wordward.explain.word_kinds import in_one_piece_each
from wordward.perturbation.adversary import Adversary
from wordward.perturbation.outcome import Found
from wordward.perturbation.recipes import Method
from wordward.perturbation.space import Neighbors
from wordward.runs.reading import Reading, Row
from wordward.runs.run import Run

TINY = 1e-30  # a gradient so short is none


class Whole(NamedTuple):
    """A word of several pieces."""

    position: int  # of the word in its text
    pieces: np.ndarray  # their places among the ids of the text
    candidates: Tensor  # (k,) ids of words that fit its place, filled up with that of its first piece

    def within(self, row: Row) -> "Whole":
        """The same in a row of which other words were swapped."""
        return self._replace(pieces=np.nonzero(row.word == self.position)[0])


class WholeWords:
    """Finds the words of several pieces in texts, and the words that may pull them or be put in their place."""

    def __init__(self, run: Run, near: FittingWords, sensible: Sensible | None) -> None:
        self._run, self._near, self._sensible = run, near, sensible
        self._found: dict[tuple[str, bytes], Tensor] = {}  # candidates, by the word and its ids

    def __call__(self, texts: Sequence[Reading]) -> list[list[Whole]]:
        """Those of each text."""
        words = [self._words(text) for text in texts]
        missing: dict[tuple[str, bytes], tuple[Reading, int]] = {}
        for text, of_text in zip(texts, words, strict=True):
            for at, _, key in of_text:
                if key not in self._found:
                    missing[key] = text, at
        if missing:
            self._search(missing)
        return [[Whole(at, pieces, self._found[key]) for at, pieces, key in of_text] for of_text in words]

    def _words(self, text: Reading) -> list[tuple[int, np.ndarray, tuple[str, bytes]]]:
        """Of each of a text's words of several pieces its position, its pieces, and what it is known by."""
        row, found = text.row, []
        for at in np.nonzero(~row.single)[0].tolist():
            (pieces,) = np.nonzero(row.word == at)
            found.append((at, pieces, (text.word(at), row.ids[pieces].tobytes())))
        return found

    def _search(self, missing: dict[tuple[str, bytes], tuple[Reading, int]]) -> None:
        """Find the candidates of words, each known by where it stands in a text."""
        table = self._run.table().float() if self._near.space is None else self._near.space.table
        rows = [text.row for text, _ in missing.values()]
        positions = [at for _, at in missing.values()]
        ids = [torch.from_numpy(row.ids[row.word == at]).long() for row, at in zip(rows, positions, strict=True)]
        middles = torch.stack([table[of_word.to(table.device)].mean(0) for of_word in ids])
        evidence = None
        if self._sensible is not None and self._near.speaking is not None:
            senses = {id(row): self._sensible.of(row, 0) for row in {id(row): row for row in rows}.values()}
            evidence = torch.stack([senses[id(row)].speaks[at] for row, at in zip(rows, positions, strict=True)])
        spelt = [word for word, _ in missing]
        fits = fitting_others(self._run, spelt, self._near.fits)
        found = self._near.of_others(spelt, fits, middles, table, evidence).cpu()
        first = torch.stack([of_word[0] for of_word in ids]).unsqueeze(-1)
        self._found |= zip(missing, torch.where(found >= 0, found, first), strict=True)


def whole_words(run: Run, method: Method, near: FittingWords, sensible: Sensible | None) -> WholeWords | None:
    """Finds words of several pieces, if a run has such and the method moves every word as its gradient says.

    Not where strengths are normalised word by word, as in the authors' code.
    """
    if run.config.transformer is None or method.recipe.choice != "steepest" or method.per_token:
        return None
    return WholeWords(run, near, sensible)


class Pieces:
    """Where the pieces of words stand in a batch; `words`: each with the number of its text."""

    def __init__(self, words: Sequence[tuple[int, Whole]], device: torch.device) -> None:
        self._words = len(words)
        counts = [len(word.pieces) for _, word in words]
        places = [(at, place) for at, word in words for place in word.pieces.tolist()]
        self.all = tuple(torch.tensor(places, device=device).unbind(-1))  # texts and places of all pieces
        self.counts = torch.tensor(counts, device=device).unsqueeze(-1)  # (words, 1)
        self._word = torch.arange(self._words, device=device).repeat_interleave(self.counts.squeeze(-1))
        begins = (self.counts.cumsum(0) - self.counts).squeeze(-1)
        self.first = tuple(each[begins] for each in self.all)  # those of each word's first piece

    def sum(self, values: Tensor) -> Tensor:
        """Of each word, (words, dim), from the values of all pieces, (pieces, dim)."""
        return values.new_zeros(self._words, values.shape[-1]).index_add_(0, self._word, values)


def whole_pulls(
    adversary: Adversary, ids: Tensor, gradient: Tensor, found: Found, words: Sequence[tuple[int, Whole]]
) -> tuple[Pieces, tuple[Tensor, Tensor, Tensor]]:
    """Where words of several pieces stand, and what pulls them, strongest first: ids, strengths and cosines.

    Each is (words, k). The direction toward a candidate is the same for all pieces of a word, and of length 1 for
    them together. Strengths are in the measure of those found for the text. `words`: each with the number of its text
    in the batch.
    """
    pieces, middles, candidates = _placed(adversary, ids, words)
    strengths = found.strengths.flatten(1).square().sum(-1)
    # r = D a and a = s D^T g, so that the factor s of a text is |a|^2 / <r, g>.
    scale = strengths / (found.perturbation * gradient).flatten(1).sum(-1).clamp(min=TINY)
    slopes = scale[pieces.first[0]].unsqueeze(-1) * pieces.sum(gradient[pieces.all]) / pieces.counts.sqrt()
    own = ids[pieces.first].unsqueeze(-1)  # which fills candidates up
    space = Neighbors(own, candidates.unsqueeze(1), adversary.tap.words, origins=middles.unsqueeze(1))
    strengths = space.strengths(slopes.unsqueeze(1).to(middles.dtype)) * (candidates != own).unsqueeze(1)
    r = space.vectors(strengths)
    length = r.norm(dim=-1, keepdim=True)
    cosines = torch.where(length > 0, space.strengths(r) / length, 0.0).squeeze(1)
    strengths, order = strengths.squeeze(1).sort(dim=-1, descending=True)
    return pieces, (candidates.gather(-1, order), strengths, cosines.gather(-1, order))


def with_wholes(
    adversary: Adversary,
    ids: Tensor,
    gradient: Tensor,
    words: Sequence[tuple[int, Whole]],
    candidates: Tensor,
    gains: Tensor,
    open: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """What may come for each piece, (batch, time, k), and what that gains, with words of several pieces as wholes.

    What may come for such a word, given as for `whole_pulls`, stands at its first piece, and its gain is the rise in
    loss that is promised to first order if all pieces move from their middle there. `open`, (batch, time), says where
    a word may go: not at the other pieces.
    """
    candidates, gains, open = candidates.clone(), gains.clone(), open.clone()
    pieces, middles, of_words = _placed(adversary, ids, words)
    slopes = pieces.sum(gradient[pieces.all]).to(gains.dtype)
    moves = (adversary.tap.words(kth) - middles for kth in of_words.unbind(-1))
    candidates[pieces.first] = of_words
    gains[pieces.first] = torch.stack([(move * slopes).sum(-1) for move in moves], -1)
    first = open[pieces.first]
    open[pieces.all] = False
    open[pieces.first] = first
    return candidates, gains, open


def _placed(adversary: Adversary, ids: Tensor, words: Sequence[tuple[int, Whole]]) -> tuple[Pieces, Tensor, Tensor]:
    """Where words stand, the middles of their vectors, (words, dim), and their candidates, (words, k)."""
    pieces = Pieces(words, ids.device)
    middles = pieces.sum(adversary.tap.words(ids[pieces.all])) / pieces.counts
    return pieces, middles, torch.stack([word.candidates for _, word in words]).to(ids.device)


def by_themselves(text: Reading, *, wholes: bool) -> np.ndarray:
    """Which words of a text are words by themselves, (words,) bool: not pieces of a contraction.

    Nor words of several pieces, each of which has neighbours of its own, unless these are pulled or swapped as
    `wholes`; but not if the text is cut, where one piece in their place would let the model read further.
    """
    return in_one_piece_each(text.text, text.spans) & (text.row.single | (wholes and not text.unread))
