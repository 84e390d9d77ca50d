"""Texts that a program holds in memory, as Examples: lists of them, and tables of pandas, datasets and the like."""

import json
from collections.abc import Iterable, Iterator, Mapping
from math import isnan
from typing import Any, SupportsIndex

from wordward.datasets.columns import Columns, no_columns
from wordward.datasets.example import Example, check_characters
from wordward.datasets.pairs import joined
from wordward.support.errors import ColumnError, DataError, SettingTypeError

SKIP = "(or `skip_empty`)"


def examples_of(
    texts: Iterable[Any],
    name: str,
    *,
    labelled: bool = True,
    skip_empty: bool = False,
    text_column: str = "text",
    label_column: str = "label",
    pair_column: str | None = None,
    several_labels: bool = True,
) -> list[Example]:
    """Make Examples of texts in memory.

    Args:
        texts: `Example`s, pairs (text, label), or plain texts where no labels are needed; or a table, such as a
            DataFrame of pandas or a Dataset of datasets, whose text column may hold lists of words, and whose label
            column their tags. Two texts that are judged together are `joined`.
        name: What stands for the list in messages.
        labelled: Whether labels are needed; those of a table are read where there are any.
        skip_empty: Leave out texts that are empty or lack their label, which are refused otherwise.
        text_column: The column of a table that holds the texts.
        label_column: The column that holds their labels; those of a ClassLabel are taken by name.
        pair_column: The column that holds a second text, judged together with the first.
        several_labels: Whether a text's label may be a list, of a model that gives several labels at once.

    Returns:
        An `Example` for each text, numbered from 1.

    Raises:
        DataError: If one is no text, is empty, or lacks its label or tags, or a table lacks the column.

    Examples:
        >>> from wordward.datasets import examples_of
        >>> examples_of([("a warm film", "good")], "texts")[0].label
        'good'
    """
    if is_table(texts):
        wanted = Columns(
            text_column,
            label_column,
            labelled=labelled,
            skip_empty=skip_empty,
            lists=several_labels,
            pair=pair_column,
        )
        texts = _of_table(texts, name, wanted)
    elif not several_labels and isinstance(texts, Iterable) and not isinstance(texts, str | bytes | Mapping):
        texts = _of_one_label(texts, name)
    if isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable):
        one = ": choose one of its splits" if isinstance(texts, Mapping) else ""
        raise SettingTypeError(name, f"{name} must be a list of texts, but is {type(texts).__name__}{one}")
    examples = [
        example
        for number, value in enumerate(texts, start=1)
        if (example := _example(value, name, number, labelled, skip_empty)).text.strip() or not skip_empty
    ]
    if empty := [example for example in examples if not example.text.strip()]:
        also = f", as are {len(empty) - 1:,} more" if len(empty) > 1 else ""
        raise DataError(f"expected a text; it is empty{also}: leave it out {SKIP}", name, empty[0].line)
    if not examples:
        raise DataError("expected one or more texts; found none", name)
    return examples


def is_table(texts: Any) -> bool:
    """Whether texts are in a table with columns by name, as of pandas, polars or datasets."""
    return not isinstance(texts, Mapping) and hasattr(texts, "__getitem__") and bool(_columns(texts))


def _columns(table: Any) -> list[str]:
    named = getattr(table, "column_names", None)  # of datasets; a split's
    return [str(each) for each in (getattr(table, "columns", ()) if named is None else named)]


