"""The words of a text as a run reads them, each where it stands, and others put in their places."""

from collections.abc import Sequence

from wordward.datasets import Example
from wordward.explanation import Place
from wordward.predict import Reading, Run

__all__ = ["Reading", "apply", "read"]


def read(run: Run, example: Example) -> Reading:
    """What the run's model reads of an example."""
    return run.read(example)


def apply(run: Run, text: str, changes: Sequence[tuple[Place, str]]) -> str:
    """The text that was explained with the words put in, all else as it was."""
    changes = sorted(changes, key=lambda change: change[0].start, reverse=True)
    before = len(text)
    for place, word in changes:  # from the last to the first, so that earlier places stay where they are
        if text[place.start : place.end] != place.word or place.end > before:
            raise ValueError(
                f"expected {place.word!r} at characters {place.start}-{place.end}; there stands "
                f"{text[place.start : place.end]!r}: give the text that was explained, and each place once"
            )
        cased = _cased(word, place.word) if run.text.lowercase else word
        text, before = text[: place.start] + cased + text[place.end :], place.start
    return text


def _cased(word: str, like: str) -> str:
    """A lower-case word written like another, as far as a run that folds case still reads the same word."""
    cased = word
    if like[:1].isupper():
        cased = word.upper() if like.isupper() and len(like) > 1 else word[:1].upper() + word[1:]
    return cased if cased.lower() == word else word
