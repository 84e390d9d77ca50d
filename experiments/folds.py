"""A column's labelled texts in ten folds: each is tested once, by a model that was trained on the nine others."""

import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from experiments.settings import COMMON, SPLIT_SEED, WITHOUT_LABELS, Plan, config_of, fold_folder
from experiments.tables import FOLDS, Column
from wordward.config.settings import TrainConfig
from wordward.datasets import DataError, Example, registry
from wordward.datasets.example import drop_shared, single_spaced
from wordward.support.files import write
from wordward.support.locks import locked
from wordward.text.loading import read_as

SAID = "folds.json"  # written when all files are there: how many texts each fold tests


def make(column: Column, plan: Plan) -> None:
    """Write the texts of each fold, unless they are there; of several commands, one does."""
    folder = fold_folder(column, plan)
    with locked(folder.with_name("folds.lock")):
        if (folder / SAID).exists():
            return
        labelled, unlabelled = _texts(column, plan)
        unlabelled = drop_shared(unlabelled, labelled)
        if not unlabelled:
            raise DataError(
                f"expected texts without labels of {column.folds_of} for a language model to read, the only ones "
                "that no fold tests; there are none: see docs/reproduce.md for how to get them"
            )
        tested = drawn(labelled)
        for fold in range(1, FOLDS + 1):
            for name, held_out in (("train", False), ("test", True)):
                chosen = [each for each, its in zip(labelled, tested, strict=True) if (its == fold) == held_out]
                _write(folder / str(fold) / f"{name}.jsonl", chosen)
        _write(folder / WITHOUT_LABELS, unlabelled)
        write(folder / SAID, json.dumps({fold: tested.count(fold) for fold in range(1, FOLDS + 1)}))


def drawn(examples: Sequence[Example]) -> list[int]:
    """The fold, 1 to 10, that tests each text; 0 for one with a label that no other text has, which is always learnt.

    Equal texts are in one fold, and the texts of a label as evenly over the folds as can be.
    """
    equal: dict[str, list[int]] = {}
    for number, example in enumerate(examples):
        equal.setdefault(single_spaced(example.text), []).append(number)
    groups = list(equal.values())
    random.Random(SPLIT_SEED).shuffle(groups)
    labels = [{str(examples[number].label) for number in group} for group in groups]
    others = Counter(label for of_group in labels for label in of_group)
    dealt = [group for group, names in zip(groups, labels, strict=True) if all(others[name] > 1 for name in names)]
    folds = [0] * len(examples)
    for place, group in enumerate(sorted(dealt, key=lambda group: str(examples[group[0]].label))):
        for number in group:
            folds[number] = place % FOLDS + 1
    return folds


def _texts(column: Column, plan: Plan) -> tuple[list[Example], Sequence[Example]]:
    """All labelled texts of the column that is divided, those of its test, too, and those without labels."""
    folder = plan.experiments / column.settings
    data = config_of(TrainConfig, folder / COMMON).data
    if data.corpus:
        splits = registry.load(data.corpus)
        return [*splits.train, *splits.dev, *splits.test], splits.unlabelled
    rows = (config_of(TrainConfig, folder / COMMON, folder / f"{row.name}.toml").data for row in column.rows)
    without = next((row.unlabelled for row in rows if row.unlabelled), None)
    labelled = [example for path in (data.train, data.dev, data.test) if path for example in read_as(data, path)]
    return labelled, read_as(data, without, labelled=False) if without else []


def _write(path: Path, examples: Iterable[Example]) -> None:
    write(path, "".join(json.dumps(_line(each), ensure_ascii=False) + "\n" for each in examples))


def _line(example: Example) -> dict[str, Any]:
    return {"text": example.text} if example.label is None else {"text": example.text, "label": example.label}
