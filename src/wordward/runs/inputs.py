"""Texts as Python callers give them: strings, Examples, pairs of text and label, or a table."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from wordward.config.texts import DataSettings
from wordward.datasets import ColumnError, DataError, Example, examples_of
from wordward.datasets.in_memory import is_table
from wordward.datasets.pairs import no_pair, parted
from wordward.support.errors import SettingTypeError

Text = str | Example


def as_example(text: Any) -> Example:
    """An `Example` as it is, or one made of a plain string, without a label, or of a pair (text, label)."""
    if isinstance(text, Example):
        return text
    if isinstance(text, str):
        return Example(str.__str__(text))  # numpy's strings are of a type of their own
    if isinstance(text, tuple) and len(text) == 2 and isinstance(text[0], str):
        return Example(str.__str__(text[0]), None if text[1] is None else str(text[1]))
    raise SettingTypeError(
        "texts", f"texts must be strings, Examples or pairs (text, label), but one is {text!r:.80}"
    )


def check_no_labels(name: str, value: Any, kind: type) -> None:
    """Refuse what stands in the place of a setting, as a second list does: labels come with the texts."""
    if not isinstance(value, kind):
        what = "a string" if kind is str else f"`{kind.__name__}`"
        raise SettingTypeError(
            name,
            f"`{name}` must be {what}, but is {value!r:.60}: give true labels with the texts, as pairs (text, label) "
            "or `Example`s",
        )


def listed(texts: Any, data: DataSettings) -> Iterable[Any]:
    """Texts one by one; of a table of pandas or datasets those in the columns that `data` names."""
    if isinstance(texts, str | bytes | Path | Mapping | Example):
        remedy = "give [text]; wordward.datasets.read(path) reads a file"
        raise SettingTypeError("texts", f"texts must be a list of them, but is {texts!r:.60}: {remedy}")
    if not is_table(texts):
        return texts
    columns: Any = {name: getattr(data, name) for name in ("text_column", "label_column", "pair_column")}
    try:
        return examples_of(texts, "texts", labelled=False, **columns)
    except ColumnError as error:
        of = "of wordward.datasets.examples_of, and give the list that it returns"
        raise ColumnError(f"{error.message} {of}", error.path) from None


def check_pairs(examples: Sequence[Example], source: str = "") -> None:
    """Refuse texts that are not two with a mark between them."""
    for example in examples:
        if not parted(example.text).whole:
            raise DataError(no_pair(example.text), source, example.line)


def check_labels(examples: Sequence[Example], source: str = "", *, tagging: bool) -> None:
    """Refuse texts whose labels are another task's: one label each for a tagger, or tags for a classifier."""
    wanted, other = ("a tag for every token", "a label") if tagging else ("a label", "a tag for every token")
    for example in examples:
        own, strange = (example.tags, example.label) if tagging else (example.label, example.tags)
        if own is None and strange is not None:
            raise DataError(
                f"expected {wanted}; it has {other} instead: give other texts, or leave labels out (`labels=False`)",
                source or None,
                example.line,
            )
