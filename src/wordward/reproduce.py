"""Reproduce a table of the paper: pre-train once, train its rows, score them on test, keep the results."""

import json
import os
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import tyro

from wordward import results, run_folder
from wordward.attack import attack
from wordward.attacks.attacked import AttackSettings
from wordward.attacks.robustness import accuracies
from wordward.config import PRESETS, PretrainConfig, TrainConfig
from wordward.console import progress, say
from wordward.corpus import Corpus
from wordward.datasets import DataError
from wordward.distributed import refuse_several
from wordward.predict import Run, load_run
from wordward.prepare import read_as, split_examples
from wordward.pretrain import pretrain
from wordward.recipes import parse_methods
from wordward.scoring import probabilities, scores
from wordward.tables import TABLES, Column, Row
from wordward.toml import flags, flags_of
from wordward.train import DivergedError, train
from wordward.workers import stoppable, workers

Config = TypeVar("Config", TrainConfig, PretrainConfig)
COMMON, READING = "common.toml", "pretrain.toml"

# The overrides of --preset cpu-small: everything runs, in minutes, on two cores.
_SMALL: dict[str, Any] = {"limit": 300, "max_length": 60, "precision": "fp32"}
SMALL_READING = _SMALL | {"dim": 32, "hidden": 32, "epochs": 1, "streams": 8}
SMALL_TRAINING = _SMALL | {"dim": 32, "hidden": 32, "head": PRESETS["small"]["head"], "vectors": "None"}
SMALL_TRAINING |= {"epochs": 2, "batch_size": 16, "unlabelled_batch_size": 16}
SMALL_FINE_TUNING = _SMALL | {"limit": 64, "max_length": 32, "epochs": 1}


