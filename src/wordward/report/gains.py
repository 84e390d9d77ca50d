"""What a method gains over other models, over several seeds on the same texts: its numbers and their picture."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wordward.explain.html import render
from wordward.report.charts import ticks
from wordward.runs.metrics import Interval, intervals_to_json, mean_of_runs

WIDTH, TOP, BOTTOM = 760, 84, 262  # of the picture, and of what is drawn in it
LEFT, RIGHT = (150, 340), (450, 650)  # the scale of errors, and that of swaps
Right = Mapping[str, np.ndarray]  # by model, (seeds, texts) bool: whether its run of that seed is right


@dataclass(frozen=True)
class Gains:
    """Errors and accuracies of some models, and what the last of them gains over the others."""

    error: dict[str, Interval]  # by model
    fewer_errors: dict[str, Interval]  # by other model: how much less the last one errs, paired
    accuracy: dict[str, dict[int, Interval]]  # by model, by number of swaps allowed
    more_right: dict[int, Interval]  # by number of swaps: of the last model over the first of those attacked, paired

    @property
    def best(self) -> str:
        """The model whose gains these are."""
        return list(self.error)[-1]

    def record(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {
            "error": intervals_to_json(self.error),
            "fewer_errors": intervals_to_json(self.fewer_errors),
            "accuracy": {name: intervals_to_json(found) for name, found in self.accuracy.items()},
            "more_right": intervals_to_json(self.more_right),
        }


def gains(right: Right, attacked: Mapping[int, Right]) -> Gains:
    """What the last model gains over each other, from which texts are right, and which still are after swaps."""
    *others, best = right
    models = list(next(iter(attacked.values())))
    return Gains(
        {name: mean_of_runs(1.0 - found) for name, found in right.items()},
        {name: mean_of_runs(1.0 * right[best] - right[name]) for name in others},
        {name: {swaps: mean_of_runs(1.0 * found[name]) for swaps, found in attacked.items()} for name in models},
        {swaps: mean_of_runs(1.0 * found[best] - found[models[0]]) for swaps, found in attacked.items()},
    )


def excludes_zero(gain: Interval) -> bool:
    """Whether the interval is all gain, or all loss."""
    return gain.low > 0 or gain.high < 0


def picture(found: Gains, title: str) -> str:
    """Errors and accuracies with their intervals as SVG."""
    wrong = [end for value in found.error.values() for end in value]
    errors = ticks(min(wrong), max(wrong))
    kept = [end for values in found.accuracy.values() for value in values.values() for end in value]
    accuracies, swaps = ticks(min(kept), max(kept)), list(found.more_right)

    def along(value: float) -> float:
        return LEFT[0] + (LEFT[1] - LEFT[0]) * (value - errors[0]) / (errors[-1] - errors[0])

    def up(value: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * (value - accuracies[0]) / (accuracies[-1] - accuracies[0])

    kinds = {name: f"k{number}" for number, name in enumerate(reversed(found.error))}
    step = (RIGHT[1] - RIGHT[0]) / max(1, len(swaps) - 1)
    places = {number: RIGHT[0] + step * at for at, number in enumerate(swaps)}
    beside = dict(zip(found.accuracy, (-4, 4), strict=False))  # so that no model's interval hides the other's
    height = (BOTTOM - TOP) / len(found.error)
    return render(
        "report/templates/gains.svg.j2",
        title=title,
        width=WIDTH,
        top=TOP,
        bottom=BOTTOM,
        left=LEFT,
        right=RIGHT,
        errors=[(along(value), f"{100 * value:g}%") for value in errors],
        accuracies=[(up(value), f"{100 * value:g}%") for value in accuracies],
        swaps=[(x, str(number)) for number, x in places.items()],
        rows=[
            (kinds[name], name, TOP + height * (at + 0.5), *map(along, value), f"{value.value:.1%}")
            for at, (name, value) in enumerate(found.error.items())
        ],
        curves=[
            (
                kinds[name],
                name,
                [(places[number] + beside.get(name, 0), *map(up, value)) for number, value in values.items()],
            )
            for name, values in found.accuracy.items()
        ],
    )
