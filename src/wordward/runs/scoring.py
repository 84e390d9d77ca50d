"""What a model predicts for the texts of a corpus, and how much of it is right."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

from wordward.perturbation.tap import evaluating
from wordward.runs.entities import by_type, entity_scores, mark_entities
from wordward.runs.metrics import ClassScores, Interval, error_rate, macro_f1, precision_recall_f
from wordward.support.console import progress
from wordward.text.corpus import Corpus

EVALUATION_BATCH = 32


@dataclass(frozen=True)
class Evaluation:
    """The scores of a run on some texts, and what it got wrong."""

    source: str
    texts: int
    scores: dict[str, Interval]  # by name, as `wordward evaluate` prints them
    confusion: np.ndarray  # (true, predicted), texts or tokens
    wrong: np.ndarray  # (texts or tokens,) bool
    entities: dict[str, ClassScores] = field(default_factory=dict)  # by type, where tags mark entities


@torch.no_grad()
def probabilities(model: nn.Module, corpus: Corpus, device: torch.device, *, quiet: bool = True) -> list[np.ndarray]:
    """p(Y|X) of each text in its own order: (classes,), or (time, classes) for a tagger."""
    by_text: list[np.ndarray] = [np.zeros(0)] * len(corpus.rows)
    with evaluating(model), progress(quiet=quiet) as bars:
        bar = bars.add_task("scoring", total=len(corpus.rows), unit="texts")
        for index, batch in corpus.in_order(EVALUATION_BATCH, device):
            found = model(batch.ids, batch.mask).float().softmax(-1).cpu().numpy()
            for at, of_text in zip(index, found, strict=True):
                by_text[at] = of_text if of_text.ndim == 1 else corpus.of_row(at, of_text)
            bars.advance(bar, len(index))
    return by_text


def scores(
    corpus: Corpus,
    found: Sequence[np.ndarray],
    classes: Sequence[str],
    *,
    positive: int | None,
    intervals: bool = True,
) -> dict[str, Interval]:
    """Error rate and macro-F1 over texts or tokens; with a positive class also precision, recall, F0.5 of it.

    Where tags mark entities: precision, recall and F1 of exact spans as well.
    """
    resamples = 1000 if intervals else 1
    assert corpus.labels is not None
    gold = [np.atleast_1d(label) for label in corpus.labels]
    predicted = [np.atleast_1d(each.argmax(-1)) for each in found]
    flat_gold, flat_predicted = np.concatenate(gold), np.concatenate(predicted)
    measured = {
        "error": error_rate(flat_gold, flat_predicted),
        "macro_f1": macro_f1(flat_gold, flat_predicted, range(len(classes)), resamples=resamples),
    }
    if positive is not None:
        precision, recall, f = precision_recall_f(gold, predicted, positive, resamples=resamples)
        measured |= {"precision": precision, "recall": recall, "f0.5": f}
    if _tagged(corpus) and mark_entities(classes):
        names = _names(gold, classes), _names(predicted, classes)
        precision, recall, f = entity_scores(*names, resamples=resamples)
        measured |= {"entity_precision": precision, "entity_recall": recall, "entity_f1": f}
    if intervals:
        return measured
    return {name: Interval(interval.value, interval.value, interval.value) for name, interval in measured.items()}


def evaluation(
    corpus: Corpus, found: Sequence[np.ndarray], classes: Sequence[str], *, positive: int | None, source: str
) -> Evaluation:
    """The scores of what was found for a labelled corpus, and the predictions behind them."""
    measured = scores(corpus, found, classes, positive=positive)
    assert corpus.labels is not None
    gold = np.concatenate([np.atleast_1d(label) for label in corpus.labels])
    predicted = np.concatenate([np.atleast_1d(each.argmax(-1)) for each in found])
    confusion = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(confusion, (gold, predicted), 1)
    entities = {}
    if "entity_f1" in measured:
        said = [each.argmax(-1) for each in found]
        entities = by_type(_names(corpus.labels, classes), _names(said, classes))  # type: ignore[arg-type]
    return Evaluation(source, len(corpus.rows), measured, confusion, gold != predicted, entities)


def _tagged(corpus: Corpus) -> bool:
    """Whether there is a label for each token."""
    return corpus.labels is not None and len(corpus.labels) > 0 and np.ndim(corpus.labels[0]) == 1


def _names(sentences: Sequence[np.ndarray], classes: Sequence[str]) -> list[list[str]]:
    """Tags by name."""
    return [[classes[int(tag)] for tag in tags] for tags in sentences]
