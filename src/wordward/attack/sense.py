"""The rule that tells swaps which likely change a text's true label from swaps which should not.

For a class y and a word w, the evidence e_y(w) is the log-odds ratio of w in the training texts of y against those of
all other classes, log (n_yw + p) / (N_y + 1) - log (n_ow + 1 - p) / (N_o + 1), where n_yw of the N_y texts of y, and
n_ow of the N_o others, hold w, and p is the share (N_y + 1) / (N_y + N_o + 2), so that a word in no text speaks for
no class. Its variance is 1 / (n_yw + p) + 1 / (n_ow + 1 - p). In a text of true label y, where the word a is replaced
by b, d = e_y(a) - e_y(b) is the evidence that is lost, and s its standard error. The swap is

  changed   where a negation word comes or goes; or where b does not speak for y, e_y(b) < log 2, and a speaks for it
            at least twice as strongly, d >= log 2 and d >= s: better -> worse;
  kept      where that is sure not to be, at 95 %: d + 1.96 s < log 2 (of -> from), or b alone speaks for y,
            e_y(b) - 1.96 s_b >= log 2 (boring -> dull);
  unknown   else: the words are in too few training texts to tell, or the run kept no counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log

import torch
from torch import Tensor

from wordward.attack.attacked import Attacked, Sense
from wordward.attack.negations import negates
from wordward.explain.english import looks_english
from wordward.runs.evidence import Evidence, by_share
from wordward.runs.run import Run
from wordward.text.vocabulary import SPECIALS, Vocabulary

STRONGER = log(2)  # evidence twice as strong
SURE = 1.96  # standard errors
FEW, OFTEN = 500, 5  # words to judge by, and labelled texts that must hold a word for it to tell
UNMEASURED = 0.5  # of the texts: where words to judge by are few and so many texts lack them, a rate says nothing


@dataclass(frozen=True)
class Judge(Evidence):
    """The rule with the counts of a run."""

    negates: Tensor  # (words,) bool

    def changed(self, labels: Tensor, words: Tensor, toward: Tensor) -> Tensor:
        """Whether swaps likely change the true label; `labels` numbers, all three of one shape."""
        lost, error = self.lost(labels, words, toward)
        weaker = (self.evidence[toward, labels] < STRONGER) & (lost >= STRONGER) & (lost >= error)
        return weaker | (self.negates[words] != self.negates[toward])

    def kept(self, labels: Tensor, words: Tensor, toward: Tensor) -> Tensor:
        """Whether swaps are sure to leave the true label as it is."""
        lost, error = self.lost(labels, words, toward)
        alone = self.evidence[toward, labels] - SURE * self.variance[toward, labels].sqrt() >= STRONGER
        known = self.variance[words, labels].isfinite()
        return ((lost + SURE * error < STRONGER) | (alone & known)) & ~self.changed(labels, words, toward)

    def speaks(self, label: int, word: int, *, comes: bool) -> bool:
        """Whether a word that comes or goes likely changes the true label, as a swap with one of no evidence."""
        here = self._here
        lost = float(here.evidence[word, label]) * (-1 if comes else 1)
        error = float(here.variance[word, label]) ** 0.5
        return bool(here.negates[word]) or (lost >= STRONGER and lost >= error)

    def of(self, label: int, word: int, toward: int) -> Sense:
        """Whether one swap keeps the true label, by the rule."""
        here, swap = self._here, tuple(map(torch.tensor, (label, word, toward)))
        if bool(here.changed(*swap)):
            return "changed"
        return "kept" if bool(here.kept(*swap)) else "unknown"

    @cached_property
    def _here(self) -> "Judge":
        """The rule on the CPU, for one swap at a time, for which a GPU would take longer."""
        return Judge(self.evidence.cpu(), self.variance.cpu(), self.negates.cpu())


def judge_of(run: Run, *, device: torch.device | None = None) -> Judge | None:
    """The rule for a run; None for a tagger, or a run without counts of words by class."""
    counts = None if run.tagging else run.class_counts()
    if counts is None:
        return None
    return run.judged(make_judge(counts.to(device or run.device), run.learnt))


def few_to_judge_by(run: Run) -> int | None:
    """How many words of a run the rule has enough counts of; None where they are many, or there is no rule."""
    counts = None if run.tagging else run.class_counts()
    words = None if counts is None else int((counts.sum(1) >= OFTEN).sum())
    return words if words is not None and words < FEW else None


def little_to_judge_by(run: Run) -> str:
    """That the rule can judge few swaps, in words; empty where it can judge many, or there is none."""
    if (words := few_to_judge_by(run)) is None:
        return ""
    which = "training" if run.trained_here else "labelled"
    few = f"only {words:,} words are in {OFTEN} {which} texts or more"
    return f"{few}, so the sense of few swaps can be judged; others are not made"


def unmeasured(attacked: Sequence[Attacked]) -> str:
    """Why an attack that had few words to judge by, and made only swaps that keep the sense, measured nothing: too
    few texts had an edit to try; empty where enough had."""
    untried = sum(not each.tried for each in attacked)
    if untried <= UNMEASURED * len(attacked):
        return ""
    return f"not measured: {untried} of {len(attacked)} texts to attack have no words that can be judged"


def unjudged(flipped: Sequence[Attacked]) -> str:
    """Why an attack that had few words to judge by, and made any swaps, does not tell how many flips keep the sense:
    of those that may, that of too many is unknown; empty where that of enough is known."""
    unknown, kept = (sum(each.sense == sense for each in flipped) for sense in ("unknown", "kept"))
    if unknown <= UNMEASURED * (unknown + kept):
        return ""
    return (
        f"with sense kept is not measured: few words can be judged, so of {len(flipped)} flipped texts {kept} are "
        f"known to keep the sense, and of {unknown} it is unknown"
    )


def make_judge(counts: Tensor, vocabulary: Vocabulary) -> Judge:
    """The rule for counts of texts by word and class, as `Corpus.class_counts` gives them."""
    evidence, inside, outside = by_share(counts)
    variance = 1 / inside + 1 / outside
    variance[: len(SPECIALS)] = torch.inf
    words = len(SPECIALS)
    english = looks_english(vocabulary.words[words:], counts.sum(1)[words:].tolist())
    negating = torch.tensor([negates(word, english=english) for word in vocabulary.words], device=counts.device)
    return Judge(evidence, variance, negating)
