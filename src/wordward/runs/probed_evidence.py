"""Evidence of words for a model whose training texts are unknown: it reads each of some words alone."""

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from wordward.perturbation.modes import evaluating
from wordward.runs.evidence import Evidence
from wordward.runs.fingerprint import fingerprint
from wordward.runs.run import Run
from wordward.runs.scoring import log_odds, logits_of

READ = 2_000  # words; vocabularies mostly have frequent ones first
VARIANCE = 0.5  # of a word read alone around what it speaks for in texts, of which the deviation over words is 1
LEAST = 0.05  # deviation of log-odds over words, of a model to which words say anything


class LoneWords(NamedTuple):
    """Words that a model read alone, and its logits of all its labels."""

    ids: Tensor  # (words,)
    logits: Tensor  # (words, labels)


_known: WeakKeyDictionary[nn.Module, tuple[Any, LoneWords | None]] = WeakKeyDictionary()


def remembered(run: Run, model: nn.Module) -> Evidence | None:
    """What words speak for to a run, by `evidence_alone`; they are read again only if the model has changed."""
    state = run.paired, fingerprint(model)
    if model not in _known or _known[model][0] != state:
        _known[model] = state, read_alone(run)
    return evidence_alone(run, _known[model][1])


def read_alone(run: Run) -> LoneWords | None:
    """Most words of a run, read one by one; None for a tagger, for pairs of texts, and where the words are too few.

    A vocabulary of characters has none.
    """
    words = run.vocabulary.words
    if run.tagging or run.paired:
        return None
    plain = [at for at in run.ordinary().tolist() if len(words[at]) > 1 and words[at].isalpha()][:READ]
    readings = run.read_all(run.examples([f" {words[at]}" for at in plain]))  # as within a text
    read = [(at, text.row.ids) for at, text in zip(plain, readings, strict=True) if at in text.row.ids]
    if len(read) < 2:
        return None
    with evaluating(run.model):
        logits = logits_of(run.model.asking(None), run.corpus([row for _, row in read]), run.device)
    return LoneWords(torch.tensor([at for at, _ in read]), torch.from_numpy(np.array(logits)))


def evidence_alone(run: Run, read: LoneWords | None) -> Evidence | None:
    """What each word of a run speaks for: the log-odds of each label where it is read alone.

    They are told from their median over the words, in standard deviations. None where words say nothing. Words
    that are not read have an infinite variance, as those that no training text holds; words near them foretell
    what they speak for.
    """
    if read is None or len(run.labels) < 2:
        return None
    odds = log_odds(run.model.decided(read.logits))
    odds = odds - odds.median(0).values
    if not odds.std() > LEAST:
        return None
    evidence = torch.zeros(len(run.vocabulary.words) + 1, len(run.labels), device=run.device)  # 1 for all other words
    variance = torch.full_like(evidence, torch.inf)
    ids = read.ids.to(run.device)
    evidence[ids], variance[ids] = (odds / odds.std()).to(evidence), VARIANCE
    return Evidence(evidence, variance)
