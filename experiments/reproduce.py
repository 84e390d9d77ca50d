"""Reproduce a table of the paper: pre-train once, train its rows, score them on test, record the results."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from pathlib import Path
from typing import Any

import torch

from experiments import folds, results
from experiments.paired import pack_bits
from experiments.settings import (
    COMMON,
    LANGUAGE_MODEL,
    Plan,
    check_records,
    check_rows,
    check_settings,
    language_model,
    reading_config,
    row_config,
)
from experiments.tables import FOLDS, TABLES, Column, Row
from wordward.attack.attacker import attack
from wordward.attack.robustness import accuracies
from wordward.config.attack import AttackSettings
from wordward.config.settings import TrainConfig
from wordward.datasets import MissingError, sample
from wordward.perturbation.recipes import parse_methods
from wordward.runs import run_folder
from wordward.runs.opening import load_run
from wordward.runs.run import Run
from wordward.support import wording
from wordward.support.console import progress, say
from wordward.support.device import release
from wordward.support.distributed import refuse_several
from wordward.support.errors import BusyError, SettingError, WordwardError
from wordward.support.locks import locked
from wordward.support.workers import stoppable, workers
from wordward.text.chosen import read_as, split_examples
from wordward.text.corpora import PACK
from wordward.text.corpus import Corpus
from wordward.train.pretraining import pretrain
from wordward.train.training import DivergedError, train


class TableError(WordwardError, RuntimeError):
    """Columns that failed, or no corpus found, with the part of the table that could be made."""

    def __init__(self, message: str, shown: str = "") -> None:
        super().__init__(message)
        self.shown = shown


def run_row(column: Column, row: Row, seed: int, plan: Plan) -> results.Record:
    """Train one row (or resume it) and score it on test, unless another process is training it."""

    def busy() -> None:
        raise BusyError(
            "another command is training it; run this command again when that one is done to see the result"
        )

    folder = _folder(column, row, seed, plan)
    with locked(folder.with_name(f"{folder.name}.lock"), busy=busy):
        config = row_config(column, row, seed, plan)
        quiet = plan.quiet or plan.jobs > 1  # the bars of several rows would overwrite each other
        result = _trained(config, folder, quiet=quiet)
        start = {LANGUAGE_MODEL: language_model(Path(config.pretrained))} if config.pretrained else {}
        run = load_run(folder, device=plan.device)
        return {
            "column": column.name,
            "row": row.name,
            "preset": plan.preset,
            **result,
            **start,
            **_tested(run, quiet=quiet),
            "config": run_folder.config_text(folder),
            **_under_attack(run, column.attacked),
        }


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


def _folder(column: Column, row: Row, seed: int, plan: Plan) -> Path:
    return plan.out / column.name / row.name / f"seed-{seed}"


def _trained(config: TrainConfig, folder: Path, *, quiet: bool) -> dict[str, Any]:
    """The result of a run, which is trained to its end if it is not finished."""
    begun = (folder / run_folder.CONFIG).exists()
    if begun:
        check_settings(folder, config)
    result = run_folder.finished(folder) or train(config, folder, resume=begun, quiet=quiet)
    if result["stopped"]:
        raise KeyboardInterrupt
    return result


def _tested(run: Run, *, quiet: bool) -> dict[str, Any]:
    """The score on the test texts, and which of them were wrong."""
    evaluation = run.evaluate_corpus(test_corpus(run, quiet=quiet), "test", quiet=quiet)
    measured, wrong = evaluation.scores[run.config.training.criterion], evaluation.wrong
    return {"test": measured._asdict(), "counted": len(wrong), "wrong": pack_bits(wrong)}


def test_corpus(run: Run, *, quiet: bool) -> Corpus:
    """The test texts of the corpus, or of the file named in the settings."""
    data = run.config.data
    if data.corpus:
        return run.split("test", limit=data.limit, quiet=quiet)
    if not data.test:
        raise SettingError("test", f"{run.folder} names no test texts: set test in {COMMON}")
    examples = read_as(data, data.test)
    return run.encode(examples, labelled=True, source=data.test)


def _under_attack(run: Run, count: int) -> dict[str, Any]:
    """Accuracy on `count` of the test texts, always the same ones, by how many words an attack may swap.

    Nothing where none are asked for, or where the corpus is a pack, which holds no texts.
    """
    if not count or str(run.config.data.corpus).endswith(PACK):
        return {}
    chosen = sample(split_examples(run.config.data, "test"), count)
    found: dict[str, Any] = {"texts": len(chosen)}
    for sense in results.SENSES:
        attacked = list(attack(run, chosen, AttackSettings(max_swaps=max(results.SWAPS), sense=sense)))
        found[sense] = {str(swaps): each.value for swaps, each in accuracies(attacked, results.SWAPS).items()}
    return {"attacked": found}


def reproduce(
    table: str, plan: Plan, *, rows: Sequence[str] = (), results_folder: Path = Path("experiments/results")
) -> str:
    """Run the missing parts of a table and return it as Markdown, our results next to the paper's."""
    refuse_several("reproducing a table")
    if table not in TABLES:
        raise SettingError("table", f"expected a table among {', '.join(TABLES)}; got {table!r}")
    known = dict.fromkeys(row.name for column in TABLES[table] for row in column.rows)
    if unknown := [row for row in rows if row not in known]:
        raise SettingError("rows", f"expected rows of {table} ({', '.join(known)}); got {', '.join(unknown)}")
    if not plan.experiments.is_dir():
        raise SettingError("experiments", f"{plan.experiments} holds no experiments: run this in a clone of wordward")
    shown, failed, missing = [], [], 0
    for column in TABLES[table]:
        wanted = [row for row in column.rows if not rows or row.name in rows]
        try:
            shown.append(_column(column, wanted, plan, results_folder / f"{column.name}.jsonl"))
        except MissingError as error:
            if len(TABLES[table]) == 1:
                raise
            say(f"{column.name} was not found and is skipped", quiet=plan.quiet)
            shown.append(f"### {column.title}\n\nnot found: {wording.shown(str(error))}\n")
            missing += 1
        except (ValueError, OSError, RuntimeError) as error:
            if len(TABLES[table]) == 1:
                raise
            say(f"{column.name} failed: {error}", quiet=plan.quiet)
            shown.append(f"### {column.title}\n\nfailed: {wording.shown(str(error))}\n")
            failed.append(f"{column.name}: {error}")
        except KeyboardInterrupt:
            say("run the same command again to continue", quiet=plan.quiet)
            raise
    tables = "\n".join(shown)
    if failed:
        raise TableError(f"{len(failed)} of the {len(TABLES[table])} columns failed: {'; '.join(failed)}", tables)
    if missing == len(TABLES[table]):
        raise TableError(f"none of the {missing} corpora of {table} was found, so nothing was trained", tables)
    return tables


