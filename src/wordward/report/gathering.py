"""Everything that a report on a run says, gathered before any of it is drawn."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from wordward.attack.attacked import Attacked
from wordward.attack.robustness import attack_all
from wordward.attack.sense import judge_of
from wordward.config.attack import AttackSettings
from wordward.config.settings import TrainConfig
from wordward.datasets import DataError, Example, sample
from wordward.explain.explainer import explain
from wordward.explain.faithfulness import Faithfulness, faithfulness
from wordward.report.closeness import opposites
from wordward.report.contents import SWAPS, Report, ReportSettings, Subject
from wordward.report.examples import telling
from wordward.report.texts import dev_texts, texts_to_score
from wordward.runs import run_folder
from wordward.runs.chance import at_chance
from wordward.runs.opening import open_model, short_names
from wordward.runs.run import Run
from wordward.runs.yardstick_scores import Yardstick, remedies
from wordward.support.console import say
from wordward.support.errors import RunError, SettingError
from wordward.support.wording import shown

WORDS = 6  # words whose neighbours are shown
ATTACKED, FAITHFUL = 200, 100  # texts to attack, and of them those on which pulls are measured
ON_CPU = (80, 20)  # of a Transformer on a CPU, unless told otherwise
SHOWN = 40  # words of a text whose bars fit on a page without a cut


def gather(
    folder: str | Path,
    settings: ReportSettings | None = None,
    *,
    against: Sequence[str | Path] = (),
    device: str = "auto",
    quiet: bool = False,
) -> Report:
    """Score the runs, and find what there is to show of the first.

    Args:
        folder: The run's folder.
        settings: What goes into it.
        against: Folders of other runs with the same labels, to compare with.
        device: cpu, cuda or mps; auto takes the fastest available.
        quiet: Show no progress.

    Returns:
        A `Report`: its `subjects` are the runs with their scores and attacks.

    Examples:
        >>> from wordward.report import ReportSettings, gather
        >>> settings = ReportSettings(attack=0, sentences=0)
        >>> gather("runs/mine", settings, quiet=True).subjects[0].name
        'mine'
    """
    settings = settings or ReportSettings()
    paths = [Path(folder), *map(Path, against)]
    pair = settings.columns.get("pair_column")
    runs = [open_model(path, device=device, positive=settings.positive, pair_column=pair) for path in paths]
    check_alike(runs)
    if settings.test is None and (opened := next((run for run in runs if not run.trained_here), None)):
        raise SettingError(
            "test",
            f"{opened.folder} was not trained by wordward, so no dev texts of it are known: give `test`, a file of "
            "labelled texts",
        )
    tested = texts_to_score(runs, settings.test, settings.columns, quiet=quiet)
    say(f"scoring {', '.join(map(str, paths))}", quiet=quiet)
    subjects, held_out = [], []
    for number, (run, name) in enumerate(zip(runs, short_names(paths), strict=True)):
        subject, examples = _scored(_read(run, name), quiet=quiet)
        if tested is not None:
            subject = replace(subject, test=run.evaluate_corpus(tested.corpora[number], tested.source, quiet=quiet))
        subjects.append(subject)
        held_out.append(examples)
    texts = tested.examples if tested is not None else held_out[0]
    attacked, measured, fewer = _amounts(runs, settings, len(texts))
    if fewer:
        say(fewer, quiet=quiet)
    # With seed 0 those of `wordward attack` with a limit.
    to_attack = sample(texts, attacked, seed=settings.seed, apart=True)
    subjects = [replace(each, edits=settings.edits) for each in subjects]
    subjects = [replace(each, attacks=_attacks(each, to_attack, quiet=quiet)) for each in subjects]
    say("measuring what pulls tell", quiet=quiet)
    subjects = [
        replace(each, faithfulness=_faithfulness(each, to_attack[:measured], quiet=quiet)) for each in subjects
    ]
    report = Report(
        tuple(subjects),
        settings,
        "dev" if tested is None else "test",
        same_dev=all(each == held_out[0] for each in held_out),
        fewer=shown(fewer),
    )
    say("looking for telling sentences and words", quiet=quiet)
    return _with_words(_with_sentences(report, texts))


def _amounts(runs: Sequence[Run], settings: ReportSettings, texts: int) -> tuple[int, int, str]:
    """How many texts to attack and on how many of them to measure pulls, and a sentence where these are fewer."""
    slow = any(run.config.transformer is not None and run.device.type == "cpu" for run in runs)
    if settings.attack is not None or not slow or texts <= ON_CPU[1]:
        return ATTACKED if settings.attack is None else settings.attack, FAITHFUL, ""
    attacked, measured = (min(count, texts) for count in ON_CPU)
    return (
        attacked,
        measured,
        f"A Transformer takes its time on a CPU, so {attacked} texts are attacked, and pulls measured on {measured}; "
        f"with `attack={ATTACKED}` up to {ATTACKED} and {FAITHFUL} are.",
    )


def check_alike(runs: Sequence[Run]) -> None:
    """Refuse runs that cannot be compared."""
    first = runs[0]
    for run in runs[1:]:
        if run.tagging != first.tagging or set(run.labels) != set(first.labels):
            names = [
                f"{other.folder} gives {'tags' if other.tagging else 'labels'} {', '.join(other.labels[:8])}"
                for other in (first, run)
            ]
            raise RunError(f"expected runs of one task with the same labels; {names[0]}, but {names[1]}")
    flagged = {run.config.training.positive: run.folder for run in runs if run.positive is not None}
    if len(flagged) > 1:
        names = [f"{folder} {tag!r}" for tag, folder in flagged.items()]
        raise RunError(f"expected runs that flag the same tag (`positive`); {' and '.join(names)} do not")


def _read(run: Run, name: str) -> Subject:
    """The result and metrics of a run, read from its folder."""
    if not run.trained_here:
        return Subject(run, name, {}, [])
    try:
        metrics = run_folder.read_metrics(run.folder)
        result = run_folder.load_result(run.folder) or {}
        if any(run.config.training.criterion not in line.get("dev", {}) for line in metrics):
            raise RunError(f"expected scores on dev in each line of {run_folder.METRICS}")
        if (dev := result.get("dev")) and run.config.training.criterion not in dev:
            raise RunError(f"expected dev {run.config.training.criterion} in {run_folder.RESULT}")
    except ValueError as error:
        raise RunError(f"{run.folder} holds a damaged file of results: {error}") from None
    notes = []
    if not result or result.get("stopped"):
        done, wanted = metrics[-1]["epoch"] if metrics else 0, run.config.training.epochs
        notes.append(
            f"The run {name} is not finished: {done} of {wanted} epochs are done. The best model so far is shown."
        )
    if not metrics:
        notes.append(f"The run {name} has no learning curve: its folder holds no {run_folder.METRICS}.")
    if unlearnt := at_chance(run):
        notes.append(f"{unlearnt}.")
    # Its scores are of the tag that the run was trained to flag.
    same = run_folder.load_config(run.folder, TrainConfig).training.positive == run.config.training.positive
    return Subject(run, name, result, metrics, notes=tuple(notes), yardstick=Yardstick.of(result) if same else None)


def _scored(subject: Subject, *, quiet: bool) -> tuple[Subject, list[Example]]:
    """A run scored on its dev texts, with what is to be noted of that, and the texts."""
    examples, corpus, note = dev_texts(subject.run)
    if corpus is not None:
        subject = replace(subject, dev=subject.run.evaluate_corpus(corpus, "dev", quiet=quiet))
    notes = (*subject.notes, note, _differs(subject), _worse(subject))
    return replace(subject, notes=tuple(each for each in notes if each)), examples


def _differs(subject: Subject) -> str:
    """A warning if the dev texts are not scored as when the run was trained."""
    criterion, before = subject.run.config.training.criterion, subject.result.get("dev") or {}
    if subject.dev is None or criterion not in before:
        return ""
    now = subject.dev.scores[criterion].value
    if abs(now - before[criterion]) < 1e-9:
        return ""
    return (
        f"When {subject.name} was trained its dev {criterion} was {before[criterion]:.2%}; here it is {now:.2%}: "
        "the texts have changed since, or this device rounds differently."
    )


def _worse(subject: Subject) -> str:
    """A warning if the run is worse on dev than its yardstick."""
    yardstick, dev, criterion = subject.yardstick, subject.result.get("dev"), subject.run.config.training.criterion
    if yardstick is None or not dev or yardstick.standing(criterion, dev[criterion]) != "worse":
        return ""
    return (
        f"On the dev texts {subject.name} is worse than a simple model ({yardstick.name}): {criterion} "
        f"{dev[criterion]:.2%} against {yardstick.scores[criterion].value:.2%}. What may help: "
        f"{remedies(subject.run.config).replace('`', '')}."
    )


def _attacks(subject: Subject, examples: Sequence[Example], *, quiet: bool) -> dict[str, list[Attacked]]:
    """The texts attacked with any swaps, and only with those judged to keep the sense."""
    run = subject.run
    if not examples or (run.tagging and run.positive is None):
        return {}
    kinds: list[Any] = ["any"] if judge_of(run) is None else ["any", "kept"]
    return {
        sense: attack_all(
            run,
            examples,
            AttackSettings(max_swaps=max(SWAPS), sense=sense, edits=subject.edits),
            f"attack on {subject.name}, {sense} swaps",
            quiet=quiet,
        )
        for sense in kinds
    }


def _faithfulness(subject: Subject, examples: Sequence[Example], *, quiet: bool) -> Faithfulness | None:
    """How far a classifier's pulls name words that matter; None where there is nothing to measure that on."""
    if subject.run.tagging or not subject.run.has_gradients or not examples:
        return None
    with suppress(DataError):  # no text with two words that others may stand for
        return faithfulness(subject.run, examples, quiet=quiet)


