"""A run whose model reads words, each as one id: the paper's LSTMs, and a convolution."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wordward.config.settings import TrainConfig
from wordward.config.texts import TextSettings
from wordward.datasets import Example
from wordward.models import Model
from wordward.perturbation.adversary import Adversary
from wordward.perturbation.recipes import Method
from wordward.runs import checkpoint, run_folder
from wordward.runs.initialization import build, network
from wordward.runs.reading import Reading, Row, Words, place_tokens
from wordward.runs.run import Run
from wordward.support.errors import RunError, SettingError
from wordward.text.corpora import open_corpus
from wordward.text.corpus import Batch, Corpus, encode, encode_words
from wordward.text.tokenizers import Token, split_words, word_spans
from wordward.text.tokens import words_of
from wordward.text.vocabulary import SPECIALS, Vocabulary


@dataclass(frozen=True, repr=False)
class WordRun(Run):
    """A classifier or tagger of the paper."""

    vocabulary: Vocabulary
    model: Model

    @property
    def text(self) -> TextSettings:
        return replace(self.config.text, max_length=None) if self.tagging else self.config.text

    @property
    def learnt(self) -> Vocabulary:
        return self.vocabulary

    @property
    def weights(self) -> list[Path]:
        file = self.folder / run_folder.WEIGHTS
        return [file] if file.exists() else []

    @property
    def _tokenizer(self) -> str:
        """The tokenizer of plain texts; a tagger's are tokenised already, so they are split at blanks."""
        return "whitespace" if self.tagging else self.text.tokenizer

    def encode(self, examples: Sequence[Example], *, labelled: bool, source: str = "", cut: bool = False) -> Corpus:
        classes, settings = self.labels if labelled else None, self.config.text if cut else self.text
        if self.tagging:
            examples = [_with_tokens(example) for example in examples]
        return encode(examples, self.vocabulary, settings, classes, tagging=self.tagging, source=source)

    def split(self, name: str, *, limit: int | None = None, cut: bool = False, quiet: bool = False) -> Corpus:
        corpus, words = str(self.config.data.corpus), self.vocabulary
        return open_corpus(corpus, self.config.text, limit=limit, vocabulary=words, quiet=quiet).splits[name]

    def corpus(self, rows: Sequence[np.ndarray], labels: Any = None) -> Corpus:
        return Corpus(rows, labels)

    def read(self, example: Example) -> Reading:
        settings, text = self.text, example.text
        if example.tokens is not None:
            text, tokens = place_tokens(text, example.tokens, lowercase=settings.lowercase)
            find_spans, words = partial(_spans, tokens), [token.text for token in tokens]
        else:
            find_spans = partial(word_spans, text, self._tokenizer)
            words = split_words(text, self._tokenizer, settings.lowercase)
        dropping = not self.tagging and settings.unknown == "drop"
        kept = [word for word in words if word in self.vocabulary] if dropping else words
        read = kept[: settings.max_length]
        ids = self._ids(read)
        return Reading(
            text,
            ids,
            partial(_found, find_spans, words, ids, self.vocabulary, dropping, settings.max_length),
            lowercase=settings.lowercase,
            filled=bool(words),
            known=any(word in self.vocabulary for word in read),
            unread=len(kept) - len(read),
        )

    def ids_of(self, text: str) -> np.ndarray:
        example = Example(text)
        return self._ids(words_of(_with_tokens(example) if self.tagging else example, self.text))

    def rows_of(self, texts: Sequence[str], *, known: bool = False) -> list[np.ndarray | None]:
        readings = [self.read(Example(text)) for text in texts]  # without their words' places
        least = 2 if known and not self.tagging else 1  # ids, one of them <eos>, which is no word
        return [each.ids if each.filled and len(each.ids) >= least else None for each in readings]

    def _ids(self, words: Sequence[str]) -> np.ndarray:
        return encode_words(words, self.vocabulary, self.text, eos=not self.tagging)

    def ids_alone(self, stretches: Sequence[str]) -> list[list[int]] | None:
        if self.tagging:
            return None
        words = (split_words(stretch, self.text.tokenizer, self.text.lowercase) for stretch in stretches)
        return [self.vocabulary.encode(each, eos=False, unknown=self.text.unknown) for each in words]

    def perturbed(self, batch: Batch) -> Tensor:
        return batch.mask

    def table(self) -> Tensor:
        return self.model.words.table.weight.detach()

    def starting_table(self) -> tuple[Tensor | None, str]:
        config = self.config
        if not (config.pretrained or config.vectors):
            return None, "This run started from vectors drawn at random, so there is no meaningful “before”."
        try:
            vocabulary = run_folder.load_vocabulary(config.pretrained) if config.pretrained else self.vocabulary
            if vocabulary.fingerprint != self.vocabulary.fingerprint:
                raise RunError(f"{config.pretrained} has another vocabulary now")
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(config.training.seed)  # as in training: words without a vector start there too
                model, _ = build(config, vocabulary, len(self.labels), tagging=self.tagging)
                return model.words.table.weight.detach(), ""
        except (OSError, ValueError) as error:
            return None, f"The vectors that this run started from cannot be read: {error}."

    def vector(self, word: str) -> Tensor:
        return self.table()[self.vocabulary[word.lower() if self.text.lowercase else word]]

    def ordinary(self) -> Tensor:
        return torch.arange(len(SPECIALS), self.vocabulary.plain, device=self.device)

    def writable(self) -> np.ndarray:
        return _writable(self.vocabulary, self._tokenizer, self.text.lowercase)

    def judged(self, judge: Any) -> Any:
        return judge

    def _adversary(self, method: Method) -> Adversary:
        return adversary_of(method, self.model, self.vocabulary, self.config.training.min_candidate_count)


