"""Texts as a Trainer takes them: rows, their order, batches of them."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, Sampler

from wordward.perturbation.objective import IGNORE
from wordward.runs.pieces import PieceCorpus, text_numbers
from wordward.text.batches import length_batches, pad
from wordward.text.corpus import padded_labels
from wordward.text.ragged import Joined


class TrainerDataset(Dataset):
    """A corpus as the Trainer takes it."""

    def __init__(self, corpus: PieceCorpus, *, labelled: bool) -> None:
        self.corpus, self.labelled = corpus, labelled

    def __len__(self) -> int:
        return len(self.corpus.rows)

    def __getitem__(self, at: int) -> dict[str, Any]:
        """Ids and label; of a tagger the tags at first pieces, or 0 there where only the place counts."""
        corpus, at = self.corpus, int(at)
        row: dict[str, Any] = {"input_ids": corpus.rows[at]}
        if corpus.first is not None:
            tags = np.full(len(corpus.rows[at]), IGNORE, dtype=np.int64)
            tags[corpus.first[at]] = corpus.labels[at] if self.labelled else 0  # type: ignore[index]
            row["labels"] = tags
        elif self.labelled:
            row["labels"] = corpus.labels[at]  # type: ignore[index]
        return row


class Collator:
    """Rows side by side, padded to a multiple of `multiple`; `separator` as in `LogitsModel`."""

    def __init__(self, tokenizer: Any, separator: int | None = None, *, multiple: int = 1) -> None:
        self.tokenizer, self.separator, self.multiple = tokenizer, separator, multiple

    def __call__(self, rows: Sequence[dict[str, Any]]) -> dict[str, Tensor]:
        """The batch of some rows."""
        ids = [row["input_ids"] for row in rows]
        lengths = torch.tensor([len(row_ids) for row_ids in ids])
        batch = {"input_ids": torch.from_numpy(pad(ids, self.tokenizer.pad_token_id, self.multiple))}
        batch["attention_mask"] = (torch.arange(batch["input_ids"].shape[1]) < lengths.unsqueeze(-1)).long()
        if self.separator is not None:
            batch["token_type_ids"] = text_numbers(batch["input_ids"], self.separator)
        if "labels" in rows[0]:
            batch["labels"] = padded_labels([row["labels"] for row in rows], self.multiple)
        return batch


def in_parts(batch: dict[str, Tensor], most: int) -> list[dict[str, Tensor]]:
    """Even parts of about `most` ids, padding included, or of one text."""
    texts = len(batch["input_ids"])
    count = min(texts, -(-batch["input_ids"].numel() // most))
    edges = [texts * at // count for at in range(count + 1)]
    return [{name: value[start:end] for name, value in batch.items()} for start, end in pairwise(edges)]


class Order(Sampler[int]):
    """Texts in batches of similar length, in an order that seed and epoch alone decide."""

    def __init__(self, lengths: np.ndarray, batch_size: int, seed: int) -> None:
        self.lengths, self.batch_size, self.seed, self.epoch = lengths, batch_size, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Be told the epoch, by the Trainer."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[int]:
        rng = np.random.default_rng([self.seed, 1, self.epoch])
        batches = length_batches(self.lengths, self.batch_size, rng=rng)
        batches.sort(key=lambda batch: len(batch) < self.batch_size)  # a short one last: none is torn
        return iter(np.concatenate(batches).tolist())


def pool(data: Any) -> PieceCorpus:
    """The texts of the KL methods: training and unlabelled ones."""
    train, extra = data.train, data.unlabelled
    if extra is None:
        return PieceCorpus(train.rows, first=train.first)
    first = None if train.first is None else [*train.first, *extra.first]
    return PieceCorpus(Joined(train.rows, extra.rows), first=first)
