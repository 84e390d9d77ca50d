"""An attacked text in words: which texts tell most, what stands around each change, and a change itself."""

import re
from collections.abc import Sequence

from wordward.attack.attacked import Attacked, Change
from wordward.attack.edit_words import ALIKE, INVISIBLE

LOOK_ALIKES = frozenset(ALIKE.values())
AROUND, ON_PAGE = 1000, 90  # characters kept on each side of a change in a long text: in a terminal, on a page


def telling(results: Sequence[Attacked]) -> list[Attacked]:
    """The flipped texts: first those whose sense is kept, then those of fewer swaps, then of larger effect."""

    def order(each: Attacked) -> tuple[bool, int, float]:
        return not each.sense_kept, len(each.changes), each.probability_after - each.probability_before

    return sorted((each for each in results if each.flipped), key=order)


def stretches(attacked: Attacked, around: int = ON_PAGE) -> list[tuple[str, Change | None]]:
    """The text before each change, with it, and the rest; long stretches are cut to so many characters beside it."""
    found, at = [], 0
    for change in attacked.changes:
        found.append((_cut(attacked.text[at : change.start], around, first=not found, last=False), change))
        at = change.end
    return [*found, (_cut(attacked.text[at:], around, first=not found, last=True), None)]


def _cut(text: str, around: int, *, first: bool, last: bool) -> str:
    """A stretch of a text between changes, its middle (or its far end) left out where it is long."""
    if len(text) <= 2 * around:
        return text
    # Between words, where there are blanks to tell them by.
    start = "" if first and not last else re.sub(r"\s+\S*$", "", text[:around]) + " "
    end = "" if last else " " + re.sub(r"^\S*\s+", "", text[-around:])
    return f"{start}…{end}"


def told(change: Change) -> str:
    """A change in a few words, its kind first where it is no swap; invisible characters by their numbers."""
    old, new = _seen(change.word), _seen(change.toward)
    if change.kind == "swap":
        return f"{change.word} → {change.toward}"
    if change.kind == "homoglyph":
        other = next(new for old, new in zip(change.word, change.toward, strict=True) if old != new)
        new = f"{new} with U+{ord(other):04X}"
    both = f"{old} → {new}" if old.strip() and new.strip() else f"{old or new}".strip()
    return f"{change.kind}: {both}"


def seen(text: str) -> str:
    """A text with the numbers of characters without width, and of letters that look like those of its script."""
    alike = [f"U+{ord(letter):04X}" for letter in text if letter in LOOK_ALIKES]
    mixed = alike and any(letter.isascii() and letter.isalpha() for letter in text)
    return f"{_seen(text)} with {' '.join(alike)}" if mixed else _seen(text)


def _seen(text: str) -> str:
    """A text with the numbers of characters that have no width."""
    return "".join(f"<U+{ord(character):04X}>" if character in INVISIBLE else character for character in text)
