"""A language model of counts: sequences of one, two and three words of some texts."""

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import chain

import numpy as np

from wordward.text.tokenizers import BREAK, split_words

DISCOUNT = 0.75  # taken from each count, for sequences not seen
ORDER = 3
NEAR = 40  # characters, a few words, on either side of a swap
Table = tuple[np.ndarray, np.ndarray]  # sorted codes, and a number for each


@lru_cache(maxsize=1024)  # many swaps are tried in one text
def split(text: str) -> list[str]:
    """Words and marks of a text in lower case, as they are counted."""
    return [word.replace("’", "'") for word in split_words(text, "punctuation", lowercase=True)]


class NGrams:
    """Counts of texts; probabilities are interpolated with absolute discounting."""

    def __init__(self, texts: Iterable[Sequence[str]]) -> None:
        self.ids: dict[str, int] = {"": 0}  # "" stands before and after each text
        before = [0] * (ORDER - 1)
        rows = [[*before, *(self.ids.setdefault(word, len(self.ids)) for word in words), 0] for words in texts]
        flat = np.fromiter(chain.from_iterable(rows), np.int64)
        predicted = np.ones(len(flat), dtype=bool)
        starts = np.cumsum([0, *map(len, rows)])[:-1]
        for back in range(ORDER - 1):
            predicted[starts + back] = False
        places = np.flatnonzero(predicted)
        self.size, self.total = len(self.ids), len(places)
        self.counts: list[Table] = []  # of the sequences of 1, 2, 3 words
        self.contexts: list[Table] = []  # how often each sequence of 0, 1, 2 words comes before a word
        self.followers: list[Table] = []  # and before how many different ones
        for order in range(1, ORDER + 1):
            codes = self._codes([flat[places - back] for back in range(order)][::-1])
            found, counts = np.unique(codes, return_counts=True)
            contexts, first = np.unique(found // self.size, return_index=True)
            self.counts.append((found, counts))
            self.contexts.append((contexts, np.add.reduceat(counts, first)))
            self.followers.append((contexts, np.diff([*first, len(found)])))

    def _codes(self, words: Sequence[np.ndarray]) -> np.ndarray:
        """A number for each sequence of words, given as one array for each place of the sequence."""
        codes = np.zeros_like(words[0])
        for of_place in words:
            codes = codes * self.size + of_place
        return codes

    def scores(self, rows: Sequence[Sequence[int]]) -> np.ndarray:
        """log p of each row of numbers of words, its first two left out, which are there to stand before the others.

        Words that were not counted, -1, have the probability of one that was seen less than once.
        """
        flat = np.fromiter(chain.from_iterable(rows), np.int64)
        starts = np.cumsum([0, *map(len, rows)])[:-1]
        probability = np.full(len(flat), 1 / (self.total + self.size))
        places = np.arange(len(flat))
        for order in range(1, ORDER + 1):
            sequence = [flat[places - back] for back in range(order)][::-1]
            codes, seen = self._codes(sequence), np.all([of_place >= 0 for of_place in sequence[:-1]], axis=0)
            contexts = self._codes(sequence[:-1]) if order > 1 else np.zeros_like(codes)
            count = np.where(flat >= 0, _look_up(self.counts[order - 1], codes), 0)
            total = np.where(seen, _look_up(self.contexts[order - 1], contexts), 0)
            kinds = _look_up(self.followers[order - 1], contexts)
            mixed = (np.maximum(count - DISCOUNT, 0) + DISCOUNT * kinds * probability) / np.maximum(total, 1)
            probability = np.where(total > 0, mixed, probability)
        logs = np.log(probability)
        for back in range(ORDER - 1):
            logs[starts + back] = 0.0
        return np.add.reduceat(logs, starts) if len(rows) else np.zeros(0)

    def numbers(self, words: Sequence[str]) -> list[int]:
        """The numbers of a text's words, with what stands before and after it."""
        return [*[0] * (ORDER - 1), *(self.ids.get(word, -1) for word in words), 0]

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """log p(after) - log p(before) of each pair of texts; -inf where the new words were not seen like that.

        A new word must have been seen beside one of its neighbours, and beside as many of them as the old word was.
        """
        rows = [row for before, after in pairs for row in self._changed(before, after)]
        scores, beside = self.scores(rows), self._seen_beside(rows)
        known = np.array([row.count(-1) for row in rows])
        unseen = (known[1::2] > known[::2]) | (beside[1::2] < np.maximum(beside[::2], 1))
        return np.where(unseen, -np.inf, scores[1::2] - scores[::2]).tolist()

    def _seen_beside(self, rows: Sequence[Sequence[int]]) -> np.ndarray:
        """How many pairs of words in each row, the first word left out, were seen."""
        flat = np.fromiter(chain.from_iterable(row[1:] for row in rows), np.int64)
        if not len(flat):
            return np.zeros(0, dtype=np.int64)
        starts = np.cumsum([0, *(len(row) - 1 for row in rows)])[:-1]
        before = np.roll(flat, 1)
        seen = (_look_up(self.counts[1], before * self.size + flat) > 0) & (before >= 0) & (flat >= 0)
        seen[starts] = False
        return np.add.reduceat(seen.astype(np.int64), starts)

    def _changed(self, before: str, after: str) -> tuple[list[int], list[int]]:
        """Where two texts differ, and the two words on either side that it matters to."""
        words, others = map(split, around(before, after))
        first, tail = alike_ends(words, others)
        if min(first, tail) < ORDER - 1 or first + tail >= min(len(words), len(others)):  # too near to an end
            words, others = split(before), split(after)
            first, tail = alike_ends(words, others)
        one, other = self.numbers(words), self.numbers(others)
        end = max(0, tail + 1 - (ORDER - 1))  # numbers after those
        return one[first : len(one) - end], other[first : len(other) - end]

    def likeliest(self, before: Sequence[str], after: Sequence[str], count: int) -> list[str]:
        """The words of highest probability between others, of those seen after the one before or before the next."""
        left = [*[0] * (ORDER - 1), *(self.ids.get(word, -1) for word in before[1 - ORDER :])][1 - ORDER :]
        right = [*(self.ids.get(word, -1) for word in after[: ORDER - 1]), 0][: ORDER - 1]
        codes = self.counts[1][0]
        start, end = np.searchsorted(codes, [left[-1] * self.size, (left[-1] + 1) * self.size])
        found = np.union1d(codes[start:end] % self.size, codes[codes % self.size == right[0]] // self.size)
        found = found[found > 0]
        scores = self.scores([[*left, int(word), *right] for word in found])
        best = np.argsort(-scores, kind="stable")[:count]
        return [self.words[at] for at in found[best]]

    @cached_property
    def words(self) -> list[str]:
        """The words by their numbers."""
        return list(self.ids)

    def perplexity(self, texts: Iterable[Sequence[str]]) -> float:
        """Of texts, each given as words."""
        rows = [self.numbers(words) for words in texts]
        count = sum(len(row) - (ORDER - 1) for row in rows)
        return float(np.exp(-self.scores(rows).sum() / max(count, 1)))


def around(before: str, after: str) -> tuple[str, str]:
    """What stands around the characters in which two texts differ, from blank to blank: to split all is slow."""
    start = _alike(before, after)
    left = before.rfind(" ", 0, max(0, start - NEAR)) + 1
    tail = _alike(before[start:][::-1], after[start:][::-1])
    right = before.find(" ", len(before) - tail + NEAR)
    end = 0 if right < 0 else len(before) - right  # characters left out after it
    if before[:left].rstrip().endswith(BREAK) or before[: len(before) - end].endswith(BREAK):
        return before, after  # it may hold a blank, and is no word
    return before[left : len(before) - end], after[left : len(after) - end]


def _alike(one: str, other: str) -> int:
    """How many characters two strings begin with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def alike_ends(words: Sequence[str], others: Sequence[str]) -> tuple[int, int]:
    """How many words (or characters) two texts begin with alike, and how many of the rest they end with alike."""
    same = min(len(words), len(others))
    first = next((at for at in range(same) if words[at] != others[at]), same)
    return first, next((at for at in range(same - first) if words[-1 - at] != others[-1 - at]), same - first)


def _look_up(table: Table, codes: np.ndarray) -> np.ndarray:
    """The number of each code, 0 for those that the table does not have."""
    keys, values = table
    at = np.searchsorted(keys, codes).clip(max=len(keys) - 1)
    return np.where(keys[at] == codes, values[at], 0)
