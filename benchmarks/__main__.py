"""python -m benchmarks [--device cuda] [--json FILE] [--markdown FILE]: all figures, as a table."""

import argparse
import json
import platform
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks import reading, steps, using
from benchmarks.timing import Figure
from wordward import __version__

Part = Callable[[torch.device], Iterator[Figure]]
PARTS: dict[str, Part] = {
    "steps-small": partial(steps.measure, steps.SMALL),
    "steps-paper": partial(steps.measure, steps.PAPER),
    "memory": partial(steps.memory, steps.PAPER),
    "language-model": reading.language_model,
    "neighbours": reading.neighbours,
    "batches": reading.batches,
    "loading": reading.loading,
    "using": using.using,
}


def machine(device: torch.device) -> dict[str, Any]:
    """What the figures were measured on."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {
        "device": name,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "wordward": __version__,
        "date": datetime.now(UTC).date().isoformat(),
    }


def markdown(figures: list[Figure], where: dict[str, Any]) -> str:
    """A table a group."""
    told = ", ".join(f"{name} {value}" for name, value in where.items())
    lines = [f"Measured on {told}."]
    for group in dict.fromkeys(figure.group for figure in figures):
        lines += ["", f"**{group}**", "", "| | median | middle half | target | |", "|---|---:|---|---|---|"]
        lines += [_line(figure) for figure in figures if figure.group == group]
    return "\n".join(lines) + "\n"


def _line(figure: Figure) -> str:
    value, low, high = (_number(each) for each in (figure.value, figure.low, figure.high))
    spread = "" if low == high else f"{low} to {high}"
    return f"| {figure.name} | {value} {figure.unit} | {spread} | {figure.target} | {figure.note} |"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--markdown", type=Path, help="write the table there instead of printing it")
    given = parser.parse_args()
    device = torch.device(given.device)
    figures = [figure for name in given.only for figure in PARTS[name](device)]
    where = machine(device)
    if given.json:
        records = [figure.record() for figure in figures]
        given.json.write_text(json.dumps({"machine": where, "figures": records}, indent=1) + "\n")
    table = markdown(figures, where)
    if given.markdown:
        given.markdown.write_text(table)
    else:
        print(table)


if __name__ == "__main__":
    main()
