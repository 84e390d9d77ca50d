"""Which words fit in whose place where the rules for English do not apply: words with similar contexts."""

import torch
import torch.nn.functional as F
from torch import Tensor

from wordward.explain.english import CRUDE, PIECES, fold
from wordward.explain.kin import vectors_of
from wordward.explain.other_languages import contexts_of, short_words
from wordward.explain.word_kinds import BIT, Fitting, case
from wordward.models import Convolution
from wordward.runs.checkpoint import load_capitals
from wordward.runs.evidence import Evidence
from wordward.runs.run import Run
from wordward.runs.word_space import WordSpace
from wordward.text.vocabulary import SPECIALS

ALIKE = 0.7  # cosine of words that stand alike
WRITTEN = 0.4  # difference of the shares in which words that fit are written with a capital, at most
NEAR, OF_GRAMMAR = 7, 3  # a word is of grammar if so many of those near it are short and common; one that is, if any
FREQUENT = 5_000  # words by whose place others are told to be of grammar


class Alike(Fitting):
    """Which words fit which, whatever the language: those that stand alike, and are not of grammar."""

    among = 1_000

    def __init__(self, run: Run, vectors: Tensor) -> None:
        """`vectors`: where words stand, (ids, dim)."""
        words = run.vocabulary.words
        grammar = of_grammar(vectors, short_words(run, run.vocabulary)).tolist()
        self.kinds = torch.tensor([0 if fixed else _kind(word) for word, fixed in zip(words, grammar, strict=True)])
        self.kinds[: len(SPECIALS)] = 0
        self.cases = torch.tensor([case(word) for word in words])
        self.crude = torch.tensor([fold(word) in CRUDE for word in words])
        self.stems = torch.arange(len(words))  # which are forms of one word, `word_forms` tells
        self.vectors, self.capitals = vectors, load_capitals(run.folder, run.vocabulary)

    def __call__(self, words: Tensor, others: Tensor) -> Tensor:
        alike = F.cosine_similarity(self.vectors[words], self.vectors[others], dim=-1) >= ALIKE
        written = (self.capitals[words] - self.capitals[others]).abs() <= WRITTEN
        return super().__call__(words, others) & alike & written


def _kind(word: str) -> int:
    """A number or a word; 0 for what is neither, or a piece of one."""
    plain = fold(word)
    if plain.isdecimal():
        return BIT["number"]
    return BIT["noun"] if len(plain) > 1 and plain.replace("-", "").isalpha() and plain not in PIECES else 0


def of_grammar(vectors: Tensor, short: Tensor) -> Tensor:
    """Which words carry grammar, (ids,) bool: those that stand like words that are short and common, `short`."""
    frequent = vectors[:FREQUENT]
    most = min(NEAR + 1, len(frequent))  # with the word itself
    near = torch.cat([(rows @ frequent.T).topk(most).indices for rows in vectors.split(FREQUENT)])
    return short[near].sum(-1) - short.long() >= torch.where(short, 1, OF_GRAMMAR)


def alike(run: Run) -> Alike | None:
    """Which words fit which where `contexts_of` a run is known; else None."""

    def found() -> Alike | None:
        vectors = contexts_of(run)
        return None if vectors is None else Alike(run, vectors)

    return run.kept("alike", found)


def own_space(run: Run, fits: Alike) -> WordSpace:
    """Which words are near each other by the run's own vectors, without what a convolution's say of its classes."""
    known = fits.vectors.square().sum(-1) > 0
    return WordSpace(vectors_of(run, None), known.to(run.device), "the training texts")


def counted_by_model(run: Run, evidence: Evidence) -> Tensor | None:
    """What each word speaks for in a convolution's linear part, (ids, classes), as log-odds of training texts.

    Counts take each word by itself; that part weighs the words of a text against each other, and a word's spelling.
    None of another model.
    """
    if not isinstance(run.model, Convolution):
        return None
    told = run.table()[:, run.model.dim :].float()
    told = told - told.mean(-1, keepdim=True)
    sure = evidence.variance.reciprocal()  # least of words that no text holds, 0 of special ones
    slope = (sure * told * evidence.evidence).sum() / (sure * told.square()).sum().clamp(min=1e-6)
    return told * slope.clamp(min=0)
