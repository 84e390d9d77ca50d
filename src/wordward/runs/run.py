"""A trained model at work: one interface, whatever the model reads."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from wordward.datasets import DataError, Example
from wordward.datasets.example import check_characters
from wordward.datasets.pairs import no_pair, parted
from wordward.perturbation.adversary import Adversary
from wordward.perturbation.modes import evaluating
from wordward.perturbation.recipes import RECIPES, Method, at_text, parse_methods
from wordward.runs.inputs import Text, as_example, check_no_labels, listed
from wordward.runs.label_cells import check_counted, with_names
from wordward.runs.prediction import Prediction, TokenPrediction, named
from wordward.runs.reading import Reading, no_words
from wordward.runs.scoring import Evaluation, evaluation, logits_of, probabilities
from wordward.runs.trained_model import TrainedModel
from wordward.runs.unknown_tags import encoded
from wordward.support.errors import SettingError
from wordward.text.batches import chunks
from wordward.text.corpus import Corpus

NAMED = 5  # labels that a line names
AT_ONCE = 1024  # texts that are read at a time: what is read of each is large


@dataclass(frozen=True, repr=False)
class Run(TrainedModel):
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

    # `wordward.explain.explain` and `wordward.attack.attack_texts`: entered by those rooms, which stand above this.
    explain: ClassVar[Callable[..., Any]]
    attack: ClassVar[Callable[..., Any]]

    def __repr__(self) -> str:
        """What it is, in a line: its network and settings are long."""
        kind = "tagger" if self.tagging else "classifier"
        named = ", ".join(self.labels[:NAMED]) + (", ..." if len(self.labels) > NAMED else "")
        return f"<{kind} {self.folder} on {self.device}: {len(self.labels)} labels ({named})>"

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
        return [found for part in self.readings(examples) for found in self.predict_readings(part)]

    def readings(self, examples: Sequence[Example]) -> Iterator[Sequence[Reading]]:
        """What is read of texts, some of them at a time."""
        return map(self.read_all, chunks(examples, AT_ONCE))

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
        check_counted(self.labels, examples)
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

    def evaluate(self, texts: Sequence[Example], source: str = "", *, quiet: bool = True) -> Evaluation:
        """How well the run does on labelled texts.

        Args:
            texts: Pairs (text, label) or `Example`s with labels, for a tagger with tokens and tags; or a table of
                pandas or datasets.
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
        check_no_labels("source", source, str)
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
