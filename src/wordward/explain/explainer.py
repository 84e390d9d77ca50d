"""From a perturbation to words: which word is pulled toward which word, how strongly."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from wordward.datasets import Example
from wordward.explain.explanation import Explanation, Place, pulls_of
from wordward.explain.labels import Labels, check_focuses, encode_labelled, labels_of
from wordward.explain.pulls import BatchPulls, PullFinder, TextPulls, adversary_for, find_pulls
from wordward.perturbation.adversary import Adversary, Outcome
from wordward.perturbation.recipes import RECIPES, Method, at_text, parse_methods
from wordward.perturbation.tap import evaluating
from wordward.runs.reading import Reading, apply
from wordward.runs.run import Run
from wordward.text.vocabulary import EOS, Vocabulary, small_batches

__all__ = ["Explainer", "Swap", "apply", "explain", "one_method", "swaps"]

WORD_METHODS = tuple(name for name, recipe in RECIPES.items() if recipe.space == "words")
TEXTS, TOKENS = 32, 1 << 16  # explained at a time, at most
Names = Vocabulary | Sequence[str] | Mapping[int, str] | Callable[[int], str]  # the word of each id


class Swap(NamedTuple):
    """One token and the word it is pulled toward most."""

    position: int
    word: str
    toward: str | None  # None where no candidate pulls: every strength is negative or zero
    strength: float  # alpha of that word
    relative: float  # strength over the sentence's largest, 0 to 1


def swaps(outcome: Outcome, vocabulary: Names, *, row: int = 0) -> list[Swap]:
    """For each word of a text, the word with the largest strength (argmax of alpha).

    `vocabulary`: ours (whose <eos> is not a word), or the words of your own ids: a list, a dict or a function.
    """
    if outcome.candidates is None:
        raise ValueError(f"this outcome does not point toward words: use one of {', '.join(WORD_METHODS)}")
    strengths, best = outcome.strengths[row].max(-1)  # (time,)
    real = outcome.mask[row]
    if isinstance(vocabulary, Vocabulary):
        real = real & (outcome.ids[row] != EOS)
    words = real.nonzero().flatten().tolist()
    largest = max((float(strengths[at]) for at in words), default=0.0)
    strongest = []
    for at in words:
        strength, pulled = float(strengths[at]), bool(strengths[at] > 0)
        toward = _name(vocabulary, int(outcome.candidates[row, at, best[at]])) if pulled else None
        relative = strength / largest if pulled else 0.0
        strongest.append(Swap(at, _name(vocabulary, int(outcome.ids[row, at])), toward, strength, relative))
    return strongest


def _name(vocabulary: Names, number: int) -> str:
    """The word of an id."""
    if isinstance(vocabulary, Vocabulary):
        return vocabulary.word(number)
    if callable(vocabulary):
        return vocabulary(number)
    try:
        return vocabulary[number]
    except LookupError:
        raise ValueError(
            f"expected a word for each id; there is none for id {number} among {len(vocabulary)} words: "
            "give a list, a dict from id to word, or a function of the id"
        ) from None


def explain(
    run: Run, examples: Sequence[Example], *, method: str = "iadvt", top: int = 3, focus: int | None = None
) -> list[Explanation]:
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
            raise ValueError(f"top must be 1 or more, but is {top}")
        self._finders: dict[int | None, PullFinder] = {}  # by the focus it is for

    def __call__(self, examples: Sequence[Example], *, focus: int | None = None) -> list[Explanation]:
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
        return explanations

    def _finder(self, focus: int | None) -> PullFinder:
        """The cached function that finds pulls; for a KL method there is one per focus."""
        key = focus if self.method.recipe.objective == "kl" else None
        if key not in self._finders:
            if self.run.of_pieces:
                from wordward.explain.piece_pulls import pull_finder

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
        raise ValueError(f"expected one method ({', '.join(RECIPES)}); got {name!r}")
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
