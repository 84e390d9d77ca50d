"""One text of a data set, and operations on any list of them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from wordward.support.errors import DataError


@dataclass(frozen=True, slots=True)
class Example:
    """A text with its class, a sentence with a tag for each token, or a text without labels.

    Args:
        text: The text.
        label: Its class, if it has one.
        tokens: The words of a sentence that is tagged.
        tags: A tag for each of them.
        line: Where it begins in its file, counted from 1.

    Example:
        >>> from wordward.datasets import Example
        >>> Example("it are so", tokens=("it", "are", "so"), tags=("right", "wrong", "right")).names
        ('right', 'wrong', 'right')
    """

    text: str
    label: str | None = None
    tokens: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    line: int = 0

    @property
    def names(self) -> tuple[str | None, ...]:
        """Its tags, or else its one label."""
        return self.tags if self.tags is not None else (self.label,)


def check_labels(examples: Iterable[Example], source: object = None) -> tuple[str, ...]:
    """The classes (or tags) in alphabetical order; two or more, and every example has one. `source` is for errors."""
    classes: set[str] = set()
    for number, example in enumerate(examples):
        if example.tags is None and example.label is None:
            raise DataError(
                f"expected a label for every text; text {number} has none: {example.text[:60]!r}", source
            )
        classes.update(example.tags if example.tags is not None else [example.label or ""])
    if len(classes) < 2:
        raise DataError(
            f"expected two classes or more; found {sorted(classes) or 'no texts'}: "
            "a classifier learns to tell classes apart (is this the label column?)",
            source,
        )
    return tuple(sorted(classes))


def split(examples: Sequence[Example], share: float, seed: int) -> tuple[list[Example], list[Example]]:
    """Shuffle and hold out a share: (kept, held_out), at least one on each side."""
    if not 0 < share < 1 or len(examples) < 2:
        raise DataError(
            f"expected a share between 0 and 1 of two texts or more; got {share} of {len(examples)}: "
            "give more texts, or a separate held-out file"
        )
    order = np.random.default_rng(seed).permutation(len(examples))
    held = min(max(round(share * len(examples)), 1), len(examples) - 1)
    return [examples[at] for at in order[held:]], [examples[at] for at in order[:held]]


def draw(count: int, limit: int, labels: Sequence[Collection[Hashable]] | None = None) -> np.ndarray:
    """Indices of `limit` of `count` texts, at random but always the same; every label is kept if there is room."""
    order = np.random.default_rng(0).permutation(count)
    if labels is None:
        return order[:limit]
    seen: set[Hashable] = set()
    new = np.zeros(count, dtype=bool)  # in that order: whether a text has a label that no earlier one has
    for at, place in enumerate(order):
        new[at] = not seen.issuperset(labels[place])
        seen.update(labels[place])
    return order[np.sort(np.argsort(~new, kind="stable")[:limit])]


def some_of(examples: Sequence[Example], limit: int | None, seed: int = 0) -> list[Example]:
    """At most `limit` of the examples (None: all), drawn at random but always the same, in their original order."""
    drawn = np.random.default_rng(seed).permutation(len(examples))[:limit]
    return [examples[at] for at in np.sort(drawn)]


def drop_shared(examples: Iterable[Example], others: Iterable[Example]) -> list[Example]:
    """The examples whose text is not among the others', ignoring white space."""
    known = {_folded(other.text) for other in others}
    return [example for example in examples if _folded(example.text) not in known]


def _folded(text: str) -> str:
    return " ".join(text.split())
