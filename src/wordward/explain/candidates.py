"""The words that may pull a word, or be put in its place: near it in a good word space, and fit to stand there."""

from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from wordward.explain.distributional import alike, own_space
from wordward.explain.english import CLOSED, fold
from wordward.explain.other_languages import are_english
from wordward.explain.word_classes import fitting_of
from wordward.explain.word_forms import beginning, same_word
from wordward.explain.word_kinds import Fitting
from wordward.perturbation.adversary import Adversary
from wordward.perturbation.nearest import NearestWords, Table, nearest
from wordward.runs.entities import mark_entities
from wordward.runs.input_table import input_table, installed_model
from wordward.runs.run import Run
from wordward.runs.word_space import WordSpace, word_space
from wordward.support.errors import RunError

AROUND = 20  # nearest words among which those that fit are looked for
NUMBERS = 1 << 24  # of the vectors that are compared at a time
COPIED = 1 << 28  # numbers of a table that is copied to be searched, at most: 1 GiB in single precision
CLOSE = 0.4  # of the cosine of the nearest word, which others must have
WIDELY = 0.2  # the same where words that differ most in what they speak for come first
KNOWN = 0.1  # share of the words that may pull of which a kind is known, or nothing fits anything
FAR = 0.05  # what a word counts that is not near, instead of its cosine
MANY = 500  # words to choose from; of fewer any that fits may pull
# A word that pulls was seen so often, or as often as the training texts hold so many words.
SEEN, ONCE_IN = 10, 20_000
TEXTS = 4  # English training texts that hold a word, below which it must be one that installed word vectors know
COMMON, SHORTER = 10_000, 2  # a word of n letters is among the (n - SHORTER) * COMMON commonest


class Speaking(NamedTuple):
    """What the words of a run speak for."""

    evidence: Tensor  # (ids, classes), nan for rare words
    doubt: Tensor  # (ids,), its standard deviation
    telling: Tensor  # ids of words that speak for one class or another more than most do

    def with_words(self, evidence: Tensor) -> "Speaking":
        """The same with more words after the others, which speak for what `evidence`, (words, classes), says."""
        doubt = torch.cat([self.doubt, self.doubt.new_zeros(len(evidence))])
        return self._replace(evidence=torch.cat([self.evidence, evidence.to(self.evidence)]), doubt=doubt)

    def differs(self, ids: Tensor, others: Tensor) -> Tensor:
        """How much `others`, (n, m), surely differ from words (n,): by two of their deviations less than it seems."""
        other = self.evidence[others] - self.evidence[ids].nan_to_num(0.0).unsqueeze(1)  # (n, m, classes)
        return (other.amax(-1) - other.amin(-1) - 2 * self.doubt[others]).nan_to_num(0.0).clamp(min=0)


