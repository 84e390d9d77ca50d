"""Which pulls a reader is shown: toward words that do not speak for the label, by evidence and by kin."""

from math import log

import torch
from torch import Tensor

from wordward.explain.candidates import Speaking
from wordward.explain.word_kinds import BIT, fitting
from wordward.runs.evidence import Evidence, evidence_of
from wordward.runs.run import Run
from wordward.runs.word_space import WordSpace

# In log-odds of training texts, or deviations of those of words read alone, which are about as large:
SILENT = 0.3  # what a word that speaks for none has at most
LESS = 1.5  # by what factor the odds of a label must fall with a pull
GRAMMAR, FAR = 0.5, 0.05  # what a pull of "and" counts beside one of "good"; and one toward a word that is not near
RIDGE, NOISE = 3.0, 0.25  # of the regression: its weight, and the variance that words have beside that of counts
RARE = 2.35  # variance of the evidence of a word that fewer than three texts hold, at least
OWN = 0.5  # variance of what words speak for around what their kin do
AT_ONCE = 8_192  # words foretold at a time
TELLING, IN_ALL = 20, 100  # words that speak most for a class, at most; and of all classes


class Sensible:
    """Which of the pulls on a text's words are shown."""

    def __init__(self, run: Run, evidence: Evidence, space: WordSpace | None) -> None:
        """`space`: whose vectors say which words are near each other; None: the run's own."""
        kinds = fitting(tuple(run.vocabulary.words), names=False).kinds.cpu()  # as for candidates: found once
        self._grammar = kinds < BIT["s"]  # (ids,)
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

        Args:
            label: Its number.
            words: The numbers of the text's words for the evidence, (words,).
            ids: Their ids, (words,).
            toward: Ids of the words that pull, (words, top).
        """
        words, ids = words.unsqueeze(-1).expand_as(toward), ids.unsqueeze(-1).expand_as(toward)
        left = self._both[toward, label] + self._carried(label, words, ids, toward)
        return (left <= SILENT) & (self._both[words, label] - left >= log(LESS))

    def contrast(self, label: int, rivals: Tensor, words: Tensor, toward: Tensor) -> Tensor:
        """How much more the words `toward` surely speak for rivals of the label than `words`, all (n,), in log-odds.

        By a standard deviation less for the label and for the rival than training texts and kin have it: a word that
        no training text holds has to be far from others to count as much as one that many hold.
        """
        both, doubt = self._both, self._doubt
        seems = (both[words, label] - both[words, rivals]) - (both[toward, label] - both[toward, rivals])
        return seems - doubt[toward, label] - doubt[toward, rivals]

    def plainness(self, ids: Tensor, toward: Tensor) -> Tensor:
        """What pulls of words, both (n,), count beside each other: the cosine of the two, half of it for grammar."""
        near = torch.nn.functional.cosine_similarity(self._table[ids], self._table[toward], dim=-1).cpu()
        return near.clamp(min=FAR) * torch.where(self._grammar[ids], GRAMMAR, 1.0)

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


def vectors_of(run: Run, space: WordSpace | None) -> Tensor:
    """The vectors that say which words are near each other, (ids, dim): of a space, or the run's own."""
    if space is not None:
        return space.table
    table = run.table().float()
    if run.config.transformer is None and run.config.model.kind == "convolution":
        table = table[:, : run.config.model.dim]  # its evidence follows
    return table


def kin_evidence(run: Run, evidence: Evidence, space: WordSpace | None) -> Tensor:
    """What words near each word speak for: its evidence as all others foretell it, (rows of the evidence, classes).

    "terrible" is foretold to speak against a product, "warranty" is not, though texts that complain hold it as often.
    A word that no training text holds is foretold, too, if it has a vector; one without is foretold nothing: 0.
    """
    table, ids = vectors_of(run, space), run.ordinary()
    ids = ids if space is None else ids[space.known[ids]]
    foretold = torch.zeros_like(evidence.evidence)
    if int(torch.isfinite(evidence.variance[ids]).all(-1).sum()) > 1:
        foretold[ids] = foretell(table[ids], evidence.evidence[ids], evidence.variance[ids].mean(-1))
    if (after := len(run.vocabulary)) < len(foretold):  # pieces, each as the word that it spells; then the words
        pieces = {run.vocabulary.word(at).lower(): at for at in ids.tolist()}
        words = run.learnt.words if len(foretold) > after + 1 else [""]  # none were counted: one row for all others
        rows = torch.tensor([pieces.get(word, -1) for word in words], device=foretold.device)
        foretold[after:] = torch.where(rows.unsqueeze(-1) >= 0, foretold[rows], 0.0)
    return foretold


def foretell(vectors: Tensor, values: Tensor, variance: Tensor) -> Tensor:
    """Each row's values (n, classes) by a ridge regression on the vectors (n, dim) of all other rows.

    `variance` (n,) is that of the values; infinite: not known. Each is left out in turn without fitting again.
    """
    vectors, seen = vectors.cpu(), variance.cpu().isfinite()  # MPS has no double precision
    middle = vectors[seen].double().mean(0)

    def wide(rows: Tensor) -> Tensor:
        units = torch.nn.functional.normalize(rows.double() - middle, dim=-1)
        return torch.cat([units, units.new_ones(len(units), 1)], -1)

    known, y = wide(vectors[seen]), values.cpu()[seen].double()
    weights = 1 / (variance.cpu()[seen].double().unsqueeze(-1) + NOISE)
    inverse = torch.linalg.inv(known.T @ (weights * known) + RIDGE * torch.eye(known.shape[1], dtype=known.dtype))
    solved = inverse @ (known.T @ (weights * y))
    fitted = torch.cat([wide(rows) @ solved for rows in vectors.split(AT_ONCE)])  # a table may be large
    own = (known @ inverse * known).sum(-1, keepdim=True) * weights  # how much each value says of itself
    fitted[seen] = (fitted[seen] - own * y) / (1 - own)
    return fitted.to(values)
