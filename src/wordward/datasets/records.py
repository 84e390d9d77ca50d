"""Texts from records with named fields: JSON Lines and Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wordward.datasets.columns import Columns
from wordward.datasets.decompress import check_unfolded
from wordward.datasets.example import Example, check_characters
from wordward.datasets.lines import lines
from wordward.datasets.tables import example_of
from wordward.support.errors import ColumnError, DataError, MissingExtraError

ABSENT: Any = object()
TEXTS = ("text_column", "pair_column")  # settings that name a column of texts


def json_lines(path: Path, columns: Columns) -> Iterator[Example]:
    """The texts of a file with a JSON object per line."""
    for number, line in enumerate(lines(path), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"expected one JSON object per line; got: {error}{_array_hint(line, number)}", path, number
            ) from None
        if not isinstance(record, dict):
            raise DataError(f"expected a JSON object; got {line[:60]!r}{_array_hint(line, number)}", path, number)
        yield _example(record, path, columns, number)


def parquet(path: Path, columns: Columns) -> Iterator[Example]:
    """The texts of a Parquet file, of which only the columns that are looked for are read."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise MissingExtraError(
            f"{path}: reading Parquet needs pyarrow, which is not installed: pip install 'wordward[tables]'"
        ) from None
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            groups = [file.metadata.row_group(at) for at in range(file.metadata.num_row_groups)]
            check_unfolded(sum(group.total_byte_size for group in groups), path.stat().st_size, path)
            names = file.schema_arrow.names
            tops = {top for name in columns.wanted.values() for top in (name, name.partition(".")[0]) if top in names}
            number = 0
            for batch in file.iter_batches(columns=[name for name in names if name in tops] or names):
                for record in batch.to_pylist():
                    number += 1
                    yield _example({name: record.get(name) for name in names}, path, columns, number)
    except (pyarrow.ArrowException, UnicodeDecodeError, OSError) as error:
        raise DataError(f"expected a Parquet file; got: {error}", path) from None


def _example(record: Mapping[str, Any], path: Path, columns: Columns, number: int) -> Example:
    values: list[str] = []
    for option, name in columns.wanted.items():
        if (value := _field(record, name)) is ABSENT:
            within = next((key for key, inner in record.items() if isinstance(inner, dict) and inner), None)
            inside = f", a field inside another as {within}.{next(iter(record[within]))}" if within else ""
            raise ColumnError(
                f"expected a key {name!r}; found {', '.join(record)[:200]}: name it with `{option}`{inside}",
                path,
                number,
            )
        missing = value is None or value != value
        empty = missing and (option == "group_column" or columns.skip_empty)
        if columns.lists and option == "label_column" and isinstance(value, list):
            value = json.dumps([_text(each, option, name, path, number) for each in value], ensure_ascii=False)
        values.append("" if empty else _text(value, option, name, path, number))
    return example_of(values, path, number, columns)


def _field(record: Any, name: str) -> Any:
    """The field of that name, or that of its parts: `review.text` is text inside review, `reviews.0` the first."""
    if isinstance(record, Mapping) and name in record:
        return record[name]
    first, _, rest = name.partition(".")
    if isinstance(record, list) and first.isdecimal() and int(first) < len(record):
        return _field(record[int(first)], rest) if rest else record[int(first)]
    if not rest or not isinstance(record, Mapping) or first not in record:
        return ABSENT
    return _field(record[first], rest)


def _array_hint(line: str, number: int) -> str:
    """What to do if the file is a single array, as most programs write JSON."""
    is_array = number == 1 and line.lstrip().startswith("[")
    return ": write each object of the array on its own line (jq -c '.[]')" if is_array else ""


def _text(value: object, option: str, name: str, path: Path, line: int) -> str:
    if isinstance(value, str):
        check_characters(value, path, line)
        return value
    label = option not in TEXTS
    # A missing value may be written as NaN.
    if label and isinstance(value, (bool, int, float)) and value == value:
        return json.dumps(value)
    if isinstance(value, dict) and value:
        raise DataError(
            f"expected {_wanted(label)}; got an object: name one of its fields, "
            f"`{option}={f'{name}.{next(iter(value))}'!r}`",
            path,
            line,
        )
    kind = "null" if value is None else "NaN" if value != value else type(value).__name__
    if label and isinstance(value, list):
        kind = "list, which is read for a model that gives several labels at once"
    raise DataError(f"expected {_wanted(label)}; got {kind}: check the key named by `{option}`", path, line)


def _wanted(label: bool) -> str:
    return "one label, a string or a number" if label else "a string"
