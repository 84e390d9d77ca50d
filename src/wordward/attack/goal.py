"""What an attack is to change: the label of a text, or the tags that flag errors in a sentence."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from heapq import nlargest
from typing import Protocol

import numpy as np

from wordward.attack.attacked import Attacked, Outcome, Sense
from wordward.attack.cases import Case, Replacement, Target
from wordward.attack.sense import Judge
from wordward.datasets import DataError, Example
from wordward.datasets.m2 import Corrections, corrections_at, right_words
from wordward.perturbation.objective import IGNORE
from wordward.runs.prediction import Prediction
from wordward.runs.run import Run
from wordward.text.labels import label_numbers

CLOSE = 0.02  # probabilities so near that a device's coarser products may order them otherwise


class Goal(Protocol):
    """What an attack on a classifier or on a tagger tries to change, and when it has succeeded."""

    @property
    def judge(self) -> Judge | None:
        """The rule that tells which swaps keep the true label, where there is one."""
        ...

    def plain(self, example: Example) -> Example:
        """The example with a text that is all the model reads; labels that do not fit are refused."""
        ...

    def target(self, example: Example, predicted: Prediction) -> Target | None:
        """The prediction to change; None if there is nothing to attack."""
        ...

    def close(self, predicted: Prediction) -> bool:
        """Whether a slightly different prediction may have another verdict."""
        ...

    def verdict(self, example: Example, before: Prediction, after: Prediction) -> Attacked:
        """The outcome of an attack, from the predictions before and after it."""
        ...

    def sense(self, case: Case, swap: Replacement) -> tuple[Sense, str | None]:
        """Whether a swap keeps the true label, and the correction at that word if one is known."""
        ...


def _close(probabilities: Mapping[str, float]) -> bool:
    """Whether the two largest are about equal."""
    first, second = nlargest(2, (*probabilities.values(), 0.0))
    return first - second < CLOSE


def _unreadable(example: Example, errors: int | None = None) -> Attacked:
    """A text that the model has no prediction for; `errors`: how many true errors a tagger's sentence has."""
    label = example.label or " ".join(example.tags or ())
    given = example.label is not None or example.tags is not None
    return Attacked(example.text, example.text, label, given=given, outcome="unreadable", errors=errors)


@dataclass(frozen=True)
class Labels:
    """A classifier's correct label is to become another one."""

    run: Run
    judge: Judge | None

    def plain(self, example: Example) -> Example:
        """The text with its label."""
        if example.label is not None:
            label_numbers([example], self.run.labels, self.run.text, tagging=False, source="")
        return Example(example.text, example.label, line=example.line)

    def target(self, example: Example, predicted: Prediction) -> Target | None:
        """The predicted label, unless it is wrong."""
        right = example.label in (None, predicted.label)
        return Target(self.run.labels.index(str(predicted.label))) if right else None

    def close(self, predicted: Prediction) -> bool:
        """Whether two labels are about as probable."""
        return _close(predicted.probabilities)

    def verdict(self, example: Example, before: Prediction, after: Prediction) -> Attacked:
        """Flipped where the label is another one."""
        if before.problem is not None:
            return _unreadable(example)
        first, last = self.decision(before), self.decision(after)
        label = example.label or first
        return Attacked(
            example.text,
            example.text,
            label,
            given=example.label is not None,
            before=first,
            after=last,
            probability_before=before.probabilities[first],
            probability_after=after.probabilities[first],
            outcome=self.outcome(label, first, last),
        )

    def decision(self, predicted: Prediction) -> str:
        """The label that a prediction decides for: the likeliest."""
        return str(predicted.label)

    def outcome(self, label: str, first: str, last: str) -> Outcome:
        """What became of a text of that label, from the decisions before and after the attack."""
        return "wrong" if first != label else "flipped" if last != first else "kept"

    def sense(self, case: Case, swap: Replacement) -> tuple[Sense, str | None]:
        """By the rule of `wordward.attack.sense`."""
        assert isinstance(case.target.lose, int)
        if self.judge is None:
            return "unknown", None
        return self.judge.of(case.target.lose, case.number(swap.position), swap.word), None


