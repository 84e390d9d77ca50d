"""Which words a free perturbation points to: a search of the words in its direction, and their exact cosines."""

import torch
import torch.nn.functional as F
from torch import Tensor

from wordward.perturbation.adversary import Adversary
from wordward.perturbation.nearest import largest
from wordward.support.device import at_once, searching

SPARE = 8  # words more than asked for that a search in single precision finds, of which the exact cosine picks
COSINES = 1 << 22  # numbers computed at a time, at most: more take longer, beyond a CPU's caches


def anywhere(
    adversary: Adversary, ids: Tensor, r: Tensor, where: Tensor, *, allowed: Tensor, top: int
) -> tuple[Tensor, Tensor, Tensor]:
    """For a free perturbation r: the allowed words in the directions closest to it, how far it goes, and cosines.

    (batch, time, top) each, zeros but `where` (batch, time).
    """
    nearest_cosines, nearest = pointed_at(r[where], ids[where], adversary.tap.table(), allowed=allowed, top=top)
    words = torch.zeros(*ids.shape, nearest.shape[-1], dtype=nearest.dtype, device=nearest.device)
    cosines = torch.zeros_like(words, dtype=r.dtype)
    words[where], cosines[where] = nearest, nearest_cosines.to(r.dtype)
    return words, cosines * r.norm(dim=-1, keepdim=True), cosines


@torch.no_grad()
def pointed_at(
    vectors: Tensor, ids: Tensor, table: Tensor, *, allowed: Tensor, top: int, block: int = COSINES
) -> tuple[Tensor, Tensor]:
    """cos(r, w_k - w) and k of the `top` allowed words it is largest for: two (n, top), largest first.

    `vectors` (n, dim) are the perturbations of words `ids` (n,). The word itself, like any word with
    the same vector, has cosine 0.
    """
    wide = table.dtype if table.device.type == "mps" else torch.float64  # MPS has no double precision
    table = table.to(wide)
    middle = table[allowed].mean(0)  # a common offset, which would cost products their digits
    table = table - middle
    targets, top = Compared(table[allowed]), min(top, len(allowed))
    wide_row = max(len(allowed), (top + SPARE) * table.shape[1])  # numbers for each vector: never (n, allowed, dim)
    rows = max(1, at_once(block, table.device) // wide_row)
    order = ids.argsort()  # the distances of a word that comes often are computed once for many
    found = [_pointed_at(vectors[part].to(wide), ids[part], table, targets, top) for part in order.split(rows)]
    cosines, columns = (torch.cat(parts)[order.argsort()] for parts in zip(*found, strict=True))
    return cosines, allowed[columns]


class Compared:
    """The vectors that are compared, and their copy in single precision, which is searched."""

    def __init__(self, vectors: Tensor) -> None:
        self.vectors, self.coarse, self.squares = vectors, vectors.float().T, vectors.square().sum(-1)

    def nearness(self, words: Tensor) -> Tensor:
        """1 / |t - w| for each word vector (n, dim) and target t, (n, targets); 0 where they are the same."""
        squares = words.square().sum(-1, keepdim=True) + self.squares
        squared_distances = squares - 2 * (words @ self.vectors.T)
        undefined = squared_distances <= 64 * torch.finfo(words.dtype).eps * squares
        return torch.where(undefined, 0.0, squared_distances.clamp(min=0).rsqrt())


def _pointed_at(r: Tensor, ids: Tensor, table: Tensor, targets: Compared, top: int) -> tuple[Tensor, Tensor]:
    """The largest cosines of `r` with the ways from the words `ids`, which are sorted, to targets, and their rows."""
    words, which = ids.unique_consecutive(return_inverse=True)
    nearness, own = targets.nearness(table[words]), table[ids]
    r = F.normalize(r, dim=-1, eps=torch.finfo(table.dtype).tiny)
    with searching(r.device):
        cosines = r.float() @ targets.coarse
    cosines.sub_((r * own).sum(-1, keepdim=True)).mul_(nearness.float()[which])
    rows = largest(cosines, min(top + SPARE, cosines.shape[1]))[1]
    ways = targets.vectors[rows] - own.unsqueeze(1)  # (n, top and some more, dim)
    exact = (ways @ r.unsqueeze(-1)).squeeze(-1) * nearness[which.unsqueeze(-1), rows]
    best = exact.topk(top, dim=-1)
    return best.values, rows.gather(-1, best.indices)
