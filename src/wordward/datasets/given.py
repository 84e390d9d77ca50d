"""Texts that a program holds in memory, as Examples."""

from collections.abc import Iterable, Mapping
from typing import Any

from wordward.datasets.example import Example
from wordward.support.errors import DataError, SettingTypeError


def examples_of(texts: Iterable[Any], name: str, *, labelled: bool = True, skip_empty: bool = False) -> list[Example]:
    """Make Examples of texts in memory.

    Args:
        texts: `Example`s, pairs (text, label), or plain texts where no labels are needed.
        name: What stands for the list in messages.
        labelled: Whether labels are needed.
        skip_empty: Leave out texts that are empty, which are refused otherwise.

    Returns:
        An `Example` for each text, numbered from 1.

    Raises:
        DataError: If one is no text, is empty, or lacks its label or tags.

    Examples:
        >>> from wordward.datasets import examples_of
        >>> examples_of([("a warm film", "good")], "texts")[0].label
        'good'
    """
    if isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable):
        raise SettingTypeError(name, f"{name} must be a list of texts, but is {type(texts).__name__}")
    examples = [
        example
        for number, value in enumerate(texts, start=1)
        if (example := _example(value, name, number, labelled)).text.strip() or not skip_empty
    ]
    if empty := [example for example in examples if not example.text.strip()]:
        also = f", as are {len(empty) - 1:,} more" if len(empty) > 1 else ""
        raise DataError(f"expected a text; it is empty{also}: leave it out (or `skip_empty`)", name, empty[0].line)
    if not examples:
        raise DataError("expected one or more texts; found none", name)
    return examples


def _example(value: Any, name: str, number: int, labelled: bool) -> Example:
    wanted = "an Example or a pair (text, label)" if labelled else "an Example or a text"
    if isinstance(value, Example):
        example = Example(value.text, value.label, value.tokens, value.tags, number, value.group)
    elif isinstance(value, str) and not labelled:
        example = Example(value.strip(), line=number)
    elif isinstance(value, tuple | list) and len(value) == 2 and isinstance(value[0], str):
        example = Example(value[0].strip(), str(value[1]).strip(), line=number)
    else:
        raise DataError(f"expected {wanted}; got {value!r:.80}", name, number)
    if labelled and example.label == "" and example.text.strip():
        raise DataError("expected a label; it is empty: leave the text out", name, number)
    if example.tags is not None and len(example.tags) != len(example.tokens or ()):
        raise DataError(
            f"expected a tag for each token; got {len(example.tokens or ())} tokens and {len(example.tags)} tags",
            name,
            number,
        )
    try:
        example.text.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"expected whole characters; got half of a surrogate pair: {error}", name, number) from None
    return example
