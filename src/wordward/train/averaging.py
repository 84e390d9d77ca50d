"""A moving average of a model's weights, which often scores better than the weights of any one step."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn


class MovingAverage:
    """An exponential moving average of a model's weights (Polyak averaging).

    It does not affect training; Miyato et al. score the average with decay 0.999.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self._weights: list[Tensor] = list(model.parameters())
        self._means = [weight.detach().clone() for weight in self._weights]

    def update(self, steps: int) -> None:
        """Take in the weights after this many steps; the decay starts lower, so that the start is soon forgotten."""
        decay = min(self.decay, (1 + steps) / (10 + steps))
        get_ema_multi_avg_fn(decay)(self._means, self._weights, None)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Swap the means in as the model's weights, and its own back afterwards."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for weight, mean in zip(self._weights, self._means, strict=True):
            kept = weight.clone()
            weight.copy_(mean)
            mean.copy_(kept)

    def tensors(self) -> dict[str, Tensor]:
        """The means, named by index, for a checkpoint."""
        return {f"average.{number}": mean.clone() for number, mean in enumerate(self._means)}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Restore what `tensors` gave."""
        for number, mean in enumerate(self._means):
            mean.copy_(tensors[f"average.{number}"])
