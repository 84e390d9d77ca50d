"""Where the parts of small SVG charts stand; templates draw them and the page's style sheet colours them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wordward.runs.metrics import Interval

WIDTH, HEIGHT = 420, 230
LEFT, RIGHT, TOP, BOTTOM = 50, 12, 14, 30
KINDS = 6  # of curves that the style sheet tells apart
Point = tuple[float, float]  # x, y


@dataclass(frozen=True)
class Curve:
    """A named line of points."""

    name: str
    points: Sequence[Point]  # those that are not numbers are left out
    best: float | None = None  # the x of the point to mark


@dataclass(frozen=True)
class Chart:
    """Curves in the units of the page, the origin at the top left."""

    label: str  # what the chart shows, for people who do not see it
    levels: list[tuple[float, str]]  # the y of faint lines across, and the values there
    numbers: list[tuple[float, str]]  # the x of numbers along the bottom
    curves: list[tuple[str, list[Point], list[Point]]]  # class, points, and those of them to mark

    width, height, left, right = WIDTH, HEIGHT, LEFT, WIDTH - RIGHT


def kind(number: int) -> str:
    """The class of the curve, strip or key of that number; a seventh looks like the first again."""
    return f"rp-k{number % KINDS}"


def lines(
    title: str, curves: Sequence[Curve], *, form: Callable[[float], str], within: Sequence[float] = ()
) -> Chart | None:
    """A chart of curves over whole numbers such as epochs; None where there is no point to draw.

    `form` writes a value; `within`: values that the scale is to hold.
    """
    real = [[point for point in curve.points if all(map(math.isfinite, point))] for curve in curves]
    xs, ys = [x for points in real for x, _ in points], [y for points in real for _, y in points]
    if not xs:
        return None
    marks = ticks(min(*ys, *within, ys[0]), max(*ys, *within, ys[0]))
    low, high = min(*ys, *marks), max(*ys, *marks)
    first, last = min(xs), max(xs)

    def at(x: float, y: float) -> Point:
        across = (x - first) / (last - first) if last > first else 0.5
        down = 1 - (y - low) / (high - low)
        return LEFT + (WIDTH - LEFT - RIGHT) * across, TOP + (HEIGHT - TOP - BOTTOM) * down

    both = list(zip(curves, real, strict=True))
    told = [f"{curve.name}: {', '.join(form(y) for _, y in points)}" for curve, points in both if points]
    return Chart(
        label=f"{title}. {'; '.join(told)}",
        levels=[(at(first, mark)[1], form(mark)) for mark in marks],
        numbers=[(at(x, low)[0], f"{x:g}") for x in _some(first, last)],
        curves=[
            (kind(number), [at(*each) for each in points], [at(*each) for each in points if each[0] == curve.best])
            for number, (curve, points) in enumerate(both)
        ],
    )


def _some(first: float, last: float) -> list[float]:
    """Whole numbers from first to last, ten at most."""
    step = max(1, math.ceil((last - first) / 9))
    return [first + step * number for number in range(int((last - first) // step) + 1)]


def ticks(low: float, high: float, count: int = 4) -> list[float]:
    """Round numbers around the values from low to high, in about `count` steps; of one value, from 0 to it."""
    if high <= low:
        low, high = (min(0.0, low), max(0.0, low)) if low else (0.0, 1.0)
    rough = (high - low) / count
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough * 0.999)
    start, end = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(start, max(end, start + 1) + 1)]


def strip(interval: Interval, *, low: float, high: float) -> Sequence[str]:
    """Where a value and the ends of its interval stand on a scale from low to high, in percent of its length."""
    return [f"{100 * (value - low) / (high - low or 1.0):.2f}%" for value in interval]
