"""The search for edits of any kinds, round by round over many texts at once; swaps alone are searched in `search`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from wordward.attack.attacked import distance
from wordward.attack.beam import Attempt, Search, advance
from wordward.attack.cases import Case, State, SwapGuide, of_words, open_words
from wordward.attack.edits import Edit, edited, goes_with
from wordward.attack.goal import Goal
from wordward.attack.half_precision import SearchModel
from wordward.attack.proposals import Proposer
from wordward.attack.retokenizing import text_with
from wordward.attack.search import swapped
from wordward.config.attack import AttackSettings
from wordward.datasets import Example
from wordward.perturbation.modes import evaluating
from wordward.runs.reading import Row

AT_ONCE = 1 << 24  # characters of texts that are read to find out what matters in them


@dataclass
class EditSearch(Search):
    """The state of the search on one text."""

    proposed: dict[str, list[Edit]] = field(default_factory=dict)  # by kind, the most promising first
    alone: set[str] = field(default_factory=set)  # kinds one edit of which flips the text

    @property
    def text(self) -> str:
        """The text after the best edits."""
        return edited(self.case.text, self.beam[0].made)

    def note(self, state: State, *, flips: bool) -> None:
        """Which kinds flip the text by one edit."""
        if flips and len(state.made) == 1:
            self.alone.add(state.made[0].kind)

    def order(self, state: State, unsure: float) -> tuple[float, float, int]:
        """What makes a state good, the least first: of those that surely flip the text, how few characters they
        change; then how near the others are to flipping it."""
        cost = sum(distance(self.case.text[edit.start : edit.end], edit.new) for edit in state.made)
        return (cost if state.margin < -unsure else np.inf), state.margin, cost


class Editor:
    """Makes edits of the kinds of the settings; `guide` proposes the swaps among them."""

    def __init__(self, scorer: SearchModel, settings: AttackSettings, goal: Goal, guide: SwapGuide | None) -> None:
        self.scorer, self.settings, self.goal, self.guide = scorer, settings, goal, guide
        self.run = scorer.run
        self.kinds = tuple(kind for kind in settings.edits if kind != "swap")

    @cached_property
    def proposer(self) -> Proposer:
        """Which edits are tried first."""
        return Proposer(self.run, self.settings, self.goal)

    def __call__(self, cases: Sequence[Case]) -> list[EditSearch]:
        """Edit all texts, an edit a round, until each prediction changes or no edit is left."""
        with evaluating(self.run.model):
            rows = self.run.logits([case.row.ids for case in cases])
            searches = [
                EditSearch(case, [State(case.row, margin=_margin(case, case.row, logits))], 1, over=case.most < 1)
                for case, logits in zip(cases, rows, strict=True)
            ]
            self._propose([one for one in searches if not one.over])
            advance(self.scorer, searches, self._tries, beam=self.settings.beam)
        return searches

    def _propose(self, searches: Sequence[EditSearch]) -> None:
        """Which edits of each kind are tried first: the model reads each text without each word, and with others."""
        probed = ((one, probe) for one in searches for probe in self.proposer.probes(one.case))
        margins: dict[int, dict[Edit, float]] = {id(one): {} for one in searches}
        for part in _parts(probed):
            rows = self.run.rows_of([edited(one.case.text, [probe]) for one, probe in part], known=True)
            logits = iter(self.run.logits([row for row in rows if row is not None]))
            for (one, probe), row in zip(part, rows, strict=True):
                if row is not None:
                    one.passes += 1
                    margins[id(one)][probe] = one.case.target.margin(next(logits))
        for one in searches:
            one.proposed = self.proposer(one.case, margins[id(one)])

    def _tries(self, searches: Sequence[EditSearch]) -> list[Attempt]:
        """One more edit in each text, some of each kind."""
        swaps = self._swaps(searches) if self.guide is not None else {}
        return [
            Attempt(number, made, state.margin)
            for number, one in enumerate(searches)
            for state in one.beam
            for made in [*swaps.get(id(state), ()), *self._edits(one, state)]
        ]

    def _edits(self, one: EditSearch, state: State) -> Iterator[State]:
        """The text after one more edit, some of each kind: those that the model reads as others than before."""
        for kind in self.kinds:
            seen, left = {state.row.ids.tobytes()}, self.settings.rescore
            for edit in one.proposed[kind]:
                if not goes_with(edit, state.made):
                    continue
                made = (*state.made, edit)
                row = self.row(one.case, made)
                if row is None or row.ids.tobytes() in seen:
                    continue
                seen.add(row.ids.tobytes())
                yield State(row, made)
                left -= 1
                if not left:
                    break

    def row(self, case: Case, edits: Sequence[Edit]) -> Row | None:
        """The text after some edits as the model reads it; None: not at all, or a tagger's with other words."""
        reading = self.run.read(Example(edited(case.text, edits)))
        if not reading.tokens or self.run.problem(reading) is not None:
            return None
        return reading.row if not self.run.tagging or len(reading.tokens) == len(case.reading.spans) else None

    def _swaps(self, searches: Sequence[EditSearch]) -> dict[int, list[State]]:
        """The texts after one more swap, by the state that it is made in."""
        guide = self.guide
        assert guide is not None
        pairs = [(one, state) for one in searches for state in one.beam]
        cases = [self._current(one.case, state) for one, state in pairs]
        states = [State(case.row) for case in cases]
        swaps, _, spent_of = guide(states, cases)
        made = swapped(self.run, guide, cases, states, swaps)
        found: dict[int, list[State]] = {}
        for (one, state), case, of_state, spent in zip(pairs, cases, made, spent_of, strict=True):
            one.passes += spent
            found[id(state)] = [
                State(after.row, (*state.made, self._swap(one.case, state, case, after))) for after in of_state
            ]
        return found

    def _current(self, case: Case, state: State) -> Case:
        """The text after the edits so far as a case of its own, in which words that were edited stay as they are."""
        reading = self.run.read(Example(edited(case.text, state.made)))
        free = [original(state.made, *span) is not None for span in reading.spans]
        open = open_words(reading, case.target, self.proposer.kept)
        if self.guide is not None:
            open &= self.guide.open(reading)
        return replace(case, reading=reading, open=open & np.array(free, dtype=bool))

    def _swap(self, case: Case, state: State, current: Case, after: State) -> Edit:
        """A swap in the current text as an edit of the first text."""
        (swap,) = after.made
        place, text = current.place(swap.position), text_with(self.run, current, after.made)
        where = original(state.made, place.start, place.end)
        assert where is not None
        new = text[place.start : len(text) - (len(current.text) - place.end)]
        judged = case if self.run.tagging else current  # corrections are those of the first text
        return Edit("swap", *where, new, *self.goal.sense(judged, swap))


def _parts(probed: Iterable[tuple[EditSearch, Edit]]) -> Iterator[list[tuple[EditSearch, Edit]]]:
    """Some at a time: of a long text there are as many copies as it has words."""
    part, size = [], 0
    for one, probe in probed:
        part.append((one, probe))
        size += len(one.case.text)
        if size >= AT_ONCE:
            yield part
            part, size = [], 0
    if part:
        yield part


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
