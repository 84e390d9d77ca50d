"""The outcome of an attack on many texts, in numbers and in the most telling texts."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from wordward.attack.attacked import Attacked, Change
from wordward.attack.edit_words import ALIKE, INVISIBLE
from wordward.explain.wording import plain
from wordward.runs.metrics import Interval, share

LOOK_ALIKES = frozenset(ALIKE.values())
AROUND, ON_PAGE = 1000, 90  # characters kept on each side of a change in a long text: in a terminal, on a page


class KindSummary(NamedTuple):
    """What edits of one kind do to a model."""

    made: int  # in the flipped texts
    alone: Interval  # share of the attacked texts that one such edit was found to flip by itself


@dataclass(frozen=True)
class Summary:
    """The numbers of an attack; intervals are Wilson's at 95 %."""

    texts: int
    unreadable: int  # without any word, or longer than a tagger can read
    attacked: int  # whose prediction was right
    flipped: int
    accuracy: Interval | None  # of the model, on the texts it can read; None without true labels
    accuracy_under_attack: Interval | None
    success: Interval | None  # flipped of attacked; None where nothing was attacked
    success_sense_kept: Interval | None  # by swaps all judged to keep the true label; None: none was judged
    share_changed: float | None  # mean share of words swapped in the flipped texts
    swaps: float | None  # mean number of them
    passes: float  # texts read by the model for each text
    texts_a_second: float | None
    task: str = "classify"  # tag: accuracies are shares of the true errors that are flagged
    kinds: dict[str, KindSummary] = field(default_factory=dict)  # empty where words are swapped only
    cost: float | None = None  # mean number of characters changed in the flipped texts; None as there

    def as_dict(self) -> dict[str, Any]:
        """The numbers as a dict for `json.dumps`."""
        values = {k: v._asdict() if isinstance(v := getattr(self, k), Interval) else v for k in asdict(self)}
        kinds, cost = values.pop("kinds"), values.pop("cost")
        if kinds:
            named = {kind: {"made": one.made, "alone": one.alone._asdict()} for kind, one in kinds.items()}
            values |= {"cost": cost, "kinds": named}
        return values


def summarise(
    results: Sequence[Attacked],
    *,
    edits: Sequence[str] = ("swap",),
    seconds: float | None = None,
    timed: int = 0,
) -> Summary:
    """Summarise results; the last `timed` of them took `seconds`, which gives the speed; `edits`: kinds allowed."""
    read = [result for result in results if result.outcome != "unreadable"]
    attacked = [result for result in read if result.outcome != "wrong"]
    flipped = [result for result in attacked if result.flipped]
    tagging = any(result.errors is not None or result.flagged for result in results)
    before, after = _errors_flagged(read) if tagging else _accuracies(read, attacked, flipped)
    count, kept = len(attacked), sum(result.sense_kept for result in flipped)
    judged = any(change.sense != "unknown" for result in flipped for change in result.changes)
    told = judged or not (flipped or tagging)  # a tagger's are judged by corrections, where there are any
    kinds = {} if tuple(edits) == ("swap",) or not count else {kind: _kind(attacked, kind) for kind in edits}
    return Summary(
        texts=len(results),
        unreadable=len(results) - len(read),
        attacked=count,
        flipped=len(flipped),
        accuracy=before,
        accuracy_under_attack=after,
        success=share(len(flipped), count) if count else None,
        success_sense_kept=share(kept, count) if count and told else None,
        share_changed=sum(result.share for result in flipped) / len(flipped) if flipped else None,
        swaps=sum(len(result.changes) for result in flipped) / len(flipped) if flipped else None,
        passes=sum(result.passes for result in results) / len(results) if results else 0.0,
        texts_a_second=timed / seconds if seconds and timed else None,
        task="tag" if tagging else "classify",
        kinds=kinds,
        cost=sum(result.cost for result in flipped) / len(flipped) if flipped and kinds else None,
    )


def _kind(attacked: Sequence[Attacked], kind: str) -> KindSummary:
    made = sum(change.kind == kind for result in attacked if result.flipped for change in result.changes)
    return KindSummary(made, share(sum(kind in result.alone for result in attacked), len(attacked)))


Pair = tuple[Interval | None, Interval | None]


def _accuracies(read: Sequence[Attacked], attacked: Sequence[Attacked], flipped: Sequence[Attacked]) -> Pair:
    if not read or not all(result.given for result in read):
        return None, None
    return share(len(attacked), len(read)), share(len(attacked) - len(flipped), len(read))


def _errors_flagged(read: Sequence[Attacked]) -> Pair:
    errors = sum(result.errors or 0 for result in read)
    if not errors or any(result.errors is None for result in read):
        return None, None
    return share(sum(len(e.flagged) for e in read), errors), share(sum(len(e.left) for e in read), errors)


def show(
    results: Sequence[Attacked], summary: Summary, console: Console, *, count: int = 10, tag: str | None = None
) -> None:
    """Print the `count` most telling texts, then a table of the numbers; `tag` as in `show_texts`."""
    show_texts(telling(results)[:count], console, tag=tag)
    console.print(_table(summary, tag))


