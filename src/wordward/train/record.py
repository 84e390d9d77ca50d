"""How far training has come: losses, epochs, the best of them; what is written and said after each epoch."""

from collections.abc import Callable
from math import sqrt
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from wordward.config.settings import TrainConfig
from wordward.runs import checkpoint, run_folder
from wordward.runs.metrics import Interval
from wordward.runs.yardstick_scores import compared
from wordward.support.console import say
from wordward.support.errors import SettingError
from wordward.train.clock import Clock
from wordward.train.data import Data
from wordward.train.tracking import Tracker, flat, tracked


class Record:
    """The bookkeeping of every training loop.

    `measure` decides which epoch is best: "score", the larger the better, or "perplexity", the smaller. Of several
    processes only the `first` writes. `report_to`: the tracker that is told each epoch, and the `config`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        quiet: bool,
        first: bool = True,
        measure: str = "score",
        config: Any = None,
        report_to: str | None = None,
    ) -> None:
        self.folder, self.quiet, self.first, self.measure = folder, quiet, first, measure
        self._config, self._report_to = config, report_to if first else None
        self._tracker: Tracker | None = None
        self.best: dict[str, Any] = {measure: None, "epoch": 0}
        self.epoch, self.clock = 0, Clock(quiet=quiet)
        self.losses = 0  # added up in this epoch
        self._loss: Tensor | None = None  # their sum, on the device
        self._ahead: dict[str, Any] | None = None  # the line of the model kept, if not reached again after a resume

    def add(self, loss: Tensor) -> None:
        """Add the loss of a step, without waiting for the device."""
        self._loss = loss.detach().clone() if self._loss is None else self._loss + loss.detach()
        self.losses += 1

    @property
    def loss(self) -> float:
        """The mean loss of the epoch so far (waits for the device)."""
        return self._total / max(1, self.losses)

    @property
    def _total(self) -> float:
        return 0.0 if self._loss is None else float(self._loss)

    @property
    def saved(self) -> dict[str, Any]:
        """The line of metrics of the model in the folder, which may be ahead of a checkpoint that was taken over."""
        if self._ahead is not None:
            return self._ahead
        lines, best = run_folder.read_metrics(self.folder), self.best["epoch"]
        return next((line for line in lines if line["epoch"] == best), {"epoch": best})

    def kept(self) -> str:
        """Which model is left of a run that cannot go on, for a message."""
        if not (epoch := self.saved["epoch"]):
            return "no epoch has finished, so there is no model yet"
        return f"the best model so far (epoch {epoch}) is kept in {self.folder}"

    def out_of_patience(self, patience: int) -> bool:
        """Whether the last `patience` epochs were no better than the best before them; says so."""
        out = self.epoch - self.best["epoch"] >= patience
        if out:
            say(f"stopping: no better dev score for {patience} epochs", quiet=self.quiet)
        return out

    def close_epoch(
        self,
        value: float,
        said: str,
        *,
        steps: int,
        scores: dict[str, Any],
        table: Tensor,
        save_model: Callable[[], None],
        tolerance: float | None = None,
        augmented: dict[str, int] | None = None,
    ) -> None:
        """End an epoch: keep the model if `value` is the best so far, append a line of metrics, report it.

        `said` names the value for the terminal, `scores` are the line's own entries, `table` holds the word vectors.
        With a `tolerance`, a later epoch is kept if its value is at most so much below the best. `augmented`: how
        many texts were attacked for this epoch, and added to it.
        """
        self.epoch += 1
        before, loss = self.best[self.measure], self.loss
        better = before is None or (value < before if self.measure == "perplexity" else value > before)
        star = "  best so far"
        if tolerance is not None and before is not None and not better:
            better, value, star = value >= before - tolerance, before, "  as good within chance"
        if better:
            self.best, self._ahead = {self.measure: value, "epoch": self.epoch}, None
        if self.first:
            if better:
                save_model()
            line = {"epoch": self.epoch, "steps": steps, "loss": loss, **scores, "best": better}
            if augmented is not None:
                line["augmented"] = augmented
            line["table_rms"] = float(table.detach().float().square().mean().sqrt())
            line["seconds"] = round(self.clock.seconds, 3)
            run_folder.append_metrics(self.folder, line)
            if self._tracker is not None:
                self._tracker.log({name: float(value) for name, value in flat(line).items()}, steps)
        added = 0 if augmented is None else augmented["added"]
        more = "" if augmented is None else f"  {added:,} adversarial text{'s' * (added != 1)}"
        say(f"epoch {self.epoch:3d}  loss {loss:.4f}  {said}{more}{star if better else ''}", quiet=self.quiet)
        self._loss, self.losses = None, 0

    def close_dev_epoch(self, criterion: str, dev: dict[str, Interval], **rest: Any) -> None:
        """End an epoch by its scores on dev, of which that of the `criterion` decides; `rest` as of `close_epoch`."""
        value = dev[criterion].value
        scores = {"dev": {name: interval.value for name, interval in dev.items()}}
        said = f"dev {criterion} {value:.4f}"
        self.close_epoch(-value if criterion == "error" else value, said, scores=scores, **rest)

    def interrupted(self, fit: Callable[[], None], save_model: Callable[[], None]) -> bool:
        """Train; returns whether Ctrl-C ended it, in which case there is a model even if no epoch has finished."""
        try:
            with tracked(self._report_to, self.folder, self._config) as self._tracker:
                fit()
        except KeyboardInterrupt:
            if self.first and not self.best["epoch"] and self._ahead is None:
                save_model()
            say(
                f"stopped; {self.folder} holds the best model so far; continue with `resume=True`",
                quiet=self.quiet,
            )
            return True
        return False

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {
            "epoch": self.epoch,
            "best": self.best,
            "loss": self._total,
            "counted": self.losses,
            "seconds": self.clock.seconds,
            "metrics": run_folder.read_metrics(self.folder),
            "ahead": self._ahead,
        }

    def load(self, state: dict[str, Any] | None) -> None:
        """Continue from a checkpoint's `state`, or from the start where there is none."""
        lines = run_folder.read_metrics(self.folder)
        done, known = (state["epoch"], state.get("ahead")) if state else (0, None)
        later = [line for line in lines if line.get("best") and line["epoch"] > done]
        self._ahead = later[-1] if later else known
        if self.first:
            run_folder.restore_metrics(self.folder, state["metrics"] if state else [])
        if state is None:
            return
        self.epoch, self.best, self.clock.seconds = state["epoch"], state["best"], state["seconds"]
        self.losses, self._loss = state["counted"], torch.tensor(state["loss"]) if state["counted"] else None

    def resume(self, restore: Callable[[dict[str, Tensor], dict[str, Any]], None]) -> None:
        """Let `restore` take over the last checkpoint of our own loops; from the start where there is none."""
        found = checkpoint.load_checkpoint(self.folder)
        if found is None:
            self.load(None)
            return
        with checkpoint.restoring(self.folder):
            restore(*found)

    def check_data(self, state: dict[str, Any], data: Data) -> None:
        """Refuse to continue with other texts or labels than those that training began with."""
        if state["data"] != data.fingerprint:
            raise run_folder.RunError(
                f"the texts or labels of {self.folder} are not those it was trained on: restore them, or start afresh"
            )

    def result(
        self, config: TrainConfig, data: Data, *, stopped: bool, steps: int, yardstick: dict[str, Any] | None
    ) -> dict[str, Any]:
        """The result of a classifier or tagger, as in result.json; `yardstick`: what its scores stand beside."""
        lines, saved = run_folder.read_metrics(self.folder), self.saved
        result = {
            "method": config.method,
            "texts": {name: len(corpus.rows) for name, corpus in data.corpora.items()},
            "seed": config.training.seed,
            "criterion": config.training.criterion,
            "best_epoch": saved["epoch"],
            "dev": saved.get("dev"),
            "majority_error": round(data.majority_error, 6),
            "yardstick": yardstick,
            "stopped": stopped,
            "epochs": self.epoch,
            "steps": steps,
            "seconds": round(self.clock.seconds, 1),
        }
        if config.training.augment is not None:
            counts = [line["augmented"] for line in lines if "augmented" in line]
            result["augmented"] = {name: sum(count[name] for count in counts) for name in ("attacked", "added")}
        return result


