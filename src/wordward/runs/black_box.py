"""A function from texts to probabilities as a run: what it is made of is not known, so it has no gradients."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np
import torch
from torch import Tensor

from wordward.config.settings import TrainConfig, TrainingSettings
from wordward.config.texts import TextSettings
from wordward.datasets import Example, joined
from wordward.perturbation.adversary import Adversary
from wordward.perturbation.recipes import Method
from wordward.runs.external_words import ExternalSource
from wordward.runs.inputs import check_pairs
from wordward.runs.multi_label import SeveralLabels
from wordward.runs.reading import Reading, Row, Words
from wordward.runs.run import Run
from wordward.runs.scoring import Evaluation
from wordward.runs.text_function import Probabilities, Strings, TextFunction, ask
from wordward.support.errors import RunError, SettingError
from wordward.text.corpus import Batch, Corpus
from wordward.text.labels import label_numbers
from wordward.text.tokenizers import tokenize
from wordward.text.vocabulary import Vocabulary

TRIED = "the film was good"  # what a function is tried with when it is opened


def open_function(
    function: Any, *, name: str, labels: Sequence[str] = (), source: str | None = None, paired: bool = False
) -> "BlackBox":
    """A function, or an object with `predict_proba`, as a run.

    `labels`: their names in the order of the probabilities; by default the function's own `labels` or `classes_`,
    those of the dicts that it gives, or else "0", "1", ... One whose attribute `several_labels` is true (or
    scikit-learn's `multilabel_`) gives each label a probability of its own. `paired`: its texts are two,
    `first ||| second`.
    """
    found = labels or getattr(function, "labels", None)
    if found is None:
        found = getattr(function, "classes_", ())
    names = tuple(str(label) for label in found)
    called: Probabilities = getattr(function, "predict_proba", function)
    last = function.steps[-1][1] if hasattr(function, "steps") else function  # of scikit-learn's Pipeline
    several = bool(getattr(function, "several_labels", getattr(last, "multilabel_", False)))
    (tried,) = ask(called, [joined(TRIED, TRIED) if paired else TRIED], names, name, several=several)
    if not names:
        names = tuple(tried) if isinstance(tried, dict) else tuple(str(at) for at in range(len(tried)))
    if len(set(names)) < len(names):
        raise SettingError("labels", f"expected a name of its own for each label; got {', '.join(names)}")
    vocabulary = Strings()
    model = TextFunction(called, names, vocabulary, name, several=several)
    config = TrainConfig(task="classify", training=TrainingSettings(seed=0, criterion="error"))
    kind = SeveralOfFunction if several else BlackBox
    return kind(Path(name), config, vocabulary, names, model, torch.device("cpu"), source)


@dataclass(frozen=True)
class OfStrings:
    """The rule of `wordward.attack.sense`, asked about ids of `Strings`: each is judged as its word in lower case."""

    judge: Any
    strings: Strings
    learnt: Vocabulary

    def of(self, label: int, word: int, toward: int) -> Any:
        """What `judge` says of the swap of one word for another in a text of this label."""
        return self.judge.of(label, self._learnt(word), self._learnt(toward))

    def speaks(self, label: int, word: int, *, comes: bool) -> bool:
        """Whether a word that comes or goes likely changes the true label."""
        return self.judge.speaks(label, self._learnt(word), comes=comes)

    def _learnt(self, number: int) -> int:
        return self.learnt[self.strings.word(number).lower()]


@dataclass(frozen=True, repr=False)
class BlackBox(ExternalSource, Run):
    """A function as a run: it predicts, and is scored and attacked; what needs gradients is refused."""

    vocabulary: Strings
    model: TextFunction
    has_gradients: ClassVar[bool] = False

    @cached_property
    def text(self) -> TextSettings:  # type: ignore[override]
        return TextSettings(tokenizer="characters", lowercase=True)  # words put in are capitalised as the old were

    def encode(self, examples: Sequence[Example], *, labelled: bool, source: str = "", cut: bool = False) -> Corpus:
        examples = [self.example(example) for example in examples]
        if self.paired:
            check_pairs(examples, source)
        rows = [self.ids_of(example.text) for example in examples]
        if not labelled:
            return Corpus(rows)
        return Corpus(rows, label_numbers(examples, self.labels, self.text, tagging=False, source=source))

    def split(self, name: str, *, limit: int | None = None, cut: bool = False, quiet: bool = False) -> Corpus:
        raise RunError(f"{self.folder} is on no known corpus: give a file of texts")

    def corpus(self, rows: Sequence[np.ndarray], labels: Any = None) -> Corpus:
        return Corpus(rows, labels)

    def read(self, example: Example) -> Reading:
        text, ids, word, first, at = example.text, [], [], [], 0
        tokens = tokenize(text, self.text.tokenizer, lowercase=True)
        for number, token in enumerate(tokens):
            if token.start > at:
                ids.append(self.vocabulary[text[at : token.start]])
                word.append(-1)
            first.append(len(ids))
            ids.append(self.vocabulary[text[token.start : token.end]])
            word.append(number)
            at = token.end
        if at < len(text):
            ids.append(self.vocabulary[text[at:]])
            word.append(-1)
        row = Row(np.array(ids, np.int32), np.array(word), np.array(first, np.int64), np.array(ids, np.int64))
        spans = [(token.start, token.end) for token in tokens]
        words = Words(spans, [True] * len(spans), len(spans), 0, row)
        # The function reads symbols as well, of which none is a word here.
        return Reading(text, row.ids, lambda: words, lowercase=True, filled=bool(text.strip()), known=True)

    def rows_of(self, texts: Sequence[str], *, known: bool = False) -> list[np.ndarray | None]:
        readings = self.read_all([Example(text) for text in texts])
        return [reading.ids if self.problem(reading) is None else None for reading in readings]

    def forget(self) -> None:
        self.model.forget()
        self.vocabulary.forget()

    def evaluate_corpus(self, corpus: Corpus, source: str = "", *, quiet: bool = True) -> Evaluation:
        self.model.forget()  # but not the strings of the corpus
        return super().evaluate_corpus(corpus, source, quiet=quiet)

    def ids_of(self, text: str) -> np.ndarray:
        return self.read(Example(text)).row.ids

    def swapped(self, row: Row, position: int, word: int, text: str) -> Row | None:
        """The row of the new text, in which a word is written as the one before was; None if it is not one word."""
        new = self.read(Example(text)).row
        same = len(new.ids) == len(row.ids) and np.array_equal(new.word, row.word)
        return new if same and self.vocabulary.word(int(new.ids[row.first[position]])).strip() else None

    def judged(self, judge: Any) -> Any:
        """The rule for the ids of strings, each judged as the word that it is in lower case."""
        return OfStrings(judge, self.vocabulary, self.learnt)

    def perturbed(self, batch: Batch) -> Tensor:
        return self._refuse()

    def table(self) -> Tensor:
        return self._refuse()

    def starting_table(self) -> tuple[Tensor | None, str]:
        return None, "A function has no word vectors."

    def vector(self, word: str) -> Tensor:
        return self._refuse()

    def ordinary(self) -> Tensor:
        return self._refuse()

    def writable(self) -> np.ndarray:
        return np.ones(len(self.vocabulary), dtype=bool)

    def _adversary(self, method: Method) -> Adversary:
        return self._refuse()

    def _refuse(self) -> NoReturn:
        raise SettingError(
            "run",
            f"{self.folder} is a function from texts to probabilities, which has no word vectors and no gradients to "
            "find pulls by: give the model itself with its tokenizer; predict, evaluate, attack, augment, "
            "check and report take the function",
        )


@dataclass(frozen=True, repr=False)
class SeveralOfFunction(SeveralLabels, BlackBox):
    """A function that gives a text several labels at once."""

    def _yes_or_no(self, which: int) -> tuple[type[BlackBox], TextFunction]:
        asked = self.model
        model = TextFunction(asked.function, self.labels, self.vocabulary, asked.name, several=True, which=which)
        return BlackBox, model
