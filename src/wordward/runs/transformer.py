"""A fine-tuned Hugging Face model as a run: words for those who ask, pieces for the model."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wordward.config.settings import TrainConfig
from wordward.config.texts import TextSettings
from wordward.datasets import Example
from wordward.datasets.pairs import no_pair, parted
from wordward.perturbation.adversary import Adversary
from wordward.perturbation.recipes import Method
from wordward.perturbation.tap import Tap
from wordward.runs import run_folder
from wordward.runs.hub import load_model, load_tokenizer, longest, multiple_of
from wordward.runs.pieces import CHUNK, LogitsModel, PieceCorpus, PieceReader, PieceVocabulary, separator_of
from wordward.runs.reading import Reading, Row, place_tokens
from wordward.runs.run import Run
from wordward.text.chosen import at_hand, split_examples
from wordward.text.corpus import Batch, Corpus
from wordward.text.tokenizers import Token, tokenize
from wordward.text.vocabulary import Vocabulary
from wordward.text.word_pieces import Word, check_size, unperturbed_ids, words_of


def open_run(path: Path, config: TrainConfig, device: torch.device) -> "TransformerRun":
    """The best model of a run folder."""
    folder, labels = path / run_folder.TRANSFORMER, run_folder.load_labels(path)
    if not (folder / "config.json").exists():
        raise run_folder.RunError(
            f"{path} holds no {run_folder.TRANSFORMER} folder: was the run stopped before its first epoch ended?"
        )
    tagging = config.task == "tag"
    tokenizer = load_tokenizer(str(folder), tagging=tagging)
    inner = load_model(str(folder), tagging=tagging, labels=labels, whole=True)
    separator = None if config.data.pair_column is None else separator_of(tokenizer, inner)
    model = LogitsModel(inner, separator).to(device).eval()
    check_size(tokenizer, Tap(model).size)
    return TransformerRun(path, config, PieceVocabulary(tokenizer, Tap(model).size), labels, model, device)


@dataclass(frozen=True)
class TransformerRun(Run):
    """A run whose model reads word pieces."""

    vocabulary: PieceVocabulary
    model: LogitsModel

    @property
    def tokenizer(self) -> Any:
        """The tokenizer that the model was trained with."""
        return self.vocabulary.tokenizer

    @property
    def paired(self) -> bool:
        """Whether a text is two that are judged together, `first ||| second`."""
        return self.config.data.pair_column is not None

    @cached_property
    def reader(self) -> PieceReader:
        """Reads texts as pieces: a classifier's up to `max_length`, a tagger's as far as the model can."""
        can = longest(self.model.model, self.tokenizer)
        asked = None if self.tagging else self.config.text.max_length
        multiple = multiple_of(self.model.model)
        return PieceReader(self.tokenizer, self.tagging, min(can, asked or can), multiple, self.paired)

    @cached_property
    def text(self) -> TextSettings:  # type: ignore[override]
        upper, lower = (self.tokenizer(text, add_special_tokens=False)["input_ids"] for text in ("The", "the"))
        return TextSettings(lowercase=upper == lower, max_length=None if self.tagging else self.reader.most)

    @cached_property
    def learnt(self) -> Vocabulary:  # type: ignore[override]
        return run_folder.load_vocabulary(self.folder)

    @property
    def weights(self) -> list[Path]:
        return sorted((self.folder / run_folder.TRANSFORMER).glob("*.safetensors"))

    def encode(self, examples: Sequence[Example], *, labelled: bool, source: str = "", cut: bool = False) -> Corpus:
        most = (self.config.text.max_length or self.reader.most) if cut or not self.tagging else None
        return self.reader.encode(examples, self.labels if labelled else None, most=most, source=source)

    def split(self, name: str, *, limit: int | None = None, cut: bool = False, quiet: bool = False) -> Corpus:
        examples = split_examples(replace(self.config.data, limit=limit), name)
        return self.encode(examples, labelled=True, source=f"{self.config.data.corpus} {name}", cut=cut)

    def corpus(self, rows: Sequence[np.ndarray], labels: Any = None) -> Corpus:
        """A corpus of rows of pieces; a tagger's labels are given for each piece, not for each word."""
        return PieceCorpus(rows, labels, pad_id=self.tokenizer.pad_token_id, multiple=self.reader.multiple)

    def read(self, example: Example) -> Reading:
        lowercase, text = self.text.lowercase, example.text
        if not self.tagging:
            ids, words = self._pieces(text)
            tokens = [Token(w.text.lower() if lowercase else w.text, w.start, w.end) for w in words]
            return self._reading(text, tokens, ids, words, self._unread(text, words))
        tokens = tokenize(text, "whitespace", lowercase)
        if example.tokens is not None:
            text, tokens = place_tokens(text, example.tokens, lowercase=lowercase)
        ids, words = self._pieces([text[token.start : token.end] for token in tokens])
        return self._reading(text, tokens[: len(words)], ids, words, len(tokens) - len(words))

    def _pieces(self, text: str | list[str]) -> tuple[list[int], list[Word]]:
        """The ids of a classifier's text, or of a tagger's words, and which of these ids make up each word."""
        parts = parted(text) if self.paired and isinstance(text, str) else None
        if not text or (parts and not parts.whole):
            return [], []
        encoding: Any = self.reader.encoding([text])  # type: ignore[arg-type]
        return encoding["input_ids"][0], words_of(encoding, text, second=parts.start if parts else None)

    def swapped_rows(self, swaps: Sequence[tuple[Row, int, int, str]]) -> list[Row | None]:
        if self.tagging or self.paired:
            return super().swapped_rows(swaps)
        found: list[Row | None] = []
        for start in range(0, len(swaps), CHUNK):  # all together, which is faster than one by one
            part = swaps[start : start + CHUNK]
            read = self.reader.encoding([text for *_, text in part])["input_ids"]
            rows = [row.swapped(position, word) for row, position, word, _ in part]
            found += [row if row.ids.tolist() == ids else None for row, ids in zip(rows, read, strict=True)]
        return found

    def _unread(self, text: str, words: Sequence[Word]) -> int:
        """How many words of a text, or of the two of a pair, are beyond the longest length."""
        if not words:
            return 0
        if not self.paired:
            return len(text[words[-1].end :].split())
        first, second, start = parted(text)
        ends = [max((word.end for word in words if word.end <= len(first)), default=0), words[-1].end - start]
        return sum(len(part[max(0, end) :].split()) for part, end in zip((first, second), ends, strict=True))

    def _reading(
        self, text: str, tokens: list[Token], ids: Sequence[int], words: Sequence[Word], unread: int
    ) -> Reading:
        word_of, pieces = np.full(len(ids), -1), np.array(ids, dtype=np.int32)
        for number, word in enumerate(words):
            word_of[list(word.pieces)] = number
        first = np.array([word.pieces[0] for word in words], dtype=np.int64)
        # A word's number in the rule of sense: after those of the pieces.
        learnt = [0 if self.tagging else self._learnt(word.text) for word in words]
        numbers = len(self.vocabulary) + np.array([*learnt, 0])
        known, unknown = [True] * len(words), self.tokenizer.unk_token_id
        for number in word_of[pieces == unknown] if unknown is not None else ():
            if number >= 0:
                known[number] = False
        row = Row(pieces, word_of, first, numbers[word_of])
        return Reading(text, tokens, known, len(tokens) + unread, unread, row)

    def _learnt(self, word: str) -> int:
        return self.learnt[word.lower()]

    def ids_of(self, text: str) -> np.ndarray:
        return np.array(self._pieces(text.split() if self.tagging else text)[0], dtype=np.int32)

    def rows_of(self, texts: Sequence[str], *, known: bool = False) -> list[np.ndarray | None]:
        if self.tagging or self.paired:
            return super().rows_of(texts, known=known)
        rows: list[np.ndarray | None] = []
        for start in range(0, len(texts), CHUNK):  # all together, which is faster than one by one
            part = texts[start : start + CHUNK]
            encoding = self.reader.encoding(part)
            held = zip(part, encoding["input_ids"], encoding.encodings, strict=True)
            rows += [np.array(ids, dtype=np.int32) if _has_words(text, of) else None for text, ids, of in held]
        return rows

    def problem(self, reading: Reading) -> str | None:
        if self.tagging and reading.unread:
            return self.reader.too_long(reading.words)
        if self.paired and not parted(reading.text).whole:
            return no_pair(reading.text)
        return super().problem(reading)

    def perturbed(self, batch: Batch) -> Tensor:
        """Mask of the pieces that stand for text, unlike [CLS] or [SEP], (batch, time)."""
        return batch.mask & ~torch.isin(batch.ids, self._unperturbed)

    @cached_property
    def _unperturbed(self) -> Tensor:
        return torch.tensor(unperturbed_ids(self.tokenizer), device=self.device)

    def table(self) -> Tensor:
        return Tap(self.model).table()

    def starting_table(self) -> tuple[Tensor | None, str]:
        try:
            source = at_hand(str(self.config.transformer))
            model = load_model(source, tagging=self.tagging, labels=self.labels)
            table = Tap(LogitsModel(model)).table()
        except (OSError, ValueError, RuntimeError) as error:
            return None, f"The vectors that this run started from cannot be read: {error}."
        if table.shape != self.table().shape:
            return None, f"The vectors of {source} are not those that this run started from."
        return table, ""

    def vector(self, word: str) -> Tensor:
        pieces = self.tokenizer(f" {word}", add_special_tokens=False)["input_ids"]
        return self.table()[pieces or [self.tokenizer.pad_token_id]].mean(0)

    def ordinary(self) -> Tensor:
        return torch.from_numpy(self.vocabulary.candidates()).to(self.device)

    def writable(self) -> np.ndarray:
        whole = np.zeros(len(self.vocabulary), dtype=bool)
        whole[self.vocabulary.candidates()] = True
        return whole

    def judged(self, judge: Any) -> Any:
        """The rule for the pieces, each as the word that it spells, followed by that for the words of `learnt`."""
        names = [name.lower() for name in self.vocabulary.words]
        learnt_ids = torch.tensor([self.learnt[name] for name in names], device=judge.evidence.device)
        tables = {field.name: getattr(judge, field.name) for field in fields(judge)}
        return replace(judge, **{name: torch.cat([table[learnt_ids], table]) for name, table in tables.items()})

    def _adversary(self, method: Method) -> Adversary:
        return Adversary(self.model, method, candidates=torch.from_numpy(self.vocabulary.candidates()))


def _has_words(text: str, encoding: Any) -> bool:
    """Whether any piece of the text, of an encoding of the package tokenizers, is more than blanks."""
    pieces = zip(encoding.sequence_ids, encoding.offsets, strict=True)
    return any(number == 0 and text[start:end].strip() for number, (start, end) in pieces)
