"""What a model predicts for the texts of a corpus, and how much of it is right."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from wordward.perturbation.modes import evaluating
from wordward.runs.entities import by_type, entity_scores, mark_entities
from wordward.runs.metrics import (
    ClassScores,
    Interval,
    error_rate,
    f_of_counts,
    macro_f1,
    mean_f1,
    precision_recall_f,
    scores_of_counts,
    share,
)
from wordward.support.console import progress
from wordward.support.errors import DataError
from wordward.text.batches import small_batches
from wordward.text.corpus import Corpus

EVALUATION_BATCH = 32
TEXTS, TOKENS = 256, 1 << 16  # read at a time by `logits_of`, at most, unless told otherwise


@dataclass(frozen=True)
class Evaluation:
    """The scores of a run on some texts, and what it got wrong."""

    source: str
    texts: int
    scores: dict[str, Interval]  # by name, as `wordward evaluate` prints them
    confusion: np.ndarray  # (true, predicted), texts or tokens
    wrong: np.ndarray  # (texts or tokens,) bool
    entities: dict[str, ClassScores] = field(default_factory=dict)  # by type, where tags mark entities
    several: dict[str, ClassScores] = field(default_factory=dict)  # by label, where texts may have several
    unknown: tuple[str, ...] = ()  # true tags that the model does not know, after its labels in the confusion

    @property
    def majority_error(self) -> float:
        """The error of always giving the most frequent label of these texts."""
        of_label = self.confusion.sum(1)
        return float(1 - of_label.max() / of_label.sum())


@torch.no_grad()
def probabilities(
    model: nn.Module, corpus: Corpus, device: torch.device, *, several: bool = False, quiet: bool = True
) -> list[np.ndarray]:
    """p(Y|X) of each text in its own order: (classes,), or (time, classes) for a tagger.

    `several`: each logit is a label's own yes or no, so that probabilities do not add up to 1.
    """
    by_text: list[np.ndarray] = [np.zeros(0)] * len(corpus.rows)
    with evaluating(model), progress(quiet=quiet) as bars:
        bar = bars.add_task("scoring", total=len(corpus.rows), unit="texts")
        for index, batch in corpus.in_order(EVALUATION_BATCH, device):
            logits = model(batch.ids, batch.mask).float()
            found = (logits.sigmoid() if several else logits.softmax(-1)).cpu().numpy()
            for at, of_text in zip(index, found, strict=True):
                by_text[at] = of_text if of_text.ndim == 1 else corpus.of_row(at, of_text)
            bars.advance(bar, len(index))
    return by_text


@torch.no_grad()
def logits_of(model: nn.Module, corpus: Corpus, device: torch.device, tokens: int = TOKENS) -> list[np.ndarray]:
    """The logits of each text in its own order: (classes,), or (time, classes) for a tagger.

    `tokens`: how many are read at a time, at most.
    """
    by_text: list[np.ndarray] = [np.zeros(0)] * len(corpus.rows)
    for index in small_batches(corpus.lengths, TEXTS, tokens):
        batch = corpus.batch(index, device)
        for at, logits in zip(index, model(batch.ids, batch.mask).float().cpu().numpy(), strict=True):
            by_text[at] = logits if logits.ndim == 1 else logits[: len(corpus.rows[at])]
    return by_text


def log_odds(logits: Tensor) -> Tensor:
    """The log-odds (..., classes) of each class against all others together."""
    log_p = logits.double().log_softmax(-1)
    classes = range(log_p.shape[-1])
    others = [log_p[..., [other for other in classes if other != each]].logsumexp(-1) for each in classes]
    return log_p - torch.stack(others, -1)


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
    resamples, names = 1000 if intervals else 1, (*classes, *corpus.unknown)
    gold, predicted = _answers(corpus, found)
    flat_gold, flat_predicted = np.concatenate(gold), np.concatenate(predicted)
    measured = {
        "error": error_rate(flat_gold, flat_predicted),
        "macro_f1": macro_f1(flat_gold, flat_predicted, range(len(names)), resamples=resamples),
    }
    if positive is not None:
        precision, recall, f = precision_recall_f(gold, predicted, positive, resamples=resamples)
        measured |= {"precision": precision, "recall": recall, "f0.5": f}
    if _tagged(corpus) and mark_entities(classes):
        both = _names(gold, names), _names(predicted, names)
        precision, recall, f = entity_scores(*both, resamples=resamples)
        measured |= {"entity_precision": precision, "entity_recall": recall, "entity_f1": f}
    if intervals:
        return measured
    return {name: Interval(interval.value, interval.value, interval.value) for name, interval in measured.items()}


def evaluation(
    corpus: Corpus, found: Sequence[np.ndarray], classes: Sequence[str], *, positive: int | None, source: str
) -> Evaluation:
    """The scores of what was found for a labelled corpus, and the predictions behind them."""
    measured = scores(corpus, found, classes, positive=positive)
    each_gold, each_predicted = _answers(corpus, found)
    gold, predicted = np.concatenate(each_gold), np.concatenate(each_predicted)
    names = *classes, *corpus.unknown
    confusion = np.zeros((len(names), len(names)), dtype=np.int64)
    np.add.at(confusion, (gold, predicted), 1)
    entities = {}
    if "entity_f1" in measured:
        entities = by_type(_names(each_gold, names), _names(each_predicted, names))
    wrong = gold != predicted
    return Evaluation(source, len(corpus.rows), measured, confusion, wrong, entities, unknown=corpus.unknown)


def several_evaluation(gold: np.ndarray, found: np.ndarray, classes: Sequence[str], *, source: str) -> Evaluation:
    """The scores of several labels at once, (texts, labels) bool each: all labels right, and F1 over labels.

    The confusion is that of no and yes over all labels; a text is wrong if one of its labels is.
    """
    if not len(gold):
        raise DataError("expected texts to score the model on; there are none", source)
    hits, wrong = gold & found, (gold != found).any(1)
    counts = [[int(values[:, at].sum()) for values in (hits, gold, found)] for at in range(len(classes))]
    by_label = {name: scores_of_counts(*of_label) for name, of_label in zip(classes, counts, strict=True)}
    of_texts = zip(hits.sum(1).tolist(), gold.sum(1).tolist(), found.sum(1).tolist(), strict=True)
    micro = f_of_counts(list(of_texts), 1.0)
    measured = {"error": share(int(wrong.sum()), len(wrong)), "micro_f1": micro.f}
    measured["macro_f1"] = mean_f1(hits, gold, found)
    confusion = np.zeros((2, 2), dtype=np.int64)
    np.add.at(confusion, (gold.astype(int).ravel(), found.astype(int).ravel()), 1)
    return Evaluation(source, len(gold), measured, confusion, wrong, several=by_label)


def _tagged(corpus: Corpus) -> bool:
    """Whether there is a label for each token."""
    return corpus.labels is not None and len(corpus.labels) > 0 and np.ndim(corpus.labels[0]) == 1


def _names(sentences: Sequence[np.ndarray], classes: Sequence[str]) -> list[list[str]]:
    """Tags by name."""
    return [[classes[int(tag)] for tag in tags] for tags in sentences]


def _answers(corpus: Corpus, found: Sequence[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The true classes of each text and those predicted, (1,), or (tokens,) for a tagger."""
    assert corpus.labels is not None
    return [np.atleast_1d(label) for label in corpus.labels], [np.atleast_1d(each.argmax(-1)) for each in found]
