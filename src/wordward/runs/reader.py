"""From a text to the ids that a model reads, one text or many at a time, and again after a word was swapped."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from wordward.datasets import Example
from wordward.runs.reading import Reading, Row


class Reader(ABC):
    """Reads texts for a model: `read` and `ids_of` say how, and what takes many texts may be made faster."""

    @abstractmethod
    def read(self, example: Example) -> Reading:
        """Tokenise an example: its words with their places in the text, and the ids that `encode` would give."""

    def read_all(self, examples: Sequence[Example]) -> list[Reading]:
        """The reading of each example, in order; found together where that is faster than one by one."""
        return [self.read(example) for example in examples]

    @abstractmethod
    def ids_of(self, text: str) -> np.ndarray:
        """The ids of a text, (time,)."""

    def rows_of(self, texts: Sequence[str], *, known: bool = False) -> list[np.ndarray | None]:
        """The ids that the model reads of each text, (time,); None for one without words, or without `known` ones."""
        readings = self.read_all([Example(text) for text in texts])
        words = [len(reading.spans) if known else reading.words for reading in readings]
        return [
            reading.ids if count and len(reading.ids) else None
            for reading, count in zip(readings, words, strict=True)
        ]

    def swapped(self, row: Row, position: int, word: int, text: str) -> Row | None:
        """The row with one word replaced; None if the tokenizer reads the new `text` as other ids."""
        new = row.swapped(position, word)
        return new if np.array_equal(self.ids_of(text), new.ids) else None

    def swapped_rows(self, swaps: Sequence[tuple[Row, int, int, str]]) -> list[Row | None]:
        """What `swapped` gives for each row, position, word and new text."""
        return [self.swapped(*swap) for swap in swaps]

    def ids_alone(self, stretches: Sequence[str]) -> list[list[int]] | None:
        """The ids of each stretch of text between blanks; None for a model that reads it by what is around it."""
        return None
