"""The Hugging Face Trainer that fine-tunes a run: texts in our order, losses weighed and recorded as ours are."""

import math
import sys
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

from wordward.hf.inputs import accumulated
from wordward.hf.trainer import AdversarialTrainer
from wordward.perturbation.adversary import Adversary
from wordward.runs import run_folder
from wordward.support.console import say
from wordward.support.device import release
from wordward.train.finetuning_data import Order, in_parts
from wordward.train.gradual import LearntShare
from wordward.train.pseudo_labels import PseudoLabels
from wordward.train.record import Record
from wordward.train.teacher import Teacher
from wordward.train.updater import FUSED, settled_precision

WARM_UP = 0.1  # share of the steps
FITS_CPU = 2_048  # ids, padding included: a CPU reads more of them at once no faster, and holds more memory


def twice(step: int, steps: int) -> float:
    """The share of the learning rate at a step of so many: linear, as without halves, and the same again."""
    half = max(1, steps // 2)
    at, length = (step, half) if step < half else (step - half, max(1, steps - half))
    warm_up = int(WARM_UP * length)
    return at / warm_up if at < warm_up else (length - at) / (length - warm_up)


class RunTrainer(AdversarialTrainer):
    """Reads texts in our order, records the losses, and weighs the methods' by what has been learnt.

    On a CPU a batch of long texts is read in parts, elsewhere one that does not fit in memory; their gradients add up
    to the batch's. `fits` is how many ids, padding included, are passed through the model at once.

    In `halves` it first learns from the labels alone, to the end, as without a method, and then once more with the
    KL methods: with `pseudo_labels`, from what the model of the first half makes of the texts.
    """

    def __init__(
        self,
        *args: Any,
        order: Order,
        record: Record,
        learnt: LearntShare,
        halves: bool,
        pseudo_labels: PseudoLabels | None,
        **options: Any,
    ) -> None:
        self.order, self.record, self.learnt, self.halves = order, record, learnt, halves
        self.pseudo_labels = pseudo_labels
        self._target = self._believed if pseudo_labels else None
        self._left = 0  # parts of the labelled batch that are not read yet
        self._ticked: set[Adversary] = set()  # in this step
        self._label_losses: list[Tensor] = []  # of its parts, as are the shares of the mean prediction
        self._predicted: list[Tensor] = []
        super().__init__(*args, **options)
        alone = self.args.world_size == 1  # several processes exchange gradients at each part
        self.fits = FITS_CPU if alone and self.args.device.type == "cpu" else sys.maxsize
        self.teacher = Teacher(Path(str(self.args.output_dir)), first=record.first)

    def _weight(self) -> Tensor | float:
        return self.learnt.share

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """In halves the learning rate falls to zero twice: whoever has not learnt to the end teaches badly."""
        if self.halves and self.lr_scheduler is None:
            rate = partial(twice, steps=num_training_steps)
            self.lr_scheduler = LambdaLR(optimizer or self.optimizer, rate)  # type: ignore[arg-type]
        return super().create_scheduler(num_training_steps, optimizer)

    @property
    def before_second_half(self) -> bool:
        """Whether training in halves has begun, but not yet its second half."""
        return self.halves and self.state.max_steps > 0 and self.state.global_step <= self.state.max_steps // 2

    def _virtual(self, model: nn.Module, inputs: Any) -> dict[str, Tensor]:
        """The losses of the KL methods by name, of all texts when the last labelled ones are read.

        In halves there are none in the first.
        """
        if self._left:
            return {}
        if self.halves:
            step, half = self.state.global_step, self.state.max_steps // 2
            if step < half:
                return {}
            if self.pseudo_labels:
                self.teacher.take(model, resumed=step > half)
        losses = super()._virtual(model, inputs)
        while self._drawn:
            for name, loss in super()._virtual(model, inputs).items():
                losses[name] = losses[name] + loss
        return losses

    def _believed(self, inputs: dict[str, Tensor], logits: Tensor) -> Tensor:
        assert self.pseudo_labels is not None
        target, mean = self.pseudo_labels.target(self.teacher(inputs))
        share = 1.0 if self._together is None else len(logits) / self._together.texts
        self._predicted.append(share * mean)
        return target

    def _tick(self, adversary: Adversary) -> None:
        if adversary not in self._ticked:
            super()._tick(adversary)
        self._ticked.add(adversary)

    def _note(self, losses: dict[str, Tensor]) -> None:
        super()._note(losses)
        self._label_losses.append(losses["label"].detach() / self._divided)

    def _of_all(self, value: Tensor) -> Tensor:
        """The mean over all processes."""
        return self.accelerator.reduce(value, reduction="mean") if self.args.world_size > 1 else value  # type: ignore

    def read(self, corpus: Any) -> None:
        """Take the labelled texts from this corpus instead, of as many texts."""
        self.train_dataset.corpus, self.order.lengths = corpus, corpus.lengths  # type: ignore[union-attr]

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        return self.order

    def _save_checkpoint(self, *args: Any, **options: Any) -> None:
        with self.record.clock.writing_checkpoint():
            super()._save_checkpoint(*args, **options)

    def training_step(self, model: nn.Module, inputs: Any, *args: Any, **options: Any) -> Tensor:
        """A step, in parts that fit in memory; its loss is read from the device only now and then."""
        inputs, drawn = self._prepare_inputs(inputs), self._drawn
        self._ticked.clear()
        while (loss := self._in_parts(model, inputs, drawn, *args, **options)) is None:
            model.zero_grad()
            release()  # only now: the exception kept references to what filled the memory
        self.learnt.add(self._of_all(torch.stack(self._label_losses).sum()))
        if self.pseudo_labels and self._predicted:
            methods = sum(not method.recipe.needs_labels for method in self.methods)
            self.pseudo_labels.update(self._of_all(torch.stack(self._predicted).sum(0) / methods))
        self.record.add(loss)
        return loss

    def _in_parts(self, model: nn.Module, inputs: Any, drawn: list[Any], *args: Any, **options: Any) -> Tensor | None:
        """The loss of a step, backpropagated part by part; None if a part did not fit in memory."""
        parts = in_parts(inputs, self.fits)
        self._drawn = [part for batch in drawn for part in in_parts(batch, self.fits)]
        if len(parts) > 1 or len(self._drawn) > 1:
            self._accumulated = accumulated(self, parts, self._drawn)
        self.current_gradient_accumulation_steps = len(parts)
        self._label_losses, self._predicted = [], []
        shapes = [part["input_ids"].shape for part in (*parts, *self._drawn)]
        total = torch.zeros((), device=self.args.device)
        try:
            for at, part in enumerate(parts, start=1):
                self._left = len(parts) - at
                total = total + super().training_step(model, part, *args, **options)
            return total
        except torch.OutOfMemoryError:
            taken = max(shape.numel() for shape in shapes)
            if self.args.world_size > 1 or taken <= max(shape[1] for shape in shapes):
                raise  # one text alone is too long, or other processes wait for this one's gradients
            self.fits = taken // 2
        say(
            f"a batch of {taken:,} word pieces, padding included, did not fit in memory; from here on about "
            f"{self.fits:,} are passed through the model at once",
            quiet=self.record.quiet,
        )
        return None


def arguments_of(
    config: Any, folder: Path, texts: int, device: torch.device, processes: int
) -> transformers.TrainingArguments:
    """The Trainer's arguments for a run on so many texts."""
    settings = config.training
    steps = settings.epochs * math.ceil(texts / settings.batch_size)
    half = settled_precision(settings.precision, device)
    return transformers.TrainingArguments(
        str(folder / run_folder.TRAINER),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size // processes,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="linear",
        warmup_steps=int(WARM_UP * steps),
        max_grad_norm=settings.clip,
        optim="adamw_torch_fused" if device.type in FUSED else "adamw_torch",
        fp16=half == "fp16",
        bf16=half == "bf16",
        use_cpu=device.type == "cpu",
        ddp_backend="gloo" if device.type == "cpu" and processes > 1 else None,
        gradient_checkpointing=config.finetuning.gradient_checkpointing,
        gradient_checkpointing_kwargs={"use_reentrant": False} if config.finetuning.gradient_checkpointing else None,
        seed=settings.seed,
        save_strategy="no",  # but for those that FineTuning asks for
        save_total_limit=2,  # the last may be broken off
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=device.type == "cuda",
    )
