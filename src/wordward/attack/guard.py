"""A guard: a classifier that flags texts whose target label is probable enough, and attacks that hide them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from wordward.attack.attacked import Outcome
from wordward.attack.cases import Target
from wordward.attack.goal import CLOSE, Labels
from wordward.config.check import check_threshold
from wordward.datasets import Example
from wordward.runs.prediction import Prediction
from wordward.runs.run import Run
from wordward.support.errors import SettingError

STEP = 1e-6  # predictions have their probabilities with so many decimals


@dataclass(frozen=True)
class Guard:
    """From which probability of which label a text is flagged.

    Args:
        target: The label.
        threshold: The least probability of a text that is flagged.
        false_positive_rate: The share of other texts for which the threshold was found; None where it was given.
        found_on: On how many such texts.

    Examples:
        >>> from wordward.attack import Guard
        >>> Guard("bad", 0.9).target
        'bad'
    """

    target: str
    threshold: float
    false_positive_rate: float | None = None
    found_on: int = 0

    def __post_init__(self) -> None:
        """Refuse what is no probability."""
        check_threshold(self.threshold)

    @property
    def odds(self) -> float:
        """The logarithm of the odds from which the probability, rounded as a prediction has it, is high enough."""
        least = max(1, math.ceil(self.threshold / STEP - 1e-3)) * STEP - STEP / 2
        return math.log(least / (1 - least))

    def decision(self, predicted: Prediction) -> str:
        """The target where the text is flagged, else the likeliest of the other labels."""
        if predicted.probabilities[self.target] >= self.threshold:
            return self.target
        others = {label: p for label, p in predicted.probabilities.items() if label != self.target}
        return max(others, key=lambda label: others[label])


def check_guard(run: Run, target: str | None, name: str = "threshold") -> None:
    """Refuse a model that no guard can be made of with the setting of this name, before time is spent."""
    if run.tagging:
        raise SettingError(name, f"`{name}` is for a classifier; this model gives each word a tag")
    if target not in run.labels:
        raise SettingError("target", f"`{name}` needs `target`, one of {', '.join(run.labels)}; got {target!r}")


def guard_at(run: Run, texts: Sequence[Example], target: str, rate: float) -> Guard:
    """The guard with the lowest threshold at which at most this share of the texts of other labels is flagged."""
    if any(example.label is None for example in texts):
        raise SettingError(
            "false_positive_rate", "`false_positive_rate` needs texts with their true labels; some have none"
        )
    benign = [example for example in texts if example.label != target]
    predicted = [each for each in run.predict(benign) if each.problem is None]
    if not predicted:
        raise SettingError(
            "false_positive_rate", f"expected texts that are not {target} to find a threshold on; none is"
        )
    found = sorted((each.probabilities[target] for each in predicted), reverse=True)
    allowed = min(int(rate * len(found) + 1e-9), len(found) - 1)
    threshold = round(found[allowed] + STEP, 6)
    if threshold > 1:
        sure = sum(p == found[0] for p in found)
        raise SettingError(
            "false_positive_rate",
            f"no threshold flags at most {rate:g} of the texts that are not {target}: {sure} of {len(found)} get it "
            "with a probability of 1; give a larger rate",
        )
    return Guard(target, threshold, rate, len(found))


@dataclass(frozen=True)
class Flags(Labels):
    """A text that a guard flags is to be flagged no longer; others are not attacked."""

    guard: Guard

    def target(self, example: Example, predicted: Prediction) -> Target | None:
        """The flag, unless the text has none or is not the target's."""
        name = self.guard.target
        if self.decision(predicted) != name or example.label not in (None, name):
            return None
        return Target(self.run.labels.index(name), odds=self.guard.odds)

    def close(self, predicted: Prediction) -> bool:
        """Whether the target is about as probable as the threshold, or two labels are as each other."""
        near = abs(predicted.probabilities[self.guard.target] - self.guard.threshold) < CLOSE
        return near or super().close(predicted)

    def decision(self, predicted: Prediction) -> str:
        """The target where the text is flagged, else the likeliest of the other labels."""
        return self.guard.decision(predicted)

    def outcome(self, label: str, first: str, last: str) -> Outcome:
        """Flipped where a flagged text is below the threshold; right where it is flagged as its label says."""
        name = self.guard.target
        if (first == name) != (label == name):
            return "wrong"
        return "flipped" if first == name != last else "kept"
