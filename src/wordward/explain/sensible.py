"""Which pulls a reader is shown: toward words that do not speak for the label, and whose kin do less, too."""

from itertools import chain
from math import inf, log

import torch
from torch import Tensor

from wordward.explain.word_kinds import BIT, fitting
from wordward.runs.evidence import Evidence, evidence_of
from wordward.runs.run import Run
from wordward.runs.word_space import WordSpace

# By what factor the odds of a label must fall with a pull, at 95 %; the larger if there are such pulls in a text.
FALLS, SURE = (6.0, 4.0, 3.0, 2.0, 1.5, 1.0, 0.5), 1.96
MUCH = 3.0  # between words that texts may hold for other reasons
# By how much the kin of the new word must speak less for the label than those of the old one do, in log-odds; or, if
# the old one says what a text is about, the new word and its kin together.
RUNGS = (
    (2.0, inf),
    (1.6, inf),
    (1.2, inf),
    (0.9, 2.0),
    (0.7, 1.6),
    (0.5, 1.2),
    (0.4, 0.9),
    (0.3, 0.7),
    (0.2, 0.7),
)
KIN_MUCH = 0.9  # unless both words name qualities
SPEAKS, SILENT = 0.7, 0.3  # what a word that speaks for a label has at least; one that speaks for none, at most
KIN_SOME = 0.3  # how much less the kin must speak for the label where the old word says what a text is about
LEFT = (1.0, 0.5, 0.2)  # by how much words of which too little is counted must speak less, with their kin
SEEN, LESS = 0.2, 1.5  # by how much, and by what factor, the words themselves must: as counted; with what kin say
RIDGE, NOISE = 3.0, 0.25  # of the regression: its weight, and the variance that words have beside that of counts
RARE, ONCE = 2.35, 2.45  # variance of the evidence of a word that fewer than three, or two, texts hold, at least
OWN = 0.5  # variance of what words speak for around what their kin do


