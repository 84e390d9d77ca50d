"""Read the user's own texts from CSV, TSV, JSON lines, Parquet, Excel, CoNLL columns, plain text or a folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from os import PathLike
from pathlib import Path

from wordward.datasets.columns import Columns
from wordward.datasets.conll import looks_like_conll, sentences
from wordward.datasets.decompress import LONGEST, too_long
from wordward.datasets.example import Example
from wordward.datasets.excel import sheet_rows
from wordward.datasets.lines import first_bytes, lines
from wordward.datasets.pairs import no_pair, parted
from wordward.datasets.records import json_lines, parquet
from wordward.datasets.snap import is_snap, reviews
from wordward.datasets.streams import is_copy, is_incoming, kept, shown
from wordward.datasets.tables import EMPTY, example_of, has_columns, rows_of, table
from wordward.support.console import say
from wordward.support.errors import ColumnError, DataError, MissingError

# The first ending that matches decides; Elec publishes its files of one text per line as .txt.tok.
MODEL_FILES = ("config.toml", "config.json")  # of a run, of a Hugging Face model
ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".txt.tok": "txt",
    ".tok": "conll",
    ".conll": "conll",
    ".txt": "txt",
}
_OTHERS = dict.fromkeys((".zip", ".bz2", ".zst", ".7z", ".rar", ".tar", ".tgz"), "unpack it first")
_OTHERS |= dict.fromkeys((".xls", ".ods", ".feather", ".arrow"), "save it as CSV or JSON Lines")


def read(
    path: str | PathLike[str],
    *,
    text_column: str = "text",
    label_column: str = "label",
    labelled: bool = True,
    format: str | None = None,
    tag_column: int = -1,
    skip_empty: bool = False,
    group_column: str | None = None,
    several_labels: bool = False,
    pair_column: str | None = None,
) -> list[Example]:
    """Read the texts of a file (CSV, TSV, JSON Lines, CoNLL, text, Parquet, Excel, also .gz or .xz) or a folder.

    The mark between the fields of a table (comma, semicolon, tab or bar) is found by its first line.

    Args:
        path: The file, a folder with a folder of .txt files for each label, "-" for standard input, or a data set of
            the Hugging Face hub as "hub:NAME@SPLIT" or "hub:NAME:CONFIG@SPLIT".
        text_column: Name of the column that holds the text, or its number from 0 in a file without a header; in JSON
            and Parquet review.text is the field text of the field review.
        label_column: The same for the label.
        labelled: Whether labels are read.
        format: csv, tsv, jsonl, conll, txt, parquet or excel, where the file name does not tell.
        tag_column: Column of the tag in a CoNLL file, from 0; -1 is the last.
        skip_empty: Leave out texts that are empty or lack their label, which are refused otherwise.
        group_column: The column of what texts are counted by, such as their language.
        several_labels: Whether a label may be a list of several, in JSON Lines and Parquet.
        pair_column: The column of a second text that is judged together with the first; the example's text is then
            `first ||| second`. Lines of plain text are written so.

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
    names = str(text_column), str(label_column), tag_column
    columns = Columns(*names, labelled, skip_empty, group_column, several_labels, pair_column)
    return list(read_each(Path(path), columns, format))


def read_each(path: Path, columns: Columns, format: str | None = None, *, quiet: bool = True) -> Iterator[Example]:
    """Like `read`, but one example at a time; says how many were left out unless `quiet`."""
    path = kept(path) if is_incoming(path) else path
    if not path.exists():
        raise MissingError("expected a file or folder; there is none of this name", path)
    try:
        kind = "folder" if path.is_dir() else format or _format(path, columns)
        if kind not in _READERS:
            raise DataError(f"expected a format among {', '.join(FORMATS)}; got {kind!r}", path)
        if columns.group is not None and kind in ("conll", "txt", "folder"):
            raise ColumnError(f"`group_column` needs a file of columns with names; this one is read as {kind}", path)
        if columns.pair is not None and kind in ("conll", "folder"):
            raise ColumnError(f"`pair_column` needs a file of columns with names; this one is read as {kind}", path)
        count, left = 0, Counter[str]()
        examples = _READERS[kind](path, columns)
        for example in examples:
            lacking = "empty" if not example.text else "without a label" if _lacks_label(example, columns) else ""
            if not lacking:
                count += 1
                yield example
            elif columns.skip_empty:
                left[lacking] += 1
            else:
                raise _emptiness(example, examples, path)
    except DataError as error:
        if error.path != path or shown(path) == path:
            raise
        raise type(error)(error.message, shown(path), error.line) from None  # not the name of a copy
    if not count and kind == "folder" and any((path / name).is_file() for name in MODEL_FILES):
        raise DataError("expected texts; this folder holds a model: give a file of texts", path)
    if not count:
        inside = f"files {path.name}/<label>/*.txt" if columns.labelled else "one or more files *.txt"
        raise DataError(f"expected {inside if kind == 'folder' else 'one or more texts'}; found none", shown(path))
    if left:
        parts = " and ".join(f"{number:,} {lacking}" for lacking, number in left.items())
        say(f"{shown(path)}: left out {parts} of {count + left.total():,} texts", quiet=quiet)


