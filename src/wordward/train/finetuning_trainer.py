"""The Hugging Face Trainer that fine-tunes a run: texts in our order, losses weighed and recorded as ours are."""

import math
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

from wordward.hf.trainer import AdversarialTrainer
from wordward.runs import run_folder
from wordward.train.beliefs import Beliefs
from wordward.train.finetuning_data import Order
from wordward.train.learnt import Learnt
from wordward.train.record import Record
from wordward.train.teacher import Teacher
from wordward.train.updater import FUSED, settled_precision

WARM_UP = 0.1  # share of the steps


def twice(step: int, steps: int) -> float:
    """The share of the learning rate at a step of so many: linear, as without halves, and the same again."""
    half = max(1, steps // 2)
    at, length = (step, half) if step < half else (step - half, max(1, steps - half))
    warm_up = int(WARM_UP * length)
    return at / warm_up if at < warm_up else (length - at) / (length - warm_up)


class RunTrainer(AdversarialTrainer):
    """Reads texts in our order, records the losses, and weighs the methods' by what has been learnt.

    In `halves` it first learns from the labels alone, to the end, as without a method, and then once more with the
    KL methods: with `beliefs`, from what the model of the first half makes of the texts.
    """

    def __init__(
        self,
        *args: Any,
        order: Order,
        record: Record,
        learnt: Learnt,
        halves: bool,
        beliefs: Beliefs | None,
        **options: Any,
    ) -> None:
        self.order, self.record, self.learnt, self.halves, self.beliefs = order, record, learnt, halves, beliefs
        self._target = self._believed if beliefs else None
        super().__init__(*args, **options)
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
        """The losses of the KL methods by name; in halves there are none in the first."""
        if self.halves:
            step, half = self.state.global_step, self.state.max_steps // 2
            if step < half:
                return {}
            if self.beliefs:
                self.teacher.take(model, resumed=step > half)
        return super()._virtual(model, inputs)

    def _believed(self, inputs: dict[str, Tensor], logits: Tensor) -> Tensor:
        assert self.beliefs is not None
        target, mean = self.beliefs.target(self.teacher(inputs))
        self.beliefs.update(self._of_all(mean))
        return target

    def _note(self, losses: dict[str, Tensor]) -> None:
        super()._note(losses)
        self.learnt.add(self._of_all(losses["label"].detach()))

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

    def training_step(self, *args: Any, **options: Any) -> Tensor:
        """A step; its loss is read from the device only now and then."""
        loss = super().training_step(*args, **options)
        self.record.add(loss)
        return loss


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
