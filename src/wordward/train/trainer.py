"""A run in progress: epochs of labelled and unlabelled batches; the best model on dev is kept."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from wordward.config.settings import TrainConfig
from wordward.runs import checkpoint, run_folder
from wordward.runs.metrics import Interval
from wordward.runs.scoring import probabilities, scores
from wordward.support.console import progress, say
from wordward.support.device import pick_device
from wordward.support.distributed import ALONE, Team
from wordward.text.corpus import Corpus, Stream
from wordward.text.ragged import Chosen
from wordward.train.data import Data, adversaries, build
from wordward.train.step import Stepper


def came_out(config: TrainConfig, data: Data, folder: Path, *, best: int, stopped: bool) -> dict[str, Any]:
    """The result reported for every finished run, of our own models and of fine-tuned ones."""
    scores = next((line["dev"] for line in run_folder.read_metrics(folder) if line["epoch"] == best), None)
    return {
        "method": config.method,
        "texts": {name: len(corpus.rows) for name, corpus in data.corpora.items()},
        "seed": config.training.seed,
        "criterion": config.training.criterion,
        "best_epoch": best,
        "dev": scores,
        "majority_error": round(data.majority_error, 6),
        "stopped": stopped,
    }


class Trainer:
    """A run in progress, in this process alone or in each of a team."""

    def __init__(
        self, config: TrainConfig, data: Data, folder: Path, *, quiet: bool, team: Team = ALONE
    ) -> None:
        self.config, self.data, self.folder, self.quiet, self.team = config, data, folder, quiet, team
        settings = config.training
        self.device = pick_device(settings.device)
        torch.manual_seed(settings.seed)
        self.model = build(config, data, quiet=quiet).to(self.device)
        team.same(self.model)
        self.stepper = Stepper(
            self.model,
            adversaries(config, data, self.model),
            settings,
            self.device,
            average=config.perturbation.average if data.tagging else "sentences",
            team=team,
            quiet=quiet,
        )
        self._part_ways()
        self.labelled = Stream(data.train, settings.batch_size, seed=(settings.seed, 1), team=team)
        self.unlabelled: Stream | None = None
        if self.stepper.virtual:
            pool = data.train if data.unlabelled is None else data.train + data.unlabelled
            size = settings.unlabelled_batch_size
            self.unlabelled = Stream(pool, size, seed=(settings.seed, 2), team=team)
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
        with progress(quiet=self.quiet) as bars:
            name = f"epoch {self.labelled.epoch + 1}/{settings.epochs}"
            bar = bars.add_task(name, total=len(self.labelled), completed=self.labelled.at)
            self.model.train()
            while self.labelled.at < len(self.labelled):
                extra = self.unlabelled.next(self.device) if self.unlabelled else None
                self._loss += self.stepper(self.labelled.next(self.device), extra)
                self._counted += 1
                if self._counted % self.stepper.updater.check_every == 0:
                    self._refuse_broken()
                if settings.checkpoint_steps and self.stepper.updater.steps % settings.checkpoint_steps == 0:
                    self._pause(started)
                    started = time.monotonic()
                bars.advance(bar)
        self._refuse_broken()
        self.seconds += time.monotonic() - started

    def _pause(self, started: float) -> None:
        """Write a checkpoint in the middle of an epoch."""
        self.seconds += time.monotonic() - started
        self.save()
        self.stepper.refresh()

    def _refuse_broken(self) -> None:
        epoch = self.best["epoch"]
        kept = f"the best model so far (epoch {epoch}) is kept in {self.folder}" if epoch else ""
        self.stepper.updater.refuse_broken(kept or "no epoch has finished, so there is no model yet")
        if self.team.stopping():
            raise KeyboardInterrupt

    def _dev(self) -> dict[str, Interval]:
        """The scores on dev, whose texts are divided among the processes."""
        dev, count = self.data.dev, self.team.size
        order = np.argsort(dev.lengths, kind="stable")
        own = Corpus(Chosen(dev.rows, order[self.team.rank :: count]))
        predicted = [np.zeros(0)] * len(order)
        for rank, part in enumerate(self.team.gather(probabilities(self.model, own, self.device))):
            for at, row in zip(order[rank::count], part, strict=True):
                predicted[at] = row
        return scores(dev, predicted, len(self.data.classes), positive=self.data.positive, intervals=False)

    def _close_epoch(self) -> None:
        """Score dev, keep the best model, record the epoch, and write a checkpoint to resume from."""
        criterion, epoch = self.config.training.criterion, self.labelled.epoch + 1
        loss = float(self._loss) / max(1, self._counted)
        with self.stepper.updater.averaged():
            dev = self.team.agree(self._dev())
            measured = dev[criterion].value
            score = -measured if criterion == "error" else measured
            better = self.best["score"] is None or score > self.best["score"]
            if better:
                self.best = {"score": score, "epoch": epoch}
            if self.team.first:
                self._record(epoch, loss, dev, better)
        star = "  best so far" if better else ""
        say(f"epoch {epoch:3d}  loss {loss:.4f}  dev {criterion} {measured:.4f}{star}", quiet=self.quiet)
        self.labelled.go_to(epoch, 0)
        self._loss.zero_()
        self._counted = 0
        self.save()
        self.stepper.refresh()

    def _record(self, epoch: int, loss: float, dev: dict[str, Interval], better: bool) -> None:
        """Save the weights if they are the best so far, and append a line of metrics."""
        if better:
            checkpoint.save_weights(self.folder, self.model, self.data.vocabulary)
        record = {
            "epoch": epoch,
            "steps": self.stepper.updater.steps,
            "loss": loss,
            "dev": {name: interval.value for name, interval in dev.items()},
            "best": better,
            "table_rms": float(self.model.words.table.weight.detach().square().mean().sqrt()),
            "seconds": round(self.seconds, 3),
        }
        run_folder.append_metrics(self.folder, record)

    def _part_ways(self) -> None:
        self.team.part_ways(self.device, seed=self.config.training.seed, steps=self.stepper.updater.steps)

    def save(self) -> None:
        """Write everything needed to resume from here."""
        self.team.meet(self.device)
        if self.team.first:
            self._write()
        self._part_ways()

    def _write(self) -> None:
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
            "metrics": run_folder.read_metrics(self.folder),
            "data": self.data.fingerprint,
        }
        updater = self.stepper.updater
        tensors = checkpoint.pack(self.model, updater.optimizer)
        if updater.average is not None:
            tensors |= updater.average.tensors()
        checkpoint.save_checkpoint(self.folder, tensors, state)

    def result(self, stopped: bool) -> dict[str, Any]:
        """The outcome, as written to result.json."""
        result = came_out(self.config, self.data, self.folder, best=self.best["epoch"], stopped=stopped)
        steps = self.stepper.updater.steps
        return result | {"epochs": self.labelled.epoch, "steps": steps, "seconds": round(self.seconds, 1)}

    def load(self) -> None:
        """Resume from the last checkpoint, or from the start if there is none."""
        found = checkpoint.load_checkpoint(self.folder)
        if found is not None and found[1]["data"] != self.data.fingerprint:
            raise run_folder.RunError(
                f"the texts or labels of {self.folder} are not those it was trained on: restore them, or start afresh"
            )
        if self.team.first:
            run_folder.restore_metrics(self.folder, found[1]["metrics"] if found else [])
        if found is None:
            return
        tensors, state = found
        checkpoint.unpack(tensors, self.model, self.stepper.updater.optimizer)
        self.stepper.updater.steps = state["steps"]
        if self.stepper.updater.average is not None:
            self.stepper.updater.average.load(tensors)
        if state["scaler"]:  # none was needed before, on a device that computes in fp32
            self.stepper.updater.scaler.load_state_dict(state["scaler"])
        self.labelled.go_to(*state["labelled"])
        if self.unlabelled:
            self.unlabelled.go_to(*state["unlabelled"])
        self.best, self.seconds = state["best"], state["seconds"]
        self._loss.fill_(state["loss"])
        self._counted = state["counted"]
        self._part_ways()
