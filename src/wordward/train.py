"""The training loop: epochs of labelled and unlabelled batches, the best on dev kept."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from wordward import checkpoint
from wordward.config import TrainConfig, TrainingSettings
from wordward.console import progress, say
from wordward.corpus import Stream
from wordward.predict import pick_device, probabilities, scores
from wordward.prepare import Data, adversaries, build, prepare
from wordward.step import DivergedError, Stepper
from wordward.text import UNK

__all__ = ["DivergedError", "Trainer", "inputs_of", "train"]


class Trainer:
    """A run in progress."""

    def __init__(self, config: TrainConfig, data: Data, folder: Path, *, quiet: bool) -> None:
        self.config, self.data, self.folder, self.quiet = config, data, folder, quiet
        settings = config.training
        self.device = pick_device(settings.device)
        torch.manual_seed(settings.seed)
        self.model = build(config, data, quiet=quiet).to(self.device)
        self.stepper = Stepper(
            self.model,
            adversaries(config, data, self.model),
            settings,
            self.device,
            average=config.perturbation.average,
        )
        self.labelled = Stream(data.train, settings.batch_size, seed=(settings.seed, 1))
        self.unlabelled: Stream | None = None
        if self.stepper.virtual:
            pool = data.train if data.unlabelled is None else data.train + data.unlabelled
            self.unlabelled = Stream(pool, settings.unlabelled_batch_size, seed=(settings.seed, 2))
        self.best: dict[str, Any] = {"score": None, "epoch": 0}
        self.seconds = 0.0
        self._loss, self._counted = torch.zeros((), device=self.device), 0

    def fit(self) -> None:
        """Train until the last epoch, or until dev has not improved for `patience` epochs."""
        settings = self.config.training
        while self.labelled.epoch < settings.epochs:
            if self.labelled.epoch - self.best["epoch"] >= settings.patience:
                say(f"stopping: no better dev score for {settings.patience} epochs", quiet=self.quiet)
                return
            self._epoch()
            self._close_epoch()

    def _epoch(self) -> None:
        settings, started = self.config.training, time.monotonic()
        check_every = 1 if self.device.type == "cpu" else 50
        with progress(quiet=self.quiet) as bars:
            name = f"epoch {self.labelled.epoch + 1}/{settings.epochs}"
            bar = bars.add_task(name, total=len(self.labelled), completed=self.labelled.at)
            self.model.train()
            while self.labelled.at < len(self.labelled):
                extra = self.unlabelled.next(self.device) if self.unlabelled else None
                self._loss += self.stepper(self.labelled.next(self.device), extra)
                self._counted += 1
                if self._counted % check_every == 0:
                    self._refuse_broken()
                if settings.checkpoint_steps and self.stepper.updater.steps % settings.checkpoint_steps == 0:
                    self._pause(started)
                    started = time.monotonic()
                bars.advance(bar)
        self._refuse_broken()
        self.seconds += time.monotonic() - started

    def _pause(self, started: float) -> None:
        """Keep a checkpoint inside an epoch."""
        self.seconds += time.monotonic() - started
        self.save()
        self.stepper.refresh()

    def _refuse_broken(self) -> None:
        epoch = self.best["epoch"]
        kept = f"the best model so far (epoch {epoch}) is kept in {self.folder}" if epoch else ""
        self.stepper.updater.refuse_broken(kept or "no epoch was finished, so there is no model yet")

    def _close_epoch(self) -> None:
        """Score dev, keep the best model, record, and make the epoch's end a place to go on from."""
        data, settings = self.data, self.config.training
        chances = probabilities(self.model, data.dev, self.device)
        dev = scores(data.dev, chances, len(data.classes), positive=data.positive, intervals=False)
        measured = dev[settings.criterion].value
        score = -measured if settings.criterion == "error" else measured
        better = self.best["score"] is None or score > self.best["score"]
        epoch = self.labelled.epoch + 1
        if better:
            self.best = {"score": score, "epoch": epoch}
            checkpoint.save_weights(self.folder, self.model, data.vocabulary)
        loss = float(self._loss) / max(1, self._counted)
        record = {
            "epoch": epoch,
            "steps": self.stepper.updater.steps,
            "loss": loss,
            "dev": {name: interval.value for name, interval in dev.items()},
            "best": better,
            "table_rms": float(self.model.words.table.weight.detach().square().mean().sqrt()),
            "seconds": round(self.seconds, 3),
        }
        checkpoint.append_metrics(self.folder, record)
        star = "  best so far" if better else ""
        say(
            f"epoch {epoch:3d}  loss {loss:.4f}  dev {settings.criterion} {measured:.4f}{star}",
            quiet=self.quiet,
        )
        self.labelled.go_to(epoch, 0)
        self._loss.zero_()
        self._counted = 0
        self.save()
        self.stepper.refresh()

    def save(self) -> None:
        """Keep all it takes to go on from here."""
        extra = self.unlabelled
        state = {
            "steps": self.stepper.updater.steps,
            "labelled": [self.labelled.epoch, self.labelled.at],
            "unlabelled": [extra.epoch, extra.at] if extra else None,
            "scaler": self.stepper.updater.scaler.state_dict(),
            "best": self.best,
            "loss": float(self._loss),
            "counted": self._counted,
            "seconds": self.seconds,
            "metrics": len(checkpoint.read_metrics(self.folder)),
            "data": self.data.fingerprint,
        }
        checkpoint.save_checkpoint(
            self.folder, checkpoint.pack(self.model, self.stepper.updater.optimizer), state
        )

    def load(self) -> None:
        """Go on from the last checkpoint; from the start where there is none."""
        found = checkpoint.load_checkpoint(self.folder)
        if found is None:
            checkpoint.keep_metrics(self.folder, 0)
            return
        tensors, state = found
        if state["data"] != self.data.fingerprint:
            raise checkpoint.RunError(
                f"the texts or labels of {self.folder} are not those it was trained on: put them back, or start anew"
            )
        checkpoint.unpack(tensors, self.model, self.stepper.updater.optimizer)
        self.stepper.updater.steps = state["steps"]
        self.stepper.updater.scaler.load_state_dict(state["scaler"])
        self.labelled.go_to(*state["labelled"])
        if self.unlabelled:
            self.unlabelled.go_to(*state["unlabelled"])
        self.best, self.seconds = state["best"], state["seconds"]
        self._loss.fill_(state["loss"])
        self._counted = state["counted"]
        checkpoint.keep_metrics(self.folder, state["metrics"])


