"""Adaptive softmax whose targets are grouped by cluster ahead, so that the device is never waited for."""

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

NONE = -1  # fills a group up to a fixed room


class AdaptiveSoftmax(nn.AdaptiveLogSoftmaxWithLoss):
    """PyTorch's adaptive softmax: the same weights and the same loss, also in mixed precision."""

    def groups(self, targets: Tensor) -> list[Tensor]:
        """Which targets (n,) lie in each tail; free of waiting where the targets are still on the CPU."""
        return [
            ((targets >= low) & (targets < high)).nonzero().flatten() for low, high in pairwise(self.cutoffs)
        ]

    def loss(self, states: Tensor, targets: Tensor, groups: Sequence[Tensor] | None = None) -> Tensor:
        """-log p of each target (n,) given its state (n, hidden); a group may be filled up with NONE."""
        groups = self.groups(targets) if groups is None else groups
        tail = torch.zeros_like(targets)  # 0: the head's own words
        for cutoff in self.cutoffs[:-1]:
            tail += targets >= cutoff
        first = torch.where(tail == 0, targets, self.shortlist_size - 1 + tail)
        loss = F.cross_entropy(self.head(states), first, reduction="none")
        for rows, (low, high), inside in zip(groups, pairwise(self.cutoffs), self.tail, strict=True):
            at = rows.clamp(min=0)
            inner = (targets[at] - low).clamp(0, high - low - 1)
            each = F.cross_entropy(inside(states[at]), inner, reduction="none")
            loss = loss.index_add(0, at, each.masked_fill(rows == NONE, 0.0))
        return loss
