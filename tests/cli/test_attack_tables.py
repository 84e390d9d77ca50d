"""Comparisons of `wordward attack`: no wider than a terminal there, Markdown where the output is piped."""

import sys

import pytest
from rich.cells import cell_len
from rich.text import Text

from wordward.attack.robustness import Robustness
from wordward.attack.robustness_tables import aligned, models_cells
from wordward.cli.attack import _print_table
from wordward.runs.metrics import Interval

ROWS = [
    Robustness(f"runs/of/a/long/name/{method}", method, {n: Interval(0.9, 0.8, 0.95) for n in (0, 1, 2, 4, 8)})
    for method in ("baseline", "[iadvt]")
]


@pytest.mark.parametrize("width", [60, 80])
def test_on_a_terminal_it_is_fitted(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    _print_table("Accuracy on 2 texts:", *models_cells(ROWS))
    caption, *lines = Text.from_ansi(capsys.readouterr().out).plain.splitlines()
    assert caption == "Accuracy on 2 texts:"
    assert max(map(cell_len, lines)) <= width
    together = "".join(line.split("│")[1].strip() for line in lines if line.startswith("│"))
    assert together == "runs/of/a/long/name/baselineruns/of/a/long/name/[iadvt]"


def test_elsewhere_it_is_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    _print_table("Accuracy on 2 texts:", *models_cells(ROWS))
    assert capsys.readouterr().out == f"Accuracy on 2 texts:\n\n{aligned(*models_cells(ROWS))}\n"