@dataclass(frozen=True)
class Plan:
    """Where things are and how large they are to be."""

    experiments: Path
    out: Path
    preset: str = "paper"  # or cpu-small
    seeds: int = 1
    device: str = "auto"
    jobs: int = 1
    quiet: bool = False

    def __post_init__(self) -> None:
        for name in ("seeds", "jobs"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, but is {getattr(self, name)}")


def config_of(kind: type[Config], *files: Path, **settings: Any) -> Config:
    """A config from TOML files, later ones over earlier ones, and single settings over all."""
    arguments = [flag for file in files if file.exists() for flag in flags(file, kind)]
    arguments += flags_of(settings, kind, source="reproduce")
    return tyro.cli(kind, args=arguments, config=(tyro.conf.OmitArgPrefixes,))


def row_config(column: Column, row: Row, seed: int, plan: Plan) -> TrainConfig:
    """What one row of a column trains with one seed."""
    folder = plan.experiments / column.name
    files = folder / COMMON, folder / f"{row.name}.toml"
    settings: dict[str, Any] = {"seed": seed, "device": plan.device}
    if (folder / READING).exists():
        settings["pretrained"] = str(plan.out / column.name / "lm")
    if plan.preset == "cpu-small":
        settings |= SMALL_FINE_TUNING if config_of(TrainConfig, *files).transformer else SMALL_TRAINING
    return config_of(TrainConfig, *files, **settings)


def reading_config(column: Column, plan: Plan) -> PretrainConfig | None:
    """What the column's language model trains with; None where it starts from word vectors."""
    folder = plan.experiments / column.name
    if not (folder / READING).exists():
        return None
    settings = SMALL_READING if plan.preset == "cpu-small" else {}
    return config_of(PretrainConfig, folder / READING, device=plan.device, **settings)


def run_row(column: Column, row: Row, seed: int, plan: Plan) -> results.Record:
    """Train one row (or take it up where it stopped) and score it on test."""
    config = row_config(column, row, seed, plan)
    folder = plan.out / column.name / row.name / f"seed-{seed}"
    done = folder / run_folder.RESULT
    going = (folder / run_folder.CONFIG).exists()
    if going:
        run_folder.check_settings(folder, config)
    result = json.loads(done.read_text(encoding="utf-8")) if done.exists() else None
    if result is None or result["stopped"]:
        result = train(config, folder, resume=going, quiet=plan.quiet or plan.jobs > 1)
        if result["stopped"]:
            raise KeyboardInterrupt
    run = load_run(folder, device=plan.device)
    corpus = test_corpus(run)
    assert corpus.labels is not None
    found = probabilities(run.model, corpus, run.device)
    measured = scores(corpus, found, len(run.labels), positive=run.positive)[run.config.training.criterion]
    wrong = np.concatenate(
        [
            np.atleast_1d(chance.argmax(-1) != label)
            for chance, label in zip(found, corpus.labels, strict=True)
        ]
    )
    return {
        "column": column.name,
        "row": row.name,
        "preset": plan.preset,
        **result,
        "test": measured._asdict(),
        "counted": len(wrong),
        "wrong": results.pack_bits(wrong),
        "config": run_folder.config_text(folder),
        **({"attacked": under_attack(run, column.attacked)} if column.attacked else {}),
    }


def test_corpus(run: Run) -> Corpus:
    """The test texts of the corpus, or of the file that the settings name."""
    data = run.config.data
    if data.corpus:
        return run.split("test", limit=data.limit)
    if not data.test:
        raise ValueError(f"{run.folder} names no test texts: set `test` in {COMMON}")
    examples = read_as(data, data.test)
    return run.encode(examples, labelled=True, source=data.test)


def under_attack(run: Run, count: int) -> dict[str, Any]:
    """Accuracy on some of the test texts, always the same, after a few swaps of words."""
    examples = split_examples(run.config.data, "test")
    chosen = np.sort(np.random.default_rng(0).permutation(len(examples))[:count])
    attacked = list(attack(run, [examples[at] for at in chosen], AttackSettings(max_swaps=results.SWAPS)))
    accuracy = accuracies(attacked, [results.SWAPS])[results.SWAPS]
    return {"texts": len(attacked), "swaps": results.SWAPS, "accuracy": accuracy.value}


def reproduce(
    table: str, plan: Plan, *, rows: Sequence[str] = (), results_folder: Path = Path("experiments/results")
) -> str:
    """Run what is missing of a table and give it as Markdown, ours beside the paper's."""
    refuse_several("reproducing a table")
    if table not in TABLES:
        raise ValueError(f"expected a table among {', '.join(TABLES)}; got {table!r}")
    known = dict.fromkeys(row.name for column in TABLES[table] for row in column.rows)
    if unknown := [row for row in rows if row not in known]:
        raise ValueError(f"expected rows of {table} ({', '.join(known)}); got {', '.join(unknown)}")
    if not plan.experiments.is_dir():
        raise ValueError(f"{plan.experiments} holds no experiments: run this in a clone of wordward")
    shown = []
    for column in TABLES[table]:
        if not (plan.experiments / column.name).is_dir():
            shown.append(f"### {column.title}\n\nnot set up: no {plan.experiments / column.name}\n")
            continue
        wanted = [row for row in column.rows if not rows or row.name in rows]
        file = results_folder / f"{column.name}.jsonl"
        try:
            _run_column(column, wanted, plan, file)
        except DataError as error:
            if len(TABLES[table]) == 1:
                raise
            shown.append(f"### {column.title}\n\nnot at hand: {error}\n")
            continue
        except KeyboardInterrupt:
            say("the same command goes on where this one was stopped", quiet=plan.quiet)
            raise
        records = [record for record in results.load(file) if record["preset"] == plan.preset]
        shown.append(results.markdown(column, records))
    return "\n".join(shown)


def _run_column(column: Column, rows: Sequence[Row], plan: Plan, file: Path) -> None:
    """The rows and seeds of which `file` holds no result yet, the language model before them."""
    kept = {
        (record["row"], record["seed"]) for record in results.load(file) if record["preset"] == plan.preset
    }
    wanted = [(row, seed) for seed in range(1, plan.seeds + 1) for row in rows]
    missing = [(row, seed) for row, seed in wanted if (row.name, seed) not in kept]
    if found := len(wanted) - len(missing):
        say(
            f"{column.name}: {found} of {len(wanted)} runs are in {file}, not trained again", quiet=plan.quiet
        )
    if missing:
        _read_first(column, plan)
        _run_all(column, missing, plan, file)


def _read_first(column: Column, plan: Plan) -> None:
    config = reading_config(column, plan)
    folder = plan.out / column.name / "lm"
    if config is None:
        return
    done, going = folder / run_folder.RESULT, (folder / run_folder.CONFIG).exists()
    if going:
        run_folder.check_settings(folder, config)
    if done.exists() and not json.loads(done.read_text(encoding="utf-8"))["stopped"]:
        return
    say(f"{column.name}: language model", quiet=plan.quiet)
    if pretrain(config, folder, resume=going, quiet=plan.quiet)["stopped"]:
        raise KeyboardInterrupt


def _run_all(column: Column, missing: list[tuple[Row, int]], plan: Plan, file: Path) -> None:
    """Rows with their seeds, `jobs` at a time; each result is kept as soon as it is there."""
    if plan.jobs == 1:
        for row, seed in missing:
            say(f"{column.name}: {row.name}, seed {seed}", quiet=plan.quiet)
            try:
                results.append(file, run_row(column, row, seed, plan))
            except DivergedError as error:
                say(f"{column.name}: {row.name}, seed {seed} left out: {error}")  # an error: also where quiet
        return
    _side_by_side(column, missing, plan, file)


def _side_by_side(column: Column, missing: list[tuple[Row, int]], plan: Plan, file: Path) -> None:
    """Rows in processes of their own; none waits in a queue, where Ctrl-C would not reach it."""
    # The longest first, so that none is left alone at the end.
    left = sorted(missing, key=lambda job: -_cost(job[0]))
    running: dict[Future[results.Record], tuple[Row, int]] = {}
    threads = max(1, (os.cpu_count() or 1) // plan.jobs)
    with workers(plan.jobs, threads=threads) as pool, progress(quiet=plan.quiet) as bars:
        bar = bars.add_task(column.name, total=len(left), unit="rows")
        while left or running:
            while left and len(running) < plan.jobs:
                row, seed = left.pop(0)
                running[pool.submit(stoppable, run_row, column, row, seed, plan)] = row, seed
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                row, seed = running.pop(done)
                bars.advance(bar)
                try:
                    record = done.result()
                except DivergedError as error:
                    say(f"{column.name}: {row.name}, seed {seed} left out: {error}")
                    continue
                results.append(file, record)
                taken = f"{record['epochs']} epochs, {record['seconds']:.0f} s"
                say(f"{column.name}: {row.name}, seed {seed} done: {taken}", quiet=plan.quiet)


def _cost(row: Row) -> int:
    """Forward passes of a row's method beyond the baseline's, those over unlabelled texts counted as more."""
    return sum(m.recipe.forwards * (3 if m.recipe.objective == "kl" else 1) for m in parse_methods(row.name))
