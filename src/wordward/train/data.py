"""From a config to the texts a run learns from, and the settings that fit them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from wordward.config.settings import PretrainConfig, TrainConfig, filled
from wordward.datasets import DataError, Example
from wordward.datasets.streams import called
from wordward.perturbation.objective import Average
from wordward.runs import run_folder
from wordward.runs.entities import mark_entities
from wordward.support.console import waiting
from wordward.support.errors import SettingError
from wordward.text.corpora import open_corpus
from wordward.text.corpus import Corpus, encode, share_unknown
from wordward.text.loading import InMemory, labelled_examples, split_examples, unlabelled_examples, unlabelled_texts
from wordward.text.on_disk import Texts, store
from wordward.text.scripts import fitting
from wordward.text.vocabulary import UNK, Vocabulary
from wordward.train.evaluation_texts import check_test_texts
from wordward.train.known_words import read_vocabulary, vocabulary_for
from wordward.train.label_warnings import warn_of_labels
from wordward.train.word_contexts import capitals

NAMED = 5  # labels that are named
RARE = 3  # texts of a label, below which it is probably a mistake, or cannot be learnt


@dataclass(frozen=True)
class Data:
    """What a run learns from."""

    vocabulary: Vocabulary
    classes: tuple[str, ...]
    train: Corpus
    dev: Corpus
    unlabelled: Corpus | None
    tagging: bool
    positive: int | None = None  # the class whose F0.5 counts
    examples: Sequence[Example] = ()  # the training texts as they were, for one that attacks them
    others: int = 0  # the last ids: words known by their vectors alone, or forms, which no text to learn from has
    longest: str = ""  # where the longest text stands, if that is known
    capitals: Tensor | None = None  # the share of each word that is written with a capital, where that is not kept

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hex digits that differ where the texts that are learnt or chosen by, or their labels, do."""
        digest = hashlib.sha256()
        for corpus in self.corpora.values():
            for rows in (corpus.rows, corpus.labels if corpus.labels is not None else ()):
                for row in rows:
                    values = np.asarray(row, dtype=np.int64)
                    digest.update(values.size.to_bytes(8))
                    digest.update(values.tobytes())
        return digest.hexdigest()[:16]

    @property
    def corpora(self) -> dict[str, Corpus]:
        """The texts by what they are for."""
        corpora = {"train": self.train, "dev": self.dev, "unlabelled": self.unlabelled}
        return {name: corpus for name, corpus in corpora.items() if corpus is not None}

    def describe(self) -> str:
        """How many texts there are to learn from and to choose by, and which labels, for the terminal."""
        kind = "sentences" if self.tagging else "texts"
        extra = f", {len(self.unlabelled.rows):,} without labels" if self.unlabelled else ""
        learnt, held = (
            np.array([hash(row.tobytes()) for row in corpus.rows if UNK not in row], dtype=np.int64)
            for corpus in (self.train, self.dev)  # other texts may be read alike where words are unknown
        )
        seen = np.isin(held, learnt).sum()
        also = f" ({seen:,} of them also among the training texts)" if seen else ""
        return (
            f"{len(self.train.rows):,} {kind} to learn from{extra}, {len(self.dev.rows):,} dev{also}, "
            f"{len(self.classes)} labels{self._named()}"
        )

    def _named(self) -> str:
        """A few labels by name, so that a stray one is noticed, and those that hardly occur with their counts."""
        assert self.train.labels is not None
        labels = np.concatenate([np.atleast_1d(label) for label in self.train.labels])
        counts = np.bincount(labels, minlength=len(self.classes))
        rare = [at for at in np.argsort(counts, kind="stable") if counts[at] < RARE]
        every = ", ".join(name[:20] for name in self.classes) if len(self.classes) <= NAMED else ""
        if not rare:
            return f" ({every})" if every else ""
        shown = ", ".join(f"{self.classes[at][:20]} {counts[at]}" for at in rare[:NAMED])
        more = f" and {len(rare) - NAMED:,} more" if len(rare) > NAMED else ""
        kind = "tokens" if self.tagging else "texts"
        return f" ({every}{'; ' if every else ''}with fewer than {RARE} {kind}: {shown}{more})"

    @property
    def majority_error(self) -> float:
        """The dev error of always predicting the most frequent dev label."""
        assert self.dev.labels is not None
        counts = np.bincount(np.concatenate([np.atleast_1d(label) for label in self.dev.labels]))
        return float(1 - counts.max() / counts.sum())

    def chance_loss(self, average: Average) -> float:
        """The label loss of always giving each label's frequency in the training texts; per sentence for tags."""
        assert self.train.labels is not None
        labels = np.concatenate([np.atleast_1d(label) for label in self.train.labels])
        shares = np.bincount(labels) / len(labels)
        entropy = float(-(shares * np.log(np.maximum(shares, 1e-12))).sum())
        return entropy * (len(labels) / len(self.train.rows) if average == "sentences" else 1.0)

    @property
    def met(self) -> int:
        """How many ids texts to learn from may have."""
        return len(self.vocabulary) - self.others

    @property
    def learnt(self) -> Vocabulary:
        """The vocabulary with counts from the training texts: only words that occur there may be pointed at."""
        return Vocabulary(self.vocabulary.words, self.train.word_counts(len(self.vocabulary)))


