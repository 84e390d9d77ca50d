"""What a model reads of a text: the words where they stand, and the ids that stand for them."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from unicodedata import category

import numpy as np

from wordward.perturbation.objective import IGNORE
from wordward.text.tokenizers import Token


class Row(NamedTuple):
    """The ids of a text and which word each is a piece of; an LSTM reads every word as one piece."""

    ids: np.ndarray  # (time,)
    word: np.ndarray  # (time,) the word that each id is part of; -1: of none
    first: np.ndarray  # (words,) where each word begins
    numbers: np.ndarray  # (time,) of that word, for the rule of sense

    def swapped(self, position: int, word: int) -> "Row":
        """The row with one id, `word`, in place of all pieces of the word at `position`."""
        (pieces,) = np.nonzero(self.word == position)
        before, after = slice(pieces[0]), slice(pieces[-1] + 1, None)

        def put(values: np.ndarray, new: int) -> np.ndarray:
            return np.concatenate([values[before], [new], values[after]]).astype(values.dtype)

        later = np.arange(len(self.first)) > position
        first = self.first - np.where(later, pieces[-1] - pieces[0], 0)
        return Row(put(self.ids, word), put(self.word, position), first, put(self.numbers, word))

    @property
    def single(self) -> np.ndarray:
        """Which words are one id each, (words,) bool: a piece has other neighbours than its word."""
        return np.bincount(self.word[self.word >= 0], minlength=len(self.first)) == 1

    def at_first(self, labels: np.ndarray) -> np.ndarray:
        """Labels of words, (words,), as labels of ids, (time,): each at its word's first piece, IGNORE elsewhere."""
        of_ids = np.full(len(self.ids), IGNORE, dtype=np.int64)
        of_ids[self.first] = labels
        return of_ids

    def at_all(self, chosen: np.ndarray) -> np.ndarray:
        """Which ids belong to the chosen words: (time,) bool from (words,) bool."""
        of_ids = np.zeros(len(self.ids), dtype=bool)
        real = self.word >= 0
        of_ids[real] = chosen[self.word[real]]
        return of_ids


class Reading(NamedTuple):
    """A tokenised text: its words, their places in the text, and the ids that the model reads."""

    text: str  # as given; of tokens that do not stand in it, the tokens with blanks between
    tokens: list[Token]  # without those that the run leaves out, and cut to the longest length
    known: list[bool]  # of each token, whether the model reads it as itself and not as <unk>
    words: int  # before anything was left out or cut; 0: there is nothing to predict from
    unread: int  # words after the longest length
    row: Row

    def written(self, position: int) -> str:
        """The word at a position, spelt as in the text."""
        token = self.tokens[position]
        return self.text[token.start : token.end]


def target_of(row: Row, labels: Any) -> Any:
    """A text's label for a corpus: a class stays as it is, a tagger's labels of words become labels of ids."""
    return row.at_first(labels) if isinstance(labels, np.ndarray) else labels


def place_tokens(text: str, words: Sequence[str], *, lowercase: bool) -> tuple[str, list[Token]]:
    """The text and the place of each token in it; tokens that it does not hold are joined by blanks instead."""
    tokens, at = [], 0
    for word in words:
        start = text.find(word, at)
        if start < 0:  # the text was written in another way than its tokens
            return place_tokens(" ".join(words), words, lowercase=lowercase)
        at = start + len(word)
        tokens.append(Token(word.lower() if lowercase else word, start, at))
    return text, tokens


def no_words(text: str) -> str:
    """What is wrong with a text in which a run finds no words: it is empty, or of emoji and other marks."""
    if all(category(symbol)[0] in "CZ" for symbol in text):  # blanks, and symbols of no width
        return "the text is empty: no words to read"
    return (
        "no words to read: this run takes none of the text's symbols for a word (one trained with "
        "`tokenizer='punctuation'` does)"
    )
