"""Fine-tuning in progress: the Trainer's epochs, each scored on dev and checkpointed, the best one kept."""

import json
import math
import shutil
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor

from wordward.hf.trainer import AdversarialSettings, AdversarialTrainer
from wordward.perturbation.recipes import parse_methods
from wordward.runs import run_folder
from wordward.runs.metrics import Interval
from wordward.runs.pieces import LogitsModel
from wordward.runs.scoring import probabilities, scores
from wordward.support.console import progress, say
from wordward.support.files import whole, write
from wordward.train.finetuning_data import Collator, Order, TrainerDataset, pool
from wordward.train.step import CHECKED, DivergedError, settled_precision
from wordward.train.trainer import came_out

WARM_UP = 0.1  # share of the steps
MARK = "wordward.json"  # makes a checkpoint whole: it is written last


class _Trainer(AdversarialTrainer):
    """Reads texts in our order, and adds up the losses."""

    def __init__(self, *args: Any, order: Order, **options: Any) -> None:
        self.order, self.total, self.counted = order, None, 0
        super().__init__(*args, **options)

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        return self.order

    def training_step(self, *args: Any, **options: Any) -> Tensor:
        """A step; its loss is read from the device only now and then."""
        loss = super().training_step(*args, **options)
        self.total = loss.detach() if self.total is None else self.total + loss.detach()
        self.counted += 1
        return loss


