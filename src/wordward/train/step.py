"""One training step: clean and perturbed losses backpropagated, one clipping, one update."""

import sys
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from wordward.config.settings import TrainingSettings
from wordward.perturbation.adversary import Adversary
from wordward.perturbation.directions import Noise
from wordward.perturbation.objective import Average, label_loss
from wordward.perturbation.tap import Pass
from wordward.support.console import say
from wordward.support.device import release
from wordward.support.distributed import ALONE, Team
from wordward.text.corpus import Batch
from wordward.train.gradual import LearntShare
from wordward.train.pseudo_labels import PseudoLabels
from wordward.train.updater import Updater

WIDE = 1 << 16  # ids, padding included, from which a batch with one very long text is not padded to it
FILLED = 0.25  # share of a batch that is no padding, below which it is
RISING = 0.05  # share of all steps in which a linear schedule's learning rate rises


class Stepper:
    """Updates a model, batch after batch.

    AdvT and iAdvT cost two forwards and two backwards: the clean pass's one backward gives the weights'
    gradients and the gradient at the vectors. A batch that does not fit in GPU memory is processed in parts whose
    gradients add up to the same.

    `steps` is how many there will be, for a learning rate that falls to zero with the last. `chance` is the label
    loss of a model that has learnt nothing: the methods' losses then count in proportion to what has been learnt.
    With `pseudo_labels`, the KL methods compare with what they make of the predictions.
    """

    def __init__(
        self,
        model: nn.Module,
        adversaries: Sequence[Adversary],
        settings: TrainingSettings,
        device: torch.device,
        *,
        average: Average = "sentences",
        team: Team = ALONE,
        quiet: bool = False,
        steps: int | None = None,
        chance: float | None = None,
        pseudo_labels: PseudoLabels | None = None,
    ) -> None:
        self.model, self.settings, self.device, self.quiet = model, settings, device, quiet
        self.average: Average = average
        self.steps, self.pseudo_labels, self.learnt = steps, pseudo_labels, LearntShare(chance, device)
        self.fits = sys.maxsize  # ids, padding included, that are passed through the model at once
        self.supervised = [a for a in adversaries if a.method.recipe.needs_labels]
        self.virtual = [a for a in adversaries if not a.method.recipe.needs_labels]
        self.updater = Updater(
            model,
            device,
            clip=settings.clip,
            precision=settings.precision,
            averaging=settings.averaging,
            team=team,
        )

    def __call__(self, labelled: Batch, unlabelled: Batch | None = None) -> Tensor:
        """One update; returns the total loss, still on the device."""
        for adversary in (*self.supervised, *self.virtual):
            adversary.tick()
        while (losses := self._backpropagated(labelled, unlabelled)) is None:
            release()  # only now: the exception kept references to what filled the memory
        loss, of_labels, *predicted = self.updater.finish(losses).unbind()
        if self.pseudo_labels is not None and predicted:
            self.pseudo_labels.update(torch.stack(predicted))
        self.learnt.add(of_labels)
        return loss

    def _learning_rate(self) -> float:
        done, settings = self.updater.steps, self.settings
        if settings.schedule == "linear" and self.steps:
            rising = (done + 1) / (RISING * self.steps)
            return settings.learning_rate * min(1.0, rising) * max(0.0, 1 - done / self.steps)
        return settings.learning_rate * settings.decay**done

    def _backpropagated(self, labelled: Batch, unlabelled: Batch | None) -> Tensor | None:
        """Backpropagate all losses; returns their sum, the label loss, and with pseudo-labels the mean prediction.

        None if the batches did not fit in memory, to be tried again in smaller parts.
        """
        self.updater.begin(self._learning_rate())
        try:
            total = of_labels = torch.zeros((), device=self.device)
            for part in self._parts(labelled):
                loss, perturbed = self._labelled(part)
                total, of_labels = total + loss + perturbed, of_labels + loss
            predicted = []
            for part in self._parts(unlabelled) if unlabelled is not None else ():
                total = total + self._unlabelled(part, predicted)
            found = [torch.stack(predicted).sum(0)] if predicted else []
            return torch.cat([torch.stack([total, of_labels]), *found])
        except torch.OutOfMemoryError:
            batches = [labelled] if unlabelled is None else [labelled, unlabelled]
            taken = max(map(self._at_once, batches))
            if taken <= max(batch.ids.shape[1] for batch in batches):
                raise  # one text alone is too long
            self.fits = taken // 2
        say(
            f"a batch of {taken:,} words, padding included, did not fit in memory; from here on at most "
            f"{self.fits:,} are passed through the model at once",
            quiet=self.quiet,
        )
        return None

    def _parts(self, batch: Batch) -> Iterable[Batch]:
        """The batch as it is, in parts that fit in memory, or text by text where most of it would be padding."""
        at_once = self._at_once(batch)
        return (batch,) if batch.ids.numel() <= at_once else batch.parts(at_once)

    def _at_once(self, batch: Batch) -> int:
        """How many ids of a batch, padding included, are passed through the model together."""
        size, longest = batch.ids.numel(), batch.ids.shape[1]
        sparse = size > WIDE and batch.part is None and int(batch.mask.sum()) < FILLED * size
        return longest if sparse else min(size, self.fits)

    def _labelled(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Backpropagate the label loss of the texts, and that of the texts perturbed."""
        assert batch.labels is not None
        watch = any(adversary.method.recipe.starts_uphill for adversary in self.supervised)
        forward = partial(self._forward, batch)
        clean = self.supervised[0].tap.run(forward, watch=watch) if self.supervised else None
        with self.updater.autocast():
            logits = forward() if clean is None else clean.logits
            loss = label_loss(logits, batch.labels, batch.mask, average=self.average)
        loss = self.updater.backward(self._share(batch) * loss)
        perturbed = torch.zeros_like(loss)
        for adversary in self.supervised:
            assert clean is not None
            perturbed = perturbed + self._perturbed(adversary, batch, clean)
        return loss, perturbed

    def _perturbed(self, adversary: Adversary, batch: Batch, clean: Pass) -> Tensor:
        """Backpropagate the loss of the perturbed texts; where every step counts, this serves the ascent too."""
        method = adversary.method
        weight = self.learnt.share * self._share(batch) * method.settings.regularizer_weight / method.recipe.counted

        def loss(at: Pass) -> Tensor:
            with self.updater.autocast():
                return adversary.loss(at.logits, batch.labels, batch.mask)

        ascent = adversary.perturbed_losses(
            partial(self._forward, batch),
            clean,
            None if clean.shift is None else clean.shift.grad,
            batch.mask,
            loss,
            backward=lambda loss: self.updater.backward(weight * loss),
            noise=self._noise(adversary, batch),
        )
        return torch.stack(ascent.losses).sum()

    def _unlabelled(self, batch: Batch, predicted: list[Tensor]) -> Tensor:
        """Backpropagate the KL divergence of perturbed from clean texts; with pseudo-labels, adds to `predicted`."""
        total = torch.zeros((), device=self.device)
        for adversary in self.virtual:
            noise = self._noise(adversary, batch)
            target = partial(self._target, batch, predicted if adversary is self.virtual[0] else [])
            with self.updater.autocast():
                outcome = adversary(
                    lambda: self.model(batch.ids, batch.mask),
                    mask=batch.mask,
                    noise=noise,
                    count=False,
                    target=target if self.pseudo_labels else None,
                )
            total = total + self.updater.backward(self.learnt.share * self._share(batch) * outcome.loss)
        return total

    def _target(self, batch: Batch, predicted: list[Tensor], logits: Tensor) -> Tensor:
        """What predictions are compared with; the share of their mean in that of all processes is noted."""
        assert self.pseudo_labels is not None
        target, mean = self.pseudo_labels.target(logits)
        predicted.append(self._share(batch) * mean)
        return target

    def _forward(self, batch: Batch) -> Tensor:
        with self.updater.autocast():
            return self.model(batch.ids, batch.mask)

    def _noise(self, adversary: Adversary, batch: Batch) -> Noise:
        """Where several processes share a batch, all search a word at the same step and draw the same noise."""
        if batch.part is None:
            return None
        adversary.search(batch.part.ids)
        return batch.part.draw

    def _share(self, batch: Batch) -> float:
        """The weight of a mean over these rows in the mean over the whole batch."""
        return batch.shares.texts if self.average == "sentences" else batch.shares.tokens

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps beside `updater.tensors`."""
        predicted = self.pseudo_labels.state() if self.pseudo_labels else None
        return {**self.updater.state(), "recent": self.learnt.state(), "predicted": predicted}

    def load(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Take over what `updater.tensors` and `state` gave."""
        self.updater.load(tensors, state)
        self.learnt.load(state["recent"])
        if self.pseudo_labels:
            self.pseudo_labels.load(state["predicted"])

    def refresh(self) -> None:
        """Search nearest words again, so that a run resumed here continues exactly as if never stopped."""
        for adversary in (*self.supervised, *self.virtual):
            adversary.refresh()
