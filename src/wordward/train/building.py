"""The model and the methods that a run starts with."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from wordward.config.settings import TrainConfig
from wordward.models import Convolution, Model
from wordward.perturbation.adversary import Adversary
from wordward.perturbation.recipes import parse_methods
from wordward.perturbation.settings import MethodSettings
from wordward.runs import initialization
from wordward.runs.word_run import adversary_of
from wordward.support.console import say, waiting
from wordward.text.vocabulary import UNK
from wordward.train.data import Data
from wordward.train.linear_part import fit_spoken
from wordward.train.word_vectors import text_vectors

ENOUGH = 1_000  # texts to learn from, from which on phrases learn something from those alone


def build(config: TrainConfig, data: Data, *, quiet: bool = True) -> Model:
    """The model, initialised as configured; a convolution also by what the training texts tell of their words."""
    classes = len(data.classes)
    model, known = initialization.build(config, data.vocabulary, classes, tagging=data.tagging, quiet=quiet)
    if isinstance(model, Convolution):
        with waiting("counting words and their neighbours", quiet=quiet):
            _count_words(model, config, data, known)
    return _in_training(model, data)


def network_of(config: TrainConfig, data: Data) -> Model:
    """A model of the same sizes, at random."""
    return _in_training(
        initialization.network(config, data.vocabulary, len(data.classes), tagging=data.tagging), data
    )


def _in_training(model: Model, data: Data) -> Model:
    """The model, without the vectors of words and forms that no text to learn from has."""
    if data.others:
        model.words.keep_apart(data.met)
    return model


def _count_words(model: Convolution, config: TrainConfig, data: Data, known: Tensor | None) -> None:
    """Give a convolution the linear model's evidence, and vectors from the texts where it has no others.

    `known`: the ids that have others.
    """
    words, counts, table = data.vocabulary.words, data.learnt.counts, model.words.table
    few = len(data.train.rows) < ENOUGH  # of more, phrases learn what vectors speak for, better than words do
    vectors = _only(known, table.weight.detach()[:, : config.model.dim]) if few and known is not None else None
    pairs = model.pairs is not None
    spoken = fit_spoken(data.train, words, len(data.classes), letters=known is None, pairs=pairs, vectors=vectors)
    # Phrases of vectors that few texts have taught, and no others, know less than the evidence does.
    model.hiding = known is not None or data.unlabelled is not None or not few
    if not model.hiding:
        model.quieten_phrases()
    if known is None:
        unlabelled = [data.unlabelled] if data.unlabelled else []
        vectors = text_vectors([data.train, *unlabelled], data.met, config.model.dim)
        initialization.set_vectors(table, *_with_forms(vectors, np.maximum(counts[: data.met], 1), data.others))
    linear = spoken.words
    model.set_evidence(*(torch.tensor(values) for values in (linear.evidence, linear.idf, linear.bias, counts)))
    if model.pairs is not None:
        model.pairs.set_evidence(*(torch.tensor(values) for values in (spoken.pairs, spoken.evidence, spoken.idf)))


def _with_forms(vectors: Tensor, counts: np.ndarray, forms: int) -> tuple[Tensor, np.ndarray]:
    """The vectors of words and their counts, and after them those of forms: of unknown words."""
    return torch.cat([vectors, vectors[UNK].expand(forms, -1)]), np.pad(counts, (0, forms))


def _only(known: Tensor, table: Tensor) -> Tensor:
    """The vectors of these ids, and zeros for all others."""
    return torch.zeros_like(table).index_copy(0, known, table[known])


def with_fitting_k(config: TrainConfig, data: Data, *, quiet: bool = True) -> TrainConfig:
    """The config with a smaller k where the default is more than the words that may be pointed to; says so."""
    methods = parse_methods(config.method, config.perturbation)
    words = len(data.learnt.candidates(config.training.min_candidate_count))
    k = config.perturbation.k
    toward_words = any(method.recipe.space == "words" for method in methods)
    if not toward_words or k != MethodSettings().k or k is None or not 0 < words <= k:
        return config
    fitting = words - 1 or None
    say(
        f"perturbations may point at {words} {'words' if words > 1 else 'word'}, those of the training texts, too "
        f"few for `k={k}`: `k={fitting}` is taken",
        quiet=quiet,
    )
    return replace(config, perturbation=replace(config.perturbation, k=fitting))


def adversaries(config: TrainConfig, data: Data, model: Model) -> list[Adversary]:
    """The config's methods on the model."""
    methods = parse_methods(config.method, config.perturbation)
    return [adversary_of(method, model, data.learnt, config.training.min_candidate_count) for method in methods]
