"""Rows of different lengths that need not fit in memory: concatenated, joined, or chosen from others."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


class Rows(Sequence[np.ndarray]):
    """Arrays of different lengths laid end to end, in memory or in a mapped file."""

    def __init__(self, flat: np.ndarray, offsets: np.ndarray) -> None:
        self.flat, self.offsets = flat, offsets  # row `at` is flat[offsets[at]:offsets[at + 1]]
        self._plain = np.asarray(flat)  # the same data: slicing a np.memmap takes ten times as long

    @classmethod
    def of(cls, rows: Iterable[np.ndarray]) -> "Rows":
        """Rows copied into one array."""
        arrays = list(rows)
        flat = np.concatenate(arrays) if arrays else np.zeros(0, np.int32)
        return cls(flat, np.cumsum([0, *map(len, arrays)]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, at: Any) -> Any:
        """One row, or the rows of a slice."""
        if isinstance(at, slice):
            start, stop, step = at.indices(len(self))
            assert step == 1, "rows lie end to end, so a slice must be contiguous"
            offsets = self.offsets[start : max(start, stop) + 1]
            return Rows(self.flat[offsets[0] : offsets[-1]], offsets - offsets[0])
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        at %= len(self)
        return self._plain[self.offsets[at] : self.offsets[at + 1]]

    @property
    def lengths(self) -> np.ndarray:
        """Number of tokens in each row."""
        return np.diff(self.offsets)


class Joined(Sequence[np.ndarray]):
    """The rows of several corpora one after the other, without copying."""

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
        """Number of tokens in each row."""
        return np.concatenate([lengths_of(part) for part in self.parts])


class Chosen(Sequence[np.ndarray]):
    """Some rows of a corpus in any order, without copying."""

    def __init__(self, rows: Sequence[np.ndarray], places: np.ndarray) -> None:
        self.rows, self.places = rows, places

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, at: Any) -> Any:
        """One row."""
        return self.rows[int(self.places[at])]

    @property
    def lengths(self) -> np.ndarray:
        """Number of tokens in each row."""
        return lengths_of(self.rows)[self.places]


def lengths_of(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Number of tokens in each row; for the classes above, without reading the rows."""
    if isinstance(rows, Rows | Joined | Chosen):
        return rows.lengths
    return np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
