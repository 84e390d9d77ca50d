"""How a message names settings: in backquotes, as in Python, or as whoever shows it writes them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
