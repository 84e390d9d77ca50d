"""Check a model: its accuracy as it is and under edits, against limits and an earlier check."""

from collections.abc import Sequence
from dataclasses import replace

from wordward.attack.checked import Check, key
from wordward.attack.conditions import Condition, limited, no_worse, unmeasurable
from wordward.attack.earlier import Earlier
from wordward.attack.edits import not_made
from wordward.attack.guard import Guard, check_guard, guard_at
from wordward.attack.robustness import attack_all
from wordward.attack.sense import few_to_judge_by, little_to_judge_by, unmeasured
from wordward.attack.sense_texts import check_sense_from, more_to_judge_by, sense_fingerprint, with_sense_texts
from wordward.config.attack import AttackSettings
from wordward.config.check import CheckLimits, CheckSettings
from wordward.datasets import DataError, Example
from wordward.runs.inputs import check_labels, check_no_labels
from wordward.runs.label_cells import meant
from wordward.runs.run import Run
from wordward.support.console import say
from wordward.support.errors import SettingError


def check(
    run: Run,
    texts: Sequence[Example],
    settings: CheckSettings | None = None,
    *,
    sense_from: Sequence[Example] = (),
    source: str = "",
    jobs: int = 1,
    quiet: bool = True,
) -> Check:
    """Score and attack a model, and decide whether it holds.

    Args:
        run: A model, as `wordward.load_run` or `wordward.open_model` opens it.
        texts: `Example`s with their true labels; without them whatever is predicted is attacked.
        settings: How texts are attacked, what is measured, and what decides; by default only edits that keep the
            sense are made: one that changes what is said ought to change the prediction.
        sense_from: Labelled texts, such as those a model was trained on that wordward did not train, whose words are
            counted by label to judge which edits change the sense; by default `texts`.
        source: Where the texts are from, for outputs.
        jobs: Processes to use.
        quiet: Show no progress.

    Returns:
        A `Check`: `holds`, `accuracy`, `flip_rate`, `words()`, `examples()` and more; `to_json()`.

    Examples:
        >>> texts = [wordward.Example("the film was warm and funny", "good")]
        >>> settings = wordward.attack.CheckSettings(wordward.attack.AttackSettings(sense="any"))
        >>> wordward.attack.check(run, texts, settings).flip_rate.value
        1.0
    """
    settings = CheckSettings() if settings is None else settings
    check_no_labels("settings", settings, CheckSettings)
    texts, sense_from = run.examples(texts), run.examples(sense_from)
    if not texts:
        raise DataError("expected texts to check the model with; there are none", source or None)
    check_labels(texts, source, tagging=run.tagging)
    run, settings, texts, sense_from = _deciding(run, settings, texts, sense_from)
    # What cannot be measured or compared is refused before time is spent.
    _check_fitting(run, settings, sense_from)
    _check_measurable(run, settings, texts)
    run = with_sense_texts(run, sense_from or texts)
    attack = replace(settings.attack, max_swaps=settings.budgets[-1])
    attack, caveat = _judgeable(run, attack, quiet=quiet)
    if why := not_made(attack.edits, (each.text for each in texts)):
        say(why, quiet=quiet)
    by = None if attack.sense == "any" else sense_fingerprint(run)
    earlier = _earlier(settings, attack, by)
    guard = _guard(run, settings, texts)
    found = Check(
        run.name,
        source,
        run.labels,
        run.tagging,
        settings.target,
        attack,
        settings.budgets,
        tuple(attack_all(run, texts, attack, "check", guard=guard, quiet=quiet, jobs=jobs)),
        guard=guard,
        groups=_groups(texts),
        judged_by=by,
        caveat=caveat,
    )
    found = replace(found, unmeasured=_unmeasured(found, run))
    return replace(found, conditions=_conditions(found, settings.limits, earlier))


def _deciding(
    run: Run, settings: CheckSettings, *texts: Sequence[Example]
) -> tuple[Run, CheckSettings, Sequence[Example], Sequence[Example]]:
    """A model of several labels at once as one that says yes or no to the target, as do the labels of the texts.

    The target may be given in another case. Of a tagger the target is its own tag.
    """
    if run.several_labels:
        run = run.deciding(settings.target)  # type: ignore[attr-defined]
    if settings.target is not None:
        settings = replace(settings, target=meant(settings.target, run.labels))
    if run.tagging and run.positive is not None:
        settings = replace(settings, target=run.labels[run.positive])
    some, more = (run.examples(each) for each in texts)
    return run, settings, some, more


