"""Every example runs, and every Python block of README and docs does."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ELSEWHERE = {"textattack_cross_check.py"}  # needs TextAttack: tests/test_textattack.py runs it
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("name", sorted({path.name for path in (ROOT / "examples").glob("*.py")} - ELSEWHERE))
def test_example_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
    shown = capsys.readouterr().out
    assert "training error 0%" in shown or "right tags 100%" in shown


@pytest.mark.parametrize(
    "name", ["README.md", *sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/*.md"))]
)
def test_blocks_run(name: str) -> None:
    """The blocks of a page run one after the other, as a reader would type them."""
    names: dict[str, object] = {}
    for block in BLOCK.findall((ROOT / name).read_text(encoding="utf-8")):
        exec(compile(block, name, "exec"), names)
