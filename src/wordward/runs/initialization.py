"""Initialize a model from a language model or from word vectors, its table at unit standard deviation."""

import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from wordward.config.pretraining import PretrainConfig
from wordward.config.settings import TrainConfig
from wordward.datasets import DataError
from wordward.datasets.lines import lines
from wordward.models import Classifier, Convolution, LanguageModel, Model, Spelling, Tagger, Words
from wordward.runs import checkpoint, run_folder
from wordward.runs.input_table import vectors_of, width_of
from wordward.support.console import say
from wordward.support.errors import SettingError
from wordward.text.loading import file_at_hand
from wordward.text.vocabulary import PAD, SPECIALS, Vocabulary

FLOOR = 1e-3  # under a standard deviation, so that a dimension that never varies is not blown up


@torch.no_grad()
def normalize(words: Words, lstms: Iterable[nn.LSTM], counts: np.ndarray) -> None:
    """v' = (v - mean) / std per dimension, weighted by frequency (Miyato et al. 2017).

    The function stays as it was in eval mode: mean and std go into the LSTMs, W' = W diag(std) and b' = b + W mean,
    or back to vectors that are rescaled.
    """
    mean, deviation = _moments(words.table.weight, counts)
    words.table.weight.sub_(mean).div_(deviation)
    if words.scale is not None and words.shift is not None:
        words.shift.addcmul_(mean, words.scale)
        words.scale.mul_(deviation)
        return
    for lstm in lstms:
        parameters = dict(lstm.named_parameters())
        weight, bias = parameters["weight_ih_l0"], parameters["bias_ih_l0"]
        bias.add_(weight @ mean)
        weight.mul_(deviation)


def _moments(vectors: Tensor, counts: np.ndarray) -> tuple[Tensor, Tensor]:
    """Frequency-weighted mean and standard deviation of each dimension."""
    weights = torch.tensor(counts, dtype=torch.float64, device=vectors.device)
    weights = (weights / weights.sum()).unsqueeze(-1)
    wide = vectors.double()
    mean = (weights * wide).sum(0)
    deviation = (weights * (wide - mean).square()).sum(0).sqrt().clamp(min=FLOOR)
    return mean.to(vectors.dtype), deviation.to(vectors.dtype)


@torch.no_grad()
def from_language_model(model: Classifier | Tagger, language_model: LanguageModel, counts: np.ndarray) -> None:
    """Copy words and (forward) LSTM, normalised; the head, and a tagger's backward LSTM, stay fresh."""
    for part in ("words.table", "lstm"):
        ours, theirs = model.get_submodule(part), language_model.get_submodule(part)
        for (name, mine), (_, other) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
            if mine.shape != other.shape:
                raise SettingError(
                    "pretrained",
                    f"{part}.{name} is {tuple(mine.shape)} in the model, but {tuple(other.shape)} in the language "
                    "model: give the same `dim` and `hidden` to both",
                )
            mine.copy_(other)
    normalize(model.words, [model.lstm], counts)


@torch.no_grad()
def from_vectors(table: nn.Embedding, path: str | Path, vocabulary: Vocabulary, dim: int | None = None) -> Tensor:
    """Fill the first `dim` columns (all) of the words that a file or a BERT's folder has vectors for, normalised.

    Returns the ids of these words.
    """
    dim = dim or table.embedding_dim
    rows, found = _rows_for(vocabulary, Path(path), dim)
    ids = torch.tensor(sorted(found), dtype=torch.long)
    counts = vocabulary.counts[ids.numpy()]
    if not counts.any():
        raise DataError("expected vectors of words in the texts; found none", path)
    set_vectors(table, torch.from_numpy(rows)[ids], counts, ids)
    return ids


@torch.no_grad()
def set_vectors(table: nn.Embedding, vectors: Tensor, counts: np.ndarray, ids: Tensor | None = None) -> None:
    """Fill the first columns of these ids (all) with vectors, normalised as those of the counted words are."""
    mean, deviation = _moments(vectors, counts)
    rows = slice(None) if ids is None else ids
    table.weight[rows, : vectors.shape[1]] = ((vectors - mean) / deviation).to(table.weight)
    table.weight[PAD] = 0


def _rows_for(vocabulary: Vocabulary, path: Path, dim: int) -> tuple[np.ndarray, set[int]]:
    """Rows for the vocabulary (words, dim), and the ids found."""
    if not path.is_dir():
        return read_vectors(path, vocabulary, dim)
    if (width := width_of(path)) != dim:
        raise DataError(f"expected vectors of {dim} numbers; the folder's have {width}: set `dim`", path)
    rows, pieces = vectors_of(["", "", "", *vocabulary.words[len(SPECIALS) :]], path)
    return rows, set(np.flatnonzero(pieces).tolist())


