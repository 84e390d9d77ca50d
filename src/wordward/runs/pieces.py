"""Texts as ids of word pieces: how a tokenizer reads them, and batches of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wordward.config.texts import TextSettings
from wordward.datasets import DataError, Example
from wordward.datasets.pairs import parted
from wordward.perturbation.tap import logits_of
from wordward.runs.inputs import check_pairs
from wordward.support.console import progress, say
from wordward.support.errors import SettingError
from wordward.text.batches import chunks, pad
from wordward.text.corpus import Batch, Corpus, to_device
from wordward.text.labels import label_numbers

CHUNK = 1000  # texts that a tokenizer is given at a time, which is faster than one by one


class LogitsModel(nn.Module):
    """A Hugging Face model with the call of our own models: ids and mask in, logits out.

    `separator`: the id that ends the first of two texts, for a model that is told which of them a piece is of.
    """

    def __init__(self, model: Any, separator: int | None = None) -> None:
        super().__init__()
        self.model, self.separator = model, separator

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Logits: (batch, classes), or for a tagger (batch, time, classes)."""
        told = {} if self.separator is None else {"token_type_ids": text_numbers(ids, self.separator)}
        return logits_of(self.model(input_ids=ids, attention_mask=mask.long(), **told))

    def get_input_embeddings(self) -> nn.Module:
        return self.model.get_input_embeddings()


def text_numbers(ids: Tensor, separator: int) -> Tensor:
    """Of two texts the number, 0 or 1, of that which each piece is of, (batch, time); a separator ends the first."""
    ends = (ids == separator).long()
    return (ends.cumsum(-1) - ends).clamp(max=1)


def separator_of(tokenizer: Any, model: nn.Module) -> int | None:
    """The id that ends the first of two texts, for a model that is told where they are; None for others.

    Refuses a tokenizer that puts nothing between two texts, or numbers their pieces in a way that is not known here.
    """
    encoding = tokenizer("a", "a", return_token_type_ids=True)
    numbers, ids = encoding.sequence_ids(0), encoding["input_ids"]
    between = ids[numbers.index(0) + numbers.count(0) : numbers.index(1)]
    if not between:
        raise SettingError(
            "pair_column",
            f"the tokenizer of {type(model).__name__} puts nothing between two texts: take a model whose tokenizer "
            "does, such as a BERT or RoBERTa, or write both texts into one column as the model is to read them",
        )
    told: list[int] = encoding["token_type_ids"]
    if not any(told) or "token_type_ids" not in signature(model.forward).parameters:
        return None
    if text_numbers(torch.tensor([ids]), between[0])[0].tolist() != told:
        raise SettingError(
            "pair_column",
            f"the tokenizer of {type(model).__name__} numbers two texts in a way that is not known here: take a "
            "model that reads them as BERT or RoBERTa does",
        )
    return int(between[0])


@dataclass(frozen=True)
class PieceCorpus(Corpus):
    """Texts as ids of pieces."""

    pad_id: int = 0
    first: Sequence[np.ndarray] | None = None  # of a tagger, where each word begins
    multiple: int = 1  # of which the model reads batches only
    cut: int = 0  # texts that are longer than what is read of them

    def batch(self, index: np.ndarray, device: torch.device) -> Batch:
        """The texts at `index`, padded; the mask comes from lengths, since the padding id may occur in a text."""
        rows = [self.rows[at] for at in index]
        ids = to_device(torch.from_numpy(pad(rows, self.pad_id, self.multiple)), device)
        lengths = to_device(torch.tensor([len(row) for row in rows]), device)
        mask = torch.arange(ids.shape[1], device=device) < lengths.unsqueeze(-1)
        if self.first is not None:  # the labels are words', and serve for scores alone
            return Batch(ids, mask, None)
        return Batch(ids, mask, self.labels_of(index, device, self.multiple))

    def of_row(self, at: int, each: np.ndarray) -> np.ndarray:
        """A tagger's output for each word of a row: that for the word's first piece."""
        return super().of_row(at, each) if self.first is None else each[self.first[at]]

    def say_cut(self, what: str = "texts", *, quiet: bool) -> None:
        """Say how many texts are not read to their ends; `what` they are called."""
        if self.cut:
            read = f"the {max(self.lengths)} word pieces that are read of each"
            say(f"{self.cut:,} of {len(self.rows):,} {what} cut to {read}", quiet=quiet)


