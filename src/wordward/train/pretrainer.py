"""Training of a language model on windows of running text; the best model on held-out text is kept."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wordward.config.settings import PretrainConfig
from wordward.datasets import DataError
from wordward.models import LanguageModel
from wordward.runs import checkpoint
from wordward.runs.initialization import from_vectors
from wordward.runs.metrics import perplexity
from wordward.support.console import progress
from wordward.support.device import pick_device
from wordward.support.distributed import ALONE, Team
from wordward.text.corpus import to_device
from wordward.text.loading import file_at_hand
from wordward.text.vocabulary import Vocabulary
from wordward.text.windows import Reader
from wordward.train.graphed import GraphedWindow
from wordward.train.record import Record
from wordward.train.updater import Updater, diverged


class Pretrainer:
    """A language model in training."""

    def __init__(
        self,
        config: PretrainConfig,
        vocabulary: Vocabulary,
        rows: Sequence[np.ndarray],
        held_out: Sequence[np.ndarray],
        folder: Path = Path(),
        *,
        quiet: bool = True,
        team: Team = ALONE,
    ) -> None:
        self.folder, self.quiet = folder, quiet
        self.config, self.vocabulary, self.team = config, vocabulary, team
        self.device = pick_device(config.device)
        torch.manual_seed(config.seed)
        self.model = LanguageModel(len(vocabulary), config.model)
        if config.vectors:
            # Words without a vector stay near zero, the mean of those that have one.
            from_vectors(self.model.words.table, file_at_hand(config.vectors), vocabulary)
        self.model.to(self.device)
        team.same(self.model)
        team.fork_rng(self.device, seed=config.seed, steps=0)
        self.updater = Updater(self.model, self.device, clip=config.clip, precision=config.precision, team=team)
        graphs = self.device.type == "cuda" and team.size == 1
        self.graphed = GraphedWindow(self.model, self.updater) if graphs else None
        self.train_reader = Reader(rows, config.streams, config.window, team=team)
        self.held_reader = Reader(held_out, config.streams, config.window, team=team)
        if len(self.train_reader) == 0 or len(self.held_reader) == 0:
            raise DataError("expected more text to train on; there are only a few words")
        self.tokens = 0
        told: Any = {"config": config, "report_to": config.report_to}
        self.record = Record(folder, quiet=quiet, first=team.first, measure="perplexity", **told)

    def forward(self, ids: Tensor, targets: Tensor, groups: Sequence[Tensor], state: Any) -> tuple[Tensor, Any]:
        """The loss of each word of a window (given on the CPU), and the next state."""
        ids, targets, *groups = (to_device(values, self.device) for values in (ids, targets, *groups))
        with self.updater.autocast():
            return self.model(ids, targets, state, groups)

    def backward(self, ids: Tensor, targets: Tensor, groups: Sequence[Tensor], state: Any) -> tuple[Tensor, Any]:
        """The mean loss of a window, with its gradients in `.grad`, and the next state."""
        if self.graphed is not None and self.graphed.fits(ids):
            return self.graphed(ids, targets, groups, state)
        losses, state = self.forward(ids, targets, groups, state)
        loss = self.updater.backward(self.train_reader.share * losses.mean())
        return loss, tuple(part.detach() for part in state)

    def step(self, ids: Tensor, targets: Tensor, state: Any) -> tuple[Tensor, Any]:
        """One update over a window; returns the mean loss and the next state."""
        total = self.config.epochs * len(self.train_reader)
        left = 1 - self.updater.steps / total if self.config.schedule == "linear" else 1.0
        self.updater.begin(self.config.learning_rate * left)
        loss, state = self.backward(ids, targets, self.model.softmax.groups(targets.flatten()), state)
        self.tokens += self.train_reader.streams * ids.shape[1]
        return self.updater.finish(loss), state

    def _epoch(self, deadline: float | None) -> None:
        """Read all texts once, or until the deadline."""
        state, record = None, self.record
        record.clock.start()
        self.model.train()
        rng = np.random.default_rng([self.config.seed, 3, record.epoch]) if self.config.shuffle else None
        with progress(quiet=self.quiet) as bars:
            name = f"language model, epoch {record.epoch + 1}/{self.config.epochs}"
            words = self.train_reader.streams * (self.train_reader.length - 1)
            bar = bars.add_task(name, total=words, unit="words")
            for ids, targets in self.train_reader.windows(rng):
                loss, state = self.step(ids, targets, state)
                record.add(loss)
                bars.advance(bar, self.train_reader.streams * ids.shape[1])
                if record.losses % self.updater.check_every == 0:
                    self.updater.refuse_broken(record.kept)
                    if self.team.stopping():
                        raise KeyboardInterrupt
                if record.clock.out_of_time(deadline, self.team):
                    break
        self.updater.refuse_broken(record.kept)
        record.clock.stop()

    @torch.no_grad()
    def measure(self) -> float:
        """Perplexity of the held-out texts."""
        self.model.eval()
        total, count, state = torch.zeros((), device=self.device), 0, None
        for ids, targets in self.held_reader.windows(None):
            groups = self.model.softmax.groups(targets.flatten())
            losses, state = self.forward(ids, targets, groups, state)
            total, count = total + losses.sum(), count + losses.numel()
        counted = (float(total), count) if self.held_reader.share else (0.0, 0)
        totals, counts = zip(*self.team.gather(counted), strict=True)
        return perplexity(sum(totals), sum(counts))

    def save(self) -> None:
        """Write everything needed to resume from here."""
        self.team.meet(self.device)
        if self.team.first:
            state = {**self.updater.state(), "tokens": self.tokens, **self.record.state()}
            checkpoint.save_checkpoint(self.folder, self.updater.tensors(), state)
        self._fork_rng()

    def _fork_rng(self) -> None:
        self.team.fork_rng(self.device, seed=self.config.seed, steps=self.updater.steps)

    def load(self) -> None:
        """Resume from the last checkpoint, or from the start if there is none."""
        self.record.resume(self._restore)

    def _restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Take over what `save` wrote."""
        self.record.load({"loss": 0.0, "counted": 0, **state})
        self.updater.load(tensors, state)
        self.tokens = state["tokens"]
        self._fork_rng()

    def fit(self) -> None:
        """Train until the last epoch or minute, keeping the best model."""
        deadline, begun = self.record.clock.deadline(self.config.minutes), self.record.epoch
        while self.record.epoch < self.config.epochs:
            if self.record.epoch and self.record.clock.out_of_time(deadline, self.team):
                self.record.clock.say_out_of_time(self.config.minutes, trained=self.record.epoch > begun)
                return
            self._epoch(deadline)
            self._close_epoch()

    def _close_epoch(self) -> None:
        """Measure the held-out text, keep the best model, record the epoch, and write a checkpoint to resume from."""
        held_out, speed = self.measure(), round(self.tokens / self.record.clock.seconds)
        if not math.isfinite(held_out):
            raise diverged(self.updater.steps, self.record.kept())
        self.record.close_epoch(
            held_out,
            f"held-out perplexity {held_out:.1f}",
            steps=self.updater.steps,
            scores={"perplexity": held_out, "words_per_second": speed},
            table=self.model.words.table.weight,
            save_model=self.save_model,
        )
        self.save()

    def save_model(self) -> None:
        """Save the weights as they are now."""
        checkpoint.save_weights(self.folder, self.model, self.vocabulary)

    def result(self, stopped: bool) -> dict[str, Any]:
        """The result, as written to result.json."""
        record = self.record
        return {
            "perplexity": record.best["perplexity"],
            "best_epoch": record.best["epoch"],
            "epochs": record.epoch,
            "words": self.tokens,
            "vocabulary": len(self.vocabulary),
            "seed": self.config.seed,
            "seconds": round(record.clock.seconds, 1),
            "stopped": stopped,
        }
