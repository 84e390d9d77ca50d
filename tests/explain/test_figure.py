"""An explanation as a figure."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from explained import EMPTY, ONE, OTHER, PLACES, TAGGED, evil, long

from wordward.explain.explanation import Place, Pull
from wordward.explain.figure import figure


@pytest.fixture
def matplotlib() -> Any:
    return pytest.importorskip("matplotlib", reason="needs pip install 'wordward[figure]'")


def colours(path: Path, matplotlib: Any) -> set[str]:
    """The colours of a figure that fill more than a bar's edge."""
    from matplotlib.image import imread

    red, green, blue = (imread(path)[..., :3] * 255).round().astype(int).reshape(-1, 3).T
    values, counts = np.unique(red << 16 | green << 8 | blue, return_counts=True)
    return {f"#{value:06x}" for value, count in zip(values, counts, strict=True) if count > 5000}


def test_a_figure_is_as_dark_as_the_pull_is_strong(tmp_path: Path, matplotlib: Any) -> None:
    figure([ONE], tmp_path / "blue.png")
    figure([TAGGED], tmp_path / "green.PNG")
    assert {"#ffffff", "#4c98e8"} <= colours(tmp_path / "blue.png", matplotlib)
    assert "#42b37f" in colours(tmp_path / "green.PNG", matplotlib)
    assert len(colours(tmp_path / "blue.png", matplotlib)) >= 6  # a shade for each strength
    assert sorted(path.name for path in tmp_path.iterdir()) == ["blue.png", "green.PNG"]


@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
def test_a_figure_is_the_same_each_time(ending: str, tmp_path: Path, matplotlib: Any) -> None:
    drawn = []
    for _ in range(2):
        figure([ONE, OTHER], tmp_path / f"x{ending}")
        drawn.append((tmp_path / f"x{ending}").read_bytes())
    assert drawn[0] == drawn[1]
    assert drawn[0][:4] == {".png": b"\x89PNG", ".svg": b"<?xm", ".pdf": b"%PDF"}[ending]


def test_any_text_can_be_drawn(tmp_path: Path, matplotlib: Any) -> None:
    dollars = replace(long(3, 1), text="$x_ $y^ \\a", places=(Place(0, "$x_", 0, 3, True, (Pull("$y^$", 1, 1, 1),)),))
    emoji = replace(long(1, 0), text="🎬", places=(Place(0, "🎬", 0, 1, False, (Pull("סרט" * 30, 1, 1, 1),)),))
    for odd in (evil(), dollars, emoji, EMPTY, long(200, 100)):
        figure([odd], tmp_path / "odd.png")


def test_characters_that_no_font_has_are_named(tmp_path: Path, matplotlib: Any) -> None:
    sign = "\U00010600"  # of Linear A
    odd = replace(long(1, 0), text=sign, places=(Place(0, sign, 0, 1, True, (Pull(f"a{sign}", 1, 1, 1),)),))
    assert figure([odd], tmp_path / "odd.png") == sign
    assert figure([ONE], tmp_path / "even.png") == ""


def test_a_figure_says_what_its_numbers_are_and_cuts_long_words(tmp_path: Path, matplotlib: Any) -> None:
    word = "lovely" * 20
    place = Place(0, word, 0, len(word), False, (Pull("dull", 1.0, 1.0, 0.5),))
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        figure([replace(long(1, 0), text=word, places=(place,))], tmp_path / "x.svg")
    drawn = (tmp_path / "x.svg").read_text(encoding="utf-8")
    assert "relative to the text's strongest" in drawn
    assert "grey: not in the vocabulary" in drawn
    assert word not in drawn
    assert re.search(r">(lovely){2,}\w*…<", drawn)


def test_figures_of_other_kinds_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"end in .png, .svg, .pdf; got 'x.gif'"):
        figure([ONE], tmp_path / "x.gif")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(RuntimeError, match=r"pip install 'wordward\[figure\]'"):
        figure([ONE], tmp_path / "x.png")
    assert list(tmp_path.iterdir()) == []


def test_a_figure_says_what_the_strongest_word_does(tmp_path: Path, matplotlib: Any) -> None:
    """As the terminal does; with a heading where there are several."""
    pull = replace(PLACES[3].pulls[0], probability=None, prediction=None)
    unasked = replace(ONE, places=(*PLACES[:3], replace(PLACES[3], pulls=(pull,)), *PLACES[4:]))
    drawn = []
    for several in ([unasked], [ONE], [ONE, OTHER]):
        with matplotlib.rc_context({"svg.fonttype": "none"}):
            figure(several, tmp_path / "x.svg")
        drawn.append((tmp_path / "x.svg").read_text(encoding="utf-8"))
    assert "93.8 % → 25.0 %" not in drawn[0]
    assert ">good → bad: good 93.8 % → 25.0 %, so bad<" in drawn[1]
    assert ">iAdvT: good → bad: good 93.8 % → 25.0 %, so bad<" in drawn[2]