def prepare(
    config: TrainConfig, in_memory: InMemory | None = None, *, quiet: bool = False
) -> tuple[TrainConfig, Data]:
    """Read and encode all texts, or those `in_memory`; the config is returned with all open settings filled in."""
    if config.data.corpus:
        data = _from_corpus(config, quiet=quiet)
    else:
        config, data = _own_texts(config, in_memory, quiet=quiet)
    if share_unknown(data.train) == 1.0:
        raise DataError("expected texts with known words; no text has any", config.data.train)
    check_test_texts(config, data.classes, tagging=data.tagging, quiet=quiet)
    return settle(config, data)


def settle(config: TrainConfig, data: Data) -> tuple[TrainConfig, Data]:
    """Fill in the numbers, the task and the criterion for the best epoch if the config leaves them open."""
    if (config.task == "tag") != data.tagging and config.task != "auto":
        raise DataError(
            f"expected texts to {config.task}; got {'tags' if data.tagging else 'labels'}", config.data.train
        )
    data = replace(data, positive=_positive(config, data) if data.tagging else None)
    criterion = config.training.criterion
    if criterion == "f0.5" and data.positive is None:
        raise DataError(
            "F0.5 counts one tag of a tagger: give tagged sentences, and `positive` for more than two tags"
        )
    if config.training.positive is not None and not data.tagging:
        raise SettingError(
            "positive", "positive names a tag of a tagger, but here each text has one label: leave it out"
        )
    if config.training.augment is not None and data.tagging:
        raise SettingError("augment", "`augment` is for texts with one label each, but these have tags: leave it out")
    if config.training.self_training and data.tagging and config.transformer is None:
        raise SettingError(
            "self_training",
            "of taggers only a Hugging Face model learns by `self_training`: leave it out, or give a `transformer`",
        )
    entities = data.tagging and mark_entities(data.classes)
    if criterion == "entity_f1" and not entities:
        raise DataError(
            f"expected tags of entities (B-PER, I-PER, O and the like) for entity_f1; got {', '.join(data.classes)}"
        )
    if criterion == "auto":
        chosen = config.training.positive is not None  # by hand, not as the rarer of two
        tags = "entity_f1" if entities and not chosen else "f0.5" if data.positive is not None else "macro_f1"
        criterion = tags if data.tagging else "error"
    positive = None if data.positive is None else data.classes[data.positive]
    training = replace(filled(config.training), criterion=criterion, positive=positive)
    return replace(config, task="tag" if data.tagging else "classify", training=training), data


