"""Rows of several lengths that need not fit in memory: laid end to end, joined, or chosen from others."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


class Rows(Sequence[np.ndarray]):
    """Arrays of several lengths laid end to end, in memory or in a mapped file."""

    def __init__(self, flat: np.ndarray, offsets: np.ndarray) -> None:
        self.flat, self.offsets = flat, offsets  # row at is flat[offsets[at]:offsets[at + 1]]
        self._plain = np.asarray(flat)  # the same numbers: a slice of a mapped file takes ten times as long

    @classmethod
    def of(cls, rows: Iterable[np.ndarray]) -> "Rows":
        """Rows copied into one array."""
        given = list(rows)
        flat = np.concatenate(given) if given else np.zeros(0, np.int32)
        return cls(flat, np.cumsum([0, *map(len, given)]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, at: Any) -> Any:
        """One row, or for a slice the rows of it."""
        if isinstance(at, slice):
            start, stop, step = at.indices(len(self))
            assert step == 1, "rows lie end to end, so a slice is of neighbours"
            offsets = self.offsets[start : max(start, stop) + 1]
            return Rows(self.flat[offsets[0] : offsets[-1]], offsets - offsets[0])
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        at %= len(self)
        return self._plain[self.offsets[at] : self.offsets[at + 1]]

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each row."""
        return np.diff(self.offsets)


class Joined(Sequence[np.ndarray]):
    """The rows of several corpora one after the other, none of them copied."""

    def __init__(self, *parts: Sequence[np.ndarray]) -> None:
        self.parts = parts
        self.ends = np.cumsum([len(part) for part in parts])

    def __len__(self) -> int:
        return int(self.ends[-1])

    def __getitem__(self, at: Any) -> Any:
        """One row."""
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        at %= len(self)
        part = int(np.searchsorted(self.ends, at, side="right"))
        return self.parts[part][at - (self.ends[part - 1] if part else 0)]

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each row."""
        return np.concatenate([lengths_of(part) for part in self.parts])


class Chosen(Sequence[np.ndarray]):
    """Some rows of a corpus in an order of their own, none of them copied."""

    def __init__(self, rows: Sequence[np.ndarray], places: np.ndarray) -> None:
        self.rows, self.places = rows, places

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, at: Any) -> Any:
        """One row."""
        return self.rows[int(self.places[at])]

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each row."""
        return lengths_of(self.rows)[self.places]


def lengths_of(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Tokens of each row; of the rows above without reading them."""
    if isinstance(rows, Rows | Joined | Chosen):
        return rows.lengths
    return np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
