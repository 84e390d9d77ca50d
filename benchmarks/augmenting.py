"""python -m benchmarks.augmenting: are models harder to fool that learnt from texts that fooled them?

1,000 film sentences (rotten_tomatoes of the data folder, see WORDWARD_DATA) and 200 others. For each kind of model
and seed: `wordward train` as it is, and with `--augment`; then `wordward check` with one kind of edits after the
other. A row that is in the records already is not run again; --table prints them.
"""

import argparse
import csv
import json
import time
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.records import add, mean, recorded
from benchmarks.yours import machine, texts_of
from wordward.cli.main import main as wordward
from wordward.datasets import sample
from wordward.datasets.example import label_names
from wordward.support.version import __version__

RESULTS = Path(__file__).parent / "results" / "augmenting.jsonl"
TEXTS, TESTED = 1_000, 200
KINDS = {
    "convolution": ["--kind", "convolution", "--epochs", "8"],
    "transformer": ["--epochs", "3"],  # MiniLM if it is installed
}
AUGMENTED = ["--augment", "100", "--augment-edits", "typo,homoglyph"]
TRAINED = {"as they are": [], "augmented": AUGMENTED}
EDITS = ("typo", "homoglyph")
BUDGETS = ("1", "4")


def write_files(folder: Path, seed: int) -> None:
    """train.csv and test.csv."""
    train, test = texts_of("rotten_tomatoes")
    drawn = {"train": sample(train, TEXTS, seed=seed, labels=label_names), "test": sample(test, TESTED)}
    for name, examples in drawn.items():
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("text", "label"), *((each.text, each.label) for each in examples)])


def run_row(folder: Path, kind: str, trained: str, seed: int) -> Iterator[dict[str, Any]]:
    """Train a model and check it under each kind of edits, by the command line; the numbers of each check."""
    run, out, started = folder / f"{kind}-{trained}-{seed}", folder / "check.json", time.monotonic()
    how = ["--method", "baseline", "--seed", str(seed), "--device", "cpu", "--quiet", *KINDS[kind], *TRAINED[trained]]
    if wordward(["train", "--train", str(folder / "train.csv"), "--out", str(run), *how]):
        raise SystemExit(f"{kind} {trained} {seed} was not trained")
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    learnt = {"augmented": result.get("augmented"), "training_seconds": round(time.monotonic() - started, 1)}
    for edits in EDITS:
        given = ["--edits", edits, "--sense", "any", "--budgets", *BUDGETS, "--json", str(out), "--device", "cpu"]
        if wordward(["check", str(run), str(folder / "test.csv"), *given, "--quiet"]):
            raise SystemExit(f"{kind} {trained} {seed} was not checked")
        found = json.loads(out.read_text(encoding="utf-8"))
        yield {"edits": edits, "accuracy": found["accuracy"], **learnt}


def table(records: Sequence[dict[str, Any]]) -> str:
    """A row for each kind of model, kind of edits and way of training: means over seeds."""
    heads = ["model", "edits", "learnt from texts", "accuracy", *(f"under {number}" for number in BUDGETS), "seeds"]
    lines = [f"| {' | '.join(heads)} |", "|---|---|---|---:|---:|---:|---:|"]
    for kind, edits, trained in product(KINDS, EDITS, TRAINED):
        of = [each for each in records if (each["kind"], each["edits"], each["trained"]) == (kind, edits, trained)]
        if of:
            cells = [mean([each["accuracy"][number]["value"] for each in of]) for number in ("0", *BUDGETS)]
            lines.append(f"| {kind} | {edits} | {trained} | {' | '.join(cells)} | {len(of)} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is asked for and not yet recorded, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--seed", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--records", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args(arguments)
    records = recorded(given.records)
    done = {(r["kind"], r["seed"], r["trained"]) for r in records}
    wanted = [row for row in product(given.kind, given.seed, TRAINED) if row not in done and not given.table]
    with TemporaryDirectory() as place:
        for kind, seed, trained in wanted:
            write_files(Path(place), seed)
            row = {"kind": kind, "seed": seed, "trained": trained, "version": __version__, "machine": machine()}
            new = [row | each for each in run_row(Path(place), kind, trained, seed)]
            records += new
            add(given.records, new)
    print(table(records), end="")


if __name__ == "__main__":
    main()
