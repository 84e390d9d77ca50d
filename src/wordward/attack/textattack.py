"""A trained run as a model that TextAttack's attacks can be run on."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from torch import nn

from wordward.attack.stopwords import STOP_WORDS
from wordward.datasets import DataError, Example
from wordward.runs.run import Run
from wordward.support.errors import MissingExtraError, RunError
from wordward.support.files import write
from wordward.text.labels import label_numbers

INSTALL = "pip install 'wordward[textattack]'"


def offline(folder: str | Path) -> None:
    """Let TextAttack be imported without its downloads, our stop words in the place of NLTK's; `folder` holds them.

    To be called before TextAttack is imported. It also moves the caches that TextAttack moves with its own
    (HF_HOME, XDG_CACHE_HOME) to `folder`, for this process.
    """
    try:
        import nltk  # type: ignore[import-not-found]
    except ModuleNotFoundError as missing:
        raise MissingExtraError(f"TextAttack needs {missing.name}, which is not installed: {INSTALL}") from None
    folder = Path(folder).resolve()
    words = folder / "corpora" / "stopwords" / "english"
    write(words, "".join(f"{word}\n" for word in sorted(STOP_WORDS)))
    (folder / "post_install_check_3").touch()  # TextAttack's mark that its downloads are done
    os.environ["TA_CACHE_DIR"] = str(folder)
    if str(folder) not in nltk.data.path:
        nltk.data.path.append(str(folder))  # last: NLTK's own words come first where they are there


def _textattack() -> ModuleType:
    """The package, or what to do to get it."""
    try:
        import textattack  # type: ignore[import-not-found]
    except ModuleNotFoundError as missing:
        raise MissingExtraError(f"TextAttack needs {missing.name}, which is not installed: {INSTALL}") from None
    except LookupError:  # it reads NLTK's stop words when it is imported
        raise MissingExtraError(
            "TextAttack found no NLTK stop words and could not download them: "
            "start again, with wordward.attack.textattack.offline(FOLDER) before it is imported"
        ) from None
    return textattack


def probabilities(run: Run, texts: Sequence[str]) -> np.ndarray:
    """p(label | text), (texts, classes) in the order of `run.labels`; even where a text has no words to read.

    In float64, and summing to one in it: a sum off by 1e-6 makes TextAttack take a softmax of probabilities.
    """
    run.forget()
    read = run.rows_of(texts)
    readable = [at for at, ids in enumerate(read) if ids is not None]
    rows = np.full((len(texts), len(run.labels)), 1 / len(run.labels))
    if readable:
        rows[readable] = run.probabilities(run.corpus([ids for ids in read if ids is not None]))
    return rows / rows.sum(1, keepdims=True)


@dataclass(frozen=True, eq=False)
class Wrapped:
    """A run that labels texts, as TextAttack's ModelWrapper."""

    run: Run

    def __post_init__(self) -> None:
        """Be a ModelWrapper to isinstance; a base class would need TextAttack to import this module."""
        _check(self.run)
        _textattack().models.wrappers.ModelWrapper.register(Wrapped)

    @property
    def model(self) -> nn.Module:
        """The network, whose class TextAttack looks at; no attribute, or TextAttack moves it to another device."""
        return self.run.model

    def __call__(self, texts: Sequence[str], **_: Any) -> np.ndarray:
        """Probabilities of the labels, many texts at a time."""
        return probabilities(self.run, texts)


def dataset(run: Run, examples: Sequence[Example]) -> Any:
    """Examples as a textattack.datasets.Dataset; labels are numbers in the order of `run.labels`."""
    _check(run)
    numbers = label_numbers(examples, run.labels, run.text, tagging=False, source="")
    for example, ids in zip(examples, run.rows_of([example.text for example in examples]), strict=True):
        if ids is None:
            why = run.problem(run.read(Example(example.text))) or "it has none"
            raise DataError(f"expected a text with words to attack; {why}: leave it out", None, example.line)
    pairs = [(example.text, number) for example, number in zip(examples, numbers, strict=True)]
    return _textattack().datasets.Dataset(pairs, label_names=list(run.labels))


def deep_word_bug(wrapped: Wrapped) -> Any:
    """DeepWordBug (Gao et al., 2018) as TextAttack composes it, with our stop words: nothing is downloaded."""
    package = _textattack()
    swaps, before = package.transformations, package.constraints.pre_transformation
    transformation = swaps.CompositeTransformation(
        [
            swaps.WordSwapNeighboringCharacterSwap(),
            swaps.WordSwapRandomCharacterSubstitution(),
            swaps.WordSwapRandomCharacterDeletion(),
            swaps.WordSwapRandomCharacterInsertion(),
        ]
    )
    # TextAttack compares words as they are written
    kept = {form for word in STOP_WORDS for form in (word, word.capitalize(), word.upper())}
    constraints = [
        before.RepeatModification(),
        before.StopwordModification(stopwords=kept),
        package.constraints.overlap.LevenshteinEditDistance(30),
    ]
    goal = package.goal_functions.UntargetedClassification(wrapped)
    search = package.search_methods.GreedyWordSwapWIR(wir_method="unk")
    return package.Attack(goal, constraints, transformation, search)


def _check(run: Run) -> None:
    if run.tagging:
        raise RunError(
            "expected a run that labels texts; got a tagger, which no goal of TextAttack fits: use `wordward attack`"
        )
    if run.several_labels:
        raise RunError(
            "expected a run that gives a text one label; got one that gives several at once: open it with `positive`"
        )
