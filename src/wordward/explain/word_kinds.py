"""Which word may stand in another's place: of the same kind, inflection and case, and not the same word again."""

import re
from collections.abc import Sequence, Set
from copy import copy
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from wordward.explain.addresses import addresses
from wordward.explain.english import (
    ADJECTIVES,
    ALONE,
    CLOSED,
    CRUDE,
    GROUPS,
    NOUNS,
    NUMBERS,
    PAST,
    PIECES,
    QUALITIES,
    TIMES,
    fold,
)
from wordward.runs.input_table import input_table, installed_model

# Kinds of the other words, bits after those of the groups: by their ending, or without one by what they may be. An
# "s" is a noun's, or anything's; "verbs" is given where that is known to be of a verb (`word_classes`).
OPEN = ("s", "ed", "ing", "ly", "er", "est", "noun", "verb", "adjective", "number", "verbs")
SINGULAR = ("ss", "us", "is", "as", "os", "ics")  # endings of words in -s that are no plural, nor a verb's form
BIT = {name: 1 << at for at, name in enumerate(OPEN, start=len(GROUPS))}
assert len(GROUPS) + len(OPEN) <= 63  # bits of an int64 without its sign


def kind(word: str, known: Set[str]) -> int:
    """The kinds of a word as bits, two words fitting each other where they share one; 0: it fits no other.

    `known`: words in lower case, which tell "worked" (work) from "hundred".
    """
    plain = fold(word)
    if plain in PIECES or plain in ALONE:
        return 0
    if plain in CLOSED:
        return sum(1 << bit for bit, group in enumerate(GROUPS) if plain in group)
    if plain.isdecimal() or plain in NUMBERS:
        return BIT["number"]
    if not re.fullmatch(r"[^\W\d_]+(?:-[^\W\d_]+)*", plain) or len(plain) < 2:
        return 0
    if ending := inflection(plain, known):
        return BIT[ending]
    return sum(BIT[name] for name in parts_of_speech(plain, known))


def inflection(word: str, known: Set[str]) -> str:
    """The ending of OPEN that a word in lower case has, mostly on a word that is known; "" for none."""
    if word in PAST:
        return "ed"
    if word in QUALITIES:
        return ""
    if len(word) > 5 and word.endswith(("ing", "ed")) and not word.endswith("eed"):
        return "ing" if word.endswith("ing") else "ed"
    if len(word) > 5 and word.endswith("s") and not word.endswith(SINGULAR):
        return "s"
    for ending in ("ing", "ed", "est", "er", "ly", "s"):
        if word.endswith(ending) and not word.endswith(("ss", "us", "is")):
            base = word.removesuffix(ending)
            if len(base) == 2 and ending == "ing" and {base, f"{base}e"} & known and word != "thing":
                return ending  # going, using
            if len(base) > 2 and any(form in known for form in _bases(base, ending)):
                # A charger is nothing that has more of a quality: faster, fastest.
                faster = base.endswith("i") or f"{base}est" in known
                return "" if ending == "er" and not faster else ending
    return ""


def parts_of_speech(word: str, known: Set[str]) -> list[str]:
    """What a word without an ending may be, by its form and by which of its other forms are known."""
    if word in TIMES:
        return ["noun"]
    forms = other_forms(word, known)
    found = ["verb", "noun"] if "verb" in forms else []
    if word in QUALITIES or word.endswith(ADJECTIVES):
        found = ["adjective"]
    elif not word.endswith(NOUNS) and "adjective" in forms:
        found += ["adjective"]
    if found:
        return found
    return ["noun"] if word.endswith(NOUNS) or "noun" in forms else ["noun", "adjective"]


def other_forms(word: str, known: Set[str]) -> list[str]:
    """What a word is by which of its other forms are known: a plural, -ing, -ly and others of an adjective."""
    short, doubled = word.removesuffix("e"), word + word[-1]
    forms = {
        "noun": (f"{word}s", f"{word}es", f"{word[:-1]}ies"),
        "verb": (f"{word}ing", f"{short}ing", f"{doubled}ing"),
        "adjective": (f"{word}ly", f"{word[:-1]}ily", f"un{word}", f"{word}ness", f"{short}est", f"{doubled}est"),
    }
    return [name for name, of_name in forms.items() if not known.isdisjoint(of_name)]


def _bases(base: str, ending: str) -> list[str]:
    """What a word may have been before its ending came: worked, loved, tried, stopped."""
    forms = [base, f"{base}e"] if ending != "s" else [base]
    if ending == "s" and base.endswith("e"):
        forms.append(base[:-1])  # boxes
    if base.endswith(("i", "ie")):
        forms.append(f"{base.rstrip('ei')}y")
    if ending == "ly" and len(base) > 3:
        forms.append(f"{base}le")  # simply
    if base[-1] == base[-2]:
        forms.append(base[:-1])
    return forms


