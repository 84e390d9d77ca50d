"""Attacked texts as files: lines of JSON, and CSV as TextAttack writes it."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from wordward.attack.attacked import Attacked, Change
from wordward.support.files import write

COLUMNS = (
    *("original_text", "perturbed_text", "original_score", "perturbed_score", "original_output"),
    *("perturbed_output", "ground_truth_output", "num_queries", "result_type"),
)
KINDS = {"flipped": "Successful", "kept": "Failed", "wrong": "Skipped", "unreadable": "Skipped"}


def from_record(record: dict[str, Any]) -> Attacked:
    """The attacked text that `asdict` made a record of."""
    values = dict(record)
    changes = tuple(Change(**change) for change in values.pop("changes"))
    places = {name: tuple(values.pop(name)) for name in ("flagged", "left", "alone") if name in values}
    return Attacked(changes=changes, **places, **values)


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
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(COLUMNS)
    for attacked in results:
        scores = [f"{1 - p:.6g}" for p in (attacked.probability_before, attacked.probability_after)]
        outputs = attacked.before, attacked.after, attacked.label
        writer.writerow([*marked(attacked), *scores, *outputs, attacked.passes, KINDS[attacked.outcome]])
    write(Path(path), table.getvalue())