def _of_table(table: Any, name: str, columns: Columns) -> Iterator[Example]:
    """The rows of a table; one without a text or label is refused, or empty where such are left out."""
    known = _columns(table)
    if missing := {option: column for option, column in columns.wanted.items() if column not in known}:
        raise ColumnError(no_columns(missing, known), name)
    feature = getattr(table, "features", {}).get(columns.label) if hasattr(table, "column_names") else None
    names = getattr(getattr(feature, "feature", feature), "names", None)  # of a ClassLabel, or a list of them

    def label(value: Any) -> str | None:
        if names and isinstance(value, SupportsIndex):
            value = names[value] if 0 <= value.__index__() < len(names) else None  # -1 stands for none
        return _label(value)

    labels: Any = table[columns.label] if columns.label in known else [None] * len(table)
    texts: Any = table[columns.text]
    if columns.pair:
        texts = map(_joined, texts, table[columns.pair])
    for number, (text, value) in enumerate(zip(texts, labels, strict=True), start=1):
        words, tags = (isinstance(each, list | tuple) or getattr(each, "ndim", 0) for each in (text, value))
        if columns.skip_empty:
            lacks_label = columns.labelled and not tags and not label(value)
            if lacks_label or (not words and _label(text) is None):
                yield Example("")
                continue
        if not words and not isinstance(text, str):
            raise DataError(f"expected a text; got {text!r:.80}: leave the row out {SKIP}", name, number)
        named = [each for each in map(label, value if tags else [value]) if each is not None]
        complete = len(named) == (len(value) if tags else 1)
        if columns.labelled and not complete:
            raise DataError(f"expected a label; got {value!r:.80}: leave the row out {SKIP}", name, number)
        if words:
            tokens = tuple(map(str, text))
            yield Example(" ".join(tokens), tokens=tokens, tags=tuple(named) if tags and complete else None)
        elif complete:
            if tags and not columns.lists:
                raise _several(value, name, number)
            yield Example(text.strip(), json.dumps(named, ensure_ascii=False) if tags else named[0])
        else:
            yield Example(text.strip())


def _of_one_label(texts: Iterable[Any], name: str) -> Iterator[Any]:
    """The texts as they are; one whose label is a list or the like is refused."""
    for number, value in enumerate(texts, start=1):
        label = value[1] if isinstance(value, tuple | list) and len(value) == 2 else None
        if isinstance(label, list | tuple | set | Mapping) or getattr(label, "ndim", 0):
            raise _several(label, name, number)
        yield value


def _several(label: Any, name: str, number: int) -> DataError:
    return DataError(
        f"expected one label, a string or a number; got {label!r:.60}, as for a model that gives several labels at "
        "once: give each text one",
        name,
        number,
    )


def _joined(first: Any, second: Any) -> Any:
    """Two texts as one; what is no text stays as it is, to be refused."""
    both = isinstance(first, str) and isinstance(second, str)
    return joined(first, second) if both else second if isinstance(first, str) else first


def _label(value: Any) -> str | None:
    """A label as text; None for what stands for none in tables."""
    missing = value is None or type(value).__name__ == "NAType" or (isinstance(value, float) and isnan(value))
    return None if missing else str(value).strip()


def _example(value: Any, name: str, number: int, labelled: bool, skip_empty: bool) -> Example:
    wanted = "an Example or a pair (text, label)" if labelled else "an Example or a text"
    if isinstance(value, Example):
        example = Example(value.text, value.label, value.tokens, value.tags, number, value.group)
    elif isinstance(value, str) and not labelled:
        example = Example(value.strip(), line=number)
    elif isinstance(value, tuple | list) and len(value) == 2 and isinstance(value[0], str):
        example = Example(value[0].strip(), _label(value[1]), line=number)
        if labelled and example.label is None and not skip_empty:
            raise DataError(f"expected a label; got {value[1]!r}: leave the text out {SKIP}", name, number)
    else:
        raise DataError(f"expected {wanted}; got {value!r:.80}", name, number)
    if labelled and example.tags is None and not example.label and skip_empty:
        return Example("", line=number)
    if labelled and example.label == "" and example.text.strip():
        raise DataError(f"expected a label; it is empty: leave the text out {SKIP}", name, number)
    if example.tags is not None and len(example.tags) != len(example.tokens or ()):
        raise DataError(
            f"expected a tag for each token; got {len(example.tokens or ())} tokens and {len(example.tags)} tags",
            name,
            number,
        )
    check_characters(example.text, name, number)
    return example
