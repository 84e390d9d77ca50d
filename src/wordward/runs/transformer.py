"""A fine-tuned Hugging Face model as a run: words for those who ask, pieces for the model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from wordward.runs import run_folder
from wordward.config.settings import TextSettings, TrainConfig
from wordward.datasets import Example
from wordward.text.corpus import Batch, Corpus
from wordward.text.chosen import at_hand, split_examples
from wordward.runs.hub import load_model, load_tokenizer, longest
from wordward.runs.pieces import LogitsModel, PieceCorpus, PieceReader, PieceVocabulary
from wordward.text.word_pieces import Word, special_ids, unperturbed_ids, words_of
from wordward.runs.run import Run
from wordward.runs.reading import Pieces, Reading, Row, place_tokens
from wordward.runs.scoring import probabilities
from wordward.perturbation.tap import Tap
from wordward.text.vocabulary import Token, Vocabulary, tokenize

UNCUT = 1 << 24  # pieces: no text has as many


def open_run(path: Path, config: TrainConfig, device: torch.device) -> "PieceRun":
    """The best model of a run folder."""
    folder, labels = path / run_folder.TRANSFORMER, run_folder.load_labels(path)
    if not (folder / "config.json").exists():
        raise run_folder.RunError(
            f"{path} holds no {run_folder.TRANSFORMER} folder: was the run stopped before its first epoch ended?"
        )
    tagging = config.task == "tag"
    tokenizer = load_tokenizer(str(folder), tagging=tagging)
    model = LogitsModel(load_model(str(folder), tagging=tagging, labels=labels)).to(device).eval()
    vocabulary: Any = PieceVocabulary(tokenizer, Tap(model).size)
    return PieceRun(path, config, vocabulary, labels, model, device)  # type: ignore[arg-type]


def starting_vectors(run: Run) -> tuple[Tensor | None, str]:
    """The table of the model that a run was made of; else None and why."""
    try:
        source = at_hand(str(run.config.transformer))
        model = load_model(source, tagging=run.tagging, labels=run.labels)
        table = Tap(LogitsModel(model)).table()
    except (OSError, ValueError, RuntimeError) as error:
        return None, f"The vectors that this run started from cannot be read: {error}."
    if table.shape != run.table().shape:
        return None, f"The vectors of {source} are not those that this run started from."
    return table, ""


@dataclass(frozen=True)
class PieceRun(Run):
    """A run whose model reads word pieces; its vocabulary is a `PieceVocabulary`."""

    of_pieces: ClassVar[bool] = True

    @property
    def tokenizer(self) -> Any:
        """The model's own."""
        return self.vocabulary.tokenizer  # type: ignore[attr-defined]

    @cached_property
    def reader(self) -> PieceReader:
        """How texts become pieces: a classifier's cut as in training, a tagger's only where the model must."""
        can = longest(self.model.model, self.tokenizer)  # type: ignore[arg-type]
        asked = None if self.tagging else self.config.text.max_length
        return PieceReader(self.tokenizer, self.tagging, min(can, asked or can))

    @cached_property
    def text(self) -> TextSettings:  # type: ignore[override]
        """What others need to know of how texts are read."""
        upper, lower = (
            self.tokenizer(text, add_special_tokens=False)["input_ids"] for text in ("The", "the")
        )
        return TextSettings(lowercase=upper == lower, max_length=None if self.tagging else self.reader.most)

    @cached_property
    def learnt(self) -> Vocabulary:  # type: ignore[override]
        """The words of the training texts."""
        return run_folder.load_vocabulary(self.folder)

    @property
    def weights(self) -> list[Path]:
        """The files that hold the model."""
        return sorted((self.folder / run_folder.TRANSFORMER).glob("*.safetensors"))

    def words(self, example: Example) -> list[str]:
        """The words of an example, also those that the model does not read."""
        if self.tagging:
            return self.reader.text_of(example)
        encoding = self.reader.encoding([example.text], most=UNCUT)
        return [word.text for word in words_of(encoding, example.text)]

    def encode(
        self, examples: Sequence[Example], *, labelled: bool, source: str = "", cut: bool = False
    ) -> Corpus:
        """Examples as pieces; `cut`: a tagger's to the longest length of training."""
        most = (self.config.text.max_length or self.reader.most) if cut or not self.tagging else None
        return self.reader.encode(examples, self.labels if labelled else None, most=most, source=source)

    def split(self, name: str, *, limit: int | None = None, quiet: bool = False) -> Corpus:
        """A split of the known corpus that the run is on."""
        examples = split_examples(replace(self.config.data, limit=limit), name)
        return self.encode(examples, labelled=True, source=f"{self.config.data.corpus} {name}")

    def corpus(self, rows: Sequence[np.ndarray], labels: Any = None) -> Corpus:
        """Ids of pieces; a tagger's labels are pieces' too."""
        return PieceCorpus(rows, labels, pad_id=self.tokenizer.pad_token_id)

    def read(self, example: Example) -> Reading:
        """The words of an example that the model reads, where they stand."""
        lowercase, text = self.text.lowercase, example.text
        if self.tagging:
            tokens = tokenize(text, "whitespace", lowercase)
            if example.tokens is not None:
                text, tokens = place_tokens(text, example.tokens, lowercase=lowercase)
            words = self._read([text[token.start : token.end] for token in tokens])[1] if tokens else []
            return Reading(text, tokens[: len(words)], len(tokens), len(tokens) - len(words))
        words = self._read(text)[1]
        tokens = [Token(w.text.lower() if lowercase else w.text, w.start, w.end) for w in words]
        unread = len(text[words[-1].end :].split()) if words else 0
        return Reading(text, tokens, len(tokens) + unread, unread)

    def _read(self, text: str | list[str]) -> tuple[list[int], list[Word]]:
        encoding: Any = self.reader.encoding([text])  # type: ignore[arg-type]
        return encoding["input_ids"][0], words_of(encoding, text)

    def row(self, text: Reading) -> Row:
        """The pieces of what was read, and which word each is part of."""
        as_read = [text.text[t.start : t.end] for t in text.tokens] if self.tagging else text.text
        ids, words = self._read(as_read)
        word_of = np.full(len(ids), -1)
        for number, word in enumerate(words):
            word_of[list(word.pieces)] = number
        return Row(np.array(ids, dtype=np.int32), self._pieces(word_of, [word.text for word in words]))

    def _pieces(self, word_of: np.ndarray, words: Sequence[str]) -> Pieces:
        first = np.array([int(np.argmax(word_of == number)) for number in range(len(words))], dtype=np.int64)
        learnt = np.array([*(self._judged(word) for word in words), 0])
        return Pieces(word_of, first, learnt[word_of])

    def _judged(self, word: str) -> int:
        """A word's row in the rule of sense: after those of the pieces."""
        return len(self.vocabulary) + (0 if self.tagging else self.learnt[word.lower()])

    def swapped(self, row: Row, position: int, word: int, text: str) -> Row | None:
        """The pieces of a text in which one piece took a word's place; None where it is not read so."""
        ids, pieces = row
        assert pieces is not None
        (replaced,) = np.nonzero(pieces.word == position)
        before, after = int(replaced[0]), int(replaced[-1]) + 1
        wanted = np.concatenate([ids[:before], [word], ids[after:]])
        as_read = text.split() if self.tagging else text
        if self.tagging and len(as_read) != len(pieces.first):
            return None
        if not np.array_equal(self.reader.encoding([as_read])["input_ids"][0], wanted):  # type: ignore[arg-type]
            return None
        word_of = np.concatenate([pieces.word[:before], [position], pieces.word[after:]])
        numbers = np.concatenate([pieces.numbers[:before], [word], pieces.numbers[after:]])
        first = pieces.first - np.where(np.arange(len(pieces.first)) > position, after - before - 1, 0)
        return Row(wanted.astype(np.int32), Pieces(word_of, first, numbers))

    def perturbed(self, batch: Batch) -> Tensor:
        """Where pieces stand for text, (batch, time)."""
        return batch.mask & ~torch.isin(batch.ids, self._unperturbed)

    @cached_property
    def _unperturbed(self) -> Tensor:
        return torch.tensor(unperturbed_ids(self.tokenizer), device=self.device)

    def table(self) -> Tensor:
        """The vectors of all pieces, as the embedding gives them."""
        return Tap(self.model).table()

    def vector(self, word: str) -> Tensor:
        """The mean of the vectors of a word's pieces."""
        pieces = self.tokenizer(f" {word}", add_special_tokens=False)["input_ids"]
        return self.table()[pieces or [self.tokenizer.pad_token_id]].mean(0)

    def ordinary(self) -> Tensor:
        """Ids of words, which alone a perturbation is compared with."""
        return torch.from_numpy(self.vocabulary.candidates()).to(self.device)

    def writable(self) -> np.ndarray:
        """Which pieces are words by themselves: (pieces,)."""
        whole = np.zeros(len(self.vocabulary), dtype=bool)
        whole[self.vocabulary.candidates()] = True
        return whole

    def judged(self, judge: Any) -> Any:
        """The rule over pieces first, each as the word that it is; then over the words of `learnt`."""
        names = [name.lower() for name in self.vocabulary.words]
        learnt_ids = torch.tensor([self.learnt[name] for name in names], device=judge.evidence.device)
        tables = {name: getattr(judge, name) for name in ("evidence", "variance", "negates")}
        return replace(
            judge, **{name: torch.cat([table[learnt_ids], table]) for name, table in tables.items()}
        )

    def predict(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        """Label and probabilities of each text; for a tagger of each token."""
        as_read = [self.reader.text_of(Example(text)) for text in texts]
        filled = [at for at, text in enumerate(texts) if text.split()]
        records = [self._record(text, None, [], known=False) for text in texts]
        if not filled:
            return records
        corpus = self.reader.encode([Example(texts[at]) for at in filled], most=self.reader.most)
        chances_of_texts = probabilities(self.model, corpus, self.device)
        special, silent = set(special_ids(self.tokenizer)), set(self._unperturbed.tolist())
        for at, row, chances in zip(filled, corpus.rows, chances_of_texts, strict=True):
            ids = row.tolist()
            if self.tagging and len(chances) < len(as_read[at]):
                records[at] = {"text": texts[at], "error": self.reader.too_long(len(as_read[at]))}
            elif not silent.issuperset(ids):  # else a text of blanks and the like, to which no words came
                words, known = as_read[at] if self.tagging else [], not special.issuperset(ids)
                records[at] = self._record(texts[at], chances, words, known=known)
        return records
