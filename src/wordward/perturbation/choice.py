"""Which strengths a perturbation takes, and how long it is made."""

from collections.abc import Callable

import torch
from torch import Tensor

from wordward.perturbation.distance import distances

SAMPLED, AMONG, NEAREST = 256, 1 << 13, 10  # words of a table, the others they are compared with, and which is meant


def _top(values: Tensor, possible: Tensor) -> Tensor:
    """1 at the largest of each token's values, else 0."""
    values = values.masked_fill(~possible, -torch.inf)
    return torch.zeros_like(values).scatter_(-1, values.argmax(-1, keepdim=True), 1.0)


def _top_of_text(values: Tensor, possible: Tensor) -> Tensor:
    """1 at the largest of each text's values, else 0; all 0 where none is possible."""
    possible = possible.expand_as(values)
    return _top(values.flatten(1), possible.flatten(1)).view_as(values) * possible


Where = Callable[[], Tensor]  # computed only if a choice depends on it

# Of values (batch, time, k), where they are possible (batch, time, k or 1) and tokens are words (batch, time, 1).
CHOICES: dict[str, Callable[[Tensor, Where, Where], Tensor]] = {
    "steepest": lambda ascent, possible, words: ascent,
    "at_random": lambda noise, possible, words: noise,
    "best_one": lambda ascent, possible, words: ascent * _top(ascent, possible()),
    "random_one": lambda noise, possible, words: _top(noise, possible()),
    "one_token": lambda ascent, possible, words: ascent * _top_of_text(_lengths(ascent), words()),
    "one_word": lambda ascent, possible, words: ascent * _top_of_text(ascent, words() & possible()),
}


def _lengths(values: Tensor) -> Tensor:
    """|values| of each token, (batch, time, 1), up to a common scale that keeps squares in range."""
    peak = values.abs().amax((1, 2), keepdim=True)
    return (values / torch.where(peak > 0, peak, 1.0)).norm(dim=-1, keepdim=True)


def unit(values: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Length 1 over `dims`, whatever the scale of the values; zero (or values that overflowed) gives zero."""
    peak = values.abs().amax(dims, keepdim=True)
    sound = (peak > 0) & peak.isfinite()
    scaled = torch.where(sound, values / torch.where(sound, peak, 1.0), 0.0)
    return scaled / torch.where(sound, scaled.square().sum(dims, keepdim=True).sqrt(), 1.0)


def across(gradient: Tensor, step: Tensor) -> Tensor:
    """The gradient (batch, time, dim) without each token's part along a step."""
    along = unit(step, (2,))
    return gradient - (gradient * along).sum(-1, keepdim=True) * along


def centred(values: Tensor, possible: Tensor) -> Tensor:
    """Values (batch, time, k) less the mean of each token's possible ones; 0 at the others."""
    possible = possible.expand_as(values)
    mean = (values * possible).sum(-1, keepdim=True) / possible.sum(-1, keepdim=True).clamp(min=1)
    return (values - mean) * possible


def within(values: Tensor, length: Tensor | float) -> Tensor:
    """The values projected onto the ball of radius `length`, (batch, 1, 1) or the same for all sentences."""
    norm = values.flatten(1).norm(dim=1).view(-1, 1, 1)
    return torch.where(norm > length, values * (length / norm), values)


def scattered(noise: Tensor, mask: Tensor) -> Tensor:
    """U(-1, 1) / sqrt(n) for a text's n numbers, from Gaussian noise (batch, time, n / tokens): at most 1 long."""
    numbers = mask.sum(1).clamp(min=1).view(-1, 1, 1) * noise.shape[-1]
    return torch.erf(noise / 2**0.5) * mask.unsqueeze(-1) / numbers.sqrt()


def sampled(size: int) -> Tensor:
    """The words of a table of this size that `nearness` looks at."""
    return torch.arange(0, size, -(-size // AMONG))


def nearness(table: Tensor) -> float:
    """How far it is from a word to its tenth nearest, the median over words; of a large table, over a sample."""
    table = table[:: -(-len(table) // AMONG)]
    words = table[:: -(-len(table) // SAMPLED)]
    tenth = min(NEAREST + 1, len(table))  # after the word itself
    return float(distances(words, table).kthvalue(tenth).values.median())
