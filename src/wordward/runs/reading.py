"""What a model reads of a text: the words where they stand, and the ids that stand for them."""

from collections.abc import Callable, Sequence
from functools import cached_property
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
        if len(pieces) == 1:  # the same as below, but faster
            ids, numbers = self.ids.copy(), self.numbers.copy()
            ids[pieces] = numbers[pieces] = word
            return self._replace(ids=ids, numbers=numbers)
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


class Words(NamedTuple):
    """The words of a text, and how the ids that the model reads are made of them."""

    spans: list[tuple[int, int]]  # characters of each, without what the run leaves out, cut to the longest length
    known: list[bool]  # of each, whether the model reads it as itself and not as <unk>
    total: int  # before anything was left out or cut
    unread: int  # after the longest length
    row: Row


class Reading:
    """A tokenised text: the ids that the model reads, its words, and their places in the text.

    The words are found when they are first asked for, since a prediction needs the ids alone.
    """

    def __init__(
        self,
        text: str,
        ids: np.ndarray,
        find: Callable[[], Words],
        *,
        lowercase: bool,
        filled: bool,
        known: bool | None = None,
        unread: int | None = None,
    ) -> None:
        """`filled`: whether there are words to predict from. Where this is at hand before the words are found:

        `known`: whether the model reads any as itself; `unread`: how many come after the longest length.
        """
        self.text = text  # as given; of tokens that do not stand in it, the tokens with blanks between
        self.ids, self.filled = ids, filled
        self._find, self._lowercase, self._known, self._unread = find, lowercase, known, unread

    @classmethod
    def of(cls, text: str, found: Words, *, lowercase: bool) -> "Reading":
        """A text whose words are found already."""
        return cls(text, found.row.ids, lambda: found, lowercase=lowercase, filled=found.total > 0)

    @cached_property
    def found(self) -> Words:
        """The words, and how the ids are made of them; found when they are first asked for."""
        return self._find()

    @cached_property
    def tokens(self) -> list[Token]:
        """The words that the model reads, in lower case where the run lower-cases."""
        text, spans = self.text, self.found.spans
        if self._lowercase:
            return [Token(text[start:end].lower(), start, end) for start, end in spans]
        return [Token(text[start:end], start, end) for start, end in spans]

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Where the tokens begin and end in the text."""
        return self.found.spans

    @property
    def known(self) -> list[bool]:
        """Of each token, whether the model reads it as itself and not as <unk>."""
        return self.found.known

    @property
    def any_known(self) -> bool:
        """Whether the model reads any of them as itself."""
        return any(self.known) if self._known is None else self._known

    @property
    def words(self) -> int:
        """How many words there are before anything is left out or cut; 0: there is nothing to predict from."""
        return self.found.total

    @property
    def unread(self) -> int:
        """Words after the longest length."""
        return self.found.unread if self._unread is None else self._unread

    @property
    def row(self) -> Row:
        """The ids, and which word each is a piece of."""
        return self.found.row

    def word(self, position: int) -> str:
        """The text of the token at a position: where few are asked for, faster than all `tokens`."""
        return self.written(position).lower() if self._lowercase else self.written(position)

    def written(self, position: int) -> str:
        """The word at a position, spelt as in the text."""
        start, end = self.spans[position]
        return self.text[start:end]


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
