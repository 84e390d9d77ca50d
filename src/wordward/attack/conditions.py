"""What a model must fulfil for a check to pass: limits on its numbers, and being no worse than it was."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from wordward.attack.attacked import Attacked
from wordward.attack.earlier import Earlier
from wordward.attack.robustness import holds
from wordward.datasets import DataError
from wordward.runs.metrics import Interval

UNDER_ATTACK = "min_accuracy_under_attack", "max_flip_rate", "min_recall_under_attack"
TITLES = {
    "min_accuracy": "accuracy",
    "min_accuracy_under_attack": "accuracy under attack",
    "max_flip_rate": "flip rate",
    "max_false_positives": "false positives",
    "min_recall": "recall",
    "min_recall_under_attack": "recall under attack",
}


@dataclass(frozen=True)
class Condition:
    """Something that a model must fulfil for a check to pass."""

    name: str  # of the setting
    title: str  # what is measured
    asked: str  # "at least 90.0%"
    found: str  # "85.0%"
    holds: bool
    numbers: Mapping[str, float] = field(default_factory=dict)
    measured: bool = True  # else it neither holds nor falls short, and `found` says why

    @property
    def standing(self) -> str:
        """Whether it holds, in words."""
        return ("holds" if self.holds else "falls short") if self.measured else "not measured"

    def not_measured(self, why: str) -> "Condition":
        """What becomes of it where next to no text could be edited, so that numbers under edits say nothing.

        A limit that is missed all the same is so with more edits, too.
        """
        if not self.under_attack or not (self.holds or self.name == "against"):
            return self
        return replace(self, found=why, holds=False, measured=False)

    @property
    def under_attack(self) -> bool:
        """Whether it is about edited texts."""
        return self.name in UNDER_ATTACK or self.numbers.get("edits", 0) > 0


def under(measured: str, edits: int) -> str:
    """What is measured, and under how many edits."""
    return measured if not edits else f"{measured} under {edits} edit{'s' * (edits != 1)}"


def limited(name: str, interval: Interval | None, limit: float) -> Condition:
    """Whether a number keeps to its limit."""
    least = name.startswith("min_")
    exactly = f"{limit:.1%}" if round(limit, 3) == limit else f"{100 * limit:.8g}%"
    asked = f"{'at least' if least else 'at most'} {exactly}"
    if interval is None:
        if name == "max_flip_rate":  # a model that is always wrong does not hold out
            return Condition(name, TITLES[name], asked, "no text is predicted right", False, {"limit": limit})
        raise unmeasurable(name)
    value = interval.value
    reached = value >= limit if least else value <= limit
    # With decimals enough not to look like a limit that it misses.
    decimals = next((n for n in range(1, 9) if f"{value:.{n}%}" != f"{limit:.{n}%}"), 1)
    found = f"{value:.{decimals}%}"
    return Condition(name, TITLES[name], asked, found, reached, {"limit": limit, "value": value})


def unmeasurable(name: str) -> DataError:
    """That a number with a limit cannot be measured on the texts given."""
    return DataError(f"{TITLES[name]} cannot be measured: no text to measure it on is among those given")


def no_worse(
    earlier: Earlier, each: Mapping[str, Attacked], number: int, measured: str = "accuracy", *, equal: int = 0
) -> Condition:
    """Whether the model is no worse than it was, beyond chance.

    `equal`: how many more texts there are, each equal to one of `each`: they would tell nothing new of chance.
    """
    now = {name: holds(one, number) for name, one in each.items() if one.errors != 0}
    numbers = {"edits": number, **earlier.compare(now, number)}
    before, after, lost, won, p = (numbers[name] for name in ("before", "after", "lost", "won", "p"))
    title = under(measured, number)
    both = f"{numbers['texts']} texts" if numbers["texts"] == len(now) else f"{numbers['texts']} of {len(now)} texts"
    found = f"{before:.1%} before, {after:.1%} now; of {both} {lost} lost, {won} won (p = {p:.2g})"
    found += f"; equal texts count once ({equal} more)" if equal else ""
    falls = lost > won and p < 0.05
    return Condition("against", title, f"no worse than {earlier.name}", found, not falls, numbers)
