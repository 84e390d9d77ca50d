"""Languages written without spaces between words: telling their texts, and choosing a tokenizer that splits them."""

import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

from wordward.config.texts import TextSettings
from wordward.support.console import say
from wordward.text.tokenizers import UNSPACED

SEEN = 1_000  # texts that are looked at
_LETTERS, _OURS = re.compile(r"\w"), re.compile(rf"[{UNSPACED}]")
_BETWEEN = re.compile(rf"(?<=[{UNSPACED}])\s+(?=[{UNSPACED}])")


def unspaced(texts: Iterable[str]) -> bool:
    """Whether most letters of the texts are Chinese, Japanese, Thai or the like, with few spaces between them."""
    letters = ours = spaces = 0
    for text in islice(texts, SEEN):
        letters += len(_LETTERS.findall(text))
        ours += len(_OURS.findall(text))
        spaces += len(_BETWEEN.findall(text))
    return ours > letters / 2 and spaces < ours / 10


def fitting(settings: TextSettings, texts: Iterable[str], *, quiet: bool = False) -> TextSettings:
    """The settings, with characters as words where texts have no spaces and the tokenizer is `words`; says so."""
    if settings.tokenizer == "characters" or not unspaced(texts):
        return settings
    what = "the texts have no spaces between words"
    if settings.tokenizer != "words":
        say(
            f"{what}, so that the tokenizer {settings.tokenizer} takes whole clauses for words: put spaces between "
            "them for `tokenizer='whitespace'`, or give `tokenizer='characters'`",
            quiet=quiet,
        )
        return settings
    say(
        f"{what}: each of their characters is read as a word, as with `tokenizer='characters'` (put spaces between "
        "words for `tokenizer='whitespace'` to read whole ones)",
        quiet=quiet,
    )
    return replace(settings, tokenizer="characters")
