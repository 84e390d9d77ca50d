"""The kinds of edits: for each, which edits of a text a person still reads as the same text.

An edit replaces some characters of a text, a whole word or none, by others. Each kind is a function that gives the
edits of one word, or of a text; in which order a model is tried with them is said in `proposals`.
"""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from wordward.attack.attacked import Sense
from wordward.attack.edit_words import ALIKE, APPENDED, ASIDES, BESIDE, BOUND, INSERTED, INVISIBLE, OMITTED
from wordward.attack.negations import negates
from wordward.attack.stopwords import STOP_WORDS
from wordward.datasets.pairs import MARK
from wordward.explain.english import fold
from wordward.text.scripts import unspaced
from wordward.text.tokenizers import UNSPACED

LONG = 4  # letters of a word that is read although it is misspelt
_LETTER = r"[^\W\d_]"
# Where a sentence or clause ends; a full stop after fewer letters may be of an abbreviation (Mr. Hill).
_ENDS = rf"(?:(?<={_LETTER}{{4}}) ?\.|(?<={_LETTER}) ?\.(?=\s*$)|(?<={_LETTER}) [.]|(?<={_LETTER}) ?[!?;:])(?=\s|$)"
_UNSPACED = re.compile(rf"[{UNSPACED}]")
WORD = re.compile(rf"{_LETTER}+(?:['’]{_LETTER}+)*")  # letters, with the apostrophes of contractions
_WORDLIKE = re.compile(r"[\w'’]+")


class Edit(NamedTuple):
    """Characters of a text replaced by others."""

    kind: str
    start: int  # in characters of the text before any edit
    end: int
    new: str
    sense: Sense = "kept"
    correct: str | None = None  # as in `Change`


class Span(NamedTuple):
    """A word of a text, from one character to another."""

    start: int
    end: int
    word: str


def words_in(text: str) -> list[Span]:
    """The words of a text, whatever a model makes of them."""
    return [Span(found.start(), found.end(), found.group()) for found in WORD.finditer(text)]


def edited(text: str, edits: Sequence[Edit]) -> str:
    """The text after some edits that do not overlap; what is put in at one place stands in the order given."""
    parts, at = [], 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        parts += [text[at : edit.start], edit.new]
        at = edit.end
    return "".join([*parts, text[at:]])


def goes_with(edit: Edit, others: Sequence[Edit]) -> bool:
    """Whether an edit can be made beside others: no character is edited twice, and no place but the end filled twice.

    The same word is put in once only.
    """
    for other in others:
        inside = edit.start < other.end and other.start < edit.end
        same = edit.start == other.start and edit.end == other.end and edit.kind != "append"
        again = edit.kind == other.kind in HARMLESS and edit.new.strip(" ,.") == other.new.strip(" ,.")
        if inside or same or again:
            return False
    return True


def typos(word: str, known: Container[str]) -> Iterator[str]:
    """Slips of the finger: two letters exchanged, one doubled, one dropped, one of the key beside it.

    The first and the last letter stay, the word has 5 letters or more (of 4 letters one may be doubled), and what
    comes is no word itself. None where words have no blanks between them, and a letter may be a word.
    """
    if not _readable(word):
        return
    inner = sorted(range(1, len(word) - 1), key=lambda at: abs(at - (len(word) - 1) / 2))  # from the middle
    longer = len(word) > LONG
    by_kind: list[list[str]] = [
        [word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in inner if longer and at + 2 < len(word)],
        [word[: at + 1] + word[at:] for at in inner if word[at] not in (word[at - 1], word[at + 1])],
        [word[:at] + word[at + 1 :] for at in inner if longer],
        [word[:at] + key + word[at + 1 :] for at in inner if longer for key in _beside(word[at])],
    ]
    in_turn = dict.fromkeys(slip for slips in zip_longest(*by_kind) for slip in slips if slip is not None)
    yield from (slip for slip in in_turn if slip != word and slip.lower() not in known)


def _readable(word: str) -> bool:
    """Whether a word is one that is read although it is misspelt: long, and of a script with blanks between words."""
    return len(word) >= LONG and word.isalpha() and not _UNSPACED.search(word)


def not_made(kinds: Sequence[str], texts: Iterable[str]) -> str:
    """Which kinds of edits are not made in texts, in words; empty where all are."""
    spelt = [f"`{kind}`" for kind in kinds if kind in ("typo", "space")]
    if not spelt or not unspaced(texts):
        return ""
    return f"edits of kind {' and '.join(spelt)} are not made in texts without blanks between words, such as these"


def _beside(letter: str) -> str:
    keys = BESIDE.get(letter.lower(), "")
    return keys.upper() if letter.isupper() else keys


def spaces(word: str, known: Container[str]) -> Iterator[str]:
    """A blank inside a word, with two letters or more on each side; then one between all letters.

    What stands on both sides must not be words (hi story), nor the first part a word of grammar (the rapist).
    """
    if not _readable(word):
        return
    for at in sorted(range(2, len(word) - 1), key=lambda at: abs(at - len(word) / 2)):
        first, rest = word[:at].lower(), word[at:].lower()
        if first not in STOP_WORDS and not (first in known and rest in known):
            yield f"{word[:at]} {word[at:]}"
    yield " ".join(word)


