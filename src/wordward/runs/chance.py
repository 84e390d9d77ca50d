"""Whether a run has learnt to tell its labels apart: one that has not is explained and attacked in vain."""

from math import sqrt

from wordward.runs import run_folder
from wordward.runs.run import Run

VAIN = "what it explains, and how well it holds out against swaps, says nothing"


def at_chance(run: Run) -> str:
    """A line that says that a run is no better than always giving the most frequent label; "" if it is, or unknown.

    A classifier's dev error must be below that of the most frequent label by its standard error, of which nothing is
    known where all dev texts have one label; a tagger must have given the tag that counts, if one does, rightly at
    least once.
    """
    try:
        result = run_folder.load_result(run.folder) or {}
    except run_folder.RunError:
        return ""
    scores, majority, texts = result.get("dev") or {}, result.get("majority_error"), result.get("texts") or {}
    unlearnt = f"{run.folder} has not learnt to tell its labels apart"
    if run.tagging:
        return (
            f"{unlearnt}: not one dev token rightly got the tag that counts; {VAIN}"
            if scores.get("f0.5") == 0
            else ""
        )
    error, count = scores.get("error"), texts.get("dev")
    if error is None or not majority or not count or error + sqrt(error * (1 - error) / count) < majority:
        return ""
    return (
        f"{unlearnt}: its dev error, {error:.1%}, is not clearly below {majority:.1%}, that of always giving the "
        f"most frequent label; {VAIN}"
    )
