"""The search for words to swap, round by round over many texts at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from wordward.attacks.guide import Case, Guide, State, Swap, of_words
from wordward.predict import Run
from wordward.reading import apply
from wordward.tap import evaluating
from wordward.text import small_batches

TEXTS, TOKENS = 256, 1 << 16  # read at a time, at most


@dataclass
class Hunt:
    """The state of the search on one text."""

    case: Case
    beam: list[State]  # the best first
    passes: int = 0  # texts that the model read for it
    over: bool = False

    def keep(self, found: list[State], beam: int) -> None:
        """Take the best of a round; where it brought nothing, or no swap is left, the hunt is over."""
        if found:
            self.beam = sorted(found, key=lambda state: state.margin)[:beam]
        best = self.beam[0]
        self.over = not found or best.margin < 0 or len(best.swaps) >= self.case.most


def search(run: Run, cases: Sequence[Case], guide: Guide) -> list[Hunt]:
    """Swap words of all texts, a swap a round, until each prediction changes or no swap is left."""
    hunts = [Hunt(case, [State(case.row, pieces=case.pieces)], over=not case.open.any()) for case in cases]
    with evaluating(run.model):
        while running := [hunt for hunt in hunts if not hunt.over]:
            _round(run, running, guide)
    return hunts


def _round(run: Run, hunts: Sequence[Hunt], guide: Guide) -> None:
    """One more swap in each text: the guide proposes, the model reads the best, the best of those is made."""
    settings = guide.settings
    states = [(whose, state) for whose, hunt in enumerate(hunts) for state in hunt.beam]
    proposed, margins = guide([state for _, state in states], [hunts[whose].case for whose, _ in states])
    fresh: list[tuple[int, State, float]] = []  # whose, what, and the margin of the text it was made of
    known: set[tuple[int, bytes]] = set()  # two texts of a beam may lead to the same one
    for (whose, state), swaps, margin in zip(states, proposed, margins, strict=True):
        hunts[whose].passes += guide.passes
        for made in _survivors(run, hunts[whose].case, state, swaps, settings.rescore):
            if (key := (whose, made.row.tobytes())) not in known:
                known.add(key)
                fresh.append((whose, made, margin))
    found: list[list[State]] = [[] for _ in hunts]
    for (whose, made, before), logits in zip(
        fresh, read(run, [made.row for _, made, _ in fresh]), strict=True
    ):
        hunts[whose].passes += 1
        margin = hunts[whose].case.target.margin(of_words(logits, made))
        # The paper makes its one swap whatever its effect; of several, one must help.
        if settings.rescore == 1 or margin < before:
            found[whose].append(replace(made, margin=margin))
    for hunt, states_found in zip(hunts, found, strict=True):
        hunt.keep(states_found, settings.beam)


def _survivors(run: Run, case: Case, state: State, swaps: Sequence[Swap], count: int) -> Iterator[State]:
    """The first swaps that, put into the text, are read again as the words they are."""
    for position, word in swaps:
        if (position, word) in case.target.never:
            continue
        made = (*state.swaps, (position, word))
        found = run.swapped((state.row, state.pieces), position, word, put_in(run, case, made))
        if found is not None:
            yield State(found[0], made, pieces=found[1])
            count -= 1
        if not count:
            return


def put_in(run: Run, case: Case, swaps: Sequence[Swap]) -> str:
    """The text of a case with swaps made."""
    return apply(run, case.text, [(case.places[at], run.vocabulary.word(word)) for at, word in swaps])


@torch.no_grad()
def read(run: Run, rows: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The model's logits of each row in its own order, (classes,) or (time, classes)."""
    corpus = run.corpus(rows)
    found: list[np.ndarray] = [np.zeros(0)] * len(rows)
    for index in small_batches(corpus.lengths, TEXTS, TOKENS):
        batch = corpus.batch(index, run.device)
        for at, logits in zip(index, run.model(batch.ids, batch.mask).float().cpu().numpy(), strict=True):
            found[at] = logits if logits.ndim == 1 else logits[: len(rows[at])]
    return found