def homoglyphs(word: str, known: Container[str]) -> Iterator[str]:
    """A letter for one that looks the same."""
    for at, letter in enumerate(word):
        if letter in ALIKE:
            yield word[:at] + ALIKE[letter] + word[at + 1 :]


def invisibles(word: str, known: Container[str]) -> Iterator[str]:
    """A character of no width in the middle of a word."""
    if len(word) > 1:
        for character in INVISIBLE:
            yield word[: len(word) // 2] + character + word[len(word) // 2 :]


def cases(word: str, known: Container[str]) -> Iterator[str]:
    """A word of 4 small letters or more in capitals; shorter ones may be names then (us, US)."""
    if len(word) >= LONG and word.islower() and word.upper().lower() == word:
        yield word.upper()


SPELLINGS: dict[str, Callable[[str, Container[str]], Iterator[str]]] = {
    "typo": typos,
    "space": spaces,
    "homoglyph": homoglyphs,
    "invisible": invisibles,
    "case": cases,
}


def deletion(text: str, span: Span) -> Edit | None:
    """A word left out that a reader does not miss, with the blank beside it; None for others.

    Beside a negation or a word such as "only" it is missed: not the only one, not really funny.
    """
    if fold(span.word) not in OMITTED:
        return None
    following = _WORDLIKE.search(text, span.end)
    beside = _word_before(text, span.start), following.group() if following else ""
    if any(negates(word) or fold(word) in BOUND for word in beside):
        return None
    edit = left_out(text, span.start, span.end)
    return edit if edit[1:3] != (span.start, span.end) else None  # it stands between other characters than blanks


def _word_before(text: str, end: int) -> str:
    """The last word before a place, "" where there is none; nothing further off is read."""
    while end and not _WORDLIKE.match(text, end - 1):
        end -= 1
    start = end
    while start and _WORDLIKE.match(text, start - 1, start):
        start -= 1
    return text[start:end]


def left_out(text: str, start: int, end: int) -> Edit:
    """A word left out, with the blank before it; at the start of a line, or of a second text, the one behind it."""
    before, after = text[max(0, start - 1) : start], text[end : end + 1]
    if before in ("", "\n") or text.endswith(f"{MARK} ", 0, start):
        return Edit("delete", start, end + after.isspace(), "")
    return Edit("delete", start - before.isspace(), end, "")


def insertions(text: str, word: str) -> Iterator[Edit]:
    """A harmless word at the end, where a sentence or clause ends, and in front where no capital stands there."""
    end, last = len(text.rstrip()), f", {word}" if word in ASIDES else f" {word}"
    if end and text[end - 1].isalnum():
        yield Edit("insert", end, end, last)
    for found in re.finditer(_ENDS, text):
        yield Edit("insert", found.start(), found.start(), last)
    if text[:1].islower():
        yield Edit("insert", 0, 0, f"{word}, ")


def appending(text: str, word: str) -> Edit:
    """A harmless word after the end, as a sentence of its own where the text ends with one."""
    end = len(text.rstrip())
    sentence = end and text[end - 1] in ".!?\"'”’)…"
    return Edit("append", end, end, f" {word[:1].upper()}{word[1:]}." if sentence else f" {word}")


def punctuations(text: str) -> Iterator[Edit]:
    """Marks left out, repeated, set apart by a blank, or written in another way; the words stay."""
    end = len(text.rstrip())
    if end and text[end - 1].isalnum():
        yield Edit("punctuation", end, end, ".")
    for found in re.finditer(rf"(?<={_LETTER})(?:[,;]|[!?]+|\.(?=\s*$))(?=\s|$)", text):
        start, mark = found.start(), found.group()
        last = found.end() == end
        if mark in ",;" or (mark == "." and last):
            yield Edit("punctuation", start, found.end(), "")
        if mark in "!?" or (mark == "." and last):
            yield Edit("punctuation", start, found.end(), "..." if mark == "." else mark * 3)
        yield Edit("punctuation", start, found.end(), f" {mark}")
    for found in re.finditer(rf"(?<={_LETTER})[-'’](?={_LETTER})", text):
        other = {"-": " ", "'": "’", "’": "'"}[found.group()]
        yield Edit("punctuation", found.start(), found.end(), other)


def uncapitalised(text: str, span: Span) -> Edit | None:
    """The first word of a sentence without its capital; no other, which may be a name."""
    before = text[max(0, span.start - 20) : span.start]
    first = re.search(rf"(?:^|(?:{_LETTER}{{4}} ?\.|[!?])\s+)$", before)
    if first and span.word[:1].isupper() and span.word[1:].islower():
        return Edit("case", span.start, span.end, span.word.lower())
    return None


HARMLESS = {"insert": INSERTED, "append": APPENDED}
