"""The picture of benchmarks.yours: test error over that of a linear model, a line for each data set and size."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.yours_page import compared

SHOWN = {
    "convolution": "a convolution, from a Transformer's word vectors",
    "transformer": "that Transformer, fine-tuned",
}
LOOKS = {"baseline": ("#1f5f9f", "o"), "iadvt": ("#b45309", "D")}  # colours of the report's page
FIXED: Any = {"svg.hashsalt": "wordward", "font.size": 9, "svg.fonttype": "none", "font.family": "sans-serif"}


def draw(records: Sequence[dict[str, Any]], path: Path) -> None:
    """Write the picture, always the same for the same records."""
    with matplotlib.rc_context(FIXED):
        figure = Figure(figsize=(9, 4.6), layout="constrained")
        panels = figure.subplots(1, len(SHOWN), sharex=True, sharey=True, squeeze=False)[0]
        for panel, (model, title) in zip(panels, SHOWN.items(), strict=True):
            ours = [record for record in records if record["row"] == "linear" or record.get("chosen") == model]
            _draw_model(panel, ours, title)
        panels[0].invert_yaxis()
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
        dated: dict[str, Any] = {"metadata": {"Date": None}} if path.suffix == ".svg" else {}
        figure.savefig(path, **dated)


def _draw_model(panel: Axes, records: Sequence[dict[str, Any]], title: str) -> None:
    """The errors of one model; left of the line at 1 they are lower than the linear model's."""
    panel.axvline(1, color="#4b5563", linewidth=1)
    panel.grid(axis="y", color="#e5e7eb")
    panel.set_axisbelow(True)
    panel.set(title=title, xlabel="test error over that of a linear model on word counts")
    for row, (colour, marker) in LOOKS.items():
        found = compared(records, row, "linear")
        places = [f"{each.place.name.replace('_', ' ')} {each.place.size:,}" for each in found]
        ratios = [each.error / each.other_error for each in found]
        panel.scatter(ratios, places, color=colour, marker=marker, s=28, label=row, zorder=3)
