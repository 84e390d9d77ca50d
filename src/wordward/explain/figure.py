"""Explanations drawn as PNG, SVG or PDF, in the layout of the paper's figure."""

import io
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from wordward.explain import wording
from wordward.explain.explanation import Explanation, Place
from wordward.explain.wording import Line, Part
from wordward.support.errors import MissingExtraError, SettingError
from wordward.support.files import write
from wordward.support.wording import plain

FORMATS = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}  # no date: always the same
WORDS = 32  # of a text that a figure shows
INK, SOFT = "#1d2125", "#5c646d"
SHADES = {"classify": ("#f3f7fc", "#4c98e8"), "tag": ("#f1f8f4", "#42b37f")}  # weakest and strongest pull
WORD, BAR, ROW, EDGE, GAP = 1.35, 2.6, 0.27, 0.3, 0.15  # inches
SMALLEST = 6  # points that can be read
FONTS = "DejaVu Sans,Noto Sans,Noto Sans CJK JP,Noto Sans Arabic,Noto Sans Hebrew,Noto Sans Devanagari,"
FONTS += "Arial Unicode MS,Noto Emoji,Segoe UI Emoji,Apple Symbols"  # each for what those before do not have


def figure(explanations: Sequence[Explanation], path: str | Path) -> str:
    """Draw explanations of one text side by side: words down the left, bars as dark as the pull is strong.

    Args:
        explanations: One text's, one for each column of bars.
        path: The file to write; its ending is .png, .svg or .pdf.

    Returns:
        The characters that no installed font has; they are drawn as boxes.

    Examples:
        >>> wordward.explain.figure(run.explain(["a warm film"]), "pulls.svg")
        ''
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise SettingError("figure", f"expected a figure's name to end in {', '.join(FORMATS)}; got {path.name!r}")
    try:
        import matplotlib
        from matplotlib.figure import Figure
        from matplotlib.font_manager import fontManager
    except ImportError:
        raise MissingExtraError("drawing needs matplotlib: pip install 'wordward[figure]'") from None
    part = wording.part_of(explanations, WORDS)
    installed = set(fontManager.get_font_names())
    settings: dict[Any, Any] = {
        "font.family": [name for name in FONTS.split(",") if name in installed],
        "svg.hashsalt": "wordward",
        "text.parse_math": False,  # dollar signs in a text are not formulas
    }
    written = io.BytesIO()
    with matplotlib.rc_context(settings), warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", "Glyph .* missing")
        heads = _heads(explanations) if part.lines else [plain(explanations[0].text), "no words to read"]
        width = 2 * EDGE + WORD + len(explanations) * (BAR + GAP)
        foot = _foot(part)
        height = 2 * EDGE + ROW * (len(part.lines) + len(heads) + 0.9 + 0.8 * len(foot))
        drawn = Figure(figsize=(width, height))
        axes = drawn.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
        axes.set_axis_off()
        _draw(axes, explanations, part, heads, foot)
        drawn.savefig(written, format=ending[1:], dpi=200, facecolor="white", metadata=FORMATS[ending])
    write(path, written.getvalue())
    missing = (re.match(r"Glyph (\d+) .*missing", str(warning.message)) for warning in caught)
    return "".join(dict.fromkeys(chr(int(match[1])) for match in missing if match))


def _heads(explanations: Sequence[Explanation]) -> list[str]:
    """The lines above the figure: predictions, what the words shown do, and what the strongest did."""
    predictions = dict.fromkeys(wording.predicted(explanation) for explanation in explanations)
    questions, effects = (_each(said, explanations) for said in (wording.question, wording.effect))
    return [plain(line) for line in (*predictions, *questions, *effects)]


def _each(said: Callable[[Explanation], str], explanations: Sequence[Explanation]) -> list[str]:
    """What is said of each explanation: once where all share it, else with its heading."""
    lines = [said(explanation) for explanation in explanations]
    if len(set(lines)) == 1:
        return [line for line in lines[:1] if line]
    return [f"{name}: {line}" for name, line in zip(wording.headings(explanations), lines, strict=True) if line]


def _foot(part: Part) -> list[str]:
    """The lines below the figure: what its numbers mean, and which words are left out."""
    notes = [wording.SCALE] if part.lines else []
    if part.has_unknown:
        notes.append(f"grey: {wording.UNKNOWN}")
    return [*notes, *([part.note] if part.note else [])]


def _draw(
    axes: Any, explanations: Sequence[Explanation], part: Part, heads: Sequence[str], foot: Sequence[str]
) -> None:
    """The whole figure from the top down; `y` and `right` are in inches."""
    right = EDGE + WORD + len(explanations) * (BAR + GAP)
    y = EDGE
    for number, head in enumerate(heads):
        _fitted(axes, EDGE, y, head, right - EDGE, color=SOFT if number else INK, fontsize=9, ha="left")
        y += 0.8 * ROW
    y += 0.6 * ROW
    for number, name in enumerate(wording.headings(explanations) if part.lines else []):
        x = EDGE + WORD + GAP + number * (BAR + GAP)
        _fitted(axes, x, y, plain(name), BAR, color=INK, fontsize=9, ha="left", fontweight="bold")
    y += 0.9 * ROW
    for line in part.lines:
        _draw_line(axes, line, y, explanations[0])
        y += ROW
    for note in foot:
        _fitted(axes, EDGE, y + 0.3 * ROW, note, right - EDGE, color=SOFT, fontsize=8, ha="left")
        y += 0.8 * ROW


def _draw_line(axes: Any, line: Line, y: float, first: Explanation) -> None:
    """A word, and the bar of each explanation beside it."""
    place = line.place
    weight = "bold" if first.focus is not None and place.position == first.focus else "normal"
    colour = INK if place.known else SOFT
    word = plain(line.word) + (f"  ({place.label})" if place.label is not None else "")
    _fitted(axes, EDGE + WORD, y, word, WORD, color=colour, fontsize=10, ha="right", fontweight=weight)
    for number, pulled in enumerate(line.places):
        if pulled is not None and pulled.pulls:
            _draw_bar(axes, pulled, EDGE + WORD + GAP + number * (BAR + GAP), y, SHADES[first.task])


def _draw_bar(axes: Any, place: Place, x: float, y: float, shades: tuple[str, str]) -> None:
    """A bar as dark as the strongest pull of a word is strong, with the word that pulls and a number in it."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import FancyBboxPatch

    pull = place.pulls[0]
    fill = LinearSegmentedColormap.from_list("pull", shades)(pull.relative)
    thick = 0.84 * ROW
    style = "round,pad=0,rounding_size=0.05"
    axes.add_patch(FancyBboxPatch((x, y - thick / 2), BAR, thick, boxstyle=style, facecolor=fill, edgecolor="none"))
    _fitted(axes, x + BAR / 2, y, plain(pull.toward), BAR - 0.9, color=INK, fontsize=10, ha="center")
    strength = wording.two_digits(pull.relative)
    axes.text(x + BAR - 0.08, y, strength, color=INK, fontsize=7.5, ha="right", va="center_baseline")


def _fitted(axes: Any, x: float, y: float, text: str, room: float, **how: Any) -> None:
    """Write a text at most `room` inches wide: in smaller letters, or cut where they would be too small to read."""
    drawn = axes.text(x, y, text, va="center_baseline", **how)
    wide = drawn.get_window_extent().width / axes.figure.dpi
    if wide > room:
        size = drawn.get_fontsize() * room / wide
        drawn.set_fontsize(max(size, SMALLEST))
        if size < SMALLEST:
            drawn.set_text(f"{text[: int(len(text) * size / SMALLEST) - 1]}…")
