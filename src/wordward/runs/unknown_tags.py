"""Sentences to score a tagger on, with tags that it does not know: these count as errors."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from wordward.datasets import Example
from wordward.support.console import say
from wordward.text.corpus import Corpus

NAMED = 5  # tags that a line names


def encoded(
    encode: Callable[[Sequence[Example]], Corpus], examples: Sequence[Example], labels: Sequence[str], *, quiet: bool
) -> Corpus:
    """Labelled texts as `encode` encodes them; tags that are not among `labels` are numbered after these.

    Where most tags are unknown they are another task's, which `encode` refuses. Unless `quiet`, says which these are.
    """
    tags = Counter(tag for example in examples for tag in example.tags or ())
    known = {label: number for number, label in enumerate(labels)}
    unknown = tuple(tag for tag in sorted(tags) if tag not in known)
    count = sum(tags[tag] for tag in unknown)
    if not count or 2 * count > tags.total():
        return encode(examples)
    corpus = encode([_with_known_tags(example, known) for example in examples])
    numbers = known | {tag: len(labels) + at for at, tag in enumerate(unknown)}
    assert corpus.labels is not None
    all_tags = [
        np.array([numbers[tag] for tag in (example.tags or ())[: np.size(of_row)]], dtype=np.int64)
        for example, of_row in zip(examples, corpus.labels, strict=True)
    ]
    named = ", ".join(unknown[:NAMED]) + (f" and {len(unknown) - NAMED} more" if len(unknown) > NAMED else "")
    many = "tag that the model does not know counts" if count == 1 else "tags that the model does not know count"
    say(f"{count:,} {many} as wrong: {named}", quiet=quiet)
    return replace(corpus, labels=all_tags, unknown=unknown)


def _with_known_tags(example: Example, known: dict[str, int]) -> Example:
    """The sentence with some known tag in the place of each unknown one."""
    if example.tags is None:
        return example
    some = next(iter(known))
    return replace(example, tags=tuple(tag if tag in known else some for tag in example.tags))
