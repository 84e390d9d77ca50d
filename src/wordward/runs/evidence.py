"""Which class each word speaks for, by how many training texts of each class hold it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from wordward.runs.run import Run
from wordward.support.errors import RunError
from wordward.text.vocabulary import PAD, SPECIALS


@dataclass(frozen=True)
class Evidence:
    """e_y(w), the log-odds ratio of a word in the training texts of class y against those of all other classes.

    Or what stands for it where these texts are not known (`wordward.runs.alone`).
    """

    evidence: Tensor  # (words, classes)
    variance: Tensor  # of it; infinite where a word says nothing

    def lost(self, labels: Tensor, words: Tensor, toward: Tensor) -> tuple[Tensor, Tensor]:
        """The evidence for the label that swaps lose, and its standard error; `labels` numbers, all of one shape."""
        lost = self.evidence[words, labels] - self.evidence[toward, labels]
        return lost, (self.variance[words, labels] + self.variance[toward, labels]).sqrt()


def evidence_in(counts: Tensor, *, by_size: bool = False) -> Evidence:
    """The evidence in counts of texts by word and class, as `Corpus.class_counts` gives them.

    Half a text is added on either side; `by_size`: as much of one text as the class has of all texts, each class with
    one more, and the rest, so that a word that no text holds speaks for no class, also where these are many or
    unequal; its variance is then infinite. That of others is the variance with half a text in any case.
    """
    texts, outside = counts[PAD], counts.sum(1, keepdim=True) - counts  # (classes,), (words, classes)
    part = (texts + 1) / (texts.sum() + 2) if by_size else 0.5
    evidence = ((counts + part) / (texts + 1)).log() - ((outside + 1 - part) / (texts.sum() - texts + 1)).log()
    variance = 1 / (counts + 0.5) + 1 / (outside + 0.5)
    if by_size:
        variance[counts.sum(1) == 0] = torch.inf
    variance[: len(SPECIALS)] = torch.inf
    return Evidence(evidence, variance)


def evidence_of(run: Run) -> Evidence | None:
    """The evidence in a run's training texts, `by_size`; None for a tagger, or a run that kept no counts."""
    if run.tagging:
        return None
    try:
        counts = run.class_counts()
    except RunError:  # a model in memory
        return None
    return None if counts is None else run.judged(evidence_in(counts.to(run.device), by_size=True))
