"""Entities that tags mark (B-PER I-PER O, also with E- and S-): found in tags, and scored by exact spans."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from wordward.runs.metrics import ClassScores, PrecisionRecallF, f_of_counts, scores_of_counts

_TAG = re.compile(r"(O)|([BIESLU])(?:-(.+))?")
UNNAMED = "entity"  # the type of tags that name none: B, I, O


class Span(NamedTuple):
    """Words from `start` to `end`, both included, that are an entity of some type."""

    kind: str
    start: int
    end: int


def mark_entities(tags: Iterable[str]) -> bool:
    """Whether these are all tags of entities: O, and B-PER, I-PER and the like, or B and I alone."""
    found = {tag: _TAG.fullmatch(tag) for tag in tags}
    if "O" not in found or not all(found.values()):
        return False
    kinds = [match[3] for tag, match in found.items() if match and tag != "O"]
    if None in kinds:  # a few letters by themselves may mean anything
        return set(kinds) == {None} and {"B", "I"} <= found.keys()
    return bool(kinds)


def spans(tags: Sequence[str]) -> list[Span]:
    """The entities of a sentence, as conlleval and seqeval find them.

    An entity begins with B- or S- (U-), after O, after E- (L-) or S-, and where the type changes, whatever the tags
    say; so tags that the scheme forbids, such as I- after O, count as they are most likely meant.
    """
    found: list[Span] = []
    before, kind = "O", ""
    for at, tag in enumerate(tags):
        match = _TAG.fullmatch(tag)
        place, now = ("O", "") if match is None or match[1] else (match[2], match[3] or UNNAMED)
        if place != "O":
            begins = place in "BSU" or before in "OELSU" or now != kind
            found.append(Span(now, at, at) if begins else Span(now, found.pop().start, at))
        before, kind = place, now
    return found


Sentences = Sequence[Sequence[str]]


def entity_scores(gold: Sentences, predicted: Sentences, *, resamples: int = 1000) -> PrecisionRecallF:
    """Precision, recall and F1 of exact spans over all types, with bootstrap intervals over sentences."""
    return f_of_counts([_count(*pair) for pair in zip(gold, predicted, strict=True)], beta=1.0, resamples=resamples)


def by_type(gold: Sentences, predicted: Sentences) -> dict[str, ClassScores]:
    """The scores of each type of entity, by its name."""
    true, said = ([spans(tags) for tags in sentences] for sentences in (gold, predicted))
    kinds = sorted({span.kind for found in (*true, *said) for span in found})
    totals = {kind: [0, 0, 0] for kind in kinds}
    for expected, actual in zip(true, said, strict=True):
        for counted, found in enumerate((set(expected) & set(actual), expected, actual)):
            for span in found:
                totals[span.kind][counted] += 1
    return {kind: scores_of_counts(*counts) for kind, counts in totals.items()}


def _count(gold: Sequence[str], predicted: Sequence[str]) -> tuple[int, int, int]:
    """Entities of a sentence that are in both, in gold, in the prediction."""
    expected, actual = set(spans(gold)), set(spans(predicted))
    return len(expected & actual), len(expected), len(actual)
