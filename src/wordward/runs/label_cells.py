"""How files write labels: of a text that has several at once, or none, and those that a model names otherwise."""

from ast import literal_eval
from collections.abc import Sequence
from dataclasses import replace

from wordward.datasets import DataError, Example
from wordward.datasets.example import folded

BETWEEN = "|"  # what stands between the labels of a text
OTHERS = (BETWEEN, ";", ",")  # what files may have there
NONE = ("", "[]", "none")  # how files write that a text has no label


def decided(example: Example, among: Sequence[str], no: str, yes: str) -> Example:
    """A text with its label `no` or `yes`: whether `yes` is among its labels; a column of 0 and 1 says so, too."""
    if example.label is None:
        return example
    if (cell := folded(example.label)) in ("0", "1", folded(no)) and example.label not in among:
        return replace(example, label=yes if cell == "1" else no)
    return replace(example, label=yes if yes in labels_in(example, among) else no)


def labels_in(example: Example, known: Sequence[str], source: str = "") -> list[str]:
    """The labels of a text, in the model's order: one, several with | ; or , between, or a list as JSON writes it.

    In a list, a number that is no label's name is its place, from 0.
    """
    cell = str(example.label)
    by_name = {folded(name): name for name in known} | {name: name for name in known}

    def found(parts: Sequence[object]) -> list[str | None]:
        return [by_name.get(name) or by_name.get(folded(name)) for name in (str(part).strip() for part in parts)]

    if cell.strip().casefold() in NONE and None in found([cell]):
        return []
    for parts in ([cell], _listed(cell, known), *(cell.split(between) for between in OTHERS)):
        if parts and None not in (names := found(parts)):
            return [name for name in known if name in names]
    raise DataError(
        f"expected labels that the model knows ({', '.join(known)}), with {BETWEEN} between where there are several, "
        f"or {NONE[1]} for none; got {cell!r}",
        source,
        example.line,
    )


def _listed(cell: str, known: Sequence[str]) -> list[object]:
    """The values of a list in brackets, numbers as the names in these places; none if it is no such list."""
    try:
        values = literal_eval(cell.strip()) if cell.strip().startswith("[") else []
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return []
    if not isinstance(values, list):
        return []
    places = {} if any(name.isdecimal() for name in known) else {str(at): name for at, name in enumerate(known)}
    return [places.get(str(value), value) for value in values]


def with_names(labels: Sequence[str], examples: Sequence[Example]) -> list[Example]:
    """Examples whose labels are these: those given as numbers, or in another case and the like, by their names here.

    One that is not known stays as it is, to be refused.
    """
    alike = [folded(name) for name in labels]
    numbers = any(name.isdecimal() for name in alike)  # which are names then, and not places
    named = {} if numbers else {str(at): name for at, name in enumerate(labels)}
    named |= {close: name for close, name in zip(alike, labels, strict=True) if alike.count(close) == 1}

    def known(name: str) -> str:
        return name if name in labels else named.get(folded(name), name)

    return [
        replace(
            example,
            label=None if example.label is None else known(example.label),
            tags=None if example.tags is None else tuple(map(known, example.tags)),
        )
        for example in examples
    ]
