"""Which pulls a reader is shown: those toward words that do not speak for the label themselves."""

from dataclasses import dataclass
from math import log

import torch
import torch.nn.functional as F
from torch import Tensor

from wordward.explain.candidates import FAR, Speaking
from wordward.explain.distributional import alike, counted_by_model
from wordward.explain.english import SAYING, fold
from wordward.explain.kin import Kin, vectors_of
from wordward.explain.word_kinds import BIT, fitting
from wordward.runs.evidence import Evidence, evidence_of
from wordward.runs.reading import Row
from wordward.runs.run import Run
from wordward.runs.word_space import WordSpace

# In log-odds of training texts, or deviations of those of words read alone, which are about as large:
SILENT = 0.3  # what a word that speaks for none has at most
LESS = 1.5  # by what factor the odds of a label must fall with a pull
RARE = 2.35  # variance of the evidence of a word that fewer than three texts hold, at least
OWN = 0.5  # variance of what words speak for around what their kin do
TELLING, IN_ALL = 20, 100  # words that speak most for a class, at most; and of all classes


class Sensible:
    """Which of the pulls on a text's words are shown."""

    def __init__(self, run: Run, evidence: Evidence, space: WordSpace | None) -> None:
        """`space`: whose vectors say which words are near each other; None: the run's own."""
        words, stand = tuple(run.vocabulary.words), alike(run)
        kinds = (stand or fitting(words, names=False)).kinds.cpu()  # as for candidates: found once
        saying = torch.tensor([stand is None and fold(word) in SAYING for word in words])
        self._silent = ((kinds < BIT["s"]) & ~saying) | (kinds == BIT["number"])  # (ids,)
        self.table = vectors_of(run, space)
        self._kin, self._evidence = Kin(run, evidence, space), evidence.evidence.cpu()
        if stand is not None and (told := counted_by_model(run, evidence)) is not None:
            self._kin.evidence[: len(told)] = told.cpu()
        self.variance = evidence.variance.cpu()  # (rows of the evidence, classes), like the following
        self.both = self._mixed(self._kin.evidence, torch.arange(len(self.variance)))
        # Most words of a Transformer are in no training text: what they speak for is doubted.
        self._pieces = run.config.transformer is not None
        left = OWN * (1 - OWN / (OWN + self.variance))  # variance of both together
        self.doubt = left.sqrt() if self._pieces else torch.zeros_like(left)

    def speaking(self, allowed: Tensor) -> Speaking:
        """What words speak for; `allowed`: ids of those that may pull.

        Words of a Transformer may also be pulled by those of each class that tell most; of another network such words
        are mostly near each other, too, if they can stand in each other's place.
        """
        ids, device = len(self._silent), allowed.device
        doubt, telling = self.doubt[:ids], torch.zeros(0, dtype=torch.long)
        if self._pieces:  # all of them common words
            evidence = self.both[:ids]
            telling = self._telling(allowed.cpu(), evidence - doubt)
        else:
            evidence = self._kin.evidence[:ids].clone()
            evidence[self.variance[:ids].amin(-1) >= RARE] = torch.nan
        return Speaking(evidence.to(device), doubt.mean(-1).to(device), telling.to(device))

    def _telling(self, allowed: Tensor, surely: Tensor) -> Tensor:
        """Ids of the words that surely speak most for a class, not more than TELLING of each and IN_ALL."""
        content = allowed[~self._silent[allowed]]
        values, order = surely[content].sort(dim=0, descending=True)  # (content words, classes)
        most = max(1, min(TELLING, IN_ALL // surely.shape[1]))
        return content[order[:most]][values[:most] > 0].unique()

    def of(self, row: Row, label: int) -> "TextSense":
        """The same for one text, and the label that pulls must speak less for."""
        vectors = self._vectors(row)
        numbers, single = torch.from_numpy(row.numbers[row.first]).long(), torch.from_numpy(row.single)
        kin, both = self._kin.evidence[numbers], self.both[numbers]
        if not bool(single.all()):  # words of several pieces, of which a table has no vector
            kin[~single] = self._kin.of(vectors[~single]).to(kin)
            both[~single] = self._mixed(kin[~single], numbers[~single])
        silent = self._silent[torch.from_numpy(row.ids[row.first]).long()] & single
        return TextSense(label, vectors, both, both - kin, silent, self)

    def _vectors(self, row: Row) -> Tensor:
        """The vectors of a text's words, (words, dim): of several pieces the middle."""
        real = torch.from_numpy(row.word >= 0)
        words, ids = (torch.from_numpy(values).long()[real].to(self.table.device) for values in (row.word, row.ids))
        sums = self.table.new_zeros(len(row.first), self.table.shape[1]).index_add_(0, words, self.table[ids])
        return sums / words.bincount(minlength=len(row.first)).unsqueeze(-1)

    def _mixed(self, kin: Tensor, numbers: Tensor) -> Tensor:
        """What words speak for by kin, (words, classes), and by the texts that hold them, the more the more do."""
        trust = OWN / (OWN + self.variance[numbers])
        return kin + torch.where(trust > 0, trust * (self._evidence[numbers] - kin), 0.0)


@dataclass(frozen=True)
class TextSense:
    """Which of the pulls on one text's words are shown; words that pull are given by their ids, (words, top)."""

    label: int
    vectors: Tensor  # (words, dim) of the text's words
    speaks: Tensor  # (words, classes) what they speak for
    beyond: Tensor  # of it, what their kin do not
    silent: Tensor  # (words,) bool: which carry grammar, or are numbers
    rule: Sensible

    def may(self, toward: Tensor) -> Tensor:
        """Which pulls may be shown, (words, top) bool: toward words that speak less for the label, and not for it.

        None of a number, nor of a word of grammar but for SAYING.
        """
        left = self.rule.both[toward, self.label] + self._carried(toward)
        falls = self.speaks[:, self.label, None] - left >= log(LESS)
        return (left <= SILENT) & falls & ~self.silent.unsqueeze(-1)

    def shown(self, toward: Tensor, fit: Tensor) -> Tensor:
        """Of the pulls that `fit`, those that may be shown, (words, top) bool; or all of them, if none may."""
        may = fit & self.may(toward)
        return may if bool(may.any()) else fit

    def contrast(self, rivals: Tensor, positions: Tensor, toward: Tensor) -> Tensor:
        """How much more words surely speak for rivals of the label than the text's, all (n,), in log-odds.

        By a standard deviation less for the label and for the rival than training texts and kin have it: a word that
        no training text holds has to be far from others to count as much as one that many hold.
        """
        both, doubt, label = self.rule.both, self.rule.doubt, self.label
        own = self.speaks[positions, label] - self.speaks[positions, rivals]
        return own - (both[toward, label] - both[toward, rivals]) - doubt[toward, label] - doubt[toward, rivals]

    def promised(self, toward: Tensor) -> Tensor:
        """As `contrast` with the rival that each of `toward` surely speaks most for."""
        both, doubt, label = self.rule.both, self.rule.doubt, self.label
        own, other = self.speaks[:, label, None] - self.speaks, both[toward, label].unsqueeze(-1) - both[toward]
        surely = own.unsqueeze(1) - other - doubt[toward, label].unsqueeze(-1) - doubt[toward]  # (..., classes)
        surely[..., label] = -torch.inf
        return surely.amax(-1)

    def nearness(self, toward: Tensor) -> Tensor:
        """What pulls count beside each other: the cosine of the two words."""
        return self._cosines(toward).clamp(min=FAR)

    def _cosines(self, toward: Tensor) -> Tensor:
        return F.cosine_similarity(self.vectors.unsqueeze(1), self.rule.table[toward], dim=-1).cpu()

    def _carried(self, toward: Tensor) -> Tensor:
        """What a word that no training text holds has of the evidence of the word it pulls, more the closer it is.

        Kin alone do not tell that a "picture" is an "image", which speaks for its label far more than its kin do.
        """
        unseen = self.rule.variance[toward, self.label].isinf()
        if not bool(unseen.any()):
            return torch.zeros(toward.shape)
        beyond = self.beyond[:, self.label, None].clamp(min=0)
        return torch.where(unseen, self._cosines(toward).clamp(min=0) * beyond, 0.0)


def sensible(run: Run, space: WordSpace | None) -> Sensible | None:
    """Which pulls of a run are shown; None for a tagger, or where nothing is known of what words speak for."""

    def found() -> Sensible | None:
        evidence = evidence_of(run) or run.evidence_alone
        return None if evidence is None else Sensible(run, evidence, space)

    return run.kept(("sensible", None if space is None else space.source), found)  # the same for all methods
