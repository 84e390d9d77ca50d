"""Sentences in CoNLL columns: one token per line with its tag, an empty line between sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice

from wordward.datasets.columns import Columns, names_tokens
from wordward.datasets.example import Example
from wordward.datasets.lines import Source, lines, without_end
from wordward.support.errors import DataError

SEEN = 400  # lines that tell whether a file is one of these
_BREAK = re.compile(r"[\t\r\n]+")  # within a token, which would end its column
_ENTITY = re.compile(r"O|[BIESLU](-.+)?")


def looks_like_conll(path: Source, *, labelled: bool = True) -> bool:
    """Whether the first lines are tokens with tags, in as many columns each, and empty lines between sentences.

    Where labels are not needed the file might be plain text, so its last column must also look like tags: those of
    entities, or a few that are used again and again.
    """
    try:
        rows = [_fields(line) for line in islice(lines(path), SEEN)]
    except DataError:  # whoever reads it says what is wrong
        return False
    tokens = [row for row in rows if row and row[0] != "-DOCSTART-"]
    groups = sum(1 for before, row in zip([[], *rows], rows, strict=False) if row and not before)
    if len({len(row) for row in tokens}) != 1 or len(tokens[0]) < 2 or groups < 2 or groups == len(tokens):
        return False
    tags = [row[-1] for row in tokens]
    if labelled or all(map(_ENTITY.fullmatch, tags)):
        return True
    return len(tokens) >= 10 and len(set(tags)) <= len(tags) / 5


def sentences(path: Source, columns: Columns) -> Iterator[Example]:
    """The sentences of a CoNLL file, possibly in an archive, with their tags if these are read."""
    sentence: list[list[str]] = []
    start = width = 0
    suspect, commented = True, False
    for number, line in enumerate(chain(lines(path), [""]), start=1):
        fields, error = _fields(line), partial(DataError, path=path, line=number)
        if not fields or fields[0] == "-DOCSTART-":
            if sentence:
                suspect = suspect and _numbered(sentence, path, start)
                yield _sentence(sentence, columns, start)
            sentence = []
            continue
        if not width and names_tokens(fields):
            raise error(f"expected a token and its tag; got {fields}, which looks like a header line: delete it")
        commented = commented or fields[0].startswith("#")
        width = width or len(fields)
        if len(fields) != width or not all(fields):
            raise error(
                f"expected {width} filled columns as in the first line; got {fields}: "
                f"separate sentences by an empty line{' (comments are not skipped)' if commented else ''}"
            )
        if columns.labelled and not (-width < columns.tag < width and columns.tag):
            raise error(
                f"expected a tag in column {columns.tag} after the token; got {width} columns: name it with "
                "`tag_column`, or read the file as unlabelled"
            )
        start = start if sentence else number
        sentence.append(fields)


def sentence_lines(tokens: Sequence[str], tags: Sequence[str]) -> str:
    """A sentence with its tags as `sentences` reads it; an empty line is to follow."""
    return "".join(f"{_BREAK.sub(' ', token)}\t{tag}\n" for token, tag in zip(tokens, tags, strict=True))


def _numbered(rows: list[list[str]], path: Source, line: int) -> bool:
    """Whether each token may be preceded by its number, as in CoNLL-U; an error once there are enough to be sure."""
    numbers = [row[0] for row in rows if "-" not in row[0]]  # 1-2 precedes a token of two words
    counted = [[str(first + at) for at in range(len(numbers))] for first in (0, 1)]
    if len(rows[0]) < 3 or numbers not in counted:
        return False
    if len(numbers) > 2:
        raise DataError(
            f"expected the token in the first column; got the numbers {', '.join(numbers[:3])} ...: keep the columns "
            "of the token and the tag only (for CoNLL-U: grep -Ev '^#|^[0-9]+[-.]' FILE | cut -f 2,4)",
            path,
            line,
        )
    return True


def _fields(line: str) -> list[str]:
    """Columns split at tabs, else at blanks; never by str.split(), which also splits at U+0085 and U+00A0."""
    line = without_end(line)
    if not line.strip(" \t"):
        return []
    return line.split("\t") if "\t" in line else [field for field in line.split(" ") if field]


def _sentence(rows: list[list[str]], columns: Columns, line: int) -> Example:
    tokens = tuple(row[0] for row in rows)
    tags = tuple(row[columns.tag] for row in rows) if columns.labelled else None
    return Example(" ".join(tokens), tokens=tokens, tags=tags, line=line)
