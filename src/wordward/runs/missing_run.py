"""The message for a folder that is not there: it names the run folders beside it, the likeliest first."""

import difflib
from pathlib import Path

from wordward.runs.run_folder import CONFIG

SHOWN = 5  # names of folders that a message lists


def is_path(name: str) -> bool:
    """Whether a name can only be a path here, and none on the hub: by its form, or by runs beside it."""
    folder = Path(name)
    by_form = folder.is_absolute() or name.startswith(".") or name.count("/") > 1
    return by_form or ("/" in name and bool(_runs(folder.parent)))


def beside(name: str) -> str:
    """Which run folders are where a missing one was looked for: at most `SHOWN`, those spelt alike first."""
    folder = Path(name)
    if not folder.parent.is_dir():
        return f"there is no folder {folder.parent} here"
    names = _runs(folder.parent)
    if not names:
        return f"in {folder.parent} there are no run folders"
    alike = difflib.get_close_matches(folder.name, names, SHOWN)
    ordered = [*alike, *(other for other in names if other not in alike)]
    more = f" and {len(ordered) - SHOWN:,} more" if len(ordered) > SHOWN else ""
    return f"in {folder.parent} there are: {', '.join(ordered[:SHOWN])}{more}"


def _runs(parent: Path) -> list[str]:
    """Names of the folders that hold a model: a run's, or one of Hugging Face; none where they cannot be listed."""
    try:
        return sorted(each.parent.name for kind in (CONFIG, "config.json") for each in parent.glob(f"*/{kind}"))
    except OSError:
        return []