def _spans(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    return [(start, end) for _, start, end in tokens]


def _found(
    find_spans: Callable[[], list[tuple[int, int]]],
    words: Sequence[str],
    ids: np.ndarray,
    vocabulary: Vocabulary,
    dropping: bool,
    most: int | None,
) -> Words:
    """The words of a text whose ids are known, with their places."""
    known, spans = [word in vocabulary for word in words], find_spans()
    if dropping:
        spans, known = [span for span, stays in zip(spans, known, strict=True) if stays], [True] * sum(known)
    read = spans[:most]
    numbers = np.arange(len(read))
    word = np.concatenate([numbers, np.full(len(ids) - len(read), -1)])  # <eos> is part of no word
    row = Row(ids, word, numbers, ids.astype(np.int64))
    return Words(read, known[:most], len(words), len(spans) - len(read), row)


def _with_tokens(example: Example) -> Example:
    """The example with tokens: its own, or else its text split at blanks."""
    return example if example.tokens is not None else replace(example, tokens=tuple(example.text.split()))


@lru_cache(maxsize=8)  # a vocabulary does not change, and many texts may be attacked one by one
def _writable(vocabulary: Vocabulary, tokenizer: str, lowercase: bool) -> np.ndarray:
    writable = [split_words(word, tokenizer, lowercase) == [word] for word in vocabulary.words]
    writable[: len(SPECIALS)] = [False] * len(SPECIALS)
    return np.array(writable)


def open_run(path: Path, config: TrainConfig, device: torch.device) -> WordRun:
    """The best model of a run folder."""
    vocabulary, labels = run_folder.load_vocabulary(path), run_folder.load_labels(path)
    make = partial(network, config, vocabulary, len(labels), tagging=config.task == "tag")
    checkpoint.check_fits(path / run_folder.WEIGHTS, make)
    model = make()
    checkpoint.load_weights(path, model, vocabulary)
    return WordRun(path, config, vocabulary, labels, model.to(device).eval(), device)


def adversary_of(method: Method, model: Model, vocabulary: Vocabulary, min_candidate_count: int) -> Adversary:
    """A method applied to one of the paper's models, with the frequent words of its vocabulary as candidates."""
    candidates = torch.from_numpy(vocabulary.candidates(min_candidate_count))
    if method.recipe.space == "words" and not len(candidates):
        raise SettingError(
            "min_candidate_count",
            f"no word occurs {min_candidate_count:,} times in the training texts: give a lower `min_candidate_count`",
        )
    return Adversary(model, method, site=model.words.dropout, candidates=candidates)
