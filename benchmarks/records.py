"""What benchmarks of whole models measured: a file of JSON Lines, read, added to, and told as means over seeds."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any


def recorded(file: Path) -> list[dict[str, Any]]:
    """The records of a file; none where there is no file yet."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def add(file: Path, records: Iterable[dict[str, Any]]) -> None:
    """Write records behind those of a file."""
    with file.open("a", encoding="utf-8") as lines:
        lines.writelines(json.dumps(each, sort_keys=True) + "\n" for each in records)


def mean(values: Sequence[float]) -> str:
    """The mean of some shares, with the least and the most where there are several."""
    spread = f" ({min(values):.1%} to {max(values):.1%})" if len(values) > 1 else ""
    return f"{sum(values) / len(values):.1%}{spread}"
