"""The words of a text that a model reads as word pieces."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from wordward.runs.reading import Row, Words
from wordward.text.vocabulary import Vocabulary
from wordward.text.word_pieces import pieces_in


def find_words(
    text: str, ids: np.ndarray, encoding: Any, counted: Vocabulary | None, after: int, unknown: int | None
) -> Words:
    """The words of a classifier's text, whose encoding is one of the package tokenizers; the rest as `arranged`."""
    found = pieces_in(encoding, text) if text else []
    spans = [(start, end) for start, end, _ in found]
    unread = len(text[spans[-1][1] :].split()) if spans and encoding.overflowing else 0
    numbers = None if counted is None else [counted[text[start:end].lower()] for start, end in spans]
    return arranged(ids, spans, [pieces for _, _, pieces in found], numbers, after, unknown, unread)


def arranged(
    ids: np.ndarray,
    spans: list[tuple[int, int]],
    pieces: Sequence[Sequence[int]],
    numbers: Sequence[int] | None,
    after: int,
    unknown: int | None,
    unread: int,
) -> Words:
    """Words, each of some `pieces` of the `ids`.

    `numbers`: of each word among those whose evidence is known, which come `after` the pieces; None: there are none,
    so that a word of one piece has that piece's, and any other one the first after all pieces.
    """
    counts = np.fromiter(map(len, pieces), np.int64, len(pieces))
    places = np.fromiter(chain.from_iterable(pieces), np.int64, counts.sum())
    word_of = np.full(len(ids), -1)
    word_of[places] = np.repeat(np.arange(len(pieces)), counts)
    first = places[counts.cumsum() - counts]
    if numbers is None:
        of_words = np.append(np.where(counts == 1, ids[first], after), after)
    else:
        of_words = after + np.array([*numbers, 0])
    known = [True] * len(pieces)
    for number in word_of[ids == unknown] if unknown is not None else ():
        if number >= 0:
            known[number] = False
    return Words(spans, known, len(spans) + unread, unread, Row(ids, word_of, first, of_words[word_of]))


def last_end(text: str, encoding: Any) -> int | None:
    """Where the last piece of a text ends that is more than blanks; None if there is no such piece."""
    for at in reversed(range(len(encoding))):  # asked piece by piece: mostly it is the last but [SEP]
        if encoding.token_to_sequence(at) == 0:
            start, end = encoding.token_to_chars(at)
            if piece := text[start:end].rstrip():
                return start + len(piece)
    return None
