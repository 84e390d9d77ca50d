"""Logits and gradients for a search; a Transformer on a GPU gives them by a copy in half precision."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import cached_property, partial

import numpy as np
import torch
from torch import Tensor, nn

from wordward.explain.pulls import gradient_of, raised
from wordward.perturbation.adversary import Adversary
from wordward.perturbation.choice import unit
from wordward.perturbation.embedding import name_of
from wordward.perturbation.tap import Tap, gradient_at
from wordward.runs.pieces import LogitsModel
from wordward.runs.prediction import Prediction
from wordward.runs.reading import Reading
from wordward.runs.run import Run
from wordward.runs.scoring import logits_of
from wordward.support.device import attention, searching
from wordward.text.corpus import Batch

ROOM = 4  # a copy of a model takes no more than this part of the memory that is left


class SearchModel:
    """A model as a search reads it; what is found so is to be predicted again by the model itself.

    `exactly`: read by the model itself in any case.
    """

    def __init__(self, run: Run, *, exactly: bool = False) -> None:
        self.run, self._exactly = run, exactly
        self.coarse = not exactly and run.device.type == "cuda"

    @cached_property
    def copy(self) -> nn.Module | None:
        """The copy, if there is one; none any more once a number was too large for it."""
        return None if self._exactly else half(self.run.model, self.run.device)

    def logits(self, rows: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The logits of each row in its own order, (classes,) or (time, classes)."""
        if self.copy is not None:
            logits = logits_of(self.copy, self.run.corpus(rows), self.run.device)
            if all(np.isfinite(each).all() for each in logits):
                return logits
            self.copy = None
        return self.run.logits(rows)

    def predictions(self, readings: Sequence[Reading], close: Callable[[Prediction], bool]) -> list[Prediction]:
        """What the model predicts; on a GPU in TF32, then fully what is `close` to another verdict."""
        run = self.run
        if not self.coarse:
            return run.predict_readings(readings)
        with searching(run.device), attention(run.device):
            found = run.predict_readings(readings)
        again = [at for at, one in enumerate(found) if one.problem is None and close(one)]
        for at, exact in zip(again, run.predict_readings([readings[at] for at in again]), strict=True):
            found[at] = exact
        return found

    def gradient(
        self, adversary: Adversary, batch: Batch, noise: Tensor | None, counted: Tensor | None
    ) -> tuple[Tensor | None, Tensor]:
        """What `gradient_of` gives for the texts of a batch: the gradient that the method follows, and the logits.

        Where the copy is asked, for methods with labels, a text's gradient has another length, which decides nothing.
        """
        recipe, perturbed = adversary.method.recipe, batch._replace(mask=self.run.perturbed(batch))
        if self.copy is not None and recipe.needs_labels and recipe.follows_gradient:
            embedding, site = (
                name_of(self.run.model, part) for part in (adversary.tap.embedding, adversary.tap.site)
            )
            tap = Tap(self.copy, embedding=embedding, site=site)
            gradient, logits = steepest(adversary, tap, partial(self.copy, batch.ids, batch.mask), perturbed, counted)
            if gradient.isfinite().all() and logits.isfinite().all():
                return gradient, logits
            self.copy = None
        return gradient_of(adversary, partial(self.run.model, batch.ids, batch.mask), perturbed, noise, counted)


def half(model: nn.Module, device: torch.device) -> nn.Module | None:
    """A copy of a Transformer in half precision, which a GPU computes faster; None if there is no room for it.

    None also of other models, which may be anyone's and not bear it, and of those not in single precision.
    """
    if device.type != "cuda" or not isinstance(model, LogitsModel):
        return None
    weights = list(model.parameters())
    single, size = all(each.dtype == torch.float32 for each in weights), 2 * sum(each.numel() for each in weights)
    if not single or ROOM * size >= torch.cuda.mem_get_info(device)[0]:
        return None
    return deepcopy(model).eval().half().requires_grad_(False)


def steepest(
    adversary: Adversary, tap: Tap, forward: Callable[[], Tensor], batch: Batch, counted: Tensor | None
) -> tuple[Tensor, Tensor]:
    """As `gradient_of` for a model in half precision and a method with labels: the direction in each text.

    The loss of a text that the model is sure of hardly rises, by less than half precision can tell; so what it asks
    of the logits of each text, in double precision, is brought to length 1 before it goes back through the model.
    """
    with torch.enable_grad():
        clean = tap.run(forward, watch=True)
        logits = clean.logits.detach().double().requires_grad_()
        (asked,) = torch.autograd.grad(raised(adversary, logits, batch, counted), logits)
        asked = unit(asked, tuple(range(1, asked.dim())))
        return gradient_at((clean.logits * asked.to(clean.logits.dtype)).sum(), clean.shift), logits.detach()
