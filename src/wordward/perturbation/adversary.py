"""The algorithm: one perturbation for every method, found in a chosen space for a chosen objective."""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from wordward.perturbation.checks import (
    check_labels,
    check_loss,
    check_one_number,
    check_rows,
    checked_mask,
    marks_tokens,
)
from wordward.perturbation.choice import deviation, scattered, unit, within
from wordward.perturbation.directions import Directions
from wordward.perturbation.objective import MEASURES, OBJECTIVES, Loss
from wordward.perturbation.recipes import PAPER_EPSILON, Method
from wordward.perturbation.space import Space
from wordward.perturbation.tap import Forward, Pass, Tap, gradient_at
from wordward.support.errors import SettingError

Slope = Callable[[Tensor], Tensor]  # r -> the gradient at the vectors of the text perturbed by it
USUAL = 240  # words of a text for which a default epsilon is the paper's: the mean length of IMDB's reviews


class Found(NamedTuple):
    """A perturbation and how it is made up."""

    perturbation: Tensor  # r (batch, time, dim)
    strengths: Tensor  # alpha (batch, time, k), r = D alpha; r itself where every direction is free
    candidates: Tensor | None  # V^(t) (batch, time, k); None where every direction is free


@dataclass(frozen=True)
class Outcome:
    """The result of one call: the regulariser to add to the loss, and everything needed to explain it."""

    loss: Tensor  # regularizer_weight * J
    clean: Tensor  # logits of the text itself; for KL, which is measured from them, a constant
    perturbed: Tensor  # logits of the perturbed text
    ids: Tensor  # (batch, time)
    mask: Tensor  # (batch, time), True where a token is
    perturbation: Tensor
    strengths: Tensor
    candidates: Tensor | None


