"""How files write labels: of a text that has several at once, or none, and those that a model names otherwise."""

import re
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


def meant(name: str, labels: Sequence[str]) -> str:
    """The label of this name, also in another case and the like where that is one of them; else the name as it is."""
    close = [label for label in labels if folded(label) == folded(name)]
    return close[0] if name not in labels and len(close) == 1 else name


def with_names(labels: Sequence[str], examples: Sequence[Example]) -> list[Example]:
    """Examples whose labels are these: those given as numbers, or in another case and the like, by their names here.

    One that is not known stays as it is, to be refused.
    """
    alike = [folded(name) for name in labels]
    named = _numbered(alike, labels)
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


def _numbered(alike: Sequence[str], labels: Sequence[str]) -> dict[str, str]:
    """The labels by number: by that in its name if each has one of its own (1 star), else by place, from 0.

    Where a name is a number itself, none has another.
    """
    if any(name.isdecimal() for name in alike):
        return {}
    inside = [found for name in alike for found in re.findall(r"\d+", name)]
    own = len(inside) == len(set(inside)) == len(labels) and all(map(re.compile(r"\d").search, alike))
    return dict(zip(inside if own else map(str, range(len(labels))), labels, strict=True))


def check_counted(labels: Sequence[str], examples: Sequence[Example], *, way: str = "") -> None:
    """Refuse labels that are numbers from 1 on where the model's are from 0 on, or the other way round.

    All but the first or last of them would be taken for those of their neighbours.
    """
    alike = [folded(name) for name in labels]
    known = _numbered(alike, labels) or dict(zip(alike, labels, strict=True))
    given = {folded(name) for example in examples for name in example.names if name is not None}
    if given <= known.keys() or not all(name.isdecimal() for name in given | known.keys()):
        return
    numbers, places = sorted(map(int, given)), {int(name) for name in known}
    if any({number + by for number in numbers} <= places for by in (-1, 1)):
        strange = next(each for each in examples if not known.keys() >= {folded(name) for name in each.names if name})
        own = ", ".join(f"{number} is {name}" for number, name in known.items() if number != name)
        theirs, its = (", ".join(map(str, each)) for each in (numbers, sorted(places)))
        raise DataError(
            f"the labels of the texts are {theirs}, those of the model {its}{own and f' ({own})'}: number those of "
            f"the texts as the model does{way}",
            line=strange.line,
        )


def numbers_read(labels: Sequence[str], examples: Sequence[Example]) -> str:
    """Which labels numbers are taken for that are not in their names, in words; empty where there are none."""
    named = _numbered([folded(name) for name in labels], labels)
    given = {folded(name) for example in examples for name in example.names if name is not None} & named.keys()
    return ", ".join(f"{each} as {named[each]}" for each in sorted(given, key=int) if each not in named[each])
