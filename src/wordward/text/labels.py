"""The labels of texts as the numbers that a model knows them by; others are refused."""

from collections.abc import Collection, Sequence

import numpy as np

from wordward.config.texts import TextSettings
from wordward.datasets import DataError, Example
from wordward.datasets.example import folded


def label_numbers(
    examples: Sequence[Example], classes: Sequence[str], settings: TextSettings, *, tagging: bool, source: str
) -> Sequence[int] | Sequence[np.ndarray]:
    """Classes or tags as numbers; a label not in `classes` is refused."""
    numbers = {name: number for number, name in enumerate(classes)}

    def of_one(example: Example) -> int | np.ndarray:
        names = _names(example, tagging=tagging, source=source)
        if strange := [name for name in names if name not in numbers]:
            raise _unknown(strange[0], numbers, examples, source, example.line)
        if tagging:
            return np.array([numbers[name] for name in names][: settings.max_length], dtype=np.int64)
        return numbers[names[0]]

    return [of_one(example) for example in examples]  # type: ignore[return-value]


def _names(example: Example, *, tagging: bool, source: str) -> tuple[str, ...]:
    """The tags of an example, or its one label; refused where it has none, or the other."""
    names = example.tags if tagging else None if example.label is None else (example.label,)
    if names is not None:
        return names
    wanted, other = ("a tag for every token", "a label") if tagging else ("a label", "a tag for every token")
    model = "a classifier" if tagging else "a tagger"
    instead = f"it has {other} instead: give other texts, or {model} for these"
    found = "there is none" if example.names == (None,) else instead
    raise DataError(f"expected {wanted}; {found}", source, example.line)


def _unknown(name: str, known: Collection[str], examples: Sequence[Example], source: str, line: int) -> DataError:
    """Why a label is refused, with all others of the texts that are not known either."""
    strange = sorted({other for each in examples for other in each.names if other is not None} - {*known, name})
    some = ", ".join(map(repr, strange[:10])) + (f" and {len(strange) - 10} more" if len(strange) > 10 else "")
    return DataError(
        f"expected a label that the model knows ({', '.join(map(_shown, known))}); got {name!r}"
        f"{some and f', and in other places {some}'}: {_remedy(name, known)}",
        source,
        line,
    )


def _remedy(name: str, known: Collection[str]) -> str:
    """What to do about a label that is not known."""
    if (close := next((other for other in known if folded(other) == folded(name)), None)) is not None:
        return f"write it as {close!r}, from which it differs only in case, blanks or a .0"
    remedy = "rename the labels of the texts, leave such texts out, or include some of them in training"
    if all(other.isdecimal() for other in known) and not name.isdecimal():
        named = "the attribute labels of a function, or labels= of open_model"
        return f"give numbers, or, of a model that wordward did not train, name its labels ({named}); or {remedy}"
    return remedy


def _shown(label: str) -> str:
    """A label in a list of them, quoted where it could be taken for the list's punctuation."""
    return label if any(map(str.isalnum, label)) and "," not in label else repr(label)
