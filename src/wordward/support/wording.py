"""How messages are worded: settings in backquotes, or as whoever shows it writes them; no characters that do harm."""

import difflib
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"

_wording: Callable[[str], str] = str


def shown(message: str) -> str:
    """A message as it is shown, its settings in backquotes unless `showing` says otherwise."""
    return _wording(message)


@contextmanager
def showing(wording: Callable[[str], str]) -> Iterator[None]:
    """Let messages pass through `wording`: the command line makes flags of settings."""
    global _wording
    before, _wording = _wording, wording
    try:
        yield
    finally:
        _wording = before


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """What a message says beside a name that is not known: the known one that is spelt nearest, if one is near."""
    close = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def plain(text: str, *, keep: str = "") -> str:
    """A text without line breaks, and without the characters that steer a terminal or that XML forbids.

    Nor with marks that turn the direction of all that follows, which may be more than the text.
    """
    if text.isprintable():  # most are; this takes no time
        return text
    steering = ("Cc", "Zl", "Zp", "Cs")  # the last are halves of characters, which no file can hold
    harmful = {c for c in set(text) if unicodedata.category(c) in steering or c in "\ufffe\uffff"}.difference(keep)
    return "".join(" " if c in harmful else c for c in text if c not in TURNING)
