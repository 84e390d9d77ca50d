"""A trained model at work: one interface, whatever the model reads."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from wordward.config.settings import TrainConfig
from wordward.config.texts import TextSettings
from wordward.datasets import DataError, Example
from wordward.datasets.example import check_characters
from wordward.datasets.pairs import no_pair, parted
from wordward.perturbation.adversary import Adversary
from wordward.perturbation.recipes import RECIPES, Method, at_text, parse_methods
from wordward.perturbation.tap import evaluating
from wordward.runs.checkpoint import load_class_counts
from wordward.runs.counted import Counted
from wordward.runs.entities import mark_entities
from wordward.runs.fingerprint import Kept
from wordward.runs.given import Text, as_example, listed
from wordward.runs.label_cells import with_names
from wordward.runs.prediction import Prediction, TokenPrediction, named
from wordward.runs.reader import Reader
from wordward.runs.reading import Reading, no_words
from wordward.runs.run_folder import TRANSFORMER
from wordward.runs.scoring import TOKENS, Evaluation, evaluation, logits_of, probabilities
from wordward.runs.unknown_tags import encoded
from wordward.support.errors import SettingError
from wordward.text.corpus import Batch, Corpus
from wordward.text.vocabulary import Vocabulary

NAMED = 5  # labels that a line names
AT_ONCE = 1024  # texts that are read before the model predicts them: what is read of each is large


@dataclass(frozen=True, repr=False)
class Run(Reader):
    """A trained model with everything needed to read a text: `wordward.load_run` opens one.

    `run.predict`, `run.evaluate`, `run.explain` and `run.attack` take lists of strings or of `Example`s.

    Args:
        folder: Where training wrote it.
        config: The settings that it was trained with.
        vocabulary: What each id is: words, or a Hugging Face tokenizer's pieces.
        labels: What it can predict, in the order of the model's logits.
        model: The network, which is called with ids and mask for logits.
        device: Where it computes.
        source: Of a model that wordward did not train: what to open it by again; None where it is in memory only.
        counted: Of such a model: the words, by label, of texts like those it was trained on.
        among: Of such a model: the labels of which it is the no and yes of one; none where it gives a text one label.

    Examples:
        >>> run.labels
        ('bad', 'good')
        >>> run.predict(["the film was dull"])[0].label
        'bad'
    """

    folder: Path
    config: TrainConfig
    vocabulary: Any  # of the ids: a Vocabulary of words, or a PieceVocabulary
    labels: tuple[str, ...]
    model: Any  # a module that is called with ids and mask, (batch, time) each, for logits
    device: torch.device
    source: str | None = None
    counted: Counted | None = None
    among: tuple[str, ...] = ()

    # Whether `wordward train` made it, so that its folder tells how; not so a model that was only opened.
    trained_here: ClassVar[bool] = True
    # Whether what moves a prediction can be computed; not so for a function from texts to probabilities.
    has_gradients: ClassVar[bool] = True
    # Whether a text may get several labels at once, each by a yes or no of its own.
    several_labels: ClassVar[bool] = False
    # Tokens whose gradients are computed at once, at most: an LSTM, which reads word by word, takes many.
    tokens_at_once: ClassVar[int] = 1 << 16
    # `wordward.explain.explain` and `wordward.attack.attack_texts`: entered by those rooms, which stand above this.
    explain: ClassVar[Callable[..., Any]]
    attack: ClassVar[Callable[..., Any]]

    def __repr__(self) -> str:
        """What it is, in a line: its network and settings are long."""
        kind = "tagger" if self.tagging else "classifier"
        named = ", ".join(self.labels[:NAMED]) + (", ..." if len(self.labels) > NAMED else "")
        return f"<{kind} {self.folder} on {self.device}: {len(self.labels)} labels ({named})>"

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
        """The positive tag where messages name it; None where it is an error that is flagged, one of two tags."""
        several = len(self.labels) > 2 or self.marks_entities
        return self.labels[self.positive] if self.tagging and self.positive is not None and several else None

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

    def adversary(self, method: str | Method) -> Adversary:
        """A method applied to the trained model, with the settings of its training unless `method` has its own.

        Args:
            method: A method's name, such as "iadvt", or a `Method` with settings of its own.

        Returns:
            An `Adversary` whose candidates are the words that this run knows.

        Examples:
            >>> run.adversary("advt").method.name
            'advt'
        """
        method = self.method(method) if isinstance(method, str) else method
        # The table does not change, so nearest words need no second search; a GPU searches those of a batch quickly,
        # but would search those of all words at once if they were to be kept.
        refresh = "batch" if self.device.type == "cuda" else "epoch"
        return self._adversary(replace(method, settings=replace(method.settings, refresh=refresh)))

    def method(self, name: str) -> Method:
        """The method of that name, with the settings that the run was trained with."""
        methods = parse_methods(name, self.config.perturbation)
        if len(methods) != 1:
            raise SettingError("method", f"expected one method ({', '.join(RECIPES)}); got {name!r}")
        return at_text(methods[0])

    def example(self, text: Text) -> Example:
        """A text as an `Example`, whose label is written as this run's are."""
        return as_example(text)

    def predict(self, texts: Sequence[Text]) -> list[Prediction]:
        """The label of each text; for a tagger, of each of its tokens.

        Args:
            texts: Strings or `Example`s; a tagger's strings are split at blanks.

        Returns:
            A `Prediction` for each text, in the same order; one that could not be read has a `problem`.

        Examples:
            >>> run.predict(["the film was warm and funny"])[0].label
            'good'
        """
        self.forget()
        examples = self.examples(texts)
        parts = (examples[start : start + AT_ONCE] for start in range(0, len(examples), AT_ONCE))
        return [found for part in parts for found in self.predict_readings(self.read_all(part))]

    def forget(self) -> None:
        """Ask a function anew, whose answers are remembered within an attack: it may have learnt since."""

    def examples(self, texts: Any) -> list[Example]:
        """Texts as Examples with the model's labels: strings, Examples, pairs (text, label), or a table.

        A table of pandas or datasets has the run's columns. Labels of a model that had them before wordward read its
        texts may be given as numbers, or in another case.
        """
        examples = [self.example(text) for text in listed(texts, self.config.data)]
        for number, each in enumerate(examples, start=1):
            check_characters(
                "".join([each.text, *(each.tokens or ())]), None if each.line else "texts", each.line or number
            )
        if self.trained_here and self.config.transformer is None:
            return examples
        return with_names(self.labels, examples)

    def predict_readings(self, readings: Sequence[Reading]) -> list[Prediction]:
        """Like `predict`, for texts that are tokenised already."""
        problems = [self.problem(reading) for reading in readings]
        filled = [at for at, problem in enumerate(problems) if problem is None]
        corpus = self.corpus([readings[at].ids for at in filled])
        predictions = [Prediction(reading.text, problem=why) for reading, why in zip(readings, problems, strict=True)]
        for at, found in zip(filled, self.probabilities(corpus), strict=True):
            predictions[at] = self._prediction(readings[at], found)
        return predictions

    def problem(self, reading: Reading) -> str | None:
        """Why there is no prediction for a text; None if there is one."""
        if self.paired and not parted(reading.text).whole:
            return no_pair(reading.text)
        return None if reading.filled else no_words(reading.text)

    def _prediction(self, reading: Reading, found: np.ndarray) -> Prediction:
        warning = None if reading.any_known else "no word of this text is in the vocabulary"
        if not self.tagging:
            return Prediction(reading.text, *named(self.labels, found), warning=warning)
        tokens = tuple(
            TokenPrediction(reading.written(at), *named(self.labels, each))
            for at, each in enumerate(found[reading.row.first])
        )
        return Prediction(reading.text, tokens=tokens, warning=warning)

    def evaluate(self, texts: Sequence[Example], *, source: str = "", quiet: bool = True) -> Evaluation:
        """How well the run does on labelled texts.

        Args:
            texts: `Example`s with labels, or for a tagger with tokens and tags; or a table of pandas or datasets.
            source: Where they are from, for messages.
            quiet: Show no progress.

        Returns:
            Scores with 95 % intervals by name (`error`, `macro_f1`; with a positive tag `precision`, `recall`,
            `f0.5`; of exact entities where tags are B-PER, I-PER, O and the like `entity_precision`, `entity_recall`,
            `entity_f1`), the confusion matrix, which texts or tokens are wrong, and scores by type of entity.

        Examples:
            >>> texts = [wordward.Example("the film was dull", "bad")]
            >>> run.evaluate(texts).scores["error"].value
            0.0
        """
        self.forget()
        examples = self.examples(texts)
        if not examples:
            raise DataError("expected texts with labels to score the model on; there are none", source or None)
        corpus = self.encode_to_score(examples, source=source, quiet=quiet)
        return self.evaluate_corpus(corpus, source, quiet=quiet)

    def encode_to_score(self, examples: Sequence[Example], *, source: str = "", quiet: bool = True) -> Corpus:
        """Labelled examples as ids, for `evaluate_corpus`: tags that a tagger does not know will count as wrong.

        Unless `quiet`, says which tags these are.
        """
        return encoded(partial(self.encode, labelled=True, source=source), examples, self.labels, quiet=quiet)

    def evaluate_corpus(self, corpus: Corpus, source: str = "", *, quiet: bool = True) -> Evaluation:
        """Like `evaluate`, for texts that are encoded already."""
        found = self.probabilities(corpus, quiet=quiet)
        return evaluation(corpus, found, self.labels, positive=self.positive, source=source)

    def logits(self, rows: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The model's logits of each row of ids in its own order, (classes,) or (time, classes)."""
        with evaluating(self.model):
            return logits_of(self.model, self.corpus(rows), self.device, self.tokens_read)

    def probabilities(self, corpus: Corpus, *, quiet: bool = True) -> list[np.ndarray]:
        """What the model gives each text: (classes,), or (time, classes) for a tagger."""
        return probabilities(self.model, corpus, self.device, several=self.several_labels, quiet=quiet)
