"""Whether a tokenizer reads a word that is swapped in as that word; only around the swap, where that is enough."""

from collections.abc import Sequence
from typing import NamedTuple

from wordward.attack.cases import Case, Replacement, State
from wordward.explain.swaps import apply, written
from wordward.runs.reading import Row
from wordward.runs.run import Run
from wordward.text.tokenizers import BREAK


class Stretch(NamedTuple):
    """What stands between two blanks of a text around a word that is swapped."""

    old: str  # all of it
    new: str  # all of it after the swap
    before: str  # of it, what stands before the word
    after: str  # and behind it


def text_with(run: Run, case: Case, swaps: Sequence[Replacement]) -> str:
    """The text of a case after some swaps."""
    words = [(case.place(at), run.vocabulary.word(word)) for at, word in swaps]
    return apply(case.text, words, lowercase=run.text.lowercase)


def swapped_rows(
    run: Run, cases: Sequence[Case], states: Sequence[State], made: Sequence[tuple[Replacement, ...]]
) -> list[Row | None]:
    """The row of each state after the last of some swaps; None where the new text is read as other ids."""
    stretches = [_stretch(run, case, swaps) for case, swaps in zip(cases, made, strict=True)]
    parts = list({part: None for stretch in stretches if stretch is not None for part in stretch})
    read = run.ids_alone(parts) if parts else None
    ids = {} if read is None else dict(zip(parts, read, strict=True))
    rows: list[Row | None] = [None] * len(made)
    unsure = []
    for at, (stretch, state, swaps) in enumerate(zip(stretches, states, made, strict=True)):
        position, word = swaps[-1]
        own = state.row.ids[state.row.word == position].tolist()
        # A text that becomes shorter is read further where it was cut.
        as_long = len(own) == 1 or not cases[at].reading.unread
        if stretch is not None and ids and as_long and _reads_as(stretch, ids, own, word):
            rows[at] = state.row.swapped(position, word)
        else:
            unsure.append(at)
    asked = [(states[at].row, *made[at][-1], text_with(run, cases[at], made[at])) for at in unsure]
    for at, row in zip(unsure, run.swapped_rows(asked) if asked else [], strict=True):
        rows[at] = row
    return rows


def _stretch(run: Run, case: Case, swaps: Sequence[Replacement]) -> Stretch | None:
    """What stands around the last of some swaps; None where what is around that may matter, too."""
    (*others, (position, word)), text = swaps, case.text
    place = case.place(position)
    start, end = text.rfind(" ", 0, place.start) + 1, text.find(" ", place.end)
    end = len(text) if end < 0 else end
    if any(start <= case.reading.spans[other][0] < end for other, _ in others):
        return None
    new = written(text, place, run.vocabulary.word(word), lowercase=run.text.lowercase)
    before, after = text[start : place.start], text[place.end : end]
    stretch = Stretch(text[start:end], before + new + after, before, after)
    broken = BREAK in stretch.new or (
        BREAK in text and (BREAK in stretch.old or text[:start].rstrip().endswith(BREAK))
    )
    return None if broken else stretch


def _reads_as(stretch: Stretch, ids: dict[str, list[int]], own: list[int], word: int) -> bool:
    """Whether a stretch is read as before with the ids of a word replaced by one, and was read with these."""
    old, new, before, after = (ids[part] for part in stretch)
    return old == [*before, *own, *after] and new == [*before, word, *after]
