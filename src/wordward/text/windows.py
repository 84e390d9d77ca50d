"""Running text as windows over several streams, read from disk as needed."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from wordward.support.distributed import ALONE, Team
from wordward.text.ragged import lengths_of

READ_AHEAD = 16  # windows in memory at once; if the rows are on disk, the rest stays there


class Reader:
    """Texts one after the other, cut into `streams` that are read in parallel; each process reads its own."""

    def __init__(self, rows: Sequence[np.ndarray], streams: int, window: int, *, team: Team = ALONE) -> None:
        self.rows, self.window = rows, window
        self._lengths = lengths_of(rows)
        tokens = int(self._lengths.sum())
        self.streams = min(streams, max(1, tokens // 2))
        self.length = tokens // self.streams  # words of a stream, including the target of the last
        self._own, self.share = team.rows(self.streams)

    def __len__(self) -> int:
        """Windows in an epoch."""
        return math.ceil((self.length - 1) / self.window)

    def windows(self, rng: np.random.Generator | None) -> Iterator[tuple[Tensor, Tensor]]:
        """ids and targets, (streams, window) each, with the texts in random order if `rng` is given."""
        order = np.arange(len(self.rows)) if rng is None else rng.permutation(len(self.rows))
        ends = np.cumsum(self._lengths[order])
        reach = READ_AHEAD * self.window
        for first in range(0, self.length - 1, reach):
            size = min(reach, self.length - 1 - first)
            starts = [stream * self.length + first for stream in range(self.streams)[self._own]]
            lanes = torch.from_numpy(np.stack([self._read(order, ends, at, size + 1) for at in starts]))
            for start in range(0, size, self.window):
                end = min(start + self.window, size)
                yield lanes[:, start:end].contiguous(), lanes[:, start + 1 : end + 1].contiguous()

    def _read(self, order: np.ndarray, ends: np.ndarray, start: int, count: int) -> np.ndarray:
        """`count` words from word `start` on, of the texts in this order, which end at `ends`."""
        words, filled = np.empty(count, dtype=np.int64), 0
        at = int(np.searchsorted(ends, start, side="right"))
        inside = start - int(ends[at - 1]) if at else start
        while filled < count:
            row = self.rows[int(order[at])][inside : inside + count - filled]
            words[filled : filled + len(row)] = row
            filled, at, inside = filled + len(row), at + 1, 0
        return words
