"""Which strengths a perturbation takes, and how long it is made."""

from collections.abc import Callable

import torch
from torch import Tensor


def _top(values: Tensor, possible: Tensor | None) -> Tensor:
    """1 at the largest of each token's values, else 0."""
    if possible is not None:
        values = values.masked_fill(~possible, -torch.inf)
    return torch.zeros_like(values).scatter_(-1, values.argmax(-1, keepdim=True), 1.0)


CHOICES: dict[str, Callable[[Tensor, Tensor | None], Tensor]] = {
    "steepest": lambda ascent, possible: ascent,
    "at_random": lambda noise, possible: noise,
    "best_one": lambda ascent, possible: ascent * _top(ascent, possible),
    "random_one": lambda noise, possible: _top(noise, possible),
}


def unit(values: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Length 1 over `dims`, whatever the scale of the values; zero (or broken by overflow) gives zero."""
    peak = values.abs().amax(dims, keepdim=True)
    sound = (peak > 0) & peak.isfinite()
    scaled = torch.where(sound, values / torch.where(sound, peak, 1.0), 0.0)
    return scaled / torch.where(sound, scaled.square().sum(dims, keepdim=True).sqrt(), 1.0)


def deviation(table: Tensor) -> float:
    """Standard deviation of a table's vectors, the root mean square over dimensions."""
    return float(table.var(0, unbiased=False).mean().sqrt())
