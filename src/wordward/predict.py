"""A trained run at work: predictions for texts and corpora, and their scores."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from wordward import checkpoint
from wordward.config import TextSettings, TrainConfig
from wordward.corpus import Corpus, encode, encode_words
from wordward.datasets import Example
from wordward.metrics import Interval, error_rate, macro_f1, precision_recall_f
from wordward.models import Classifier, Tagger
from wordward.text import SPECIALS, Vocabulary
from wordward.tokens import words_of

EVALUATION_BATCH = 32


def pick_device(name: str) -> torch.device:
    """The device of that name; auto takes the fastest there is."""
    if name == "auto":
        name = _devices()[0]
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = re.split(r"\n|[.;] |\.$", str(error))[0]
        if reason.startswith("Expected one of"):  # torch lists all that it was ever built for
            reason = "there is no such device"
        choices = " or ".join(_devices())
        raise ValueError(f"device {name!r} cannot be used here ({reason}): choose {choices}") from None
    return device


def _devices() -> list[str]:
    """The devices there are, the fastest first."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    return [name for name, usable in there.items() if usable]


@dataclass(frozen=True)
class Run:
    """A trained model with all it takes to read a text."""

    folder: Path
    config: TrainConfig
    vocabulary: Vocabulary
    labels: tuple[str, ...]
    model: Classifier | Tagger
    device: torch.device

    @property
    def positive(self) -> int | None:
        """The class whose F0.5 counts, if one does."""
        name = self.config.training.positive
        return self.labels.index(name) if name in self.labels else None

    @property
    def tagging(self) -> bool:
        """Whether it gives a tag per token rather than a label per text."""
        return self.config.task == "tag"

    @property
    def text(self) -> TextSettings:
        """How texts are read; a tagger's are cut in training only, since every token is to get a tag."""
        return replace(self.config.text, max_length=None) if self.tagging else self.config.text

    def words(self, example: Example) -> list[str]:
        """The words of an example as this run reads them, before the cut to max_length."""
        return words_of(self._tokenised(example), self.text)

    def encode(self, examples: Sequence[Example], *, labelled: bool, source: str = "") -> Corpus:
        """Examples as this run reads them."""
        classes = self.labels if labelled else None
        read = [self._tokenised(example) for example in examples]
        return encode(read, self.vocabulary, self.text, classes, tagging=self.tagging, source=source)

    def predict(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        """Label and probabilities of each text; for a tagger of each token."""
        words = [self.words(Example(text)) for text in texts]
        rows = [encode_words(each, self.vocabulary, self.text, eos=not self.tagging) for each in words]
        filled = [at for at, each in enumerate(words) if each]
        found = probabilities(self.model, Corpus([rows[at] for at in filled]), self.device)
        records = [self._record(text, None, [], np.zeros(0, np.int32)) for text in texts]
        for at, chances in zip(filled, found, strict=True):
            records[at] = self._record(texts[at], chances, words[at], rows[at])
        return records

    def _tokenised(self, example: Example) -> Example:
        """A tagger's text comes tokenised: as given, else by blanks."""
        if not self.tagging or example.tokens is not None:
            return example
        return replace(example, tokens=tuple(example.text.split()))

    def _record(
        self, text: str, chances: np.ndarray | None, words: list[str], row: np.ndarray
    ) -> dict[str, Any]:
        if chances is None:
            return {"text": text, "error": "the text is empty: no words to read"}
        record: dict[str, Any] = {"text": text}
        if self.tagging:
            record["tokens"] = [
                {"token": word, "label": self.labels[int(each.argmax())], "probabilities": self._named(each)}
                for word, each in zip(words, chances, strict=True)
            ]
        else:
            record |= {"label": self.labels[int(chances.argmax())], "probabilities": self._named(chances)}
        if not (row >= len(SPECIALS)).any():
            record["warning"] = "no word of this text is in the vocabulary"
        return record

    def _named(self, chances: np.ndarray) -> dict[str, float]:
        return {label: round(float(chance), 6) for label, chance in zip(self.labels, chances, strict=True)}


def load_run(path: str | Path, *, device: str = "auto") -> Run:
    """The best model of a run folder, ready to predict."""
    config = checkpoint.load_config(path, TrainConfig)
    vocabulary, labels = checkpoint.load_vocabulary(path), checkpoint.load_labels(path)
    kind = Tagger if config.task == "tag" else Classifier
    model = kind(len(vocabulary), len(labels), config.model)
    checkpoint.load_weights(path, model, vocabulary)
    where = pick_device(device)
    return Run(Path(path), config, vocabulary, labels, model.to(where).eval(), where)


@torch.no_grad()
def probabilities(model: nn.Module, corpus: Corpus, device: torch.device) -> list[np.ndarray]:
    """p(Y|X) of each text in its own order: (classes,), or (time, classes) for a tagger."""
    training = model.training
    model.eval()
    found: list[np.ndarray] = [np.zeros(0)] * len(corpus.rows)
    for index, batch in corpus.in_order(EVALUATION_BATCH, device):
        chances = model(batch.ids, batch.mask).float().softmax(-1).cpu().numpy()
        for at, chance in zip(index, chances, strict=True):
            found[at] = chance if chance.ndim == 1 else chance[: len(corpus.rows[at])]
    model.train(training)
    return found


def scores(
    corpus: Corpus,
    found: Sequence[np.ndarray],
    classes: int,
    *,
    positive: int | None,
    resamples: int = 1000,
    intervals: bool = True,
) -> dict[str, Interval]:
    """Error rate and macro-F1 over texts or tokens; with a positive class also precision, recall, F0.5."""
    resamples = resamples if intervals else 1
    assert corpus.labels is not None
    gold = [np.atleast_1d(label) for label in corpus.labels]
    said = [np.atleast_1d(chance.argmax(-1)) for chance in found]
    flat_gold, flat_said = np.concatenate(gold), np.concatenate(said)
    measured = {
        "error": error_rate(flat_gold, flat_said),
        "macro_f1": macro_f1(flat_gold, flat_said, range(classes), resamples=resamples),
    }
    if positive is not None:
        precision, recall, f = precision_recall_f(gold, said, positive, resamples=resamples)
        measured |= {"precision": precision, "recall": recall, "f0.5": f}
    if intervals:
        return measured
    return {name: Interval(each.value, each.value, each.value) for name, each in measured.items()}


def evaluate(run: Run, corpus: Corpus) -> dict[str, Interval]:
    """The scores of a run on a labelled corpus."""
    return scores(
        corpus, probabilities(run.model, corpus, run.device), len(run.labels), positive=run.positive
    )
