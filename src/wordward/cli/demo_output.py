"""What the demo prints: errors, gains, accuracy under attack, some explanations, and what to do next."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from wordward.datasets import Example
from wordward.report.examples import Telling, tell, telling
from wordward.report.gains import Gains, excludes_zero
from wordward.runs.metrics import Interval
from wordward.runs.run import Run
from wordward.support.console import Output

OURS = (
    Example("the cast is good and the ending is a delight", "positive"),
    Example("the acting is fine but the story is boring", "negative"),
)


def show_gains(found: Gains, tested: int, attacked: int) -> None:
    """Errors and accuracies, each with its interval, and what the method gains."""
    console, best = Output(soft_wrap=True), found.best
    table = Table("model", "test error", "95 % interval", title=f"{tested:,} test sentences", title_justify="left")
    for name, error in found.error.items():
        table.add_row(name, f"{error.value:.1%}", f"{error.low:.1%} to {error.high:.1%}")
    console.print(table)
    for name, gain in found.fewer_errors.items():
        console.print(f"{best} against the {name}: {_points(gain, 'fewer errors', 'more errors')}, {_verdict(gain)}")
    swaps = list(found.more_right)
    heads = ["no swap" if n == 0 else f"{n} swap{'s' if n > 1 else ''}" for n in swaps]
    title = f"accuracy (%) on {attacked:,} of them when words are swapped, sense kept, with 95 % intervals"
    table = Table("model", *heads, title=title, title_justify="left")
    for name, values in found.accuracy.items():
        table.add_row(name, *(_short(values[n]) for n in swaps))
    console.print()
    console.print(table)
    for n, gain in found.more_right.items():
        if n:
            most = f"after up to {n} swap{'s' if n > 1 else ''}"
            points = _points(gain, "more right", "fewer right")
            console.print(f"{best} against the {next(iter(found.accuracy))} {most}: {points}, {_verdict(gain)}")


def _short(accuracy: Interval) -> str:
    return f"{100 * accuracy.value:.1f} ({100 * accuracy.low:.0f}-{100 * accuracy.high:.0f})"


def _points(gain: Interval, better: str, worse: str) -> str:
    """A gain in percentage points, with its interval; a loss is told as one."""
    told = better if gain.value >= 0 else worse
    if gain.value < 0:
        gain = Interval(-gain.value, -gain.high, -gain.low)
    return f"{100 * gain.value:.1f} points ({100 * gain.low:.1f} to {100 * gain.high:.1f}) {told}"


def _verdict(gain: Interval) -> str:
    if not excludes_zero(gain):
        return "an interval that includes zero: not shown to differ"
    return f"an interval that excludes zero{'' if gain.value > 0 else ': it is worse'}"


def show_pulls(run: Run, test: Sequence[Example]) -> None:
    """Which word is pulled toward which, in two sentences of ours and some of the test sentences."""
    console = Output(soft_wrap=True)
    console.print(
        f"\nWhich word, toward which other word, would hurt {run.config.method} most; two sentences of ours:"
    )
    for sentence in tell(run, OURS):
        show_sentence(console, sentence)
    console.print("\nTest sentences where the strongest pull, put into the text, moves the prediction most:")
    for sentence in telling(run, test, count=3):
        show_sentence(console, sentence)


def show_sentence(console: Console, sentence: Telling) -> None:
    """A sentence, its strongest pulls, and what the first of them does to the prediction."""
    text, label = sentence.explanation.text, sentence.label
    console.print(f"\n{label}: {text}", markup=False, style="bold")
    pulled = [place for place in sentence.explanation.places if place.pulls]
    for place in sorted(pulled, key=lambda place: -place.pulls[0].strength)[:3]:
        pull = place.pulls[0]
        bar = "█" * max(1, round(12 * pull.relative))
        console.print(f"  {place.word:>14} → {pull.toward:<14} {bar} {pull.relative:.2f}", markup=False)
    flip = "  (the prediction changes)" if sentence.changes else ""
    console.print(
        f"  with {sentence.toward!r}: p({label}) {sentence.before:.0%} → {sentence.after:.0%}{flip}", markup=False
    )


def close(out: Path, seconds: float, method: str, other: str) -> None:
    """Where to look and what to try next."""
    console, run = Output(soft_wrap=True), out / method
    console.print(f"\ndone in {seconds / 60:.1f} minutes. All of it as a page, to open in a browser:")
    lines = (
        f"  {out / 'report.html'}",
        "Try it yourself:",
        f'  wordward predict {run} "a warm and funny film"',
        f"  wordward serve {run} {out / other} --open",
        "On your own texts, with labels and without:",
        f"  wordward train --train reviews.csv --unlabelled more.txt --method {method} --out runs/mine",
    )
    for line in lines:
        console.print(line, markup=False)
