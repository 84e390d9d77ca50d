"""Two texts that are judged together, such as premise and hypothesis, as one string with a mark between them."""

import re
from typing import NamedTuple

MARK = "|||"


class Parts(NamedTuple):
    """The two texts of a pair, and where the second begins in the string that holds both."""

    first: str
    second: str
    start: int

    @property
    def whole(self) -> bool:
        """Whether there is something in both."""
        return bool(self.first.strip() and self.second.strip())


def joined(first: str, second: str) -> str:
    """Two texts as one string, `first ||| second`.

    Args:
        first: The first text, such as a premise.
        second: The second, such as a hypothesis; three bars or more inside either become two.

    Returns:
        The string; an empty one if either text is empty.

    Examples:
        >>> from wordward.datasets import joined
        >>> joined("a man sleeps", "a man is awake")
        'a man sleeps ||| a man is awake'
    """
    parts = [re.sub(r"\|{3,}", "||", part.strip()) for part in (first, second)]
    return f" {MARK} ".join(parts) if all(parts) else ""


def parted(text: str) -> Parts:
    """The two texts of a string; without a mark in it the second is empty."""
    first, mark, second = text.partition(MARK)
    start = len(first) + len(mark) + len(second) - len(second.lstrip())
    return Parts(first.rstrip(), second.lstrip(), start)


def no_pair(text: str) -> str:
    """What is wrong with a string that does not hold two texts."""
    return f"expected two texts with {MARK} between them (`first {MARK} second`); got {text[:60]!r}"
