"""Adaptive softmax whose targets are grouped by cluster in advance, which avoids synchronising with the device."""

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

NONE = -1  # pads a group to a fixed size
ALIGNED = 8  # a GPU's product in half precision is twice as fast where its sizes are multiples of this


class AdaptiveSoftmax(nn.AdaptiveLogSoftmaxWithLoss):
    """PyTorch's adaptive softmax: the same weights and the same loss, also in mixed precision."""

    def groups(self, targets: Tensor) -> list[Tensor]:
        """Which targets (n,) lie in each tail; does not synchronise if the targets are still on the CPU."""
        return [
            ((targets >= low) & (targets < high)).nonzero().flatten() for low, high in pairwise(self.cutoffs)
        ]

    def loss(self, states: Tensor, targets: Tensor, groups: Sequence[Tensor] | None = None) -> Tensor:
        """-log p of each target (n,) given its state (n, hidden); a group may be padded with NONE."""
        groups = self.groups(targets) if groups is None else groups
        tail = torch.zeros_like(targets)  # 0: the head's own words
        for cutoff in self.cutoffs[:-1]:
            tail += targets >= cutoff
        first = torch.where(tail == 0, targets, self.shortlist_size - 1 + tail)
        scores = aligned(self.head, states) if states.is_cuda else self.head(states)
        loss = _surprise(scores, first)
        for rows, (low, high), inside in zip(groups, pairwise(self.cutoffs), self.tail, strict=True):
            filling = torch.arange(len(rows), device=rows.device) % len(
                targets
            )  # spread: one row would be slow
            at = torch.where(rows == NONE, filling, rows)
            inner = (targets[at] - low).clamp(0, high - low - 1)
            losses = _surprise(inside(states.index_select(0, at)), inner)
            loss = loss.index_add(0, at, losses.masked_fill(rows == NONE, 0.0))
        return loss


def aligned(layer: nn.Linear, states: Tensor) -> Tensor:
    """The output of a layer, computed as a product of aligned size."""
    missing = -len(layer.weight) % ALIGNED
    weight = F.pad(layer.weight, (0, 0, 0, missing))
    bias = None if layer.bias is None else F.pad(layer.bias, (0, missing))
    return F.linear(states, weight, bias)[:, : len(layer.weight)]


def _surprise(scores: Tensor, targets: Tensor) -> Tensor:
    """-log p of each target (n,), in single precision at least."""
    kind = torch.promote_types(scores.dtype, torch.float32)
    return F.nll_loss(F.log_softmax(scores, -1, dtype=kind), targets, reduction="none")
