"""Which words are nearest to a word: an exact search in blocks, of words that may be pointed to."""

from collections.abc import Callable, Collection
from math import isqrt
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from wordward.perturbation.distance import product
from wordward.perturbation.space import Words
from wordward.support.errors import SettingError

Metric = Literal["cosine", "euclidean"]
Rows = Callable[[int, int], Tensor]  # the vectors from one id up to another, not copied where that can be
GROUP = 128  # similarities per group; a GPU compares the groups' maxima first
BLOCK = 1 << 25  # similarities held at once in a search: 128 MiB in single precision


def allowed_words(size: int, candidates: Tensor | Collection[int] | None, *, padding: int | None) -> Tensor:
    """Ids of the words that may be pointed to, of a table of `size`: those given, else all, but never padding."""
    if candidates is None:
        ids = torch.arange(size)
    else:
        values = candidates if hasattr(candidates, "dtype") else list(candidates)
        try:
            ids = torch.as_tensor(values).cpu().unique()
        except (TypeError, ValueError, RuntimeError):  # words, say
            first = next(iter(values), None)
            raise SettingError(
                "candidates", f"candidates must be whole numbers, the ids of words, but hold {first!r}"
            ) from None
    if ids.is_floating_point() or ids.dtype == torch.bool:
        raise SettingError("candidates", f"candidates must be whole numbers, the ids of words, but are {ids.dtype}")
    if len(ids) and (ids[0] < 0 or ids[-1] >= size):
        raise SettingError(
            "candidates", f"candidates must be ids from 0 to {size - 1}, but go from {ids[0]} to {ids[-1]}"
        )
    ids = ids.long()
    return ids if padding is None else ids[ids != padding]


def check_enough(allowed: Tensor, k: int | None) -> None:
    """Refuse too few words to choose k nearest from."""
    if not len(allowed):
        raise SettingError(
            "candidates", "there are no words to point to: give ids other than padding as `candidates=`"
        )
    if k is not None and k >= len(allowed):
        raise SettingError(
            "k",
            f"k must be less than the {len(allowed)} words that may be pointed to, but is {k}; "
            "`k=None` takes them all",
        )


