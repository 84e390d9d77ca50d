"""Explanations printed in the terminal: predictions, the text with its strongest pulls, a bar for each word."""

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from wordward.explain import wording
from wordward.explain.explanation import Explanation, Place
from wordward.explain.wording import UNKNOWN, Part
from wordward.support.wording import plain

COLOURS = {"classify": "blue", "tag": "green"}
WORDS = 40  # of a text that a screen shows
FAINT = 0.2  # relative strength below which a pull is printed dim
UNKNOWN_MARK = "*"
NARROW = 60  # columns that several explanations side by side need
EIGHTHS = " ▏▎▍▌▋▊▉█"


def terminal(explanations: Sequence[Explanation], console: Console) -> None:
    """Print explanations of one text, several side by side.

    Args:
        explanations: One text's, of one task.
        console: Where to print.

    Examples:
        >>> from rich.console import Console
        >>> wordward.explain.terminal(run.explain(["the film was warm and funny"]), Console(width=80))
        good ...
        iAdvT: words that make good less likely (the predicted label)
        ...
    """
    part, first = wording.part_of(explanations, WORDS), explanations[0]
    for line in dict.fromkeys(wording.predicted(explanation) for explanation in explanations):
        console.print(Text(plain(line), "bold"))
    if not part.lines:
        console.print(Text(f"{plain(first.text) or '(an empty text)'}: no words to read"))
        return
    for heading, explanation in zip(wording.headings(explanations), explanations, strict=True):
        console.print(Text(f"\n{plain(heading)}: {plain(wording.question(explanation))}", "dim"))
        console.print(Padding(_sentence(explanation, part), (0, 2), expand=False))
        if said := wording.effect(explanation):
            console.print(Padding(Text(plain(said)), (0, 2), expand=False))
    every = range(len(explanations))
    for numbers in [[number] for number in every] if console.width < NARROW else [every]:
        console.print(Padding(_table(explanations, part, numbers, console.width), (1, 2, 0, 2), expand=False))
    notes = [wording.SCALE]
    notes += [wording.BARE] if part.has_bare else []
    notes += [f"{UNKNOWN_MARK} {UNKNOWN}"] if part.has_unknown else []
    notes += [part.note] if part.note else []
    console.print(Padding(Text("\n".join(notes), "dim"), (1, 2, 0, 2), expand=False))


def _sentence(explanation: Explanation, part: Part) -> Text:
    """The text with its strongest pulls wording.marked: [delight → bore]."""
    text, at = explanation.text, part.start
    line = Text("… " if part.before else "")
    for place in wording.marked(explanation):
        if part.start <= place.start and place.end <= part.end:
            line.append(plain(text[at : place.start]))
            mark = f"[{plain(place.word)} → {plain(place.pulls[0].toward)}]"
            line.append(mark, f"bold {COLOURS[explanation.task]}")
            at = place.end
    return line.append(plain(text[at : part.end]) + (" …" if part.after else ""))


def _longest_bar(task: str, beside: int, width: int) -> int:
    """How many columns the longest bar has in a terminal of that width; 0 where only words and numbers fit."""
    if width < (50 if task == "tag" else 40):
        return 0
    return max(6, min(24, (width - 20) // beside - 24))


def _table(explanations: Sequence[Explanation], part: Part, numbers: Sequence[int], width: int) -> Table:
    """A table with a line for each word: the word that pulls it, a bar and the relative strength.

    `numbers`: which of the explanations have columns; `width`: of the terminal.
    """
    tagging = explanations[0].task == "tag"
    colour = COLOURS[explanations[0].task]
    marked = [{place.position for place in wording.marked(explanation)} for explanation in explanations]
    bars = _longest_bar(explanations[0].task, len(numbers), width)
    table = Table(box=None, show_header=len(explanations) > 1, padding=(0, 1), pad_edge=False)
    table.add_column("", justify="right", overflow="fold")
    if tagging:
        table.add_column("", overflow="fold")
    for number in numbers:
        table.add_column(Text(plain(wording.headings(explanations)[number])), overflow="fold")
        if bars:
            table.add_column("", no_wrap=True)
        table.add_column("", justify="right", no_wrap=True)
    for line in part.lines:
        known = all(place.known for place in line.places if place)
        word = plain(line.word) + ("" if known else UNKNOWN_MARK)
        bold = [place is not None and place.position in of for place, of in zip(line.places, marked, strict=True)]
        cells = [Text(word, "bold" if any(bold[number] for number in numbers) else "")]
        if tagging:
            tag, probability = line.place.label or "", line.place.probability or 0.0
            cells.append(Text(f"{plain(tag)} {wording.percent(probability)}", "dim"))
        for number in numbers:
            word, bar, strength = _pull(line.places[number], colour, bars, bold=bold[number])
            cells += [word, bar, strength] if bars else [word, strength]
        table.add_row(*cells)
    return table


def _pull(place: Place | None, colour: str, width: int, *, bold: bool) -> list[Text]:
    """The cells of a word's strongest pull: the word that pulls, a bar of at most `width`, the relative strength.

    `bold`: whether the pull is marked in the text.
    """
    if place is None or not place.pulls:
        return [Text("(not read)" if place is None else "", "dim"), Text(), Text()]
    pull = place.pulls[0]
    eighths = max(1, round(8 * width * pull.relative))
    bar = "█" * (eighths // 8) + (EIGHTHS[eighths % 8] if eighths % 8 else "")
    style = "bold" if bold else "dim" if pull.relative < FAINT else ""
    return [
        Text(f"→ {plain(pull.toward)}", style),
        Text(bar, colour),
        Text(wording.two_digits(pull.relative), style),
    ]