@dataclass(frozen=True)
class PieceReader:
    """Encodes texts by a Hugging Face tokenizer: a classifier's as they are, a tagger's as lists of words."""

    tokenizer: Any
    tagging: bool
    most: int  # pieces that the model can read, special tokens included
    multiple: int = 1  # of which it reads batches only
    paired: bool = False  # whether each text is two, which the tokenizer reads as a pair
    _pieceless: dict[str, bool] = field(default_factory=dict)

    def encoding(self, texts: Sequence[str] | Sequence[Sequence[str]], *, most: int | None = None) -> Any:
        """The tokenizer's output for texts (a tagger's are lists of words), cut to `most` pieces each."""
        inputs: list[Any] = [[self._words(words) for words in texts] if self.tagging else list(texts)]
        if self.paired:
            pairs = [parted(str(text)) for text in texts]
            inputs = [[pair.first for pair in pairs], [pair.second for pair in pairs]]
        return self.tokenizer(
            *inputs,
            is_split_into_words=self.tagging,
            truncation=True,
            max_length=most or self.most,
            return_attention_mask=False,
            return_token_type_ids=False,
        )

    def _words(self, words: Sequence[str]) -> list[str]:
        """The words, with the unknown token in place of each that has no pieces, since every word must get a tag."""
        with_pieces = self.have_pieces(words)
        return [
            word if readable else self.tokenizer.unk_token or "."
            for word, readable in zip(words, with_pieces, strict=True)
        ]

    def have_pieces(self, words: Sequence[str]) -> list[bool]:
        """Whether each word has any pieces; a control character, for instance, has none."""
        new = [word for word in dict.fromkeys(words) if word not in self._pieceless]
        if new:
            read = self.tokenizer([[w] for w in new], is_split_into_words=True, add_special_tokens=False)
            self._pieceless.update((word, not pieces) for word, pieces in zip(new, read["input_ids"], strict=True))
        return [not self._pieceless[word] for word in words]

    def encode(
        self,
        examples: Sequence[Example],
        labels: Sequence[str] | None = None,
        *,
        most: int | None = None,
        source: str = "",
        quiet: bool = True,
    ) -> PieceCorpus:
        """Examples as ids, with the numbers of their labels where these are given.

        `most`: pieces to cut texts to; without it, a tagger's sentence that the model cannot read whole is refused.
        """
        if self.paired:
            check_pairs(examples, source)
        rows: list[np.ndarray] = []
        first: list[np.ndarray] | None = [] if self.tagging else None
        cut = 0
        with progress(quiet=quiet) as bars:
            bar = bars.add_task("tokenising", total=len(examples), unit="texts")
            for chunk in chunks(examples, CHUNK):
                encoding = self.encoding([self.text_of(example) for example in chunk], most=most)
                rows += [np.array(ids, dtype=np.int32) for ids in encoding["input_ids"]]
                cut += sum(bool(row.overflowing) for row in encoding.encodings)
                if first is not None:
                    first += [first_pieces(encoding.word_ids(row)) for row in range(len(chunk))]
                bars.advance(bar, len(chunk))
        if first is not None:
            self._check(examples, first, source, cut=most is not None)
        numbers: Any = None
        if labels is not None:
            settings = TextSettings()
            numbers = label_numbers(examples, labels, settings, tagging=self.tagging, source=source)
            if first is not None:
                numbers = [tags[: len(words)] for tags, words in zip(numbers, first, strict=True)]
        pad_id = self.tokenizer.pad_token_id
        return PieceCorpus(rows, numbers, pad_id=pad_id, first=first, multiple=self.multiple, cut=cut)

    def text_of(self, example: Example) -> Any:
        """A classifier's text, or a tagger's list of words: its tokens, or else its text split at blanks."""
        if not self.tagging:
            return example.text
        return list(example.tokens if example.tokens is not None else example.text.split())

    def _check(self, examples: Sequence[Example], first: Sequence[np.ndarray], source: str, *, cut: bool) -> None:
        for example, begins in zip(examples, first, strict=True):
            words = len(self.text_of(example))
            if not words:
                raise DataError("expected a sentence; it has no tokens", source, example.line)
            if len(begins) < words and not cut:
                raise DataError(self.too_long(words), source, example.line)

    def too_long(self, words: int) -> str:
        """The message for a sentence of so many words that the model cannot read whole."""
        return (
            f"expected a sentence of at most {self.most} word pieces, which is what the model can read; this one of "
            f"{words} words has more: split it"
        )


def first_pieces(numbers: Sequence[int | None]) -> np.ndarray:
    """The index of each word's first piece, from the number of the word that each piece is part of."""
    seen = -1
    begins = []
    for at, number in enumerate(numbers):
        if number is not None and number > seen:
            begins.append(at)
            seen = number
    return np.array(begins, dtype=np.int64)
