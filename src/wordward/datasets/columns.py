"""Which columns of a table hold the text and its label, and whether its first line is a header."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn

from wordward.datasets.lines import TableRow
from wordward.support.errors import ColumnError, DataError

# Words that name a column of texts or of labels, and are seldom a whole text or label themselves.
_TEXTS = set("text texts sentence review content body comment message tweet document".split())
_LABELS = set("label labels class category sentiment target rating stars score polarity".split())
# The same for the columns of tokens and of their tags; "pos" is left out, since it may be a tag itself.
_TOKENS = set("token tokens word words form".split())
_TAGS = set("tag tags label labels ner".split())


@dataclass(frozen=True)
class Columns:
    """Which columns hold the text, its label or tags and its group, and what is read of them."""

    text: str = "text"
    label: str = "label"
    tag: int = -1
    labelled: bool = True
    skip_empty: bool = False
    group: str | None = None
    lists: bool = False  # whether a label may be a list of several, in JSON Lines and Parquet
    pair: str | None = None  # the second text, where two are judged together

    @property
    def wanted(self) -> dict[str, str]:
        """The columns to look for, by the setting that names each."""
        label = {"label_column": self.label} if self.labelled else {}
        group = {} if self.group is None else {"group_column": self.group}
        pair = {} if self.pair is None else {"pair_column": self.pair}
        return {"text_column": self.text} | label | group | pair


def places_of(first: TableRow, path: Path, columns: Columns) -> tuple[bool, list[int]]:
    """Whether the first row is a header, and the indices of the text (and label) columns."""
    line, cells = first
    error = partial(ColumnError, path=path, line=line)
    header = [cell.strip() for cell in cells]
    wanted = columns.wanted
    numbers = all(name.isdecimal() for name in wanted.values())
    # Numbers are names only in a header of nothing but numbers: a first text labelled 0 is not a header.
    if numbers and not (set(wanted.values()) <= set(header) and all(c.isdecimal() for c in header if c)):
        places = [int(name) for name in wanted.values()]
        if max(places) >= len(cells):
            raise error(f"expected a column {max(places)} from 0; got {len(cells)} fields{_hint(header, path)}")
        return False, places
    missing = {option: name for option, name in wanted.items() if name not in header}
    if missing and not numbers and any(name.isdecimal() for name in wanted.values()):
        given = " ".join(f"`{option}={name!r}`" for option, name in wanted.items())
        raise error(
            f"expected both columns by name, or both by number from 0 if there is no header line; got {given}"
        )
    if missing:
        raise error(
            f"{no_columns(missing, [cell[:30] for cell in header])}, or give columns by number from 0 if there is no "
            f"header line{_hint(header, path)}"
        )
    for name in wanted.values():
        if header.count(name) > 1:
            raise error(f"expected one column {name!r}; found {header.count(name)}: give them different names")
    return True, [header.index(name) for name in wanted.values()]


def no_columns(missing: Mapping[str, str], found: Iterable[str]) -> str:
    """What to say where a table lacks columns, of which each setting names one."""
    (option, name), *others = missing.items()
    more = "".join(f", and {other!r} with `{setting}`" for setting, other in others)
    return f"expected a column {name!r}; found {', '.join(found)}: name it with `{option}`{more}"


def check_row(row: TableRow, first: TableRow, path: Path, *, headed: bool) -> None:
    """Refuse a row with a different number of fields from the first, or that repeats the header."""
    (line, fields), width = row, len(first[1])
    error = partial(DataError, path=path, line=line)
    if len(fields) != width:
        raise error(
            f"expected {width} fields as in the first line; got {len(fields)}: quote a field that "
            "contains a comma (CSV), remove tabs and line breaks from the texts (TSV)"
        )
    if headed and width > 1 and fields == first[1]:  # a single word may be a text
        raise error("expected a text; got the header line again, as in concatenated files: delete this line")


def _hint(header: list[str], path: Path) -> str:
    """What may be wrong if the first line does not have the expected fields."""
    whole = header[0] if len(header) == 1 else ""
    for mark, name in (("\t", "tabs"), (";", "semicolons"), (",", "commas"), ("|", "bars")):
        if mark in whole:
            return f" (if the fields are separated by {name}: give each line the same number of them)"
    return " (for one token per line: `format='conll'`)" if ".tsv" in path.name else ""


def looks_like_header(first: TableRow, places: list[int]) -> bool:
    """Whether a first row that should be a text (and its label) may name the columns instead."""
    text, *label = (first[1][at].strip() for at in places)
    names = [text] if label else [cell.strip() for cell in first[1]]  # without a label, all fields must be names
    if not all(name.replace("-", "_").isidentifier() for name in names if name):
        return False
    return _holds(text, _TEXTS) or any(_holds(name, _LABELS) for name in label)


def names_tokens(first: list[str]) -> bool:
    """Whether a first row that should be a token with its tag names these columns instead."""
    return first[0].lower() in _TOKENS and any(_holds(name, _TAGS) for name in first[1:])


def _holds(name: str, known: Container[str]) -> bool:
    """Whether a part of a name such as reviewText or text_2 is known."""
    return any(part.lower() in known for part in re.findall("[A-Z]?[a-z]+|[A-Z]+", name))


def refuse_header(first: TableRow, places: list[int], path: Path, columns: Columns) -> NoReturn:
    """Report that the first line names the columns, although they are given by number."""
    line, cells = first
    names = [cells[at].strip() for at in places]
    named = " ".join(f"`{setting}={name!r}`" for setting, name in zip(columns.wanted, names, strict=True))
    raise ColumnError(
        f"expected {'a text and its label' if columns.labelled else 'a text'}, since columns are given by number; "
        f"got {' and '.join(map(repr, names))}, which looks like a header line: give {named}, or delete that line",
        path,
        line,
    )
