"""Charts in a page."""

import html
import math
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wordward.explain.html import render
from wordward.report.charts import (
    BOTTOM,
    HEIGHT,
    KINDS,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Curve,
    kind,
    lines,
    strip,
    ticks,
)
from wordward.runs.metrics import Interval

values = st.floats(-1e6, 1e6, allow_subnormal=False).filter(lambda value: value == 0 or abs(value) > 1e-6)


@given(values, values)
def test_ticks_hold_the_values_between_them(one: float, other: float) -> None:
    low, high = min(one, other), max(one, other)
    if low < high < low + 1e-9 * max(abs(low), abs(high)):
        return  # no digits left to tell them apart
    marks = ticks(low, high)
    assert 2 <= len(marks) <= 8
    near = 1e-6 * (high - low or abs(low))
    assert marks[0] <= low + near
    assert marks[-1] >= high - near
    steps = [b - a for a, b in pairwise(marks)]
    assert min(steps) == pytest.approx(max(steps), rel=1e-6)


def test_ticks_of_one_value_begin_at_nothing() -> None:
    assert ticks(1, 1) == [0, 0.25, 0.5, 0.75, 1]
    assert ticks(0, 0) == [0, 0.25, 0.5, 0.75, 1]
    assert ticks(0.2, 0.26) == [0.2, 0.22, 0.24, 0.26]


def drawn(title: str, curves: list[Curve], **settings: Any) -> str:
    """A chart as it stands in a page."""
    return render("report/templates/chart.html.j2", chart=lines(title, curves, **settings))


def points(svg: str) -> list[list[tuple[float, float]]]:
    found = re.findall(r'<polyline points="([^"]*)"', svg)
    return [[tuple(map(float, point.split(","))) for point in each.split()] for each in found]  # type: ignore[misc]


def test_points_stand_where_their_values_are() -> None:
    svg = drawn("Loss", [Curve("a", [(1, 0.0), (2, 1.0), (3, 0.5)], best=2)], form=lambda y: f"{y:g}")
    (places,) = points(svg)
    assert places == [
        (LEFT, HEIGHT - BOTTOM),
        ((LEFT + WIDTH - RIGHT) / 2, TOP),
        (WIDTH - RIGHT, (TOP + HEIGHT - BOTTOM) / 2),
    ]
    assert f'<circle class="rp-best" cx="{places[1][0]}" cy="{places[1][1]:.1f}"' in svg
    assert svg.count("rp-best") == 1
    assert [html.unescape(x) for x in re.findall(r'<text class="rp-x"[^>]*>(.*?)</text>', svg)] == [
        "1",
        "2",
        "3",
    ]


def test_what_is_no_number_is_left_out_and_the_rest_told() -> None:
    odd = [(1, 2.0), (2, math.nan), (3, math.inf), (4, 1.0)]
    svg = drawn("Loss <of> it", [Curve('a "b"', odd), Curve("c", [])], form=lambda y: f"{y:g}")
    assert [len(each) for each in points(svg)] == [0, 2]  # drawn last to first
    label = html.unescape(re.findall(r'aria-label="([^"]*)"', svg)[0])
    assert label == 'Loss <of> it. a "b": 2, 1'
    assert "nan" not in svg
    assert lines("Loss", [Curve("a", [(1, math.nan)])], form=str) is None


def test_one_point_is_a_dot_in_the_middle() -> None:
    svg = drawn("Loss", [Curve("a", [(1, 0.7)])], form=lambda y: f"{y:g}")
    assert points(svg) == [[((LEFT + WIDTH - RIGHT) / 2, pytest.approx(points(svg)[0][0][1]))]]
    assert svg.count("<circle") == 1


def test_a_scale_can_be_asked_for() -> None:
    svg = drawn("Share", [Curve("a", [(0, 0.4), (1, 0.5)])], form=lambda y: f"{y:g}", within=(0, 1))
    marks = [float(mark) for mark in re.findall(r'<text class="rp-y"[^>]*>(.*?)</text>', svg)]
    assert (marks[0], marks[-1]) == (0, 1)


def test_many_epochs_have_ten_names_at_most() -> None:
    svg = drawn("Loss", [Curve("a", [(at, 1.0 / at) for at in range(1, 101)])], form=str)
    assert 5 <= len(re.findall('class="rp-x"', svg)) <= 10


def test_a_strip_has_the_value_on_its_interval() -> None:
    assert strip(Interval(0.25, 0.2, 0.4), low=0.2, high=0.6) == ["12.50%", "0.00%", "50.00%"]
    assert kind(KINDS) == kind(0) != kind(1)
