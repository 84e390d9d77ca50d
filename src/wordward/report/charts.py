"""Small SVG charts for a page: styled by its style sheet, with a text alternative."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from wordward.runs.metrics import Interval

WIDTH, HEIGHT = 420, 230
LEFT, RIGHT, TOP, BOTTOM = 50, 12, 14, 30
KINDS = 6  # of lines that the style sheet tells apart


@dataclass(frozen=True)
class Line:
    """A named line of points."""

    name: str
    points: Sequence[tuple[float, float]]  # x, y; those that are not numbers are left out
    best: float | None = None  # the x of the point to mark


def kind(number: int) -> str:
    """The class of the line, strip or key of that number; a seventh looks like the first again."""
    return f"rp-k{number % KINDS}"


def lines(
    title: str, drawn: Sequence[Line], *, form: Callable[[float], str], within: Sequence[float] = ()
) -> str:
    """Lines over whole numbers such as epochs; `form` writes a value; `within`: values to have on the scale."""
    real = [[p for p in line.points if all(map(math.isfinite, p))] for line in drawn]
    xs, ys = [x for points in real for x, _ in points], [y for points in real for _, y in points]
    if not xs:
        return ""
    marks = ticks(min(*ys, *within, ys[0]), max(*ys, *within, ys[0]))
    low, high = min(*ys, *marks), max(*ys, *marks)
    first, last = min(xs), max(xs)

    def x_at(x: float) -> float:
        width = WIDTH - LEFT - RIGHT
        return LEFT + width * ((x - first) / (last - first) if last > first else 0.5)

    def y_at(y: float) -> float:
        height = HEIGHT - TOP - BOTTOM
        return TOP + height * (1 - (y - low) / (high - low))

    out = [_level(y_at(mark), form(mark)) for mark in marks]
    out += [f'<text class="rp-x" x="{x_at(x):.1f}" y="{HEIGHT - 8}">{x:g}</text>' for x in _some(first, last)]
    numbered = list(enumerate(zip(drawn, real, strict=True)))
    for number, (line, points) in reversed(numbered):  # the first on top
        places = [(x_at(x), y_at(y)) for x, y in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in places)
        best = "".join(
            f'<circle class="rp-best" cx="{x_at(x):.1f}" cy="{y_at(y):.1f}" r="6"/>'
            for x, y in points
            if x == line.best
        )
        out.append(f'<g class="{kind(number)}"><polyline points="{path}"/>{dots}{best}</g>')
    label = "; ".join(
        f"{line.name}: {', '.join(form(y) for _, y in points)}"
        for line, points in zip(drawn, real, strict=True)
        if points
    )
    return (
        f'<svg class="rp-lines" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(f"{title}. {label}")}">'
        + "".join(out)
        + "</svg>"
    )


def _level(y: float, name: str) -> str:
    """A faint line across at a value, and the value beside it."""
    return (
        f'<line class="rp-level" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text class="rp-y" x="{LEFT - 8}" y="{y + 4:.1f}">{escape(name)}</text>'
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


def strip(interval: Interval, number: int, *, low: float, high: float) -> str:
    """A value as a dot on the line of its interval, on a scale from low to high."""
    span = high - low or 1.0
    at = [f"{100 * (value - low) / span:.2f}%" for value in interval]
    return (
        f'<svg class="rp-strip {kind(number)}" aria-hidden="true">'
        f'<line class="rp-track" x1="0" x2="100%" y1="50%" y2="50%"/>'
        f'<line x1="{at[1]}" x2="{at[2]}" y1="50%" y2="50%"/><circle cx="{at[0]}" cy="50%" r="5"/></svg>'
    )