@dataclass(frozen=True)
class Tags:
    """A tagger's tag that flags an error is to disappear after words were replaced."""

    run: Run
    positive: int
    corrections: Corrections
    only_kept: bool = False  # corrections themselves are no swaps
    judge: None = None

    def plain(self, example: Example) -> Example:
        """The sentence as tokens with blanks between, since that is how its text is read."""
        text = example.text if example.tokens is None else " ".join(example.tokens)
        tokens = tuple(text.split())
        if example.tags is not None:
            label_numbers([example], self.run.labels, self.run.text, tagging=True, source="")
            if len(example.tags) != len(tokens):
                raise DataError(
                    f"expected a tag for every token; got {len(example.tags)} for {len(tokens)}",
                    line=example.line,
                )
        if example.tokens is None or example.text.split() == list(tokens):
            text = example.text
        return replace(example, text=text, tokens=None)

    def target(self, example: Example, predicted: Prediction) -> Target | None:
        """The flagged tokens, those that are errors where the true tags are given."""
        flagged = self._flagged(predicted)
        under_attack = self._attacked(example, predicted)
        if not under_attack.any():
            return None
        never = frozenset()
        if self.only_kept:
            tokens = example.text.split()
            edits = self.corrections.get(tuple(tokens), ())
            never = frozenset(
                Replacement(int(at), self.run.vocabulary[self._fold(word)])
                for at in np.flatnonzero(under_attack)
                for word in right_words(edits, tokens, int(at))
            )
        lose = np.where(under_attack, self.positive, IGNORE)
        return Target(lose, watched=under_attack | ~flagged, never=never)

    def close(self, predicted: Prediction) -> bool:
        """Whether two tags of a token are about as probable."""
        return any(_close(token.probabilities) for token in predicted.tokens)

    def verdict(self, example: Example, before: Prediction, after: Prediction) -> Attacked:
        """Flipped where the tags under attack are gone and no other token is flagged instead."""
        name = self.run.labels[self.positive]
        errors = None if example.tags is None else example.tags.count(name)
        if before.problem is not None:
            return _unreadable(example, errors)
        under_attack = self._attacked(example, before)
        first, last = self._flagged(before), self._flagged(after)
        left = last & under_attack
        outcome: Outcome = "wrong"
        if under_attack.any():
            outcome = "kept" if (last & (under_attack | ~first)).any() else "flipped"
        tags = [" ".join(predicted.labels) for predicted in (before, after)]
        likeliest = [
            max(predicted.tokens[at].probabilities[name] for at in np.flatnonzero(under_attack))
            if under_attack.any()
            else 0.0
            for predicted in (before, after)
        ]
        return Attacked(
            example.text,
            example.text,
            tags[0] if example.tags is None else " ".join(example.tags),
            given=example.tags is not None,
            before=tags[0],
            after=tags[1],
            probability_before=likeliest[0],
            probability_after=likeliest[1],
            outcome=outcome,
            flagged=tuple(np.flatnonzero(under_attack).tolist()),
            left=tuple(np.flatnonzero(left).tolist()),
            errors=errors,
        )

    def sense(self, case: Case, swap: Replacement) -> tuple[Sense, str | None]:
        """Changed where the swap is the correction, kept where the correction is another."""
        return self.respelt(case, swap.position, self.run.vocabulary.word(swap.word))

    def respelt(self, case: Case, position: int, new: str) -> tuple[Sense, str | None]:
        """As for a swap: what was written wrong is wrong still, unless it is the correction by chance."""
        tokens = [case.text[start:end] for start, end in case.reading.spans]
        edits = self.corrections.get(tuple(tokens), ())
        correct = corrections_at(edits, tokens, position)
        if correct is None:
            return "unknown", None
        right = {self._fold(word) for word in right_words(edits, tokens, position)}
        return "changed" if self._fold(new) in right else "kept", correct

    def _fold(self, word: str) -> str:
        return word.lower() if self.run.text.lowercase else word

    def _flagged(self, predicted: Prediction) -> np.ndarray:
        """Where the positive tag is predicted, (words,)."""
        name = self.run.labels[self.positive]
        return np.array([label == name for label in predicted.labels])

    def _attacked(self, example: Example, predicted: Prediction) -> np.ndarray:
        """Where the positive tag is predicted, and is the true tag if tags are given, (words,)."""
        flagged = self._flagged(predicted)
        if example.tags is None:
            return flagged
        return flagged & (np.array(example.tags) == self.run.labels[self.positive])
