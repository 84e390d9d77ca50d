"""The words that a model reads in a text, with their positions."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wordward.text.vocabulary import Token


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