class Adversary:
    """A method applied to a model: call it with a closure that returns logits."""

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
        self.tap = Tap(model, embedding=embedding, site=site, same_dropout=method.settings.same_dropout)
        self.method = method
        self.directions = Directions(self.tap, method, candidates)
        self.epsilon = method.settings.epsilon or self._usual_epsilon()
        share = min(1.0, 2.5 / method.recipe.steps)  # Madry et al.: enough to reach the edge from anywhere
        step_size = method.settings.step_size if method.recipe.follows_gradient else None
        self.step_size = min(step_size or share * self.epsilon, self.epsilon)
        self._loss = None if loss is None else check_loss(loss)
        self._sound = False  # whether a mask has been seen to mark tokens, not padding

    def __repr__(self) -> str:
        """The method, where it perturbs, and how far: what was found or reckoned where nothing was given."""
        settings, toward_words = self.method.settings, self.method.recipe.space == "words"
        length = "" if settings.epsilon or not self.epsilon else f" (of a text of {USUAL} words)"
        k = f", k={settings.k}" if toward_words else ""
        return f"<{self.method.name}: {self.tap!r}, epsilon={self.epsilon:.4g}{length}{k}>"

    def _usual_epsilon(self) -> float:
        """The default: that of a text of USUAL words, which `_reach` scales to each text's length."""
        if self.method.recipe.choice == "nothing":
            return 0.0
        size = math.nan if self.tap.device.type == "meta" else deviation(self.tap.table())
        if not 0 < size < math.inf:
            raise SettingError(
                "epsilon",
                f"the default epsilon is the paper's times the standard deviation of the table, which is {size}: "
                "make the adversary after the weights are loaded, or give epsilon",
            )
        return PAPER_EPSILON[self.method.recipe.space] * size

    def __call__(
        self,
        forward: Forward,
        labels: Any = None,
        *,
        mask: Tensor | None = None,
        noise: Tensor | None = None,
        count: bool = True,
    ) -> Outcome:
        """The regulariser of one batch. `mask` (batch, time) is True at tokens; `noise` replaces random draws.

        `labels` are a tensor, or whatever your own `loss` reads. `count=False` is for parts of a batch whose
        step `tick` has counted already.
        """
        if count:
            self.tick()
        with torch.enable_grad():
            if self.method.recipe.choice == "nothing":
                return self._unmoved(forward, mask)
            if self.method.recipe.objective == "kl":
                if isinstance(labels, Tensor) and labels.dtype == torch.bool and mask is None:
                    raise SettingError(
                        "labels", f"{self.method.name} needs no labels; these look like a mask: pass `mask=`"
                    )
                return self._virtual(forward, mask, noise)
            if labels is None:
                raise SettingError(
                    "labels", f"{self.method.name} increases the label loss, so it needs `labels`"
                )
            return self._supervised(forward, labels, mask, noise)

    def _supervised(
        self, forward: Forward, labels: Any, mask: Tensor | None, noise: Tensor | None
    ) -> Outcome:
        """J_AdvT or J_iAdvT (eq:adv_loss, eq:advR_loss)."""
        clean = self.tap.run(forward, watch=self.method.recipe.starts_uphill)
        mask = self.mask(clean.ids, mask)
        check_labels(labels, clean.ids, own_loss=self._loss is not None)
        gradient = None
        if self.method.recipe.starts_uphill:
            gradient = gradient_at(self.loss(clean.logits, labels, mask), clean.shift, retain_graph=True)
        return self._perturbed(forward, clean, labels, gradient, mask, noise)

    def _virtual(self, forward: Forward, mask: Tensor | None, noise: Tensor | None) -> Outcome:
        """J_VAT or J_iVAT (eq:vat_loss, eq:ivat_loss); the clean prediction is a constant."""
        with torch.no_grad():
            clean = self.tap.run(forward)
        torch.clear_autocast_cache()  # casts made without a graph must not be reused by passes that need one
        mask = self.mask(clean.ids, mask)
        check_rows("rows of logits", clean.logits, clean.ids)
        gradient, space = None, self.space(clean.ids)
        if self.method.recipe.follows_gradient:
            gradient = self.kl_gradient(forward, clean, mask, noise, space)
        return self._perturbed(forward, clean, clean.logits, gradient, mask, noise, space)

    def _perturbed(
        self,
        forward: Forward,
        clean: Pass,
        target: Any,
        gradient: Tensor | None,
        mask: Tensor,
        noise: Tensor | None,
        space: Space | None = None,
    ) -> Outcome:
        """The loss of the perturbed text: at the last r, or averaged over all steps."""
        losses: list[Tensor] = []

        def slope(shift: Tensor) -> Tensor:
            shifted = self.tap.run(forward, shift, watch=True, like=clean)
            losses.append(self.loss(shifted.logits, target, mask))
            return gradient_at(losses[-1], shifted.shift, retain_graph=self.method.recipe.counts == "every")

        found = self.ascend(clean.ids, gradient, mask, slope, noise=noise, space=space)
        perturbed = self.tap.run(forward, found.perturbation, like=clean).logits
        losses.append(self.loss(perturbed, target, mask))
        return self._outcome(self.counted(losses), clean, perturbed, mask, found)

    def _unmoved(self, forward: Forward, mask: Tensor | None) -> Outcome:
        """The loss of the text itself (the entropy of its prediction), in one pass."""
        clean = self.tap.run(forward)
        mask = self.mask(clean.ids, mask)
        check_rows("rows of logits", clean.logits, clean.ids)
        still = torch.zeros(*clean.ids.shape, self.tap.dim, dtype=self.tap.dtype, device=clean.ids.device)
        loss = self.loss(clean.logits, clean.logits, mask)
        return self._outcome(loss, clean, clean.logits, mask, Found(still, still, None))

    def kl_gradient(
        self, forward: Forward, clean: Pass, mask: Tensor, noise: Tensor | None, space: Space | None = None
    ) -> Tensor:
        """The gradient of l_KL a small step away, since it has none at r = 0 (eq:vat_approx)."""
        settings, space = self.method.settings, space or self.space(clean.ids)
        real, tokens = mask.unsqueeze(-1), mask.sum(1).view(-1, 1, 1)
        if space.candidates is None:
            start = self.directions.noise(space, clean.ids, noise)
        else:  # toward all candidates alike, as in the authors' code
            start = space.vectors(torch.ones_like(space.candidates, dtype=self.tap.dtype))
        step = settings.xi * unit(start * real, (2,))
        gradient = torch.zeros_like(step)
        for left in reversed(range(settings.power_iterations)):
            probe = self.tap.run(forward, step, watch=True, like=clean)
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
            raise SettingError(
                "ascent_steps",
                f"{self.method.name} finds r in several steps, each with a pass of its own, but got one gradient: "
                "call the adversary or its `ascend`, or take one step (ascent_steps=1, and advt for pgd or freelb)",
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
        space: Space | None = None,
    ) -> Found:
        """r after every step, alpha <- P(alpha + eta a / |a|) with a = D^T g and P onto the ball of epsilon.

        `gradient` is taken at the text itself, for the first step; `slope` computes it at r, one pass each. `space`:
        where r may point, if already built.
        """
        space, reach = space or self.space(ids), self._reach(mask)
        found = self._first(space, ids, gradient, mask, noise, reach)
        for _ in range(self.method.recipe.moves):
            with torch.enable_grad():
                gradient = slope(found.perturbation)
            ahead = self.step_size * unit(self.directions.chosen(space, ids, gradient, mask, None), (1, 2))
            strengths = within(found.strengths + reach * ahead, self.epsilon * reach)
            found = Found(space.vectors(strengths), strengths, space.candidates)
        return found

    def counted(self, losses: Sequence[Tensor]) -> Tensor:
        """The loss that counts, from the losses at successive r."""
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
            chance = self.directions.noise(space, ids, noise)
            strengths = self.epsilon * reach * scattered(chance, mask)
            return Found(space.vectors(strengths), strengths, space.candidates)
        strengths = self.directions.chosen(space, ids, gradient, mask, noise)
        if self.method.per_token:  # the authors' code
            strengths = unit(strengths, (2,))
            perturbation = space.vectors(strengths)
            length = perturbation.flatten(1).norm(dim=1).view(-1, 1, 1)
            scale = torch.where(length > 0, self.step_size * reach / length, 0.0)
            strengths, perturbation = scale * strengths, scale * perturbation
        else:  # eq:adv_approx, eq:update_alpha_new
            strengths = self.step_size * reach * unit(strengths, (1, 2))
            perturbation = space.vectors(strengths)
        return Found(perturbation, strengths, space.candidates)

    def _reach(self, mask: Tensor) -> Tensor | float:
        """The factor on epsilon: 1; for the default epsilon sqrt(length / USUAL), (batch, 1, 1).

        Each word is then moved as far in a short text as in a long one.
        """
        if self.method.settings.epsilon:
            return 1.0
        return (mask.sum(1).view(-1, 1, 1).to(self.tap.dtype) / USUAL).sqrt()

    def space(self, ids: Tensor) -> Space:
        """Where r may point for these ids."""
        return self.directions.space(ids)

    def loss(self, logits: Tensor, target: Any, mask: Tensor) -> Tensor:
        """l or l_KL of a batch, as the method measures it: the user's function, else the paper's."""
        recipe, average = self.method.recipe, self.method.settings.average
        plain = self._loss or partial(OBJECTIVES[recipe.objective], mask=mask, average=average)
        loss = MEASURES[recipe.measure](plain, logits, target)
        check_one_number(loss)
        return loss

    def mask(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """Where tokens are: as given, else everywhere but at the embedding's padding index."""
        if mask is None:
            padding = self.tap.padding
            return torch.ones_like(ids, dtype=torch.bool) if padding is None else ids != padding
        mask = checked_mask(mask, ids)
        if not self._sound and self.tap.padding is not None:
            self._sound = marks_tokens(mask, ids, self.tap.padding)
        return mask

    def refresh(self) -> None:
        """Forget the nearest words, so that they are searched again; call it at the start of an epoch."""
        self.directions.refresh()

    def tick(self) -> None:
        """Count a step, and forget the nearest words when a new search is due."""
        self.directions.tick()

    def _outcome(self, loss: Tensor, clean: Pass, perturbed: Tensor, mask: Tensor, found: Found) -> Outcome:
        weighted = self.method.settings.regularizer_weight * loss
        return Outcome(weighted, clean.logits, perturbed, clean.ids, mask, *found)
