"""Models that wordward did not train: a Hugging Face folder made by transformers alone, and functions on texts."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from hf_tiny import bert, word_pieces
from reviews import BLAME, PRAISE, reviews
from safetensors.torch import save_file

from wordward.datasets import Example

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


def bert_table(folder: Path, words: list[str], table: torch.Tensor) -> Path:
    """A folder with what is read of a BERT: its pieces, and their vectors (pieces, dim)."""
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", *words]) + "\n")
    (folder / "config.json").write_text(json.dumps({"hidden_size": table.shape[1]}))
    save_file({"embeddings.word_embeddings.weight": torch.cat([table[:1] * 0, table])}, folder / "model.safetensors")
    return folder


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


def guard_in(folder: Path, module: str, code: str = "") -> None:
    """A module with a `guard`, a function on texts that wordward did not train, and vectors of its words."""
    (folder / f"{module}.py").write_text(f"from any_model import Guard\n\nguard = Guard()\n{code}")
    word_vectors(folder / "vectors.txt")


SEVERAL = {"id2label": {0: "praise", 1: "blame", 2: "film"}, "label2id": {"praise": 0, "blame": 1, "film": 2}}


def marked(count: int, seed: int = 3) -> list[Example]:
    """Texts with all labels that they have: praise, blame, or that they are of a film; some have none."""
    found = []
    for each in [*reviews(count, seed=seed), *[Example("the cast is")] * (count // 8)]:
        words = each.text.lower().replace(",", " ").split()
        has = {"praise": set(PRAISE) & set(words), "blame": set(BLAME) & set(words), "film": "film" in words}
        found.append(Example(each.text, "|".join(name for name in has if has[name]) or "[]"))
    return found


def several_labels(folder: Path, steps: int = 80) -> Path:
    """As `fine_tuned`, of a model that gives several labels at once."""
    tokenizer = word_pieces()
    model = bert("sequence", len(tokenizer), problem_type="multi_label_classification", num_labels=3, **SEVERAL)
    optimizer, examples = torch.optim.Adam(model.parameters(), 0.01), marked(64)
    batch = tokenizer([each.text for each in examples], padding=True, return_tensors="pt")
    batch.pop("token_type_ids", None)
    wanted = [[float(name in str(each.label)) for name in SEVERAL["label2id"]] for each in examples]
    for _ in range(steps):
        optimizer.zero_grad()
        model(**batch, labels=torch.tensor(wanted)).loss.backward()
        optimizer.step()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
