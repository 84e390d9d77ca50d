"""The words and numbers of an explanation that the terminal, HTML and the figure share."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from wordward.explain.explanation import Explanation, Place, Pull
from wordward.perturbation.recipes import RECIPES
from wordward.support.errors import SettingError

TITLES = {"advt": "AdvT", "vat": "VAT", "iadvt": "iAdvT", "ivat": "iVAT", "random-kl": "Random (KL)"}
TITLES |= {"pgd": "PGD", "freelb": "FreeLB", "smart": "SMART"}
SCALE = "numbers: strength of a pull, relative to the text's strongest"
BARE = "no number: no word worth showing pulls it"
UNKNOWN = "not in the vocabulary"
MARKED, MARKS = 0.5, 3  # relative strength from which a pull is marked in its sentence, and how many at most
ROUNDED = 1e-6  # what probabilities are rounded to
LITTLE = 0.9  # of its odds, which a label must fall below to have changed
LABELS = 3  # of a classifier that are named, the likeliest


@dataclass(frozen=True)
class Line:
    """A line of a table of explanations: one word of their text, with what each of them says of it."""

    word: str
    start: int
    places: tuple[Place | None, ...]  # one an explanation; None where its model does not read the word

    @property
    def end(self) -> int:
        """Where the word ends in the text."""
        return self.start + len(self.word)

    @property
    def place(self) -> Place:
        """The word as the first model that reads it sees it."""
        return next(place for place in self.places if place)

    @property
    def strongest(self) -> float:
        """The relative strength of the strongest pull on this word; 0 where no word pulls."""
        return max((place.pulls[0].relative for place in self.places if place and place.pulls), default=0.0)


def lines_of(explanations: Sequence[Explanation]) -> list[Line]:
    """A line for each word that any of the models reads, in the order of the text.

    Of a classifier's text none for punctuation that nothing pulls: a tagger's has tags.
    """
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
    lines = [Line(text[start:end], start, tuple(spans[start, end])) for start, end in sorted(spans)]
    if explanations[0].task == "tag":
        return lines
    return [line for line in lines if line.strongest or any(map(str.isalnum, line.word))] or lines


def excerpt(lines: Sequence[Line], limit: int) -> tuple[int, int]:
    """The first line of a long text to show and the one after the last: `limit` lines in a row.

    They hold the text's strongest pull and, of all such stretches, pull most strongly in sum.
    """
    if len(lines) <= limit:
        return 0, len(lines)
    weights = [line.strongest for line in lines]
    peak = max(range(len(lines)), key=weights.__getitem__)
    low, high = max(0, peak - limit + 1), min(peak, len(lines) - limit)
    middle = peak - limit // 2  # among equals the one that has the strongest pull in the middle
    starts = range(low, high + 1)
    best = max(starts, key=lambda start: (round(sum(weights[start : start + limit]), 6), -abs(start - middle)))
    return best, best + limit


@dataclass(frozen=True)
class Part:
    """The part of a text that is shown."""

    lines: Sequence[Line]
    start: int  # its characters in the text
    end: int
    before: bool  # whether there is text before it
    after: bool
    note: str  # how many words are left out, or not read, or that none is known

    @property
    def has_bare(self) -> bool:
        """Whether no pull on a word is shown."""
        return any(place and not place.pulls for line in self.lines for place in line.places)

    @property
    def has_unknown(self) -> bool:
        """Whether a word that is shown is not in the vocabulary."""
        return any(place and not place.known for line in self.lines for place in line.places)


def part_of(explanations: Sequence[Explanation], limit: int) -> Part:
    """The whole text, or of a long one `limit` words around its strongest pull."""
    lines = lines_of(explanations)
    first, last = excerpt(lines, limit)
    text, unread = explanations[0].text, max(e.unread for e in explanations)
    before, after = first > 0, last < len(lines) or unread > 0
    start, end = lines[first].start if before else 0, lines[last - 1].end if after and lines else len(text)
    counts = {"before": first, "after": len(lines) - last}
    notes = [f"{_words(count)} {where} left out" for where, count in counts.items() if count]
    if unread:
        notes.append(f"{_words(unread)} at the end not read")
    if lines and not any(place and place.known for line in lines for place in line.places):
        notes.append("no word of this text is in the vocabulary")
    elif lines and not any(place and place.pulls for line in lines for place in line.places):
        notes.append("nothing pulls: no word may come, or none that may lies where the loss rises")
    return Part(lines[first:last], start, end, before, after, "; ".join(notes))


def marked(explanation: Explanation) -> list[Place]:
    """The few places that are pulled most strongly, to be marked in the text, in its order; none if it is unmoved.

    If the model was asked, only those whose word lowers the odds of the label at least half as much, in log-odds, as
    that of the strongest pull does.
    """
    if unmoved(explanation):
        return []
    pulled = [place for place in explanation.places if place.pulls and place.pulls[0].relative >= MARKED]
    if (asked := _asked(explanation)) is not None:
        least = MARKED * _fall(asked[1], asked[3])
        pulled = [place for place in pulled if _fall(place.pulls[0], asked[3]) >= least]
    strongest = sorted(pulled, key=lambda place: -place.pulls[0].strength)[:MARKS]
    return sorted(strongest, key=lambda place: place.start)


def _fall(pull: Pull, before: float) -> float:
    """By how much the log-odds of a label fall from what they were with a pull; 0 if the model was not asked."""
    after = before if pull.probability is None else pull.probability
    first, last = (min(max(p, ROUNDED), 1 - ROUNDED) for p in (before, after))
    return log(first / (1 - first)) - log(last / (1 - last))


def title(method: str) -> str:
    """A method's name as people write it."""
    name, _, choice = method.partition("-")
    if method in TITLES or name not in TITLES:
        return TITLES.get(method, method.capitalize())
    return f"{TITLES[name]}-{choice.capitalize()}"


