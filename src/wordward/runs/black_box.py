"""A function from texts to probabilities as a run: what it is made of is not known, so it has no gradients."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor, nn

from wordward.config.settings import TrainConfig, TrainingSettings
from wordward.config.texts import TextSettings
from wordward.datasets import Example, joined
from wordward.perturbation.adversary import Adversary
from wordward.perturbation.recipes import Method
from wordward.runs.counted import Counted, FromElsewhere
from wordward.runs.reading import Reading, Row, no_words
from wordward.runs.run import Run
from wordward.support.errors import RunError, SettingError
from wordward.text.corpus import Batch, Corpus, label_numbers
from wordward.text.vocabulary import SPECIALS, Vocabulary, tokenize

Probabilities = Callable[[list[str]], Any]  # an array (texts, classes), or for each text a dict from label to number
TRIED = "the film was good"  # what a function is tried with when it is opened
REMEMBERED = 1 << 17  # texts whose probabilities are kept
SUM = 0.01  # how far probabilities may be from adding up to 1


def open_function(
    function: Any, *, name: str, labels: Sequence[str] = (), source: str | None = None, paired: bool = False
) -> "BlackBox":
    """A function, or an object with `predict_proba`, as a run.

    `labels`: their names in the order of the probabilities; by default the function's own `labels` or `classes_`,
    those of the dicts that it gives, or else "0", "1", ... `paired`: its texts are two, `first ||| second`.
    """
    found = labels or getattr(function, "labels", None)
    if found is None:
        found = getattr(function, "classes_", ())
    names = tuple(str(label) for label in found)
    called: Probabilities = getattr(function, "predict_proba", function)
    (tried,) = ask(called, [joined(TRIED, TRIED) if paired else TRIED], names, name)
    if not names:
        names = tuple(tried) if isinstance(tried, dict) else tuple(str(at) for at in range(len(tried)))
    vocabulary = Strings()
    model = TextFunction(called, names, vocabulary, name)
    config = TrainConfig(task="classify", training=TrainingSettings(seed=0, criterion="error"))
    return BlackBox(Path(name), config, vocabulary, names, model, torch.device("cpu"), source)


class Strings:
    """Words, and what stands between them, as ids, which strings get when they are first seen: no text is unknown."""

    def __init__(self) -> None:
        self.words: list[str] = list(SPECIALS)
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return True

    def __getitem__(self, word: str) -> int:
        number = self._numbers.setdefault(word, len(self.words))
        if number == len(self.words):
            self.words.append(word)
        return number

    def candidates(self, min_count: int = 1) -> np.ndarray:
        """None: which of the strings are words that others may be replaced by is not known."""
        return np.zeros(0, dtype=np.int64)

    def word(self, number: int) -> str:
        """The string of an id."""
        return self.words[number]


class TextFunction(nn.Module):
    """The function with the call of a model: ids and mask in, the logarithms of the probabilities out."""

    def __init__(self, function: Probabilities, labels: tuple[str, ...], strings: Strings, name: str) -> None:
        super().__init__()
        self.function, self.labels, self.strings, self.name = function, labels, strings, name
        self._known: dict[str, np.ndarray] = {}  # a text is asked for once

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """(batch, classes)."""
        rows = zip(ids.tolist(), mask.sum(1).tolist(), strict=True)
        return torch.from_numpy(np.log(self.of(["".join(map(self.strings.word, row[:n])) for row, n in rows])))

    def of(self, texts: Sequence[str]) -> np.ndarray:
        """The probabilities of texts, (texts, classes), each above 0."""
        if len(self._known) > REMEMBERED:
            self._known.clear()
        if new := [text for text in dict.fromkeys(texts) if text not in self._known]:
            for text, found in zip(new, ask(self.function, new, self.labels, self.name), strict=True):
                row = [found[label] for label in self.labels] if isinstance(found, dict) else found
                self._known[text] = np.maximum(np.asarray(row, dtype=np.float32), np.finfo(np.float32).tiny)
        return np.stack([self._known[text] for text in texts])


def ask(function: Probabilities, texts: list[str], labels: Sequence[str], name: str) -> list[Any]:
    """What a function says of texts: for each a dict, or a row of numbers; anything but probabilities is refused."""
    try:
        answered = function(list(texts))
    except Exception as error:
        raise RunError(
            f"{name} failed on {len(texts)} texts, the first of which is {texts[0][:60]!r}: "
            f"{type(error).__name__}: {error}"
        ) from error
    answered = answered.detach().cpu().numpy() if isinstance(answered, Tensor) else answered
    answers = list(answered)
    if len(answers) != len(texts):
        raise RunError(f"{name} must give probabilities for each text, but gave {len(answers)} for {len(texts)}")
    return [_row(answer, labels, name) for answer in answers]


def _row(answer: Any, labels: Sequence[str], name: str) -> Any:
    """One text's probabilities: a dict by label where the function names labels, else numbers."""
    if isinstance(answer, Sequence) and answer and all(isinstance(each, Mapping) for each in answer):
        answer = {each.get("label"): each.get("score") for each in answer}  # as a pipeline of transformers gives them
    by_name = isinstance(answer, Mapping)
    try:
        row = np.asarray(list(answer.values()) if by_name else answer, dtype=float)
    except (TypeError, ValueError):
        row = np.zeros(0)
    row = np.array([1 - row, row]) if row.ndim == 0 else row  # the probability of the second of two labels
    wanted = f"the probabilities of {len(labels)} labels" if labels else "the probabilities of two labels or more"
    if row.ndim != 1 or len(row) < 2 or (labels and len(row) != len(labels)):
        raise RunError(f"{name} must give {wanted} for each text; it gave {_shown(answer)}")
    if not np.isfinite(row).all() or row.min() < 0 or abs(row.sum() - 1) > SUM:
        raise RunError(
            f"{name} must give probabilities, 0 or more and adding up to 1 for each text; it gave {_shown(answer)}: "
            "apply a softmax to logits; scores of several labels at once are not read"
        )
    if not by_name:
        return row
    named = {str(label): value for label, value in zip(answer, row, strict=True)}
    if labels and set(named) != set(labels):
        raise RunError(f"{name} must give each of the labels {', '.join(labels)}; it gave {', '.join(named)}")
    return named


