"""The algorithm: one perturbation for every method, found in a chosen space for a chosen objective."""

import math
from collections.abc import Callable, Collection
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from wordward.perturbation.checks import (
    check_first,
    check_labels,
    check_loss,
    check_one_number,
    check_rows,
    checked_mask,
    marks_tokens,
    refuse_positions,
)
from wordward.perturbation.choice import across, nearness, sampled, scattered, unit, within
from wordward.perturbation.directions import Directions, Noise
from wordward.perturbation.embedding import refuse_places
from wordward.perturbation.objective import MEASURES, OBJECTIVES, Loss, yes_or_no
from wordward.perturbation.recipes import USUAL_EPSILON, Method
from wordward.perturbation.space import Space
from wordward.perturbation.tap import Forward, Pass, Tap, evaluating, gradient_at
from wordward.support.errors import SettingError

Slope = Callable[[Tensor], Tensor]  # r -> the gradient at the vectors of the text perturbed by it
USUAL = 240  # words of a text for which a default epsilon is the paper's: the mean length of IMDB's reviews


class Found(NamedTuple):
    """A perturbation and how it is made up."""

    perturbation: Tensor  # r (batch, time, dim)
    strengths: Tensor  # alpha (batch, time, k), r = D alpha; r itself where every direction is free
    candidates: Tensor | None  # V^(t) (batch, time, k); None where every direction is free


class Ascent(NamedTuple):
    """Where an ascent ended, and the losses on the way."""

    found: Found
    last: Pass  # at the last r
    losses: list[Tensor]  # those that count: at the last r, or at every r


@dataclass(frozen=True)
class Outcome:
    """What a call of an adversary returns: the loss to add to yours, and everything needed to explain it.

    Args:
        loss: The regulariser, `regularizer_weight` included: one number.
        clean: Logits of the text itself; a constant for VAT and iVAT, which measure KL from them.
        perturbed: Logits of the perturbed text.
        ids: What the embedding read, (batch, time).
        mask: Where tokens are, (batch, time).
        perturbation: r, (batch, time, dim).
        strengths: alpha, (batch, time, k); r itself where every direction is free.
        candidates: Ids of the words that the strengths are toward, (batch, time, k); None where directions are free.

    Examples:
        >>> import torch, wordward
        >>> ids, labels = torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([0, 1])
        >>> model = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Flatten(), torch.nn.Linear(12, 2))
        >>> out = wordward.iadvt(model, k=3)(lambda: model(ids), labels)
        >>> strongest = out.strengths.argmax(-1, keepdim=True)
        >>> out.candidates.gather(-1, strongest).squeeze(-1).shape  # the word that pulls each word hardest
        torch.Size([2, 3])
    """

    loss: Tensor
    clean: Tensor
    perturbed: Tensor
    ids: Tensor
    mask: Tensor
    perturbation: Tensor
    strengths: Tensor
    candidates: Tensor | None


