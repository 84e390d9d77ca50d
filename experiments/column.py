"""The runs of a column: the language model first, then rows that have no result yet, one by one or side by side."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from experiments import folds, results
from experiments.row import folder_of, run_row
from experiments.settings import Plan, check_records, check_rows, check_settings, reading_config
from experiments.tables import FOLDS, Column, Row
from wordward.datasets import MissingError
from wordward.perturbation.recipes import parse_methods
from wordward.runs import run_folder
from wordward.support.console import progress, say
from wordward.support.device import release
from wordward.support.errors import BusyError, DivergedError, SettingError
from wordward.support.locks import locked
from wordward.support.workers import stoppable, workers
from wordward.train.pretraining import pretrain

Job = tuple[Row, int]  # a row and its seed


@dataclass(frozen=True)
class ColumnRuns:
    """A column, how to run it, and the file of its records."""

    column: Column
    plan: Plan
    file: Path

    def table(self, rows: Sequence[Row]) -> str:
        """The column's table, after running those of the rows that have no result yet."""
        column, plan = self.column, self.plan
        if not (folder := plan.experiments / column.settings).is_dir():
            raise MissingError(
                "expected a folder of TOML files, one per row; there is none: see `experiments`", folder
            )
        if column.folds_of and plan.seeds > FOLDS:
            raise SettingError(
                "seeds", f"{column.name} has {FOLDS} folds, each run with its own seed; got {plan.seeds}"
            )
        check_rows(column, rows, plan)
        check_records(column, self._records(), plan, self.file)
        self._run(rows)
        return results.markdown(column, self._records(), preset=plan.preset)

    def _records(self) -> list[results.Record]:
        return [record for record in results.load(self.file) if record["preset"] == self.plan.preset]

    def _is_done(self, row: Row, seed: int) -> bool:
        """Whether its result is recorded, perhaps by another command since this one began."""
        return any((record["row"], record["seed"]) == (row.name, seed) for record in self._records())

    def _run(self, rows: Sequence[Row]) -> None:
        """Run the rows and seeds that have no result yet, after the language model."""
        kept = {(record["row"], record["seed"]) for record in self._records()}
        wanted = [(row, seed) for seed in range(1, self.plan.seeds + 1) for row in rows]
        missing = [(row, seed) for row, seed in wanted if (row.name, seed) not in kept]
        if done := len(wanted) - len(missing):
            self._say(f"{done} of {len(wanted)} runs are in {self.file}, not trained again")
        if not missing:
            return
        if self.column.folds_of:
            folds.make(self.column, self.plan)
        self._read_first(missing)
        if self.plan.jobs > 1:
            self._side_by_side(missing)
        else:
            self._one_by_one(missing)

    def _read_first(self, missing: Sequence[Job]) -> None:
        """Train the language model if needed; of several commands, one trains it while the others wait."""
        config = reading_config(self.column, self.plan)
        folder = self.plan.out / self.column.name / "lm"
        if config is None:
            return

        def busy() -> None:
            self._say("another command is training the language model; waiting for it")

        with locked(folder.with_name("lm.lock"), busy=busy):
            begun = (folder / run_folder.CONFIG).exists()
            if begun:
                check_settings(folder, config)
            else:
                self._refuse_begun(missing, folder)
            if run_folder.finished(folder):
                return
            self._say("language model")
            if pretrain(config, folder, resume=begun, quiet=self.plan.quiet)["stopped"]:
                raise KeyboardInterrupt
        release()

    def _refuse_begun(self, missing: Sequence[Job], language_model: Path) -> None:
        """Refuse rows begun from a language model that is gone: they would pass for rows of the next one."""
        folders = (folder_of(self.column, row, seed, self.plan) for row, seed in missing)
        if begun := [str(folder) for folder in folders if (folder / run_folder.CONFIG).exists()]:
            raise run_folder.RunError(
                f"{', '.join(begun)} started from a language model that is no longer in {language_model}: restore "
                "it, choose another `out`, or delete these folders to train them again"
            )

    def _one_by_one(self, missing: Sequence[Job]) -> None:
        for row, seed in missing:
            if self._is_done(row, seed):
                continue
            self._say(f"{row.name}, seed {seed}")
            self._keep(row, seed, partial(run_row, self.column, row, seed, self.plan))

    def _side_by_side(self, missing: Sequence[Job]) -> None:
        """Run rows in separate processes; none waits in a queue, where Ctrl-C would not reach it."""
        # The longest first, so that none runs alone at the end.
        left = sorted(missing, key=lambda job: -_cost(job[0]))
        running: dict[Future[results.Record], tuple[Row, int, int]] = {}  # row, seed, jobs when it began
        jobs = min(self.plan.jobs, len(left))
        threads = max(1, (os.cpu_count() or 1) // jobs)
        with workers(jobs, threads=threads) as pool, progress(quiet=self.plan.quiet) as bars:
            bar = bars.add_task(self.column.name, total=len(left), unit="rows")
            while left or running:
                while left and len(running) < jobs:
                    row, seed = left.pop(0)
                    if self._is_done(row, seed):
                        bars.advance(bar)
                        continue
                    begun = pool.submit(stoppable, _row_beside_others, self.column, row, seed, self.plan)
                    running[begun] = row, seed, jobs
                for done in wait(running, return_when=FIRST_COMPLETED).done if running else ():
                    row, seed, crowd = running.pop(done)
                    try:
                        self._keep(row, seed, done.result)
                        bars.advance(bar)
                    except torch.OutOfMemoryError:
                        if crowd == 1:
                            raise
                        jobs = min(jobs, crowd - 1)
                        left.append((row, seed))
                        say(
                            f"{self.column.name}: {row.name}, seed {seed} ran out of memory beside the others; it "
                            f"continues later, {jobs} at a time"
                        )

    def _keep(self, row: Row, seed: int, run: Callable[[], results.Record]) -> None:
        """Record the result of a row as soon as it is ready, or say why it is left out."""
        name = f"{row.name}, seed {seed}"
        try:
            record = run()
        except (DivergedError, BusyError) as error:
            say(f"{self.column.name}: {name} left out: {error}")  # even if quiet
            return
        results.append(self.file, record)
        self._say(f"{name} done: {record['epochs']} epochs, {record['seconds']:.0f} s")

    def _say(self, what: str) -> None:
        say(f"{self.column.name}: {what}", quiet=self.plan.quiet)


def _row_beside_others(column: Column, row: Row, seed: int, plan: Plan) -> results.Record:
    """`run_row`, after which this process holds no GPU memory that others could use."""
    record, out_of_memory = {}, ""
    try:
        record = run_row(column, row, seed, plan)
    except torch.OutOfMemoryError as error:
        out_of_memory = str(error)  # the error itself would keep the memory in use
    release()
    if out_of_memory:
        raise torch.OutOfMemoryError(out_of_memory)
    return record


def _cost(row: Row) -> int:
    """Forward passes of a row's method beyond the baseline's; those over unlabelled texts count for more."""
    return sum(m.recipe.forwards * (3 if m.recipe.objective == "kl" else 1) for m in parse_methods(row.name))
