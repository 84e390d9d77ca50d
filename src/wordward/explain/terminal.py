"""Renderings of an explanation: in the terminal and as JSON; `html` and `figure` have the others."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from wordward.explain.explanation import FORMAT, Explanation, Place, Pull
from wordward.explain.figure import figure
from wordward.explain.html import STYLE, html_fragment, page
from wordward.explain.wording import (
    MARKED,
    SCALE,
    UNKNOWN,
    Part,
    headings,
    marked,
    much,
    part_of,
    percent,
    plain,
    predicted,
    question,
)
from wordward.support.errors import DataError

__all__ = ["STYLE", "figure", "from_json", "html_fragment", "page", "terminal", "to_json"]

COLOURS = {"classify": "blue", "tag": "green"}
WORDS = 40  # of a text that a screen shows
FAINT = 0.2
UNKNOWN_MARK = "*"
NARROW = 60  # columns that several explanations side by side need
EIGHTHS = " ▏▎▍▌▋▊▉█"


def to_json(explanation: Explanation) -> dict[str, Any]:
    """A record for `json.dumps`; docs/explain.md says what each field means."""
    fields = {
        name: getattr(explanation, name) for name in Explanation.__dataclass_fields__ if name != "places"
    }
    places = [  # not with `asdict`, which takes longer than explaining
        vars(place) | {"pulls": [dict(vars(pull)) for pull in place.pulls]} for place in explanation.places
    ]
    return {"format": FORMAT, **fields, "probabilities": dict(explanation.probabilities), "places": places}


def from_json(record: Mapping[str, Any]) -> Explanation:
    """The explanation that `to_json` wrote."""
    if not isinstance(record, Mapping) or record.get("format") != FORMAT:
        actual = record.get("format") if isinstance(record, Mapping) else type(record).__name__
        raise DataError(
            f"expected an explanation of format {FORMAT}, as `wordward explain` writes in JSON; got {actual}"
        )
    fields = {name: value for name, value in record.items() if name not in ("format", "number")}
    try:
        fields["places"] = tuple(
            Place(**place | {"pulls": tuple(Pull(**pull) for pull in place["pulls"])})
            for place in fields["places"]
        )
        return Explanation(**fields)
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"expected the fields of an explanation of format {FORMAT}; got others: {error}"
        ) from None


def terminal(explanations: Sequence[Explanation], console: Console) -> None:
    """Print explanations of one text, several side by side."""
    part, first = part_of(explanations, WORDS), explanations[0]
    for line in dict.fromkeys(predicted(explanation) for explanation in explanations):
        console.print(Text(plain(line), "bold"))
    if not part.rows:
        console.print(Text(f"{plain(first.text) or '(an empty text)'}: no words to read"))
        return
    for heading, explanation in zip(headings(explanations), explanations, strict=True):
        console.print(Text(f"\n{plain(heading)}: {plain(question(explanation))}", "dim"))
        console.print(Padding(_sentence(explanation, part), (0, 2), expand=False))
    every = range(len(explanations))
    for numbers in [[number] for number in every] if console.width < NARROW else [every]:
        console.print(Padding(_table(explanations, part, numbers, console.width), (1, 2, 0, 2), expand=False))
    unknown = [f"{UNKNOWN_MARK} {UNKNOWN}"] if part.has_unknown else []
    notes = [SCALE, *unknown, *([part.note] if part.note else [])]
    console.print(Padding(Text("\n".join(notes), "dim"), (1, 2, 0, 2), expand=False))


def _sentence(explanation: Explanation, part: Part) -> Text:
    """The text with its strongest pulls marked: [delight → bore]."""
    text, at = explanation.text, part.start
    line = Text("… " if part.before else "")
    for place in marked(explanation):
        if part.start <= place.start and place.end <= part.end:
            line.append(plain(text[at : place.start]))
            mark = f"[{plain(place.word)} → {plain(place.pulls[0].toward)}]"
            line.append(mark, f"bold {COLOURS[explanation.task]}")
            at = place.end
    return line.append(plain(text[at : part.end]) + (" …" if part.after else ""))


def _bars(task: str, beside: int, width: int) -> int:
    """How long a bar may be; 0 where a narrow screen has room for words and numbers alone."""
    if width < (50 if task == "tag" else 40):
        return 0
    return max(6, min(24, (width - 20) // beside - 24))


def _table(explanations: Sequence[Explanation], part: Part, numbers: Sequence[int], width: int) -> Table:
    """A line a word: what it is pulled toward, a bar and its relative strength, of the explanations numbered."""
    tagging = explanations[0].task == "tag"
    colour = COLOURS[explanations[0].task]
    bars = _bars(explanations[0].task, len(numbers), width)
    table = Table(box=None, show_header=len(explanations) > 1, padding=(0, 1), pad_edge=False)
    table.add_column("", justify="right", overflow="fold")
    if tagging:
        table.add_column("", overflow="fold")
    for number in numbers:
        table.add_column(Text(plain(headings(explanations)[number])), overflow="fold")
        if bars:
            table.add_column("", no_wrap=True)
        table.add_column("", justify="right", no_wrap=True)
    for row in part.rows:
        place = next(place for place in row.places if place)
        known = all(other.known for other in row.places if other)
        word = plain(row.word) + ("" if known else UNKNOWN_MARK)
        cells = [Text(word, "bold" if row.strongest >= MARKED else "")]
        if tagging:
            cells.append(_tag(place))
        for number in numbers:
            word, bar, strength = _pull(row.places[number], colour, bars)
            cells += [word, bar, strength] if bars else [word, strength]
        table.add_row(*cells)
    return table


def _tag(place: Place) -> Text:
    return Text(f"{plain(place.label or '')} {percent(place.probability or 0.0)}", "dim")


def _pull(place: Place | None, colour: str, width: int) -> list[Text]:
    """Arrow and word, bar, relative strength."""
    if place is None or not place.pulls:
        return [Text("(not read)" if place is None else "", "dim"), Text(), Text()]
    pull = place.pulls[0]
    eighths = max(1, round(8 * width * pull.relative))
    bar = "█" * (eighths // 8) + (EIGHTHS[eighths % 8] if eighths % 8 else "")
    style = "bold" if pull.relative >= MARKED else "dim" if pull.relative < FAINT else ""
    return [Text(f"→ {plain(pull.toward)}", style), Text(bar, colour), Text(much(pull.relative), style)]
