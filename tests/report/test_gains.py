"""What a method gains over other models, with paired intervals; their picture."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from wordward.report.gains import excludes_zero, gains, picture
from wordward.runs.metrics import Interval, mean_of_runs

RNG = np.random.default_rng(3)
HARD = RNG.random(800)  # of each text, the same for each model
RIGHT = {
    name: np.array([HARD + 0.1 * RNG.random(800) < share for _ in range(3)])
    for name, share in (("linear model", 0.6), ("baseline", 0.65), ("ivat", 0.7))
}
ATTACKED = {
    swaps: {name: found[:, :200] & (RNG.random((3, 200)) > swaps / 10) for name, found in list(RIGHT.items())[1:]}
    for swaps in (0, 1, 4)
}


def test_gains_are_differences_of_means_and_pairs_narrow_their_intervals() -> None:
    found = gains(RIGHT, ATTACKED)
    for name, right in RIGHT.items():
        assert found.error[name].value == pytest.approx(1 - right.mean())
    gain = found.fewer_errors["baseline"]
    assert gain.value == pytest.approx(found.error["baseline"].value - found.error["ivat"].value)
    assert gain.high - gain.low < 0.7 * (found.error["ivat"].high - found.error["ivat"].low)  # the texts are shared
    assert excludes_zero(gain)
    assert found.more_right[4].value == pytest.approx(ATTACKED[4]["ivat"].mean() - ATTACKED[4]["baseline"].mean())
    assert found.best == "ivat"
    assert found.record()["accuracy"]["baseline"]["4"]["value"] == found.accuracy["baseline"][4].value


def test_an_interval_over_runs_is_as_wide_as_runs_differ() -> None:
    """Of runs that differ by far, texts alone would give an interval of no width."""
    same = mean_of_runs(np.ones((3, 500)))
    apart = mean_of_runs(np.repeat([[0.0], [0.5], [1.0]], 500, axis=1))
    assert same == Interval(1.0, 1.0, 1.0)
    assert apart.value == 0.5
    assert apart.low <= 0.1
    assert apart.high >= 0.9
    texts = (RNG.random((1, 1000)) < 0.5).astype(float)
    alone = mean_of_runs(texts)  # one run: the texts' own, as of a share
    assert alone.high - alone.low == pytest.approx(2 * 1.96 * 0.5 / 1000**0.5, rel=0.1)


@pytest.mark.parametrize(
    ("low", "high", "excluded"), [(0.01, 0.05, True), (-0.05, -0.01, True), (-0.01, 0.05, False)]
)
def test_whether_an_interval_excludes_zero(low: float, high: float, excluded: bool) -> None:
    assert excludes_zero(Interval((low + high) / 2, low, high)) == excluded


def test_the_picture_holds_every_number_at_its_place() -> None:
    found = gains(RIGHT, ATTACKED)
    drawn = ElementTree.fromstring(picture(found, "40 labels <few> & more"))
    name = "{http://www.w3.org/2000/svg}"
    written = [text.text for text in drawn.iter(f"{name}text")]
    assert "40 labels <few> & more" in written
    assert written.count("ivat") == 2
    assert all(f"{error.value:.1%}" in written for error in found.error.values())
    dots = [(float(dot.attrib["cx"]), float(dot.attrib["cy"])) for dot in drawn.iter(f"{name}circle")]
    assert len(dots) == 3 + 2 * 3
    assert dots[0][0] > dots[1][0] > dots[2][0]  # errors fall
    assert dots[3][1] < dots[4][1] < dots[5][1]  # accuracy falls with swaps
    size = [float(number) for number in re.findall(r"[\d.]+", drawn.attrib["viewBox"])]
    assert all(0 < x < size[2] and 0 < y < size[3] for x, y in dots)
