"""Models that wordward did not train: a Hugging Face folder made by transformers alone, and functions on texts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from hf_tiny import bert, word_pieces
from reviews import BLAME, PRAISE, reviews

NAMES = {"id2label": {0: "bad", 1: "good"}, "label2id": {"bad": 0, "good": 1}}


def fine_tuned(folder: Path, steps: int = 60) -> Path:
    """A folder as `save_pretrained` writes it, of a classifier of our reviews that plain torch has trained."""
    tokenizer = word_pieces()
    model = bert("sequence", len(tokenizer), **NAMES)
    optimizer, examples = torch.optim.Adam(model.parameters(), 0.01), reviews(64, seed=3)
    batch = tokenizer([each.text for each in examples], padding=True, return_tensors="pt")
    batch.pop("token_type_ids", None)
    labels = torch.tensor([int(each.label == "good") for each in examples])
    for _ in range(steps):
        optimizer.zero_grad()
        model(**batch, labels=labels).loss.backward()
        optimizer.step()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def good(text: str) -> float:
    """The probability of good by praise and blame alone."""
    words = text.lower().replace(",", " ").split()
    score = sum(word in PRAISE for word in words) - sum(word in BLAME for word in words)
    return float(torch.tensor(1.5 * score + 0.2).sigmoid())


class Guard:
    """A function that remembers what it was asked."""

    labels = ("bad", "good")

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str]) -> Any:
        self.asked += texts
        return [[1 - good(text), good(text)] for text in texts]


def word_vectors(path: Path) -> Path:
    """A file of vectors in which each word of praise is nearest to one of blame."""
    lines = []
    for at, pair in enumerate(zip(PRAISE, BLAME, strict=True)):
        for side, word in enumerate(pair):
            vector = [0.0] * 12
            vector[at], vector[6 + at] = 1.0, 0.1 * side
            lines.append(f"{word} {' '.join(map(str, vector))}\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path
