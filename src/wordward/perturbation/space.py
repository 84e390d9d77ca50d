"""Where a perturbation may point: anywhere, or from each token toward other words."""

from collections.abc import Callable, Iterator
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from wordward.perturbation.distance import BLOCK, distances, product

Words = Callable[[Tensor], Tensor]  # ids -> vectors, without dropout and without gradient
HELD = {"cuda": 1 << 23}  # numbers held as directions at once, 32 MiB: a GPU prefers few large products
SEEDS = 1 << 62  # of what is dropped in a batch


class Space(Protocol):
    """A matrix D of directions as its two products, which are each other's transpose."""

    @property
    def candidates(self) -> Tensor | None:
        """The words that directions point to, (batch, time, k); None where they are not words."""
        ...

    @property
    def possible(self) -> Tensor | None:
        """Which candidates can be pointed to, (batch, time, k); None where all can."""
        ...

    def strengths(self, vectors: Tensor) -> Tensor:
        """D^T g: the component of `vectors` (batch, time, dim) along each direction."""
        ...

    def vectors(self, strengths: Tensor) -> Tensor:
        """r = D a (eq:advR): the sum of the directions, weighted by their strengths."""
        ...


class Free:
    """Every direction of the embedding space (AdvT-Text, VAT-Text): D is the identity."""

    candidates = None
    possible = None

    def strengths(self, vectors: Tensor) -> Tensor:
        """The vectors themselves."""
        return vectors

    def vectors(self, strengths: Tensor) -> Tensor:
        """The strengths themselves."""
        return strengths


