"""Models that give a text several labels at once, each by a yes or no of its own."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, NoReturn

import numpy as np

from wordward.datasets import DataError, Example
from wordward.perturbation.recipes import Method
from wordward.runs.inputs import Text, as_example, check_no_labels
from wordward.runs.label_cells import BETWEEN, NONE, labels_in, meant
from wordward.runs.prediction import Prediction, named
from wordward.runs.reading import Reading
from wordward.runs.run import Run
from wordward.runs.scoring import Evaluation, several_evaluation
from wordward.support.errors import SettingError
from wordward.text.corpus import Corpus


class SeveralLabels(Run):
    """Predicts and is scored; what is explained and attacked is one label's yes or no, as `deciding` gives it."""

    several_labels: ClassVar[bool] = True

    @abstractmethod
    def _yes_or_no(self, which: int) -> tuple[type[Run], Any]:
        """The kind of run for one label's no and yes, and its model."""

    def deciding(self, label: str | None) -> Any:
        """The run of one label's no and yes."""
        name = self.one(label)
        kind, model = self._yes_or_no(self.labels.index(name))
        config = replace(self.config, training=replace(self.config.training, positive=name))
        new = {"config": config, "labels": (f"not {name}", name), "model": model, "among": self.labels}
        return kind(**{item.name: getattr(self, item.name) for item in fields(self)} | new)

    def one(self, label: str | None) -> str:
        """A label to decide on; raises an error for one that is not the model's, or none."""
        name = None if label is None else meant(label, self.labels)
        if name not in self.labels:
            self._ask_which("got none" if label is None else f"got {label!r}")
        return str(name)

    def example(self, text: Text) -> Example:
        """A text with its labels in the model's order and with | between."""
        example = as_example(text)
        if example.label is None:
            return example
        return replace(example, label=BETWEEN.join(labels_in(example, self.labels)))

    def method(self, name: str) -> Method:
        self._ask_which("got none")

    def encode(self, examples: Sequence[Example], *, labelled: bool, source: str = "", cut: bool = False) -> Corpus:
        if labelled:
            self._ask_which("got none")
        return super().encode(examples, labelled=False, source=source, cut=cut)  # type: ignore[safe-super]

    def _ask_which(self, got: str) -> NoReturn:
        raise SettingError(
            "positive",
            f"{self.folder} gives several labels at once, of which one is explained, attacked and checked: expected "
            f"`positive`, one of {', '.join(self.labels)}; {got}",
        )

    def _prediction(self, reading: Reading, found: np.ndarray) -> Prediction:
        likely = tuple(name for name, value in zip(self.labels, found, strict=True) if value >= 0.5)
        warning = None if reading.any_known else "no word of this text is in the vocabulary"
        _, by_name = named(self.labels, found)
        return Prediction(reading.text, BETWEEN.join(likely), by_name, warning=warning, several=likely)

    def evaluate(self, texts: Sequence[Example], source: str = "", *, quiet: bool = True) -> Evaluation:
        check_no_labels("source", source, str)
        texts = self.examples(texts)
        gold = np.array([_marked(example, self.labels, source) for example in texts], dtype=bool)
        self.forget()
        found = self.probabilities(self.encode(texts, labelled=False, source=source), quiet=quiet)
        return several_evaluation(gold, np.array(found) >= 0.5, self.labels, source=source)


def _marked(example: Example, labels: Sequence[str], source: str) -> list[bool]:
    """Which of the labels a text has."""
    if example.label is None:
        raise DataError(f"expected labels, or {NONE[1]} for none; there are none", source, example.line)
    names = labels_in(example, labels, source)
    return [label in names for label in labels]