def _shown(answer: Any) -> str:
    return repr(answer)[:80]


@dataclass(frozen=True)
class OfStrings:
    """The rule of sense for ids of `Strings`."""

    judge: Any
    strings: Strings
    learnt: Vocabulary

    def of(self, label: int, word: int, toward: int) -> Any:
        """What is judged of one swap."""
        return self.judge.of(label, self._learnt(word), self._learnt(toward))

    def speaks(self, label: int, word: int, *, comes: bool) -> bool:
        """Whether a word that comes or goes likely changes the true label."""
        return self.judge.speaks(label, self._learnt(word), comes=comes)

    def _learnt(self, number: int) -> int:
        return self.learnt[self.strings.word(number).lower()]


@dataclass(frozen=True)
class BlackBox(FromElsewhere, Run):
    """A function as a run: it predicts, and is scored and attacked; what needs gradients is refused."""

    vocabulary: Strings
    model: TextFunction
    source: str | None = None  # what to open it by again; None: it is in memory only
    counted: Counted | None = None  # words by label of texts like those it was trained on

    @property
    def has_gradients(self) -> bool:
        return False

    @cached_property
    def text(self) -> TextSettings:  # type: ignore[override]
        return TextSettings(tokenizer="characters", lowercase=True)  # words put in are capitalised as the old were

    @property
    def weights(self) -> list[Path]:
        return []

    def encode(self, examples: Sequence[Example], *, labelled: bool, source: str = "", cut: bool = False) -> Corpus:
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
        return Reading(text, tokens, [True] * len(tokens), len(tokens), 0, row)

    def problem(self, reading: Reading) -> str | None:
        return None if reading.text.strip() else no_words(reading.text)

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
            "find pulls by: give the model itself with its tokenizer; predict, evaluate, attack and check take the "
            "function",
        )
