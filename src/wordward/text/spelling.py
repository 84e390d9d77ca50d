"""How words are spelt: shape, beginnings and endings; and forms, as which words that are not known are read."""

import re
from collections import Counter
from collections.abc import Sequence

FORM = "<unk> "  # begins the name of a form; its blank keeps it apart from the words of texts
BEGINNING = f"{FORM}from "  # begins the name of one that tells what words begin with
AFFIXES = (1, 2, 3, 4)  # letters of beginnings and endings
ENDINGS = (3, 2, 1)  # letters of the ending that a form tells, the most first
LONGEST = 6  # characters of a shape
MOST = 32  # letters of a beginning: what is longer is no word


def shape_of(word: str) -> str:
    """Letters as A and a, digits as 0, other characters as they are; of equal ones in a row the first.

    Examples:
        >>> [shape_of(word) for word in ("Vienna", "U.S.", "1996-08-30", "mid-May")]
        ['Aa', 'A.A.', '0-0-0', 'a-Aa']
    """
    letters = "".join("0" if c.isdigit() else c if not c.isalpha() else "A" if c.isupper() else "a" for c in word)
    return re.sub(r"(.)\1+", r"\1", letters)[:LONGEST]


def forms_of(word: str) -> list[str]:
    """The forms that a word has, from the one that tells most: its shape with the ending, then its shape alone.

    Examples:
        >>> forms_of("Vienna")
        ['<unk> Aa nna', '<unk> Aa na', '<unk> Aa a', '<unk> Aa']
    """
    shape, small = shape_of(word), word.lower()
    return [*(f"{FORM}{shape} {small[-letters:]}" for letters in ENDINGS), f"{FORM}{shape}"]


def beginnings_of(word: str) -> list[str]:
    """The forms of what a word of letters begins with, the longest first.

    Examples:
        >>> beginnings_of("film")
        ['<unk> from film', '<unk> from fil', '<unk> from fi']
    """
    longest = min(len(word), MOST)
    return [f"{BEGINNING}{word[:letters]}" for letters in range(longest, 1, -1)] if word[:1].isalpha() else []


def spelling_of(word: str) -> list[str]:
    """What is told of a word or of a form: itself, its small letters, shape, beginnings and endings.

    Examples:
        >>> spelling_of("At")
        ['is At', 'small at', 'shape Aa', 'from a', 'from at', 'to t', 'to at']
        >>> spelling_of("<unk> Aa na")
        ['shape Aa', 'to a', 'to na']
    """
    if word.startswith(FORM):
        shape, _, small = word.removeprefix(FORM).partition(" ")
        return [f"shape {shape}", *_affixes("to", small)]
    small = word.lower()
    told = [f"is {word}", f"small {small}", f"shape {shape_of(word)}"]
    return [*told, *_affixes("from", small), *_affixes("to", small)]


def _affixes(name: str, small: str) -> list[str]:
    lengths = [letters for letters in AFFIXES if letters <= len(small)]
    return [f"{name} {small[:letters] if name == 'from' else small[-letters:]}" for letters in lengths]


def shared(told: Sequence[Sequence[str]]) -> list[str]:
    """What is told of two words or more, in the order of the alphabet.

    Examples:
        >>> shared([["a", "b"], ["b", "c"]])
        ['b']
    """
    counts = Counter(one for each in told for one in set(each))
    return sorted(one for one, count in counts.items() if count > 1)


def numbered(told: Sequence[Sequence[str]]) -> dict[str, int]:
    """A number, from 1, for each thing that is told, in the order in which they are told.

    Examples:
        >>> numbered([["a", "b"], ["b", "c"]])
        {'a': 1, 'b': 2, 'c': 3}
    """
    numbers: dict[str, int] = {}
    for each in told:
        for one in each:
            numbers.setdefault(one, len(numbers) + 1)
    return numbers
