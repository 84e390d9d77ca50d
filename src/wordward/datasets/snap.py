"""Amazon's reviews as SNAP publishes them: one `name: value` per line, an empty line between reviews."""

from collections.abc import Iterator
from pathlib import Path

from wordward.datasets.example import Example
from wordward.datasets.lines import legacy_lines

FIRST = "product/productId:"  # the beginning of such a file


def is_snap(path: Path) -> bool:
    """Whether a plain text file is in this format."""
    return next(legacy_lines(path), "").startswith(FIRST)


def reviews(path: Path) -> Iterator[Example]:
    """The text of each review, without its rating."""
    for number, line in enumerate(legacy_lines(path), start=1):
        name, _, text = line.partition(": ")
        if name == "review/text" and text.strip():
            yield Example(text.strip(" "), line=number)