class FittingWords(NearestWords):
    """The k nearest words that fit the place of each word, filled up with the word itself, which never pulls."""

    def __init__(
        self,
        size: int,
        k: int,
        *,
        allowed: Tensor,
        fits: Fitting,
        space: WordSpace | None,
        words: Sequence[str] | None = None,
    ) -> None:
        """`words`: of each id, if forms of the same word are left out."""
        super().__init__(size, k, allowed=allowed, metric="cosine")
        self.fits, self.space, self.words = fits, space, words
        self._beginnings = _beginnings(words or ()).to(allowed.device)
        self.speaking: Speaking | None = None  # if known, words that differ in it come first

    def of(self, ids: Tensor, table: Tensor | Table) -> Tensor:
        """Candidates for ids (batch, time): (batch, time, k)."""
        missing = self._unknown(ids)
        if len(missing):
            if self.space is not None:
                table = self.space.table
            whole = table if isinstance(table, Tensor) else table.rows(0, table.size)
            self._rows[missing] = self._search(missing, whole)
        return self._rows[ids]

    def of_others(
        self, words: Sequence[str], fits: Fitting, vectors: Tensor, table: Tensor, evidence: Tensor | None
    ) -> Tensor:
        """Candidates for words that have no id: (n, k), filled up with -1.

        Args:
            words: Their spelling.
            fits: Which words fit them.
            vectors: Theirs, (n, dim).
            table: Those of the ids.
            evidence: What they speak for, (n, classes), if known.
        """
        size, other = len(table), copy(self)
        other.fits = self.fits.joined(fits)
        if self.words is not None:
            other.words = [*self.words, *words]
            other._beginnings = torch.cat([self._beginnings, _beginnings(words).to(table.device)])
        if self.space is not None:
            known = torch.cat([self.space.known, self.space.known.new_ones(len(words))])
            other.space = replace(self.space, known=known)
        if self.speaking is not None:
            assert evidence is not None
            other.speaking = self.speaking.with_words(evidence)
        ids = torch.arange(size, size + len(words), device=table.device)
        found = other._search(ids, torch.cat([table, vectors]))
        return torch.where(found < size, found, -1)

    def _search(self, ids: Tensor, table: Tensor) -> Tensor:
        """The candidates of words (n,): (n, k), the nearest first, or those first that differ most."""
        wide = AROUND if self.speaking is None else self.fits.among
        around = min(wide, len(self.allowed) - 1) if len(self.allowed) >= MANY else len(self.allowed) - 1
        near = nearest(ids, table, around, allowed=self.allowed, metric=self.metric)
        width = around + (0 if self.speaking is None else len(self.speaking.telling))
        rows = max(1, NUMBERS // (width * table.shape[1]))
        return torch.cat([self._chosen(*part, table) for part in zip(ids.split(rows), near.split(rows), strict=True)])

    def _chosen(self, ids: Tensor, near: Tensor, table: Tensor) -> Tensor:
        """The candidates of words (n,) among the words near each (n, around) and the telling ones: (n, k)."""
        near = self._with_telling(ids, near)
        own = ids.unsqueeze(-1).expand_as(near)
        fit = self.fits(own, near) & (near != own)
        closeness = F.cosine_similarity(table[near], table[ids].unsqueeze(1), dim=-1)  # (n, around)
        if len(self.allowed) >= MANY:
            fit &= closeness >= (CLOSE if self.speaking is None else WIDELY) * closeness[:, :1]
        if self.space is not None:
            fit &= self.space.known[own]
        if self.words is not None:
            fit &= ~self._forms(ids, near, fit)
        order = (~fit).float()  # those that fit first
        if self.speaking is not None:
            order -= torch.where(fit, self.speaking.differs(ids, near) * closeness.clamp(min=FAR), 0.0)
        order = torch.sort(order, dim=-1, stable=True).indices[:, : self.k]
        found = torch.where(fit.gather(-1, order), near.gather(-1, order), ids.unsqueeze(-1))
        missing = self.k - found.shape[-1]
        return torch.cat([found, ids.unsqueeze(-1).expand(-1, missing)], -1) if missing > 0 else found

    def _with_telling(self, ids: Tensor, near: Tensor) -> Tensor:
        """The words near each word (n, around), then those that tell most, where they are not among them."""
        if self.speaking is None or len(self.allowed) < MANY:
            return near
        telling = self.speaking.telling.expand(len(ids), -1)
        again = (telling.unsqueeze(-1) == near.unsqueeze(1)).any(-1)
        return torch.cat([near, torch.where(again, ids.unsqueeze(-1), telling)], -1)

    def _forms(self, ids: Tensor, near: Tensor, fit: Tensor) -> Tensor:
        """Which of the words near each word (n, near) that fit are forms of it."""
        assert self.words is not None
        forms = fit & (self._beginnings[near] == self._beginnings[ids].unsqueeze(-1))
        own: list[int] = ids.unsqueeze(-1).expand_as(near)[forms].tolist()
        others: list[int] = near[forms].tolist()
        same = [same_word(self.words[word], self.words[other]) for word, other in zip(own, others, strict=True)]
        forms[forms.clone()] = torch.tensor(same, dtype=torch.bool, device=near.device)
        return forms


def _beginnings(words: Sequence[str]) -> Tensor:
    """Of each word how it begins, as a number, (words,)."""
    return torch.tensor([beginning(word) for word in words], dtype=torch.int64)


def fit_words(run: Run, adversary: Adversary, *, space: str = "auto", forms: bool = True) -> FittingWords | None:
    """Let only words pull that fit the place of the word they pull; None where that is not possible.

    It is for a classifier or a tagger of names, and a method with k nearest words: other taggers may look for wrong
    inflections, without k every word is a candidate, and single characters, as of Chinese, have no kinds. The table
    of a large language model is searched in place, without these rules, where there is no other space. Directions
    and strengths are those of the model's own table in any case. `forms`: whether other forms of the same word may,
    which are good swaps, but explain nothing.
    """
    k, other = adversary.method.settings.k, run.tagging and not mark_entities(run.labels)
    if other or k is None or adversary.method.recipe.space != "words":
        return None
    own = alike(run) if space == "auto" else None
    vectors = word_space(run, space) if own is None else own_space(run, own)
    if vectors is None and adversary.tap.size * adversary.tap.dim > COPIED:
        return None
    allowed, fits = _frequent(run), fitting_of(run).to(run.device)
    allowed = allowed[~fits.crude[allowed]]
    if vectors is not None:
        allowed = allowed[vectors.known[allowed]]
    if len(allowed) < 2 or float((fits.kinds[allowed] != 0).float().mean()) < KNOWN:
        return None
    size, words = len(run.vocabulary), None if forms else run.vocabulary.words
    near = FittingWords(size, k, allowed=allowed, fits=fits, space=vectors, words=words)
    adversary.directions.given = near
    return near


def _frequent(run: Run) -> Tensor:
    """Ids of the words that may be pointed to and that the training texts hold often enough.

    Of English texts, a word that fewer than TEXTS of them hold must be one that word vectors know.
    """
    allowed = torch.from_numpy(run.vocabulary.candidates(run.config.training.min_candidate_count)).to(run.device)
    if not run.trained_here:  # how often its training texts hold a word is not known
        return allowed
    words, spelt, folder = run.learnt, run.vocabulary.words, installed_model()
    counts, pieces = torch.from_numpy(words.counts.copy()), words is not run.vocabulary
    texts = counts if (by_class := _class_counts(run)) is None else by_class.sum(1).cpu()
    if pieces:  # each as the word that it spells
        lower = [word.lower() for word in spelt]
        ids, known = torch.tensor([words[word] for word in lower]), torch.tensor([word in words for word in lower])
        counts, texts = counts[ids] * known, texts[ids] * known
    enough = counts >= min(SEEN, int(words.counts.sum()) // ONCE_IN)
    if folder is not None and not run.tagging and are_english(words):
        enough &= (texts >= TEXTS) | _are_words(spelt, folder, pieces=pieces)
    return allowed[enough.to(run.device)[allowed]]


def _class_counts(run: Run) -> Tensor | None:
    """How many labelled texts of each class hold each word of `run.learnt`, if that was kept."""
    with suppress(RunError):  # a model in memory
        return run.class_counts()
    return None


def _are_words(words: Sequence[str], folder: Path, *, pieces: bool) -> Tensor:
    """Which words are of English, (ids,) bool, by the list of words, the commonest first, of a BERT in `folder`.

    Short ones must be words of grammar or among the commonest: others are mostly parts of words (gav, acc). `pieces`:
    they are themselves words of a Transformer, so that long ones need not be in the list.
    """
    ranks, _ = input_table(folder)
    last = len(ranks) if pieces else inf
    common = (ranks.get(fold(word), last) < COMMON * (len(word) - SHORTER) for word in words)
    return torch.tensor([fold(word) in CLOSED or known for word, known in zip(words, common, strict=True)])
