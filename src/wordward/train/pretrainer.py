"""Training of a language model on windows of running text; the best model on held-out text is kept."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wordward.config.settings import PretrainConfig
from wordward.datasets import DataError
from wordward.runs import checkpoint, run_folder
from wordward.runs.initial import from_vectors
from wordward.runs.metrics import perplexity
from wordward.runs.models import LanguageModel
from wordward.support.console import progress, say
from wordward.support.device import pick_device
from wordward.support.distributed import ALONE, Team
from wordward.text.chosen import file_at_hand
from wordward.text.corpus import to_device
from wordward.text.vocabulary import Vocabulary
from wordward.text.windows import Reader
from wordward.train.graphed import GraphedWindow
from wordward.train.step import Updater


class Pretrainer:
    """A language model in training."""

    def __init__(
        self,
        config: PretrainConfig,
        vocabulary: Vocabulary,
        rows: Sequence[np.ndarray],
        held_out: Sequence[np.ndarray],
        *,
        team: Team = ALONE,
    ) -> None:
        self.config, self.vocabulary, self.team = config, vocabulary, team
        self.device = pick_device(config.device)
        torch.manual_seed(config.seed)
        self.model = LanguageModel(len(vocabulary), config.model)
        if config.vectors:
            # Words without a vector stay near zero, the mean of those that have one.
            from_vectors(self.model.words.table, file_at_hand(config.vectors), vocabulary)
        self.model.to(self.device)
        team.same(self.model)
        team.part_ways(self.device, seed=config.seed, steps=0)
        self.updater = Updater(
            self.model, self.device, clip=config.clip, precision=config.precision, team=team
        )
        graphs = self.device.type == "cuda" and team.size == 1
        self.graphed = GraphedWindow(self.model, self.updater) if graphs else None
        self.train_reader = Reader(rows, config.streams, config.window, team=team)
        self.held_reader = Reader(held_out, config.streams, config.window, team=team)
        if len(self.train_reader) == 0 or len(self.held_reader) == 0:
            raise DataError("expected more text to train on; there are only a few words")
        self.epoch = self.tokens = 0
        self.best: dict[str, Any] = {"perplexity": None, "epoch": 0}
        self.seconds = 0.0

    def forward(
        self, ids: Tensor, targets: Tensor, groups: Sequence[Tensor], state: Any
    ) -> tuple[Tensor, Any]:
        """The loss of each word of a window (given on the CPU), and the next state."""
        ids, targets, *groups = (to_device(values, self.device) for values in (ids, targets, *groups))
        with self.updater.autocast():
            return self.model(ids, targets, state, groups)

    def backward(
        self, ids: Tensor, targets: Tensor, groups: Sequence[Tensor], state: Any
    ) -> tuple[Tensor, Any]:
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

    def run_epoch(self, *, deadline: float | None, quiet: bool) -> float:
        """Read all texts once (or until the deadline); returns the mean loss."""
        started, state = time.monotonic(), None
        total, count = torch.zeros((), device=self.device), 0
        self.model.train()
        rng = np.random.default_rng([self.config.seed, 3, self.epoch]) if self.config.shuffle else None
        with progress(quiet=quiet) as bars:
            name = f"language model, epoch {self.epoch + 1}/{self.config.epochs}"
            words = self.train_reader.streams * (self.train_reader.length - 1)
            bar = bars.add_task(name, total=words, unit="words")
            for ids, targets in self.train_reader.windows(rng):
                loss, state = self.step(ids, targets, state)
                total, count = total + loss, count + 1
                bars.advance(bar, self.train_reader.streams * ids.shape[1])
                if count % self.updater.check_every == 0 and self.team.stopping():
                    raise KeyboardInterrupt
                if deadline is not None and self.team.agree(time.monotonic() > deadline):
                    break
        mean = float(total) / count
        self.seconds += time.monotonic() - started
        self.epoch += 1
        best = self.best["epoch"]
        kept = f"the best model so far (epoch {best}) is kept" if best else ""
        self.updater.refuse_broken(kept or "no epoch has finished, so there is no model yet")
        return mean

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

    def save(self, folder: Path) -> None:
        """Write everything needed to resume from here."""
        self.team.meet(self.device)
        if self.team.first:
            self._write(folder)
        self.team.part_ways(self.device, seed=self.config.seed, steps=self.updater.steps)

    def _write(self, folder: Path) -> None:
        state = {
            "steps": self.updater.steps,
            "epoch": self.epoch,
            "tokens": self.tokens,
            "best": self.best,
            "seconds": self.seconds,
            "scaler": self.updater.scaler.state_dict(),
            "metrics": run_folder.read_metrics(folder),
        }
        checkpoint.save_checkpoint(folder, checkpoint.pack(self.model, self.updater.optimizer), state)

    def load(self, folder: Path) -> None:
        """Resume from the last checkpoint, or from the start if there is none."""
        found = checkpoint.load_checkpoint(folder)
        if self.team.first:
            run_folder.restore_metrics(folder, found[1]["metrics"] if found else [])
        if found is None:
            return
        tensors, state = found
        checkpoint.unpack(tensors, self.model, self.updater.optimizer)
        self.updater.steps, self.epoch, self.tokens = state["steps"], state["epoch"], state["tokens"]
        self.best, self.seconds = state["best"], state["seconds"]
        if state["scaler"]:  # none was needed before, on a device that computes in fp32
            self.updater.scaler.load_state_dict(state["scaler"])
        self.team.part_ways(self.device, seed=self.config.seed, steps=self.updater.steps)

    def fit(self, folder: Path, *, quiet: bool) -> None:
        """Train until the last epoch or minute, keeping the best model."""
        minutes = self.config.minutes
        deadline = None if minutes is None else time.monotonic() + 60 * minutes - self.seconds
        while self.epoch < self.config.epochs:
            if deadline is not None and self.team.agree(time.monotonic() >= deadline):
                return
            loss = self.run_epoch(deadline=deadline, quiet=quiet)
            held_out = self.measure()
            better = self.best["perplexity"] is None or held_out < self.best["perplexity"]
            if better:
                self.best = {"perplexity": held_out, "epoch": self.epoch}
            if self.team.first:
                self._record(folder, loss, held_out, better)
            say(f"epoch {self.epoch:3d}  loss {loss:.4f}  held-out perplexity {held_out:.1f}", quiet=quiet)
            self.save(folder)

    def _record(self, folder: Path, loss: float, held_out: float, better: bool) -> None:
        """Save the weights if they are the best so far, and append a line of metrics."""
        if better:
            checkpoint.save_weights(folder, self.model, self.vocabulary)
        record = {
            "epoch": self.epoch,
            "steps": self.updater.steps,
            "loss": loss,
            "perplexity": held_out,
            "best": better,
            "table_rms": float(self.model.words.table.weight.detach().square().mean().sqrt()),
            "words_per_second": round(self.tokens / self.seconds),
            "seconds": round(self.seconds, 3),
        }
        run_folder.append_metrics(folder, record)

    def result(self, stopped: bool) -> dict[str, Any]:
        """The outcome, as written to result.json."""
        return {
            "perplexity": self.best["perplexity"],
            "best_epoch": self.best["epoch"],
            "epochs": self.epoch,
            "words": self.tokens,
            "vocabulary": len(self.vocabulary),
            "seed": self.config.seed,
            "seconds": round(self.seconds, 1),
            "stopped": stopped,
        }
