"""Read the user's own texts from CSV, TSV, JSON lines, CoNLL columns, plain text or a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import chain
from os import PathLike
from pathlib import Path

from wordward.datasets.columns import Columns, check_row, looks_like_header, places_of, refuse_header
from wordward.datasets.conll import sentences
from wordward.datasets.example import Example
from wordward.datasets.lines import TableRow, csv_rows, lines, tsv_rows
from wordward.datasets.snap import is_snap, reviews
from wordward.support.errors import ColumnError, DataError, MissingError

# The first ending that matches decides; Elec publishes its files of one text per line as .txt.tok.
_ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".json": "jsonl",
    ".txt.tok": "txt",
    ".tok": "conll",
    ".conll": "conll",
    ".txt": "txt",
}
_OTHERS = dict.fromkeys((".zip", ".bz2", ".zst", ".7z", ".rar", ".tar", ".tgz"), "unpack it first")
_OTHERS |= dict.fromkeys((".xlsx", ".xls", ".ods", ".parquet", ".feather", ".arrow"), "save it as CSV or JSON Lines")


def read(
    path: str | PathLike[str],
    *,
    text_column: str = "text",
    label_column: str = "label",
    labelled: bool = True,
    format: str | None = None,
    tag_column: int = -1,
) -> list[Example]:
    """Read the texts of a file (CSV, TSV, JSON Lines, CoNLL, plain text, also .gz or .xz) or a folder.

    Args:
        path: The file, or a folder with a folder of .txt files for each label.
        text_column: Name of the column that holds the text, or its number from 0 in a file without a header.
        label_column: The same for the label.
        labelled: Whether labels are read.
        format: csv, tsv, jsonl, conll or txt, where the file name does not tell.
        tag_column: Column of the tag in a CoNLL file, from 0; -1 is the last.

    Returns:
        An `Example` for each text or tagged sentence.

    Raises:
        DataError: If the file cannot be read so; it names the line.

    Examples:
        >>> import tempfile, pathlib, wordward.datasets
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "texts.csv"
        >>> _ = file.write_text("text,label\\na warm film,good\\na dull film,bad\\n")
        >>> [example.label for example in wordward.datasets.read(file)]
        ['good', 'bad']
    """
    columns = Columns(str(text_column), str(label_column), tag_column, labelled)
    return list(read_each(Path(path), columns, format))


def read_each(path: Path, columns: Columns, format: str | None = None) -> Iterator[Example]:
    """Like `read`, but one example at a time."""
    if not path.exists():
        raise MissingError("expected a file or folder; there is none of this name", path)
    kind = "folder" if path.is_dir() else format or _format(path)
    if kind not in _READERS:
        raise DataError(f"expected a format among {', '.join(FORMATS)}; got {kind!r}", path)
    examples = _READERS[kind](path, columns)
    first = next(examples, None)
    if first is None:
        inside = "files path/<class>/*.txt" if columns.labelled else "one or more files *.txt"
        raise DataError(f"expected {inside if kind == 'folder' else 'one or more texts'}; found none", path)
    return chain([first], examples)


def _format(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz").removesuffix(".xz")
    for ending, kind in _ENDINGS.items():
        if name.endswith(ending):
            return kind
    remedy = next((remedy for ending, remedy in _OTHERS.items() if name.endswith(ending)), None)
    if remedy is None:
        kinds = ", ".join(kind for kind in FORMATS if kind != "folder")
        remedy = f"rename the file or give `format`, one of {kinds}"
    raise DataError(
        f"expected a folder or a name ending in {', '.join(_ENDINGS)} (also compressed as .gz or .xz): {remedy}",
        path,
    )


def _table(rows: Iterator[TableRow], path: Path, columns: Columns) -> Iterator[Example]:
    first = next(rows, None)
    if first is None:
        return
    headed, places = places_of(first, path, columns)
    suspect = not headed and looks_like_header(first, places)
    if suspect and not columns.labelled:
        refuse_header(first, places, path, columns)
    for line, fields in rows if headed else chain([first], rows):
        check_row((line, fields), first, path, headed=headed)
        # A label that occurs again is a label, whatever it looks like.
        suspect = suspect and (line == first[0] or fields[places[-1]].strip() != first[1][places[-1]].strip())
        yield _example([fields[at] for at in places], path, line)
    if suspect:
        refuse_header(first, places, path, columns)


def _example(values: list[str], path: Path, line: int = 0) -> Example:
    """An example from [text] or [text, label]."""
    text, *label = (value.strip() for value in values)
    if not text:
        raise DataError("expected a text; it is empty: fill it in or delete the row", path, line)
    if label == [""]:
        raise DataError("expected a label; it is empty: fill it in or delete the row", path, line)
    return Example(text, label[0] if label else None, line=line)


def _jsonl(path: Path, columns: Columns) -> Iterator[Example]:
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
        values: list[str] = []
        for option, name in columns.wanted.items():
            if name not in record:
                raise ColumnError(
                    f"expected a key {name!r}; found {', '.join(record)[:200]}: name it with `{option}`",
                    path,
                    number,
                )
            values.append(_json_text(record[name], option, path, number))
        yield _example(values, path, number)


def _array_hint(line: str, number: int) -> str:
    """What to do if the file is a single array, as most programs write JSON."""
    is_array = number == 1 and line.lstrip().startswith("[")
    return ": write each object of the array on its own line (jq -c '.[]')" if is_array else ""


def _json_text(value: object, option: str, path: Path, line: int) -> str:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise DataError(f"expected whole characters; got half of a surrogate pair: {error}", path, line) from None
        return value
    label = option == "label_column"
    # A missing value may be written as NaN.
    if label and isinstance(value, (bool, int, float)) and value == value:
        return json.dumps(value)
    kind = "null" if value is None else "NaN" if value != value else type(value).__name__
    wanted = "one label, a string or a number" if label else "a string"
    raise DataError(f"expected {wanted}; got {kind}: check the key named by `{option}`", path, line)


def _txt(path: Path, columns: Columns) -> Iterator[Example]:
    if columns.labelled:
        raise DataError(
            "expected labels; plain text has none: give a CSV file with a label column, or use this file where no "
            "labels are needed (train's `unlabelled`, attack's `labels=False`)",
            path,
        )
    if is_snap(path):
        yield from reviews(path)
        return
    for number, line in enumerate(lines(path), start=1):
        if line.strip():
            yield _example([line], path, number)


def _folder(path: Path, columns: Columns) -> Iterator[Example]:
    for file in sorted(path.rglob("*")):
        # Editors and archives leave hidden folders and files (.ipynb_checkpoints, ._1.txt) behind.
        parts = file.relative_to(path).parts
        if columns.labelled and len(parts) < 2:
            continue  # next to the folders of the classes, such as README.txt
        hidden = any(part.startswith(".") for part in parts)
        if not hidden and file.name.lower().endswith((".txt", ".txt.gz", ".txt.xz")) and file.is_file():
            if columns.labelled and len(parts) > 2:
                raise DataError(
                    f"expected texts as {path.name}/<class>/*.txt; found this one deeper: move it up, or name the "
                    "folder that contains those of the classes",
                    file,
                )
            yield _example(["".join(lines(file)), *([file.parent.name] if columns.labelled else [])], file)


_READERS: dict[str, Callable[[Path, Columns], Iterator[Example]]] = {
    "csv": lambda path, columns: _table(csv_rows(path), path, columns),
    "tsv": lambda path, columns: _table(tsv_rows(path), path, columns),
    "jsonl": _jsonl,
    "conll": sentences,
    "txt": _txt,
    "folder": _folder,
}
FORMATS = tuple(_READERS)