def vectors_width(path: str | Path) -> int:
    """How many numbers a file of vectors has after each word, by its first two lines."""
    for number, line in enumerate(lines(Path(path)), start=1):
        if (width := len(line.split()) - 1) > 1 or number > 1:
            return max(width, 1)
    return 1


def read_vectors(path: str | Path, vocabulary: Vocabulary, dim: int) -> tuple[np.ndarray, set[int]]:
    """Rows for the vocabulary (words, dim) and the ids found, from word2vec or GloVe text.

    An exact match takes precedence; otherwise the vector of the lower-cased word is used.
    """
    rows = np.zeros((len(vocabulary), dim), dtype=np.float32)
    exact: set[int] = set()
    folded: set[int] = set()
    forms: dict[str, list[int]] = {}
    for number, word in enumerate(vocabulary.words[len(SPECIALS) :], start=len(SPECIALS)):
        forms.setdefault(word.lower(), []).append(number)
    for number, line in enumerate(lines(Path(path)), start=1):
        if number == 1 and len(numbers := line.split()[1:]) != dim:
            if len(numbers) == 1:
                continue  # word2vec's header: words, dimensions
            if not re.fullmatch(r"[-+.\deE]+", (line.split() or [""])[-1]):
                raise DataError(f"expected word vectors, a word and its numbers a line; got {line[:60]!r}", path, 1)
            raise DataError(f"expected {dim} numbers after each word; got {len(numbers)}: set `dim`", path, 1)
        word, *values = line.rstrip().rsplit(" ", dim)  # a word may hold blanks
        if word in vocabulary:
            exact.add(vocabulary[word])
        targets = {vocabulary[word]} & exact | {other for other in forms.get(word, []) if other not in exact}
        if targets:
            rows[list(targets)] = vector_of(values, dim, path, number)
            folded |= targets
    return rows, exact | folded


def vector_of(values: list[str], dim: int, path: str | Path, line: int) -> np.ndarray:
    """The numbers after a word in a line of a file of vectors."""
    if len(values) != dim:
        raise DataError(f"expected a word and {dim} numbers; found a different count (set `dim` to it)", path, line)
    try:
        return np.array(values, dtype=np.float32)
    except ValueError as error:
        raise DataError(f"expected {dim} numbers after the word; got: {error}", path, line) from None


def check_fits_task(kind: str, *, tagging: bool) -> None:
    """Refuse a kind of model that cannot do what the texts ask for."""
    if tagging and kind == "convolution":
        raise SettingError("kind", "a convolution gives labels to whole texts, but these have tags: leave `kind` out")
    if not tagging and kind == "spelling":
        raise SettingError("kind", "spelling is for words with tags, but these texts have labels: leave `kind` out")


def network(config: TrainConfig, words: Vocabulary, classes: int, *, tagging: bool) -> Model:
    """A new model of the configured kind and sizes, its weights drawn at random."""
    check_fits_task(config.model.kind, tagging=tagging)
    if tagging:
        beside = Spelling(words, classes) if config.model.kind == "spelling" else None
        return Tagger(len(words), classes, config.model, beside)
    kind = Convolution if config.model.kind == "convolution" else Classifier
    return kind(len(words), classes, config.model)


def build(
    config: TrainConfig, vocabulary: Vocabulary, classes: int, *, tagging: bool, quiet: bool = True
) -> tuple[Model, Tensor | None]:
    """A model for training, initialised as configured: at random, from a language model, from word vectors.

    With it, the ids that have got a vector; None where none were to be had.
    """
    known = None
    model = network(config, vocabulary, classes, tagging=tagging)
    if config.pretrained:
        theirs = run_folder.load_config(config.pretrained, PretrainConfig)
        make = partial(LanguageModel, len(vocabulary), theirs.model)
        checkpoint.check_fits(Path(config.pretrained) / run_folder.WEIGHTS, make)
        language_model = make()
        checkpoint.load_weights(config.pretrained, language_model, vocabulary)
        assert not isinstance(model, Convolution)
        from_language_model(model, language_model, vocabulary.counts)
    if config.vectors:
        known = from_vectors(model.words.table, file_at_hand(config.vectors), vocabulary, config.model.dim)
        found = np.count_nonzero(vocabulary.counts[known.numpy()])
        words = np.count_nonzero(vocabulary.counts[len(SPECIALS) : vocabulary.plain])
        say(f"{config.vectors} has vectors for {found:,} of the {words:,} words of the texts", quiet=quiet)
    return model, known
