"""What words speak for to a model whose training texts are not known: it reads each of some words alone."""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import nn

from wordward.runs.evidence import Evidence
from wordward.runs.run import Run
from wordward.runs.scoring import log_odds

READ = 2_000  # words; vocabularies mostly have frequent ones first
VARIANCE = 0.5  # of a word read alone around what it speaks for in texts, of which the deviation over words is 1
LEAST = 0.05  # deviation of log-odds over words, of a model to which words say anything

_known: WeakKeyDictionary[nn.Module, tuple[Any, Evidence | None]] = WeakKeyDictionary()


def remembered(run: Run, model: nn.Module) -> Evidence | None:
    """`read_alone`, read again only if the weights of the model, or the labels it is asked about, have changed."""
    # Not `_version`, which fused optimizers do not count.
    weights = [float(each.detach().sum(dtype=torch.float32)) for each in model.parameters()]
    state = run.labels, run.config.training.positive, weights
    if model not in _known or _known[model][0] != state:
        _known[model] = state, read_alone(run)
    return _known[model][1]


def read_alone(run: Run) -> Evidence | None:
    """The log-odds of each label for a word alone, over those of most words and in their deviations.

    None for a tagger, for pairs of texts, and where words say nothing or are too few to compare: a vocabulary of
    characters has none. Words that are not read have an infinite variance, as those that no training text holds;
    words near them foretell what they speak for.
    """
    words = run.vocabulary.words
    if run.tagging or run.paired or len(run.labels) < 2:
        return None
    plain = [at for at in run.ordinary().tolist() if len(words[at]) > 1 and words[at].isalpha()][:READ]
    readings = run.read_all(run.examples([f" {words[at]}" for at in plain]))  # as within a text
    read = [(at, text.row.ids) for at, text in zip(plain, readings, strict=True) if at in text.row.ids]
    if len(read) < 2:
        return None
    odds = log_odds(torch.from_numpy(np.array(run.logits([row for _, row in read]))))
    odds = odds - odds.median(0).values
    if not odds.std() > LEAST:
        return None
    evidence = torch.zeros(len(words) + 1, len(run.labels), device=run.device)  # and one for all other words
    variance = torch.full_like(evidence, torch.inf)
    ids = torch.tensor([at for at, _ in read], device=run.device)
    evidence[ids], variance[ids] = (odds / odds.std()).to(evidence), VARIANCE
    return Evidence(evidence, variance)
