"""One training step: clean and perturbed losses backpropagated, one clipping, one update."""

import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
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
from wordward.support.errors import DivergedError
from wordward.text.corpus import Batch
from wordward.train.averaging import MovingAverage
from wordward.train.beliefs import Beliefs
from wordward.train.learnt import Learnt

PRECISIONS = {"fp16": torch.float16, "bf16": torch.bfloat16}
RISING = 0.05  # share of all steps in which a linear schedule's learning rate rises
FUSED = ("cpu", "cuda")  # devices on which one kernel updates weights and both of Adam's means: half the time
CHECKED = 50  # steps between checks of the loss on a GPU, since each check waits for it


def settled_precision(asked: str, device: torch.device) -> str:
    """The precision to compute with; auto is the device's fastest."""
    return asked if asked != "auto" else "fp16" if device.type == "cuda" else "fp32"


class Updater:
    """Adam with clipping and mixed precision; remembers the first step whose loss was not finite.

    Several processes add up their gradients before they are clipped, so all make the same update.
    """

    def __init__(
        self,
        model: nn.Module,
        device: torch.device,
        *,
        clip: float,
        precision: str,
        averaging: float = 0.0,
        team: Team = ALONE,
    ) -> None:
        self.model, self.device, self.clip, self.team = model, device, clip, team
        self.precision = settled_precision(precision, device)
        self.check_every = 1 if device.type == "cpu" else CHECKED  # steps between two checks of the loss
        self.optimizer = torch.optim.Adam(model.parameters(), fused=device.type in FUSED)
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.precision == "fp16")
        self.average = MovingAverage(model, averaging) if averaging else None
        self.steps = 0
        self._broken = torch.full((), -1, device=device)

    def autocast(self, *, cache: bool = True) -> Any:
        """The context for forward passes; inside a CUDA graph, without the cache of casts."""
        if self.precision == "fp32":
            return nullcontext()
        return torch.autocast(self.device.type, dtype=PRECISIONS[self.precision], cache_enabled=cache)

    def begin(self, learning_rate: float) -> None:
        """Start a step: set the learning rate, clear the gradients."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.optimizer.zero_grad(set_to_none=True)

    def backward(self, loss: Tensor) -> Tensor:
        """Backpropagate a loss; returns it detached."""
        self.scaler.scale(loss).backward()
        return loss.detach()

    def finish(self, loss: Tensor) -> Tensor:
        """Clip and update; returns the step's losses, one or several, over all processes, still on the device."""
        loss = self.team.add_up(self.model.parameters(), loss)  # where one overflowed, all get inf and skip
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self._broken = torch.where((self._broken < 0) & ~loss.isfinite().all(), self.steps, self._broken)
        self.steps += 1
        if self.average is not None:
            self.average.update(self.steps)
        return loss

    def averaged(self) -> AbstractContextManager[None]:
        """The model as it is scored and saved: with averaged weights if averaging is on."""
        return nullcontext() if self.average is None else self.average.in_place()

    def refuse_broken(self, kept: str) -> None:
        """Stop if a loss was NaN or infinite (waits for the device)."""
        if (step := int(self._broken)) >= 0:
            raise diverged(step + 1, kept)


def diverged(step: int, kept: str) -> DivergedError:
    """The error of a loss that is not finite; `kept` says what is left of the run."""
    return DivergedError(
        f"the loss is not finite at step {step}; {kept}. "
        "Lower `learning_rate` or `epsilon`, or use `precision='fp32'`"
    )


class Stepper:
    """Updates a model, batch after batch.

    AdvT and iAdvT cost two forwards and two backwards: the clean pass's one backward gives the weights'
    gradients and the gradient at the vectors. A batch that does not fit in GPU memory is processed in parts whose
    gradients add up to the same.

    `steps` is how many there will be, for a learning rate that falls to zero with the last. `chance` is the label
    loss of a model that has learnt nothing: the methods' losses then count in proportion to what has been learnt.
    With `beliefs`, the KL methods compare with what they make of the predictions.
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
        beliefs: Beliefs | None = None,
    ) -> None:
        self.model, self.settings, self.device, self.quiet = model, settings, device, quiet
        self.average: Average = average
        self.steps, self.beliefs, self.learnt = steps, beliefs, Learnt(chance, device)
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
        if self.beliefs is not None and predicted:
            self.beliefs.update(torch.stack(predicted))
        self.learnt.add(of_labels)
        return loss

    def _learning_rate(self) -> float:
        done, settings = self.updater.steps, self.settings
        if settings.schedule == "linear" and self.steps:
            rising = (done + 1) / (RISING * self.steps)
            return settings.learning_rate * min(1.0, rising) * max(0.0, 1 - done / self.steps)
        return settings.learning_rate * settings.decay**done

    def _backpropagated(self, labelled: Batch, unlabelled: Batch | None) -> Tensor | None:
        """Backpropagate all losses; returns their sum, that of the labels alone, with beliefs the mean prediction.

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
            taken = min(self.fits, max(batch.ids.numel() for batch in batches))
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
        return (batch,) if batch.ids.numel() <= self.fits else batch.parts(self.fits)

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
        """Backpropagate the divergence of the texts perturbed from the texts; with beliefs, adds to `predicted`."""
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
                    target=target if self.beliefs else None,
                )
            total = total + self.updater.backward(self.learnt.share * self._share(batch) * outcome.loss)
        return total

    def _target(self, batch: Batch, predicted: list[Tensor], logits: Tensor) -> Tensor:
        """What predictions are compared with; the share of their mean in that of all processes is noted."""
        assert self.beliefs is not None
        target, mean = self.beliefs.target(logits)
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

    def refresh(self) -> None:
        """Search nearest words again, so that a run resumed here continues exactly as if never stopped."""
        for adversary in (*self.supervised, *self.virtual):
            adversary.refresh()
