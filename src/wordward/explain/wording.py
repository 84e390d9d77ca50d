"""Wording shared by all renderings of an explanation."""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from wordward.explain.explanation import Explanation, Place
from wordward.perturbation.recipes import RECIPES
from wordward.support.errors import SettingError

TITLES = {"advt": "AdvT", "vat": "VAT", "iadvt": "iAdvT", "ivat": "iVAT", "random-kl": "Random (KL)"}
TITLES |= {"pgd": "PGD", "freelb": "FreeLB", "smart": "SMART"}
SCALE = "numbers: strength of a pull, relative to the text's strongest"
UNKNOWN = "not in the vocabulary"
MARKED, MARKS = 0.5, 3  # relative strength from which a pull is marked in its sentence, and how many at most
LABELS = 3  # of a classifier that are named, the likeliest


@dataclass(frozen=True)
class Row:
    """One word of a text, as each of several explanations sees it."""

    word: str
    start: int
    places: tuple[Place | None, ...]  # None where that model does not read the word

    @property
    def end(self) -> int:
        """The character after its last."""
        return self.start + len(self.word)

    @property
    def strongest(self) -> float:
        """The largest relative strength at this word."""
        return max((place.pulls[0].relative for place in self.places if place and place.pulls), default=0.0)


def rows_of(explanations: Sequence[Explanation]) -> list[Row]:
    """The words of one text side by side, in the order of the text."""
    if not explanations:
        raise SettingError("explanations", "expected an explanation or more; got none")
    if len({e.text for e in explanations}) > 1 or len({e.task for e in explanations}) > 1:
        raise SettingError(
            "explanations", "explanations side by side are of one text and one task: show others one by one"
        )
    spans: dict[tuple[int, int], list[Place | None]] = {}
    for number, explanation in enumerate(explanations):
        for place in explanation.places:
            spans.setdefault((place.start, place.end), [None] * len(explanations))[number] = place
    text = explanations[0].text
    return [Row(text[start:end], start, tuple(spans[start, end])) for start, end in sorted(spans)]


def excerpt(rows: Sequence[Row], limit: int) -> tuple[int, int]:
    """From where to where to show a long text: `limit` words on end around its strongest pull, with most others."""
    if len(rows) <= limit:
        return 0, len(rows)
    weights = [row.strongest for row in rows]
    peak = max(range(len(rows)), key=weights.__getitem__)
    low, high = max(0, peak - limit + 1), min(peak, len(rows) - limit)
    middle = peak - limit // 2  # among equals the one that has the strongest pull in the middle
    starts = range(low, high + 1)
    best = max(
        starts, key=lambda start: (round(sum(weights[start : start + limit]), 6), -abs(start - middle))
    )
    return best, best + limit


@dataclass(frozen=True)
class Part:
    """The part of a text that is shown."""

    rows: Sequence[Row]
    start: int  # its characters in the text
    end: int
    before: bool  # whether there is text before it
    after: bool
    note: str  # how many words are left out, or not read, or that none is known

    @property
    def has_unknown(self) -> bool:
        """Whether a word that is shown is not in the vocabulary."""
        return any(place and not place.known for row in self.rows for place in row.places)


def part_of(explanations: Sequence[Explanation], limit: int) -> Part:
    """The whole text, or of a long one `limit` words around its strongest pull."""
    rows = rows_of(explanations)
    first, last = excerpt(rows, limit)
    text, unread = explanations[0].text, max(e.unread for e in explanations)
    before, after = first > 0, last < len(rows) or unread > 0
    start, end = rows[first].start if before else 0, rows[last - 1].end if after and rows else len(text)
    counts = {"before": first, "after": len(rows) - last}
    notes = [f"{_words(count)} {where} left out" for where, count in counts.items() if count]
    if unread:
        notes.append(f"{_words(unread)} at the end not read")
    if rows and not any(place and place.known for row in rows for place in row.places):
        notes.append("no word of this text is in the vocabulary")
    return Part(rows[first:last], start, end, before, after, "; ".join(notes))