def stem(word: str, known: Set[str]) -> str:
    """What the forms of a word have in common: love of "loves", "Loved" and "loving", roughly."""
    plain = fold(word)
    if plain in CLOSED:
        return plain
    ending = inflection(plain, known) if plain not in PAST else ""
    base = plain.removesuffix(ending) if ending else plain
    if len(base) > 3:
        base = re.sub(r"(?:ie|i|y)$", "i", base)
        base = re.sub(r"e$", "", base)
        base = re.sub(r"([^aeiouls])\1$", r"\1", base)
    return base


def case(word: str) -> int:
    """How a word is written: 0 lower case (or without case), 1 Capitalised, 2 UPPER CASE, 3 otherwise."""
    if word == word.lower():
        return 0
    if word == word.upper():
        return 2 if sum(map(str.isalpha, word)) > 1 else 3  # a single capital says nothing
    return 1 if word[1:] == word[1:].lower() else 3


class Fitting:
    """Which words of a vocabulary fit which, by their ids."""

    among: int = 100  # of the words nearest to a word, how many are looked at where those that differ most come first

    def __init__(self, words: Sequence[str], known: Set[str], *, names: bool = False) -> None:
        """`known`: words that exist, in lower case, by which endings are recognised.

        `names`: capitalised words are names, those that begin alike forms of one (Japan, Japanese; Poland, Polish).
        """
        self._known, self._names = known, names
        self._numbers: dict[str, int] = {}  # of stems
        kinds = [kind(word, known) if case(word) != 3 else 0 for word in words]
        self.kinds = torch.tensor(kinds)  # (words,) int64
        self.cases = torch.tensor([case(word) for word in words])
        self.crude = torch.tensor([fold(word) in CRUDE for word in words])
        stems = [self._stem(word) for word in words]
        self.stems = torch.from_numpy(
            np.array([self._numbers.setdefault(each, len(self._numbers)) for each in stems], dtype=np.int64)
        )

    def _stem(self, word: str) -> str:
        return word[:3].lower() if self._names and case(word) in (1, 2) else stem(word, self._known)

    def of_others(self, words: Sequence[str]) -> "Fitting":
        """The same for words that are not in the vocabulary."""
        others = Fitting(words, self._known, names=self._names)
        others.stems = torch.tensor([self._numbers.get(self._stem(word), -1) for word in words])
        return others

    def joined(self, others: "Fitting") -> "Fitting":
        """These words, then others."""
        result = copy(self)
        for name, values in vars(self).items():
            if isinstance(values, Tensor):
                setattr(result, name, torch.cat([values, getattr(others, name).to(values.device)]))
        return result

    def to(self, device: torch.device) -> "Fitting":
        """The same on a device."""
        moved = copy(self)
        for name, values in vars(self).items():
            if isinstance(values, Tensor):
                setattr(moved, name, values.to(device))
        return moved

    def __call__(self, words: Tensor, others: Tensor) -> Tensor:
        """Whether each of `others` fits in the place of each of `words`, ids of one shape."""
        return (
            (self.kinds[words] & self.kinds[others] != 0)
            & (self.cases[words] == self.cases[others])
            & (self.stems[words] != self.stems[others])
        )


@lru_cache(maxsize=4)
def fitting(words: tuple[str, ...], *, names: bool = False) -> Fitting:
    """Which words of a vocabulary fit which; endings are recognised by its words and those of an installed BERT."""
    folder = installed_model()
    more = frozenset() if folder is None else frozenset(filter(str.isalpha, input_table(folder)[0]))
    return Fitting(words, more.union(map(fold, words)), names=names)


def in_one_piece_each(text: str, spans: Sequence[tuple[int, int]]) -> np.ndarray:
    """Whether words, given by where they begin and end, are whole: not "can" in "can't", or "ve" in "I've".

    Nor are the names of accounts, as in @name, what stands for a symbol on a web page, as in &amp;, or parts of
    addresses.
    """
    whole = np.ones(len(spans), dtype=bool)
    if "'" in text or "’" in text:
        marks = [at for at, symbol in enumerate(text) if symbol in "'’"]
        before = {at for at in marks if text[at + 1 : at + 2].isalpha()}  # where words end that are not whole
        after = {at + 1 for at in marks if at and text[at - 1].isalpha()}  # and where they begin
        whole &= np.array([end not in before and start not in after for start, end in spans], dtype=bool)
    if "@" in text or "&" in text:
        signs = [(text[max(0, start - 1) : start], text[end : end + 1]) for start, end in spans]
        whole &= [before != "@" and (before, after) != ("&", ";") for before, after in signs]
    if found := addresses(text):
        inside = {at for start, end in found for at in range(start, end)}
        whole &= [start not in inside for start, _ in spans]
    return whole
