"""A beam search over many texts at once, a step a round: what the searches for swaps and for edits have in common."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from wordward.attack.cases import Case, State, of_words
from wordward.attack.half_precision import SearchModel
from wordward.support.device import attention, searching

UNSURE = {"cuda": 0.01}  # how far a device's products may be wrong about a margin


class Attempt(NamedTuple):
    """A text after one more step, still to be scored by the model."""

    text: int  # the number of its text
    state: State
    before: float  # the margin of the text it was made of

    @property
    def key(self) -> tuple[int, bytes]:
        """The text and what the model reads of it."""
        return self.text, self.state.row.ids.tobytes()


@dataclass
class Search:
    """The state of the search on one text."""

    case: Case
    beam: list[State]  # the best first
    passes: int = 0  # texts that the model read for it
    tried: int = 0  # of them, the text with an edit
    over: bool = False

    def order(self, state: State, unsure: float) -> Any:
        """What makes a state good, the least first, where a margin may be wrong by so much."""
        return state.margin

    def note(self, state: State, *, flips: bool) -> None:
        """Take note of a text that was read."""

    def keep(self, states: list[State], beam: int, unsure: float = 0.0) -> None:
        """Take the best of a round; where it brought nothing, or no step is left, the search is over."""
        if states:
            changed = [state for state in self.beam if state.made and state.margin < 0]  # though not surely
            unlike: dict[bytes, State] = {}
            for state in sorted([*changed, *states], key=lambda state: self.order(state, unsure)):
                unlike.setdefault(state.row.ids.tobytes(), state)
            self.beam = list(unlike.values())[:beam]
        best = self.beam[0]
        self.over = not states or best.margin < -unsure or len(best.made) >= self.case.most


Tries = Callable[[Sequence[Any]], list[Attempt]]  # of the searches that go on, what to read in this round


def advance(
    scorer: SearchModel, searches: Sequence[Search], tries: Tries, *, beam: int, anyway: bool = False
) -> None:
    """Rounds until every search is over; `anyway`: take a step whatever its effect.

    On a GPU with coarser products: what it ends with is to be predicted again.
    """
    device = scorer.run.device
    with searching(device), attention(device):
        unsure = UNSURE.get(device.type, 0.0)
        while running := [one for one in searches if not one.over]:
            attempts = tries(running)
            rows = {attempt.key: attempt.state.row.ids for attempt in attempts}  # several may be read as the same
            logits = dict(zip(rows, scorer.logits(list(rows.values())), strict=True))
            for number, _ in rows:
                running[number].passes += 1
                running[number].tried += 1
            kept: list[list[State]] = [[] for _ in running]
            for attempt in attempts:
                one, state = running[attempt.text], attempt.state
                margin = one.case.target.margin(of_words(logits[attempt.key], state.row))
                one.note(state, flips=margin < -unsure)
                if anyway or margin < attempt.before:
                    kept[attempt.text].append(State(state.row, state.made, margin))
            for one, states in zip(running, kept, strict=True):
                one.keep(states, beam, unsure)