def nearest(ids: Tensor, table: Tensor, k: int, *, allowed: Tensor, metric: Metric, block: int = BLOCK) -> Tensor:
    """The k allowed words nearest to each word of `ids` (n,), the word itself left out: (n, k), nearest first.

    Exact, in blocks: apart from the table and the result no tensor holds more than about `block` numbers.
    """
    # Wide, since the best k of each block are sorted again, but no more vectors than a block holds.
    width = min(len(allowed), max(k, min(8 * isqrt(block), block // table.shape[1])))
    centre = None
    if metric == "euclidean":  # a common offset would cost the products their digits
        centre = torch.stack([table[part].sum(0) for part in allowed.split(width)]).sum(0) / len(allowed)

    def vectors(words: Tensor) -> Tensor:
        return F.normalize(table[words], dim=-1) if centre is None else table[words] - centre

    column = torch.full((len(table),), -1, device=ids.device).scatter_(
        0, allowed, torch.arange(len(allowed), device=ids.device)
    )
    all_targets = vectors(allowed) if len(allowed) * table.shape[1] <= block else None
    result = []
    for part in ids.split(max(1, block // width)):
        origins, best = vectors(part), []
        for start in range(0, len(allowed), width):
            words = allowed[start : start + width]
            targets = vectors(words) if all_targets is None else all_targets[start : start + width]
            similarity = _similarity(origins, targets, metric)
            _leave_out(similarity, column[part] - start)
            values, columns = largest(similarity, min(k, len(words)))
            best.append((values, words[columns]))
        result.append(_merged(best, k))
    return torch.cat(result)


def _similarity(origins: Tensor, targets: Tensor, metric: Metric) -> Tensor:
    """Larger for nearer words, (n, m)."""
    similarity = product(origins, targets.T)
    if metric == "euclidean":  # argmin |a-b|^2 = argmax ab - b^2/2
        similarity -= targets.square().sum(-1) / 2
    return similarity


def _leave_out(similarity: Tensor, columns: Tensor) -> None:
    """Set one column of each row to -inf, if it exists; does not synchronise with the device."""
    exists = ((columns >= 0) & (columns < similarity.shape[1])).unsqueeze(-1)
    column = columns.clamp(0, similarity.shape[1] - 1).unsqueeze(-1)
    similarity.scatter_(-1, column, similarity.gather(-1, column).masked_fill(exists, -torch.inf))


def largest(similarity: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row, largest first, and their columns; a GPU's top-k is slow on long rows."""
    wide = similarity.shape[1] >= 8 * k * GROUP
    if similarity.is_cuda and wide:
        return _by_groups(similarity, k)
    top = similarity.topk(k, dim=-1)
    return top.values, top.indices


def _by_groups(similarity: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """As `largest`, searching only the k groups of columns with the largest maxima, which must hold them."""
    rows, width = similarity.shape
    whole = width - width % GROUP
    every = torch.arange(width, device=similarity.device)
    maxima = similarity[:, :whole].unflatten(1, (-1, GROUP)).amax(-1)  # (rows, groups)
    groups = maxima.topk(k, dim=-1, sorted=False).indices
    columns = (groups.unsqueeze(-1) * GROUP + every[:GROUP]).flatten(1)  # (rows, k * GROUP)
    columns = torch.cat([columns, every[whole:].expand(rows, -1)], -1)
    top = similarity.gather(-1, columns).topk(k, dim=-1)
    return top.values, columns.gather(-1, top.indices)


def _merged(best: list[tuple[Tensor, Tensor]], k: int) -> Tensor:
    """The k best words of several blocks, from the best of each."""
    values, words = (torch.cat(parts, -1) for parts in zip(*best, strict=True))
    return words if len(best) == 1 else words.gather(-1, values.topk(k, dim=-1).indices)


class LargeTable:
    """A table too large to copy, searched block by block; lengths of its vectors are reckoned once."""

    def __init__(
        self, rows: Rows, size: int, dim: int, *, allowed: Tensor, metric: Metric, block: int = BLOCK
    ) -> None:
        self.rows, self.metric, self.block = rows, metric, block
        width = max(1, block // dim)
        self.blocks = [(start, min(size, start + width)) for start in range(0, size, width)]
        self._barred = torch.full((size,), -torch.inf, device=allowed.device).index_fill(0, allowed, 0.0)
        self._centre: Tensor | float = 0.0  # a common offset would cost the products their digits
        if metric == "euclidean":
            self._centre = torch.stack([rows(*ends).sum(0) for ends in self.blocks]).sum(0) / size
        self._sizes = torch.cat([self._vectors(*ends).square().sum(-1) for ends in self.blocks])  # (size,)

    def _vectors(self, start: int, end: int) -> Tensor:
        return self.rows(start, end) - self._centre if self.metric == "euclidean" else self.rows(start, end)

    def nearest(self, ids: Tensor, k: int, words: Words) -> Tensor:
        """As `nearest`: the k allowed words nearest to each of `ids` (n,), (n, k)."""
        found = []
        for part in ids.split(max(1, self.block // (self.blocks[0][1]))):
            origins, best = words(part) - self._centre, []
            for start, end in self.blocks:
                similarity, sizes = product(origins, self._vectors(start, end).T), self._sizes[start:end]
                if self.metric == "euclidean":  # argmin |a-b|^2 = argmax ab - b^2/2
                    similarity -= sizes / 2
                else:
                    similarity /= sizes.sqrt().clamp(min=1e-12)
                similarity += self._barred[start:end]
                _leave_out(similarity, part - start)
                values, columns = largest(similarity, min(k, end - start))
                best.append((values, columns + start))
            found.append(_merged(best, k))
        return torch.cat(found)


class NearestWords:
    """The k nearest words of each word, searched on first use, then kept.

    `at_once`: search for all words together, after which a look-up does not synchronise with the device.
    """

    def __init__(self, size: int, k: int, *, allowed: Tensor, metric: Metric, at_once: bool = False) -> None:
        self.k = k
        self.metric: Metric = metric
        self.allowed = allowed
        self.at_once = at_once
        self._rows = torch.full((size, k), -1, device=allowed.device)
        self._complete = False
        self._large: LargeTable | None = None

    def of(self, ids: Tensor, table: Callable[[], Tensor]) -> Tensor:
        """Candidates for ids (batch, time): (batch, time, k)."""
        if not self._complete:
            missing = torch.arange(len(self._rows), device=ids.device) if self.at_once else self._unknown(ids)
            if len(missing):
                rows = nearest(missing, table(), self.k, allowed=self.allowed, metric=self.metric)
                self._rows[missing] = rows
            self._complete = self.at_once
        return self._rows[ids]

    def of_large(self, ids: Tensor, words: Words, rows: Rows, dim: int) -> Tensor:
        """As `of`, for a table that is not copied; lengths of its vectors are those at the first search."""
        missing = self._unknown(ids)
        if len(missing):
            if self._large is None:
                self._large = LargeTable(rows, len(self._rows), dim, allowed=self.allowed, metric=self.metric)
            self._rows[missing] = self._large.nearest(missing, self.k, words)
        return self._rows[ids]

    def _unknown(self, ids: Tensor) -> Tensor:
        """The words of a batch not searched for yet."""
        words = ids.unique()
        return words[self._rows[words, 0] < 0]
