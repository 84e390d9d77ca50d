"""The goal of an attack on a run, if the settings fit the run."""

from wordward.attack.goal import Goal, Labels, Tags
from wordward.attack.guard import Flags, Guard, check_guard
from wordward.attack.sense import Judge, judge_of
from wordward.config.attack import KEEP_WORDS, AttackSettings
from wordward.datasets.m2 import Corrections
from wordward.runs.run import Run
from wordward.support.errors import RunError, SettingError


def goal_of(
    run: Run,
    settings: AttackSettings,
    corrections: Corrections | None = None,
    guard: Guard | None = None,
    judge: Judge | None = None,
) -> Goal:
    """What an attack on a run is to change; raises an error for settings that do not fit the run."""
    run.method(settings.method)
    if guard is not None:
        check_guard(run, guard.target)
    if run.tagging:
        return _of_tagger(run, settings, corrections)
    if corrections is not None:
        raise SettingError("corrections", "corrections are for taggers: this run gives one label to the whole text")
    judge = judge or judge_of(run)
    if settings.sense == "kept" and judge is None and "swap" in settings.edits:
        if not run.trained_here:
            raise RunError(
                f"{run.folder} was not trained by wordward, so there are no counts of its training texts to judge "
                "swaps by: give labelled texts as `sense_from`, or attack with `sense='any'`"
            )
        raise RunError(
            f"{run.folder} has no word counts to judge swaps by: train it again, or attack with `sense='any'`"
        )
    return Labels(run, judge) if guard is None else Flags(run, judge, guard)


def _of_tagger(run: Run, settings: AttackSettings, corrections: Corrections | None) -> Tags:
    """The tag that an attack is to hide."""
    if other := [kind for kind in settings.edits if kind not in KEEP_WORDS]:
        raise SettingError(
            "edits",
            f"a tagger needs edits that keep the number of words ({', '.join(KEEP_WORDS)}), since every word has "
            f"its tag; got {', '.join(other)}: leave that out",
        )
    if run.positive is None:
        raise SettingError(
            "positive",
            f"expected a tag for the attack to hide; {run.folder} was trained for none: give `positive` with one "
            f"of {', '.join(run.labels)}",
        )
    if settings.sense == "kept" and corrections is None:
        raise SettingError(
            "corrections",
            "`sense='kept'` needs `corrections` to judge a tagger's swaps by: give an M2 file",
        )
    return Tags(run, run.positive, corrections or {}, only_kept=settings.sense == "kept")
