"""Results of runs as JSON Lines, and tables of them: ours next to the paper's."""

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.intervals import half
from experiments.paired import gain, one_by_one
from experiments.tables import TABLES, Column
from wordward.runs.metrics import share
from wordward.support.errors import DataError
from wordward.support.files import write
from wordward.support.locks import locked

Record = dict[str, Any]
IDENTITY = {"column", "preset", "row", "seed"}  # what identifies a record
SHOWN = {"counted", "criterion", "dev", "device", "seconds", "test", "versions", "wrong"}  # in the tables
SWAPS = (1, 2, 4, 8)  # how many words an attack may swap, in tables that show one
TITLES = (
    *("method", "paper", "ours", "95 % interval", "seeds", "difference", "our dev", "seconds a run"),
    "gain over the baseline",
)
SENSES = ("any", "kept")  # for any word that fits, and only where the text keeps its sense


def append(path: Path, record: Record) -> None:
    """Add a record; one of the same row, seed and preset is replaced. Several processes may do so at once."""
    try:
        with locked(path.with_name(path.name + ".lock")):
            kept = [other for other in load(path) if _identity(other) != _identity(record)]
            lines = [json.dumps(line, sort_keys=True) for line in sorted([*kept, record], key=_identity)]
            write(path, "\n".join(lines) + "\n")
    except OSError as error:
        raise DataError(
            f"{path}: expected a file that can be written; got: {error.strerror or error}: free some space and run "
            "the same command again, which repeats no finished training"
        ) from None


def load(path: Path) -> list[Record]:
    """The records of a file; none if there is no file."""
    if not path.exists():
        return []
    records: dict[tuple[str, str, str, int], Record] = {}
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            record = _checked(json.loads(line))
        except (ValueError, TypeError, AttributeError) as error:
            raise DataError(
                f"{path}, line {number}: expected a result as JSON; got: {error}: delete the line to run it again"
            ) from None
        if records.setdefault(_identity(record), record) is not record:
            raise DataError(
                f"{path}, line {number}: expected one result of {record['row']}, seed {record['seed']}; got a second "
                "one, which would count as another seed: delete one of the two lines"
            )
    return list(records.values())


def _checked(record: Any) -> Record:
    """The record, if it names its run and holds what the tables show."""
    if not isinstance(record, dict):
        raise ValueError("not an object")
    if missing := sorted((IDENTITY | SHOWN) - record.keys()):
        raise ValueError(f"no {', '.join(missing)}")
    if len(base64.b64decode(record["wrong"])) != (record["counted"] + 7) // 8:
        raise ValueError(f"a field wrong that does not hold {record['counted']} bits")
    numbers = [record["seconds"], record["dev"].get(record["criterion"])]
    numbers += [record["test"].get(name) for name in ("value", "low", "high")]
    if not all(isinstance(number, float | int) for number in numbers):
        raise ValueError("fields dev, test or seconds without their numbers")
    return record


def _identity(record: Record) -> tuple[str, str, str, int]:
    return record["column"], record["preset"], record["row"], record["seed"]


def markdown(column: Column, records: Sequence[Record], *, preset: str = "paper") -> str:
    """A column's table: paper, ours with its 95 % interval over seeds, difference, dev, seconds, gain."""
    small = preset != "paper"  # on a fraction of the texts, the difference to the paper means nothing
    lines = [f"### {column.title}{f', preset {preset}' if small else ''}", ""]
    if column.stand_in:
        lines += [f"*Stand-in*: {column.stand_in}", ""]
    titles = [column.runs if title == "seeds" else title for title in TITLES]
    lines += [f"| {' | '.join(titles)} |", "|---|---:|---:|---|" + "---:|" * (len(TITLES) - 5) + "---|"]
    for row in column.rows:
        ours = [record for record in records if record["row"] == row.name]
        paper = None if column.stand_in or small else row.paper
        cells = [*_ours(ours, paper, column.runs), gain(row.name, records)] if ours else ["–"]
        lines.append(_line(row.title, row.paper, cells, len(TITLES)))
    for title, paper in column.cited:
        lines.append(_line(f"{title} (cited by the paper)", paper, ["–"], len(TITLES)))
    compared = one_by_one(records, together=bool(column.folds_of))
    return "\n".join([*lines, *_under_attack(column, records), *(["", *compared] if compared else [])]) + "\n"


def _line(title: str, paper: float | None, cells: Sequence[str], width: int) -> str:
    filled = [title, "–" if paper is None else f"{paper:.2f}", *cells]
    return f"| {' | '.join([*filled, *[''] * (width - len(filled))])} |"


def _ours(records: Sequence[Record], paper: float | None, runs: str) -> list[str]:
    (mean, low, high), count = in_percent(records), len(records)
    interval = f"{low:.2f} to {high:.2f} ({runs if count > 1 else 'test texts'})"
    seconds = sum(record["seconds"] for record in records) / count
    dev = 100 * sum(record["dev"][record["criterion"]] for record in records) / count
    difference = "–" if paper is None else f"{mean - paper:+.2f}"
    return [f"{mean:.2f}", interval, str(count), difference, f"{dev:.2f}", f"{seconds:.0f}"]


