"""Warnings about training labels that are probably mistakes."""

from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches

from wordward.datasets import Example
from wordward.datasets.example import single_spaced
from wordward.support.console import say

MISSING = ("nan", "none", "null", "n/a", "na", "nil", "#n/a", "<na>")  # how tables write that there is no value
MANY, SHARE = 20, 0.2  # labels, and labels for each text, above which numbers are hardly meant to be classes
RARE, FREQUENT = 3, 30  # texts of a label that may be a misspelt one, fewer, and of the one that is meant, at least
LIKE = 0.85  # how alike their letters are, of 1
SHOWN = 3  # labels that a message names


def warn_of_labels(examples: Sequence[Example], *, quiet: bool) -> None:
    """Say what is doubtful about the labels of texts that have one each."""
    if quiet or examples[0].tags is not None:
        return
    in_order = sorted(examples, key=lambda example: example.line)
    checks = _missing, _several, _numbers, _misspelt, _contradictory
    for line in (check(in_order) for check in checks):
        if line:
            say(line)


def _missing(examples: Sequence[Example]) -> str:
    """A message on labels that tables write for a missing value; empty if there are none."""
    found = [example for example in examples if (example.label or "").strip().casefold() in MISSING]
    if not found:
        return ""
    names = ", ".join(sorted({repr(example.label) for example in found}))
    many = "1 text is" if len(found) == 1 else f"{len(found):,} texts are"
    return (
        f"{many} labelled {names}{_place(found[0], 'first in ')}, which is learnt like any other label. Where it "
        "stands for no label, leave such texts out, or give them to vat or ivat as `unlabelled`"
    )


def _several(examples: Sequence[Example]) -> str:
    """A message on labels that are others joined by "|", as for models that give several; empty if there are none."""
    labels = {example.label or "" for example in examples}
    joined = sorted(label for label in labels if "|" in label and labels & set(map(str.strip, label.split("|"))))
    if not joined:
        return ""
    return (
        f"{joined[0]!r} is learnt as a label of its own, since training takes one label for each text: where `|` "
        "joins several, keep one of them, or train a model for each label"
    )


def _numbers(examples: Sequence[Example]) -> str:
    """A message on labels that look like measurements: many different numbers; empty for others."""
    labels = {example.label or "" for example in examples}
    if len(labels) <= max(MANY, SHARE * len(examples)) or not all(map(_is_number, labels)):
        return ""
    return (
        f"the labels are {len(labels):,} different numbers, such as {min(labels)!r}, and each is learnt as a label "
        "of its own: is `label_column` the column of labels? Numbers to be estimated are better put into few classes"
    )


def _is_number(label: str) -> bool:
    try:
        float(label)
    except ValueError:
        return False
    return True


def _misspelt(examples: Sequence[Example]) -> str:
    """A message on rare labels that are spelt nearly like a frequent one; empty if there are none."""
    counts = Counter(example.label or "" for example in examples)
    rare = [label for label, count in counts.items() if count < RARE and not any(map(str.isdigit, label))]
    frequent = [label for label, count in counts.items() if count >= FREQUENT]
    found = [(label, near[0]) for label in rare if (near := get_close_matches(label, frequent, 1, LIKE))]
    if not found:
        return ""
    named = "; ".join(f"{label!r} ({counts[label]}) and {near!r} ({counts[near]:,})" for label, near in found[:SHOWN])
    return f"labels that are spelt nearly alike are learnt as different ones: {named}. Is the rarer one a typo?"


def _contradictory(examples: Sequence[Example]) -> str:
    """A message on texts that occur with different labels, white space ignored; empty if there are none."""
    first: dict[str, Example] = {}
    other: dict[str, Example] = {}
    for example in examples:
        text = single_spaced(example.text)
        if first.setdefault(text, example).label != example.label:
            other.setdefault(text, example)
    if not other:
        return ""
    text, second = next(iter(other.items()))
    shown = f"{text[:40]}..." if len(text) > 40 else text
    labels = f"{first[text].label!r}{_place(first[text])} and {second.label!r}{_place(second)}"
    many = f"{'1 text is' if len(other) == 1 else f'{len(other):,} texts are'} there with different labels"
    return f"{many}, such as {shown!r}, {labels}: correct them, or leave them out"


def _place(example: Example, where: str = "") -> str:
    """The line of an example, where it is known."""
    return f" ({where}line {example.line})" if example.line else ""
