"""The numbers of a report's page: results, learning curves, confusion, accuracy under attack."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from wordward.attack.sense import OFTEN, few_to_judge_by
from wordward.report.charts import Chart, Curve, lines, ticks
from wordward.report.contents import SENSES, Report, Subject
from wordward.runs.metrics import Interval, mcnemar
from wordward.runs.yardstick_scores import Yardstick

NAMES = {"error": "Error", "macro_f1": "Macro-F1"}
NAMES |= {"precision": "Precision", "recall": "Recall", "f0.5": "F0.5"}
NAMES |= {"entity_precision": "Entity precision", "entity_recall": "Entity recall", "entity_f1": "Entity F1"}
CountedWords = list[list[tuple[int, float]]]  # by true and predicted label: how many, and share of the true label
LABELS, PAIRS = 10, 12  # labels that a square of all has room for; mix-ups to list where there are more


def numbers(report: Report) -> dict[str, Any]:
    """What templates show of results, learning, labels and accuracy under attack, by the names that they use."""
    first, learnt = report.subjects[0], [subject for subject in report.subjects if subject.metrics]
    metric = first.run.config.training.criterion
    scored = [scored for subject in report.subjects for scored in (subject.dev, subject.test) if scored]
    counted = confusion(first.scored.confusion) if first.scored else []
    confused = *first.run.labels, *(first.scored.unknown if first.scored else ())
    dev_metric = learnt[0].run.config.training.criterion if learnt else metric
    accuracies = under_attack(report)
    return {
        "metric": metric,
        "some_tell_nothing": any(i.tells_nothing for each in scored for i in each.scores.values()),
        "scale": scale_of(report, metric),
        "paired": paired(report),
        "yardsticks": yardsticks(report),
        "learnt": learnt,
        "dev_metric": dev_metric,
        "learning_curves": learning_curves(learnt, dev_metric),
        "confusion": counted,
        "confused": confused,
        "mixups": mixups(counted, confused) if len(confused) > LABELS else None,
        "under_attack": accuracies,
        "few_judged": few_to_judge_by(first.run) if "kept" in first.attacks and "swap" in first.edits else None,
        "OFTEN": OFTEN,
        "attack_charts": {title: _accuracy_chart(title, runs) for title, runs in accuracies.items()},
    }


def count(number: float) -> str:
    """A whole number, or one rounded to it."""
    return f"{number:,.0f}"


def rate(share: float, digits: int = 2) -> str:
    """A share with as many digits as `wordward evaluate` prints."""
    return f"{100 * share:.{digits}f}\u00a0%"


def between(interval: Interval, digits: int = 2) -> str:
    """The ends of an interval, where it tells anything."""
    if interval.tells_nothing:
        return "no interval"
    return f"{100 * interval.low:.{digits}f} to {rate(interval.high, digits)}"


def points(difference: Interval) -> str:
    """A difference of two shares in words, with its interval."""
    value, low, high = (f"{100 * each:+.1f}" for each in difference)
    return f"{value} percentage points (95\u00a0% interval {low} to {high})".replace("-", "−")


def meaning(metric: str, report: Report) -> str:
    """What a metric measures, in one line."""
    run = report.subjects[0].run
    tag = "" if run.positive is None else f"“{run.labels[run.positive]}”"
    what, kind = ("words", "tag") if run.tagging else ("texts", "label")
    return {
        "error": f"share of {what} that get the wrong {kind}; 0\u00a0% is best",
        "macro_f1": f"precision and recall in one number, mean of all {kind}s; 100\u00a0% is best",
        "precision": f"of the words tagged {tag}, the share that are",
        "recall": f"of the words that are {tag}, the share tagged so",
        "f0.5": "precision and recall in one number, precision weighing more; 100\u00a0% is best",
        "entity_precision": "of the entities that it marks, the share with exactly the right words and type",
        "entity_recall": "of the entities there are, the share that it marks exactly so",
        "entity_f1": "precision and recall of whole entities in one number; 100\u00a0% is best",
    }[metric]


def scale_of(report: Report, metric: str) -> list[float]:
    """A scale for a measure of two runs or more; none for one."""
    scored = [subject.scored.scores for subject in report.subjects if subject.scored is not None]
    measured = [each[metric] for each in scored if metric in each]  # F0.5 needs a tag to flag
    ends = [value for interval in measured for value in interval]
    return ticks(min(ends), max(ends)) if len(measured) > 1 else []


def yardsticks(report: Report) -> list[Yardstick]:
    """What the runs were measured against on dev, each once; by the run's name where they differ."""
    own = [(each.name, each.yardstick) for each in report.subjects if each.dev and each.yardstick]
    if all(yardstick == own[0][1] for _, yardstick in own):
        return [yardstick for _, yardstick in own[:1]]
    return [yardstick._replace(name=f"{yardstick.name}, of {name}") for name, yardstick in own]


