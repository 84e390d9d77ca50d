"""What `wordward check` shows in the terminal."""

from rich.markup import escape
from rich.table import Table

from wordward.attack.checked import Check
from wordward.report.checked import (
    JUDGED,
    NONE,
    by_group,
    edited,
    flags,
    flipped,
    inline,
    judged,
    rows,
    unedited,
    verdict,
    way_out,
)
from wordward.support.console import Output
from wordward.support.wording import plain


def show(check: Check, count: int, *, told: bool = False) -> None:
    """The numbers, the words that break the model, `count` texts, and last what decides.

    `told`: what limits the numbers stands on the same screen already.
    """
    console = Output()
    unit = "sentences" if check.tagging else "texts"
    console.print(escape(plain(f"{check.model} on {len(check.results):,} {unit} of {check.source}")), soft_wrap=True)
    if flagged := flags(check):
        console.print(escape(plain(flagged)), soft_wrap=True)
    console.print()
    table = _table("", "", "95 % interval", "of")
    for name, interval, of in rows(check):
        number, ends = NONE, ""
        if interval is not None:
            number, ends = f"{interval.value:.1%}", f"{interval.low:.1%} to {interval.high:.1%}"
        table.add_row(escape(plain(name)), number, ends, escape(plain(of)))
    console.print(table)
    for note in filter(None, (unedited(check), "" if told else check.caveat)):
        console.print(f"\n{escape(plain(note))}", soft_wrap=True)
    heads, groups = by_group(check, ends=False)
    if groups:
        table = _table(*heads)
        for line in groups:
            table.add_row(*(escape(plain(cell)) for cell in line))
        console.print()
        console.print(table)
    if check.flipped:
        _flips(console, check, count)
    console.print()
    if check.conditions:
        table = _table()
        for each in check.conditions:
            standing = each.standing if each.holds else f"[bold]{each.standing}[/]"
            found = each.found if each.measured else NONE  # why stands below
            table.add_row(*(escape(plain(text)) for text in (each.title, each.asked, found)), standing)
        console.print(table)
    way = f"; {check.unmeasured.removeprefix('not measured: ')}; {way_out(check)}" if check.unmeasured else ""
    console.print(f"[bold]{escape(verdict(check))}[/]{escape(way)}", soft_wrap=True)


def _flips(console: Output, check: Check, count: int) -> None:
    edits = sum(len(each.changes) for each in check.flipped) / len(check.flipped)
    console.print(f"\n{len(check.flipped):,} flipped, by {edits:.1f} edits on average: {judged(check)}")
    console.print("\n[bold]words that break it most[/], and the flipped texts in which they were edited")
    table = _table()
    for word in check.words():
        changed = f"{word.word or '(put in)'} → {edited(word)}"
        table.add_row(escape(plain(changed)), flipped(word))
    console.print(table)
    if not count:
        return
    console.print("\n[bold]worst examples[/]")
    for each in check.examples(count):
        effect = f"{each.probability_before:.0%} → {each.probability_after:.0%}"
        what = f"no longer tagged {check.target}" if check.tagging else f"{each.before} → {each.after}"
        whose = check.target if check.tagging else each.before
        console.print(escape(plain(f"{what}  p({whose}) {effect}  {JUDGED[each.sense]}")), soft_wrap=True)
        console.print(f"  {escape(inline(each))}", soft_wrap=True)


def _table(*heads: str) -> Table:
    return Table(*heads, box=None, show_header=bool(heads), pad_edge=False, padding=(0, 2, 0, 0), header_style="")
