"""Language-model pre-training: the LSTM reads running text, the best on held-out text is kept."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wordward import checkpoint
from wordward.config import PretrainConfig
from wordward.console import progress, say
from wordward.corpora import open_corpus
from wordward.corpus import encode
from wordward.datasets import DataError, read, split
from wordward.initial import from_vectors
from wordward.metrics import perplexity
from wordward.models import LanguageModel
from wordward.predict import pick_device
from wordward.step import Updater
from wordward.text import Vocabulary
from wordward.tokens import words_of


class Reader:
    """Texts one after the other, cut into `streams` that are read side by side."""

    def __init__(self, rows: Sequence[np.ndarray], streams: int, window: int) -> None:
        tokens = sum(map(len, rows))
        self.rows, self.window = rows, window
        self.streams = min(streams, max(1, tokens // 2))
        self.length = tokens // self.streams  # words of a stream, the target of the last included

    def __len__(self) -> int:
        """Windows in an epoch."""
        return math.ceil((self.length - 1) / self.window)

    def windows(self, rng: np.random.Generator | None) -> Iterator[tuple[Tensor, Tensor]]:
        """ids and targets, (streams, window) each, the texts in random order where `rng` is given."""
        order = np.arange(len(self.rows)) if rng is None else rng.permutation(len(self.rows))
        text = np.concatenate([self.rows[int(at)] for at in order])[: self.streams * self.length]
        lanes = torch.from_numpy(text.astype(np.int64)).view(self.streams, self.length)
        for start in range(0, self.length - 1, self.window):
            end = min(start + self.window, self.length - 1)
            yield lanes[:, start:end], lanes[:, start + 1 : end + 1]


class Pretrainer:
    """A language model in training."""

    def __init__(
        self,
        config: PretrainConfig,
        vocabulary: Vocabulary,
        rows: Sequence[np.ndarray],
        held_out: Sequence[np.ndarray],
    ) -> None:
        self.config, self.vocabulary = config, vocabulary
        self.device = pick_device(config.device)
        torch.manual_seed(config.seed)
        self.model = LanguageModel(len(vocabulary), config.model)
        if config.vectors:
            # A word without a vector starts near zero, which is the mean of those that have one.
            from_vectors(self.model.words.table, config.vectors, vocabulary)
        self.model.to(self.device)
        self.updater = Updater(self.model, self.device, clip=config.clip, precision=config.precision)
        self.train_reader = Reader(rows, config.streams, config.window)
        self.held_reader = Reader(held_out, config.streams, config.window)
        if len(self.train_reader) == 0 or len(self.held_reader) == 0:
            raise DataError("expected more text to learn from; there are only a few words")
        self.epoch = self.tokens = 0
        self.best: dict[str, Any] = {"perplexity": None, "epoch": 0}
        self.seconds = 0.0

    def step(self, ids: Tensor, targets: Tensor, state: Any) -> tuple[Tensor, Any]:
        """One update over a window; the mean loss and the state to go on from."""
        total = self.config.epochs * len(self.train_reader)
        left = 1 - self.updater.steps / total if self.config.schedule == "linear" else 1.0
        self.updater.begin(self.config.learning_rate * left)
        with self.updater.autocast():
            each, state = self.model(ids, targets, state)
        loss = self.updater.backward(each.mean())
        self.updater.finish(loss)
        self.tokens += ids.numel()
        return loss, tuple(part.detach() for part in state)

    def run_epoch(self, *, deadline: float | None, quiet: bool) -> float:
        """Read all texts once (or until the deadline); the mean loss."""
        started, state = time.monotonic(), None
        total, count = torch.zeros((), device=self.device), 0
        self.model.train()
        rng = np.random.default_rng([self.config.seed, 3, self.epoch])
        with progress(quiet=quiet) as bars:
            name = f"language model, epoch {self.epoch + 1}/{self.config.epochs}"
            words = self.train_reader.streams * (self.train_reader.length - 1)
            bar = bars.add_task(name, total=words, unit="words")
            for ids, targets in self.train_reader.windows(rng):
                loss, state = self.step(ids.to(self.device), targets.to(self.device), state)
                total, count = total + loss, count + 1
                bars.advance(bar, ids.numel())
                if deadline is not None and time.monotonic() > deadline:
                    break
        mean = float(total) / count
        self.seconds += time.monotonic() - started
        self.epoch += 1
        best = self.best["epoch"]
        kept = f"the best model so far (epoch {best}) is kept" if best else ""
        self.updater.refuse_broken(kept or "no epoch was finished, so there is no model yet")
        return mean

    @torch.no_grad()
    def measure(self) -> float:
        """Perplexity of the held-out texts."""
        self.model.eval()
        total, count, state = 0.0, 0, None
        for ids, targets in self.held_reader.windows(None):
            with self.updater.autocast():
                each, state = self.model(ids.to(self.device), targets.to(self.device), state)
            total, count = total + float(each.sum()), count + each.numel()
        return perplexity(total, count)

    def save(self, folder: Path) -> None:
        """Keep all it takes to go on from here."""
        state = {
            "steps": self.updater.steps,
            "epoch": self.epoch,
            "tokens": self.tokens,
            "best": self.best,
            "seconds": self.seconds,
            "scaler": self.updater.scaler.state_dict(),
            "metrics": len(checkpoint.read_metrics(folder)),
        }
        checkpoint.save_checkpoint(folder, checkpoint.pack(self.model, self.updater.optimizer), state)

    def load(self, folder: Path) -> None:
        """Go on from the last checkpoint; from the start where there is none."""
        found = checkpoint.load_checkpoint(folder)
        if found is None:
            checkpoint.keep_metrics(folder, 0)
            return
        tensors, state = found
        checkpoint.unpack(tensors, self.model, self.updater.optimizer)
        self.updater.steps, self.epoch, self.tokens = state["steps"], state["epoch"], state["tokens"]
        self.best, self.seconds = state["best"], state["seconds"]
        self.updater.scaler.load_state_dict(state["scaler"])
        checkpoint.keep_metrics(folder, state["metrics"])

    def fit(self, folder: Path, *, quiet: bool) -> None:
        """Read the texts again and again until the last epoch or minute, the best model kept."""
        minutes = self.config.minutes
        deadline = None if minutes is None else time.monotonic() + 60 * minutes - self.seconds
        while self.epoch < self.config.epochs and (deadline is None or time.monotonic() < deadline):
            loss = self.run_epoch(deadline=deadline, quiet=quiet)
            held_out = self.measure()
            better = self.best["perplexity"] is None or held_out < self.best["perplexity"]
            if better:
                self.best = {"perplexity": held_out, "epoch": self.epoch}
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
            checkpoint.append_metrics(folder, record)
            say(f"epoch {self.epoch:3d}  loss {loss:.4f}  held-out perplexity {held_out:.1f}", quiet=quiet)
            self.save(folder)


def pretrain(
    config: PretrainConfig, out: str | Path, *, force: bool = False, resume: bool = False, quiet: bool = False
) -> dict[str, Any]:
    """Train a language model into the folder `out`; what came out."""
    folder = Path(out)
    if resume:
        kept = checkpoint.load_config(folder, PretrainConfig)
        given = {name: getattr(config, name) for name in ("epochs", "device")}
        config = replace(kept, **{n: v for n, v in given.items() if v != getattr(PretrainConfig(), n)})
    else:
        checkpoint.check_free(folder, force=force, inputs=config.texts)
    vocabulary, rows, held_out = _texts(config, quiet=quiet)
    trainer = Pretrainer(config, vocabulary, rows, held_out)
    if resume:
        if checkpoint.load_vocabulary(folder).fingerprint != vocabulary.fingerprint:
            raise checkpoint.RunError(
                f"{folder} has another vocabulary than its texts give now: have they changed?"
            )
        trainer.load(folder)
    else:
        checkpoint.create(folder, force=force)
        checkpoint.save_settings(folder, config, vocabulary)
    stopped = False
    try:
        trainer.fit(folder, quiet=quiet)
    except KeyboardInterrupt:
        stopped = True
        if not trainer.best["epoch"]:
            checkpoint.save_weights(folder, trainer.model, vocabulary)
        say(f"stopped; {folder} holds the best model so far and goes on with --resume", quiet=quiet)
    result = {
        "perplexity": trainer.best["perplexity"],
        "best_epoch": trainer.best["epoch"],
        "epochs": trainer.epoch,
        "words": trainer.tokens,
        "vocabulary": len(vocabulary),
        "seed": config.seed,
        "seconds": round(trainer.seconds, 1),
        "stopped": stopped,
    }
    return checkpoint.save_result(folder, result, trainer.device)


def _texts(
    config: PretrainConfig, *, quiet: bool
) -> tuple[Vocabulary, Sequence[np.ndarray], Sequence[np.ndarray]]:
    """The vocabulary, the texts to read, and those held out to choose the best epoch."""
    if config.corpus:
        encoded = open_corpus(config.corpus, config.text, limit=config.limit, quiet=quiet)
        rows = (encoded.splits["train"] + encoded.splits["unlabelled"]).rows
        order = np.random.default_rng(config.seed).permutation(len(rows))
        cut = max(1, round(config.held_out_share * len(rows)))
        return encoded.vocabulary, [rows[at] for at in order[cut:]], [rows[at] for at in order[:cut]]
    kind = None if config.format == "auto" else config.format
    examples = [
        example
        for path in config.texts
        for example in read(path, text_column=config.text_column, labelled=False, format=kind)
    ]
    if config.limit is not None and len(examples) > config.limit:
        examples = split(examples, config.limit / len(examples), config.seed)[1]
    kept, held_out = split(examples, config.held_out_share, config.seed)
    vocabulary = Vocabulary.build(
        (words_of(example, config.text) for example in kept),
        min_documents=config.text.min_documents,
        max_size=config.text.max_vocabulary,
    )
    rows, held = (encode(some, vocabulary, config.text).rows for some in (kept, held_out))
    return vocabulary, rows, held
