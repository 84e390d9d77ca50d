"""Which pulls a reader is shown: toward words that do not speak for the label, by evidence and by kin."""

from math import log

import torch
from torch import Tensor

from wordward.explain.candidates import FAR, Speaking
from wordward.explain.kin import kin_evidence, vectors_of
from wordward.explain.word_kinds import BIT, fitting, fold
from wordward.runs.evidence import Evidence, evidence_of
from wordward.runs.run import Run
from wordward.runs.word_space import WordSpace

# In log-odds of training texts, or deviations of those of words read alone, which are about as large:
SILENT = 0.3  # what a word that speaks for none has at most
LESS = 1.5  # by what factor the odds of a label must fall with a pull
RARE = 2.35  # variance of the evidence of a word that fewer than three texts hold, at least
OWN = 0.5  # variance of what words speak for around what their kin do
TELLING, IN_ALL = 20, 100  # words that speak most for a class, at most; and of all classes

# Words of grammar that say as much as others do: their opposites turn a sentence round.
SAYING = frozenset(
    """
    no not never always rarely often nothing everything nobody everyone without less least more most little much few
    many better worse best worst
    """.split()
)


class Sensible:
    """Which of the pulls on a text's words are shown."""

    def __init__(self, run: Run, evidence: Evidence, space: WordSpace | None) -> None:
        """`space`: whose vectors say which words are near each other; None: the run's own."""
        kinds = fitting(tuple(run.vocabulary.words), names=False).kinds.cpu()  # as for candidates: found once
        saying = torch.tensor([fold(word) in SAYING for word in run.vocabulary.words])
        self._grammar = (kinds < BIT["s"]) & ~saying  # (ids,)
        self._table = vectors_of(run, space)
        self._kin = kin_evidence(run, evidence, space).cpu()  # (rows of the evidence, classes)
        self._variance = evidence.variance.cpu()
        trust = OWN / (OWN + self._variance)  # in counts, the more the more texts hold a word
        self._both = self._kin + torch.where(trust > 0, trust * (evidence.evidence.cpu() - self._kin), 0.0)
        # Most words of a Transformer are in no training text: what they speak for is doubted.
        self._pieces = run.config.transformer is not None
        left = OWN * (1 - trust)  # variance of both together
        self._doubt = left.sqrt() if self._pieces else torch.zeros_like(left)  # (rows of the evidence, classes)

    def speaking(self, allowed: Tensor) -> Speaking:
        """What words speak for; `allowed`: ids of those that may pull.

        Words of a Transformer may also be pulled by those of each class that tell most; of another network such words
        are mostly near each other, too, if they can stand in each other's place.
        """
        ids, device = len(self._grammar), allowed.device
        doubt, telling = self._doubt[:ids], torch.zeros(0, dtype=torch.long)
        if self._pieces:  # all of them common words
            evidence = self._both[:ids]
            telling = self._telling(allowed.cpu(), evidence - doubt)
        else:
            evidence = self._kin[:ids].clone()
            evidence[self._variance[:ids].amin(-1) >= RARE] = torch.nan
        return Speaking(evidence.to(device), doubt.mean(-1).to(device), telling.to(device))

    def _telling(self, allowed: Tensor, surely: Tensor) -> Tensor:
        """Ids of the words that surely speak most for a class, not more than TELLING of each and IN_ALL."""
        content = allowed[~self._grammar[allowed]]
        values, order = surely[content].sort(dim=0, descending=True)  # (content words, classes)
        most = max(1, min(TELLING, IN_ALL // surely.shape[1]))
        return content[order[:most]][values[:most] > 0].unique()

    def may(self, label: int, words: Tensor, ids: Tensor, toward: Tensor) -> Tensor:
        """Which pulls may be shown, (words, top) bool: toward words that speak less for the label, and not for it.

        None of a word of grammar, but for SAYING.

        Args:
            label: Its number.
            words: The numbers of the text's words for the evidence, (words,).
            ids: Their ids, (words,).
            toward: Ids of the words that pull, (words, top).
        """
        words, ids = words.unsqueeze(-1).expand_as(toward), ids.unsqueeze(-1).expand_as(toward)
        left = self._both[toward, label] + self._carried(label, words, ids, toward)
        return (left <= SILENT) & (self._both[words, label] - left >= log(LESS)) & ~self._grammar[ids]

    def contrast(self, label: int, rivals: Tensor, words: Tensor, toward: Tensor) -> Tensor:
        """How much more the words `toward` surely speak for rivals of the label than `words`, all (n,), in log-odds.

        By a standard deviation less for the label and for the rival than training texts and kin have it: a word that
        no training text holds has to be far from others to count as much as one that many hold.
        """
        both, doubt = self._both, self._doubt
        seems = (both[words, label] - both[words, rivals]) - (both[toward, label] - both[toward, rivals])
        return seems - doubt[toward, label] - doubt[toward, rivals]

    def promised(self, label: int, words: Tensor, toward: Tensor) -> Tensor:
        """As `contrast` with the rival that each of `toward`, (words, top), surely speaks most for."""
        both, doubt = self._both, self._doubt
        own, other = (both[at, label].unsqueeze(-1) - both[at] for at in (words, toward))  # (..., classes)
        surely = own.unsqueeze(1) - other - doubt[toward, label].unsqueeze(-1) - doubt[toward]
        surely[..., label] = -torch.inf
        return surely.amax(-1)

    def nearness(self, ids: Tensor, toward: Tensor) -> Tensor:
        """What pulls of words count beside each other: the cosine of the two."""
        near = torch.nn.functional.cosine_similarity(self._table[ids], self._table[toward], dim=-1)
        return near.cpu().clamp(min=FAR)

    def _carried(self, label: int, words: Tensor, ids: Tensor, toward: Tensor) -> Tensor:
        """What a word that no training text holds has of the evidence of the word it pulls, more the closer it is.

        Kin alone do not tell that a "picture" is an "image", which speaks for its label far more than its kin do.
        """
        unseen, carried = self._variance[toward, label].isinf(), torch.zeros(toward.shape)
        if bool(unseen.any()):
            beyond = (self._both[words, label] - self._kin[words, label])[unseen].clamp(min=0)
            near = self._table[ids[unseen]], self._table[toward[unseen]]
            carried[unseen] = torch.nn.functional.cosine_similarity(*near, dim=-1).cpu().clamp(min=0) * beyond
        return carried


def sensible(run: Run, space: WordSpace | None) -> Sensible | None:
    """Which pulls of a run are shown; None for a tagger, or where nothing is known of what words speak for."""
    evidence = evidence_of(run) or run.evidence_alone
    return None if evidence is None else Sensible(run, evidence, space)
