"""The words that a model knows, and their ids."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import repeat
from os import PathLike
from pathlib import Path
from typing import Literal, final

import numpy as np

from wordward.support.errors import DataError, SettingError, SettingTypeError
from wordward.text.spelling import FORM, beginnings_of, forms_of, shared

PAD, UNK, EOS = 0, 1, 2
SPECIALS = ("<pad>", "<unk>", "<eos>")


@final
@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The words a model knows: ids in order of frequency, after pad, unk and eos; after them forms, if it has any.

    Args:
        words: All words, by id.
        counts: How often each occurs in training, (words,); unk's are those of the words left out.

    Examples:
        >>> import wordward
        >>> words = wordward.Vocabulary.build([["a", "warm", "film"], ["a", "dull", "film"]], min_documents=1)
        >>> len(words), words.encode(["a", "film", "unseen"], eos=False)
        (7, [3, 4, 1])
    """

    words: tuple[str, ...]
    counts: np.ndarray
    plain: int = field(init=False)  # specials and words; the ids from here on are of forms
    _ids: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        counts = np.array(self.counts, dtype=np.int64)
        counts.flags.writeable = False
        if self.words[: len(SPECIALS)] != SPECIALS or counts.shape != (len(self.words),):
            raise DataError(
                f"expected words that begin with {' '.join(SPECIALS)} and one count a word; "
                f"got {self.words[: len(SPECIALS)]} and counts of shape {counts.shape}"
            )
        # The specials are not words: a literal "<pad>" in a text must not reach the pad row.
        ids = {word: number for number, word in enumerate(self.words) if number >= len(SPECIALS)}
        if len(ids) != len(self.words) - len(SPECIALS):
            raise DataError("expected different words; some word occurs twice")
        for word in ids:
            _check_word(word)
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "_ids", ids)
        forms = sum(word.startswith(FORM) for word in ids)
        object.__setattr__(self, "plain", len(self.words) - forms)

    @classmethod
    def build(
        cls, documents: Iterable[Iterable[str]], *, min_documents: int = 2, max_size: int | None = None
    ) -> "Vocabulary":
        """Words in at least `min_documents` documents, the `max_size` most frequent of them."""
        occurrences: Counter[str] = Counter()
        spread: Counter[str] = Counter()
        size = 0
        for document in documents:
            if isinstance(document, str):
                raise SettingTypeError(
                    "documents", f"expected documents as lists of words; got text {document[:40]!r}: split it"
                )
            words = list(document)
            occurrences.update(words)
            spread.update(set(words))
            size += 1
        if size and not spread:
            raise DataError(
                f"expected words; this tokenizer finds none in {size} documents: choose another, such as "
                "punctuation or whitespace, which keep symbols"
            )
        return cls.of_counts(occurrences, spread, size, min_documents=min_documents, max_size=max_size)

    @classmethod
    def of_counts(
        cls,
        occurrences: Mapping[str, int],
        spread: Mapping[str, int],
        size: int,
        *,
        min_documents: int,
        max_size: int | None,
    ) -> "Vocabulary":
        """As `build`, from how often each word occurs, in how many documents, and the number of documents."""
        kept = [word for word, number in spread.items() if number >= min_documents and word not in SPECIALS]
        kept = sorted(kept, key=lambda word: (-occurrences[word], word))[:max_size]
        if not kept:
            raise SettingError(
                "min_documents",
                f"expected words that occur in {min_documents} or more documents; none of "
                f"{len(spread)} words in {size} documents does: give more text or a lower `min_documents`",
            )
        counts = [occurrences[word] for word in kept]
        return cls((*SPECIALS, *kept), np.array([0, sum(occurrences.values()) - sum(counts), size, *counts]))

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def __getitem__(self, word: str) -> int:
        return self._ids[word] if word in self._ids else self.form(word)

    def form(self, word: str) -> int:
        """The id as which a word is read that is not known: of a form that it shares with known words, else unk."""
        if self.plain == len(self.words):
            return UNK
        forms = forms_of(word) + beginnings_of(word)
        return next((self._ids[form] for form in forms if form in self._ids), UNK)

    def with_forms(self, told: Callable[[str], list[str]] = forms_of) -> "Vocabulary":
        """The vocabulary with the forms that two or more of its words have; `told`: those of a word."""
        forms = shared([told(word) for word in self.words[len(SPECIALS) :]])
        return Vocabulary((*self.words, *forms), np.concatenate([self.counts, np.zeros(len(forms), np.int64)]))

    def with_others(self, words: Iterable[str]) -> "Vocabulary":
        """The vocabulary, and after its own words those of `words` that it lacks, which no text has."""
        others = [word for word in dict.fromkeys(words) if word not in self._ids]
        return Vocabulary((*self.words, *others), np.concatenate([self.counts, np.zeros(len(others), np.int64)]))

    def first(self, count: int) -> "Vocabulary":
        """The first `count` ids alone."""
        return Vocabulary(self.words[:count], self.counts[:count])

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} words, {self.fingerprint})"

    def word(self, number: int) -> str:
        """The word of an id."""
        if not 0 <= number < len(self.words):
            raise IndexError(f"expected an id from 0 to {len(self.words) - 1}; got {number}")
        return self.words[number]

    def encode(self, words: Iterable[str], *, eos: bool = True, unknown: Literal["unk", "drop"] = "unk") -> list[int]:
        """Word ids; an unknown word becomes unk or its form, or is left out as the authors do."""
        if unknown == "unk" and self.plain == len(self.words):  # as the next one, but twice as fast
            ids = list(map(self._ids.get, words, repeat(UNK)))
        elif unknown == "unk":
            ids = [self[word] for word in words]
        elif unknown == "drop":
            ids = [self._ids[word] for word in words if word in self._ids]
        else:
            raise SettingError("unknown", f"expected unknown='unk' or 'drop'; got {unknown!r}")
        return [*ids, EOS] if eos else ids

    def candidates(self, min_count: int = 1) -> np.ndarray:
        """Ids of the words a perturbation may point at: frequent enough and never a special or a form."""
        ids = np.flatnonzero(self.counts[: self.plain] >= min_count)
        return ids[ids >= len(SPECIALS)]

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that differ between vocabularies of other words or another order."""
        return hashlib.sha256("\n".join(self.words).encode()).hexdigest()[:16]

    def save(self, path: str | PathLike[str]) -> None:
        """Write `word<TAB>count` lines in UTF-8, specials first."""
        lines = (f"{word}\t{count}\n" for word, count in zip(self.words, self.counts, strict=True))
        # Bytes, because text mode would rewrite a carriage return inside a word.
        Path(path).write_bytes("".join(lines).encode())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Vocabulary":
        """Read what `save` wrote."""
        table: dict[str, int] = {}
        # Bytes and split("\n"): a word may hold U+0085 and other characters that end a line elsewhere.
        lines = Path(path).read_bytes().removesuffix(b"\n").split(b"\n")
        for number, raw in enumerate(lines, start=1):
            try:
                word, count = _parse_line(raw.decode(), number)
                if word in table:
                    raise ValueError(f"the word {word!r} came before")
            except ValueError as error:
                raise DataError(f"{path}, line {number}: {error}: is it a vocabulary saved by wordward?") from None
            table[word] = count
        if len(table) < len(SPECIALS):
            raise DataError(f"{path}, line {len(table) + 1}: expected {SPECIALS[len(table)]}, the file ends")
        return cls(tuple(table), np.array(list(table.values())))


def _parse_line(line: str, number: int) -> tuple[str, int]:
    fields = re.fullmatch(r"([^\t]+)\t([0-9]{1,18})\r?", line)
    if fields is None:
        raise ValueError(f"expected word<TAB>count, got {line[:80]!r}")
    if number <= len(SPECIALS) and fields[1] != SPECIALS[number - 1]:
        raise ValueError(f"expected {SPECIALS[number - 1]}, got {fields[1]!r}")
    return fields[1], int(fields[2])


def _check_word(word: str) -> None:
    try:
        word.encode()
    except UnicodeEncodeError:
        raise DataError(f"expected words that UTF-8 can write; got {word!r}") from None
    if not word or "\t" in word or "\n" in word:
        raise DataError(f"expected words without tabs and line breaks, and none empty; got {word!r}")
