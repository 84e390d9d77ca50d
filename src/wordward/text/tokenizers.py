"""Split texts into words, keeping the way back to the text."""

import re
import unicodedata
from collections.abc import Mapping
from typing import NamedTuple

from wordward.support.errors import SettingError

# Combining marks, which \w excludes: vowel signs of Hindi, an umlaut written as two characters. Those above 0xFFFF,
# of historic scripts, would make the search several times slower.
_MARKS = "".join(c for c in map(chr, range(0x300, 0x10000)) if unicodedata.category(c)[0] == "M")
_WORD = rf"\w+(?:[{_MARKS}][\w{_MARKS}]*)?"
# Thai and Lao, Myanmar, Khmer, Japanese syllables, Chinese characters: written without spaces between words.
UNSPACED = "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff"
UNSPACED += "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U000323af"

BREAK = "<br"  # begins an HTML line break, which may hold a blank
# A token is what group 1 matches; a match outside it (such a line break) is skipped.
TOKENIZERS: Mapping[str, re.Pattern[str]] = {
    "words": re.compile(rf"{BREAK}\s*/?>|({_WORD})"),
    # The pieces of a split on \W+ without the empty ones, so that <br /> gives the word br.
    "authors": re.compile(r"(\w+)"),
    "punctuation": re.compile(rf"{BREAK}\s*/?>|({_WORD}(?:['’]{_WORD})*|[^\w\s][{_MARKS}]*)"),
    "whitespace": re.compile(r"(\S+)"),
    # As words, but each character of a script without spaces is one.
    "characters": re.compile(rf"{BREAK}\s*/?>|((?=[{UNSPACED}])\w[{_MARKS}]*|(?:[^\W{UNSPACED}][{_MARKS}]*)+)"),
}


WITHIN = " ,-–"  # between two words of a sentence


def within_sentence(text: str, at: int) -> bool:
    """Whether the word that begins at a character of a text follows another of its sentence.

    It is told by the text alone, so that it does not depend on how this is split into words.
    """
    at -= 1
    while at >= 0 and text[at] in WITHIN:
        at -= 1
    return at >= 0 and (text[at].isalnum() or unicodedata.category(text[at])[0] == "M")


class Token(NamedTuple):
    """A word with its character span in the original text.

    Attributes:
        text: The word.
        start: Where it begins.
        end: Where it ends.

    Examples:
        >>> wordward.tokenize("A warm film.")[1]
        Token(text='warm', start=2, end=6)
    """

    text: str
    start: int
    end: int


def _pattern(tokenizer: str) -> re.Pattern[str]:
    try:
        return TOKENIZERS[tokenizer]
    except KeyError:
        names = ", ".join(TOKENIZERS)
        raise SettingError("tokenizer", f"expected a tokenizer among {names}; got {tokenizer!r}") from None


def tokenize(text: str, tokenizer: str = "words", lowercase: bool = False) -> list[Token]:
    """Split a text into tokens; their spans refer to the text as given, also when the words are lower-cased.

    Args:
        text: The text.
        tokenizer: "words" (runs of letters and digits), "authors", "punctuation", "whitespace", or "characters" (as
            words, but each character of a script without spaces, such as Chinese, Japanese or Thai, is one).
        lowercase: Convert the words to lower case.

    Returns:
        A `Token` with `text`, `start` and `end` for each word.

    Examples:
        >>> import wordward
        >>> [token.text for token in wordward.tokenize("A warm, funny film.")]
        ['A', 'warm', 'funny', 'film']
    """
    # Each token is lower-cased alone: lower-casing the text first may change its length ("İ").
    return [
        Token(match[1].lower() if lowercase else match[1], match.start(1), match.end(1))
        for match in _pattern(tokenizer).finditer(text)
        if match[1] is not None
    ]


def word_spans(text: str, tokenizer: str = "words") -> list[tuple[int, int]]:
    """Where the words of `tokenize` begin and end, twice as fast."""
    spans = [match.span(1) for match in _pattern(tokenizer).finditer(text)]
    return [span for span in spans if span[0] >= 0]


def split_words(text: str, tokenizer: str = "words", lowercase: bool = False) -> list[str]:
    """The words of `tokenize` without their spans, more than twice as fast."""
    words = [word for word in _pattern(tokenizer).findall(text) if word]
    return [word.lower() for word in words] if lowercase else words
