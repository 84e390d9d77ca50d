"""python -m benchmarks.scale [--json FILE]: what longer texts, larger vocabularies and larger corpora cost.

python -m benchmarks.scale --page: the table of docs/scale.md from benchmarks/scale.json, as --json wrote it.
Each figure is a ratio to the smallest size of its group, both measured in turn in the same run.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import steps
from benchmarks.__main__ import keep, machine
from benchmarks.timing import Figure, rate, ratio, side_by_side
from benchmarks.words import draw
from wordward.config.settings import TextSettings
from wordward.perturbation.nearest import nearest
from wordward.text.corpus import Corpus, Stream
from wordward.text.on_disk import Texts, _write
from wordward.text.ragged import Rows
from wordward.text.tokens import words_of
from wordward.text.vocabulary import SPECIALS, Vocabulary
from wordward.text.windows import Reader

CPU = torch.device("cpu")
LENGTHS = (50, 100, 200, 400, 800)  # words of a text
WORDS = (10_000, 100_000, 1_000_000)  # of a vocabulary
TEXTS = (10_000, 100_000, 1_000_000, 10_000_000)  # of a corpus
READ = (500, 1_000, 2_000, 4_000)  # texts of a corpus that is read to its end
KEPT = Path(__file__).parent / "scale.json"
METHODS = ("baseline", "iadvt", "ivat")
DIM = 64
Works = dict[str, Callable[[], object]]


def over_the_first(group: str, works: Works, *, repeats: int, unit: str) -> Iterator[Figure]:
    """Every work's time over the first one's."""
    taken = side_by_side(works, CPU, repeats=repeats)
    first = next(iter(works))
    for name in list(works)[1:]:
        yield ratio(group, f"{name} {unit}", taken[name], taken[first], note=f"over {first} {unit}")


def lengths() -> Iterator[Figure]:
    """A training step as texts grow: time, and memory beyond the model's own."""
    for method in METHODS:
        works = {f"{n}": steps.a_step(replace(steps.SMALL, length=n), method, CPU) for n in LENGTHS}
        yield from over_the_first(f"time of a step, {method}, texts of", works, repeats=5, unit="words")
    for method in METHODS[:2]:
        for n in LENGTHS:
            value = _peak(method, n) / 2**20
            yield Figure(f"memory of a step, {method}, texts of", f"{n} words", value, value, value, "MiB")


