"""Figures of the long runs with their date and machine, kept as files that the page shows."""

import json
import os
import platform
import time
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "records"


def record(name: str, figures: dict[str, Any], *, keep: bool) -> None:
    """Print the figures as a line of JSON; `keep` them as those that `docs/reliability.md` shows."""
    where = {"date": time.strftime("%Y-%m-%d"), "machine": f"{platform.machine()}, {os.cpu_count()} cores"}
    print(json.dumps({**figures, **where}), flush=True)
    if keep:
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{name}.json").write_text(json.dumps({**figures, **where}, indent=1) + "\n", encoding="utf-8")


def recorded(name: str) -> dict[str, Any]:
    """The figures that were kept last."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
