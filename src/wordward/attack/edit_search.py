"""The search for edits of any kinds, round by round over many texts at once; swaps alone are searched in `search`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from wordward.attack.attacked import distance
from wordward.attack.cases import Case, State, SwapGuide, of_words
from wordward.attack.edits import Edit, edited, goes_with
from wordward.attack.goal import Goal
from wordward.attack.proposals import Proposer
from wordward.attack.rereading import text_with
from wordward.attack.search import read, swapped
from wordward.config.attack import AttackSettings
from wordward.datasets import Example
from wordward.perturbation.tap import evaluating
from wordward.runs.reading import Row
from wordward.runs.run import Run


@dataclass(frozen=True)
class EditState:
    """A text with some edits."""

    row: Row  # as the model reads it
    edits: tuple[Edit, ...] = ()  # in the order they were made
    margin: float = np.inf  # how far the prediction is from changing; below 0 it has changed


@dataclass
class EditSearch:
    """The state of the search on one text."""

    case: Case
    beam: list[EditState]  # the best first
    proposed: dict[str, list[Edit]] = field(default_factory=dict)  # by kind, the most promising first
    alone: set[str] = field(default_factory=set)  # kinds one edit of which flips the text
    passes: int = 0  # texts that the model read for it
    over: bool = False

    @property
    def text(self) -> str:
        """The text after the best edits."""
        return edited(self.case.text, self.beam[0].edits)

    def keep(self, states: list[EditState], beam: int) -> None:
        """Take the best of a round, each as the model reads it once; of those that flip it the one of lowest cost."""
        if states:
            unlike: dict[bytes, EditState] = {}
            for state in sorted(states, key=self._order):
                unlike.setdefault(state.row.ids.tobytes(), state)
            self.beam = list(unlike.values())[:beam]
        best = self.beam[0]
        self.over = not states or best.margin < 0 or len(best.edits) >= self.case.most

    def _order(self, state: EditState) -> tuple[float, float, int]:
        cost = self.cost(state)
        return (cost if state.margin < 0 else np.inf), state.margin, cost

    def cost(self, state: EditState) -> int:
        """Characters that the edits of a state change."""
        return sum(distance(self.case.text[edit.start : edit.end], edit.new) for edit in state.edits)


class Attempt(NamedTuple):
    """A text with one more edit, still to be scored by the model."""

    text: int  # the number of its text
    state: EditState
    before: float  # the margin of the text it was made of

    @property
    def key(self) -> tuple[int, bytes]:
        """The text and what the model reads of it."""
        return self.text, self.state.row.ids.tobytes()


class Editor:
    """Makes edits of the kinds of the settings; `guide` proposes the swaps among them."""

    def __init__(self, run: Run, settings: AttackSettings, goal: Goal, guide: SwapGuide | None) -> None:
        self.run, self.settings, self.goal, self.guide = run, settings, goal, guide
        self.kinds = tuple(kind for kind in settings.edits if kind != "swap")

    @cached_property
    def proposer(self) -> Proposer:
        """Which edits are tried first."""
        return Proposer(self.run, self.settings, self.goal)

    def __call__(self, cases: Sequence[Case]) -> list[EditSearch]:
        """Edit all texts, an edit a round, until each prediction changes or no edit is left."""
        with evaluating(self.run.model):
            rows = read(self.run, [case.row.ids for case in cases])
            searches = [
                EditSearch(case, [EditState(case.row, margin=_margin(case, case.row, logits))], over=case.most < 1)
                for case, logits in zip(cases, rows, strict=True)
            ]
            self._propose([one for one in searches if not one.over])
            while running := [one for one in searches if not one.over]:
                self._round(running)
        return searches

    def _propose(self, searches: Sequence[EditSearch]) -> None:
        """Which edits of each kind are tried first: the model reads each text without each word, and with others."""
        probes = [self.proposer.probes(one.case) for one in searches]
        texts = [
            edited(one.case.text, [probe]) for one, of_text in zip(searches, probes, strict=True) for probe in of_text
        ]
        rows = self.run.rows_of(texts, known=True)
        logits = iter(read(self.run, [row for row in rows if row is not None]))
        left = iter(rows)
        for one, of_text in zip(searches, probes, strict=True):
            margins = {}
            for probe, row in zip(of_text, left, strict=False):
                if row is not None:
                    one.passes += 1
                    margins[probe] = one.case.target.margin(next(logits))
            one.proposed = self.proposer(one.case, margins)

    def _round(self, searches: Sequence[EditSearch]) -> None:
        """One more edit in each text: the model reads some of each kind, and the best is made."""
        swaps = self._swaps(searches) if self.guide is not None else {}
        attempts = [
            Attempt(number, made, state.margin)
            for number, one in enumerate(searches)
            for state in one.beam
            for made in [*swaps.get(id(state), ()), *self._edits(one, state)]
        ]
        rows: dict[tuple[int, bytes], Row] = {}  # edits of several kinds may be read as the same ids
        for attempt in attempts:
            rows.setdefault(attempt.key, attempt.state.row)
        logits = dict(zip(rows, read(self.run, [row.ids for row in rows.values()]), strict=True))
        for number, _ in rows:
            searches[number].passes += 1
        kept: list[list[EditState]] = [[] for _ in searches]
        for attempt in attempts:
            one, made = searches[attempt.text], attempt.state
            margin = _margin(one.case, made.row, logits[attempt.key])
            if margin < 0 and len(made.edits) == 1:
                one.alone.add(made.edits[0].kind)
            if margin < attempt.before:
                kept[attempt.text].append(replace(made, margin=margin))
        for one, states in zip(searches, kept, strict=True):
            one.keep(states, self.settings.beam)

    def _edits(self, one: EditSearch, state: EditState) -> Iterator[EditState]:
        """The text after one more edit, some of each kind: those that the model reads as others than before."""
        for kind in self.kinds:
            seen, left = {state.row.ids.tobytes()}, self.settings.rescore
            for edit in one.proposed[kind]:
                if not goes_with(edit, state.edits):
                    continue
                made = (*state.edits, edit)
                row = self.row(one.case, made)
                if row is None or row.ids.tobytes() in seen:
                    continue
                seen.add(row.ids.tobytes())
                yield EditState(row, made)
                left -= 1
                if not left:
                    break

    def row(self, case: Case, edits: Sequence[Edit]) -> Row | None:
        """The text after some edits as the model reads it; None: not at all, or a tagger's with other words."""
        reading = self.run.read(Example(edited(case.text, edits)))
        same = not self.run.tagging or (len(reading.tokens) == len(case.reading.spans) and not reading.unread)
        return reading.row if reading.tokens and same else None

    def _swaps(self, searches: Sequence[EditSearch]) -> dict[int, list[EditState]]:
        """The texts after one more swap, by the state that it is made in."""
        guide = self.guide
        assert guide is not None
        pairs = [(one, state) for one in searches for state in one.beam]
        cases = [self._current(one.case, state) for one, state in pairs]
        states = [State(case.row) for case in cases]
        proposed, _ = guide(states, cases)
        made = swapped(self.run, guide, cases, states, proposed)
        found: dict[int, list[EditState]] = {}
        for (one, state), case, of_state, spent in zip(pairs, cases, made, guide.spent(), strict=True):
            one.passes += spent
            edits = [(after.row, self._swap(one.case, state, case, after)) for after in of_state]
            found[id(state)] = [EditState(row, (*state.edits, edit)) for row, edit in edits]
        return found

    def _current(self, case: Case, state: EditState) -> Case:
        """The text after the edits so far as a case of its own, in which words that were edited stay as they are."""
        reading = self.run.read(Example(edited(case.text, state.edits)))
        free = [original(state.edits, *span) is not None for span in reading.spans]
        open = self.proposer.open(reading, case.target)
        if self.guide is not None:
            open &= self.guide.open(reading)
        return replace(case, reading=reading, open=open & np.array(free, dtype=bool))

    def _swap(self, case: Case, state: EditState, current: Case, after: State) -> Edit:
        """A swap in the current text as an edit of the first text."""
        (swap,) = after.swaps
        place, text = current.place(swap.position), text_with(self.run, current, after.swaps)
        where = original(state.edits, place.start, place.end)
        assert where is not None
        new = text[place.start : len(text) - (len(current.text) - place.end)]
        judged = case if self.run.tagging else current  # corrections are those of the first text
        return Edit("swap", *where, new, *self.goal.sense(judged, swap))


def _margin(case: Case, row: Row, logits: np.ndarray) -> float:
    return case.target.margin(of_words(logits, row))


def original(edits: Sequence[Edit], start: int, end: int) -> tuple[int, int] | None:
    """Where characters of an edited text stood in the first text; None where one of them was put in."""
    longer = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        from_, to = edit.start + longer, edit.start + longer + len(edit.new)  # in the edited text
        if end <= from_:
            break
        if start < to:
            return None
        longer += len(edit.new) - (edit.end - edit.start)
    return start - longer, end - longer
