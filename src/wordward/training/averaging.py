"""A moving average of a model's weights, which errs less than the weights of any one step."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn


class MovingAverage:
    """The mean of a model's weights over its steps, the latest counting most (Polyak averaging).

    Training goes on as if it were not there; Miyato et al. score the average at 0.999.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self._weights: list[Tensor] = list(model.parameters())
        self._means = [weight.detach().clone() for weight in self._weights]

    def update(self, steps: int) -> None:
        """Take in the weights after so many steps; the first ones are soon forgotten."""
        decay = min(self.decay, (1 + steps) / (10 + steps))
        get_ema_multi_avg_fn(decay)(self._means, self._weights, None)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The model with the means as its weights, and after that with its own again."""
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
        """The means, named by number, for a checkpoint."""
        return {f"average.{number}": mean.clone() for number, mean in enumerate(self._means)}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Go on from what `tensors` gave."""
        for number, mean in enumerate(self._means):
            mean.copy_(tensors[f"average.{number}"])
