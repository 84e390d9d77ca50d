"""A trained run: how it reads texts, and what it predicts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from wordward.config.settings import TextSettings, TrainConfig
from wordward.datasets import Example
from wordward.perturbation.adversary import Adversary
from wordward.perturbation.objective import Loss
from wordward.perturbation.recipes import Method
from wordward.runs import run_folder
from wordward.runs.metrics import Interval
from wordward.runs.models import Classifier, Tagger
from wordward.runs.reading import Reading, Row, place_tokens
from wordward.runs.scoring import probabilities, scores
from wordward.support.errors import SettingError
from wordward.text.corpora import open_corpus
from wordward.text.corpus import Batch, Corpus, encode, encode_words
from wordward.text.tokens import words_of
from wordward.text.vocabulary import SPECIALS, Vocabulary, split_words, tokenize


@dataclass(frozen=True)
class Run:
    """A trained model with everything needed to read a text; `wordward.runs.transformer` has one for word pieces."""

    of_pieces: ClassVar[bool] = False
    folder: Path
    config: TrainConfig
    vocabulary: Vocabulary
    labels: tuple[str, ...]
    model: Classifier | Tagger
    device: torch.device

    @property
    def positive(self) -> int | None:
        """The class whose F0.5 counts, if one does."""
        name = self.config.training.positive
        return self.labels.index(name) if name in self.labels else None

    @property
    def tagging(self) -> bool:
        """Whether it gives a tag per token rather than a label per text."""
        return self.config.task == "tag"

    @property
    def text(self) -> TextSettings:
        """How texts are read; a tagger's are cut in training only, since every token is to get a tag."""
        return replace(self.config.text, max_length=None) if self.tagging else self.config.text

    @property
    def learnt(self) -> Vocabulary:
        """The words that were counted in the training texts of each class."""
        return self.vocabulary

    @property
    def weights(self) -> list[Path]:
        """The files that hold the model."""
        file = self.folder / run_folder.WEIGHTS
        return [file] if file.exists() else []

    def words(self, example: Example) -> list[str]:
        """The words of an example as this run reads them, before the cut to max_length."""
        return words_of(self._tokenised(example), self.text)

    def encode(
        self, examples: Sequence[Example], *, labelled: bool, source: str = "", cut: bool = False
    ) -> Corpus:
        """Examples as this run reads them; `cut`: a tagger's to the longest length too, as in training."""
        classes, settings = self.labels if labelled else None, self.config.text if cut else self.text
        read = [self._tokenised(example) for example in examples]
        return encode(read, self.vocabulary, settings, classes, tagging=self.tagging, source=source)

    def split(self, name: str, *, limit: int | None = None, quiet: bool = False) -> Corpus:
        """A split of the known corpus that the run is on."""
        corpus, words = str(self.config.data.corpus), self.vocabulary
        return open_corpus(corpus, self.config.text, limit=limit, vocabulary=words, quiet=quiet).splits[name]

    def corpus(self, rows: Sequence[np.ndarray], labels: Any = None) -> Corpus:
        """Ids as batches of them go into the model."""
        return Corpus(rows, labels)

    def read(self, example: Example) -> Reading:
        """The words of an example where they stand: word for word what `encode` makes ids of."""
        settings, text = self.text, example.text
        if example.tokens is not None:
            text, tokens_in_text = place_tokens(text, example.tokens, lowercase=settings.lowercase)
        else:
            tokens_in_text = tokenize(
                text, "whitespace" if self.tagging else settings.tokenizer, settings.lowercase
            )
        kept = tokens_in_text
        if not self.tagging and settings.unknown == "drop":
            kept = [token for token in tokens_in_text if token.text in self.vocabulary]
        tokens = kept[: settings.max_length]
        return Reading(text, tokens, len(tokens_in_text), len(kept) - len(tokens))

    def row(self, text: Reading) -> Row:
        """The ids of what was read."""
        return Row(self._ids([token.text for token in text.tokens]))

    def swapped(self, row: Row, position: int, word: int, text: str) -> Row | None:
        """The row with one word replaced, as `text` spells it; None if the text is read differently."""
        ids = row.ids.copy()
        ids[position] = word
        return Row(ids) if np.array_equal(self._ids(self.words(Example(text))), ids) else None

    def perturbed(self, batch: Batch) -> Tensor:
        """Where a perturbation may be, (batch, time)."""
        return batch.mask

    def table(self) -> Tensor:
        """The vectors of all ids."""
        return self.model.words.table.weight.detach()

    def vector(self, word: str) -> Tensor:
        """The vector of a word as it stands in a text."""
        return self.table()[self.vocabulary[word.lower() if self.text.lowercase else word]]

    def ordinary(self) -> Tensor:
        """Ids of words, which alone a perturbation is compared with."""
        return torch.arange(len(SPECIALS), len(self.vocabulary), device=self.device)

    def writable(self) -> np.ndarray:
        """Which words, standing alone, are read as themselves: (words,)."""
        tokenizer = "whitespace" if self.tagging else self.text.tokenizer
        return _writable(self.vocabulary, tokenizer, self.text.lowercase)

    def judged(self, judge: Any) -> Any:
        """The rule of sense over ids, from that over the words of `learnt`."""
        return judge

    def predict(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        """Label and probabilities of each text; for a tagger of each token."""
        words = [self.words(Example(text)) for text in texts]
        rows = [self._ids(of_text) for of_text in words]
        filled = [at for at, of_text in enumerate(words) if of_text]
        chances_of_texts = probabilities(self.model, Corpus([rows[at] for at in filled]), self.device)
        records = [self._record(text, None, [], known=False) for text in texts]
        for at, chances in zip(filled, chances_of_texts, strict=True):
            known = bool((rows[at] >= len(SPECIALS)).any())
            records[at] = self._record(texts[at], chances, words[at], known=known)
        return records

    def _ids(self, words: Sequence[str]) -> np.ndarray:
        """The ids of words, (time,)."""
        return encode_words(words, self.vocabulary, self.text, eos=not self.tagging)

    def _tokenised(self, example: Example) -> Example:
        """A tagger's text comes tokenised: as given, else by blanks."""
        if not self.tagging or example.tokens is not None:
            return example
        return replace(example, tokens=tuple(example.text.split()))

    def _record(
        self, text: str, chances: np.ndarray | None, words: list[str], *, known: bool
    ) -> dict[str, Any]:
        if chances is None:
            return {"text": text, "error": "the text is empty: no words to read"}
        record: dict[str, Any] = {"text": text}
        if self.tagging:
            record["tokens"] = [
                {"token": word, "label": self.labels[int(each.argmax())], "probabilities": self._named(each)}
                for word, each in zip(words, chances, strict=True)
            ]
        else:
            record |= {"label": self.labels[int(chances.argmax())], "probabilities": self._named(chances)}
        if not known:
            record["warning"] = "no word of this text is in the vocabulary"
        return record

    def _named(self, chances: np.ndarray) -> dict[str, float]:
        return {label: round(float(chance), 6) for label, chance in zip(self.labels, chances, strict=True)}


@lru_cache(maxsize=8)  # a vocabulary does not change, and many texts may be attacked one by one
def _writable(vocabulary: Vocabulary, tokenizer: str, lowercase: bool) -> np.ndarray:
    writable = [split_words(word, tokenizer, lowercase) == [word] for word in vocabulary.words]
    writable[: len(SPECIALS)] = [False] * len(SPECIALS)
    return np.array(writable)


def evaluate(run: Run, corpus: Corpus) -> dict[str, Interval]:
    """The scores of a run on a labelled corpus."""
    return scores(
        corpus, probabilities(run.model, corpus, run.device), len(run.labels), positive=run.positive
    )


def adversary_of(
    method: Method,
    model: Classifier | Tagger,
    learnt: Vocabulary,
    min_candidate_count: int,
    *,
    loss: Loss | None = None,
) -> Adversary:
    """A method on one of our models."""
    candidates = torch.from_numpy(learnt.candidates(min_candidate_count))
    if method.recipe.space == "words" and not len(candidates):
        raise SettingError(
            "min_candidate_count",
            f"no word occurs {min_candidate_count:,} times in the training texts: give a lower `min_candidate_count`",
        )
    return Adversary(model, method, site=model.words.dropout, candidates=candidates, loss=loss)
