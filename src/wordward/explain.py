"""From a perturbation to words: which word is pulled toward which word, how strongly."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from wordward.datasets import Example
from wordward.method import Outcome
from wordward.predict import Run
from wordward.prepare import adversary_of
from wordward.recipes import RECIPES, parse_methods
from wordward.text import EOS, Token, Vocabulary, replace, tokenize

WORD_METHODS = tuple(name for name, recipe in RECIPES.items() if recipe.space == "words")
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


def place(run: Run, text: str, swap: Swap) -> Token:
    """Where the word of a swap stands in the text that was explained."""
    settings = run.text
    tokens = tokenize(text, "whitespace" if run.tagging else settings.tokenizer, settings.lowercase)
    if not run.tagging and settings.unknown == "drop":  # words left out do not count as places
        tokens = [token for token in tokens if token.text in run.vocabulary]
    tokens = tokens[: settings.max_length]
    found = tokens[swap.position] if 0 <= swap.position < len(tokens) else None
    if found is None or run.vocabulary.word(run.vocabulary[found.text]) != swap.word:
        there = "the text ends before" if found is None else f"there stands {found.text!r}"
        raise ValueError(
            f"expected {swap.word!r} at word {swap.position + 1} of the text; {there}: "
            "give the text and the run that the swap was found on"
        )
    return found


def apply(run: Run, text: str, swap: Swap) -> str:
    """The text that was explained with the swap put in, all else as it was."""
    if swap.toward is None:
        raise ValueError(
            f"expected a swap toward a word; no word pulls {swap.word!r}: leave out swaps whose toward is None"
        )
    return replace(text, place(run, text, swap), swap.toward)


def explain(run: Run, examples: Sequence[Example], *, method: str = "iadvt") -> list[list[Swap]]:
    """The swaps that would raise the loss of each example most, found on a trained run; none without words."""
    methods = parse_methods(method, run.config.perturbation)
    if len(methods) != 1 or methods[0].recipe.space != "words":
        raise ValueError(
            f"expected one method that points toward words ({', '.join(WORD_METHODS)}); got {method!r}"
        )
    chosen = methods[0]
    adversary = adversary_of(chosen, run.model, run.vocabulary, run.config.training.min_candidate_count)
    filled = [at for at, example in enumerate(examples) if run.words(example)]
    corpus = run.encode([examples[at] for at in filled], labelled=chosen.recipe.objective == "label_loss")
    found: list[list[Swap]] = [[] for _ in examples]
    for index, batch in corpus.in_order(32, run.device):
        outcome = adversary(partial(run.model, batch.ids, batch.mask), batch.labels, mask=batch.mask)
        for row, at in enumerate(index):
            found[filled[at]] = swaps(outcome, run.vocabulary, row=row)
    return found