def _peak(method: str, length: int) -> float:
    """In a process of its own, since a process may keep what it no longer uses."""
    command = [sys.executable, "-m", "benchmarks.scale", "--peak", method, str(length)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def print_peak(method: str, length: int) -> None:
    """Bytes that a step takes for a while, the model's and Adam's own left out (Linux)."""
    step = steps.stepper(steps.SMALL, method, CPU)
    step(replace(steps.SMALL, length=5).batches(CPU)[0])
    labelled, _ = replace(steps.SMALL, length=length).batches(CPU)
    Path("/proc/self/clear_refs").write_text("5")  # forget the most so far
    before = _status("VmRSS")
    step(labelled)
    print(_status("VmHWM") - before)


def _status(name: str) -> int:
    return int(Path("/proc/self/status").read_text().split(f"{name}:")[1].split()[0]) * 1024


def vocabulary() -> Iterator[Figure]:
    """Nearest words of 256 words, a step's update, and iAdvT's step, as the vocabulary grows."""
    searches: Works = {}
    updates: Works = {}
    whole: Works = {}
    for size in WORDS:
        table, every = torch.randn(size, DIM), torch.arange(size)
        ids = torch.randperm(size)[:256]
        searches[f"{size:,}"] = lambda ids=ids, table=table, every=every: nearest(
            ids, table, 10, allowed=every, metric="cosine"
        )
        updates[f"{size:,}"] = steps.update_alone(replace(steps.SMALL, words=size), CPU)
        whole[f"{size:,}"] = steps.a_step(replace(steps.SMALL, words=size), "iadvt", CPU)
    yield from over_the_first("search of 256 words among", searches, repeats=3, unit="words")
    yield from over_the_first("clipping and Adam with a table of", updates, repeats=3, unit="words")
    yield from over_the_first("time of a step, iadvt, with a table of", whole, repeats=3, unit="words")


def epochs() -> Iterator[Figure]:
    """All batches of a corpus once, as it grows."""
    works: Works = {f"{count:,}": _epoch(count) for count in READ}
    yield from over_the_first("time of an epoch, baseline, of", works, repeats=3, unit="texts")


def _epoch(count: int) -> Callable[[], object]:
    step = steps.stepper(steps.SMALL, "baseline", CPU)
    ids = draw(steps.SMALL.words - len(SPECIALS), (count, steps.SMALL.length)).astype(np.int32) + len(SPECIALS)
    stream = Stream(Corpus(list(ids), np.arange(count) % 2), steps.SMALL.batch, seed=(0,))

    def work() -> None:
        for _ in range(len(stream)):
            step(stream.next(CPU))

    return work


def corpus() -> Iterator[Figure]:
    """The start of an epoch as the corpus grows: the order of the batches, and of the texts of a language model."""
    made = {f"{count:,}": _mapped(count) for count in TEXTS}
    orders: Works = {name: lambda rows=rows: Stream(Corpus(rows), 32, seed=(0,)) for name, rows in made.items()}
    yield from over_the_first("start of an epoch with", orders, repeats=3, unit="texts")
    starts: Works = {
        name: lambda rows=rows: next(Reader(rows, 32, 100).windows(np.random.default_rng(0)))
        for name, rows in made.items()
    }
    yield from over_the_first("start of the language model's epoch with", starts, repeats=3, unit="texts")
    count = TEXTS[2]
    for name, start in (("batches", orders[f"{count:,}"]), ("language model", starts[f"{count:,}"])):
        tracemalloc.start()
        start()
        value = tracemalloc.get_traced_memory()[1] / count
        tracemalloc.stop()
        yield Figure("memory of an epoch's order", name, value, value, value, "bytes/text")


def _mapped(texts: int) -> Rows:
    """Texts of many lengths whose ids are nowhere in memory: one word, seen again and again."""
    sizes = np.clip(np.random.default_rng(0).lognormal(5.1, 0.75, texts), 5, 2_000).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Rows(np.broadcast_to(np.int32(3), (int(offsets[-1]),)), offsets)


def storing() -> Iterator[Figure]:
    """A large file of texts into ids on disk, and a pass over them."""
    names = np.array([f"word{rank}" for rank in range(30_000)])
    lines = [" ".join(names[draw(30_000, 230, seed=at)]) for at in range(2_000)]
    settings = TextSettings()
    words = Vocabulary.build((line.split() for line in lines), min_documents=1)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "many.txt"
        file.write_text("\n".join(lines))
        texts = Texts([file])

        def count() -> None:
            Vocabulary.build(words_of(example, settings) for example in texts)

        def encode() -> None:
            with tempfile.TemporaryDirectory() as fresh:
                _write(Path(fresh) / "ids", texts, words, settings, tagging=False, quiet=True)

        taken = side_by_side({"count": count, "encode": encode}, CPU, repeats=3)
    total = sum(len(line.split()) for line in lines)
    group = "a file read one text at a time, one core"
    yield rate(group, "counting its words", total, taken["count"], "words/s")
    yield rate(group, "writing its ids", total, taken["encode"], "words/s")


def table(figures: list[Figure]) -> str:
    """One line a figure."""
    lines = ["| | | median | middle half | |", "|---|---|---:|---|---|"]
    for at, figure in enumerate(figures):
        group = figure.group if at == 0 or figures[at - 1].group != figure.group else ""
        value, low, high = (
            f"{each:,.0f}" if each >= 100 else f"{each:.1f}" for each in (figure.value, figure.low, figure.high)
        )
        spread = "" if low == high else f"{low} to {high}"
        lines.append(f"| {group} | {figure.name} | {value} {figure.unit} | {spread} | {figure.note} |")
    return "\n".join(lines)


def measured(figures: list[Figure], where: dict[str, Any]) -> str:
    """The table and what it was measured on."""
    told = ", ".join(f"{name} {value}" for name, value in where.items())
    return f"Measured on {told}.\n\n{table(figures)}\n"


def page() -> str:
    """The same of the kept figures, as docs/scale.md shows it."""
    kept = json.loads(KEPT.read_text())
    return measured([Figure(**each) for each in kept["figures"]], kept["machine"])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peak", nargs=2, metavar=("METHOD", "LENGTH"), help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--page", action="store_true", help="print the table of kept figures, measure nothing")
    given = parser.parse_args()
    if given.peak:
        print_peak(given.peak[0], int(given.peak[1]))
        return
    if given.page:
        print(page(), end="")
        return
    figures = [figure for part in (lengths, vocabulary, epochs, corpus, storing) for figure in part()]
    where = machine(CPU)
    if given.json:
        keep(given.json, figures, where)
    print(measured(figures, where), end="")


if __name__ == "__main__":
    main()
