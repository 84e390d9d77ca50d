"""From a perturbation to words: which word is pulled toward which word, how strongly."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from torch import nn

from wordward.corpus import Corpus, encode_words
from wordward.datasets import DataError, Example
from wordward.explanation import Explanation, Place, Pull
from wordward.method import Outcome
from wordward.objective import IGNORE
from wordward.pointing import Pointing, adversary_for, point
from wordward.predict import Run
from wordward.reading import Reading, apply, read
from wordward.recipes import RECIPES, Method, at_text, parse_methods
from wordward.text import EOS, Vocabulary, length_batches

__all__ = ["Swap", "apply", "explain", "one_method", "swaps"]

WORD_METHODS = tuple(name for name, recipe in RECIPES.items() if recipe.space == "words")
TEXTS, TOKENS = 32, 1 << 16  # explained at a time, at most
Labels = list[str | None] | None
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

    `vocabulary`: ours (whose <eos> is no word), or the words of your own ids: a list, a dict or a function.
    """
    if outcome.candidates is None:
        raise ValueError(
            f"this outcome points anywhere, not toward words: explain with one of {', '.join(WORD_METHODS)}"
        )
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
    chosen = one_method(run, method)
    texts = [read(run, example) for example in examples]
    _check(run, texts, top=top, focus=focus)
    given: list[Labels] = [None] * len(texts)
    if chosen.recipe.objective == "label_loss":
        given = [_given(run, *each, focus) for each in zip(examples, texts, strict=True)]
    found = [_unexplained(run, chosen, *each, focus) for each in zip(texts, given, strict=True)]
    filled = [at for at, text in enumerate(texts) if text.words]
    asked = [(texts[at], given[at]) for at in filled]
    for at, *row in _pointings(run, chosen, *zip(*asked, strict=True), top=top, focus=focus) if asked else ():
        number = filled[at]
        found[number] = _said(run, found[number], texts[number], *row)
    return found


Pointed = tuple[int, np.ndarray, Any, Any, Any]  # number of a text, chances, pulls of its words (words, top)


def _pointings(
    run: Run,
    method: Method,
    texts: Sequence[Reading],
    given: Sequence[Labels],
    *,
    top: int,
    focus: int | None,
) -> Iterator[Pointed]:
    """What the model says of each text, and the ids, strengths and cosines that pull its words."""
    if run.of_pieces:
        from wordward.huggingface.explain import pointings

        yield from pointings(run, method, texts, given, top=top, focus=focus)
        return
    corpus, adversary = _encode(run, texts, given), adversary_for(run, method, focus=focus)
    with evaluating(run.model):
        for index in batches(corpus.lengths):
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


def _check(run: Run, texts: Sequence[Reading], *, top: int, focus: int | None) -> None:
    """Refuse what cannot be asked of these texts."""
    if top < 1:
        raise ValueError(f"top must be 1 or more, but is {top}")
    if focus is None:
        return
    if not run.tagging:
        raise ValueError("focus is for taggers: this run gives one label to the whole text, so leave it out")
    for number, text in enumerate(texts, start=1):
        words = len(text.tokens)
        if not 0 <= focus < words:
            there = f"it has positions 0 to {words - 1}" if words else "it has no words"
            raise ValueError(f"expected a focus that is a word of text {number}; got {focus}, but {there}")


def _given(run: Run, example: Example, text: Reading, focus: int | None) -> Labels:
    """The labels that came with an example: a classifier's one, a tagger's for each token, None where none came."""
    if not run.tagging:
        found: list[str | None] = [example.label]
    elif example.tags is not None:
        found = list(example.tags)
        if len(found) != len(text.tokens):
            raise DataError(
                f"expected a tag for each of {len(text.tokens)} tokens; got {len(found)}", line=example.line
            )
    else:
        found = [None] * len(text.tokens)
        if example.label is not None:
            if focus is None:
                raise DataError(
                    f"a tagger gives each word a label; got one, {example.label!r}: say with focus whose it is",
                    line=example.line,
                )
            found[focus] = example.label
    for name in found:
        if name is not None and name not in run.labels:
            known = ", ".join(run.labels)
            raise DataError(
                f"expected a label that the model knows ({known}); got {name!r}", line=example.line
            )
    return found if any(name is not None for name in found) else None


def _encode(run: Run, texts: Sequence[Reading], given: Sequence[Labels]) -> Corpus:
    """Ids of the texts, and their labels' numbers; IGNORE where none is given."""
    rows, labels = [], []
    for text, names in zip(texts, given, strict=True):
        words = [token.text for token in text.tokens]
        rows.append(encode_words(words, run.vocabulary, run.text, eos=not run.tagging))
        numbers = [
            IGNORE if name is None else run.labels.index(name) for name in names or [None] * len(words)
        ]
        labels.append(np.array(numbers, dtype=np.int64) if run.tagging else [*numbers, IGNORE][0])
    return Corpus(rows, labels)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Dropout off, and on again where it was."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def batches(lengths: np.ndarray) -> Iterator[np.ndarray]:
    """Texts of similar length, fewer at a time where they are long."""
    for index in length_batches(lengths, TEXTS, rng=None):
        some = max(1, TOKENS // int(lengths[index].max()))
        yield from (index[start : start + some] for start in range(0, len(index), some))


def _unexplained(run: Run, method: Method, text: Reading, given: Labels, focus: int | None) -> Explanation:
    """What is known of a text before the model has read it."""
    label = (
        None if given is None else given[focus] if focus is not None else None if run.tagging else given[0]
    )
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
        pulls = tuple(
            Pull(name, _short(strength), round(strength / largest, 6), round(cosine, 6))
            for word, strength, cosine in zip(words[at], strengths[at], cosines[at], strict=True)
            # else it points away from the word; a piece of a word may be pulled toward the word itself
            if strength > 0 and (name := run.vocabulary.word(word)) != token.text
        )
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


def _short(value: float) -> float:
    """Six digits, as many as single precision holds."""
    return float(f"{value:.6g}")