class Adversary:
    """A method applied to a model; `wordward.iadvt`, `wordward.adversary` and the others make one.

    Args:
        model: Any PyTorch model with an embedding.
        method: A recipe with its settings (`wordward.perturbation.recipes.parse_methods`).
        embedding: The module that reads token ids, or its name; found where not given.
        site: The module after which r is added, or its name; the embedding by default.
        candidates: Ids of the words that may be pointed to; all but padding by default.
        loss: Your own function of logits and labels (clean logits, for methods without labels) that returns a number.

    Raises:
        SettingError: If the model has no embedding that can be found, or a setting does not fit it.

    Examples:
        >>> import torch, wordward
        >>> ids, labels = torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([0, 1])
        >>> model = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Flatten(), torch.nn.Linear(12, 2))
        >>> adv = wordward.iadvt(model, k=3, epsilon=2.0)
        >>> adv
        <iadvt: embedding='0' (9 x 4), epsilon=2, k=3>
        >>> out = adv(lambda: model(ids), labels)
    """

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
        if embedding is not None:
            refuse_places(model, self.tap.embedding)
        self.method = method
        self.directions = Directions(self.tap, method, candidates)
        self.epsilon = method.settings.epsilon or self._usual_epsilon()
        share = min(1.0, 2.5 / method.recipe.steps)  # Madry et al.: enough to reach the edge from anywhere
        step_size = method.settings.step_size if method.recipe.follows_gradient else None
        self.step_size = min(step_size or share * self.epsilon, self.epsilon)
        self._loss = None if loss is None else check_loss(loss)
        self._sound = False  # whether a mask has been seen to mark tokens, not padding
        self._begun = False  # whether a batch has been looked at

    def __repr__(self) -> str:
        """The method, where it perturbs, and how far: what was found or reckoned where nothing was given."""
        settings, toward_words = self.method.settings, self.method.recipe.space == "words"
        length = "" if settings.epsilon or not self.epsilon else f" (of a text of {USUAL} words)"
        k = f", k={settings.k}" if toward_words else ""
        return f"<{self.method.name}: {self.tap!r}, epsilon={self.epsilon:.4g}{length}{k}>"

    def _usual_epsilon(self) -> float:
        """The default: that of a text of USUAL words, which `_reach` scales to each text's length."""
        space = self.method.recipe.space
        if self.method.recipe.choice == "nothing":
            return 0.0
        if not isinstance(space, str):
            raise SettingError("epsilon", "a space of your own has no default epsilon: give epsilon, the length of r")
        size = math.nan
        if self.tap.device.type != "meta":
            size = nearness(self.tap.words(sampled(self.tap.size).to(self.tap.device)))
        if not 0 < size < math.inf:
            raise SettingError(
                "epsilon",
                f"the default epsilon is a part of the distance between near words of the table, which is {size}: "
                "make the adversary after the weights are loaded, or give epsilon",
            )
        return USUAL_EPSILON[space] * size

    def __call__(
        self,
        forward: Forward,
        labels: Any = None,
        *,
        mask: Tensor | None = None,
        counted: Tensor | None = None,
        noise: Noise = None,
        count: bool = True,
        target: Callable[[Tensor], Tensor] | None = None,
    ) -> Outcome:
        """Find the perturbation of one batch, and its loss.

        Args:
            forward: A closure that runs the model on the batch and returns logits, or what holds them as `logits`.
            labels: A tensor, or whatever your own `loss` reads; not needed for the VAT family.
            mask: Where r may be, (batch, time); by default everywhere but at padding.
            counted: Where a token's loss counts, (batch, time); by default as `mask`.
            noise: What random draws are replaced by: a tensor, or a function of its shape and type.
            count: Whether this is a step of its own; False for parts of a batch whose step `tick` has counted.
            target: For the VAT family, makes from the clean logits those to compare with; the clean pass is then
                one without dropout.

        Returns:
            The loss to add to yours, the logits of the text itself, and the perturbation.

        Raises:
            SettingError: If labels, mask or logits do not fit the texts.
        """
        if counted is not None and self._loss is not None:
            raise SettingError(
                "counted", "your own loss is not given `counted`: let it leave out what does not count"
            )
        if count:
            self.tick()
        with torch.enable_grad():
            if self.method.recipe.choice == "nothing":
                return self._unmoved(forward, mask, counted)
            if not self.method.recipe.needs_labels:
                if isinstance(labels, Tensor) and labels.dtype == torch.bool and mask is None:
                    raise SettingError(
                        "labels", f"{self.method.name} needs no labels; these look like a mask: pass `mask=`"
                    )
                return self._virtual(forward, mask, counted, noise, target)
            if labels is None:
                raise SettingError("labels", f"{self.method.name} increases the label loss, so it needs `labels`")
            return self._supervised(forward, labels, mask, counted, noise)

    def _supervised(
        self, forward: Forward, labels: Any, mask: Tensor | None, counted: Tensor | None, noise: Noise
    ) -> Outcome:
        """J_AdvT or J_iAdvT (eq:adv_loss, eq:advR_loss)."""
        clean = self.tap.run(forward, watch=self.method.recipe.starts_uphill)
        mask, counted = self._masks(clean, mask, counted, labels)
        check_labels(labels, clean.ids, own_loss=self._loss is not None)
        gradient = None
        if self.method.recipe.starts_uphill:
            loss = self.loss(clean.logits, labels, counted)
            gradient = gradient_at(loss, clean.shift, retain_graph=True)
        ascent = self.perturbed_losses(
            forward, clean, gradient, mask, lambda at: self.loss(at.logits, labels, counted), noise=noise
        )
        return self._outcome(clean, mask, ascent)

    def _virtual(
        self,
        forward: Forward,
        mask: Tensor | None,
        counted: Tensor | None,
        noise: Noise,
        target: Callable[[Tensor], Tensor] | None,
    ) -> Outcome:
        """J_VAT or J_iVAT (eq:vat_loss, eq:ivat_loss); the clean prediction is a constant."""
        with torch.no_grad(), evaluating(self.tap.model) if target else nullcontext():
            clean = self.tap.run(forward)
            if target:
                clean = clean._replace(logits=target(clean.logits))
        torch.clear_autocast_cache()  # casts made without a graph must not be reused by passes that need one
        mask, counted = self._masks(clean, mask, counted)
        check_rows("rows of logits", clean.logits, clean.ids)
        gradient, space = None, self.space(clean.ids)
        if self.method.recipe.follows_gradient:
            gradient = self.kl_gradient(forward, clean, mask, noise, space, counted=counted)
        ascent = self.perturbed_losses(
            forward,
            clean,
            gradient,
            mask,
            lambda at: self.loss(at.logits, clean.logits, counted),
            noise=noise,
            space=space,
        )
        return self._outcome(clean, mask, ascent)

    def _unmoved(self, forward: Forward, mask: Tensor | None, counted: Tensor | None) -> Outcome:
        """The loss of the text itself (the entropy of its prediction), in one pass."""
        clean = self.tap.run(forward)
        mask, counted = self._masks(clean, mask, counted)
        check_rows("rows of logits", clean.logits, clean.ids)
        still = torch.zeros(*clean.ids.shape, self.tap.dim, dtype=self.tap.dtype, device=clean.ids.device)
        loss = self.loss(clean.logits, clean.logits, counted)
        return self._outcome(clean, mask, Ascent(Found(still, still, None), clean, [loss]))

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
        if space.candidates is None:
            start = self.directions.noise(space, clean.ids, noise)
        else:  # toward all candidates alike, as in the authors' code
            start = space.vectors(torch.ones_like(space.candidates, dtype=self.tap.dtype))
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

    @torch.no_grad()
    def perturb(self, ids: Tensor, gradient: Tensor | None, mask: Tensor, *, noise: Noise = None) -> Found:
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
        noise: Noise = None,
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

    def _first(
        self,
        space: Space,
        ids: Tensor,
        gradient: Tensor | None,
        mask: Tensor,
        noise: Noise,
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

    def mask(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """Where tokens are: as given, else everywhere but at the embedding's padding index."""
        if mask is None:
            padding = self.tap.padding
            return torch.ones_like(ids, dtype=torch.bool) if padding is None else ids != padding
        mask = checked_mask(mask, ids)
        if not self._sound and self.tap.padding is not None:
            self._sound = marks_tokens(mask, ids, self.tap.padding)
        return mask

    def _masks(
        self, clean: Pass, mask: Tensor | None, counted: Tensor | None, labels: Any = None
    ) -> tuple[Tensor, Tensor]:
        """Where r may be, and where a token's loss counts; looks at the first batch for what cannot be meant."""
        if not self._begun:
            refuse_positions(clean.ids, len(clean.logits) if clean.logits.dim() else 0)
        mask = self.mask(clean.ids, mask)
        counted = mask if counted is None else checked_mask(counted, clean.ids)
        if not self._begun:
            own = self._loss is not None or not isinstance(self.method.recipe.objective, str)
            check_first(clean.logits, labels, counted, own_loss=own)
            self._begun = True
        return mask, counted

    def search(self, ids: Tensor) -> None:
        """Search the nearest words of these ids now, where the method needs them."""
        self.directions.search(ids)

    def refresh(self) -> None:
        """Forget the nearest words, so that they are searched again; call it at the start of an epoch."""
        self.directions.refresh()

    def tick(self) -> None:
        """Count a step, and forget the nearest words when a new search is due."""
        self.directions.tick()

    def _outcome(self, clean: Pass, mask: Tensor, ascent: Ascent) -> Outcome:
        loss = self.method.settings.regularizer_weight * torch.stack(ascent.losses).mean()
        return Outcome(loss, clean.logits, ascent.last.logits, clean.ids, mask, *ascent.found)
