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

    Or what stands for it where these texts are not known (`wordward.runs.probed_evidence`).
    """

    evidence: Tensor  # (words, classes)
    variance: Tensor  # of it; infinite where a word says nothing

    def lost(self, labels: Tensor, words: Tensor, toward: Tensor) -> tuple[Tensor, Tensor]:
        """The evidence for the label that swaps lose, and its standard error; `labels` numbers, all of one shape."""
        lost = self.evidence[words, labels] - self.evidence[toward, labels]
        return lost, (self.variance[words, labels] + self.variance[toward, labels]).sqrt()


def evidence_in(counts: Tensor) -> Evidence:
    """The evidence in counts of texts by word and class, as `Corpus.class_counts` gives them.

    Its variance is that with half a text on either side; infinite for a word that no text holds.
    """
    evidence, _, _ = by_share(counts)
    variance = 1 / (counts + 0.5) + 1 / (counts.sum(1, keepdim=True) - counts + 0.5)
    variance[counts.sum(1) == 0] = torch.inf
    variance[: len(SPECIALS)] = torch.inf
    return Evidence(evidence, variance)


def by_share(counts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The evidence, and how many texts of each class and of all others hold each word, (words, classes) each.

    A text is added for each word, parted between class and others by their sizes, each with one more, so that a word
    that no text holds speaks for no class, also where these are many or unequal.
    """
    texts, outside = counts[PAD], counts.sum(1, keepdim=True) - counts  # (classes,), (words, classes)
    share = (texts + 1) / (texts.sum() + 2)
    inside, outside = counts + share, outside + 1 - share
    evidence = (inside / (texts + 1)).log() - (outside / (texts.sum() - texts + 1)).log()
    return evidence, inside, outside


def evidence_of(run: Run) -> Evidence | None:
    """The evidence in a run's training texts; None for a tagger, or a run that kept no counts."""
    if run.tagging:
        return None
    try:
        counts = run.class_counts()
    except RunError:  # a model in memory
        return None
    return None if counts is None else run.judged(evidence_in(counts.to(run.device)))