def in_percent(records: Sequence[Record]) -> tuple[float, float, float]:
    """The mean test score over seeds and the ends of its 95 % interval, that of the test texts where there is one."""
    values = [100 * record["test"]["value"] for record in records]
    mean = sum(values) / len(values)
    if len(values) == 1:
        return mean, *(100 * records[0]["test"][end] for end in ("low", "high"))
    around = half(values)
    return (
        mean,
        max(mean - around, 0.0),
        min(mean + around, 100.0),
    )  # of a few seeds far apart it may exceed 0 to 100 %


def _under_attack(column: Column, records: Sequence[Record]) -> list[str]:
    """A table of accuracies after word swaps, of the rows that were attacked."""
    attacked = [record for record in records if "attacked" in record]
    measured = [(sense, str(swaps)) for sense in SENSES for swaps in SWAPS]
    measured = [(sense, swaps) for sense, swaps in measured if _accuracies(attacked, sense, swaps)]
    if not measured:
        return []
    texts = " or ".join(f"{count:,}" for count in sorted({record["attacked"]["texts"] for record in attacked}))
    titles = ["method", *(f"{sense}, {swaps}" for sense, swaps in measured), "seeds"]
    lines = [
        "",
        f"Accuracy (%) on {texts} test texts after so many word swaps, any or those that keep the sense:",
        "",
    ]
    lines += [f"| {' | '.join(titles)} |", "|---|" + "---:|" * (len(titles) - 1)]
    for row in column.rows:
        if ours := [record for record in attacked if record["row"] == row.name]:
            cells = [_accuracy(ours, sense, swaps) for sense, swaps in measured]
            lines.append(f"| {' | '.join([row.title, *cells, str(len(ours))])} |")
    return lines


def _accuracies(records: Sequence[Record], sense: str, swaps: str) -> list[float]:
    """In percent, one a record that has it."""
    found = [record.get("attacked", {}).get(sense, {}).get(swaps) for record in records]
    return [100 * value for value in found if value is not None]


def _accuracy(records: Sequence[Record], sense: str, swaps: str) -> str:
    found = under_attack(records, sense, swaps)
    return "–" if found is None else f"{found[0]:.1f} ± {found[1]:.1f}"


def under_attack(records: Sequence[Record], sense: str, swaps: str) -> tuple[float, float] | None:
    """The mean accuracy over seeds and half of its 95 % interval (with one seed that over the texts), in percent."""
    values = _accuracies(records, sense, swaps)
    if not values:
        return None
    mean = sum(values) / len(values)
    if len(values) > 1:
        return mean, half(values)
    texts = next(record["attacked"]["texts"] for record in records if _accuracies([record], sense, swaps))
    _, low, high = share(round(mean * texts / 100), texts)
    return mean, 50 * (high - low)


def page(folder: Path) -> str:
    """All of docs/results.md: tables of the records in experiments/results, with the notes on each column."""
    if not (files := sorted(folder.glob("*.jsonl"))):
        raise DataError(f"expected results as *.jsonl in {folder}; found none: run this in a clone of wordward")
    records = [record for path in files for record in load(path)]
    parts = [
        "# Results\n",
        "Generated by `python -m experiments results` from `experiments/results/*.jsonl`, which hold configuration, "
        "seed, versions, device, seconds, dev and test scores of every run, and from `experiments/*/notes.md`. The "
        "epoch was chosen on dev, nothing on test; what else was tried is in `experiments/tried.jsonl`. Rows without "
        "a number have not been run. The gain over the baseline is in points, paired: each run with the baseline's "
        "of the same seed, its 95 % interval over these pairs; where there is but one over the test texts, or none "
        "for F0.5.\n",
    ]
    missing = []
    for column in (column for table in TABLES.values() for column in table):
        runs = [r for r in records if r["column"] == column.name and r["preset"] == "paper"]
        if not runs:
            missing.append(column.title.partition(", test")[0])
            continue
        file = folder.parent / column.name / "notes.md"
        notes = file.read_text(encoding="utf-8") if file.exists() else ""
        parts += [markdown(column, runs), _texts(runs), _devices(runs), notes]
    if missing:
        parts.append(f"Not run yet: {'; '.join(missing)}.\n")
    return "\n".join(part for part in parts if part)


def _texts(records: Sequence[Record]) -> str:
    """How many texts the runs were trained on: as many of each kind as the least and the most of them."""
    counts: dict[str, list[int]] = {}
    for record in records:
        for name, count in record.get("texts", {}).items():
            counts.setdefault(name, []).append(count)
    ends = {name: sorted({min(of), max(of)}) for name, of in counts.items()}
    told = (f"{' to '.join(f'{count:,}' for count in of)} {name}" for name, of in ends.items())
    return f"Texts: {', '.join(told)}.\n" if ends else ""


def _devices(records: Sequence[Record]) -> str:
    devices = sorted({f"{record['device']}, torch {record['versions']['torch']}" for record in records})
    return f"Run on {'; '.join(devices)}.\n" if devices else ""
