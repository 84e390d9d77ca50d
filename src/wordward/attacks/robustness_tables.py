"""Comparisons of models and of guides as Markdown, JSON and a plot."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from wordward.attacks.robustness import Guided, Robustness
from wordward.metrics import Interval

# Of each line: the colours of the report's page, and marks and dashes for who does not see them.
LOOKS = (
    ("#1f5f9f", "o", "-"),
    ("#b45309", "s", "--"),
    ("#1b6b45", "^", ":"),
    ("#7c3aad", "D", "-."),
    ("#a3243b", "v", "-"),
    ("#4b5563", "X", "--"),
)


def models_table(rows: Sequence[Robustness]) -> str:
    """Accuracies as Markdown."""
    swaps = list(rows[0].accuracy)
    lines = [f"| model | method | {' | '.join(f'{n} swaps' if n != 1 else '1 swap' for n in swaps)} |"]
    lines.append("|---|---|" + "---|" * len(swaps))
    lines += [
        f"| {row.model} | {row.method} | {' | '.join(_percent(row.accuracy[n]) for n in swaps)} |"
        for row in rows
    ]
    return "\n".join(lines)


def guides_table(rows: Sequence[Guided]) -> str:
    """Success rates and cosines as Markdown."""
    lines = [
        "| guide | success rate | with sense kept | largest cosine of r with a word | nearness of the swapped words "
        "| swaps in a flipped text | passes a text |",
        "|---|---|---|---|---|---:|---:|",
    ]
    for row in rows:
        told = row.summary
        cells = [_percent(told.success), _percent(told.success_sense_kept), _number(row.cosine)]
        swaps = "–" if told.swaps is None else f"{told.swaps:.2f}"
        lines.append(
            f"| {row.method} | {' | '.join([*cells, _number(row.nearness), swaps, f'{told.passes:.1f}'])} |"
        )
    return "\n".join(lines)


def _percent(value: Interval | None) -> str:
    return "–" if value is None else f"{value.value:.1%} ({value.low:.1%} to {value.high:.1%})"


def _number(value: Interval | None) -> str:
    return "–" if value is None else f"{value.value:.3f} ({value.low:.3f} to {value.high:.3f})"


def models_json(rows: Sequence[Robustness]) -> list[dict[str, Any]]:
    """Accuracies for JSON."""
    return [
        {
            "model": row.model,
            "method": row.method,
            "accuracy": {str(swaps): each._asdict() for swaps, each in row.accuracy.items()},
        }
        for row in rows
    ]


def guides_json(rows: Sequence[Guided]) -> list[dict[str, Any]]:
    """Success rates and cosines for JSON."""
    return [
        {
            "guide": row.method,
            "summary": row.summary.as_dict(),
            "cosine": row.cosine and row.cosine._asdict(),
            "nearness": row.nearness and row.nearness._asdict(),
        }
        for row in rows
    ]


def check_plot(path: str | Path) -> None:
    """Refuse a plot that could not be drawn, before the models are compared for it."""
    if find_spec("matplotlib") is None:
        raise ValueError("a plot needs matplotlib: pip install 'wordward[figure]'")
    if Path(path).suffix.lower() not in (".png", ".svg"):
        raise ValueError(f"expected a name that ends in .png or .svg for the plot; got {str(path)!r}")


def plot(rows: Sequence[Robustness], path: str | Path) -> None:
    """Accuracy against swaps, a line a model with its intervals, as PNG or SVG by the file's name."""
    check_plot(path)
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    swaps = list(rows[0].accuracy)
    for number, row in enumerate(rows):
        aside = 0.06 * (number - (len(rows) - 1) / 2)  # so that no model hides another
        at = [place + aside for place in range(len(swaps))]
        values = [row.accuracy[n] for n in swaps]
        below, above = [each.value - each.low for each in values], [each.high - each.value for each in values]
        middles = [each.value for each in values]
        colour, marker, dashes = LOOKS[number % len(LOOKS)]
        how = {"color": colour, "marker": marker, "linestyle": dashes, "capsize": 3}
        axes.errorbar(at, middles, yerr=[below, above], label=f"{row.model} ({row.method})", **how)
    axes.set_xticks(range(len(swaps)), [str(n) for n in swaps])
    axes.set(xlabel="words swapped at most", ylabel="accuracy, with 95 % interval", ylim=(-0.02, 1.02))
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.legend(frameon=False)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
