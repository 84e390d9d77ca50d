"""Adversarial texts as training data: each with the true label of the text that it was made of."""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from wordward.attack.attacked import Attacked
from wordward.attack.wording import told
from wordward.datasets import Example
from wordward.datasets.pairs import parted
from wordward.support.errors import SettingError
from wordward.support.files import write

CHANGED = "changed"  # the column that says what was done to a text
SUFFIXES = (".csv", ".jsonl")


class Augmented(NamedTuple):
    """A text to learn from.

    Attributes:
        text: The text.
        label: Its true label.
        changed: What was done to the text that it was made of; "" for one as it was given.

    Examples:
        >>> from wordward.attack import Augmented
        >>> Augmented("a waarm film", "good", "typo: warm → waarm").label
        'good'
    """

    text: str
    label: str
    changed: str = ""


def augmented(attacked: Iterable[Attacked]) -> list[Augmented]:
    """The adversarial texts of an attack as texts to learn from, but for those whose true label likely changed.

    Args:
        attacked: What an attack on texts with true labels found.

    Returns:
        An `Augmented` for each adversarial text, in the same order.

    Examples:
        >>> settings = wordward.attack.AttackSettings(edits=("typo", "space"), sense="kept")
        >>> found = run.attack([wordward.Example("the film was warm and funny", "good")], settings)
        >>> {one.label for one in wordward.attack.augmented(found)} <= {"good"}
        True
    """
    return [
        Augmented(one.adversarial, one.label, "; ".join(map(told, one.changes))) for one in attacked if _teaches(one)
    ]


def doubtful(attacked: Iterable[Attacked]) -> int:
    """How many of the texts that `augmented` gives have edits of unknown sense, so that their label may be wrong."""
    return sum(one.sense == "unknown" for one in attacked if _teaches(one))


def _teaches(one: Attacked) -> bool:
    """Whether an adversarial text is to be learnt from."""
    return one.flipped and one.given and one.sense != "changed" and not one.flagged


def as_given(examples: Iterable[Example]) -> list[Augmented]:
    """Labelled texts as they are."""
    return [Augmented(example.text, str(example.label)) for example in examples]


def check_suffix(path: str | Path) -> None:
    """Refuse a name that does not say in which format training data is to be written."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise SettingError("out", f"expected a name that ends in {' or '.join(SUFFIXES)}; got {str(path)!r}")


def write_augmented(
    path: str | Path, texts: Sequence[Augmented], columns: tuple[str, str], pair: str | None = None
) -> None:
    """Texts as CSV or JSON Lines, by the file's name; `columns`: of text and label; `pair`: of a second text."""
    check_suffix(path)
    names, rows = (*columns, CHANGED), [tuple(text) for text in texts]
    if pair is not None:
        names, rows = (columns[0], pair, *names[1:]), [(*parted(text)[:2], *rest) for text, *rest in rows]
    if Path(path).suffix.lower() == ".jsonl":
        lines = [json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) for row in rows]
        write(Path(path), "".join(f"{line}\n" for line in lines))
        return
    table = io.StringIO()
    # A carriage return alone is not quoted by itself where lines end in a line feed.
    quoting = csv.QUOTE_ALL if any("\r" in cell for row in rows for cell in row) else csv.QUOTE_MINIMAL
    csv.writer(table, lineterminator="\n", quoting=quoting).writerows([names, *rows])
    write(Path(path), table.getvalue())
