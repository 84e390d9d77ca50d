"""The algorithm: one perturbation for every method, found in a chosen space for a chosen objective."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from wordward.choice import CHOICES, deviation, scattered, unit, within
from wordward.distributed import Part
from wordward.objective import MEASURES, OBJECTIVES, Loss
from wordward.recipes import PAPER_EPSILON, Method
from wordward.space import AllWords, Free, NearestWords, Neighbors, Space, allowed_words, check_enough
from wordward.tap import Forward, Pass, Tap

Slope = Callable[[Tensor], Tensor]  # r -> the gradient at the vectors of the text perturbed by it
FP16_SCALE = 4096.0  # keeps small gradients from vanishing in half precision; normalising removes it again
REFRESH = {"batch": 1, "auto": 100}  # steps between two searches for nearest words
USUAL = 240  # words of a text that the paper's epsilon is for: so many has a review of IMDB in the mean
AT_ONCE = 200_000  # words whose neighbours a GPU finds all together in less than a second


class Found(NamedTuple):
    """A perturbation and how it is made up."""

    perturbation: Tensor  # r (batch, time, dim)
    strengths: Tensor  # alpha (batch, time, k), or r itself where every direction is free
    candidates: Tensor | None  # V^(t) (batch, time, k); None where every direction is free


@dataclass(frozen=True)
class Outcome:
    """What one call gives: the regulariser to add to the loss, and all it takes to explain it."""

    loss: Tensor  # regularizer_weight * J
    clean: Tensor  # logits of the text itself; a constant where they are what KL is taken from
    perturbed: Tensor  # logits of the perturbed text
    ids: Tensor  # (batch, time)
    mask: Tensor  # (batch, time), True where a token is
    perturbation: Tensor
    strengths: Tensor
    candidates: Tensor | None


class Adversary:
    """A method at work on a model: call it with a closure that gives logits."""

    def __init__(
        self,
        model: nn.Module,
        method: Method,
        *,
        embedding: nn.Module | str | None = None,
        site: nn.Module | str | None = None,
        candidates: Tensor | Collection[int] | None = None,
        loss: Loss | None = None,
    ) -> None:
        self.tap = Tap(model, embedding=embedding, site=site)
        self.method = method
        self.epsilon = method.settings.epsilon or PAPER_EPSILON[method.recipe.space] * deviation(
            self.tap.table()
        )  # where none is given, that of a text of USUAL words
        share = min(1.0, 2.5 / method.recipe.steps)  # as Madry et al.: from anywhere in the ball to its edge
        asked = method.settings.step_size if method.recipe.follows_gradient else None
        self.step_size = min(asked or share * self.epsilon, self.epsilon)
        self._loss = loss
        self._steps = 0
        policy = method.settings.refresh
        self._every = REFRESH.get(policy) if isinstance(policy, str) else policy  # steps; None: when told
        padding = getattr(self.tap.embedding, "padding_idx", None)
        self._allowed = allowed_words(self.tap.size, candidates, padding=padding)
        self._word = torch.zeros(self.tap.size, dtype=torch.bool).index_fill(0, self._allowed, True)
        if method.recipe.space == "words":
            check_enough(self._allowed, method.settings.k)
        self._nearest: NearestWords | None = None  # made at the first use, on the device that ids are on
        self.part: Part | None = None  # of a batch that several processes share

    def __call__(
        self,
        forward: Forward,
        labels: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        noise: Tensor | None = None,
    ) -> Outcome:
        """The regulariser of one batch. `mask` (batch, time) is True where a token is, `noise` fixes chance."""
        self.tick()
        with torch.enable_grad():
            if self.method.recipe.choice == "nothing":
                return self._unmoved(forward, mask)
            if self.method.recipe.objective == "kl":
                return self._virtual(forward, mask, noise)
            if labels is None:
                raise ValueError(f"{self.method.name} raises the label loss, so it needs `labels`")
            return self._supervised(forward, labels, mask, noise)

    def _supervised(
        self, forward: Forward, labels: Tensor, mask: Tensor | None, noise: Tensor | None
    ) -> Outcome:
        """J_AdvT or J_iAdvT (eq:adv_loss, eq:advR_loss)."""
        guided = self.method.recipe.follows_gradient and self.method.recipe.start == "text"
        clean = self.tap.run(forward, watch=guided)
        mask = self.mask(clean.ids, mask)
        _check_rows("labels", labels, clean.ids)
        gradient = None
        if guided:
            gradient = gradient_at(self.loss(clean.logits, labels, mask), clean.shift, retain_graph=True)
        return self._perturbed(forward, clean, labels, gradient, mask, noise)

    def _virtual(self, forward: Forward, mask: Tensor | None, noise: Tensor | None) -> Outcome:
        """J_VAT or J_iVAT (eq:vat_loss, eq:ivat_loss); the clean prediction is a constant."""
        with torch.no_grad():
            clean = self.tap.run(forward)
        torch.clear_autocast_cache()  # casts made without a graph must not serve the passes that need one
        mask = self.mask(clean.ids, mask)
        _check_rows("rows of logits", clean.logits, clean.ids)
        gradient = None
        if self.method.recipe.follows_gradient:
            gradient = self.kl_gradient(forward, clean, mask, noise)
        return self._perturbed(forward, clean, clean.logits, gradient, mask, noise)

    def _perturbed(
        self,
        forward: Forward,
        clean: Pass,
        target: Tensor,
        gradient: Tensor | None,
        mask: Tensor,
        noise: Tensor | None,
    ) -> Outcome:
        """The loss of the perturbed text: at the last r, or the mean over every step's."""
        losses: list[Tensor] = []

        def slope(shift: Tensor) -> Tensor:
            there = self.tap.run(forward, shift, watch=True)
            losses.append(self.loss(there.logits, target, mask))
            return gradient_at(losses[-1], there.shift, retain_graph=self.method.recipe.counts == "every")

        found = self.ascend(clean.ids, gradient, mask, slope, noise=noise)
        perturbed = self.tap.run(forward, found.perturbation).logits
        losses.append(self.loss(perturbed, target, mask))
        return self._outcome(self.counted(losses), clean, perturbed, mask, found)

    def _unmoved(self, forward: Forward, mask: Tensor | None) -> Outcome:
        """The loss of the text itself (the entropy of its prediction), in one pass."""
        clean = self.tap.run(forward)
        mask = self.mask(clean.ids, mask)
        _check_rows("rows of logits", clean.logits, clean.ids)
        still = torch.zeros(*clean.ids.shape, self.tap.dim, dtype=self.tap.dtype, device=clean.ids.device)
        loss = self.loss(clean.logits, clean.logits, mask)
        return self._outcome(loss, clean, clean.logits, mask, Found(still, still, None))

    def kl_gradient(self, forward: Forward, clean: Pass, mask: Tensor, noise: Tensor | None) -> Tensor:
        """The gradient of l_KL a small step away, since it has none at r = 0 (eq:vat_approx)."""
        settings, space = self.method.settings, self.space(clean.ids)
        real, tokens = mask.unsqueeze(-1), mask.sum(1).view(-1, 1, 1)
        if space.candidates is None:
            start = self._noise(space, clean.ids, noise)
        else:  # toward all candidates alike, as in the authors' code
            start = space.vectors(torch.ones_like(space.candidates, dtype=self.tap.dtype))
        step = settings.xi * unit(start * real, (2,))
        gradient = torch.zeros_like(step)
        for left in reversed(range(settings.power_iterations)):
            probe = self.tap.run(forward, step, watch=True)
            gradient = gradient_at(self.loss(probe.logits, clean.logits, mask), probe.shift).to(
                self.tap.dtype
            )
            if left:
                ascent = space.vectors(space.strengths(gradient * real))
                step = settings.xi * tokens.sqrt() * unit(ascent, (1, 2))  # as long as the first step
        return gradient

    @torch.no_grad()
    def perturb(
        self, ids: Tensor, gradient: Tensor | None, mask: Tensor, *, noise: Tensor | None = None
    ) -> Found:
        """r from the gradient at the vectors (batch, time, dim); the model itself is not called."""
        if self.method.recipe.moves:
            raise ValueError(
                f"{self.method.name} finds r in several steps, each with a pass of its own, but one gradient came: "
                "call the adversary or its `ascend`, or take one step (ascent_steps=1, and advt for pgd or freelb)"
            )
        return self._first(self.space(ids), ids, gradient, mask, noise, self._reach(mask))

    @torch.no_grad()
    def ascend(
        self,
        ids: Tensor,
        gradient: Tensor | None,
        mask: Tensor,
        slope: Slope,
        *,
        noise: Tensor | None = None,
    ) -> Found:
        """r after every step, alpha <- P(alpha + eta a / |a|) with a = D^T g and P onto the ball of epsilon.

        `gradient` is that at the text itself, for the first step; `slope` gives those at r, one pass each.
        """
        space, reach = self.space(ids), self._reach(mask)
        found = self._first(space, ids, gradient, mask, noise, reach)
        for _ in range(self.method.recipe.moves):
            with torch.enable_grad():
                gradient = slope(found.perturbation)
            ahead = self.step_size * unit(self._chosen(space, ids, gradient, mask, None), (1, 2))
            strengths = within(found.strengths + reach * ahead, self.epsilon * reach)
            found = Found(space.vectors(strengths), strengths, space.candidates)
        return found

    def counted(self, losses: Sequence[Tensor]) -> Tensor:
        """The loss that counts, of those at one r after the other."""
        return torch.stack(list(losses[-self.method.recipe.counted :])).mean()

    def _first(
        self,
        space: Space,
        ids: Tensor,
        gradient: Tensor | None,
        mask: Tensor,
        noise: Tensor | None,
        reach: Tensor | float,
    ) -> Found:
        """The first r: one step from the text, or drawn."""
        if self.method.recipe.start == "random":
            strengths = self.epsilon * reach * scattered(self._noise(space, ids, noise), mask)
            return Found(space.vectors(strengths), strengths, space.candidates)
        strengths = self._chosen(space, ids, gradient, mask, noise)
        if self.method.per_token:  # the authors' code
            strengths = unit(strengths, (2,))
            perturbation = self.step_size * reach * unit(space.vectors(strengths), (1, 2))
        else:  # eq:adv_approx, eq:update_alpha_new
            strengths = self.step_size * reach * unit(strengths, (1, 2))
            perturbation = space.vectors(strengths)
        return Found(perturbation, strengths, space.candidates)

    def _reach(self, mask: Tensor) -> Tensor | float:
        """What epsilon is taken times: 1; where none is given, the root of a text's length in USUAL, (batch, 1, 1).

        Each word is then moved as far in a short text as in a long one.
        """
        if self.method.settings.epsilon:
            return 1.0
        return (mask.sum(1).view(-1, 1, 1).to(self.tap.dtype) / USUAL).sqrt()

    def _chosen(
        self, space: Space, ids: Tensor, gradient: Tensor | None, mask: Tensor, noise: Tensor | None
    ) -> Tensor:
        """The strengths to be taken, of any length: D^T g or chance, or a part of it."""
        real = mask.unsqueeze(-1)

        def possible() -> Tensor:
            return real if space.possible is None else real & space.possible

        def words() -> Tensor:
            self._word = self._word.to(ids.device)  # copied once: a copy waits for the device
            return real & self._word[ids].unsqueeze(-1)

        if self.method.recipe.follows_gradient:
            assert gradient is not None, f"{self.method.name} follows the gradient, but was given none"
            if space.candidates is not None and gradient.shape[-1] != self.tap.dim:
                raise ValueError(
                    f"directions toward words are {self.tap.dim} long like the table, but the site's vectors are "
                    f"{gradient.shape[-1]}: pass the embedding itself or its dropout as `site=`"
                )
            values = space.strengths(gradient.to(self.tap.dtype) * real)
        else:
            values = self._noise(space, ids, noise)
        return CHOICES[self.method.recipe.choice](values, possible, words) * real

    def space(self, ids: Tensor) -> Space:
        """Where r may point for these ids."""
        if self.method.recipe.space == "free":
            return Free()
        self._allowed = self._allowed.to(ids.device)  # copied once: a copy waits for the device
        allowed, settings = self._allowed, self.method.settings
        if settings.k is None:
            return AllWords(ids, allowed, self.tap.words)
        if self._nearest is None or self._nearest.allowed.device != ids.device:
            at_once = ids.is_cuda and self._every != 1 and self.tap.size <= AT_ONCE
            self._nearest = NearestWords(
                self.tap.size, settings.k, allowed=allowed, metric=settings.metric, at_once=at_once
            )
        if self.part is not None:  # a word is to be searched at the same step in all processes
            self._nearest.of(self.part.ids, self.tap.table)
        return Neighbors(ids, self._nearest.of(ids, self.tap.table), self.tap.words)

    def loss(self, logits: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        """l or l_KL of a batch, as the method measures it: the user's function, else the paper's."""
        recipe, average = self.method.recipe, self.method.settings.average
        plain = self._loss or partial(OBJECTIVES[recipe.objective], mask=mask, average=average)
        loss = MEASURES[recipe.measure](plain, logits, target)
        if loss.dim() != 0:
            raise ValueError(
                f"the loss must be one number for the batch, but has shape {tuple(loss.shape)}: "
                "take the mean over texts"
            )
        return loss

    def mask(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """Where tokens are: as told, else everywhere but at the embedding's padding index."""
        if mask is None:
            padding = getattr(self.tap.embedding, "padding_idx", None)
            return torch.ones_like(ids, dtype=torch.bool) if padding is None else ids != padding
        if mask.shape != ids.shape:
            raise ValueError(f"mask must be {tuple(ids.shape)} like the ids, but is {tuple(mask.shape)}")
        return mask.bool()

    def refresh(self) -> None:
        """Search nearest words anew from now on; call it at the start of an epoch."""
        self._steps = 0
        self._nearest = None

    def tick(self) -> None:
        """Count a step; search nearest words anew when it is time."""
        if self._every is not None and self._steps % self._every == 0:
            self.refresh()
        self._steps += 1

    def _noise(self, space: Space, ids: Tensor, noise: Tensor | None) -> Tensor:
        """Gaussian noise over a space's strengths, or what was given for it."""
        shape = (*ids.shape, self.tap.dim) if space.candidates is None else tuple(space.candidates.shape)
        if noise is None and self.part is not None:  # of the whole batch, so that processes differ row by row
            whole = (len(self.part.ids), *shape[1:])
            drawn = torch.randn(whole, dtype=self.tap.dtype, device=ids.device, generator=self.part.noise)
            return drawn[self.part.rows]
        if noise is None:
            return torch.randn(shape, dtype=self.tap.dtype, device=ids.device)
        if tuple(noise.shape) != shape:
            raise ValueError(f"noise must be {shape}, but is {tuple(noise.shape)}")
        return noise.to(self.tap.dtype)

    def _outcome(self, loss: Tensor, clean: Pass, perturbed: Tensor, mask: Tensor, found: Found) -> Outcome:
        weighted = self.method.settings.regularizer_weight * loss
        return Outcome(weighted, clean.logits, perturbed, clean.ids, mask, *found)


def gradient_at(loss: Tensor, shift: Tensor | None, *, retain_graph: bool = False) -> Tensor:
    """The gradient at the vectors, without touching any `.grad` of the model."""
    assert shift is not None, "the pass was not watched"
    device = loss.device.type
    half = torch.is_autocast_enabled(device) and torch.get_autocast_dtype(device) == torch.float16
    scale = FP16_SCALE if half or shift.dtype == torch.float16 else 1.0
    return torch.autograd.grad(loss * scale, shift, retain_graph=retain_graph)[0]


def _check_rows(what: str, values: Tensor, ids: Tensor) -> None:
    """A text is a row: lengths over the sentence would be over something else."""
    if len(values) != len(ids):
        raise ValueError(
            f"{len(values)} {what} came for {len(ids)} texts: ids are read as (batch, time), "
            f"here {tuple(ids.shape)}"
        )