def show_texts(results: Sequence[Attacked], console: Console, *, tag: str | None = None) -> None:
    """Print texts with their swaps and outcome; `tag`: the one that taggers are to miss, None for flagged errors."""
    flagged = "flagged" if tag is None else f"tagged {tag}"
    for attacked in results:
        tagging = bool(attacked.flagged)
        verdict = {
            "flipped": f"no longer {flagged}" if tagging else f"{attacked.before} → {attacked.after}",
            "kept": f"still {flagged}" if tagging else f"stays {attacked.before}",
            "wrong": f"no {'error' if tag is None else 'word'} is {flagged}"
            if attacked.errors is not None or attacked.before == attacked.label  # of a tagger, without true tags
            else f"{attacked.before}, but it is {attacked.label}",
            "unreadable": "not read: no words, or more than the model can read",
        }[attacked.outcome]
        whose = (tag or "flag") if tagging else plain(attacked.before)
        probabilities = f"  p({whose}) {attacked.probability_before:.0%} → {attacked.probability_after:.0%}"
        judged = "" if tagging and attacked.sense == "unknown" else f"  sense {attacked.sense}"
        effect = f"{probabilities}{judged}" if attacked.changes else ""
        console.print(f"[bold]{escape(plain(verdict))}[/]{escape(effect)}")
        console.print(_inline(attacked), soft_wrap=True)
        console.print()


def telling(results: Sequence[Attacked]) -> list[Attacked]:
    """The flipped texts: first those whose sense is kept, then those of fewer swaps, then of larger effect."""
    flipped = [attacked for attacked in results if attacked.flipped]
    effect = [attacked.probability_before - attacked.probability_after for attacked in flipped]
    order = sorted(
        range(len(flipped)),
        key=lambda at: (not flipped[at].sense_kept, len(flipped[at].changes), -effect[at]),
    )
    return [flipped[at] for at in order]


def _inline(attacked: Attacked) -> Text:
    """The text with each swap as (word → other), which also reads without colour."""
    shown = Text("  ")
    for text, change in stretches(attacked, AROUND):
        shown.append(plain(text))
        if change is not None:
            shown.append(plain(f"({told(change)}{_correct(change)})"), style="bold reverse")
    return shown


def stretches(attacked: Attacked, around: int = ON_PAGE) -> list[tuple[str, Change | None]]:
    """The text before each change, with it, and the rest; long stretches are cut to so many characters beside it."""
    found, at = [], 0
    for change in attacked.changes:
        found.append((_cut(attacked.text[at : change.start], around, first=not found, last=False), change))
        at = change.end
    return [*found, (_cut(attacked.text[at:], around, first=not found, last=True), None)]


def _cut(text: str, around: int, *, first: bool, last: bool) -> str:
    """A stretch of a text between changes, its middle (or its far end) left out where it is long."""
    if len(text) <= 2 * around:
        return text
    # Between words, where there are blanks to tell them by.
    start = "" if first and not last else re.sub(r"\s+\S*$", "", text[:around]) + " "
    end = "" if last else " " + re.sub(r"^\S*\s+", "", text[-around:])
    return f"{start}…{end}"


def told(change: Change) -> str:
    """A change in a few words, its kind first where it is no swap; invisible characters by their numbers."""
    old, new = _seen(change.word), _seen(change.toward)
    if change.kind == "swap":
        return f"{change.word} → {change.toward}"
    if change.kind == "homoglyph":
        other = next(new for old, new in zip(change.word, change.toward, strict=True) if old != new)
        new = f"{new} with U+{ord(other):04X}"
    both = f"{old} → {new}" if old.strip() and new.strip() else f"{old or new}".strip()
    return f"{change.kind}: {both}"


def seen(text: str) -> str:
    """A text with the numbers of characters without width, and of letters that look like those of its script."""
    alike = [f"U+{ord(letter):04X}" for letter in text if letter in LOOK_ALIKES]
    mixed = alike and any(letter.isascii() and letter.isalpha() for letter in text)
    return f"{_seen(text)} with {' '.join(alike)}" if mixed else _seen(text)


def _seen(text: str) -> str:
    """A text with the numbers of characters that have no width."""
    return "".join(f"<U+{ord(character):04X}>" if character in INVISIBLE else character for character in text)


def _correct(change: Change) -> str:
    return "" if change.correct is None else f"; correct: {change.correct or '(left out)'}"


def _table(summary: Summary, tag: str | None) -> Table:
    tagging = summary.task == "tag"
    table = Table(box=None, show_header=False)
    of_tag = "true errors flagged" if tag is None else f"true {tag} tags found"
    name = of_tag if tagging else "accuracy"
    measured = {
        name: summary.accuracy,
        f"{name} under attack": summary.accuracy_under_attack,
        "success rate": summary.success,
        "  with sense kept": summary.success_sense_kept,
    }
    unreadable = f", {summary.unreadable} not read" if summary.unreadable else ""
    found = "a flagged error" if tag is None else f"{tag} found"
    what = f"sentences with {found}" if tagging else "predicted right" if summary.accuracy else "attacked"
    table.add_row("texts", f"{summary.texts}", f"{summary.attacked} {what}{unreadable}")
    for title, value in measured.items():
        if value is not None:
            interval = f"95 % interval {value.low:.1%} to {value.high:.1%}"
            table.add_row(title, f"{value.value:.1%}", interval)
    if summary.kinds:
        _add_kinds(table, summary)
    elif summary.swaps is not None:
        table.add_row("words swapped", f"{summary.share_changed:.1%}", f"{summary.swaps:.1f} in a flipped text")
    table.add_row("forward passes", f"{summary.passes:.1f}", "for each text")
    if summary.texts_a_second is not None:
        table.add_row("texts a second", f"{summary.texts_a_second:.1f}", "")
    return table


def _add_kinds(table: Table, summary: Summary) -> None:
    """What each kind of edit does, the kind that breaks the model most first."""
    if summary.swaps is not None:
        table.add_row("edits", f"{summary.swaps:.1f}", f"in a flipped text, {summary.cost:.1f} characters changed")
    for kind, one in sorted(summary.kinds.items(), key=lambda item: (-item[1].alone.value, -item[1].made)):
        edits = f"{one.made} edit{'s' * (one.made != 1)} in flipped texts"
        table.add_row(f"  {kind}", f"{one.alone.value:.1%}", f"flipped by one alone; {edits}")