def headings(explanations: Sequence[Explanation]) -> list[str]:
    """A heading for each explanation by what differs between them: the method, the model, or both."""
    methods = [title(e.method) for e in explanations]
    if len({e.model for e in explanations}) == 1:
        return methods
    if len(set(methods)) == 1:
        return [e.model for e in explanations]
    return [f"{e.model}, {method}" for e, method in zip(explanations, methods, strict=True)]


def effect(explanation: Explanation) -> str:
    """What the model says with the strongest pull's word put in: great → terrible: good 97.5 % → 4.5 %, so bad.

    Empty where it was not asked; where the odds of the label hardly fall, it says so.
    """
    asked = _asked(explanation)
    if asked is None:
        return ""
    place, pull, label, before = asked
    if unmoved(explanation):
        after = percent(pull.probability or 0.0)
        says = f"stays at {after}"
        if after != percent(before):
            falls = (pull.probability or 0.0) < before
            says = f"falls to {after} at most" if falls else f"does not fall below {percent(before)}"
        return f"{label} {says} with the strongest pulls, one at a time"
    said = f"{place.word} → {pull.toward}: {label} {percent(before)} → {percent(pull.probability or 0.0)}"
    return said + (f", so {pull.prediction}" if pull.prediction != explanation.predicted else "")


def unmoved(explanation: Explanation) -> bool:
    """Whether the model was asked, and no word that it was asked about makes the label much less likely."""
    asked = _asked(explanation)
    if asked is None:
        return False
    _, pull, _, before = asked
    after = pull.probability or 0.0
    return percent(after) == percent(before) or after * (1 - before) > LITTLE * before * (1 - after)


def _asked(explanation: Explanation) -> tuple[Place, Pull, str, float] | None:
    """The strongest pull, if the model was asked about it: place and pull, the label and its probability before."""
    e, place = explanation, explanation.strongest
    label = (e.predicted if e.label is None else e.label) or ""
    if place is None or (pull := place.pull) is None or pull.probability is None or label not in e.probabilities:
        return None
    return place, pull, label, e.probabilities[label]


def question(explanation: Explanation) -> str:
    """What the words shown would do to the prediction, such as: words that make good less likely."""
    e, recipe = explanation, RECIPES.get(explanation.method)
    if recipe is not None and not recipe.follows_gradient:
        return "words in a direction drawn at random"
    whose = "the prediction" if e.task == "classify" else "all tags"
    if e.task == "tag" and e.focus is not None:
        word = next((f" of “{place.word}”" for place in e.places if place.position == e.focus), "")
        whose = f"the tag{word}"
    if recipe is not None and not recipe.needs_labels:
        return f"words that would change {whose}"
    known = "given" if e.given else "predicted"
    if e.task == "classify":
        wrong = f"; the model says {e.predicted}" if e.given and e.predicted not in (None, e.label) else ""
        return f"words that make {e.label or 'it'} less likely (the {known} label{wrong})"
    return f"words that make {whose} less likely (as {known}{f': {e.label}' if e.label else ''})"


def percent(share: float) -> str:
    """A probability for display, never 0 % or 100 %: where it is 0 or 1, it was rounded before."""
    if share < 0.001:
        return "<0.1 %"
    return ">99.9 %" if share > 0.999 else f"{100 * share:.1f} %"


def two_digits(relative: float) -> str:
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
    """The prediction in a line of text: labels with probabilities, or how many words have each tag."""
    ranked, others = likeliest(explanation)
    parts = [f"{label} {percent(probability)}" for label, probability in ranked]
    parts += [f"and {others} more"] if others else []
    parts += [f"{tag}: {words}" for tag, words in tags_of(explanation)]
    parts += [f"(model {explanation.model})"] if explanation.model else []
    return "   ".join(parts)


def _words(count: int) -> str:
    return f"{count:,} word{'s' * (count != 1)}"
