"""Texts as numbers of their own words, split by several processes if there are many."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from wordward.config.texts import TextSettings
from wordward.datasets import Example
from wordward.support.console import progress
from wordward.support.workers import workers as processes
from wordward.text.batches import chunks
from wordward.text.tokenizers import split_words
from wordward.text.vocabulary import Vocabulary

CHUNK = 2_000  # texts that a process handles at a time


class Tokens(NamedTuple):
    """Texts as numbers of their own words."""

    words: list[str]
    numbers: np.ndarray  # (tokens,) int32 into words
    lengths: np.ndarray  # (texts,)


def words_of(example: Example, settings: TextSettings) -> list[str]:
    """The words of a text: its tokens if it has them."""
    if example.tokens is None:
        return split_words(example.text, settings.tokenizer, settings.lowercase)
    return [token.lower() for token in example.tokens] if settings.lowercase else list(example.tokens)


def vocabulary_of(examples: Iterable[Example], settings: TextSettings) -> Vocabulary:
    """The words of the texts that are frequent enough to be known."""
    documents = (words_of(example, settings) for example in examples)
    return Vocabulary.build(documents, min_documents=settings.min_documents, max_size=settings.max_vocabulary)


def tokenise(examples: Sequence[Example], settings: TextSettings, *, workers: int = 1, quiet: bool = False) -> Tokens:
    """All texts as numbers of their words. Several workers need a guarded main module, as usual in Python."""
    known: dict[str, int] = {}
    numbers, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
    with progress(quiet=quiet) as bars:
        bar = bars.add_task("tokenising", total=len(examples), unit="texts")
        for chunk in _chunks(examples, settings, workers):
            ours = np.array([known.setdefault(word, len(known)) for word in chunk.words], dtype=np.int32)
            numbers.append(ours[chunk.numbers])
            lengths.append(chunk.lengths)
            bars.advance(bar, len(chunk.lengths))
    return Tokens(list(known), np.concatenate(numbers), np.concatenate(lengths))


def _chunks(examples: Sequence[Example], settings: TextSettings, workers: int) -> Iterator[Tokens]:
    """Chunks in order, processed in parallel."""
    parts = list(chunks(examples, CHUNK))
    workers = min(workers, len(parts))
    if workers < 2:
        yield from (_tokenise_some(part, settings) for part in parts)
        return
    with processes(workers) as pool:
        yield from pool.map(_tokenise_some, parts, [settings] * len(parts))


def _tokenise_some(examples: Sequence[Example], settings: TextSettings) -> Tokens:
    known: dict[str, int] = {}
    numbers: list[int] = []
    lengths = []
    for example in examples:
        words = words_of(example, settings)
        numbers += [known.setdefault(word, len(known)) for word in words]
        lengths.append(len(words))
    return Tokens(list(known), np.array(numbers, dtype=np.int32), np.array(lengths))
