"""Products of vectors and distances between them, in full precision."""

import torch
from torch import Tensor

BLOCKS = {"cuda": 1 << 22}  # numbers held at once, 32 MiB in double precision: a GPU synchronises after each block
BLOCK = 1 << 20  # elsewhere: what fits in a cache
NEAR = 1e-6  # relative to |a|^2 + |b|^2: a smaller square has lost too many digits


def distances(vectors: Tensor, others: Tensor, *, block: int | None = None) -> Tensor:
    """|a - b| of each of `vectors` (n, dim) from each of `others` (m, dim): (n, m), 0 exactly where they coincide.

    By matrix products, and one by one where these would lose digits.
    """
    if vectors.device.type == "mps":  # has no double precision
        return torch.cdist(vectors, others, compute_mode="donot_use_mm_for_euclid_dist")
    block = block or BLOCKS.get(vectors.device.type, BLOCK)
    result = torch.empty(len(vectors), len(others), dtype=vectors.dtype, device=vectors.device)
    targets = others.double()
    middle = targets.mean(0)  # a common offset would cost precision
    targets = targets - middle
    squares = targets.square().sum(-1)  # (m,)
    rows = max(1, block // max(1, len(others)))
    for at, a in enumerate(vectors.split(rows)):
        origins = a.double() - middle
        square_sums = origins.square().sum(-1, keepdim=True) + squares  # |a|^2 + |b|^2
        square = torch.addmm(square_sums, origins, targets.T, alpha=-2)  # autocast leaves double precision alone
        near = (square <= NEAR * square_sums).nonzero()
        for pairs in near.split(max(1, block // vectors.shape[1])):
            row, column = pairs.unbind(1)
            square[row, column] = (a[row].double() - others[column].double()).square().sum(-1)
        result[at * rows : at * rows + len(a)] = square.sqrt_()
    return result


def product(a: Tensor, b: Tensor) -> Tensor:
    """A matrix product in full precision even under autocast."""
    with torch.autocast(a.device.type, enabled=False):
        return a @ b
