"""The words that a model reads in a text, with their positions, and how others are put in their place."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from wordward.explain.explanation import Place
from wordward.text.vocabulary import Token

if TYPE_CHECKING:
    from wordward.runs.run import Run


class Reading(NamedTuple):
    """A text and the words that a model reads in it."""

    text: str  # as given; of tokens that do not stand in it, the tokens with blanks between
    tokens: list[Token]  # without those that the run leaves out, and cut to the longest length
    words: int  # before that; 0: there is nothing to predict from
    unread: int  # words after the longest length


class Pieces(NamedTuple):
    """Where the words of a text are among ids that stand for pieces of words."""

    word: np.ndarray  # (time,) the word that each id is part of; -1: of none
    first: np.ndarray  # (words,) where each word begins
    numbers: np.ndarray  # (time,) of that word, for the rule of sense


class Row(NamedTuple):
    """What a model reads of a text."""

    ids: np.ndarray  # (time,)
    pieces: Pieces | None = None  # None: one id a word, in the order of the words


def place_tokens(text: str, words: Sequence[str], *, lowercase: bool) -> tuple[str, list[Token]]:
    """Tokens that came with an example, where they stand in its text."""
    tokens, at = [], 0
    for word in words:
        start = text.find(word, at)
        if start < 0:  # the text was written in another way than its tokens
            return place_tokens(" ".join(words), words, lowercase=lowercase)
        at = start + len(word)
        tokens.append(Token(word.lower() if lowercase else word, start, at))
    return text, tokens


def apply(run: "Run", text: str, changes: Sequence[tuple[Place, str]]) -> str:
    """The text that was explained with the new words put in, and everything else unchanged."""
    changes = sorted(changes, key=lambda change: change[0].start, reverse=True)
    before = len(text)
    for place, word in changes:  # from the last to the first, so that earlier places stay where they are
        if text[place.start : place.end] != place.word or place.end > before:
            raise ValueError(
                f"expected {place.word!r} at characters {place.start}-{place.end}; found "
                f"{text[place.start : place.end]!r}: give the text that was explained, and each place once"
            )
        cased = _cased(word, place.word) if run.text.lowercase else word
        text, before = text[: place.start] + cased + text[place.end :], place.start
    return text


def _cased(word: str, like: str) -> str:
    """A lower-case word capitalised like another, if a lower-casing run still reads it as the same word."""
    cased = word
    if like[:1].isupper():
        cased = word.upper() if like.isupper() and len(like) > 1 else word[:1].upper() + word[1:]
    return cased if cased.lower() == word else word
