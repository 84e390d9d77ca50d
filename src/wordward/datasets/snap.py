"""Amazon's reviews as SNAP publishes them: a `name: value` a line, an empty line between two reviews."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from wordward.datasets.example import Example
from wordward.datasets.lines import legacy_lines

FIRST = "product/productId:"  # what such a file begins with


def is_snap(path: Path) -> bool:
    """Whether a file of plain text begins as such a file does."""
    return next(legacy_lines(path), "").startswith(FIRST)


def reviews(path: Path) -> Iterator[Example]:
    """The text of each review, without its rating."""
    for number, line in enumerate(legacy_lines(path), start=1):
        name, _, text = line.partition(": ")
        if name == "review/text" and text.strip():
            yield Example(text.strip(" "), line=number)
