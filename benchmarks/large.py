"""python -m benchmarks.large [--words 150000] [--dim 4096] [--json FILE]: iAdvT on the table of a large model.

The table is frozen, as with LoRA. Seconds, and MiB that were taken for a while beyond the table (Linux), of making
the adversary, of the first step (which searches the nearest words of its batch), of steps whose words are known, and
of a step with one word that is new.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

import wordward
from benchmarks.__main__ import machine, markdown
from benchmarks.scale import _status
from benchmarks.timing import Figure, quartiles, seconds
from benchmarks.words import draw

CPU = torch.device("cpu")
BATCH, LENGTH, REPEATS = 16, 64, 5


class Reader(nn.Module):
    """A mean of frozen vectors, read by two layers."""

    def __init__(self, words: int, dim: int) -> None:
        super().__init__()
        weight = torch.empty(words, dim)
        torch.manual_seed(0)
        for part in weight.split(10_000):
            part.normal_(std=0.02)
        self.words = nn.Embedding.from_pretrained(weight, freeze=True)
        self.head = nn.Sequential(nn.Linear(dim, 64), nn.Tanh(), nn.Linear(64, 2))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """(batch, 2)."""
        return self.head(self.words(ids).tanh().mean(1))


def large(words: int, dim: int) -> Iterator[Figure]:
    """A figure for each of the four."""
    model, made = Reader(words, dim), []
    ids = torch.from_numpy(draw(words - 1, (BATCH, LENGTH))).long()
    labels = torch.arange(BATCH) % 2

    def step(some: torch.Tensor) -> Callable[[], None]:
        def work() -> None:
            out = made[-1](lambda: model(some), labels)
            (F.cross_entropy(out.clean, labels) + out.loss).backward()

        return work

    new = ids.clone()
    new[0, 0] = words - 1  # which is not drawn
    group = f"iadvt, {BATCH} x {LENGTH} words of a table of {words:,} x {dim:,}"
    works = {
        "making the adversary": lambda: made.append(wordward.iadvt(model)),
        "first step": step(ids),
        "steps with known words": step(ids),
        "a step with one new word": step(new),
    }
    for name, work in works.items():
        Path("/proc/self/clear_refs").write_text("5")  # forget the most so far
        before = _status("VmRSS")
        taken = [seconds(work, CPU) for _ in range(REPEATS if name == "steps with known words" else 1)]
        memory = (_status("VmHWM") - before) / 2**20
        yield Figure(group, name, *quartiles(taken), "s", note=f"{memory:,.0f} MiB for a while")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=150_000)
    parser.add_argument("--dim", type=int, default=4_096)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    figures = list(large(given.words, given.dim))
    print(markdown(figures, machine(CPU)))
    if given.json:
        record = {**machine(CPU), "figures": [figure.record() for figure in figures]}
        given.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
