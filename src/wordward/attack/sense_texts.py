"""The labelled texts by which edits of a model that wordward did not train are judged to keep the sense or not."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace

from wordward.datasets import Example
from wordward.runs import run_folder
from wordward.runs.external_words import count_words
from wordward.runs.run import Run
from wordward.support.errors import SettingError


def with_sense_texts(run: Run, texts: Sequence[Example]) -> Run:
    """The run, and where wordward did not train it, counts of the words of these texts by label to judge edits by."""
    unlabelled = not texts or any(each.label is None for each in texts)
    if run.trained_here or run.tagging or run.several_labels or unlabelled:
        return run
    return replace(run, counted=count_words(texts, run.labels))  # type: ignore[call-arg]


def check_sense_from(run: Run) -> None:
    """Refuse texts to judge the edits of a run by that has others, or none."""
    if run.tagging:
        raise SettingError(
            "sense_from", "`sense_from` is for classifiers: the sense of edits is not judged for a tagger"
        )
    if run.trained_here:
        way = f", or give {run.folder / run_folder.TRANSFORMER}" if run.config.transformer else ""
        raise SettingError(
            "sense_from",
            f"{run.folder} has counted its own training texts, by which edits are judged: leave `sense_from` "
            f"out{way}",
        )


def more_to_judge_by(run: Run) -> str:
    """What to do where little tells which edits keep the sense."""
    if run.trained_here:  # it has counted the words of all of them
        return "`sense='any'` makes them, too"
    return "give more texts as `sense_from`, best the model's training texts, or `sense='any'`"


def sense_fingerprint(run: Run) -> str | None:
    """A fingerprint of the texts given that decide which edits keep the sense; None where none do.

    A run of wordward is judged by its own training texts, whatever these are.
    """
    counts = None if run.tagging or run.trained_here else run.class_counts()
    if counts is None:
        return None
    names = sorted(run.labels)  # the same for a model that has its labels in another order
    columns = counts.cpu().numpy()[:, [run.labels.index(name) for name in names]]
    words = json.dumps([names, run.learnt.words], ensure_ascii=False).encode("utf-8", "surrogatepass")
    return hashlib.sha256(words + columns.tobytes()).hexdigest()[:16]
