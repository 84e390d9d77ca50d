"""Attacked texts as files: JSON Lines that an attack can go on with, and CSV as TextAttack writes it."""

import csv
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import wordward
from wordward.attacks.attacked import Attacked, AttackSettings, Change
from wordward.datasets import DataError, Example
from wordward.predict import Run
from wordward.run_folder import write

COLUMNS = (
    *("original_text", "perturbed_text", "original_score", "perturbed_score", "original_output"),
    *("perturbed_output", "ground_truth_output", "num_queries", "result_type"),
)
KINDS = {"flipped": "Successful", "kept": "Failed", "wrong": "Skipped", "unreadable": "Skipped"}


def to_record(attacked: Attacked, number: int) -> dict[str, Any]:
    """A line of JSON Lines."""
    return {"number": number, **asdict(attacked)}


def from_record(record: dict[str, Any]) -> Attacked:
    """What `to_record` wrote."""
    values = {name: value for name, value in record.items() if name != "number"}
    changes = tuple(Change(**change) for change in values.pop("changes"))
    places = {name: tuple(values.pop(name)) for name in ("flagged", "left")}
    return Attacked(changes=changes, **places, **values)


def describe(
    run: Run, examples: Sequence[Example], settings: AttackSettings, **more: str | None
) -> dict[str, Any]:
    """What decides the results: the weights, the texts with their labels, the settings."""
    texts = hashlib.sha256()
    for example in examples:
        texts.update(json.dumps([example.text, example.label, example.tags]).encode())
    weights = hashlib.sha256()
    for file in run.weights:
        weights.update(file.read_bytes())
    return {
        "run": str(run.folder),
        "weights": weights.hexdigest()[:16] if run.weights else None,
        "texts": len(examples),
        "fingerprint": texts.hexdigest()[:16],
        "settings": json.loads(json.dumps(asdict(settings))),
        "positive": run.config.training.positive,
        "version": wordward.__version__,
        **more,
    }


class ResultsFile:
    """JSON Lines that grow as texts are done, with a file beside them that says of what."""

    def __init__(self, path: str | Path, described: dict[str, Any], *, force: bool = False) -> None:
        self.path = Path(path)
        self.beside = self.path.with_name(self.path.name + ".settings.json")
        if force:
            self.path.unlink(missing_ok=True)
        self.done = self._done(described)
        write(self.beside, json.dumps(described, indent=1, ensure_ascii=False) + "\n")

    def _done(self, described: dict[str, Any]) -> list[Attacked]:
        """The texts done before; refused where the file is of another attack."""
        if not self.path.exists():
            return []
        again = "choose another --out, or --force to begin anew"
        if not self.beside.exists():
            raise DataError(
                f"expected {self.beside.name} beside it, which says of what it is: {again}", self.path
            )
        before = json.loads(self.beside.read_text(encoding="utf-8"))
        if other := [name for name, value in described.items() if before.get(name) != value]:
            raise DataError(
                f"it holds the results of another attack (other {', '.join(other)}): {again}", self.path
            )
        lines = self.path.read_text(encoding="utf-8", errors="replace").split("\n")[
            :-1
        ]  # half a line is no line
        write(self.path, "".join(f"{line}\n" for line in lines))
        try:
            records = [json.loads(line) for line in lines]
            if [record["number"] for record in records] != list(range(len(records))):
                raise ValueError("the texts are not in order")
            return [from_record(record) for record in records]
        except (ValueError, TypeError, KeyError) as error:
            raise DataError(f"expected results of `wordward attack` ({error}): {again}", self.path) from None

    def append(self, attacked: Attacked) -> None:
        """Write one more, at once."""
        line = json.dumps(to_record(attacked, len(self.done)), ensure_ascii=False)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        self.done.append(attacked)


def marked(attacked: Attacked) -> tuple[str, str]:
    """Both texts with `[[...]]` around the words that were swapped."""
    original, adversarial = [], []
    end = 0
    for change in attacked.changes:
        between = attacked.text[end : change.start]
        original += [between, f"[[{attacked.text[change.start : change.end]}]]"]
        adversarial += [between, f"[[{change.toward}]]"]
        end = change.end
    rest = attacked.text[end:]
    return "".join([*original, rest]), "".join([*adversarial, rest])


def write_csv(path: str | Path, results: Iterable[Attacked]) -> None:
    """The columns of TextAttack's CSV; a score is 1 - p of the label that is to change."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for attacked in results:
            scores = [f"{1 - p:.6g}" for p in (attacked.probability_before, attacked.probability_after)]
            outputs = attacked.before, attacked.after, attacked.label
            writer.writerow([*marked(attacked), *scores, *outputs, attacked.passes, KINDS[attacked.outcome]])
