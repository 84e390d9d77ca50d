"""Attacked texts and the numbers of an attack in the terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from wordward.attack.attacked import Attacked, Change
from wordward.attack.summary import Summary
from wordward.attack.wording import AROUND, stretches, telling, told
from wordward.support.wording import plain

NONE = "\N{EN DASH}"  # in the place of a number that was not measured


def show(
    results: Sequence[Attacked], summary: Summary, console: Console, *, count: int = 10, tag: str | None = None
) -> None:
    """Print the `count` most telling texts, then a table of the numbers; `tag` as in `show_texts`."""
    show_texts(telling(results)[:count], console, tag=tag)
    console.print(_table(summary, tag))
    if summary.unmeasured:
        console.print(f"\n{summary.unmeasured}", soft_wrap=True, highlight=False)


def show_texts(results: Sequence[Attacked], console: Console, *, tag: str | None = None) -> None:
    """Print texts with their swaps and outcome; `tag`: the one that a tagger is to miss."""
    for attacked in results:
        tagging = bool(attacked.flagged)
        verdict = {
            "flipped": f"no longer tagged {tag}" if tagging else f"{attacked.before} → {attacked.after}",
            "kept": f"still tagged {tag}" if tagging else f"stays {attacked.before}",
            "wrong": f"no word is tagged {tag}"
            if attacked.errors is not None or attacked.before == attacked.label  # of a tagger, without true tags
            else f"{attacked.before}, but it is {attacked.label}",
            "unreadable": "not read: no words, or more than the model can read",
        }[attacked.outcome]
        whose = tag if tagging else plain(attacked.before)
        probabilities = f"  p({whose}) {attacked.probability_before:.0%} → {attacked.probability_after:.0%}"
        judged = "" if tagging and attacked.sense == "unknown" else f"  sense {attacked.sense}"
        effect = f"{probabilities}{judged}" if attacked.changes else ""
        console.print(f"[bold]{escape(plain(verdict))}[/]{escape(effect)}")
        console.print(_inline(attacked), soft_wrap=True)
        console.print()


def _inline(attacked: Attacked) -> Text:
    """The text with each swap as (word → other), which also reads without colour."""
    shown = Text("  ")
    for text, change in stretches(attacked, AROUND):
        shown.append(plain(text))
        if change is not None:
            shown.append(plain(f"({told(change)}{_correct(change)})"), style="bold reverse")
    return shown


def _correct(change: Change) -> str:
    return "" if change.correct is None else f"; correct: {change.correct or '(left out)'}"


def _table(summary: Summary, tag: str | None) -> Table:
    tagging = summary.task == "tag"
    table = Table(box=None, show_header=False)
    name = f"true {tag} tags found" if tagging else "accuracy"
    measured = {
        name: summary.accuracy,
        f"{name} under attack": summary.accuracy_under_attack,
        "success rate": summary.success,
        "  with sense kept": summary.success_sense_kept,
    }
    unreadable = f", {summary.unreadable} not read" if summary.unreadable else ""
    sentences = "sentence" if summary.attacked == 1 else "sentences"
    what = f"{sentences} with {tag} found" if tagging else "predicted right" if summary.accuracy else "attacked"
    table.add_row("texts", f"{summary.texts}", f"{summary.attacked} {what}{unreadable}")
    for title, value in measured.items():
        if value is not None:
            interval = f"95 % interval {value.low:.1%} to {value.high:.1%}"
            table.add_row(title, f"{value.value:.1%}", interval)
        elif summary.unmeasured and not (title.startswith(name) and summary.accuracy is None):
            table.add_row(title, NONE, "")
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
