"""What words speak for to a model whose training texts are not known: it reads each of some words alone."""

import numpy as np
import torch
from torch import Tensor

from wordward.perturbation.tap import evaluating
from wordward.runs.evidence import Evidence
from wordward.runs.run import Run
from wordward.runs.scoring import logits_of

READ = 2_000  # words; vocabularies mostly have frequent ones first
VARIANCE = 0.5  # of a word read alone around what it speaks for in texts, of which the deviation over words is 1


def read_alone(run: Run) -> Evidence | None:
    """The log-odds of each label for a word alone, over those of most words and in their deviations.

    None for a tagger, for pairs of texts, and where there are too few words to compare. Words that are not read have
    an infinite variance, as those that no training text holds; words near them foretell what they speak for.
    """
    words = run.vocabulary.words
    if run.tagging or getattr(run, "paired", False) or len(run.labels) < 2:
        return None
    plain = [at for at in run.ordinary().tolist() if len(words[at]) > 1 and words[at].isalpha()][:READ]
    readings = run.read_all(run.examples([words[at] for at in plain]))
    read = [(at, text.row.ids) for at, text in zip(plain, readings, strict=True) if at in text.row.ids]
    if len(read) < 2:
        return None
    with evaluating(run.model):
        logits = np.array(logits_of(run.model, run.corpus([row for _, row in read]), run.device))
    evidence = torch.zeros(len(words) + 1, len(run.labels), device=run.device)  # and one for all other words
    variance = torch.full_like(evidence, torch.inf)
    ids = torch.tensor([at for at, _ in read], device=run.device)
    evidence[ids] = standardised(torch.from_numpy(logits)).to(evidence)
    variance[ids] = VARIANCE
    return Evidence(evidence, variance)


def standardised(logits: Tensor) -> Tensor:
    """The log-odds (n, classes) of each class against all others, less the median, over the deviation of them all."""
    log_p = logits.double().log_softmax(-1)
    classes = log_p.shape[-1]
    others = [torch.arange(classes) != at for at in range(classes)]
    odds = log_p - torch.stack([log_p[:, other].logsumexp(-1) for other in others], -1)
    odds = odds - odds.median(0).values
    return odds / odds.std().clamp(min=1e-6)
