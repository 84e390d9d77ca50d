"""What a model predicts for the texts of a corpus, and how much of it is right."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from wordward.support.console import progress
from wordward.text.corpus import Corpus
from wordward.runs.metrics import Interval, error_rate, macro_f1, precision_recall_f
from wordward.perturbation.tap import evaluating

EVALUATION_BATCH = 32


@torch.no_grad()
def probabilities(
    model: nn.Module, corpus: Corpus, device: torch.device, *, quiet: bool = True
) -> list[np.ndarray]:
    """p(Y|X) of each text in its own order: (classes,), or (time, classes) for a tagger."""
    by_text: list[np.ndarray] = [np.zeros(0)] * len(corpus.rows)
    with evaluating(model), progress(quiet=quiet) as bars:
        bar = bars.add_task("scoring", total=len(corpus.rows), unit="texts")
        for index, batch in corpus.in_order(EVALUATION_BATCH, device):
            chances = model(batch.ids, batch.mask).float().softmax(-1).cpu().numpy()
            for at, chance in zip(index, chances, strict=True):
                by_text[at] = chance if chance.ndim == 1 else corpus.of_row(at, chance)
            bars.advance(bar, len(index))
    return by_text


def scores(
    corpus: Corpus,
    found: Sequence[np.ndarray],
    classes: int,
    *,
    positive: int | None,
    intervals: bool = True,
) -> dict[str, Interval]:
    """Error rate and macro-F1 over texts or tokens; with a positive class also precision, recall, F0.5."""
    resamples = 1000 if intervals else 1
    assert corpus.labels is not None
    gold = [np.atleast_1d(label) for label in corpus.labels]
    predicted = [np.atleast_1d(chance.argmax(-1)) for chance in found]
    flat_gold, flat_predicted = np.concatenate(gold), np.concatenate(predicted)
    measured = {
        "error": error_rate(flat_gold, flat_predicted),
        "macro_f1": macro_f1(flat_gold, flat_predicted, range(classes), resamples=resamples),
    }
    if positive is not None:
        precision, recall, f = precision_recall_f(gold, predicted, positive, resamples=resamples)
        measured |= {"precision": precision, "recall": recall, "f0.5": f}
    if intervals:
        return measured
    return {
        name: Interval(interval.value, interval.value, interval.value) for name, interval in measured.items()
    }
