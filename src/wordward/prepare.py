"""From a config to what a run starts with: texts, vocabulary, model and methods."""

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from wordward import checkpoint
from wordward.config import DataSettings, PretrainConfig, TrainConfig
from wordward.corpus import Corpus, encode, share_unknown
from wordward.datasets import DataError, Example, check_labels, read, split
from wordward.initial import from_language_model, from_vectors
from wordward.method import Adversary
from wordward.models import Classifier, LanguageModel, Tagger
from wordward.recipes import PAPER_EPSILON, Method, parse_methods
from wordward.text import Vocabulary
from wordward.tokens import words_of


@dataclass(frozen=True)
class Data:
    """What a run learns from."""

    vocabulary: Vocabulary
    classes: tuple[str, ...]
    train: Corpus
    dev: Corpus
    unlabelled: Corpus | None
    tagging: bool
    positive: int | None  # the class whose F0.5 counts

    @property
    def learnt(self) -> Vocabulary:
        """The vocabulary with the counts of the training texts, whose words alone may be pointed at."""
        return Vocabulary(self.vocabulary.words, self.train.word_counts(len(self.vocabulary)))


def prepare(config: TrainConfig) -> tuple[TrainConfig, Data]:
    """Read and encode all texts; the config comes back with what was left open settled."""
    data = config.data
    labelled = read_as(data, data.train)
    if data.dev:
        held_out = read_as(data, data.dev)
    else:
        labelled, held_out = split(labelled, data.dev_share, config.training.seed)
    tagging = labelled[0].tags is not None
    if (config.task == "tag") != tagging and config.task != "auto":
        raise DataError(f"expected texts to {config.task}; got {'tags' if tagging else 'labels'}", data.train)
    classes = check_labels(labelled)
    extra = read_as(data, data.unlabelled, labelled=False) if data.unlabelled else []
    vocabulary = _vocabulary(config, [*labelled, *extra])
    positive = _positive(config, labelled, classes) if tagging else None

    def encoded(examples: list[Example], labels: tuple[str, ...] | None, source: str | None) -> Corpus:
        return encode(examples, vocabulary, config.text, labels, tagging=tagging, source=source or data.train)

    train = encoded(labelled, classes, data.train)
    if share_unknown(train) == 1.0:
        raise DataError(
            "expected texts with known words; every text is unknown to the vocabulary", data.train
        )
    criterion = config.training.criterion
    if criterion == "auto":
        criterion = "error" if not tagging else "f0.5" if positive is not None else "macro_f1"
    training = replace(
        config.training, criterion=criterion, positive=None if positive is None else classes[positive]
    )
    settled = replace(config, task="tag" if tagging else "classify", training=training)
    dev = encoded(held_out, classes, data.dev)
    unlabelled = encoded(extra, None, data.unlabelled) if extra else None
    return settled, Data(vocabulary, classes, train, dev, unlabelled, tagging, positive)


def read_as(data: DataSettings, path: str, *, labelled: bool = True) -> list[Example]:
    """Read a file the way that a run's settings say."""
    kind = None if data.format == "auto" or Path(path).is_dir() else data.format
    return read(
        path,
        text_column=data.text_column,
        label_column=data.label_column,
        tag_column=data.tag_column,
        labelled=labelled,
        format=kind,
    )


def _vocabulary(config: TrainConfig, examples: list[Example]) -> Vocabulary:
    """The language model's vocabulary, else that of the training and unlabelled texts."""
    if config.pretrained:
        return checkpoint.load_vocabulary(config.pretrained)
    settings = config.text
    documents = (words_of(example, settings) for example in examples)
    return Vocabulary.build(documents, min_documents=settings.min_documents, max_size=settings.max_vocabulary)


def _positive(config: TrainConfig, labelled: list[Example], classes: tuple[str, ...]) -> int | None:
    """The tag whose F0.5 counts: as told, or the rarer of two."""
    wanted = config.training.positive
    if wanted is None:
        if len(classes) != 2:
            return None
        counts = Counter(tag for example in labelled for tag in example.tags or ())
        return classes.index(min(classes, key=counts.__getitem__))
    if wanted not in classes:
        raise DataError(
            f"expected a positive label among {', '.join(classes)}; got {wanted!r}", config.data.train
        )
    return classes.index(wanted)


def build(config: TrainConfig, data: Data) -> Classifier | Tagger:
    """The model, started as the config says."""
    kind = Tagger if data.tagging else Classifier
    model = kind(len(data.vocabulary), len(data.classes), config.model)
    if config.pretrained:
        theirs = checkpoint.load_config(config.pretrained, PretrainConfig)
        language_model = LanguageModel(len(data.vocabulary), theirs.model)
        checkpoint.load_weights(config.pretrained, language_model, data.vocabulary)
        from_language_model(model, language_model, data.vocabulary.counts)
    if config.vectors:
        from_vectors(model.words.table, config.vectors, data.vocabulary)
    return model


def adversaries(config: TrainConfig, data: Data, model: Classifier | Tagger) -> list[Adversary]:
    """The config's methods on the model."""
    methods = parse_methods(config.method, config.perturbation)
    return [
        adversary_of(method, model, data.learnt, config.training.min_candidate_count) for method in methods
    ]


def adversary_of(
    method: Method, model: Classifier | Tagger, learnt: Vocabulary, min_candidate_count: int
) -> Adversary:
    """A method on a model of ours: its table starts at unit scale, so epsilon is the paper's as it stands."""
    epsilon = method.settings.epsilon or PAPER_EPSILON[method.recipe.space]
    method = replace(method, settings=replace(method.settings, epsilon=epsilon))
    candidates = torch.from_numpy(learnt.candidates(min_candidate_count))
    return Adversary(model, method, site=model.words.dropout, candidates=candidates)
