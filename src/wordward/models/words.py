"""Word vectors, and the dropout after them."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from wordward.text.vocabulary import PAD


class Dropout(nn.Dropout):
    """PyTorch's dropout, on a CPU in a third of the time: four numbers share one draw of 64 bits."""

    def forward(self, input: Tensor) -> Tensor:
        """Drop each number with probability p (to within 1 / 65,536), and scale up the others."""
        if not self.training or self.p in (0.0, 1.0) or input.device.type != "cpu":
            return super().forward(input)
        count = input.numel()
        drawn = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(2**63), None)  # all 64 bits
        kept = drawn.view(torch.int16)[:count].view(input.shape) >= round(self.p * 2**16) - 2**15
        return input * kept.to(input.dtype).mul_(1 / (1 - self.p))


class Words(nn.Module):
    """Word vectors and the dropout after them; the dropout is the site where r is added.

    If `rescaled`, the table keeps unit deviation, which epsilon relies on, and each vector gets its scale back after
    the dropout. The last rows may be kept apart while the others are trained.
    """

    apart: Tensor | None
    scale: Tensor | None
    shift: Tensor | None

    def __init__(self, size: int, dim: int, dropout: float, *, rescaled: bool = False) -> None:
        super().__init__()
        self.table = nn.Embedding(size, dim, padding_idx=PAD)  # starts at N(0, 1)
        self.dropout = Dropout(dropout)
        self.register_buffer("apart", None, persistent=False)
        self.register_buffer("scale", torch.ones(dim) if rescaled else None)
        self.register_buffer("shift", torch.zeros(dim) if rescaled else None)

    def forward(self, ids: Tensor) -> Tensor:
        """(batch, time) -> (batch, time, dim)."""
        vectors = self.dropout(self.table(ids))
        if self.scale is None or self.shift is None:
            return vectors
        return torch.addcmul(self.shift, vectors, self.scale)

    def keep_apart(self, first: int) -> None:
        """Leave only the first rows in the table, so that no time goes into others, which training never reads."""
        rows = self.table.weight.detach()
        self.apart = rows[first:].clone()
        self.table.weight.data = rows[:first].clone()  # the same parameter, with its hooks

    @contextmanager
    def whole(self) -> Iterator[None]:
        """The table with the rows that are kept apart, to be scored or saved."""
        kept = self.table.weight
        if self.apart is not None:
            self.table.weight = nn.Parameter(torch.cat([kept.detach(), self.apart]), requires_grad=False)
        try:
            yield
        finally:
            self.table.weight = kept