def _column(column: Column, rows: Sequence[Row], plan: Plan, file: Path) -> str:
    """A column's table, after running the rows for which `file` has no result yet."""
    if not (folder := plan.experiments / column.settings).is_dir():
        raise MissingError("expected a folder of TOML files, one per row; there is none: see `experiments`", folder)
    if column.folds_of and plan.seeds > FOLDS:
        raise SettingError("seeds", f"{column.name} has {FOLDS} folds, each run with its own seed; got {plan.seeds}")
    check_rows(column, rows, plan)
    check_records(column, _records(file, plan), plan, file)
    _run_column(column, rows, plan, file)
    return results.markdown(column, _records(file, plan), preset=plan.preset)


def _records(file: Path, plan: Plan) -> list[results.Record]:
    return [record for record in results.load(file) if record["preset"] == plan.preset]


def _kept(file: Path, plan: Plan) -> set[tuple[str, int]]:
    return {(record["row"], record["seed"]) for record in _records(file, plan)}


def _run_column(column: Column, rows: Sequence[Row], plan: Plan, file: Path) -> None:
    """Run the rows and seeds for which `file` holds no result yet, after the language model."""
    kept = _kept(file, plan)
    wanted = [(row, seed) for seed in range(1, plan.seeds + 1) for row in rows]
    missing = [(row, seed) for row, seed in wanted if (row.name, seed) not in kept]
    if done := len(wanted) - len(missing):
        say(f"{column.name}: {done} of {len(wanted)} runs are in {file}, not trained again", quiet=plan.quiet)
    if missing:
        if column.folds_of:
            folds.make(column, plan)
        _read_first(column, missing, plan)
        _run_all(column, missing, plan, file)