def _with_sentences(report: Report, texts: Sequence[Example]) -> Report:
    """The report with sentences that their strongest pull changes most."""
    run, settings = report.subjects[0].run, report.settings
    if not run.has_gradients:
        return report
    fitting = [example for example in texts if len(example.text.split()) <= SHOWN]
    tellings = telling(run, fitting, count=settings.sentences, seed=settings.seed) if settings.sentences else []
    if not tellings:
        return report
    explanation = tellings[0].explanation
    example = Example(explanation.text, tellings[0].label)
    (other,) = explain(run, [example], method="advt", focus=explanation.focus)
    return replace(report, tellings=tellings, compared=[explanation, other])


def _with_words(report: Report) -> Report:
    """The report with the neighbours of some words."""
    first = report.subjects[0]
    if not first.run.has_gradients:
        return report
    before, note = first.run.starting_table()
    flipped = [attacked for attacked in first.attacks.get("any", ()) if attacked.flipped]
    swapped = [
        (change.word, change.toward) for attacked in flipped for change in attacked.changes if change.kind == "swap"
    ]
    swapped += [(sentence.place.word, sentence.toward) for sentence in report.tellings]
    words = opposites(first.run, before, count=WORDS, swapped=swapped)
    return replace(report, words=words, words_note=note)