def marked(explanation: Explanation) -> list[Place]:
    """The places whose pull is worth a mark in the sentence, in the order of the text."""
    pulled = [place for place in explanation.places if place.pulls and place.pulls[0].relative >= MARKED]
    strongest = sorted(pulled, key=lambda place: -place.pulls[0].strength)[:MARKS]
    return sorted(strongest, key=lambda place: place.start)


def title(method: str) -> str:
    """A method's name as people write it."""
    name, _, choice = method.partition("-")
    if method in TITLES or name not in TITLES:
        return TITLES.get(method, method.capitalize())
    return f"{TITLES[name]}-{choice.capitalize()}"


def headings(explanations: Sequence[Explanation]) -> list[str]:
    """What tells each explanation from the others: its method, its model, or both."""
    methods = [title(e.method) for e in explanations]
    if len({e.model for e in explanations}) == 1:
        return methods
    if len(set(methods)) == 1:
        return [e.model for e in explanations]
    return [f"{e.model}, {method}" for e, method in zip(explanations, methods, strict=True)]


def question(explanation: Explanation) -> str:
    """What the pulls are an answer to."""
    e, recipe = explanation, RECIPES.get(explanation.method)
    if recipe is not None and not recipe.follows_gradient:
        return "words in a direction drawn at random"
    whose = "the prediction" if e.task == "classify" else "all tags"
    if e.task == "tag" and e.focus is not None:
        word = next((f" of “{place.word}”" for place in e.places if place.position == e.focus), "")
        whose = f"the tag{word}"
    if recipe is not None and recipe.objective == "kl":
        return f"words that would change {whose}"
    known = "given" if e.given else "predicted"
    if e.task == "classify":
        return f"words that make {e.label or 'it'} less likely (the {known} label)"
    return f"words that make {whose} less likely (as {known}{f': {e.label}' if e.label else ''})"


def percent(share: float) -> str:
    """A probability for display, never rounded to 0 % or 100 %."""
    if 0 < share < 0.001:
        return "<0.1 %"
    if 0.999 < share < 1:
        return ">99.9 %"
    return f"{100 * share:.0f} %" if share in (0, 1) else f"{100 * share:.1f} %"


def much(relative: float) -> str:
    """A relative strength with two digits, never rounded to zero."""
    return "<0.01" if 0 < relative < 0.005 else f"{relative:.2f}"


def likeliest(explanation: Explanation) -> tuple[list[tuple[str, float]], int]:
    """The most likely labels, and how many others there are; a single other is named too."""
    ranked = sorted(explanation.probabilities.items(), key=lambda item: -item[1])
    named = len(ranked) if len(ranked) <= LABELS + 1 else LABELS
    return ranked[:named], len(ranked) - named


def tags_of(explanation: Explanation) -> list[tuple[str, str]]:
    """A tagger's tags and how many words have each, the most frequent first."""
    counts = Counter(place.label for place in explanation.places if place.label is not None)
    return [(tag, _words(count)) for tag, count in counts.most_common()]


def predicted(explanation: Explanation) -> str:
    """What the model says, in a line."""
    ranked, others = likeliest(explanation)
    parts = [f"{label} {percent(chance)}" for label, chance in ranked]
    parts += [f"and {others} more"] if others else []
    parts += [f"{tag}: {times}" for tag, times in tags_of(explanation)]
    parts += [f"(model {explanation.model})"] if explanation.model else []
    return "   ".join(parts)


def plain(text: str, *, keep: str = "") -> str:
    """A text without line breaks and without the characters that steer a terminal."""
    steering = ("Cc", "Zl", "Zp", "Cs")  # the last are halves of characters, which no file can hold
    return "".join(" " if unicodedata.category(c) in steering and c not in keep else c for c in text)


def _words(count: int) -> str:
    return f"{count:,} word{'s' * (count != 1)}"
