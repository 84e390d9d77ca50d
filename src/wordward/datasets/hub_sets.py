"""Data sets of the Hugging Face hub, by the package datasets: `hub:NAME`, `hub:NAME:CONFIG`, `hub:NAME@SPLIT`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Any

from wordward.support.errors import DataError, MissingExtraError

PREFIX = "hub:"
# Kinds of columns that are read; not images, sounds and the like.
PLAIN = ("Value", "ClassLabel", "Sequence", "List", "LargeList", "dict", "list")


def is_hub_set(path: Path) -> bool:
    """Whether this names a data set of the hub."""
    return str(path).startswith(PREFIX)


def write_hub_set(path: Path, copy: Path) -> None:
    """The texts of a data set as JSON Lines, labels by name; code that comes with it is never run."""
    name, config, split = _parts(str(path))
    rows = _loaded(name, config, split, str(path))
    names = {key: kind.names for key, kind in rows.features.items() if hasattr(kind, "names")}  # of a ClassLabel
    plain = [key for key, kind in rows.features.items() if type(kind).__name__ in PLAIN]
    with copy.open("w", encoding="utf-8") as file:
        for row in rows.select_columns(plain):
            for key, labels in names.items():
                known = isinstance(row[key], int) and 0 <= row[key] < len(labels)
                row[key] = labels[row[key]] if known else None  # -1 stands for none
            file.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")


def _parts(given: str) -> tuple[str, str | None, str | None]:
    """Name, configuration and split."""
    found = re.fullmatch(rf"{PREFIX}([^:@]+)(?::([^:@]+))?(?:@([^:@]+))?", given)
    if found is None:
        raise DataError(f"expected {PREFIX}NAME, {PREFIX}NAME@SPLIT or {PREFIX}NAME:CONFIG@SPLIT", given)
    return found[1], found[2], found[3]


def _loaded(name: str, config: str | None, split: str | None, given: str) -> Any:
    """A split of a data set: the one that is named, or the only one."""
    try:
        from datasets import load_dataset
    except ImportError:
        raise MissingExtraError(
            f"{given}: data sets of the hub need datasets, which is not installed: pip install 'wordward[datasets]'"
        ) from None
    options: Any = {"trust_remote_code": False} if "trust_remote_code" in signature(load_dataset).parameters else {}
    try:
        found: Any = load_dataset(name, config, split=split, **options)
    except Exception as error:  # each way of loading has its own
        lines = [line.strip() for line in str(error).split("\n") if line.strip()]
        why = " ".join(lines[:2])[:300] or type(error).__name__
        raise DataError(
            f"expected a data set of the Hugging Face hub, as {PREFIX}NAME@SPLIT or {PREFIX}NAME:CONFIG@SPLIT; "
            f"got: {why}",
            given,
        ) from None
    if not isinstance(found, Mapping):
        return found
    if len(found) != 1:
        named = ", ".join(f"{given}@{each}" for each in found)
        raise DataError(f"expected one of its splits, {named}; got none", given)
    return next(iter(found.values()))
