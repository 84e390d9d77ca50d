"""The words of a text as a run reads them, each where it stands, and others put in their places."""

from collections.abc import Sequence
from typing import NamedTuple

from wordward.datasets import Example
from wordward.explanation import Place
from wordward.predict import Run
from wordward.text import Token, tokenize


class Reading(NamedTuple):
    """A text and the words that a model reads in it."""

    text: str  # as given; of tokens that do not stand in it, the tokens with blanks between
    tokens: list[Token]  # without those that the run leaves out, and cut to the longest length
    words: int  # before that; 0: there is nothing to predict from
    unread: int  # words after the longest length


def read(run: Run, example: Example) -> Reading:
    """What the run's model reads of an example: word for word what `run.encode` makes ids of."""
    settings, text = run.text, example.text
    if example.tokens is not None:
        text, found = _given(text, example.tokens, lowercase=settings.lowercase)
    else:
        found = tokenize(text, "whitespace" if run.tagging else settings.tokenizer, settings.lowercase)
    kept = found
    if not run.tagging and settings.unknown == "drop":
        kept = [token for token in found if token.text in run.vocabulary]
    tokens = kept[: settings.max_length]
    return Reading(text, tokens, len(found), len(kept) - len(tokens))


def _given(text: str, words: tuple[str, ...], *, lowercase: bool) -> tuple[str, list[Token]]:
    """Tokens that came with an example, where they stand in its text."""
    tokens, at = [], 0
    for word in words:
        start = text.find(word, at)
        if start < 0:  # the text was written in another way than its tokens
            return _given(" ".join(words), words, lowercase=lowercase)
        at = start + len(word)
        tokens.append(Token(word.lower() if lowercase else word, start, at))
    return text, tokens


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
