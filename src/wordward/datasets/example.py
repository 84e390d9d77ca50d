"""One text of a data set, and operations on any list of them."""

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeVar

import numpy as np

from wordward.support.errors import DataError

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Example:
    """A text with its class, a sentence with a tag for each token, or a text without labels.

    Args:
        text: The text.
        label: Its class, if it has one.
        tokens: The words of a sentence that is tagged.
        tags: A tag for each of them.
        line: Where it begins in its file, counted from 1.
        group: What it is counted with, such as its language, where a check tells groups apart.

    Examples:
        >>> from wordward.datasets import Example
        >>> Example("it are so", tokens=("it", "are", "so"), tags=("right", "wrong", "right")).names
        ('right', 'wrong', 'right')
    """

    text: str
    label: str | None = None
    tokens: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    line: int = 0
    group: str | None = None

    @property
    def names(self) -> tuple[str | None, ...]:
        """Its tags, or else its one label."""
        return self.tags if self.tags is not None else (self.label,)


def check_characters(text: str, path: object = None, line: int = 0) -> None:
    """Refuse half of a surrogate pair, which is no character: no tokenizer reads it, and no file holds it."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"expected whole characters; got half of a surrogate pair in {text[:60]!r}: {error}", path, line
        ) from None


def label_names(example: Example) -> tuple[str | None, ...]:
    """The tags of an example, or its one label; for `labels` of `hold_out` and `sample`."""
    return example.names


def check_labels(examples: Iterable[Example], source: object = None) -> tuple[str, ...]:
    """The classes (or tags) in alphabetical order; two or more, and every example has one. `source` is for errors."""
    classes: set[str] = set()
    for number, example in enumerate(examples):
        if example.tags is None and example.label is None:
            raise DataError(f"expected a label for every text; text {number} has none: {example.text[:60]!r}", source)
        classes.update(label or "" for label in example.names)
    if len(classes) < 2:
        raise DataError(
            f"expected two classes or more; found {sorted(classes) or 'no texts'}: "
            "a classifier learns to tell classes apart (is this the label column?)",
            source,
        )
    return tuple(sorted(classes))


def folded(name: str) -> str:
    """A label without what may be an accident: its case, blanks around and inside it, the .0 of a whole number.

    pandas writes whole numbers so where some labels of a column are missing.
    """
    return re.sub(r"^([+-]?\d+)\.0+$", r"\1", " ".join(name.split()).casefold())


def alike(labels: Iterable[str]) -> list[list[str]]:
    """Labels that differ only in case, blanks or a .0, those that belong together in a list."""
    groups: dict[str, list[str]] = {}
    for label in labels:
        groups.setdefault(folded(label), []).append(label)
    return [group for group in groups.values() if len(group) > 1]


def hold_out(
    items: Sequence[Item],
    size: float,
    *,
    seed: int | None = None,
    labels: Callable[[Item], Collection[Hashable]] | None = None,
) -> tuple[list[Item], list[Item]]:
    """Split items at random into those kept and those held out.

    Args:
        items: What to split.
        size: How many to hold out (an int), or which share of them (a float), which leaves one or more on each side.
        seed: Seed of the draw; both parts are then in random order. None: items are ranked by a hash of their place,
            so that the draw is the same with every version of Python and numpy; both parts are in their own order.
        labels: Gives the labels of an item; one with a label that no kept item has is kept, too.

    Returns:
        The kept items and those held out.

    Examples:
        >>> from wordward.datasets import hold_out
        >>> [len(part) for part in hold_out(range(10), 0.2, seed=0)]
        [8, 2]
    """
    count = len(items)
    held = size if isinstance(size, int) else min(max(round(size * count), 1), count - 1)
    if not isinstance(size, int) and (not 0 < size < 1 or count < 2):
        raise DataError(
            f"expected a share between 0 and 1 of two texts or more; got {size} of {count}: "
            "give more texts, or a separate held-out file"
        )
    if seed is None:
        drawn = sorted(range(count), key=lambda at: blake2b(b"0 %d" % at, digest_size=16).digest())
        kept, out = sorted(drawn[held:]), sorted(drawn[:held])
    else:
        order = np.random.default_rng(seed).permutation(count).tolist()
        kept, out = order[held:], order[:held]
    if labels is not None:
        known = {label for at in kept for label in labels(items[at])}
        kept += [at for at in out if not known.issuperset(labels(items[at]))]
        out = [at for at in out if known.issuperset(labels(items[at]))]
        if not out:
            names = sorted({str(label) for item in items for label in labels(item)})
            shown = ", ".join(name[:20] for name in names[:3]) + (", ..." if len(names) > 3 else "")
            raise DataError(
                f"expected enough texts to hold some out; {count} with {len(names)} labels ({shown}) are "
                "too few of each class: give more (or, in files, others as `dev`)"
            )
    return [items[at] for at in kept], [items[at] for at in out]


def sample(
    items: Sequence[Item],
    limit: int | None,
    *,
    seed: int = 0,
    labels: Callable[[Item], Collection[Hashable]] | None = None,
    in_order: bool = True,
    apart: bool = False,
) -> list[Item]:
    """Draw some of the items at random, with one seed always the same.

    Args:
        items: What to draw from.
        limit: How many to draw at most; None: all.
        seed: Seed of the draw.
        labels: Gives the labels of an item; none is lost where `limit` leaves room for all.
        in_order: Whether they come in their original order, or else as drawn.
        apart: Draw independently of `hold_out` with the same seed, which else holds out just what is drawn here: for
            texts to measure a model on that may have been trained on others of them.

    Returns:
        The items drawn; where `limit` leaves none out, all in their original order.

    Examples:
        >>> from wordward.datasets import sample
        >>> len(sample(range(10), 3))
        3
    """
    if limit is None or len(items) <= limit:
        return list(items)
    order = np.random.default_rng([seed, 1] if apart else seed).permutation(len(items))
    if labels is not None:
        seen: set[Hashable] = set()
        new = np.zeros(len(items), dtype=bool)  # in that order: whether an item has a label that no earlier one has
        for at, place in enumerate(order):
            new[at] = not seen.issuperset(own := labels(items[place]))
            seen.update(own)
        order = order[np.sort(np.argsort(~new, kind="stable")[:limit])]
    drawn = order[:limit]
    return [items[at] for at in (np.sort(drawn) if in_order else drawn)]


def drop_shared(examples: Iterable[Example], others: Iterable[Example]) -> list[Example]:
    """The examples whose text is not among the others', ignoring white space."""
    known = {single_spaced(other.text) for other in others}
    return [example for example in examples if single_spaced(example.text) not in known]


def single_spaced(text: str) -> str:
    """The text with single blanks between its words."""
    return " ".join(text.split())