class Sensible:
    """Which of the pulls on a text's words are shown."""

    def __init__(self, run: Run, evidence: Evidence, space: WordSpace | None) -> None:
        """`space`: whose vectors say which words are near each other; None: the run's own."""
        kinds = fitting(tuple(run.vocabulary.words), names=False).kinds.cpu()  # as for candidates: found once
        grammar, noun = kinds < BIT["s"], (kinds & BIT["noun"] > 0) & (kinds & BIT["adjective"] == 0)
        self._plain = noun | (kinds == BIT["number"]) | grammar  # (ids,)
        self._content = ~grammar & (kinds != BIT["number"])
        self._quality = ~grammar & (kinds & sum(BIT[name] for name in ("ly", "er", "est", "adjective")) > 0)
        self._table = vectors_of(run, space)
        self._kin = kin_evidence(run, evidence, space).cpu()  # (rows of the evidence, classes)
        self.evidence = Evidence(evidence.evidence.cpu(), evidence.variance.cpu())
        trust = OWN / (OWN + self.evidence.variance)  # in counts, the more the more texts hold a word
        self._both = self._kin + torch.where(trust > 0, trust * (self.evidence.evidence - self._kin), 0.0)

    def __call__(
        self, label: int, words: Tensor, ids: Tensor, toward: Tensor, strengths: Tensor, names: Tensor | None = None
    ) -> Tensor | None:
        """Which pulls are shown, (words, top) bool; None if the training texts speak for none.

        Words are shown that do not speak for the label, speak less for it than the word that is pulled, and whose kin
        do: by the largest of some amounts that any pull of the text reaches, and, of weaker pulls than the strongest
        of these, by the smallest. Between nouns, numbers or words of grammar the difference must be large: what texts
        are about, and how they are told, differs between labels by accident; unless the word that is pulled speaks
        for the label itself, as words do where labels are topics. If none reaches any, those that surely speak less,
        whatever their kin do; then those of which too little is counted to be sure.

        Args:
            label: Its number.
            words: The numbers of the text's words for the evidence, (words,).
            ids: Their ids, (words,).
            toward: Ids of the words that pull, (words, top).
            strengths: How strongly they do, (words, top); 0: not at all.
            names: Which of the words are written as names are, (words,) bool: they must reach such an amount.
        """
        words, ids = words.unsqueeze(-1).expand_as(toward), ids.unsqueeze(-1).expand_as(toward)
        lost, error = self.evidence.lost(torch.full_like(toward, label), words, toward)
        kin, speaks = self._kin[words, label] - self._kin[toward, label], self._both[words, label]
        left = self._both[toward, label] + self._carried(label, words, ids, toward)
        both = speaks - left
        plain, quality = self._plain[toward] & self._plain[ids], self._quality[toward] & self._quality[ids]
        content, silent = self._content[toward] & self._content[ids], left <= SILENT
        less = silent & (lost > SEEN) & (both >= torch.where(plain, log(MUCH), log(LESS)))
        variance = self.evidence.variance[toward, label]
        less &= variance < RARE
        content &= (variance < ONCE) | variance.isinf()  # infinite: a Transformer's word that no training text holds
        topic = silent & content & (speaks >= SPEAKS) & (kin >= KIN_SOME)
        pulls = strengths > 0

        def reaching(kin_fall: float, fall: float) -> Tensor:
            enough = torch.where(quality, kin_fall, max(kin_fall, KIN_MUCH))
            return (less & (kin >= enough)) | (topic & (both >= fall))

        for rung in RUNGS:
            shown = reaching(*rung)
            if bool((shown & pulls).any()):
                return shown | (reaching(*RUNGS[-1]) & (strengths < strengths[shown].max()))
        named = torch.zeros_like(pulls) if names is None else names.unsqueeze(-1).expand_as(pulls)
        surely = (lost - SURE * error >= torch.where(plain, log(MUCH), log(factor)) for factor in FALLS)
        perhaps = (content & (both >= fall) for fall in LEFT)
        found = (~named & shown for shown in chain(surely, perhaps))
        return next((shown for shown in found if bool((shown & pulls).any())), None)

    def _carried(self, label: int, words: Tensor, ids: Tensor, toward: Tensor) -> Tensor:
        """What a word that no training text holds has of the evidence of the word it pulls, more the closer it is.

        Kin alone do not tell that a "picture" is an "image", which speaks for its label far more than its kin do.
        """
        unseen, carried = self.evidence.variance[toward, label].isinf(), torch.zeros(toward.shape)
        if bool(unseen.any()):
            beyond = (self._both[words, label] - self._kin[words, label])[unseen].clamp(min=0)
            near = self._table[ids[unseen]], self._table[toward[unseen]]
            carried[unseen] = torch.nn.functional.cosine_similarity(*near, dim=-1).cpu().clamp(min=0) * beyond
        return carried


def sensible(run: Run, space: WordSpace | None) -> Sensible | None:
    """Which pulls of a run are shown; None for a tagger, or a run that kept no counts."""
    evidence = evidence_of(run)
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
        rows = torch.tensor([pieces.get(word, -1) for word in run.learnt.words], device=foretold.device)
        foretold[after:] = torch.where(rows.unsqueeze(-1) >= 0, foretold[rows], 0.0)
    return foretold


def foretell(vectors: Tensor, values: Tensor, variance: Tensor) -> Tensor:
    """Each row's values (n, classes) by a ridge regression on the vectors (n, dim) of all other rows.

    `variance` (n,) is that of the values; infinite: not known. Each is left out in turn without fitting again.
    """
    wide = vectors.cpu().double()  # MPS has no double precision
    seen = variance.cpu().isfinite()
    wide = torch.nn.functional.normalize(wide - wide[seen].mean(0), dim=-1)
    wide = torch.cat([wide, wide.new_ones(len(wide), 1)], -1)
    known, y = wide[seen], values.cpu()[seen].double()
    weights = 1 / (variance.cpu()[seen].double().unsqueeze(-1) + NOISE)
    inverse = torch.linalg.inv(known.T @ (weights * known) + RIDGE * torch.eye(wide.shape[1], dtype=wide.dtype))
    fitted = wide @ (inverse @ (known.T @ (weights * y)))
    own = (known @ inverse * known).sum(-1, keepdim=True) * weights  # how much each value says of itself
    fitted[seen] = (fitted[seen] - own * y) / (1 - own)
    return fitted.to(values)
