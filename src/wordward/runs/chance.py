"""Whether a run is better than chance; one that is not is explained and attacked in vain."""

from math import sqrt
from typing import Any

from wordward.runs import run_folder
from wordward.runs.metrics import share
from wordward.runs.run import Run

VAIN = "what it explains, and how well it holds out against swaps, says nothing"


def at_chance(run: Run) -> str:
    """A line that says that a run is no better than always giving the most frequent label; "" if it is, or unknown.

    A classifier's error must be below that of the most frequent label by its standard error, of which nothing is
    known where all texts have one label; a tagger must have given the tag that counts, if one does, rightly at
    least once. What `wordward train` found on test texts counts where there are more of these than dev texts.
    """
    try:
        result = run_folder.load_result(run.folder) or {}
    except run_folder.RunError:
        return ""
    if run.tagging:
        return (
            f"{run.folder} has not learnt to tell its labels apart: not one dev token rightly got the tag that "
            f"counts; {VAIN}"
            if (result.get("dev") or {}).get("f0.5") == 0
            else ""
        )
    name, error, majority, texts = _measured(result)
    if error is None or not majority or not texts or error + sqrt(error * (1 - error) / texts) < majority:
        return ""
    most_frequent = f"{majority:.1%}, that of always giving the most frequent label"
    if share(round(error * texts), texts).low < majority / 2:  # it may well have learnt
        return (
            f"it is not known whether {run.folder} has learnt to tell its labels apart: {texts:,} {name} "
            f"{'text is' if texts == 1 else 'texts are'} too few to tell its {name} error, {error:.1%}, from "
            f"{most_frequent}; if it has not, {VAIN}"
        )
    return (
        f"{run.folder} has not learnt to tell its labels apart: its {name} error, {error:.1%}, is not clearly below "
        f"{most_frequent}; {VAIN}"
    )


def _measured(result: dict[str, Any]) -> tuple[str, float | None, float | None, int]:
    """A classifier's error, that of the most frequent label, and on how many texts of which kind: test or dev."""
    test, dev, count = result.get("test") or {}, result.get("dev") or {}, (result.get("texts") or {}).get("dev") or 0
    if "majority_error" in test and "error" in test["scores"] and test["texts"] > count:
        return "test", test["scores"]["error"]["value"], test["majority_error"], test["texts"]
    return "dev", dev.get("error"), result.get("majority_error"), count