def check_epochs(folder: Path, epochs: int) -> None:
    """Refuse to resume a run for fewer epochs than it has trained: an earlier one could replace the best of them."""
    done = max((line["epoch"] for line in run_folder.read_metrics(folder)), default=0)
    if epochs < done:
        raise SettingError(
            "epochs",
            f"epochs must be at least {done}, as many as {folder} has trained already, but is {epochs}: give more "
            f"to train on, or leave it out; the best model so far is in {folder} as it is",
        )


def tolerance(criterion: str, dev: dict[str, Interval], texts: int, errors: float = 1.0) -> float:
    """By how much a later epoch's score may be below the best, where the learning rate falls to zero.

    Then later is better, but for chance: so many standard `errors` of the difference of two shares of so many texts
    (for an F, of so many tags or entities to find, of which most sentences have one or two), of which one more is
    reckoned wrong and one more right, since no error in few texts is a small error at best.
    """
    share = (dev[criterion].value * texts + 1) / (texts + 2)
    return errors * sqrt(2 * share * (1 - share) / texts)


def say_compared(result: dict[str, Any], config: TrainConfig, *, quiet: bool) -> None:
    """Say how a finished run stands to its yardstick."""
    if not result["stopped"] and (line := compared(result, config)):
        say(line, quiet=quiet)