class Neighbors:
    """Unit directions from each token to its k candidates (eq:adv_direction); many are never in memory at once.

    `dropout`: the share of numbers dropped, for each token and each of its candidates apart, before the difference is
    taken (the authors' code). What is dropped is drawn once: a seed, from which every product draws the same again.
    `origins`: where the tokens are, (batch, time, dim), if not at their words.
    """

    possible = None

    def __init__(
        self,
        ids: Tensor,
        candidates: Tensor,
        words: Words,
        *,
        dropout: float = 0.0,
        origins: Tensor | None = None,
    ) -> None:
        self.candidates = candidates  # (batch, time, k)
        self._origins = words(ids) if origins is None else origins  # (batch, time, dim)
        self._words = words
        self._dropout = dropout
        self._seed = int(torch.randint(SEEDS, (), device="cpu")) if dropout else 0

    def _units(self) -> Iterator[Tensor]:
        """d_k for a few k at a time, (batch, time, count, dim); the zero vector where two words coincide."""
        count = max(1, HELD.get(self._origins.device.type, 0) // max(1, self._origins.numel()))
        masks = self._masks() if self._dropout else None
        origins = self._origins if masks is None else self._origins * next(masks)
        least = max(1e-12, torch.finfo(origins.dtype).tiny)  # of half precision, 1e-12 is 0
        for words in self.candidates.split(count, -1):
            vectors = self._words(words)
            if masks is not None:  # what stays is not scaled up: one factor for all changes no direction
                vectors = vectors * torch.stack([next(masks) for _ in words.unbind(-1)], 2)
            yield F.normalize(vectors - origins.unsqueeze(2), dim=-1, eps=least)

    def _masks(self) -> Iterator[Tensor]:
        """Which numbers stay, (batch, time, dim): those of the tokens, then of their candidates one by one."""
        chance = torch.Generator(self._origins.device).manual_seed(self._seed)
        while True:
            yield torch.empty_like(self._origins).bernoulli_(1 - self._dropout, generator=chance)

    def strengths(self, vectors: Tensor) -> Tensor:
        """<d_k, g>, (batch, time, k)."""
        return torch.cat([(units * vectors.unsqueeze(2)).sum(-1) for units in self._units()], -1)

    def vectors(self, strengths: Tensor) -> Tensor:
        """sum_k alpha_k d_k, (batch, time, dim)."""
        total = torch.zeros_like(self._origins, dtype=strengths.dtype)
        every = (unit for units in self._units() for unit in units.unbind(2))
        for strength, unit in zip(strengths.unbind(-1), every, strict=True):
            total.addcmul_(strength.unsqueeze(-1), unit)
        return total


class _Toward:
    """D of unit directions that are never built: w_k - w is taken apart, and divided by a length measured before."""

    def __init__(self, candidates: Tensor, origins: Tensor, targets: Tensor, inverse: Tensor) -> None:
        self.candidates = candidates  # (batch, time, k)
        self._origins = origins  # (batch, time, dim)
        self._targets = targets  # (words, dim)
        self._inverse = inverse  # 1 / |w_k - w|, (batch, time, k), 0 where words coincide

    def strengths(self, vectors: Tensor) -> Tensor:
        """<w_k - w, g> / |w_k - w|, (batch, time, k)."""
        at_origin = (self._origins * vectors).sum(-1, keepdim=True)
        return self._along(vectors).sub_(at_origin).mul_(self._inverse)

    def vectors(self, strengths: Tensor) -> Tensor:
        """sum_k alpha_k (w_k - w) / |w_k - w|, (batch, time, dim)."""
        weights = strengths * self._inverse
        return self._sum(weights) - weights.sum(-1, keepdim=True) * self._origins

    def _along(self, vectors: Tensor) -> Tensor:
        """<w_k, g>, (batch, time, k)."""
        raise NotImplementedError

    def _sum(self, weights: Tensor) -> Tensor:
        """sum_k a_k w_k, (batch, time, dim)."""
        raise NotImplementedError


class QuickNeighbors(_Toward):
    """The directions of `Neighbors` without dropout, five times as fast on a CPU.

    Each word of a batch is read once and each pair of words measured once; the products are PyTorch's bags of
    embeddings. Differs from `Neighbors` by rounding alone.
    """

    possible = None

    def __init__(self, ids: Tensor, candidates: Tensor, words: Words) -> None:
        rows, where = torch.cat([ids.unsqueeze(-1), candidates], -1).unique(return_inverse=True)
        own, self._where = where[..., :1], where[..., 1:]
        targets = words(rows)
        super().__init__(candidates, targets[own.squeeze(-1)], targets, self._measured(own, targets))

    def _measured(self, own: Tensor, targets: Tensor) -> Tensor:
        """1 / |w_k - w|, (batch, time, k)."""
        pairs, back = (own * len(targets) + self._where).unique(return_inverse=True)
        lengths, count = targets.new_empty(len(pairs)), max(1, BLOCK // max(1, targets.shape[-1]))
        for some, into in zip(pairs.split(count), lengths.split(count), strict=True):
            into.copy_((targets[some % len(targets)] - targets[some // len(targets)]).norm(dim=-1))
        return lengths.reciprocal_().nan_to_num_(0.0, posinf=0.0)[back]

    def _along(self, vectors: Tensor) -> Tensor:
        with torch.enable_grad():  # the sum is linear in its weights: its gradient is this product
            weights = self._inverse.detach().requires_grad_()
            (along,) = torch.autograd.grad(self._sum(weights), weights, vectors)
        return along

    def _sum(self, weights: Tensor) -> Tensor:
        bags, of = self._where.flatten(0, -2), weights.to(self._targets.dtype).flatten(0, -2)
        summed = F.embedding_bag(bags, self._targets, per_sample_weights=of, mode="sum")
        return summed.view_as(self._origins)


class AllWords(_Toward):
    """Unit directions from each token to every allowed word: the equations without the k nearest."""

    def __init__(self, ids: Tensor, allowed: Tensor, words: Words) -> None:
        self._ids = ids
        targets = words(allowed)  # (k, dim)
        rows, back = ids.unique(return_inverse=True)
        inverse = distances(words(rows), targets).reciprocal_().nan_to_num_(0.0, posinf=0.0)[back]
        super().__init__(allowed.expand(*ids.shape, -1), words(ids), targets, inverse)

    @property
    def possible(self) -> Tensor:
        """All but the word itself; built on demand, since it is as large as the strengths."""
        return self.candidates != self._ids.unsqueeze(-1)

    def _along(self, vectors: Tensor) -> Tensor:
        return product(vectors, self._targets.T)

    def _sum(self, weights: Tensor) -> Tensor:
        return product(weights, self._targets)