def _read_first(column: Column, missing: Sequence[tuple[Row, int]], plan: Plan) -> None:
    """Train the language model if needed; of several commands, one trains it while the others wait."""
    config = reading_config(column, plan)
    folder = plan.out / column.name / "lm"
    if config is None:
        return

    def busy() -> None:
        say(f"{column.name}: another command is training the language model; waiting for it", quiet=plan.quiet)

    with locked(folder.with_name("lm.lock"), busy=busy):
        begun = (folder / run_folder.CONFIG).exists()
        if begun:
            check_settings(folder, config)
        else:
            _refuse_begun(column, missing, plan)
        if run_folder.finished(folder):
            return
        say(f"{column.name}: language model", quiet=plan.quiet)
        if pretrain(config, folder, resume=begun, quiet=plan.quiet)["stopped"]:
            raise KeyboardInterrupt
    release()


def _refuse_begun(column: Column, missing: Sequence[tuple[Row, int]], plan: Plan) -> None:
    """Refuse rows begun from a language model that is gone: they would pass for rows of the next one."""
    folders = (_folder(column, row, seed, plan) for row, seed in missing)
    if begun := [str(folder) for folder in folders if (folder / run_folder.CONFIG).exists()]:
        raise run_folder.RunError(
            f"{', '.join(begun)} started from a language model that is no longer in {plan.out / column.name / 'lm'}: "
            "restore it, choose another `out`, or delete these folders to train them again"
        )


def _run_all(column: Column, missing: list[tuple[Row, int]], plan: Plan, file: Path) -> None:
    """Run rows with their seeds, `jobs` at a time; each result is recorded as soon as it is ready."""
    if plan.jobs > 1:
        _side_by_side(column, missing, plan, file)
        return
    for row, seed in missing:
        if (row.name, seed) in _kept(file, plan):
            continue  # done by another command in the meantime
        name = f"{column.name}: {row.name}, seed {seed}"
        say(name, quiet=plan.quiet)
        _keep(name, partial(run_row, column, row, seed, plan), file, plan)


def _keep(name: str, run: Callable[[], results.Record], file: Path, plan: Plan) -> None:
    """Record the result of a row, or say why it is left out."""
    try:
        record = run()
    except (DivergedError, BusyError) as error:
        say(f"{name} left out: {error}")  # even if quiet
        return
    results.append(file, record)
    say(f"{name} done: {record['epochs']} epochs, {record['seconds']:.0f} s", quiet=plan.quiet)


def _side_by_side(column: Column, missing: list[tuple[Row, int]], plan: Plan, file: Path) -> None:
    """Run rows in separate processes; none waits in a queue, where Ctrl-C would not reach it."""
    # The longest first, so that none runs alone at the end.
    left = sorted(missing, key=lambda job: -_cost(job[0]))
    running: dict[Future[results.Record], tuple[Row, int, int]] = {}  # row, seed, jobs when it began
    jobs = min(plan.jobs, len(left))
    threads = max(1, (os.cpu_count() or 1) // jobs)
    with workers(jobs, threads=threads) as pool, progress(quiet=plan.quiet) as bars:
        bar = bars.add_task(column.name, total=len(left), unit="rows")
        while left or running:
            while left and len(running) < jobs:
                row, seed = left.pop(0)
                if (row.name, seed) in _kept(file, plan):
                    bars.advance(bar)  # done by another command in the meantime
                    continue
                running[pool.submit(stoppable, _row_beside_others, column, row, seed, plan)] = row, seed, jobs
            for done in wait(running, return_when=FIRST_COMPLETED).done if running else ():
                row, seed, crowd = running.pop(done)
                name = f"{column.name}: {row.name}, seed {seed}"
                try:
                    _keep(name, done.result, file, plan)
                    bars.advance(bar)
                except torch.OutOfMemoryError:
                    if crowd == 1:
                        raise
                    jobs = min(jobs, crowd - 1)
                    left.append((row, seed))
                    say(f"{name} ran out of memory beside the others; it continues later, {jobs} at a time")


def _cost(row: Row) -> int:
    """Forward passes of a row's method beyond the baseline's; those over unlabelled texts count for more."""
    return sum(m.recipe.forwards * (3 if m.recipe.objective == "kl" else 1) for m in parse_methods(row.name))
