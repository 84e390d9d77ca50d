"""Tables of text: which mark stands between their fields, whether fields are quoted, and what each row says."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path

from wordward.datasets.columns import Columns, check_row, looks_like_header, places_of, refuse_header
from wordward.datasets.example import Example
from wordward.datasets.lines import Source, TableRow, csv_rows, lines, tsv_rows, without_end
from wordward.datasets.pairs import joined
from wordward.support.errors import DataError

MARKS = (",", ";", "\t", "|")
SEEN = 20  # rows that must agree where columns are given by number, so that no header can tell
EMPTY = "fill it in, delete it, or leave out such texts with `skip_empty=True`"
_WHOLE = re.compile(r'"(?:[^"]|"")*"')  # a field in quotes


def table(rows: Iterator[TableRow], path: Path, columns: Columns) -> Iterator[Example]:
    """The texts of a table, with their labels if these are read."""
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
        label = places[1] if columns.labelled else places[0]
        suspect = suspect and (line == first[0] or fields[label].strip() != first[1][label].strip())
        unlabelled = columns.labelled and fields[places[0]].strip() and not fields[label].strip()
        if unlabelled and not columns.skip_empty:
            raise _no_label(path, line, _empty_after(rows, label))
        yield example_of([fields[at] for at in places], path, line, columns)
    if suspect:
        refuse_header(first, places, path, columns)


def example_of(values: list[str], path: Source, line: int = 0, columns: Columns | None = None) -> Example:
    """An example from [text] or [text, label], then its group and second text if there are such `columns`.

    Its text may be empty; its label is None where it is, and such texts are left out.
    """
    text, *label = (value.strip() for value in values)
    if columns is not None and columns.pair is not None:
        text = joined(text, label.pop())
    group = label.pop() if columns is not None and columns.group is not None else None
    if text and label == [""] and not (columns is not None and columns.skip_empty):
        raise _no_label(path, line)
    return Example(text, (label[0] or None) if label else None, line=line, group=group)


def _no_label(path: Source, line: int, more: int = 0) -> DataError:
    """The error of a text without a label; `more`: how many other rows have none."""
    also = (
        f", as {'that' if more == 1 else 'those'} of {more:,} more {'row' if more == 1 else 'rows'}" if more else ""
    )
    return DataError(f"expected a label; it is empty{also}: {EMPTY}", path, line)


def _empty_after(rows: Iterator[TableRow], column: int) -> int:
    """How many of the rows that are left have nothing in a column, up to the first that cannot be read."""
    empty = 0
    with suppress(DataError):
        for _, fields in rows:
            empty += len(fields) > column and not fields[column].strip()
    return empty


def rows_of(path: Path, columns: Columns, usual: str) -> Iterator[TableRow]:
    """The rows of a table, its fields separated by the `usual` mark unless the file shows another."""
    mark = mark_of(path, columns, usual)
    return _rows(path, mark, quoted=mark != "\t" or is_quoted(path))


def has_columns(path: Path, columns: Columns) -> str | None:
    """The mark under which the first line names the columns that are looked for; None if there is none."""
    wanted = set(columns.wanted.values())
    return next((mark for mark in MARKS if wanted <= set(_header(_first_rows(path, mark, 1)))), None)


def mark_of(path: Path, columns: Columns, usual: str) -> str:
    """The mark between fields: the one under which the first line names the columns, or all rows are alike."""
    marks, wanted = [usual, *(mark for mark in MARKS if mark != usual)], columns.wanted.values()
    for mark in marks:
        if set(wanted) <= set(_header(_first_rows(path, mark, 1))):
            return mark
    if all(name.isdecimal() for name in wanted):
        last = max(map(int, wanted))
        for mark in marks:
            widths = {len(fields) for fields in _first_rows(path, mark, SEEN)}
            least = last if mark == usual else max(1, last)  # one field under another mark is no evidence
            if len(widths) == 1 and widths.pop() > least:
                return mark
        return usual
    # No column of these names: the error will list those of the longest header.
    sizes = {mark: len(_header(_first_rows(path, mark, 1))) for mark in marks}
    return max(sizes, key=lambda mark: sizes[mark]) if max(sizes.values()) > 1 else usual


def _first_rows(path: Path, mark: str, count: int) -> list[list[str]]:
    """The first rows, or those before one that cannot be read."""
    found: list[list[str]] = []
    try:
        found.extend(fields for _, fields in islice(_rows(path, mark, quoted=True), count))
    except DataError:
        if not found and mark == "\t":  # a quote that is a plain character
            found.extend(fields for _, fields in islice(_rows(path, mark, quoted=False), count))
    return found


def _header(rows: list[list[str]]) -> list[str]:
    return [cell.strip() for cell in rows[0]] if rows else []


def _rows(path: Path, mark: str, *, quoted: bool) -> Iterator[TableRow]:
    return csv_rows(path, mark=mark) if quoted else tsv_rows(path)


def is_quoted(path: Path) -> bool:
    """Whether fields of a file with tabs stand in quotes, as most programs write those that hold quotes or tabs.

    In corpora quotes are plain characters, so there must be evidence: a header in quotes; or rows that are alike only
    if quotes are read; or quotes doubled inside quotes, with no field that begins with a quote and is not so written.
    """
    header, doubled, whole, widths = True, False, True, set()
    for line in lines(path):
        fields = without_end(line).split("\t")
        if not line.strip(" \r\n"):
            continue
        opened = [field for field in fields if field.startswith('"')] if '"' in line else []
        if header and opened and all(_WHOLE.fullmatch(field) for field in fields):
            return True
        header = False
        widths.add(len(fields))
        whole = whole and all(_WHOLE.fullmatch(field) for field in opened)
        doubled = doubled or any('""' in field[1:-1] for field in opened)
    if len(widths) < 2:
        return doubled and whole
    return not whole and _alike(fields for _, fields in csv_rows(path, mark="\t"))


def _alike(rows: Iterable[list[str]]) -> bool:
    """Whether all rows can be read and have the same number of fields."""
    try:
        return len({len(fields) for fields in rows}) == 1
    except (csv.Error, DataError):
        return False
