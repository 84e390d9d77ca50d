"""Lines and rows of a UTF-8 file, plain or compressed."""

from __future__ import annotations

import codecs
import csv
import gzip
import lzma
import zlib
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path

from wordward.datasets.example import DataError

Row = tuple[int, list[str]]  # line number, fields


def _open(path: Path) -> BufferedIOBase:
    match path.suffix.lower():
        case ".gz":
            return gzip.open(path, "rb")
        case ".xz":
            return lzma.open(path, "rb")
        case _:
            return path.open("rb")


def lines(path: Path) -> Iterator[str]:
    """Lines with their ends, split on line feeds only: U+0085 and the like belong to the text."""
    offset = 0
    try:
        with _open(path) as stream:
            for number, raw in enumerate(stream, start=1):
                mark = len(codecs.BOM_UTF8) if number == 1 and raw.startswith(codecs.BOM_UTF8) else 0
                try:
                    line = raw[mark:].decode()
                except UnicodeDecodeError as error:
                    at = mark + error.start
                    raise DataError(
                        f"expected UTF-8; got byte 0x{raw[at]:02x} at offset {offset + at} of the file: "
                        "save the file as UTF-8",
                        path,
                        number,
                    ) from None
                yield line
                offset += len(raw)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise DataError(f"expected a readable file; got: {error}", path) from error


def csv_rows(path: Path) -> Iterator[Row]:
    """Rows of a CSV file with the line each begins on."""
    csv.field_size_limit(2**31 - 1)  # the default of 128 KiB is less than a long review
    # Strict, because a quote left open would otherwise swallow the rest of the file in silence.
    reader = csv.reader(lines(path), strict=True)
    line = 1
    try:
        for fields in reader:
            if fields:
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f'expected fields in double quotes with "" for a quote inside; got: {error}', path, line
        ) from None


def tsv_rows(path: Path) -> Iterator[Row]:
    """Rows of a TSV file; quotes are plain characters there, as corpora publish it."""
    for number, line in enumerate(lines(path), start=1):
        if line.strip(" \r\n"):
            yield number, without_end(line).split("\t")


def without_end(line: str) -> str:
    """The line without its line feed or CRLF."""
    return line.removesuffix("\n").removesuffix("\r")