def _lacks_label(example: Example, columns: Columns) -> bool:
    return columns.labelled and example.names == (None,)


def _emptiness(first: Example, rest: Iterator[Example], path: Path) -> DataError:
    """The error of an empty text, which says how many more there are."""
    more = 0
    with suppress(DataError):
        for example in rest:
            more += not example.text
    also = f", as {more:,} more {'is' if more == 1 else 'are'}" if more else ""
    return DataError(f"expected a text; it is empty{also}: {EMPTY}", path, first.line)


def _format(path: Path, columns: Columns) -> str:
    """The format of a file by its name, or by its content where there is no name, or only that of a text."""
    if is_copy(path):
        return _by_content(path, columns)
    packed = path.name.lower().endswith((".gz", ".xz"))
    name = path.name.lower().removesuffix(".gz").removesuffix(".xz")
    for ending, kind in ENDINGS.items():
        if not name.endswith(ending):
            continue
        if packed and kind in ("parquet", "excel"):
            raise DataError(f"expected the {ending} file itself, not compressed: unpack it first", path)
        is_open = kind == "txt" or (kind == "tsv" and not _is_table(path, columns))
        return "conll" if is_open and looks_like_conll(path, labelled=columns.labelled) else kind
    remedy = next((remedy for ending, remedy in _OTHERS.items() if name.endswith(ending)), None)
    if remedy is None:
        kinds = ", ".join(kind for kind in FORMATS if kind != "folder")
        remedy = f"rename the file or give `format`, one of {kinds}"
    raise DataError(
        f"expected a folder or a name ending in {', '.join(ENDINGS)} (also compressed as .gz or .xz): {remedy}",
        path,
    )


def _by_content(path: Path, columns: Columns) -> str:
    """What a file without a name holds, by its beginning."""
    first = first_bytes(path).lstrip()
    if not first:
        raise DataError("expected one or more texts; found none", path)
    if first.startswith((b"PAR1", b"PK\x03\x04")):
        return "parquet" if first.startswith(b"PAR1") else "excel"
    if first.startswith(b"{"):
        return "jsonl"
    if _is_table(path, columns):
        return "tsv" if has_columns(path, columns) == "\t" else "csv"
    return "conll" if looks_like_conll(path, labelled=columns.labelled) else "txt"


def _is_table(path: Path, columns: Columns) -> bool:
    """Whether a file has the columns that are asked for, or these are given by number."""
    numbered = columns.labelled and all(name.isdecimal() for name in columns.wanted.values())
    return numbered or bool(has_columns(path, columns))


def _txt(path: Path, columns: Columns) -> Iterator[Example]:
    if columns.labelled:
        raise DataError(
            "expected labels; plain text has none: give a CSV file with a label column, `format='conll'` for a token "
            "and its tag on each line, or use this file where no labels are needed (train's `unlabelled`, attack's "
            "`labels=False`)",
            path,
        )
    if is_snap(path):
        yield from reviews(path)
        return
    for number, line in enumerate(lines(path), start=1):
        if line.strip():
            if columns.pair is not None and not parted(line).whole:
                raise DataError(no_pair(line.strip()), path, number)
            yield example_of([line], path, number)


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
                    f"expected texts as {path.name}/<label>/*.txt; found this one deeper: move it up, or name the "
                    "folder that contains those of the classes",
                    file,
                )
            example = example_of([_whole(file), *([file.parent.name] if columns.labelled else [])], file)
            if not example.text and not columns.skip_empty:
                raise DataError(f"expected a text; it is empty: {EMPTY}", file)
            yield example


def _whole(file: Path) -> str:
    """A file that is one text."""
    parts, size = [], 0
    for line in lines(file):
        parts.append(line)
        size += len(line)
        if size > LONGEST:
            raise too_long("a file that is one text", file)
    return "".join(parts)


_READERS: dict[str, Callable[[Path, Columns], Iterator[Example]]] = {
    "csv": lambda path, columns: table(rows_of(path, columns, ","), path, columns),
    "tsv": lambda path, columns: table(rows_of(path, columns, "\t"), path, columns),
    "jsonl": json_lines,
    "conll": sentences,
    "txt": _txt,
    "parquet": parquet,
    "excel": lambda path, columns: table(sheet_rows(path, columns), path, columns),
    "folder": _folder,
}
FORMATS = tuple(_READERS)
