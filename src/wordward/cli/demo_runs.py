"""The runs of the demo: each trained, tested and attacked by a process of its own."""

import json
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.progress import Progress, TaskID

from wordward.attack.robustness import attack_all, holds
from wordward.attack.sense import make_judge
from wordward.config.attack import AttackSettings
from wordward.config.settings import TrainConfig
from wordward.datasets import read, sample
from wordward.runs.opening import load_run
from wordward.runs.run_folder import CONFIG, METRICS, finished, load_config
from wordward.support.console import progress, say
from wordward.support.files import write
from wordward.support.threads import cores
from wordward.support.workers import stoppable, workers
from wordward.train.training import train

SWAPS = (0, 1, 2, 4)
MEASURED = "demo.json"  # in a run's folder
LOOK = 0.5  # seconds between two looks at how far the runs are


@dataclass(frozen=True)
class Job:
    """A run to train, and what to measure it on."""

    config: TrainConfig
    folder: Path
    test: Path  # labelled sentences
    judged_by: Path  # labelled sentences whose words tell which swaps keep the sense, more than are learnt from
    attacked: int  # how many test sentences to attack

    @property
    def called(self) -> str:
        """The method and its seed."""
        return f"{self.config.method}, seed {self.config.training.seed}"


@dataclass(frozen=True)
class Measured:
    """What was measured of a run."""

    right: list[bool]  # for each test sentence
    held: dict[int, list[bool]]  # by swaps, for each sentence under attack: whether it is right, and stays so
    processor: dict[str, float]  # seconds of a core, by stage


def measure_all(jobs: Sequence[Job], *, quiet: bool) -> list[Measured]:
    """Train and measure all runs, as many at a time as there are cores; what is done already is read."""
    left = [job for job in jobs if _read(job) is None]
    running: dict[Future[None], tuple[Job, TaskID]] = {}
    count = min(cores(), len(left))
    if not left:
        return [found for job in jobs if (found := _read(job))]
    with workers(count, threads=1) as pool, progress(quiet=quiet) as bars:
        every = bars.add_task("all runs", total=len(jobs), completed=len(jobs) - len(left), unit="runs")
        while left or running:
            while left and len(running) < count:
                job = left.pop(0)
                bar = bars.add_task(job.called, total=None, unit="epochs")
                running[pool.submit(stoppable, measure, job)] = job, bar
            for done in wait(running, timeout=LOOK, return_when=FIRST_COMPLETED).done:
                job, bar = running.pop(done)
                done.result()
                bars.remove_task(bar)
                bars.advance(every)
                say(_told(job, _read(job)), quiet=quiet)
            for job, bar in running.values():
                _look(job, bars, bar)
    return [found for job in jobs if (found := _read(job))]


def measure(job: Job) -> None:
    """Train the run or go on with it, test and attack it, and write what was found."""
    going, started = (job.folder / CONFIG).exists(), time.process_time()
    if not going or finished(job.folder) is None:
        if not going:
            shutil.rmtree(job.folder, ignore_errors=True)  # stopped before its settings were written
        result = train(job.config, job.folder, resume=going, quiet=True)
        if result["stopped"]:
            raise KeyboardInterrupt
    trained = time.process_time()
    run, test = load_run(job.folder, device="cpu"), read(job.test)
    right = [found.label == example.label for found, example in zip(run.predict(test), test, strict=True)]
    settings = AttackSettings(max_swaps=max(SWAPS), sense="kept")
    counts = run.encode(read(job.judged_by), labelled=True).class_counts(len(run.learnt), len(run.labels))
    judge = make_judge(torch.from_numpy(counts), run.learnt)
    attacked = attack_all(run, sample(test, job.attacked), settings, job.called, judge=judge, quiet=True)
    held = {swaps: [holds(each, swaps) for each in attacked] for swaps in SWAPS}
    processor = {"training": trained - started, "test and attack": time.process_time() - trained}
    write(job.folder / MEASURED, json.dumps({"right": right, "held": held, "processor": processor}) + "\n")


def _read(job: Job) -> Measured | None:
    """What was measured of a finished run, if it is there."""
    file = job.folder / MEASURED
    if not file.exists() or finished(job.folder) is None:
        return None
    found: dict[str, Any] = json.loads(file.read_text())
    held = {int(swaps): values for swaps, values in found["held"].items()}
    return Measured(found["right"], held, found["processor"])


def _told(job: Job, found: Measured | None) -> str:
    assert found is not None
    wrong = 1 - sum(found.right) / len(found.right)
    return f"{job.called}: {wrong:.1%} of the test sentences wrong, {sum(found.processor.values()):.0f} s of one core"


def _look(job: Job, bars: Progress, bar: TaskID) -> None:
    """Show how far a run is, by what it has written."""
    metrics = job.folder / METRICS
    if not metrics.exists():
        return
    done, epochs = len(metrics.read_text().splitlines()), load_config(job.folder, TrainConfig).training.epochs
    if done == epochs:
        bars.update(bar, description=f"{job.called}, under attack")
    bars.update(bar, total=epochs, completed=done)
