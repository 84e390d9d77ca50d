"""From a perturbation to words: which word is pulled toward which word, how strongly."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from wordward.config import TextSettings
from wordward.datasets import Example
from wordward.method import Outcome
from wordward.predict import Run
from wordward.prepare import adversary_of
from wordward.recipes import parse_methods
from wordward.text import EOS, Vocabulary, replace, tokenize


class Swap(NamedTuple):
    """One token and the word it is pulled toward most."""

    position: int
    word: str
    toward: str | None  # None where no candidate pulls: every strength is negative or zero
    strength: float  # alpha of that word
    relative: float  # strength over the sentence's largest, 0 to 1


def swaps(outcome: Outcome, vocabulary: Vocabulary, *, row: int = 0) -> list[Swap]:
    """For each word of a text, the word with the largest strength (argmax of alpha); <eos> is no word."""
    if outcome.candidates is None:
        raise ValueError(
            "this outcome points anywhere, not toward words: explain with iadvt or ivat (or their variants)"
        )
    strengths, best = outcome.strengths[row].max(-1)  # (time,)
    words = (outcome.mask[row] & (outcome.ids[row] != EOS)).nonzero().flatten().tolist()
    largest = max((float(strengths[at]) for at in words), default=0.0)
    found = []
    for at in words:
        strength, pulled = float(strengths[at]), bool(strengths[at] > 0)
        toward = vocabulary.word(int(outcome.candidates[row, at, best[at]])) if pulled else None
        relative = strength / largest if pulled else 0.0
        found.append(Swap(at, vocabulary.word(int(outcome.ids[row, at])), toward, strength, relative))
    return found


def apply(text: str, swap: Swap, settings: TextSettings) -> str:
    """The text with the swap put in, all else as it was (words that were left out do not count as places)."""
    assert swap.toward is not None, "no word pulls here"
    return replace(text, tokenize(text, settings.tokenizer, settings.lowercase)[swap.position], swap.toward)


def explain(run: Run, examples: Sequence[Example], *, method: str = "iadvt") -> list[list[Swap]]:
    """The swaps that would raise the loss of each labelled example most, found on a trained run."""
    (chosen,) = parse_methods(method, run.config.perturbation)
    adversary = adversary_of(chosen, run.model, run.vocabulary, run.config.training.min_candidate_count)
    corpus = run.encode(examples, labelled=chosen.recipe.objective == "label_loss")
    found: list[list[Swap]] = [[] for _ in examples]
    for index, batch in corpus.in_order(32, run.device):
        outcome = adversary(partial(run.model, batch.ids, batch.mask), batch.labels, mask=batch.mask)
        for row, at in enumerate(index):
            found[at] = swaps(outcome, run.vocabulary, row=row)
    return found
