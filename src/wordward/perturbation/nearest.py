"""Which words are nearest to a word: an exact search in blocks, of words that may be pointed to."""

from collections.abc import Callable, Collection
from math import isqrt
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from wordward.perturbation.distance import product
from wordward.perturbation.space import Words
from wordward.support.errors import SettingError

Metric = Literal["cosine", "euclidean"]
GROUP = 128  # similarities per group; a GPU compares the groups' maxima first
BLOCK = 1 << 25  # similarities held at once in a search: 128 MiB in single precision
MANY = 4  # words searched for, for each number of a vector, for which a copy of the table at length 1 pays


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


class Table(NamedTuple):
    """Word vectors that need not be one tensor."""

    size: int
    dim: int
    words: Words  # looked up one by one
    rows: Callable[[int, int], Tensor]  # from one id up to another, not copied where that can be


class Targets:
    """The words that are searched, in columns: those allowed, or, to read the table in place, all.

    In place, a block of the table is not copied, which for the few new words of a batch would take most of the time.
    """

    def __init__(self, table: Table, allowed: Tensor, count: int) -> None:
        """`count`: how many words are searched for."""
        self.table, self.allowed = table, allowed
        self.in_place = count <= MANY * table.dim and 2 * len(allowed) >= table.size
        self.count = table.size if self.in_place else len(allowed)
        self._column = torch.full((table.size,), -1, device=allowed.device).scatter_(
            0, allowed, torch.arange(len(allowed), device=allowed.device)
        )

    def vectors(self, start: int, end: int) -> Tensor:
        """Of some columns, (columns, dim)."""
        return self.table.rows(start, end) if self.in_place else self.table.words(self.allowed[start:end])

    def ids(self, columns: Tensor) -> Tensor:
        """The words in columns."""
        return columns if self.in_place else self.allowed[columns]

    def leave_out(self, similarity: Tensor, ids: Tensor, start: int) -> None:
        """Set to -inf, in columns from `start` on, the words (n,) themselves and what is not allowed."""
        if self.in_place:
            barred = self._column[start : start + similarity.shape[1]] < 0
            similarity.masked_fill_(barred, -torch.inf)
        _leave_out(similarity, (ids if self.in_place else self._column[ids]) - start)


def nearest(
    ids: Tensor, table: Tensor | Table, k: int, *, allowed: Tensor, metric: Metric, block: int = BLOCK
) -> Tensor:
    """The k allowed words nearest to each word of `ids` (n,), the word itself left out: (n, k), nearest first.

    Exact, in blocks: apart from the table and the result no tensor holds more than about `block` numbers.
    """
    if isinstance(table, Tensor):
        size, dim = table.shape
        table = Table(size, dim, table.__getitem__, lambda start, end, held=table: held[start:end])
    targets = Targets(table, allowed, len(ids))
    # Wide, since the best k of each block are sorted again, but no more vectors than a block holds.
    width = min(targets.count, max(k, min(8 * isqrt(block), block // table.dim)))
    blocks = [(start, min(start + width, targets.count)) for start in range(0, targets.count, width)]
    parts = ids.split(max(1, block // width))
    best: list[list[tuple[Tensor, Tensor]]] = [[] for _ in parts]
    centre: Tensor | float = 0.0
    if metric == "euclidean":  # a common offset would cost the products their digits
        centre = torch.stack([targets.vectors(*ends).sum(0) for ends in blocks]).sum(0) / targets.count
    for start, end in blocks:
        vectors = targets.vectors(start, end)
        compare = _cosine(vectors, copy=not targets.in_place) if metric == "cosine" else _euclidean(vectors, centre)
        for part, found in zip(parts, best, strict=True):
            similarity = compare(table.words(part))
            targets.leave_out(similarity, part, start)
            values, columns = largest(similarity, min(k, end - start))
            found.append((values, targets.ids(columns + start)))
    return torch.cat([_merged(found, k) for found in best])


def _cosine(vectors: Tensor, *, copy: bool) -> Callable[[Tensor], Tensor]:
    """Similarities of words to a block of others (m, dim), larger for nearer ones; `copy`: put these at length 1."""
    lengths = torch.linalg.vector_norm(vectors, dim=-1).clamp(min=1e-12)
    if copy:
        vectors, lengths = vectors / lengths.unsqueeze(-1), None

    def compare(origins: Tensor) -> Tensor:
        similarity = product(F.normalize(origins, dim=-1), vectors.T)
        return similarity if lengths is None else similarity.div_(lengths)

    return compare


def _euclidean(vectors: Tensor, centre: Tensor | float) -> Callable[[Tensor], Tensor]:
    """As `_cosine`, by distance: argmin |a-b|^2 = argmax ab - b^2/2."""
    vectors = vectors - centre
    halves = vectors.square().sum(-1) / 2
    return lambda origins: product(origins - centre, vectors.T).sub_(halves)


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

    def of(self, ids: Tensor, table: Tensor | Table) -> Tensor:
        """Candidates for ids (batch, time): (batch, time, k)."""
        if not self._complete:
            missing = torch.arange(len(self._rows), device=ids.device) if self.at_once else self._unknown(ids)
            if len(missing):
                self._rows[missing] = nearest(missing, table, self.k, allowed=self.allowed, metric=self.metric)
            self._complete = self.at_once
        return self._rows[ids]

    def _unknown(self, ids: Tensor) -> Tensor:
        """The words of a batch not searched for yet."""
        words = ids.unique()
        return words[self._rows[words, 0] < 0]
