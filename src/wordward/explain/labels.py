"""Labels, and the word in focus, that come with texts to be explained: checked, and as numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from wordward.datasets import DataError, Example
from wordward.perturbation.objective import IGNORE
from wordward.runs.reading import Reading
from wordward.runs.run import Run
from wordward.support.errors import SettingError

Labels = list[str | None] | None


def check_focuses(run: Run, texts: Sequence[Reading], focus: int | None) -> None:
    """Refuse a position that these texts do not have."""
    if focus is None:
        return
    if not run.tagging:
        raise SettingError(
            "focus", "focus is for taggers: this run gives one label to the whole text, so leave it out"
        )
    for number, text in enumerate(texts, start=1):
        check_focus(text, focus, number)


def check_focus(text: Reading, focus: int, number: int) -> None:
    """Refuse a position that text `number` does not have."""
    words = len(text.tokens)
    if not 0 <= focus < words:
        possible = f"it has positions 0 to {words - 1}" if words else "it has no words"
        raise SettingError("focus", f"expected focus to be a word of text {number}; got {focus}, but {possible}")


def labels_of(run: Run, example: Example, text: Reading, focus: int | None) -> Labels:
    """The labels that came with an example: a classifier's one, a tagger's for each token, None where none came."""
    if not run.tagging:
        labels: list[str | None] = [example.label]
    elif example.tags is not None:
        labels = list(example.tags)
        if len(labels) != text.words:
            raise DataError(f"expected a tag for each of {text.words} tokens; got {len(labels)}", line=example.line)
        labels = labels[: len(text.tokens)]  # the model may not read all of them
    else:
        labels = [None] * len(text.tokens)
        if example.label is not None:
            if focus is None:
                raise DataError(
                    f"a tagger labels each word, but got one label, {example.label!r}: give the focus it is for",
                    line=example.line,
                )
            labels[focus] = example.label
    check_known_labels(run, labels, example.line)
    return labels if any(name is not None for name in labels) else None


def check_known_labels(run: Run, names: Sequence[str | None], line: int = 0) -> None:
    """Refuse labels that the run does not give."""
    for name in names:
        if name is not None and name not in run.labels:
            known = ", ".join(run.labels)
            raise DataError(f"expected a label that the model knows ({known}); got {name!r}", line=line)


def numbered(run: Run, text: Reading, names: Labels) -> Any:
    """Labels as numbers, a tagger's at each word's first piece; IGNORE stands for the predicted label."""
    if not run.tagging:
        return IGNORE if names is None or names[0] is None else run.labels.index(names[0])
    numbers = [IGNORE if name is None else run.labels.index(name) for name in names or [None] * len(text.tokens)]
    return text.row.at_first(np.array(numbers, dtype=np.int64))
