"""Proposes swaps for a black-box model: which words matter, and which of their neighbours help."""

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from wordward.attack.cases import Case, Proposed, Replacement, State
from wordward.attack.edits import edited, left_out
from wordward.attack.fluency import fluency_of
from wordward.attack.near_words import NearWords
from wordward.attack.retokenizing import text_with
from wordward.attack.sense import Judge
from wordward.config.attack import AttackSettings
from wordward.explain.word_kinds import in_one_piece_each
from wordward.runs.reading import Reading
from wordward.runs.run import Run

NEAREST = 10  # words that one may be swapped for, where the method does not say


class QueryGuide:
    """Finds swaps without gradients: leaves out each word of a text, then reads the neighbours of those that matter.

    A round looks at the `rescore` words that matter most, then at the next so many, until a swap helps.
    """

    def __init__(self, run: Run, settings: AttackSettings, judge: Judge | None) -> None:
        self.run, self.settings = run, settings
        self.judge = judge if settings.sense == "kept" else None
        self.fitting = settings.only_fitting
        self.fluency = fluency_of(run, settings.language_model) if self.fitting else None
        k = run.method(settings.method).settings.k or NEAREST
        self.near = NearWords(settings.word_space, k, fitting=self.fitting)
        # By the identity of the case: the case, and its words, most telling first.
        self._order: dict[int, tuple[Case, list[int]]] = {}

    def open(self, text: Reading) -> np.ndarray:
        """Which words may be swapped, (words,) bool; where only fitting words come, what is a word by itself."""
        return in_one_piece_each(text.text, text.spans) if self.fitting else np.ones(len(text.spans), dtype=bool)

    def __call__(self, states: Sequence[State], cases: Sequence[Case]) -> Proposed:
        """For each state the swaps that bring another prediction nearer, and how far off it is now."""
        spent = [0] * len(states)
        if all(not state.made for state in states):  # the first round of other texts
            self._order.clear()
        margins = self._margins([state.row.ids for state in states], cases)
        for at, case in enumerate(cases):
            if id(case) not in self._order:
                order, spent[at] = self._by_importance(case)
                self._order[id(case)] = case, order
        found: list[list[tuple[float, Replacement]]] = [[] for _ in states]
        rounds = [self._proposals(state, case) for state, case in zip(states, cases, strict=True)]
        searching = set(range(len(states)))
        while searching:
            tried: list[tuple[int, Replacement, np.ndarray]] = []
            for at in sorted(searching):
                new = next(rounds[at], None)
                if new is None:
                    searching.discard(at)
                else:
                    tried += [(at, swap, ids) for swap, ids in new]
            after = self._margins([ids for _, _, ids in tried], [cases[at] for at, _, _ in tried])
            for (at, swap, _), margin in zip(tried, after, strict=True):
                spent[at] += 1
                if margin < margins[at]:
                    found[at].append((margin, swap))
            searching -= {at for at in searching if found[at]}
        best = [[swap for _, swap in sorted(of_text, key=lambda pair: pair[0])] for of_text in found]
        # What the search reads is remembered from here, so it is not counted twice.
        again = [min(len(swaps), self.settings.rescore) for swaps in best]
        return Proposed(best, margins, [max(0, each - read) for each, read in zip(spent, again, strict=True)])

    def _margins(self, rows: Sequence[np.ndarray], cases: Sequence[Case]) -> list[float]:
        return [case.target.margin(logits) for case, logits in zip(cases, self.run.logits(rows), strict=True)]

    def _by_importance(self, case: Case) -> tuple[list[int], int]:
        """The words that may be swapped, those first without which the prediction is nearest to changing.

        And how many texts were read for it.
        """
        open = np.flatnonzero(case.open).tolist()
        probes = [left_out(case.text, *case.reading.spans[position]) for position in open]
        rows = self.run.rows_of([edited(case.text, [probe]) for probe in probes])
        # The only word of a text, or of one of a pair, leaves nothing that can be read.
        filled = {number: row for number, row in enumerate(rows) if row is not None}
        margins = dict(zip(filled, self._margins([*filled.values()], [case] * len(filled)), strict=True))
        order = sorted(range(len(open)), key=lambda number: margins.get(number, -np.inf))
        return [open[number] for number in order], len(filled)

    def _proposals(self, state: State, case: Case) -> Iterator[list[tuple[Replacement, np.ndarray]]]:
        """The swaps of some words at a time with the ids of the texts that they make."""
        gone = {swap.position for swap in state.made}
        left = iter([position for position in self._order[id(case)][1] if position not in gone])
        while positions := list(islice(left, self.settings.rescore)):
            made = []
            for position in positions:
                for word in self.near.of(case.reading.written(position).lower()):
                    swap = Replacement(position, self.run.vocabulary[word])
                    if swap in case.target.never or not self._allowed(case, swap):
                        continue
                    row = self.run.swapped(state.row, *swap, text_with(self.run, case, (*state.made, swap)))
                    if row is not None:
                        made.append((swap, row.ids))
            yield made

    def _allowed(self, case: Case, swap: Replacement) -> bool:
        """Whether a swap is judged to keep the true label, where only such may be made."""
        if self.judge is None:
            return True
        assert isinstance(case.target.lose, int)
        return self.judge.of(case.target.lose, case.number(swap.position), swap.word) == "kept"
