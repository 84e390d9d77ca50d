"""From a perturbation to words: which word is pulled toward which word, how strongly."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from wordward.datasets import Example
from wordward.explain.explanation import Explanation, Place, pulls_of
from wordward.explain.html import STYLE, html_fragment
from wordward.explain.labels import Labels, check_focuses, encode_labelled, labels_of
from wordward.explain.piece_pulls import pull_finder
from wordward.explain.pulls import TEXTS, TOKENS, BatchPulls, PullFinder, TextPulls, adversary_for, find_pulls
from wordward.perturbation.adversary import Adversary
from wordward.perturbation.recipes import RECIPES, Method, at_text, parse_methods
from wordward.perturbation.tap import evaluating
from wordward.runs.reading import Reading
from wordward.runs.run import Run
from wordward.support.errors import SettingError
from wordward.text.vocabulary import small_batches


class Explanations(list[Explanation]):
    """The explanations of some texts, which a notebook shows as they are."""

    def _repr_html_(self) -> str:
        texts = "\n".join(html_fragment([explanation]) for explanation in self)
        return f"<style>{STYLE}</style>\n{texts}"


def explain(
    run: Run, examples: Sequence[Example], *, method: str = "iadvt", top: int = 3, focus: int | None = None
) -> Explanations:
    """For each text the words that pull each of its words, where a label's loss rises most.

    The label is the example's where it has one, else what the model predicts. `focus`: the position of the one
    word whose tag counts, for a tagger; its true tag may then be the example's label.
    """
    return Explainer(run, method, top=top)(examples, focus=focus)


class Explainer:
    """A method on a run; nearest words found for one text are reused for the next."""

    def __init__(self, run: Run, method: str = "iadvt", *, top: int = 3) -> None:
        self.run, self.method, self.top = run, one_method(run, method), top
        if top < 1:
            raise SettingError("top", f"top must be 1 or more, but is {top}")
        self._finders: dict[int | None, PullFinder] = {}  # by the focus it is for

    def __call__(self, examples: Sequence[Example], *, focus: int | None = None) -> Explanations:
        """As `explain`."""
        run = self.run
        texts = [run.read(example) for example in examples]
        check_focuses(run, texts, focus)
        labels: list[Labels] = [None] * len(texts)
        if self.method.recipe.objective == "label_loss":
            labels = [
                labels_of(run, example, text, focus) for example, text in zip(examples, texts, strict=True)
            ]
        explanations = [
            _unexplained(run, self.method, text, names, focus)
            for text, names in zip(texts, labels, strict=True)
        ]
        filled = [at for at, text in enumerate(texts) if text.words]
        if filled:
            find = self._finder(focus)
            for pulls in find([texts[at] for at in filled], [labels[at] for at in filled], focus=focus):
                number = filled[pulls.number]
                explanations[number] = _explained(run, explanations[number], texts[number], pulls)
        return Explanations(explanations)

    def _finder(self, focus: int | None) -> PullFinder:
        """The cached function that finds pulls; for a KL method there is one per focus."""
        key = focus if self.method.recipe.objective == "kl" else None
        if key not in self._finders:
            if self.run.of_pieces:
                self._finders[key] = pull_finder(self.run, self.method, top=self.top)
            else:
                adversary = adversary_for(self.run, self.method, focus=key)
                self._finders[key] = partial(_text_pulls, self.run, adversary, top=self.top)
        return self._finders[key]


def _text_pulls(
    run: Run,
    adversary: Adversary,
    texts: Sequence[Reading],
    labels: Sequence[Labels],
    *,
    top: int,
    focus: int | None,
) -> Iterator[TextPulls]:
    """What the model says of each text, and the ids, strengths and cosines that pull its words."""
    corpus = encode_labelled(run, texts, labels)
    with evaluating(run.model):
        for index in small_batches(corpus.lengths, TEXTS, TOKENS):
            batch = corpus.batch(index, run.device)
            forward = partial(run.model, batch.ids, batch.mask)
            pulls = find_pulls(adversary, forward, batch, top=top, focus=focus, seed=run.config.training.seed)
            yield from map(TextPulls._make, zip(index.tolist(), *_on_cpu(pulls), strict=True))


def one_method(run: Run, name: str) -> Method:
    """The method of that name, with the settings that the run was trained with."""
    methods = parse_methods(name, run.config.perturbation)
    if len(methods) != 1:
        raise SettingError("method", f"expected one method ({', '.join(RECIPES)}); got {name!r}")
    return at_text(methods[0])


def _unexplained(run: Run, method: Method, text: Reading, labels: Labels, focus: int | None) -> Explanation:
    """What is known about a text before the model has read it."""
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
        model=run.folder.name,
    )


def _on_cpu(pulls: BatchPulls) -> tuple[list[Any], ...]:
    """What each row's probabilities, words, strengths and cosines are."""
    logits, *tensors = pulls
    return (list(logits.float().softmax(-1).cpu().numpy()), *(tensor.tolist() for tensor in tensors))


def _explained(run: Run, known: Explanation, text: Reading, found: TextPulls) -> Explanation:
    """The explanation with what the model says of the text, and what pulls its words."""
    chances = found.probabilities
    largest = max((pull[0] for pull, _ in zip(found.strengths, text.tokens, strict=False)), default=0.0)
    places = []
    for at, token in enumerate(text.tokens):
        names = map(run.vocabulary.word, found.words[at])
        toward = zip(names, found.strengths[at], found.cosines[at], strict=True)
        pulls = pulls_of(toward, word=token.text, largest=largest)
        written, is_known = text.text[token.start : token.end], token.text in run.vocabulary
        tag = _likeliest(run, chances[at]) if run.tagging else (None, None)
        places.append(Place(at, written, token.start, token.end, is_known, pulls, *tag))
    known = replace(known, places=tuple(places))
    counts = RECIPES[known.method].objective == "label_loss"
    if run.tagging:
        label = places[known.focus].label if counts and known.focus is not None else None
        return replace(known, label=known.label or label)
    named = {label: round(float(chance), 6) for label, chance in zip(run.labels, chances, strict=True)}
    predicted, _ = _likeliest(run, chances)
    label = known.label or (predicted if counts else None)
    return replace(known, label=label, predicted=predicted, probabilities=named)


def _likeliest(run: Run, chances: np.ndarray) -> tuple[str, float]:
    best = int(chances.argmax())
    return run.labels[best], round(float(chances[best]), 6)
