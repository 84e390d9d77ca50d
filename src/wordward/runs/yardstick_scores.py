"""A run's dev score beside that of its yardstick, as result.json holds them."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from wordward.config.settings import TrainConfig
from wordward.runs.metrics import Interval

WIDTH = 2 * 1.96  # of a 95 % interval, in standard errors


class Yardstick(NamedTuple):
    """The simple model that a run is measured against."""

    name: str
    scores: dict[str, Interval]  # on dev, by the names of the run's own

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> "Yardstick | None":
        """The yardstick that a result.json holds; None if it holds none, as those of older versions."""
        entry = result.get("yardstick")
        if not entry:
            return None
        return cls(
            entry["name"], {at: Interval(value, *entry["intervals"][at]) for at, value in entry["dev"].items()}
        )

    def entry(self, seconds: float) -> dict[str, Any]:
        """The yardstick as result.json holds it, with the seconds that it took."""
        return {
            "name": self.name,
            "dev": {name: interval.value for name, interval in self.scores.items()},
            "intervals": {name: [interval.low, interval.high] for name, interval in self.scores.items()},
            "seconds": round(seconds, 2),
        }

    def standing(self, criterion: str, score: float) -> Literal["better", "worse", "even"]:
        """Whether a run's score is better or worse than the yardstick's; even: by no more than a standard error.

        Both are measured on the same texts, so the run's score is taken to vary as much as the yardstick's.
        """
        value, low, high = self.scores[criterion]
        error = 2**0.5 * (high - low) / WIDTH
        gain = value - score if criterion == "error" else score - value
        return "even" if abs(gain) <= error else "better" if gain > 0 else "worse"


def compared(result: Mapping[str, Any], config: TrainConfig) -> str:
    """A run and its yardstick on dev in one line; where the run is worse, with what to do. Empty without scores."""
    yardstick, criterion, dev = Yardstick.of(result), result["criterion"], result["dev"]
    if yardstick is None or not dev:
        return ""
    ours, theirs = dev[criterion], yardstick.scores[criterion].value
    standing = yardstick.standing(criterion, ours)
    said = {"better": "better than", "worse": "worse than", "even": "not clearly different from"}[standing]
    line = f"dev {criterion} {ours:.4f}, {said} the yardstick's {theirs:.4f} ({yardstick.name})"
    return f"{line}; what may help: {remedies(config)}" if standing == "worse" else line


def remedies(config: TrainConfig) -> str:
    """What may make a model better than it is, but for what it already has; settings in backquotes."""
    if config.transformer is not None:
        return "more `epochs`, another `method`, another model (`transformer`), more texts"
    start = "" if config.vectors or config.pretrained else "a start from word `vectors`, "
    return f"more `epochs`, another `method`, {start}a Hugging Face model (`transformer`), more texts"