def paired(report: Report) -> list[tuple[str, int, int, float]]:
    """Whether the first run really differs from each other run on the same texts.

    By name of the other: texts that only the first gets wrong, that only the other does, p of McNemar's test.
    """
    first, *others = report.subjects
    if first.scored is None or first.run.tagging or (report.shown_from == "dev" and not report.same_dev):
        return []
    found = []
    for other in others:
        if other.scored is not None:
            wrong, wrong_too = first.scored.wrong, other.scored.wrong
            ours, theirs = int((wrong & ~wrong_too).sum()), int((wrong_too & ~wrong).sum())
            found.append((other.name, ours, theirs, mcnemar(ours, theirs)))
    return found


def learning_curves(learnt: Sequence[Subject], metric: str) -> dict[str, Chart | None]:
    """Loss and dev score by epoch."""
    loss, dev = [], []
    for run in learnt:
        scores = [(m["epoch"], m["dev"][metric]) for m in run.metrics if metric in m["dev"]]
        loss.append(Curve(run.name, [(m["epoch"], m["loss"]) for m in run.metrics]))
        dev.append(Curve(run.name, scores, best_epoch(run)))
    on_loss, on_dev = "Loss on the training texts", f"{NAMES[metric]} on the dev texts"
    return {
        f"{on_loss}, by epoch": lines(f"{on_loss} by epoch", loss, form=lambda y: f"{y:g}"),
        f"{on_dev}, by epoch": lines(f"{on_dev} by epoch", dev, form=_short),
    }


def best_epoch(subject: Subject) -> int | None:
    """The epoch whose model was kept."""
    return max((m["epoch"] for m in subject.metrics if m.get("best")), default=None)


def confusion(counts: np.ndarray) -> CountedWords:
    """How often each label is predicted for each true label, with shares."""
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    return [list(zip(*row, strict=True)) for row in zip(counts.tolist(), shares.tolist(), strict=True)]


def mixups(counted: CountedWords, labels: Sequence[str]) -> list[tuple[str, str, int, float]]:
    """The most frequent mistakes: true label, predicted label, how many, share of the true label."""
    wrong = [
        (true, predicted, number, share)
        for true, row in zip(labels, counted, strict=True)
        for predicted, (number, share) in zip(labels, row, strict=True)
        if true != predicted and number
    ]
    return sorted(wrong, key=lambda mistake: -mistake[2])[:PAIRS]


def under_attack(report: Report) -> dict[str, dict[str, dict[int, Interval]]]:
    """How right the runs stay by number of swaps: by which swaps may be made, then by run."""
    found = {
        report.subjects[0].allowed(sense).capitalize(): {
            subject.name: accuracy
            for subject in report.subjects
            if sense in subject.attacks and (accuracy := subject.accuracy(sense))
        }
        for sense in SENSES
    }
    return {title: runs for title, runs in found.items() if runs}


def _accuracy_chart(title: str, runs: dict[str, dict[int, Interval]]) -> Chart | None:
    curves = [
        Curve(name, [(swaps, interval.value) for swaps, interval in accuracy.items()])
        for name, accuracy in runs.items()
    ]
    return lines(
        f"{title}: share right by the number of {'edits' if 'edits' in title else 'swaps'}",
        curves,
        form=_short,
        within=(0, 1),
    )


def _short(share: float) -> str:
    return f"{100 * share:.3g} %"
