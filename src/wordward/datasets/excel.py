"""Rows of an Excel workbook, as those of any table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from wordward.datasets.columns import Columns
from wordward.datasets.decompress import check_member
from wordward.datasets.lines import TableRow
from wordward.support.errors import DataError, MissingExtraError


def sheet_rows(path: Path, columns: Columns) -> Iterator[TableRow]:
    """The rows of the first sheet whose first row names the columns, or else of the first sheet."""
    try:
        import openpyxl
    except ModuleNotFoundError:
        raise MissingExtraError(
            f"{path}: reading Excel sheets needs openpyxl, which is not installed: pip install 'wordward[tables]'"
        ) from None
    with path.open("rb") as stream:  # by its content: openpyxl refuses names that it does not know
        try:
            for member in ZipFile(stream).infolist():
                check_member(member, path)
            book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
            yield from _chosen([_filled(sheet) for sheet in book.worksheets], columns)
        except (DataError, MemoryError):
            raise
        except Exception as error:  # of a damaged workbook openpyxl raises nearly every kind, also between rows
            what = str(error) or type(error).__name__
            raise DataError(f"expected an Excel workbook (.xlsx); got: {what}", path) from None


def _chosen(sheets: list[Iterator[TableRow]], columns: Columns) -> Iterator[TableRow]:
    """The rows of the sheet that is meant, all as long as its first."""
    firsts = [next(rows, None) for rows in sheets]
    wanted = set(columns.wanted.values())
    filled = [(first, rows) for first, rows in zip(firsts, sheets, strict=True) if first is not None]
    named = (each for each in filled if wanted <= {cell.strip() for cell in each[0][1]})
    for first, rows in [next(named, None) or filled[0]] if filled else []:
        yield first
        for line, cells in rows:
            yield line, [*cells, *[""] * (len(first[1]) - len(cells))]


def _filled(sheet: Any) -> Iterator[TableRow]:
    """The rows that are not empty, each with its number, without the empty cells at its end."""
    for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
        fields = [_text(cell) for cell in cells]
        while fields and not fields[-1]:
            fields.pop()
        if fields:
            yield number, fields


def _text(cell: Any) -> str:
    """A cell as text; a whole number as Excel shows it, whatever it is kept as."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).lower()
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
