"""Read corrected sentences from an M2 file, the format of shared tasks on grammatical error correction."""

import re
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from wordward.datasets.lines import lines, without_end
from wordward.support.errors import DataError

_EDIT = re.compile(r"A (-?\d+) (-?\d+)\|\|\|([^|]*)\|\|\|(.*?)\|\|\|.*")
_NOTHING = "-NONE-"


class Edit(NamedTuple):
    """Replace the tokens from `start` up to `end` by `correction`; if both are equal, insert it before that token."""

    start: int
    end: int
    kind: str
    correction: str  # tokens separated by blanks; "" to delete


Corrections = Mapping[tuple[str, ...], Sequence[Edit]]  # by a sentence's tokens


def read_m2(path: str | PathLike[str]) -> dict[tuple[str, ...], tuple[Edit, ...]]:
    """The edits of each sentence by all annotators; none if it is correct. Also reads .gz and .xz."""
    path = Path(path)
    if not path.exists():
        raise DataError("expected an M2 file; there is none of this name", path)
    found: dict[tuple[str, ...], list[Edit]] = {}
    tokens: tuple[str, ...] | None = None
    for number, raw in enumerate(lines(path), start=1):
        line = without_end(raw)
        if line.startswith("S ") or line == "S":
            tokens = tuple(line[2:].split())
            found.setdefault(tokens, [])
        elif line.startswith("A "):
            if tokens is None:
                raise DataError("expected a sentence (S ...) before its edits (A ...)", path, number)
            found[tokens] += [edit for edit in _edits(line, tokens, path, number) if edit not in found[tokens]]
        elif not line.strip():
            tokens = None
        else:
            raise DataError(f"expected empty lines or lines beginning with S or A; got {line[:60]!r}", path, number)
    if not found:
        raise DataError("expected sentences (S ...) with their edits; found none", path)
    return {sentence: tuple(edits) for sentence, edits in found.items()}


def _edits(line: str, tokens: tuple[str, ...], path: Path, number: int) -> list[Edit]:
    """The edits of a line, one for each alternative correction."""
    match = _EDIT.fullmatch(line)
    if match is None:
        raise DataError(f"expected A start end|||kind|||correction|||...; got {line[:60]!r}", path, number)
    start, end, kind = int(match[1]), int(match[2]), match[3]
    if kind in ("noop", "UNK") or start == end == -1:  # no error, or one detected but not corrected
        return []
    if not 0 <= start <= end <= len(tokens):
        raise DataError(
            f"expected an edit within the {len(tokens)} tokens of its sentence; got {start} to {end}", path, number
        )
    ways = match[4].split("||")
    return [Edit(start, end, kind, "" if way == _NOTHING else " ".join(way.split())) for way in ways]


def corrections_at(edits: Sequence[Edit], tokens: Sequence[str], position: int) -> str | None:
    """The corrections at a token, for display; None if no edit touches it."""
    ways = []
    for edit in edits:
        if edit.start <= position < edit.end:
            original = " ".join(tokens[edit.start : edit.end])
            single = edit.end - edit.start == 1
            ways.append(edit.correction if single else f"{original} → {edit.correction}")
        elif edit.start == edit.end == position:
            ways.append(f"{edit.correction} {tokens[position]}")
    return " / ".join(dict.fromkeys(ways)) if ways else None


def right_words(edits: Sequence[Edit], tokens: Sequence[str], position: int) -> set[str]:
    """The words that, put in place of a token, yield one of its corrections."""
    words = set()
    for edit in edits:
        wanted = edit.correction.split()
        if not edit.start <= position < edit.end or len(wanted) != edit.end - edit.start:
            continue
        changed = [*tokens[edit.start : edit.end]]
        changed[position - edit.start] = wanted[position - edit.start]
        if changed == wanted:
            words.add(wanted[position - edit.start])
    return words
