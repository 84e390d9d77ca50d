"""The picture of a column: the paper's and our test error of each method, and accuracy after word swaps."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.results import SENSES, SWAPS, Record, in_percent, under_attack
from experiments.tables import Column

COLOURS = {
    "baseline": "#4b5563",
    "advt": "#d99a4e",
    "iadvt": "#b45309",
    "vat": "#6fa8dc",
    "ivat": "#1f5f9f",
}  # by row
TITLES = {"any": "any word that fits", "kept": "only words that keep the sense"}
FIXED: Any = {"svg.hashsalt": "wordward", "font.size": 9, "svg.fonttype": "none", "font.family": "sans-serif"}


def draw(column: Column, records: Sequence[Record], path: Path) -> None:
    """Write the picture, always the same for the same records."""
    with matplotlib.rc_context(FIXED):
        figure = Figure(figsize=(9.5, 3.4), layout="tight")  # constrained: its last digits vary
        left, *others = figure.subplots(1, 1 + len(SENSES), width_ratios=[1.2, 1, 1])
        others[1].sharey(others[0])
        _draw_errors(left, column, records)
        for panel, sense in zip(others, SENSES, strict=True):
            _draw_accuracies(panel, column, records, sense)
        others[0].set_ylabel("accuracy (%)")
        if any("attacked" in record for record in records):
            others[0].legend(frameon=False, fontsize=8)
        dated: dict[str, Any] = {"metadata": {"Date": None}} if path.suffix == ".svg" else {}
        figure.savefig(path, **dated)


def _draw_errors(panel: Axes, column: Column, records: Sequence[Record]) -> None:
    """A method a line: ours with its interval, and the paper's as a cross."""
    rows = [row for row in column.rows if row.name in COLOURS]
    for row in rows:
        if row.paper is not None:
            panel.scatter([row.paper], [row.title], marker="x", color="#1d2125", s=30, zorder=4)
        if ours := [record for record in records if record["row"] == row.name]:
            mean, low, high = in_percent(ours)
            ends = [[mean - low], [high - mean]]
            panel.errorbar([mean], [row.title], xerr=ends, fmt="o", color=COLOURS[row.name], markersize=6, zorder=3)
    panel.scatter([], [], marker="x", color="#1d2125", label="the paper")
    panel.errorbar([], [], xerr=[[], []], fmt="o", color="#4b5563", label="wordward, 95 % interval")
    panel.legend(frameon=False, fontsize=8, loc="lower right")
    panel.invert_yaxis()
    panel.grid(axis="x", color="#e5e7eb")
    panel.set_axisbelow(True)
    panel.set(title=f"{column.name.partition('_')[0].upper()}, test error (%)")


def _draw_accuracies(panel: Axes, column: Column, records: Sequence[Record], sense: str) -> None:
    """A method a line, from one swap to eight; those that were not attacked are left out."""
    for row in column.rows:
        ours = [record for record in records if record["row"] == row.name]
        found = {swaps: under_attack(ours, sense, str(swaps)) for swaps in SWAPS}
        shown = {swaps: value for swaps, value in found.items() if value is not None}
        if row.name in COLOURS and shown:
            means, halves = zip(*shown.values(), strict=True)
            places = [SWAPS.index(swaps) for swaps in shown]
            how: Any = {"color": COLOURS[row.name], "marker": "o", "markersize": 4, "capsize": 2}
            panel.errorbar(places, means, yerr=halves, label=row.title, **how)
    panel.grid(axis="y", color="#e5e7eb")
    panel.set_axisbelow(True)
    panel.set(title=TITLES[sense], xlabel="words swapped, at most", xticks=range(len(SWAPS)))
    panel.set_xticklabels([str(swaps) for swaps in SWAPS])
