"""A run in progress: epochs of labelled and unlabelled batches; the best model on dev is kept."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import torch

from wordward.config.settings import TrainConfig
from wordward.perturbation.objective import Average
from wordward.runs import checkpoint
from wordward.runs.metrics import Interval
from wordward.runs.scoring import probabilities, scores
from wordward.runs.word_run import WordRun
from wordward.support.console import progress
from wordward.support.device import pick_device
from wordward.support.distributed import ALONE, Team
from wordward.text.corpus import Corpus, Stream
from wordward.text.ragged import Chosen
from wordward.train.augmenting import Augmenter
from wordward.train.building import adversaries, build
from wordward.train.data import Data
from wordward.train.pseudo_labels import pseudo_labels_of
from wordward.train.record import Record, tolerance
from wordward.train.step import Stepper

SWINGING = 2.0  # standard errors below the best of self-training's many epochs, which is best by chance


class Trainer:
    """A run in progress, in this process alone or in each of a team."""

    def __init__(self, config: TrainConfig, data: Data, folder: Path, *, quiet: bool, team: Team = ALONE) -> None:
        self.config, self.data, self.folder, self.quiet, self.team = config, data, folder, quiet, team
        settings = config.training
        self.device = pick_device(settings.device)
        torch.manual_seed(settings.seed)
        self.model = build(config, data, quiet=quiet).to(self.device)
        team.same(self.model)
        self.augmenter = self._make_augmenter() if settings.augment else None
        train = self.augmenter.joined(data.train) if self.augmenter else data.train
        self.labelled = Stream(train, settings.batch_size, seed=(settings.seed, 1), team=team)
        self_training = settings.self_training and not data.tagging
        average: Average = config.perturbation.average if data.tagging else "sentences"
        self.stepper = Stepper(
            self.model,
            adversaries(config, data, self.model),
            settings,
            self.device,
            average=average,
            team=team,
            quiet=quiet,
            steps=settings.epochs * len(self.labelled),
            chance=data.chance_loss(average) if settings.gradual else None,
            pseudo_labels=pseudo_labels_of(data, self.device) if self_training else None,
        )
        self._fork_rng()
        self.unlabelled: Stream | None = None
        if self.stepper.virtual:
            pool = data.train if data.unlabelled is None else data.train + data.unlabelled
            size = settings.unlabelled_batch_size
            self.unlabelled = Stream(pool, size, seed=(settings.seed, 2), team=team)
        self.record = Record(folder, quiet=quiet, first=team.first, config=config, report_to=settings.report_to)
        self._written = True  # the checkpoint of what has been learnt so far

    def _make_augmenter(self) -> Augmenter:
        data = self.data
        run = WordRun(self.folder, self.config, data.learnt, data.classes, self.model, self.device)
        reader = replace(run, vocabulary=data.learnt.first(data.met))
        given = data.examples, self.config.training
        return Augmenter(run, *given, quiet=self.quiet, team=self.team, reader=reader)

    def fit(self) -> None:
        """Train until the last epoch or minute, or until dev has not improved for `patience` epochs."""
        self._fit()
        if not self._written and self.team.first:
            self._write()

    def _fit(self) -> None:
        settings = self.config.training
        deadline, begun = self.record.clock.deadline(settings.minutes), self.record.epoch
        while self.record.epoch < settings.epochs:
            if self._started() and self.record.out_of_patience(settings.patience):
                return
            if self.record.epoch and self.record.clock.out_of_time(deadline, self.team):
                self.record.clock.say_out_of_time(settings.minutes, trained=self.record.epoch > begun)
                return
            self._epoch(deadline)
            self._close_epoch()

    def _started(self) -> bool:
        """Whether the best score is clearly above chance; until then patience has no end."""
        best, texts = self.record.best["score"], len(self.data.dev.rows)
        if best is None or self.config.training.criterion != "error":
            return bool(best)
        chance = self.data.majority_error
        return -best < chance - sqrt(chance * (1 - chance) / texts)

    def _epoch(self, deadline: float | None) -> None:
        """Train on all texts that are left of an epoch, or until the deadline."""
        settings = self.config.training
        self.record.clock.start()
        self._augment(deadline)
        with progress(quiet=self.quiet) as bars:
            name = f"epoch {self.record.epoch + 1}/{settings.epochs}"
            bar = bars.add_task(name, total=len(self.labelled), completed=self.labelled.at)
            self.model.train()
            while self.labelled.at < len(self.labelled):
                extra = self.unlabelled.next(self.device) if self.unlabelled else None
                self.record.add(self.stepper(self.labelled.next(self.device), extra))
                if self.record.losses % self.stepper.updater.check_every == 0:
                    self._check()
                if settings.checkpoint_steps and self.stepper.updater.steps % settings.checkpoint_steps == 0:
                    self._check()
                    self.record.clock.stop()
                    self.save()
                    self.record.clock.start()
                bars.advance(bar)
                if self.record.clock.out_of_time(deadline, self.team):
                    break
        self._check()
        self.record.clock.stop()

    def _augment(self, deadline: float | None) -> None:
        """Before an epoch, the first excepted, look for texts that fool the model as it is now."""
        if self.augmenter is not None and self.record.epoch and not self.labelled.at:
            with self.model.words.whole():
                self.augmenter(self.record.epoch, deadline)
            self.labelled.read(self.augmenter.joined(self.data.train))

    def _check(self) -> None:
        """Stop if a loss was not finite, or if a process was asked to stop."""
        self.stepper.updater.refuse_broken(self.record.kept)
        if self.team.stopping():
            raise KeyboardInterrupt

    def _dev(self) -> dict[str, Interval]:
        """The scores on dev, whose texts are divided among the processes."""
        dev, count = self.data.dev, self.team.size
        order = np.argsort(dev.lengths, kind="stable")
        own = Corpus(Chosen(dev.rows, order[self.team.rank :: count]))
        predicted = [np.zeros(0)] * len(order)
        for rank, part in enumerate(self.team.gather(probabilities(self.model, own, self.device, quiet=self.quiet))):
            for at, row in zip(order[rank::count], part, strict=True):
                predicted[at] = row
        return scores(dev, predicted, self.data.classes, positive=self.data.positive, intervals=False)

    def _close_epoch(self) -> None:
        """Score dev, keep the best model, record the epoch, and write a checkpoint to resume from, if one is due."""
        settings = self.config.training
        with self._as_scored():
            dev = self.team.agree(self._dev())
            self.record.close_dev_epoch(
                settings.criterion,
                dev,
                steps=self.stepper.updater.steps,
                table=self.model.words.table.weight,
                save_model=self._save_weights,
                tolerance=self._tolerance(dev) if settings.schedule == "linear" else None,
                augmented=self.augmenter.counts if self.augmenter else None,
            )
        self.labelled.go_to(self.record.epoch, 0)
        self.save(self.record.clock.checkpoint_due)

    def _tolerance(self, dev: dict[str, Interval]) -> float:
        """By how much a later epoch's score may be below the best."""
        settings = self.config.training
        errors = SWINGING if settings.self_training else 1.0
        return tolerance(settings.criterion, dev, len(self.data.dev.rows), errors)

    def _save_weights(self) -> None:
        checkpoint.save_weights(self.folder, self.model, self.data.vocabulary)

    def save_model(self) -> None:
        """Save the weights as they are now, averaged if averaging is on."""
        with self._as_scored():
            self._save_weights()

    @contextmanager
    def _as_scored(self) -> Iterator[None]:
        """The model as it is scored and saved: averaged if averaging is on, with all rows of its table."""
        with self.stepper.updater.averaged(), self.model.words.whole():
            yield

    def _fork_rng(self) -> None:
        self.team.fork_rng(self.device, seed=self.config.training.seed, steps=self.stepper.updater.steps)

    def save(self, written: bool = True) -> None:
        """Write everything needed to resume from here; if not `written`, go on as if it were."""
        self.team.meet(self.device)
        if self.team.first and written:
            with self.record.clock.writing_checkpoint():
                self._write()
        self._written = written
        self._fork_rng()
        self.stepper.refresh()

    def _write(self) -> None:
        extra = self.unlabelled
        state = {
            **self.stepper.state(),
            "labelled": [self.labelled.epoch, self.labelled.at],
            "unlabelled": [extra.epoch, extra.at] if extra else None,
            "augmented": self.augmenter.state() if self.augmenter else None,
            "data": self.data.fingerprint,
        }
        checkpoint.save_checkpoint(self.folder, self.stepper.updater.tensors(), state | self.record.state())

    def result(self, stopped: bool, yardstick: dict[str, Any] | None) -> dict[str, Any]:
        """The result, as written to result.json."""
        steps = self.stepper.updater.steps
        return self.record.result(self.config, self.data, stopped=stopped, steps=steps, yardstick=yardstick)

    def load(self) -> None:
        """Resume from the last checkpoint, or from the start if there is none."""
        self.record.resume(self._restore)

    def _restore(self, tensors: dict[str, torch.Tensor], state: dict[str, Any]) -> None:
        """Take over what `save` wrote."""
        self.record.check_data(state, self.data)
        self.record.load(state | {"epoch": state["labelled"][0]})
        self.stepper.load(tensors, state)
        if self.augmenter:
            self.augmenter.load(state["augmented"])
            self.labelled.read(self.augmenter.joined(self.data.train))
        self.labelled.go_to(*state["labelled"])
        if self.unlabelled:
            self.unlabelled.go_to(*state["unlabelled"])
        self._fork_rng()