def train(
    config: TrainConfig, out: str | Path, *, force: bool = False, resume: bool = False, quiet: bool = False
) -> dict[str, Any]:
    """Train a run into the folder `out`; what came out, as also written to result.json."""
    folder = Path(out)
    if resume:
        config = _to_resume(folder, config)
    else:
        checkpoint.check_free(folder, force=force, inputs=inputs_of(config))
    settled, data = prepare(config, quiet=quiet)
    trainer = Trainer(settled, data, folder, quiet=quiet)
    say(_describe(trainer), quiet=quiet)
    if resume:
        _check_same(folder, data)
        trainer.load()
    else:
        checkpoint.create(folder, force=force)
    checkpoint.save_settings(folder, settled, data.learnt, data.classes)
    stopped = False
    try:
        trainer.fit()
    except KeyboardInterrupt:
        stopped = True
        if not trainer.best["epoch"]:
            checkpoint.save_weights(folder, trainer.model, data.vocabulary)
        say(f"stopped; {folder} holds the best model so far and goes on with --resume", quiet=quiet)
    return checkpoint.save_result(folder, _result(trainer, stopped), trainer.device)


def _describe(trainer: Trainer) -> str:
    """What is about to be learnt from what, in one line."""
    data, counts = trainer.data, trainer.data.train.word_counts(len(trainer.data.vocabulary))
    texts = "sentences" if data.tagging else "texts"
    extra = f", {len(data.unlabelled.rows):,} without labels" if data.unlabelled else ""
    return (
        f"{trainer.config.method} on {trainer.device}: {len(data.train.rows):,} {texts} to learn from{extra}, "
        f"{len(data.dev.rows):,} dev, {len(data.classes)} labels, {len(data.vocabulary):,} words "
        f"({counts[UNK] / counts.sum():.1%} of the text unknown)"
    )


def inputs_of(config: TrainConfig) -> list[str]:
    """The files and folders that a run reads."""
    data = config.data
    given = (config.pretrained, config.vectors, data.train, data.dev, data.test, data.unlabelled)
    return [path for path in given if path]


def _to_resume(folder: Path, given: TrainConfig) -> TrainConfig:
    """The run's own settings; only how long and where to train may be set anew."""
    if (folder / checkpoint.SWEEP).exists():
        raise checkpoint.RunError(f"{folder} is a sweep: repeat its command, --sweep included, with --resume")
    kept, default = checkpoint.load_config(folder, TrainConfig), TrainingSettings()
    names = ("epochs", "patience", "device")
    values = {name: getattr(given.training, name) for name in names}
    changed = {name: value for name, value in values.items() if value != getattr(default, name)}
    return replace(kept, training=replace(kept.training, **changed))


def _check_same(folder: Path, data: Data) -> None:
    if checkpoint.load_vocabulary(folder).fingerprint != data.vocabulary.fingerprint:
        raise checkpoint.RunError(
            f"{folder} was trained with another vocabulary than its texts give now: have the texts changed?"
        )
    if checkpoint.load_labels(folder) != data.classes:
        raise checkpoint.RunError(
            f"{folder} was trained with the labels {', '.join(checkpoint.load_labels(folder))}, but its texts now "
            f"have {', '.join(data.classes)}"
        )


def _result(trainer: Trainer, stopped: bool) -> dict[str, Any]:
    settings = trainer.config.training
    best = next(
        (r for r in checkpoint.read_metrics(trainer.folder) if r["epoch"] == trainer.best["epoch"]), None
    )
    return {
        "method": trainer.config.method,
        "seed": settings.seed,
        "criterion": settings.criterion,
        "best_epoch": trainer.best["epoch"],
        "dev": best["dev"] if best else None,
        "epochs": trainer.labelled.epoch,
        "steps": trainer.stepper.updater.steps,
        "seconds": round(trainer.seconds, 1),
        "stopped": stopped,
    }
