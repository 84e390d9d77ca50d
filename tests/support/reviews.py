"""Sentences of our own: little reviews whose label shows in their words, and tagged sentences; both as files."""

import csv
import random
from collections.abc import Sequence
from pathlib import Path

from wordward.datasets import Example

PRAISE = ("warm", "funny", "bright", "lovely", "clever", "moving")
BLAME = ("dull", "cold", "clumsy", "bland", "tired", "empty")
THINGS = ("film", "story", "ending", "script", "cast", "music")
OPENINGS = ("the", "this", "that", "our", "their")


def reviews(count: int, seed: int = 0) -> list[Example]:
    rng = random.Random(seed)
    examples = []
    for _ in range(count):
        positive = rng.random() < 0.5
        words = PRAISE if positive else BLAME
        text = f"{rng.choice(OPENINGS)} {rng.choice(THINGS)} was {rng.choice(words)} and {rng.choice(words)}"
        if rng.random() < 0.5:
            text += f" , said {rng.choice(OPENINGS)} friend of mine"
        examples.append(Example(text, "good" if positive else "bad"))
    return examples


def tagged(count: int, seed: int = 0) -> list[Example]:
    """Sentences where "are" after a single thing is wrong (tag i)."""
    rng = random.Random(seed)
    examples = []
    for _ in range(count):
        verb = rng.choice(("is", "are"))
        tokens = (rng.choice(("the", "this")), rng.choice(THINGS), verb, rng.choice(PRAISE + BLAME))
        tags = ("c", "c", "i" if verb == "are" else "c", "c")
        if rng.random() < 0.5:
            tokens, tags = ("well", *tokens), ("c", *tags)
        examples.append(Example(" ".join(tokens), tokens=tokens, tags=tags))
    return examples


def write_csv(path: Path, examples: Sequence[Example]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *((each.text, each.label) for each in examples)])
    return path


def write_conll(path: Path, examples: Sequence[Example]) -> Path:
    pairs = [zip(each.tokens or (), each.tags or (), strict=True) for each in examples]
    path.write_text("\n".join("".join(f"{token}\t{tag}\n" for token, tag in each) for each in pairs))
    return path
