"""What a trained model is: its parts, and what each kind of it answers in its own way."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from wordward.config.settings import TrainConfig
from wordward.config.texts import TextSettings
from wordward.datasets import Example
from wordward.perturbation.adversary import Adversary
from wordward.perturbation.recipes import Method
from wordward.runs.checkpoint import load_class_counts
from wordward.runs.entities import mark_entities
from wordward.runs.external_words import CountedWords
from wordward.runs.fingerprint import Kept
from wordward.runs.reader import Reader
from wordward.runs.run_folder import TRANSFORMER
from wordward.runs.scoring import TOKENS
from wordward.text.corpus import Batch, Corpus
from wordward.text.vocabulary import Vocabulary


@dataclass(frozen=True, repr=False)
class TrainedModel(Reader):
    """A model with its settings, vocabulary and labels, as `Run` names them."""

    folder: Path
    config: TrainConfig
    vocabulary: Any  # of the ids: a Vocabulary of words, or a PieceVocabulary
    labels: tuple[str, ...]
    model: Any  # a module that is called with ids and mask, (batch, time) each, for logits
    device: torch.device
    source: str | None = None
    counted: CountedWords | None = None
    among: tuple[str, ...] = ()

    # Whether `wordward train` made it, so that its folder tells how; not so a model that was only opened.
    trained_here: ClassVar[bool] = True
    # Whether what moves a prediction can be computed; not so for a function from texts to probabilities.
    has_gradients: ClassVar[bool] = True
    # Whether a text may get several labels at once, each by a yes or no of its own.
    several_labels: ClassVar[bool] = False
    # Tokens whose gradients are computed at once, at most: an LSTM, which reads word by word, takes many.
    tokens_at_once: ClassVar[int] = 1 << 16

    @property
    def name(self) -> str:
        """The name of its folder, which tables and figures show; of a run's model, that of the run."""
        of_run = self.folder.name == TRANSFORMER and self.folder.parent.name
        return of_run or self.folder.name

    @property
    def place(self) -> Path:
        """The folder of the model itself."""
        return self.folder / TRANSFORMER if self.config.transformer else self.folder

    @property
    def is_on_cpu(self) -> bool:
        """Whether it computes on the cores of this machine; what a function computes on is not known."""
        return self.has_gradients and self.device.type == "cpu"

    @property
    def tokens_read(self) -> int:
        """Tokens of texts that the model predicts at once, at most, where there are many."""
        return TOKENS

    @property
    def positive(self) -> int | None:
        """The number of the class whose precision, recall and F0.5 are measured; None if there is none."""
        name = self.config.training.positive
        return self.labels.index(name) if name in self.labels else None

    @property
    def tagging(self) -> bool:
        """Whether the model gives each token a tag (a tagger) rather than each text a label (a classifier)."""
        return self.config.task == "tag"

    @property
    def paired(self) -> bool:
        """Whether a text is two that are judged together, `first ||| second`."""
        return self.config.data.pair_column is not None

    @property
    def marks_entities(self) -> bool:
        """Whether its tags mark entities (B-PER, I-PER, O and the like), which are scored by exact spans."""
        return self.tagging and mark_entities(self.labels)

    @property
    def named_tag(self) -> str | None:
        """The positive tag of a tagger, which messages name; None of a classifier, or without such a tag."""
        return self.labels[self.positive] if self.tagging and self.positive is not None else None

    @property
    @abstractmethod
    def text(self) -> TextSettings:
        """How texts are tokenised; a tagger's are cut in training only, since every token must get a tag."""

    @property
    @abstractmethod
    def learnt(self) -> Vocabulary:
        """The vocabulary of the training texts, in which the words of each class were counted."""

    def class_counts(self) -> Tensor | None:
        """How many training texts of each class hold each word of `learnt`, (words, classes); None if not known."""
        return load_class_counts(self.folder, self.learnt)

    @property
    def evidence_alone(self) -> Any:
        """What words speak for (`Evidence`) read alone, for a model whose training texts are not known; else None."""
        return None

    @cached_property
    def kept(self) -> Kept:
        """What rooms above have made of its weights, which they need again for other texts."""
        return Kept(self.model)

    @property
    @abstractmethod
    def weights(self) -> list[Path]:
        """The files of the model's weights."""

    @abstractmethod
    def encode(self, examples: Sequence[Example], *, labelled: bool, source: str = "", cut: bool = False) -> Corpus:
        """Encode examples, with labels if `labelled`; `cut` shortens a tagger's sentences to `max_length`, too."""

    @abstractmethod
    def split(self, name: str, *, limit: int | None = None, cut: bool = False, quiet: bool = False) -> Corpus:
        """Encode a split (train, dev, test) of the published corpus that the run is on; `cut` as in `encode`."""

    @abstractmethod
    def corpus(self, rows: Sequence[np.ndarray], labels: Any = None) -> Corpus:
        """A corpus of rows of ids, from which batches for the model can be taken."""

    @abstractmethod
    def perturbed(self, batch: Batch) -> Tensor:
        """Mask of the ids that may be perturbed, (batch, time)."""

    @abstractmethod
    def table(self) -> Tensor:
        """The embedding table: the vector of each id, (ids, dim)."""

    @abstractmethod
    def starting_table(self) -> tuple[Tensor | None, str]:
        """The embedding table before training and ""; or None and the reason why it is not known."""

    @abstractmethod
    def vector(self, word: str) -> Tensor:
        """The vector of a word, spelt as in a text; the mean of its pieces if there are several."""

    @abstractmethod
    def ordinary(self) -> Tensor:
        """Ids that are words by themselves: no special tokens and no parts of words."""

    @abstractmethod
    def writable(self) -> np.ndarray:
        """Whether the text of each id is tokenised into that id again, so that it can be written, (ids,) bool."""

    @abstractmethod
    def judged(self, judge: Any) -> Any:
        """The rule of `wordward.attack.sense`, given for the words of `learnt`, for the ids of this run."""

    @abstractmethod
    def _adversary(self, method: Method) -> Adversary:
        """A method applied to the model, with this run's candidates."""
