"""From a perturbation to words: which word is pulled toward which word, how strongly."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from wordward.datasets import Example
from wordward.example_labels import Labels, check_focuses, encode_given, given_labels
from wordward.explanation import Explanation, Place, pulls_of
from wordward.method import Adversary, Outcome
from wordward.predict import Run
from wordward.reading import Reading, apply
from wordward.recipes import RECIPES, Method, at_text, parse_methods
from wordward.tap import evaluating
from wordward.text import EOS, Vocabulary, small_batches
from wordward.word_pulls import Pointing, adversary_for, point

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
    found = []
    for at in words:
        strength, pulled = float(strengths[at]), bool(strengths[at] > 0)
        toward = _name(vocabulary, int(outcome.candidates[row, at, best[at]])) if pulled else None
        relative = strength / largest if pulled else 0.0
        found.append(Swap(at, _name(vocabulary, int(outcome.ids[row, at])), toward, strength, relative))
    return found


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


Pointed = tuple[int, np.ndarray, Any, Any, Any]  # number of a text, chances, pulls of its words (words, top)


class Explainer:
    """A method on a run; nearest words found for one text are reused for the next."""

    def __init__(self, run: Run, method: str = "iadvt", *, top: int = 3) -> None:
        self.run, self.method, self.top = run, one_method(run, method), top
        if top < 1:
            raise ValueError(f"top must be 1 or more, but is {top}")
        self._pointers: dict[int | None, Callable[..., Iterator[Pointed]]] = {}

    def __call__(self, examples: Sequence[Example], *, focus: int | None = None) -> list[Explanation]:
        """As `explain`."""
        run = self.run
        texts = [run.read(example) for example in examples]
        check_focuses(run, texts, focus)
        given: list[Labels] = [None] * len(texts)
        if self.method.recipe.objective == "label_loss":
            given = [given_labels(run, *each, focus) for each in zip(examples, texts, strict=True)]
        found = [_unexplained(run, self.method, *each, focus) for each in zip(texts, given, strict=True)]
        filled = [at for at, text in enumerate(texts) if text.words]
        asked = [(texts[at], given[at]) for at in filled]
        for at, *row in self._pointings(focus)(*zip(*asked, strict=True), focus=focus) if asked else ():
            number = filled[at]
            found[number] = _said(run, found[number], texts[number], *row)
        return found

    def _pointings(self, focus: int | None) -> Callable[..., Iterator[Pointed]]:
        """The cached function that finds pulls; for a KL method there is one per focus."""
        kept = focus if self.method.recipe.objective == "kl" else None
        if kept not in self._pointers:
            if self.run.of_pieces:
                from wordward.huggingface.piece_pulls import pointings_of

                self._pointers[kept] = pointings_of(self.run, self.method, top=self.top)
            else:
                adversary = adversary_for(self.run, self.method, focus=kept)
                self._pointers[kept] = partial(_pointings, self.run, adversary, top=self.top)
        return self._pointers[kept]


def _pointings(
    run: Run,
    adversary: Adversary,
    texts: Sequence[Reading],
    given: Sequence[Labels],
    *,
    top: int,
    focus: int | None,
) -> Iterator[Pointed]:
    """What the model says of each text, and the ids, strengths and cosines that pull its words."""
    corpus = encode_given(run, texts, given)
    with evaluating(run.model):
        for index in small_batches(corpus.lengths, TEXTS, TOKENS):
            batch = corpus.batch(index, run.device)
            forward = partial(run.model, batch.ids, batch.mask)
            pointing = point(adversary, forward, batch, top=top, focus=focus, seed=run.config.training.seed)
            yield from zip(index.tolist(), *_on_cpu(pointing), strict=True)


def one_method(run: Run, name: str) -> Method:
    """The method of that name, with the settings that the run was trained with."""
    methods = parse_methods(name, run.config.perturbation)
    if len(methods) != 1:
        raise ValueError(f"expected one method ({', '.join(RECIPES)}); got {name!r}")
    return at_text(methods[0])


def _unexplained(run: Run, method: Method, text: Reading, given: Labels, focus: int | None) -> Explanation:
    """What is known about a text before the model has read it."""
    label = None
    if given is not None and (focus is not None or not run.tagging):
        label = given[focus or 0]  # a classifier's one label, or the tag of the word in focus
    return Explanation(
        text=text.text,
        task="tag" if run.tagging else "classify",
        method=method.name,
        label=label,
        given=given is not None,
        predicted=None,
        probabilities={},
        places=(),
        focus=focus,
        unread=text.unread,
        model=run.folder.name,
    )


def _on_cpu(pointing: Pointing) -> tuple[list[Any], ...]:
    """What each row's probabilities, words, strengths and cosines are."""
    logits, *pulls = pointing
    return (list(logits.float().softmax(-1).cpu().numpy()), *(each.tolist() for each in pulls))


def _said(
    run: Run, known: Explanation, text: Reading, chances: np.ndarray, words: Any, strengths: Any, cosines: Any
) -> Explanation:
    """The explanation with what the model says of one row of a batch: pulls are (time, top) each."""
    largest = max((pull[0] for pull, _ in zip(strengths, text.tokens, strict=False)), default=0.0)
    places = []
    for at, token in enumerate(text.tokens):
        names = map(run.vocabulary.word, words[at])
        found = zip(names, strengths[at], cosines[at], strict=True)
        pulls = pulls_of(found, word=token.text, largest=largest)
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
