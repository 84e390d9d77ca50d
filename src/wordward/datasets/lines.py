"""Lines and rows of a file: plain, compressed or in an archive."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

from wordward.datasets.archive import BROKEN, Entry
from wordward.datasets.decompress import LONGEST, decompressed, too_long
from wordward.support.errors import DataError

TableRow = tuple[int, list[str]]  # line number, fields
Source = Path | Entry
_OTHERS = {  # kinds of files by their first bytes, and what to do about them
    b"\x1f\x8b": "gzip: give it a name ending in .gz",
    b"\xfd7zXZ": "xz: give it a name ending in .xz",
    b"BZh91AY": "bzip2: unpack it first",
    b"PK\x03\x04": "a zip archive: unpack it first (an Excel workbook: give it a name ending in .xlsx)",
    b"PAR1\x15": "Parquet: give it a name ending in .parquet",
    codecs.BOM_UTF16_LE: "UTF-16: save the file as UTF-8",
    codecs.BOM_UTF16_BE: "UTF-16: save the file as UTF-8",
}


@contextmanager
def _opened(source: Source) -> Iterator[IO[bytes]]:
    if isinstance(source, Entry):
        yield source.stream
    else:
        with source.open("rb") as raw, decompressed(raw, source.name) as stream:
            yield stream


def first_bytes(source: Source, count: int = 64) -> bytes:
    """The beginning of a file."""
    try:
        with _opened(source) as stream:
            return stream.read(count)
    except BROKEN as error:
        raise DataError(f"expected a readable file; got: {error}{_packed(source)}", source) from error


def _raw_lines(stream: IO[bytes], source: Source) -> Iterator[bytes]:
    """Lines with their ends, none of which may be longer than a text can be."""
    for number, raw in enumerate(iter(partial(stream.readline, LONGEST + 1), b""), start=1):
        if len(raw) > LONGEST:
            raise too_long("a line", source, number)
        yield raw


def legacy_text(raw: bytes) -> str:
    """UTF-8, else Windows-1252 (Latin-1 for bytes undefined there), as in older corpora."""
    for encoding in ("utf-8", "cp1252"):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    return raw.decode("latin-1")


def legacy_lines(source: Source) -> Iterator[str]:
    """Lines without line endings, each decoded by itself as `legacy_text` does."""
    try:
        with _opened(source) as stream:
            for number, raw in enumerate(_raw_lines(stream, source)):
                yield without_end(legacy_text(raw if number else raw.removeprefix(codecs.BOM_UTF8)))
    except BROKEN as error:
        raise DataError(f"expected a readable file; got: {error}{_packed(source)}", source) from error


def lines(path: Source) -> Iterator[str]:
    """Lines with line endings, split at line feeds only: U+0085 and the like belong to the text."""
    offset = 0
    try:
        with _opened(path) as stream:
            for number, raw in enumerate(_raw_lines(stream, path), start=1):
                if number == 1:
                    _refuse_others(raw, path)
                line_bytes = raw
                while line_bytes.startswith(codecs.BOM_UTF8):  # also where files that begin with it were joined
                    line_bytes = line_bytes.removeprefix(codecs.BOM_UTF8)
                try:
                    line = line_bytes.decode()
                except UnicodeDecodeError as error:
                    at = len(raw) - len(line_bytes) + error.start
                    raise DataError(
                        f"expected UTF-8; got byte 0x{raw[at]:02x} at offset {offset + at} of the file: "
                        "save the file as UTF-8",
                        path,
                        number,
                    ) from None
                yield line
                offset += len(raw)
    except BROKEN as error:
        raise DataError(f"expected a readable file; got: {error}{_packed(path)}", path) from error


def _packed(source: Source) -> str:
    """What may be wrong with a compressed file."""
    named = isinstance(source, Path) and source.name.lower().endswith((".gz", ".xz"))
    return ": it is incomplete, or not what its name says: get it again, or rename it" if named else ""


def _refuse_others(first: bytes, path: Source) -> None:
    """Refuse a file whose first bytes show that it is not text, even if parts of it could be decoded."""
    for beginning, kind in _OTHERS.items():
        if first.startswith(beginning):
            raise DataError(f"expected text in UTF-8; got {kind}", path)


def csv_rows(path: Source, *, strict: bool = True, mark: str = ",") -> Iterator[TableRow]:
    """Rows of a CSV file, with `mark` between its fields, each with the line it begins on."""
    csv.field_size_limit(LONGEST)  # a long review exceeds the default of 128 KiB
    # Strict, because a quote left open would otherwise silently swallow the rest of the file.
    reader = csv.reader(lines(path), strict=strict, delimiter=mark)
    line = 1
    try:
        for fields in reader:
            if fields:
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        if "field limit" in str(error):
            raise too_long("a field", path, line) from None
        wanted, got = 'fields in double quotes, with "" for a quote inside', str(error)
        if "new-line" in got:
            wanted, got = (
                "lines ending in a line feed",
                "a carriage return alone: save the file with LF or CRLF",
            )
        raise DataError(f"expected {wanted}; got {got}", path, line) from None


def tsv_rows(path: Source) -> Iterator[TableRow]:
    """Rows of a TSV file, in which quotes are plain characters, as corpora use them."""
    for number, line in enumerate(lines(path), start=1):
        if line.strip(" \r\n"):
            yield number, without_end(line).split("\t")


def without_end(line: str) -> str:
    """The line without its line feed or CRLF."""
    return line.removesuffix("\n").removesuffix("\r")
