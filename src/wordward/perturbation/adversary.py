"""The algorithm: one perturbation for every method, found in a chosen space for a chosen objective."""

from collections.abc import Callable, Collection
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from wordward.perturbation.checks import (
    check_candidates,
    check_divergence,
    check_first,
    check_labels,
    check_loss,
    check_rows,
    checked_mask,
    marks_tokens,
    refuse_mask,
    refuse_positions,
)
from wordward.perturbation.directions import Noise
from wordward.perturbation.embedding import refuse_places
from wordward.perturbation.losses import Losses
from wordward.perturbation.modes import evaluating
from wordward.perturbation.objective import Loss
from wordward.perturbation.outcome import Ascent, Found, Outcome
from wordward.perturbation.recipes import Method
from wordward.perturbation.tap import Forward, Pass, Tap, gradient_at
from wordward.support.errors import SettingError


class Adversary(Losses):
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
        tap = Tap(model, embedding=embedding, site=site, same_dropout=method.settings.same_dropout)
        if embedding is not None:
            refuse_places(model, tap.embedding)
        if method.recipe.space == "words":
            check_candidates(candidates)
        super().__init__(tap, method, candidates, None if loss is None else check_loss(loss))
        self._sound = False  # whether a mask has been seen to mark tokens, not padding
        self._begun = False  # whether a batch has been looked at

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
                given = labels if mask is None else None
                return self._virtual(forward, mask, counted, noise, target, labels=given)
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
        *,
        labels: Any = None,
    ) -> Outcome:
        """J_VAT or J_iVAT (eq:vat_loss, eq:ivat_loss); the clean prediction is a constant.

        `labels` are not needed, but might be a mask.
        """
        with torch.no_grad(), evaluating(self.tap.model) if target else nullcontext():
            clean = self.tap.run(forward)
            if target:
                clean = clean._replace(logits=target(clean.logits))
        torch.clear_autocast_cache()  # casts made without a graph must not be reused by passes that need one
        refuse_mask(labels, clean.logits, clean.ids, method=self.method.name)
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
            if self._loss is not None and not self.method.recipe.needs_labels:
                check_divergence(self._loss, clean.logits)
            self._begun = True
        return mask, counted

    def _outcome(self, clean: Pass, mask: Tensor, ascent: Ascent) -> Outcome:
        loss = self.method.settings.regularizer_weight * torch.stack(ascent.losses).mean()
        return Outcome(loss, clean.logits, ascent.last.logits, clean.ids, mask, *ascent.found)
