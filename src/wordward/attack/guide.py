"""Proposes swaps: which words of many texts to replace by which, the most promising first."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from wordward.attack.cases import Case, Proposed, Replacement, State, of_words
from wordward.attack.fluency import fluency_of
from wordward.attack.half_precision import SearchModel
from wordward.attack.sense import Judge
from wordward.config.attack import AttackSettings
from wordward.explain.candidates import fit_words
from wordward.explain.directions import anywhere
from wordward.explain.pulls import noise_for
from wordward.explain.whole_words import Whole, by_themselves, whole_words, with_wholes
from wordward.perturbation.adversary import Adversary
from wordward.perturbation.nearest import BLOCK
from wordward.perturbation.objective import IGNORE
from wordward.perturbation.outcome import Found
from wordward.runs.reading import Reading, Row, target_of
from wordward.support.device import at_once
from wordward.text.batches import small_batches
from wordward.text.corpus import Batch

TEXTS, TOKENS = 32, 1 << 14  # a gradient for so many at a time, at most
NEAREST = 10  # words a token may be swapped for where r may point anywhere


class Guide:
    """A method that proposes swaps, the best first."""

    def __init__(self, scorer: SearchModel, settings: AttackSettings, judge: Judge | None) -> None:
        self.scorer, self.settings = scorer, settings
        self.run = run = scorer.run
        self.judge = judge if settings.sense == "kept" else None
        method = run.method(settings.method)
        self.by_strength = settings.by_strength or not method.recipe.follows_gradient
        if method.recipe.space == "words" and not self.by_strength and method.settings.epsilon is None:
            # What swaps gain is no matter of how far r goes, which is long to reckon from a large table.
            method = replace(method, settings=replace(method.settings, epsilon=1.0, epsilon_factor=1.0))
        self.adversary, recipe = run.adversary(method), method.recipe
        near = fit_words(run, self.adversary, space=settings.word_space) if settings.only_fitting else None
        self.fitting = near is not None
        self.fluency = fluency_of(run, settings.language_model) if self.fitting else None
        self._wholes = whole_words(run, self.adversary.method, near, None) if near and not self.by_strength else None
        refinements = method.settings.power_iterations
        probed = not recipe.needs_labels and recipe.follows_gradient
        self.passes = 1 + refinements if probed else 1  # of each text
        self.writable = torch.from_numpy(run.writable()).to(run.device)  # (words,) bool

    def __call__(self, states: Sequence[State], cases: Sequence[Case]) -> Proposed:
        """What is proposed for each state."""
        swaps: list[list[Replacement]] = [[] for _ in states]
        margins = [0.0] * len(states)
        labels = [target_of(state.row, case.target.lose) for state, case in zip(states, cases, strict=True)]
        corpus = self.run.corpus([state.row.ids for state in states], labels)
        k = self.adversary.method.settings.k
        tokens = max(1, BLOCK // len(self.run.vocabulary))
        if k is not None:
            tokens = self.run.tokens_at_once if self.run.device.type == "cuda" else TOKENS
        for index in small_batches(corpus.lengths, at_once(TEXTS, self.run.device), tokens):
            batch = corpus.batch(index, self.run.device)
            open = np.zeros(batch.ids.shape, dtype=bool)
            numbers = np.zeros(batch.ids.shape, dtype=np.int64)
            for at, number in enumerate(index):
                state, swappable = states[number], cases[number].open.copy()
                swappable[[swap.position for swap in state.made]] = False
                length = len(state.row.ids)
                open[at, :length] = state.row.at_all(swappable)
                numbers[at, :length] = state.row.numbers
            wholes = self._wholes_of([states[number] for number in index], [cases[number] for number in index])
            proposed, logits = self._propose(batch, self._on_device(open), self._on_device(numbers), wholes)
            for at, number in enumerate(index):
                row = states[number].row
                swaps[number] = _swaps_of_words(proposed[at], row)
                margins[number] = cases[number].target.margin(of_words(logits[at], row))
        return Proposed(swaps, margins, [self.passes] * len(states))

    def open(self, text: Reading) -> np.ndarray:
        """Which words may be swapped, (words,) bool; where only fitting words come, what is a word by itself."""
        if not self.fitting:
            return np.ones(len(text.spans), dtype=bool)
        return by_themselves(text, wholes=self._wholes is not None)

    def _wholes_of(self, states: Sequence[State], cases: Sequence[Case]) -> list[tuple[int, Whole]]:
        """The words of several pieces that are left in texts, each with the number of its text."""
        if self._wholes is None:
            return []
        found = []
        for at, (state, wholes) in enumerate(
            zip(states, self._wholes([case.reading for case in cases]), strict=True)
        ):
            gone = {swap.position for swap in state.made}
            found += [(at, whole.within(state.row)) for whole in wholes if whole.position not in gone]
        return found

    def _on_device(self, values: np.ndarray) -> Tensor:
        return torch.from_numpy(values).to(self.run.device)

    def perturb(self, batch: Batch) -> Found:
        """The perturbation of each text."""
        noise = self._noise(batch)
        return self._follow(batch, self.gradient(batch, noise)[0], noise)

    def _noise(self, batch: Batch) -> Tensor | None:
        """Where the method begins, if it draws."""
        perturbed = batch._replace(mask=self.run.perturbed(batch))
        return noise_for(self.adversary, perturbed, self.run.config.training.seed)

    def gradient(self, batch: Batch, noise: Tensor | None = None) -> tuple[Tensor | None, Tensor]:
        """The gradient that the method follows (None for one that draws), and the logits of the texts."""
        counted = None
        if self.adversary.method.recipe.needs_labels and batch.labels is not None:
            counted = batch.labels != IGNORE if batch.labels.dim() == 2 else None  # the tags that are to change
        return self.scorer.gradient(self.adversary, batch, noise, counted)

    def _follow(self, batch: Batch, gradient: Tensor | None, noise: Tensor | None) -> Found:
        """The perturbation along a gradient."""
        return self.adversary.perturb(batch.ids, gradient, self.run.perturbed(batch), noise=noise)

    def _propose(
        self, batch: Batch, open: Tensor, numbers: Tensor, wholes: Sequence[tuple[int, Whole]] = ()
    ) -> tuple[list[list[Replacement]], np.ndarray]:
        """The best swaps of each text of a batch where `open` (batch, time) lets a word go.

        `numbers` (batch, time) are those of the words for the rule of sense; `wholes` words of several pieces, each
        of which is swapped at its first.
        """
        noise = self._noise(batch)
        gradient, logits = self.gradient(batch, noise)
        candidates, values = self._valued(batch, open, gradient, noise)
        if wholes:
            assert gradient is not None
            given = candidates, values, open
            candidates, values, open = with_wholes(self.adversary, batch.ids, gradient, wholes, *given)
        best = self._best(batch, candidates, values, open, numbers)
        return best, logits.detach().float().cpu().numpy()

    def _valued(
        self, batch: Batch, open: Tensor, gradient: Tensor | None, noise: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """The words that each may be swapped for, and how promising each is, (batch, time, k) both."""
        if self.by_strength:
            return self._pulling(batch, open, gradient, noise)
        candidates = None
        if self.adversary.method.recipe.space == "words":  # how strongly each pulls does not matter
            candidates = self.adversary.space(batch.ids).candidates
        if candidates is None:
            candidates, _ = self._pulling(batch, open, gradient, noise)
        assert gradient is not None
        return candidates, gains(self.adversary, batch.ids, candidates, gradient.to(self.adversary.tap.dtype))

    def _pulling(
        self, batch: Batch, open: Tensor, gradient: Tensor | None, noise: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """The words that the perturbation goes to, and how far to each, (batch, time, k) both."""
        found = self._follow(batch, gradient, noise)
        if found.candidates is not None:
            return found.candidates, found.strengths
        allowed = self.writable.nonzero().flatten()
        top, r = min(NEAREST, len(allowed)), found.perturbation
        return anywhere(self.adversary, batch.ids, r, open, allowed=allowed, top=top)[:2]

    def _best(
        self, batch: Batch, candidates: Tensor, values: Tensor, open: Tensor, numbers: Tensor
    ) -> list[list[Replacement]]:
        """The swaps with the largest values, as many as a round can use."""
        ids = batch.ids.unsqueeze(-1).expand_as(candidates)
        possible = open.unsqueeze(-1) & (values > 0) & self.writable[candidates] & (candidates != ids)
        if self.judge is not None:
            assert batch.labels is not None
            labels = batch.labels.view(-1, 1, 1).expand_as(candidates)
            possible &= self.judge.kept(labels, numbers.unsqueeze(-1).expand_as(candidates), candidates)
        flat = values.masked_fill(~possible, -torch.inf).flatten(1)
        # Some may not survive re-reading, and more of them the language model.
        count = min((2 if self.fluency is None else 8) * self.settings.rescore + 8, flat.shape[1])
        tops, places = flat.topk(count, dim=1)
        k = candidates.shape[-1]
        words = candidates.flatten(1).gather(1, places)
        return [
            [Replacement(place // k, word) for top, place, word in zip(*row, strict=True) if top > -np.inf]
            for row in zip(tops.tolist(), places.tolist(), words.tolist(), strict=True)
        ]


@torch.no_grad()
def gains(adversary: Adversary, ids: Tensor, candidates: Tensor, gradient: Tensor) -> Tensor:
    """<g, w_k - w>: the rise in loss that each swap promises to first order, (batch, time, k)."""
    words = adversary.tap.words
    origins = words(ids)  # (batch, time, dim)
    if adversary.method.settings.k is None and adversary.method.recipe.space == "words":  # all words for each
        return gradient @ words(candidates[0, 0]).T - (gradient * origins).sum(-1, keepdim=True)
    return torch.stack([((words(kth) - origins) * gradient).sum(-1) for kth in candidates.unbind(-1)], -1)


def _swaps_of_words(swaps: list[Replacement], row: Row) -> list[Replacement]:
    """Swaps at ids as swaps at words, without repetitions."""
    return list(dict.fromkeys(Replacement(int(row.word[at]), word) for at, word in swaps))
