"""The search for words to swap, round by round over many texts at once."""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import filterfalse, islice

from wordward.attack.beam import Attempt, Search, advance
from wordward.attack.cases import Case, Replacement, State, SwapGuide
from wordward.attack.fluency import LEAST, Fluency
from wordward.attack.half_precision import SearchModel
from wordward.attack.retokenizing import swapped_rows, text_with
from wordward.explain.swaps import keeps_articles
from wordward.perturbation.modes import evaluating
from wordward.runs.run import Run


def search(scorer: SearchModel, cases: Sequence[Case], guide: SwapGuide) -> list[Search]:
    """Swap words of all texts, a swap a round, until each prediction changes or no swap is left."""
    searches = [Search(case, [State(case.row)], over=not case.open.any()) for case in cases]
    run, settings = scorer.run, guide.settings
    with evaluating(run.model):
        # The paper makes its one swap whatever its effect; of several, one must help.
        advance(scorer, searches, partial(_tries, run, guide), beam=settings.beam, anyway=settings.rescore == 1)
    return searches


def _tries(run: Run, guide: SwapGuide, searches: Sequence[Search]) -> list[Attempt]:
    """One more swap in each text: the best of those that the guide proposes."""
    numbers, states = zip(*((at, state) for at, one in enumerate(searches) for state in one.beam), strict=True)
    cases = [searches[number].case for number in numbers]
    swaps, margins, spent_of = guide(states, cases)
    made = swapped(run, guide, cases, states, swaps)
    for number, spent in zip(numbers, spent_of, strict=True):
        searches[number].passes += spent
    return [Attempt(at, new, margin) for at, of, margin in zip(numbers, made, margins, strict=True) for new in of]


def swapped(
    run: Run,
    guide: SwapGuide,
    cases: Sequence[Case],
    states: Sequence[State],
    proposed: Sequence[Iterable[Replacement]],
) -> list[list[State]]:
    """The texts that the model is to score: each state after some of the swaps that a guide proposed for it."""
    if guide.fitting:
        pairs = zip(cases, proposed, strict=True)
        proposed = [filter(partial(_fits, run, case), swaps) for case, swaps in pairs]  # as far as they are looked at
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
    swaps: Sequence[Iterable[Replacement]],
    count: int | None,
) -> list[list[State]]:
    """Of each state the texts after the first `count` of its swaps that the tokenizer reads back as the words put in.

    The texts of all states are read together.
    """
    left = [
        filterfalse(case.target.never.__contains__, of_state) for case, of_state in zip(cases, swaps, strict=True)
    ]
    found: list[list[State]] = [[] for _ in states]
    searching = list(range(len(states)))
    while searching:
        tried = [
            (at, (*states[at].made, swap))
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
        (text_with(run, case, state.made), text_with(run, case, one.made))
        for case, state, of_state in zip(cases, states, made, strict=True)
        for one in of_state
    ]
    ratios = iter(fluency(pairs))
    return [[one for one in of_state if next(ratios) >= LEAST][:count] for of_state in made]
