"""python -m benchmarks [--device cuda] [--json FILE]: all figures, as a table.

python -m benchmarks --page: docs/benchmarks.md from benchmarks/results/*.json, as --json wrote them."""

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks import corpora, epochs, reading, steps, using
from benchmarks.timing import Figure
from wordward import __version__

Part = Callable[[torch.device], Iterator[Figure]]
PARTS: dict[str, Part] = {
    "steps-small": partial(steps.measure, steps.SMALL),
    "steps-paper": partial(steps.measure, steps.PAPER),
    "epochs": epochs.epochs,
    "memory": partial(steps.memory, steps.PAPER),
    "language-model": reading.language_model,
    "neighbours": reading.neighbours,
    "batches": reading.batches,
    "loading": reading.loading,
    "corpora": corpora.corpora,
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


def page(folder: Path) -> str:
    """The whole of docs/benchmarks.md: a section a file of kept figures, then the notes on them."""
    parts = [
        "# Benchmarks\n",
        "Made by `python -m benchmarks --page` from `benchmarks/results/*.json`: what `make bench` (CPU), which "
        "leaves its figures in `runs/benchmarks.json`, and `python -m benchmarks --device cuda --json FILE` "
        "measured. Ratios are of times taken in turns in one run: the median, and the middle half of the repeats.\n",
    ]
    for file in sorted(folder.glob("*.json")):
        kept = json.loads(file.read_text())
        table = markdown([Figure(**each) for each in kept["figures"]], kept["machine"])
        parts += [f"## {kept['machine']['device']}\n", table]
    notes = folder / "notes.md"
    return "\n".join([*parts, *([notes.read_text()] if notes.exists() else [])])


def keep(file: Path, figures: list[Figure], where: dict[str, Any]) -> None:
    """The figures and the machine as JSON."""
    kept = {"machine": where, "figures": [figure.record() for figure in figures]}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(kept, indent=1) + "\n")


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
    parser.add_argument("--page", action="store_true", help="print the page of kept figures, measure nothing")
    given = parser.parse_args()
    if given.page:
        print(page(Path(__file__).parent / "results"), end="")
        return
    device = torch.device(given.device)
    figures: list[Figure] = []
    for name in given.only:
        started = time.monotonic()
        print(f"{name} ...", end=" ", file=sys.stderr, flush=True)
        figures += PARTS[name](device)
        print(f"{time.monotonic() - started:.0f} s", file=sys.stderr)
    where = machine(device)
    if given.json:
        keep(given.json, figures, where)
    print(markdown(figures, where))


if __name__ == "__main__":
    main()