def _check_fitting(run: Run, settings: CheckSettings, sense_from: Sequence[Example]) -> None:
    """Refuse what does not fit the model."""
    target = settings.target
    if target is not None and target not in run.labels:
        raise SettingError("target", f"expected a label of the model, {', '.join(run.labels)}; got {target!r}")
    if settings.flagged_by:
        check_guard(run, target, settings.flagged_by)
    if sense_from:
        check_sense_from(run)


def _earlier(settings: CheckSettings, attack: AttackSettings, judged_by: str | None) -> Earlier | None:
    """The earlier check to compare with, which attacked in the same way."""
    if settings.against is None:
        return None
    return Earlier.read(settings.against, attack, settings.target if settings.flagged_by else None, judged_by)


def _guard(run: Run, settings: CheckSettings, texts: Sequence[Example]) -> Guard | None:
    """From where on texts are flagged: as given, or as found on the texts."""
    if settings.threshold is not None:
        return Guard(str(settings.target), settings.threshold)
    if settings.false_positive_rate is not None:
        return guard_at(run, texts, str(settings.target), settings.false_positive_rate)
    return None


def _conditions(found: Check, limits: CheckLimits, earlier: Earlier | None) -> tuple[Condition, ...]:
    """What decides: the limits, and being no worse than an earlier check."""
    conditions = [limited(name, found.limited[name], limit) for name, limit in limits.given().items()]
    if earlier is not None:
        each = {key(one): one for one in found.results}
        measured = "accuracy" if found.guard is None else "right decisions"
        equal = len(found.results) - len(each)
        conditions += [no_worse(earlier, each, at, measured, equal=equal) for at in (0, found.budgets[-1])]
    if why := found.unmeasured:
        conditions = [each.not_measured(why) for each in conditions]
    return tuple(conditions)


def _groups(texts: Sequence[Example]) -> tuple[str, ...]:
    """The group of each text; empty where none has one."""
    if all(each.group is None for each in texts):
        return ()
    return tuple(each.group or "(none)" for each in texts)


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
    say(f"{why}: {more_to_judge_by(run)}", quiet=quiet)
    return settings, why


def _unmeasured(found: Check, run: Run) -> str:
    """Why accuracy under attack was not measured: too few texts have words that can be judged; else empty."""
    if found.settings.sense != "kept" or few_to_judge_by(run) is None:
        return ""
    return unmeasured(found.attacked)


def _check_measurable(run: Run, settings: CheckSettings, texts: Sequence[Example]) -> None:
    """Refuse limits on what these texts cannot tell."""
    given = settings.limits.given()
    labelled = all((each.tags if run.tagging else each.label) is not None for each in texts)
    needing = [name for name in given if name != "max_flip_rate"] + (["against"] if settings.against else [])
    if not labelled and needing:
        raise SettingError(needing[0], f"`{needing[0]}` needs texts with their true labels; some have none")
    for name in ("max_false_positives", "min_recall", "min_recall_under_attack"):
        if name in given and settings.target is None:
            raise SettingError("target", f"`{name}` needs `target`, one of {', '.join(run.labels)}")
        if name in given and run.tagging and name != "max_false_positives":
            other = name.replace("recall", "accuracy")
            raise SettingError(
                name, f"`{name}` is for classifiers; a tagger's accuracy is its recall: give `{other}`"
            )
    if settings.target is not None:
        _check_present(run, settings.target, texts, tuple(given))


def _check_present(run: Run, target: str, texts: Sequence[Example], limits: Sequence[str]) -> None:
    """Refuse a limit on what is measured on texts of the target, or on all others, where none of these is there."""
    there = {target in (each.tags or ()) if run.tagging else each.label == target for each in texts}
    of_target = "min_accuracy" if run.tagging else "min_recall"  # or under attack
    for name in limits:
        on_target, on_others = name.startswith(of_target), name == "max_false_positives"
        if (on_target and True not in there) or (on_others and False not in there):
            raise unmeasurable(name)
