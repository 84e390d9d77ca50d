"""Comparisons of models and of guides as Markdown, tables of a terminal, JSON and a plot."""

import io
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.table import Table
from rich.text import Text

from wordward.attack.robustness import Guided, Robustness
from wordward.runs.metrics import Interval, intervals_to_json
from wordward.support.errors import MissingExtraError, SettingError
from wordward.support.files import write
from wordward.support.wording import plain

# For each line: the colours of the report's page, and markers and dashes for readers who cannot tell them apart.
LOOKS = (
    ("#1f5f9f", "o", "-"),
    ("#b45309", "s", "--"),
    ("#1b6b45", "^", ":"),
    ("#7c3aad", "D", "-."),
    ("#a3243b", "v", "-"),
    ("#4b5563", "X", "--"),
)

Cells = tuple[list[str], list[list[str]]]  # heads, and the rows below


def models_cells(rows: Sequence[Robustness], unit: str = "swap") -> Cells:
    """Accuracies as the cells of a table."""
    swaps = list(rows[0].accuracy)
    heads = ["model", "method", *(f"{n} {unit}s" if n != 1 else f"1 {unit}" for n in swaps)]
    cells = [[row.model, row.method, *(percent(row.accuracy[n]) for n in swaps)] for row in rows]
    return heads, cells


def guides_cells(rows: Sequence[Guided]) -> Cells:
    """Success rates and cosines as the cells of a table."""
    heads = ["guide", "success rate", "with sense kept", "largest cosine of r with a word"]
    heads += ["nearness of the swapped words", "swaps in a flipped text", "passes a text"]
    cells = []
    for row in rows:
        summary = row.summary
        shares = [percent(summary.success), percent(summary.success_sense_kept)]
        swaps = "–" if summary.swaps is None else f"{summary.swaps:.2f}"
        near = [_number(row.cosine), _number(row.nearness)]
        cells.append([row.method, *shares, *near, swaps, f"{summary.passes:.1f}"])
    return heads, cells


def fitted(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table that is as wide as the terminal at most: its cells go on in further lines."""
    table = Table(show_lines=True)
    for head in heads:
        table.add_column(Text(head), overflow="fold")
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    return table


def aligned(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns also stand under each other in a terminal."""
    plainly = [[plain(cell).replace("|", "\\|") for cell in row] for row in (heads, *rows)]
    widths = [max(map(cell_len, column)) for column in zip(*plainly, strict=True)]
    lines = [
        f"| {' | '.join(set_cell_size(cell, wide) for cell, wide in zip(row, widths, strict=True))} |"
        for row in plainly
    ]
    return "\n".join([lines[0], f"|{'|'.join('-' * (wide + 2) for wide in widths)}|", *lines[1:]])


def percent(value: Interval | None) -> str:
    """A share with its interval."""
    return "–" if value is None else f"{value.value:.1%} ({value.low:.1%} to {value.high:.1%})"


def _number(value: Interval | None) -> str:
    return "–" if value is None else f"{value.value:.3f} ({value.low:.3f} to {value.high:.3f})"


def models_json(rows: Sequence[Robustness]) -> list[dict[str, Any]]:
    """Accuracies for JSON."""
    return [{"model": row.model, "method": row.method, "accuracy": intervals_to_json(row.accuracy)} for row in rows]


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
        raise MissingExtraError("a plot needs matplotlib: pip install 'wordward[figure]'")
    if Path(path).suffix.lower() not in (".png", ".svg"):
        raise SettingError("figure", f"expected a name that ends in .png or .svg for the plot; got {str(path)!r}")


def plot(rows: Sequence[Robustness], path: str | Path, unit: str = "swap") -> None:
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
        below, above = (
            [interval.value - interval.low for interval in values],
            [interval.high - interval.value for interval in values],
        )
        middles = [interval.value for interval in values]
        colour, marker, dashes = LOOKS[number % len(LOOKS)]
        how = {"color": colour, "marker": marker, "linestyle": dashes, "capsize": 3}
        axes.errorbar(at, middles, yerr=[below, above], label=f"{row.model} ({row.method})", **how)
    axes.set_xticks(range(len(swaps)), [str(n) for n in swaps])
    xlabel = "words swapped at most" if unit == "swap" else f"{unit}s at most"
    axes.set(xlabel=xlabel, ylabel="accuracy, with 95 % interval", ylim=(-0.02, 1.02))
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.legend(frameon=False)
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=150, format=Path(path).suffix[1:].lower())
    write(Path(path), drawn.getvalue())
