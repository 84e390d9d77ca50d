"""Word vectors, and the dropout after them."""

import torch
from torch import Tensor, nn

from wordward.text.vocabulary import PAD


class Words(nn.Module):
    """Word vectors and the dropout after them; the dropout is the site where r is added.

    If `rescaled`, the table keeps unit deviation, which epsilon relies on, and each vector gets its scale back after
    the dropout.
    """

    scale: Tensor | None
    shift: Tensor | None

    def __init__(self, size: int, dim: int, dropout: float, *, rescaled: bool = False) -> None:
        super().__init__()
        self.table = nn.Embedding(size, dim, padding_idx=PAD)  # starts at N(0, 1)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("scale", torch.ones(dim) if rescaled else None)
        self.register_buffer("shift", torch.zeros(dim) if rescaled else None)

    def forward(self, ids: Tensor) -> Tensor:
        """(batch, time) -> (batch, time, dim)."""
        vectors = self.dropout(self.table(ids))
        if self.scale is None or self.shift is None:
            return vectors
        return torch.addcmul(self.shift, vectors, self.scale)
