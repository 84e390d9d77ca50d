"""Read corrections of sentences from an M2 file, the format of the grammatical error correction tasks."""

import re
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from wordward.datasets.example import DataError
from wordward.datasets.lines import lines, without_end

_EDIT = re.compile(r"A (-?\d+) (-?\d+)\|\|\|([^|]*)\|\|\|(.*?)\|\|\|.*")
_NOTHING = "-NONE-"


class Edit(NamedTuple):
    """The tokens from `start` up to `end` should read `correction`; where both are one, it comes in before it."""

    start: int
    end: int
    kind: str
    correction: str  # tokens with blanks between; "" where they should go


Corrections = Mapping[tuple[str, ...], Sequence[Edit]]  # by a sentence's tokens


def read_m2(path: str | PathLike[str]) -> dict[tuple[str, ...], tuple[Edit, ...]]:
    """The edits of each sentence, of all annotators; none where a sentence is correct. Also .gz and .xz."""
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
            found[tokens] += [
                edit for edit in _edits(line, tokens, path, number) if edit not in found[tokens]
            ]
        elif not line.strip():
            tokens = None
        else:
            raise DataError(
                f"expected lines that begin with S or A, or are empty; got {line[:60]!r}", path, number
            )
    if not found:
        raise DataError("expected sentences (S ...) with their edits; found none", path)
    return {sentence: tuple(edits) for sentence, edits in found.items()}


def _edits(line: str, tokens: tuple[str, ...], path: Path, number: int) -> list[Edit]:
    """The edit of a line, once for each way to correct it."""
    match = _EDIT.fullmatch(line)
    if match is None:
        raise DataError(f"expected A start end|||kind|||correction|||...; got {line[:60]!r}", path, number)
    start, end, kind = int(match[1]), int(match[2]), match[3]
    if kind in ("noop", "UNK") or start == end == -1:  # no error, or one that was found but not corrected
        return []
    if not 0 <= start <= end <= len(tokens):
        raise DataError(
            f"expected an edit within the {len(tokens)} tokens of its sentence; got {start} to {end}",
            path,
            number,
        )
    ways = match[4].split("||")
    return [Edit(start, end, kind, "" if way == _NOTHING else " ".join(way.split())) for way in ways]


def corrections_at(edits: Sequence[Edit], tokens: Sequence[str], position: int) -> str | None:
    """What should stand at a token, to read; None where no edit touches it."""
    ways = []
    for edit in edits:
        if edit.start <= position < edit.end:
            here = " ".join(tokens[edit.start : edit.end])
            one = edit.end - edit.start == 1
            ways.append(edit.correction if one else f"{here} → {edit.correction}")
        elif edit.start == edit.end == position:
            ways.append(f"{edit.correction} {tokens[position]}")
    return " / ".join(dict.fromkeys(ways)) if ways else None


def right_words(edits: Sequence[Edit], tokens: Sequence[str], position: int) -> set[str]:
    """The words that, put at a token, make one of its corrections."""
    found = set()
    for edit in edits:
        wanted = edit.correction.split()
        if not edit.start <= position < edit.end or len(wanted) != edit.end - edit.start:
            continue
        put = [*tokens[edit.start : edit.end]]
        put[position - edit.start] = wanted[position - edit.start]
        if put == wanted:
            found.add(wanted[position - edit.start])
    return found