class FineTuning(transformers.TrainerCallback):
    """A run in progress."""

    def __init__(self, start: Any, folder: Path, *, resume: bool, quiet: bool) -> None:
        self.config, self.data, self.device = start.config, start.data, start.device
        self.model, self.tokenizer, self.folder, self.quiet = start.model, start.tokenizer, folder, quiet
        self.best: dict[str, Any] = {"score": None, "epoch": 0}
        self.epoch, self.seconds, self.steps = 0, 0.0, 0
        self._started, self._bars, self._bar = 0.0, None, None
        self.trainer = self._make(start.candidates)
        self.trainer.remove_callback(transformers.trainer_callback.PrinterCallback)
        self._former = _last(folder / run_folder.TRAINER) if resume else None
        if self._former is not None:
            self._load(self._former)
        elif resume:
            run_folder.restore_metrics(folder, [])

    def _make(self, candidates: Any) -> _Trainer:
        settings, train = self.config.training, self.data.train
        named: Any = asdict(self.config.perturbation) | {
            "method": self.config.method,
            "average": "tokens",  # as the model's own label loss
            "unlabelled_batch_size": settings.unlabelled_batch_size,
        }
        methods = parse_methods(self.config.method, self.config.perturbation)
        virtual = any(method.recipe.objective == "kl" for method in methods)
        return _Trainer(
            self.model,
            _arguments(self.config, self.folder, len(train.rows), self.device),
            data_collator=Collator(self.tokenizer),
            train_dataset=TrainerDataset(train, labelled=True),
            processing_class=self.tokenizer,
            candidates=candidates,
            callbacks=[self],
            adversarial=AdversarialSettings(**named),
            unlabelled_dataset=TrainerDataset(pool(self.data), labelled=False) if virtual else None,
            order=Order(train.lengths, settings.batch_size, settings.seed),
        )

    def fit(self) -> None:
        """Train until the last epoch, or until dev has not improved for `patience` epochs."""
        try:
            if self._patient():
                former = None if self._former is None else str(self._former)
                self.trainer.train(resume_from_checkpoint=former)
        finally:
            if self._bars is not None:
                self._bars.stop()

    def _load(self, folder: Path) -> None:
        """What the Trainer does not keep."""
        mark = json.loads((folder / MARK).read_text(encoding="utf-8"))
        if mark["data"] != self.data.fingerprint:
            raise run_folder.RunError(
                f"the texts or labels of {self.folder} are not those it was trained on: restore them, or start afresh"
            )
        run_folder.restore_metrics(self.folder, mark["metrics"])
        self.best, self.seconds, self.epoch = mark["best"], mark["seconds"], mark["epoch"]
        self.steps, self.trainer.counted = mark["steps"], mark["counted"]
        self.trainer.total = torch.tensor(mark["loss"], device=self.device) if mark["counted"] else None

    def _patient(self) -> bool:
        settings = self.config.training
        if self.epoch - self.best["epoch"] < settings.patience:
            return True
        say(f"stopping: no better dev score for {settings.patience} epochs", quiet=self.quiet)
        return False

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Show a bar."""
        a_pass = math.ceil(len(self.data.train.rows) / args.train_batch_size)
        self._bars = progress(quiet=self.quiet)
        self._bars.start()
        name = f"epoch {self.epoch + 1}/{self.config.training.epochs}"
        self._bar = self._bars.add_task(name, total=a_pass, completed=state.global_step - self.epoch * a_pass)
        self._started = time.monotonic()

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Move the bar, look at the loss, keep a checkpoint where one is wanted inside an epoch."""
        self.steps, every = state.global_step, self.config.training.checkpoint_steps
        self._bars.advance(self._bar)  # type: ignore[union-attr,arg-type]
        if self.device.type == "cpu" or self.steps % CHECKED == 0:
            self._refuse_broken()
        if every and self.steps % every == 0:
            control.should_save = True

    def _refuse_broken(self) -> float:
        """The mean loss of the epoch so far; raises an error if it is not finite."""
        total, counted = self.trainer.total, self.trainer.counted
        loss = 0.0 if total is None else float(total) / max(1, counted)
        if math.isfinite(loss):
            return loss
        epoch = self.best["epoch"]
        kept = (
            f"the best model so far (epoch {epoch}) is kept in {self.folder}"
            if epoch
            else "there is no model yet"
        )
        raise DivergedError(
            f"the loss is not finite at step {self.steps}; {kept}. Lower `learning_rate` or `epsilon`, or "
            "use `precision='fp32'`"
        )

    def on_epoch_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Score dev, keep the best model, record the epoch, and have a checkpoint written to resume from."""
        loss = self._refuse_broken()
        self.seconds += time.monotonic() - self._started
        self._bars.stop()  # type: ignore[union-attr]
        criterion, dev = self.config.training.criterion, self._dev()
        measured = dev[criterion].value
        score = -measured if criterion == "error" else measured
        better = self.best["score"] is None or score > self.best["score"]
        self.epoch += 1
        if better:
            self.best = {"score": score, "epoch": self.epoch}
            self.save_model()
        self._record(loss, dev, better)
        star = "  best so far" if better else ""
        say(f"epoch {self.epoch:3d}  loss {loss:.4f}  dev {criterion} {measured:.4f}{star}", quiet=self.quiet)
        self.trainer.total, self.trainer.counted, self._started = None, 0, time.monotonic()
        last = self.epoch >= self.config.training.epochs
        control.should_training_stop = last or not self._patient()
        control.should_save = not control.should_training_stop

    def _dev(self) -> dict[str, Interval]:
        chances = probabilities(LogitsModel(self.model), self.data.dev, self.device)
        self.model.train()
        return scores(
            self.data.dev, chances, len(self.data.classes), positive=self.data.positive, intervals=False
        )

    def _record(self, loss: float, dev: dict[str, Interval], better: bool) -> None:
        table = self.model.get_input_embeddings().weight.detach()
        record = {
            "epoch": self.epoch,
            "steps": self.steps,
            "loss": loss,
            "dev": {name: interval.value for name, interval in dev.items()},
            "best": better,
            "table_rms": float(table.float().square().mean().sqrt()),
            "seconds": round(self.seconds, 3),
        }
        run_folder.append_metrics(self.folder, record)

    def save_model(self) -> None:
        """Model and tokenizer as plain transformers load them."""
        with whole(self.folder / run_folder.TRANSFORMER) as part:
            self.model.save_pretrained(part)
            self.tokenizer.save_pretrained(part)
            for weights in part.glob("*.safetensors"):  # which are made for the owner alone
                shutil.copymode(part / "config.json", weights)

    def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Make a checkpoint whole."""
        now = time.monotonic()
        self.seconds, self._started = self.seconds + now - self._started, now
        mark = {
            "steps": state.global_step,
            "epoch": self.epoch,
            "best": self.best,
            "loss": 0.0 if self.trainer.total is None else float(self.trainer.total),
            "counted": self.trainer.counted,
            "seconds": self.seconds,
            "metrics": run_folder.read_metrics(self.folder),
            "data": self.data.fingerprint,
        }
        write(Path(args.output_dir) / f"checkpoint-{state.global_step}" / MARK, json.dumps(mark))

    def result(self, stopped: bool) -> dict[str, Any]:
        """The outcome, as for our own models."""
        outcome = came_out(self.config, self.data, self.folder, best=self.best["epoch"], stopped=stopped)
        spent = {"epochs": self.epoch, "steps": self.steps, "seconds": round(self.seconds, 1)}
        return outcome | {"model": self.config.transformer} | spent


def _arguments(config: Any, folder: Path, texts: int, device: torch.device) -> transformers.TrainingArguments:
    settings = config.training
    steps = settings.epochs * math.ceil(texts / settings.batch_size)
    half = settled_precision(settings.precision, device)
    return transformers.TrainingArguments(
        str(folder / run_folder.TRAINER),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="linear",
        warmup_steps=int(WARM_UP * steps),
        max_grad_norm=settings.clip,
        optim="adamw_torch_fused" if device.type == "cuda" else "adamw_torch",
        fp16=half == "fp16",
        bf16=half == "bf16",
        use_cpu=device.type == "cpu",
        seed=settings.seed,
        save_strategy="no",  # but for those that FineTuning asks for
        save_total_limit=2,  # the last may be broken off
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=device.type == "cuda",
    )


def _last(folder: Path) -> Path | None:
    """The last whole checkpoint."""
    whole = [path.parent for path in folder.glob(f"checkpoint-*/{MARK}")]
    return max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default=None)
