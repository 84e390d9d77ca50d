"""The greedy search of published attacks: the word that matters most first, each replaced by its best candidate.

A search is a generator that asks for what it needs, so that many texts can be searched side by side in large batches.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal, NamedTuple

import numpy as np

from wordward.attack.edits import words_in
from wordward.config.yardsticks import YardstickSettings

TOGETHER = 32  # texts that are searched side by side


class Ask(NamedTuple):
    """Texts whose probabilities are asked for, (texts, classes); a row of nan for one that cannot be read."""

    texts: list[str]


class Compare(NamedTuple):
    """Pairs of texts of which it is asked how alike they are, a number from 0 to 1 each."""

    pairs: list[tuple[str, str]]


@dataclass(frozen=True)
class Words:
    """A text as its words, and what stands between them."""

    words: tuple[str, ...]
    gaps: tuple[str, ...]  # before the first, between, and after the last

    @classmethod
    def of(cls, text: str) -> "Words":
        """The words of a text, whatever a model makes of them."""
        spans = words_in(text)
        edges = [0, *(edge for span in spans for edge in (span.start, span.end)), len(text)]
        gaps = tuple(text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True))
        return cls(tuple(span.word for span in spans), gaps)

    def __len__(self) -> int:
        return len(self.words)

    @property
    def text(self) -> str:
        """The text."""
        return self.gaps[0] + "".join(word + gap for word, gap in zip(self.words, self.gaps[1:], strict=True))

    def put(self, at: int, word: str) -> "Words":
        """The text with another word at a place."""
        return replace(self, words=(*self.words[:at], word, *self.words[at + 1 :]))

    def without(self, at: int) -> str:
        """The text without a word, and without the blank before it."""
        gaps = list(self.gaps)
        gaps[at] = gaps[at].removesuffix(" ") if at else gaps[at]
        return replace(self.put(at, ""), gaps=tuple(gaps)).text

    def around(self, at: int, width: int) -> str:
        """The words from `width // 2` before a place to as many after it."""
        start, end = max(0, at - width // 2), min(len(self), at + width // 2 + 1)
        return replace(self, words=self.words[start:end], gaps=("", *self.gaps[start + 1 : end], "")).text


@dataclass(frozen=True)
class Outcome:
    """What became of one text."""

    outcome: Literal["flipped", "kept", "wrong"]
    text: str  # after the changes; the best try where the prediction is kept
    changed: int  # words
    words: int
    queries: int  # texts that the model was asked for, those asked for twice counted twice


Queries = Generator[Ask | Compare, Any, Outcome]


def greedy(text: str, label: int, candidates: Sequence[Sequence[str]], settings: YardstickSettings) -> Queries:
    """Replace words until the label is not predicted any more; `candidates`: for each word, written as it is to be.

    Of the candidates of a word that flip the prediction the one most like the text is taken, else the one that lowers
    the label's probability most.
    """
    first = now = Words.of(text)
    most, budget, queries, changed = int(settings.max_share * len(first) + 1e-9), settings.queries * len(first), 1, 0
    (before,) = yield Ask([text])
    if np.isnan(before).any() or before.argmax() != label:
        return Outcome("wrong", text, 0, len(first), queries)
    lowest = before[label]
    places = [at for at, words in enumerate(candidates) if words][: budget - queries] if most else []
    left_out = yield Ask([first.without(at) for at in places])
    queries += len(places)
    importance = [-np.inf if np.isnan(found[label]) else found[label] for found in left_out]
    for number in sorted(range(len(places)), key=importance.__getitem__):
        at = places[number]
        tried = [now.put(at, word) for word in candidates[at]]
        alike = yield Compare([(first.around(at, settings.window), one.around(at, settings.window)) for one in tried])
        pairs = [(one, score) for one, score in zip(tried, alike, strict=True) if score >= settings.similarity]
        pairs = pairs[: budget - queries]
        if not pairs:
            continue
        found = yield Ask([one.text for one, _ in pairs])
        queries += len(pairs)
        flips = [number for number, each in enumerate(found) if not np.isnan(each).any() and each.argmax() != label]
        if flips:
            best = max(flips, key=lambda number: pairs[number][1])
            return Outcome("flipped", pairs[best][0].text, changed + 1, len(first), queries)
        scores = np.array([np.inf if np.isnan(each[label]) else each[label] for each in found])
        if scores.min() < lowest:
            now, lowest, changed = pairs[int(scores.argmin())][0], scores.min(), changed + 1
        if changed >= most or queries >= budget:
            break
    return Outcome("kept", now.text, changed, len(first), queries)


def together(
    searches: Iterator[Queries],
    ask: Callable[[list[str]], np.ndarray],
    compare: Callable[[list[tuple[str, str]]], list[float]],
) -> Iterator[Outcome]:
    """The outcomes of searches in their order, TOGETHER of them side by side: as one ends, the next begins."""
    source, running = enumerate(searches), dict[int, Queries]()
    answers, outcomes, first = dict[int, Any](), dict[int, Outcome](), 0
    while True:
        for number, search in islice(source, TOGETHER - len(running)):
            running[number], answers[number] = search, None
        if not running:
            return
        wanted: dict[int, Ask | Compare] = {}
        for number, answer in answers.items():
            try:
                wanted[number] = running[number].send(answer)
            except StopIteration as end:
                outcomes[number] = end.value
                del running[number]
        while first in outcomes:
            yield outcomes.pop(first)
            first += 1
        asked = [number for number, request in wanted.items() if isinstance(request, Ask)]
        answers = _answered(asked, wanted, ask)
        answers |= _answered([number for number in wanted if number not in answers], wanted, compare)


def _answered(numbers: Sequence[int], wanted: dict[int, Any], answer: Callable[[Any], Any]) -> dict[int, Any]:
    """What is answered to each of some requests, all of them together."""
    asked = [each for number in numbers for each in wanted[number][0]]
    answers = iter(answer(asked) if asked else ())
    return {number: [next(answers) for _ in wanted[number][0]] for number in numbers}
