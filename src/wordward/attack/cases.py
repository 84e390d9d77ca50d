"""The state of a search: texts under attack, the prediction that is to change, the swaps made so far."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from wordward.attack.fluency import Fluency
from wordward.attack.stopwords import STOP_WORDS
from wordward.config.attack import AttackSettings
from wordward.explain.english import fold
from wordward.explain.explanation import Place
from wordward.perturbation.objective import IGNORE
from wordward.runs.reading import Reading, Row


class Replacement(NamedTuple):
    """A word of a text replaced by another."""

    position: int  # of the word that goes
    word: int  # id of the word that comes


@dataclass(frozen=True)
class State:
    """A text after some swaps or edits."""

    row: Row  # as the model reads it
    made: tuple[Any, ...] = ()  # in their order, `Replacement`s or `Edit`s
    margin: float = np.inf  # how far the prediction is from changing; below 0 it has changed


@dataclass(frozen=True)
class Target:
    """The prediction that is to change."""

    lose: int | np.ndarray  # the class; a tagger's (words,): the tag, IGNORE where no tag is to change
    watched: np.ndarray | None = None  # a tagger's (words,) bool, where that tag must not be in the end
    never: frozenset[Replacement] = frozenset()  # swaps that may not be made
    odds: float | None = None  # a guard's: the logarithm of the odds below which the class is lost

    def margin(self, logits: np.ndarray) -> float:
        """How far the logits (classes,) or (time, classes) are from another prediction."""
        if self.odds is not None:
            others = np.logaddexp.reduce(np.delete(logits, self.lose).astype(np.float64))
            return float(logits[self.lose] - others - self.odds)
        if self.watched is None:
            others = logits.copy()
            others[self.lose] = -np.inf
            return float(logits[self.lose] - others.max())
        tag = int(np.max(self.lose))  # IGNORE is below every tag
        ahead = (logits[:, tag] - np.delete(logits, tag, axis=1).max(1))[self.watched]
        flagged = ahead[ahead >= 0]
        return float(flagged.sum()) if len(flagged) else float(ahead.max())


@dataclass(frozen=True)
class Case:
    """A text under attack."""

    reading: Reading
    target: Target
    open: np.ndarray  # (words,) bool, where a word may be swapped
    most: int  # swaps

    @property
    def text(self) -> str:
        """The text itself."""
        return self.reading.text

    @property
    def row(self) -> Row:
        """The text as the model reads it."""
        return self.reading.row

    def place(self, position: int) -> Place:
        """One of its words and where it stands."""
        start, end = self.reading.spans[position]
        return Place(position, self.text[start:end], start, end, self.reading.known[position], ())

    def number(self, position: int) -> int:
        """The number of a word in the tables of the rule of sense."""
        return int(self.row.numbers[self.row.first[position]])


class Proposed(NamedTuple):
    """What a guide proposes for each of some states."""

    swaps: list[list[Replacement]]  # best first
    margins: list[float]  # how far the prediction is from changing
    spent: list[int]  # texts that the model read for it, but for those that the search reads again


class SwapGuide(Protocol):
    """What a search asks for swaps: a method that follows gradients, or one that asks the model alone."""

    settings: AttackSettings
    fitting: bool  # whether only words that fit their place are proposed
    fluency: Fluency | None  # the language model that judges them

    def __call__(self, states: Sequence[State], cases: Sequence[Case]) -> Proposed:
        """What is proposed for each state."""
        ...

    def open(self, text: Reading) -> np.ndarray:
        """Which words may be swapped, (words,) bool; where only fitting words come, what is a word by itself."""
        ...


def protected(settings: AttackSettings) -> frozenset[str]:
    """The words that stay as they are, as `fold` writes them."""
    return frozenset(map(fold, settings.keep)) | (STOP_WORDS if settings.keep_stop_words else frozenset())


def open_words(text: Reading, target: Target, kept: frozenset[str]) -> np.ndarray:
    """Which words may be swapped, (words,) bool: not those to keep, nor a tagger's where no tag is to change."""
    open = np.array([fold(text.text[start:end]) not in kept for start, end in text.spans], dtype=bool)
    return open & (target.lose != IGNORE) if isinstance(target.lose, np.ndarray) else open


def of_words(logits: np.ndarray, row: Row) -> np.ndarray:
    """A tagger's logits of words, (words, classes), from those of ids, (time, classes); a classifier's stay."""
    return logits if logits.ndim == 1 else logits[row.first]
