"""The losses of a method: that of a pass, and those at the r that is found by them."""

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import torch
from torch import Tensor

from wordward.perturbation.ascent import Ascender
from wordward.perturbation.checks import check_one_number
from wordward.perturbation.choice import across, unit
from wordward.perturbation.directions import Noise
from wordward.perturbation.objective import MEASURES, OBJECTIVES, Loss, yes_or_no
from wordward.perturbation.outcome import Ascent
from wordward.perturbation.recipes import Method
from wordward.perturbation.space import Space
from wordward.perturbation.tap import Forward, Pass, Tap, gradient_at


class Losses(Ascender):
    """A method on a model, with a `loss` of the user's own in the place of the paper's where one is given."""

    def __init__(
        self, tap: Tap, method: Method, candidates: Tensor | Collection[int] | None, loss: Loss | None
    ) -> None:
        super().__init__(tap, method, candidates)
        self._loss = loss

    def perturbed_losses(
        self,
        forward: Forward,
        clean: Pass,
        gradient: Tensor | None,
        mask: Tensor,
        loss: Callable[[Pass], Tensor],
        *,
        backward: Callable[[Tensor], Tensor] | None = None,
        noise: Noise = None,
        space: Space | None = None,
    ) -> Ascent:
        """Find r, and the losses that count: at the last r, or at every r on the way there.

        `gradient` is the loss's at the clean pass, where the first step follows it; `loss` gives that of a pass.
        `backward`, if given, backpropagates a loss that counts as soon as it is known and returns what is kept of it:
        its gradient at r then serves the next step, so that no pass is followed back twice.
        """
        every, losses = self.method.recipe.counts == "every", []

        def slope(shift: Tensor) -> Tensor:
            shifted = self.tap.run(forward, shift, watch=True, like=clean)
            value = loss(shifted)
            if not every or backward is None:
                losses.extend([value] if every else [])
                return gradient_at(value, shifted.shift, retain_graph=every)
            losses.append(backward(value))
            assert shifted.shift is not None
            assert shifted.shift.grad is not None
            return shifted.shift.grad

        found = self.ascend(clean.ids, gradient, mask, slope, noise=noise, space=space)
        last = self.tap.run(forward, found.perturbation, like=clean)
        losses.append(loss(last) if backward is None else backward(loss(last)))
        return Ascent(found, last, losses)

    def kl_gradient(
        self,
        forward: Forward,
        clean: Pass,
        mask: Tensor,
        noise: Noise,
        space: Space | None = None,
        *,
        counted: Tensor | None = None,
    ) -> Tensor:
        """The gradient of l_KL a small step away, since it has none at r = 0 (eq:vat_approx).

        `counted` (batch, time): where a token's divergence counts, by default as `mask`.
        """
        settings, space = self.method.settings, space or self.space(clean.ids)
        counted = mask if counted is None else counted
        real, tokens = mask.unsqueeze(-1), mask.sum(1).view(-1, 1, 1)
        start = self.directions.first(space, clean.ids, noise)
        step = settings.xi * unit(start * real, (2,))
        gradient = torch.zeros_like(step)
        for left in reversed(range(settings.power_iterations)):
            probe = self.tap.run(forward, step, watch=True, like=clean)
            loss = self.loss(probe.logits, clean.logits, counted)
            gradient = gradient_at(loss, probe.shift).to(self.tap.dtype)
            if left:
                ascent = space.vectors(space.strengths(gradient * real))
                step = settings.xi * tokens.sqrt() * unit(ascent, (1, 2))  # as long as the first step
        return across(gradient, step) if self.method.through_start else gradient

    def loss(self, logits: Tensor, target: Any, counted: Tensor) -> Tensor:
        """l or l_KL of a batch, as the method measures it: the user's function, else the paper's.

        `counted` (batch, time): where a token's loss counts; a user's function is not given it. l_KL of a model with
        several labels at once is the sum (or, by tokens, the mean) of its labels' own.
        """
        recipe, average = self.method.recipe, self.method.settings.average
        if isinstance(recipe.objective, str):
            mask = counted
            if self._loss is None and recipe.objective == "kl" and self.tap.several_labels:
                logits, target, mask = yes_or_no(logits), yes_or_no(target), None
            plain = self._loss or partial(OBJECTIVES[recipe.objective], mask=mask, average=average)
        else:
            own = recipe.objective
            plain = self._loss or (lambda logits, target: own(logits, target, counted))
        loss = MEASURES[recipe.measure](plain, logits, target)
        check_one_number(loss)
        return loss
