"""A beam search over many texts at once, a step a round: what the searches for swaps and for edits have in common."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from wordward.attack.cases import Case, State, of_words
from wordward.runs.pieces import LogitsModel
from wordward.runs.run import Run
from wordward.runs.scoring import logits_of
from wordward.support.device import attention, searching

UNSURE = {"cuda": 0.01}  # how far a device's products may be wrong about a margin
ROOM = 4  # a copy of a model takes no more than this part of the memory that is left


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


def advance(run: Run, searches: Sequence[Search], tries: Tries, *, beam: int, anyway: bool = False) -> None:
    """Rounds until every search is over; `anyway`: take a step whatever its effect.

    On a GPU with coarser products: what it ends with is to be predicted again.
    """
    with searching(run.device), attention(run.device):
        copy, unsure = rough(run.model, run.device), UNSURE.get(run.device.type, 0.0)
        while running := [one for one in searches if not one.over]:
            attempts = tries(running)
            rows = {attempt.key: attempt.state.row.ids for attempt in attempts}  # several may be read as the same
            logits = dict(zip(rows, read(run, list(rows.values()), copy), strict=True))
            for number, _ in rows:
                running[number].passes += 1
                running[number].tried += 1
            kept: list[list[State]] = [[] for _ in running]
            for attempt in attempts:
                one, state = running[attempt.text], attempt.state
                margin = one.case.target.margin(of_words(logits[attempt.key], state.row))
                one.note(state, flips=margin < -unsure)
                if anyway or margin < attempt.before:
                    kept[attempt.text].append(replace(state, margin=margin))
            for one, states in zip(running, kept, strict=True):
                one.keep(states, beam, unsure)


def rough(model: nn.Module, device: torch.device) -> nn.Module | None:
    """A copy of a Transformer in half precision, which a GPU computes faster; None if there is no room, or no gain.

    Other models may compute with numbers of their own in single precision.
    """
    if device.type != "cuda" or not isinstance(model, LogitsModel):
        return None
    weights = list(model.parameters())
    single, half = all(each.dtype == torch.float32 for each in weights), 2 * sum(each.numel() for each in weights)
    return deepcopy(model).half() if single and ROOM * half < torch.cuda.mem_get_info(device)[0] else None


def read(run: Run, rows: Sequence[np.ndarray], copy: nn.Module | None = None) -> list[np.ndarray]:
    """The model's logits of each row in its own order, (classes,) or (time, classes), or a copy's if finite."""
    logits = logits_of(copy or run.model, run.corpus(rows), run.device)
    if copy and not all(np.isfinite(each).all() for each in logits):  # numbers were too large for it
        return read(run, rows)
    return logits