def _own_texts(config: TrainConfig, in_memory: InMemory | None, *, quiet: bool) -> tuple[TrainConfig, Data]:
    """The user's own texts, part of them held out if there are none for dev; the config with a tokenizer for them."""
    data = config.data
    with waiting(f"reading {Path(called(data.train)).name}", quiet=quiet):
        labelled, held_out, classes = labelled_examples(config, in_memory, quiet=quiet)
        tagging = labelled[0].tags is not None
        warn_of_labels(labelled if data.dev else [*labelled, *held_out], quiet=quiet)
        if not tagging:
            text = fitting(config.text, (example.text for example in labelled), quiet=quiet)
            config = replace(config, text=text)
        extra = unlabelled_examples(data, in_memory, quiet=quiet)
        vocabulary, own = vocabulary_for(config, chain(labelled, extra))

    def encoded(examples: list[Example], labels: tuple[str, ...] | None, source: str | None) -> Corpus:
        return encode(examples, vocabulary, config.text, labels, tagging=tagging, source=source or data.train)

    with waiting("encoding the texts", quiet=quiet):
        train, dev = encoded(labelled, classes, data.train), encoded(held_out, classes, data.dev)
    if isinstance(extra, Texts):
        stored = store(extra, vocabulary, config.text, tagging=tagging, quiet=quiet)
        unlabelled = Corpus(stored).sample(data.limit)
    else:
        unlabelled = encoded(extra, None, data.unlabelled) if extra else None
    kept = labelled if config.training.augment else ()
    read: list[tuple[Sequence[Example], Corpus, str | None]]
    read = [(labelled, train, data.train), (held_out, dev, data.dev or data.train)]
    if unlabelled and not isinstance(extra, Texts):
        read.append((extra, unlabelled, data.unlabelled))
    more: Any = {"examples": kept, "others": len(vocabulary) - own, "longest": _place_of_longest(read)}
    if config.text.lowercase and not tagging:
        more["capitals"] = capitals(labelled, vocabulary, config.text)
    return config, Data(vocabulary, classes, train, dev, unlabelled, tagging, **more)


def _place_of_longest(read: Sequence[tuple[Sequence[Example], Corpus, str | None]]) -> str:
    """The line and file of the longest text, as a message has them after it; empty where there is no line."""
    examples, corpus, source = max(read, key=lambda each: each[1].lengths.max())
    line = examples[int(corpus.lengths.argmax())].line
    return f" (line {line} of {Path(called(str(source))).name})" if line else ""


def _from_corpus(config: TrainConfig, *, quiet: bool) -> Data:
    """A known corpus in its own splits; its unlabelled texts, and the user's own, serve the KL methods."""
    data, vocabulary = config.data, None
    if config.pretrained and run_folder.load_config(config.pretrained, PretrainConfig).corpus == data.corpus:
        vocabulary = read_vocabulary(config)
    texts = unlabelled_texts(data) if data.unlabelled else None
    encoded = open_corpus(
        str(data.corpus), config.text, limit=data.limit, vocabulary=vocabulary, texts=texts, quiet=quiet
    )
    if config.pretrained:
        theirs = run_folder.load_vocabulary(config.pretrained).fingerprint
        if theirs != encoded.vocabulary.fingerprint:
            raise run_folder.RunError(
                f"{config.pretrained} has a different vocabulary from {config.data.corpus}: pre-train it with the "
                "same `corpus` and text settings"
            )
    splits = encoded.splits
    unlabelled = splits["unlabelled"] if len(splits["unlabelled"].rows) else None
    kept = split_examples(data, "train") if config.training.augment else ()
    parts = splits["train"], splits["dev"], unlabelled
    return Data(encoded.vocabulary, encoded.classes, *parts, encoded.tagging, examples=kept)


def _positive(config: TrainConfig, data: Data) -> int | None:
    """The tag whose F0.5 counts: the one given, or the rarer of two."""
    wanted = config.training.positive
    if wanted is not None:
        if wanted not in data.classes:
            raise DataError(f"expected one of the tags {', '.join(data.classes)} for `positive`; got {wanted!r}")
        return data.classes.index(wanted)
    if len(data.classes) != 2:
        return None
    counts = np.bincount(np.concatenate([np.asarray(tags) for tags in data.train.labels or ()]), minlength=2)
    return int(counts.argmin())
