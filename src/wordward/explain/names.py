"""Which words of an English text are parts of names of several words, such as "Chuck Norris" or "Wall Street"."""

from collections.abc import Sequence

import numpy as np

from wordward.explain.english import CLOSED, fold
from wordward.explain.word_classes import CLASSES, installed_classes
from wordward.explain.word_kinds import case
from wordward.runs.input_table import installed_model
from wordward.text.tokenizers import within_sentence

BETWEEN = (" ", "-")  # the words of a name
MOST = 0.6  # share of the words with a capital, above which capitals tell no names: a heading
NAME = 0.25  # how much of a name a word that begins a sentence is at least, if it is part of one


def in_names(text: str, spans: Sequence[tuple[int, int]]) -> np.ndarray:
    """Which words, given by where they begin and end, are parts of names, (words,) bool.

    These are words with a capital beside another, within a sentence; and the word that begins it if it may be a name:
    "Chuck Norris", but not "Great Sony camera".
    """
    words = [text[start:end] for start, end in spans]
    names = [
        len(word) > 1 and case(word) in (1, 3) and word[0].isupper() and fold(word) not in CLOSED for word in words
    ]
    found = np.zeros(len(words), dtype=bool)
    if sum(names) > MOST * sum(word[:1].isalpha() for word in words):
        return found
    for at in range(len(words) - 1):
        if names[at] and names[at + 1] and text[spans[at][1] : spans[at + 1][0]] in BETWEEN:
            found[at] |= within_sentence(text, spans[at][0]) or _may_be_name(words[at])
            found[at + 1] = True
    return found


def _may_be_name(word: str) -> bool:
    folder = installed_model()
    classes = {} if folder is None else installed_classes(folder)
    return fold(word) in classes and float(classes[fold(word)][CLASSES.index("name")]) >= NAME
