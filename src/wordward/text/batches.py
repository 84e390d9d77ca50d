"""Rows of ids as padded batches of similar length."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np

from wordward.support.errors import SettingError
from wordward.text.vocabulary import PAD

Item = TypeVar("Item")


def chunks(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """The items in their order, at most `size` at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))


def length_batches(
    lengths: Sequence[int] | np.ndarray, batch_size: int, *, rng: np.random.Generator | None, pool: int = 50
) -> list[np.ndarray]:
    """Indices in batches of similar length, each index once.

    With `rng`: shuffle, sort by length inside pools of `pool` batches, shuffle the batches. Without: sort
    everything by length, the same every time, for evaluation.
    """
    if batch_size < 1 or pool < 1:
        raise SettingError("batch_size", f"expected batch_size and pool of 1 or more; got {batch_size} and {pool}")
    sizes = np.asarray(lengths)
    order = np.arange(len(sizes)) if rng is None else rng.permutation(len(sizes))
    step = max(len(sizes), 1) if rng is None else pool * batch_size
    batches: list[np.ndarray] = []
    for start in range(0, len(order), step):
        part = order[start : start + step]
        part = part[np.argsort(sizes[part], kind="stable")]
        batches += [part[at : at + batch_size] for at in range(0, len(part), batch_size)]
    if rng is None:
        return batches
    return [batches[at] for at in rng.permutation(len(batches))]


def small_batches(lengths: np.ndarray, texts: int, tokens: int) -> Iterator[np.ndarray]:
    """Indices of texts of similar length, at most `texts` at a time, and fewer where they hold more than `tokens`."""
    for index in length_batches(lengths, texts, rng=None):
        count = max(1, tokens // max(1, int(lengths[index].max())))
        yield from (index[start : start + count] for start in range(0, len(index), count))


def pad(rows: Sequence[Sequence[int]], value: int = PAD, multiple: int = 1) -> np.ndarray:
    """Rows of ids as one matrix, filled up on the right.

    Args:
        rows: The ids of each text.
        value: What to fill up with.
        multiple: The length is a multiple of this.

    Returns:
        The ids, (batch, time).

    Examples:
        >>> from wordward.text import pad
        >>> pad([[4, 5, 2], [6, 2]]).tolist()
        [[4, 5, 2], [6, 2, 0]]
    """
    longest = -(-max((len(row) for row in rows), default=0) // multiple) * multiple
    matrix = np.full((len(rows), longest), value, dtype=np.int64)  # (batch, time)
    for at, row in enumerate(rows):
        matrix[at, : len(row)] = row
    return matrix
