"""Whether the weights of a model have changed, and what was made of them as long as they have not."""

from collections import deque
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, TypeVar

import torch
from torch import nn

KEPT = 8  # things made of a model's weights
T = TypeVar("T")


def fingerprint(model: nn.Module) -> bytes:
    """Bytes that, almost surely, are others once any weight of a model has changed.

    By the sum of each row: those of whole tables depend on how many threads add them up. Not by `_version`, which
    fused optimizers do not count.
    """
    found = blake2b()
    for weight in model.parameters():
        rows = weight.detach()
        rows = rows if rows.dim() < 2 else rows.flatten(1).sum(1, dtype=torch.float32)
        found.update(rows.float().cpu().numpy().tobytes())
    return found.digest()


class Kept:
    """The last things that were made of a model's weights; all are dropped once the weights have changed."""

    def __init__(self, model: nn.Module) -> None:
        self._model, self._of = model, b""
        self._made: deque[tuple[Any, Any]] = deque(maxlen=KEPT)

    def __call__(self, name: Any, make: Callable[[], T]) -> T:
        """What `make` gives, or what it gave before for an equal name."""
        now = fingerprint(self._model)
        if now != self._of:
            self._of = now
            self._made.clear()
        for known, made in list(self._made):
            if known == name:
                return made
        made = make()
        self._made.append((name, made))
        return made
