"""The search for words to swap, round by round over many texts at once."""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from wordward.attack.cases import Case, Replacement, State, SwapGuide, of_words
from wordward.attack.fluency import LEAST, Fluency
from wordward.attack.rereading import swapped_rows, text_with
from wordward.explain.swaps import keeps_articles
from wordward.perturbation.tap import evaluating
from wordward.runs.pieces import LogitsModel
from wordward.runs.run import Run
from wordward.runs.scoring import logits_of
from wordward.support.device import attention, searching

UNSURE = {"cuda": 0.01}  # how far a device's products may be wrong about a margin
ROOM = 4  # a copy of a model takes no more than this part of the memory that is left


@dataclass
class TextSearch:
    """The state of the search on one text."""

    case: Case
    beam: list[State]  # the best first
    passes: int = 0  # texts that the model read for it
    over: bool = False

    def keep(self, states: list[State], beam: int, unsure: float = 0.0) -> None:
        """Take the best of a round; where it brought nothing, or no swap is left, the search is over."""
        if states:
            changed = [state for state in self.beam if state.margin < 0]  # though not surely
            self.beam = sorted([*changed, *states], key=lambda state: state.margin)[:beam]
        best = self.beam[0]
        self.over = not states or best.margin < -unsure or len(best.swaps) >= self.case.most


class Attempt(NamedTuple):
    """A text with one more swap, still to be scored by the model."""

    text: int  # the number of its text
    state: State
    before: float  # the margin of the text it was made of


def search(run: Run, cases: Sequence[Case], guide: SwapGuide) -> list[TextSearch]:
    """Swap words of all texts, a swap a round, until each prediction changes or no swap is left.

    On a GPU with coarser products: what it ends with is to be predicted again.
    """
    searches = [TextSearch(case, [State(case.row)], over=not case.open.any()) for case in cases]
    with evaluating(run.model), searching(run.device), attention(run.device):
        copy = rough(run.model, run.device)
        while running := [one for one in searches if not one.over]:
            _round(run, copy, running, guide)
    return searches


def _round(run: Run, copy: nn.Module | None, searches: Sequence[TextSearch], guide: SwapGuide) -> None:
    """One more swap in each text: the guide proposes some, the model scores the best, and the best is made."""
    settings = guide.settings
    states = [(number, state) for number, one in enumerate(searches) for state in one.beam]
    proposed, margins = guide([state for _, state in states], [searches[number].case for number, _ in states])
    attempts: list[Attempt] = []
    known: set[tuple[int, bytes]] = set()  # two texts of a beam may lead to the same one
    cases = [searches[number].case for number, _ in states]
    swapped_texts = swapped(run, guide, cases, [state for _, state in states], proposed)
    for (number, _), made, margin, spent in zip(states, swapped_texts, margins, guide.spent(), strict=True):
        searches[number].passes += spent
        for after in made:
            if (key := (number, after.row.ids.tobytes())) not in known:
                known.add(key)
                attempts.append(Attempt(number, after, margin))
    kept: list[list[State]] = [[] for _ in searches]
    all_logits = read(run, [attempt.state.row.ids for attempt in attempts], copy)
    for (number, after, before), logits in zip(attempts, all_logits, strict=True):
        searches[number].passes += 1
        margin = searches[number].case.target.margin(of_words(logits, after.row))
        # The paper makes its one swap whatever its effect; of several, one must help.
        if settings.rescore == 1 or margin < before:
            kept[number].append(replace(after, margin=margin))
    for one, states in zip(searches, kept, strict=True):
        one.keep(states, settings.beam, UNSURE.get(run.device.type, 0.0))


def swapped(
    run: Run,
    guide: SwapGuide,
    cases: Sequence[Case],
    states: Sequence[State],
    proposed: Sequence[Sequence[Replacement]],
) -> list[list[State]]:
    """The texts that the model is to score: each state after some of the swaps that a guide proposed for it."""
    if guide.fitting:
        pairs = zip(cases, proposed, strict=True)
        proposed = [[swap for swap in swaps if _fits(run, case, swap)] for case, swaps in pairs]
    count = guide.settings.rescore
    if guide.fluency is None:
        return survivors(run, cases, states, proposed, count)
    return fluent(run, guide.fluency, cases, states, survivors(run, cases, states, proposed, None), count)


def _fits(run: Run, case: Case, swap: Replacement) -> bool:
    """Whether a word fits behind what stands before it in the text, as far as an article tells."""
    return keeps_articles(case.text, case.place(swap.position), run.vocabulary.word(swap.word))


def survivors(
    run: Run,
    cases: Sequence[Case],
    states: Sequence[State],
    swaps: Sequence[Sequence[Replacement]],
    count: int | None,
) -> list[list[State]]:
    """Of each state the texts after the first `count` of its swaps that the tokenizer reads back as the words put in.

    The texts of all states are read together.
    """
    left = [
        iter([swap for swap in of_state if swap not in case.target.never])
        for case, of_state in zip(cases, swaps, strict=True)
    ]
    found: list[list[State]] = [[] for _ in states]
    searching = list(range(len(states)))
    while searching:
        tried = [
            (at, (*states[at].swaps, swap))
            for at in searching
            for swap in islice(left[at], None if count is None else count - len(found[at]))
        ]
        numbers = [at for at, _ in tried]
        rows = swapped_rows(
            run, [cases[at] for at in numbers], [states[at] for at in numbers], [made for _, made in tried]
        )
        for (at, made), row in zip(tried, rows, strict=True):
            if row is not None:
                found[at].append(State(row, made))
        more = {at for at, _ in tried if count is not None and len(found[at]) < count}
        searching = sorted(more)
    return found


def fluent(
    run: Run,
    fluency: Fluency,
    cases: Sequence[Case],
    states: Sequence[State],
    swapped: Sequence[Iterable[State]],
    count: int,
) -> list[list[State]]:
    """Of the texts made of each state the first `count` that are about as probable as the text they were made of."""
    made = [list(of_state) for of_state in swapped]
    pairs = [
        (text_with(run, case, state.swaps), text_with(run, case, one.swaps))
        for case, state, of_state in zip(cases, states, made, strict=True)
        for one in of_state
    ]
    ratios = iter(fluency(pairs))
    return [[one for one in of_state if next(ratios) >= LEAST][:count] for of_state in made]


def rough(model: nn.Module, device: torch.device) -> nn.Module | None:
    """A copy of a Transformer in half precision, which a GPU computes faster; None if there is no room, or no gain.

    Other models may compute with numbers of their own in single precision.
    """
    weights = sum(weight.numel() for weight in model.parameters())
    single = all(weight.dtype == torch.float32 for weight in model.parameters())
    if device.type != "cuda" or not (single and isinstance(model, LogitsModel)):
        return None
    return deepcopy(model).half() if ROOM * 2 * weights < torch.cuda.mem_get_info(device)[0] else None


def read(run: Run, rows: Sequence[np.ndarray], copy: nn.Module | None = None) -> list[np.ndarray]:
    """The model's logits of each row in its own order, (classes,) or (time, classes), or a copy's if finite."""
    logits = logits_of(copy or run.model, run.corpus(rows), run.device)
    if copy and not all(np.isfinite(each).all() for each in logits):  # numbers were too large for it
        return read(run, rows)
    return logits
