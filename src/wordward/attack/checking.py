"""Whether a model holds out: how often it is right, as it is and under edits, against limits and an earlier check."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from wordward.attack.checked import Check, key
from wordward.attack.conditions import limited, no_worse
from wordward.attack.earlier import Earlier
from wordward.attack.guard import Guard, check_guard, guard_at
from wordward.attack.robustness import attack_all
from wordward.attack.sense import few_to_judge_by, little_to_judge_by
from wordward.config.attack import AttackSettings
from wordward.config.check import CheckLimits
from wordward.datasets import DataError, Example
from wordward.runs import run_folder
from wordward.runs.counted import count_words
from wordward.runs.given import check_labels
from wordward.runs.run import Run
from wordward.support.console import say
from wordward.support.errors import SettingError

BUDGETS = (1, 2, 4)  # numbers of edits
UNMEASURED = 0.5  # of the texts, without an edit to try for want of words to judge by: what holds then says nothing


def check(
    run: Run,
    texts: Sequence[Example],
    settings: AttackSettings | None = None,
    *,
    limits: CheckLimits | None = None,
    budgets: Sequence[int] = BUDGETS,
    target: str | None = None,
    threshold: float | None = None,
    false_positive_rate: float | None = None,
    against: str | Path | None = None,
    sense_from: Sequence[Example] = (),
    source: str = "",
    jobs: int = 1,
    quiet: bool = True,
) -> Check:
    """Score and attack a model, and decide whether it holds.

    Args:
        run: A model, as `wordward.load_run` or `wordward.open_model` opens it.
        texts: `Example`s with their true labels; without them whatever is predicted is attacked.
        settings: How words to edit are looked for; by default with `sense="kept"`: an edit that changes what is said
            ought to change the prediction.
        limits: What the model must reach.
        budgets: Numbers of edits to measure accuracy under; the largest is how many a text may get.
        target: The label that counts as found, as a guard's: for false positives and recall, and its texts alone
            count for the flip rate. A tagger's is its positive tag.
        threshold: The probability of `target` from which a text is flagged, for a classifier that is used as a guard:
            a text flips where it falls below, and only flagged texts of `target` are attacked.
        false_positive_rate: In its place the share of the other texts that may be flagged; the lowest threshold that
            keeps to it is found on `texts` and told in every output.
        against: The JSON file of an earlier check: being worse on the same texts than that, beyond chance, falls
            short.
        sense_from: Labelled texts, such as those a model was trained on that wordward did not train, whose words are
            counted by label to judge which edits change the sense; by default `texts`.
        source: Where the texts are from, for outputs.
        jobs: Processes to use.
        quiet: Show no progress.

    Returns:
        A `Check`: `holds`, `accuracy`, `flip_rate`, `words()`, `examples()` and more; `to_json()`.

    Examples:
        >>> texts = [wordward.Example("the film was warm and funny", "good")]
        >>> wordward.attack.check(run, texts, wordward.attack.AttackSettings(sense="any")).flip_rate.value
        1.0
    """
    settings, limits = settings or AttackSettings(sense="kept"), limits or CheckLimits()
    texts, sense_from = run.examples(texts), run.examples(sense_from)
    if not texts:
        raise DataError("expected texts to check the model with; there are none", source or None)
    check_labels(texts, source, tagging=run.tagging)
    if not budgets or min(budgets) < 1:
        raise SettingError("budgets", f"expected numbers of edits, 1 or more; got {list(budgets)}")
    run, texts, sense_from = _deciding(run, target, texts, sense_from)
    target = run.labels[run.positive] if run.tagging and run.positive is not None else target
    if target is not None and target not in run.labels:
        raise SettingError("target", f"expected a label of the model, {', '.join(run.labels)}; got {target!r}")
    most = max(budgets)
    if threshold is not None or false_positive_rate is not None:
        check_guard(run, target, threshold, false_positive_rate)
    if sense_from and (run.trained_here or run.tagging):
        raise SettingError("sense_from", _no_sense_from(run))
    run = _judging(run, sense_from or texts)
    settings, caveat = _judgeable(run, settings, quiet=quiet)
    settings = replace(settings, max_swaps=most)
    guard = None if threshold is None else Guard(str(target), threshold)
    guarding = guard is not None or false_positive_rate is not None
    # What cannot be measured or compared is refused before time is spent.
    judged_by = _judged_by(run, settings)
    earlier = None if against is None else Earlier.read(against, settings, target if guarding else None, judged_by)
    _check_measurable(run, texts, limits, target, against, guarding=guarding)
    if false_positive_rate is not None:
        guard = guard_at(run, texts, str(target), false_positive_rate)
    results = attack_all(run, texts, settings, "check", guard=guard, quiet=quiet, jobs=jobs)
    found = Check(
        run.name,
        source,
        run.labels,
        run.tagging,
        target,
        settings,
        tuple(sorted(set(budgets))),
        tuple(results),
        guard=guard,
        groups=_groups(texts),
        judged_by=judged_by,
        caveat=caveat,
    )
    conditions = [limited(name, found.limited[name], limit) for name, limit in limits.given().items()]
    if earlier is not None:
        each = {key(one): one for one in results}
        measured = "accuracy" if guard is None else "right decisions"
        conditions += [no_worse(earlier, each, number, measured) for number in (0, most)]
    if why := _unmeasured(found, run):
        conditions = [replace(each, found=why, holds=False) if each.under_attack else each for each in conditions]
    return replace(found, conditions=tuple(conditions))


def _deciding(
    run: Run, target: str | None, *texts: Sequence[Example]
) -> tuple[Run, Sequence[Example], Sequence[Example]]:
    """The run of the target's yes or no, where a model gives several labels at once, with the texts' labels so."""
    if run.several_labels:
        run = run.deciding(target)  # type: ignore[attr-defined]
    some, more = (run.examples(each) for each in texts)
    return run, some, more


def _groups(texts: Sequence[Example]) -> tuple[str, ...]:
    """The group of each text; empty where none has one."""
    if all(each.group is None for each in texts):
        return ()
    return tuple(each.group or "(none)" for each in texts)


def _judging(run: Run, texts: Sequence[Example]) -> Run:
    """A model that wordward did not train with words counted by label, where these texts have one."""
    if run.trained_here or run.tagging or any(each.label is None for each in texts):
        return run
    return replace(run, counted=count_words(texts, run.labels))


def _no_sense_from(run: Run) -> str:
    """Why other texts cannot judge the sense of edits."""
    if run.tagging:
        return "`sense_from` is for classifiers: the sense of edits is not judged for a tagger"
    way = f", or check {run.folder / run_folder.TRANSFORMER}" if run.config.transformer else ""
    return f"{run.folder} has counted its own training texts, by which edits are judged: leave `sense_from` out{way}"


def _judged_by(run: Run, settings: AttackSettings) -> str | None:
    """A fingerprint of the texts given that decide which edits keep the sense; None where none do.

    A run of wordward is judged by its own training texts, whatever these are.
    """
    counts = None if settings.sense == "any" or run.tagging or run.trained_here else run.class_counts()
    if counts is None:
        return None
    names = sorted(run.labels)  # the same for a model that has its labels in another order
    columns = counts.cpu().numpy()[:, [run.labels.index(name) for name in names]]
    words = json.dumps([names, run.learnt.words], ensure_ascii=False).encode("utf-8", "surrogatepass")
    return hashlib.sha256(words + columns.tobytes()).hexdigest()[:16]


def _judgeable(run: Run, settings: AttackSettings, *, quiet: bool) -> tuple[AttackSettings, str]:
    """The settings without a rule of sense where there is nothing to judge by; and what little there is, in words."""
    if settings.sense == "any":
        return settings, ""
    swaps = "swap" in settings.edits  # other edits are not judged by words
    if run.tagging or (swaps and run.class_counts() is None):
        why = "for a tagger nothing tells" if run.tagging else "no labelled texts tell"
        why = f"{why} which edits keep the sense, so any may be made"
        say(why, quiet=quiet or not swaps)
        return replace(settings, sense="any"), why if swaps else ""
    if not swaps or not (why := little_to_judge_by(run)):
        return settings, ""
    more = "give more texts as `sense_from`, best the model's training texts, or `sense='any'`"
    if run.trained_here:  # it has counted the words of all of them
        more = "`sense='any'` makes them, too"
    say(f"{why}: {more}", quiet=quiet)
    return settings, why


def _unmeasured(found: Check, run: Run) -> str:
    """Why accuracy under attack was not measured: too few texts have words that can be judged; else empty."""
    attacked, untried = len(found.attacked), found.untried
    if found.settings.sense != "kept" or few_to_judge_by(run) is None or untried <= UNMEASURED * attacked:
        return ""
    return f"not measured: {untried} of {attacked} texts to attack have no words that can be judged"


def _check_measurable(
    run: Run, texts: Sequence[Example], limits: CheckLimits, target: str | None, against: Any, *, guarding: bool
) -> None:
    """Refuse limits on what these texts cannot tell, before time is spent."""
    labelled = all((each.tags if run.tagging else each.label) is not None for each in texts)
    needing = [name for name in limits.given() if name != "max_flip_rate"] + (["against"] if against else [])
    if not labelled and needing:
        raise SettingError(needing[0], f"`{needing[0]}` needs texts with their true labels; some have none")
    for name in ("max_false_positives", "min_recall", "min_recall_under_attack"):
        if name in limits.given() and target is None:
            raise SettingError("target", f"`{name}` needs `target`, one of {', '.join(run.labels)}")
        if name in limits.given() and run.tagging and name != "max_false_positives":
            other = name.replace("recall", "accuracy")
            raise SettingError(
                name, f"`{name}` is for classifiers; a tagger's accuracy is its recall: give `{other}`"
            )
    for name in ("min_accuracy", "min_accuracy_under_attack"):
        if name in limits.given() and guarding:
            other = name.replace("accuracy", "recall")
            raise SettingError(
                name, f"with a threshold `{name}` is not measured: give `{other}`, `max_false_positives`"
            )
