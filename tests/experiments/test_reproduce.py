"""Tables: every TOML parses, a killed reproduction goes on without redoing rows, results give the page."""

import os
import re
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event, Semaphore
from typing import Any

import numpy as np
import pytest
import torch
from beside import started
from reviews import reviews, tagged, write_csv

from experiments import reproduce, results
from experiments.__main__ import COMMANDS, main
from experiments.column import ColumnRuns
from experiments.intervals import student
from experiments.paired import gain, pack_bits, unpack_bits
from experiments.settings import SMALL_TRAINING, Plan, reading_config, row_config
from experiments.tables import TABLES, Column, Row
from wordward.cli.main import main as wordward_command
from wordward.config.settings import TextSettings
from wordward.datasets import DataError, Example
from wordward.runs import run_folder
from wordward.runs.metrics import mcnemar
from wordward.support import files
from wordward.text.cache import encode_splits
from wordward.text.pack import write_pack
from wordward.train import training

ROOT = Path(__file__).parents[2]
SHORT = TextSettings(max_length=60, max_vocabulary=5000)  # of the budget cpu-small
COLUMNS = {column.name: column for table in TABLES.values() for column in table}
FOLDERS = sorted(path.name for path in (ROOT / "experiments").iterdir() if (path / "common.toml").exists())


@pytest.mark.parametrize("name", FOLDERS)
def test_every_row_has_a_toml_that_parses(name: str, tmp_path: Path) -> None:
    column = COLUMNS[name]
    for preset in ("paper", "cpu-small"):
        plan = Plan(ROOT / "experiments", tmp_path, preset)
        configs = [row_config(column, row, 3, plan) for row in column.rows]
        assert [config.method for config in configs] == [row.name for row in column.rows]
        assert {config.training.seed for config in configs} == {3}
        config = configs[0]
        reading = reading_config(column, plan)
        if reading is not None:
            assert (reading.model.dim, reading.model.hidden) == (config.model.dim, config.model.hidden)
            assert (reading.text, reading.corpus) == (config.text, config.data.corpus)
    found = {path.stem for path in (ROOT / "experiments" / name).glob("*.toml")}
    assert found - {"common", "pretrain"} == {row.name for row in column.rows}


def test_every_file_that_a_row_reads_is_documented() -> None:
    page = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    told = (path.read_text(encoding="utf-8") for path in (ROOT / "experiments").glob("*/*.toml"))
    files = {file for toml in told for file in re.findall(r'"([\w/.]+\.xz)"', toml)}
    assert len(files) > 5
    assert [file for file in sorted(files) if f"| `{file}` |" not in page] == []


def test_the_command_knows_every_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    with pytest.raises(SystemExit):
        main(["reproduce", "--help"])
    shown = capsys.readouterr().out
    assert "{" + ",".join(TABLES) + "}" in shown.replace("\n", "")
    assert shown.startswith("usage: python -m experiments reproduce [-h] [REPRODUCE OPTIONS] {imdb,")
    assert "[ROW ...]" in shown
    assert "(default: )" not in shown


def test_the_installed_command_leaves_the_tables_to_a_clone(capsys: pytest.CaptureFixture[str]) -> None:
    for name in COMMANDS:
        assert wordward_command([name]) == 2
        assert name in capsys.readouterr().err
    with pytest.raises(SystemExit):
        wordward_command(["--help"])
    shown = capsys.readouterr().out
    assert "• demo" in shown
    assert not any(f"• {name}" in shown for name in COMMANDS)


@pytest.fixture
def experiments(tmp_path: Path) -> Path:
    """The IMDB column in small, on sentences of ours."""
    folder = tmp_path / "experiments" / "imdb"
    folder.mkdir(parents=True)
    splits = {
        "train": reviews(60, 1),
        "dev": reviews(30, 2),
        "test": reviews(40, 3),
        "unlabelled": reviews(30, 4),
    }
    write_pack(tmp_path / "little.pack", encode_splits(splits, SHORT, quiet=True), SHORT, quiet=True)
    place = f'corpus = "{tmp_path / "little.pack"}"\nmax_length = 60\nmax_vocabulary = 5000\n'
    (folder / "common.toml").write_text(place)
    (folder / "pretrain.toml").write_text(place)
    for row in COLUMNS["imdb"].rows:
        (folder / f"{row.name}.toml").write_text(f'method = "{row.name}"\n')
    return tmp_path / "experiments"


def test_killed_reproduction_goes_on_without_redoing_rows(
    experiments: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan(experiments, tmp_path / "out", "cpu-small", seeds=2, device="cpu", quiet=True)
    wanted = ("baseline", "advt", "iadvt")
    trained: list[str] = []

    def train(config, folder, **options):
        if len(trained) == 3 and not done:
            raise ZeroDivisionError("power cut")
        trained.append(f"{config.method} {config.training.seed}")
        return training.train(config, folder, **options)

    done: list[str] = []
    monkeypatch.setattr("experiments.row.train", train)
    with pytest.raises(ZeroDivisionError):
        reproduce.reproduce("imdb", plan, rows=wanted, results_folder=tmp_path / "kept")
    done.append("killed")
    shown = reproduce.reproduce("imdb", plan, rows=wanted, results_folder=tmp_path / "kept")
    assert trained == ["baseline 1", "advt 1", "iadvt 1", "baseline 2", "advt 2", "iadvt 2"]
    assert "| Baseline | 7.05 |" in shown
    assert "iadvt against advt, seed 2" in shown
    assert "SA-LSTM (Dai and Le 2015) (cited by the paper) | 7.24" in shown
    records = results.load(tmp_path / "kept" / "imdb.jsonl")
    assert len(records) == 6
    for record in records:
        wrong = unpack_bits(record["wrong"], record["counted"])
        assert wrong.mean() == pytest.approx(record["test"]["value"])
        assert record["config"].startswith("method = ")
        assert record["versions"]["torch"]


@pytest.mark.parametrize("complete", range(12))
def test_killed_between_any_two_files(
    complete: int, experiments: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Language model and row go on wherever a power cut left their folders."""
    plan = Plan(experiments, tmp_path / "out", "cpu-small", device="cpu", quiet=True)
    put, count = files.put, 0

    def put_some(part: Path, path: Path) -> None:
        nonlocal count
        count += 1
        if count > complete:
            raise ZeroDivisionError("power cut")
        put(part, path)

    with monkeypatch.context() as patch:
        patch.setattr(files, "put", put_some)
        with pytest.raises(ZeroDivisionError):
            reproduce.reproduce("imdb", plan, rows=("baseline",), results_folder=tmp_path / "kept")
    reproduce.reproduce("imdb", plan, rows=("baseline",), results_folder=tmp_path / "kept")
    assert len(results.load(tmp_path / "kept" / "imdb.jsonl")) == 1


@pytest.mark.usefixtures("loaded_processes")
@pytest.mark.slow
def test_rows_side_by_side_give_the_same(experiments: Path, tmp_path: Path) -> None:
    tests = []
    for jobs in (1, 2):
        plan = Plan(experiments, tmp_path / f"out{jobs}", "cpu-small", device="cpu", jobs=jobs, quiet=True)
        reproduce.reproduce("imdb", plan, rows=("baseline", "ivat"), results_folder=tmp_path / f"kept{jobs}")
        tests.append([(r["row"], r["test"]) for r in results.load(tmp_path / f"kept{jobs}" / "imdb.jsonl")])
    assert tests[0] == tests[1]


def test_few_rows_share_all_cores(experiments: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight jobs for two rows are two, each with half of the cores."""
    asked: list[tuple[int, int]] = []

    def workers(count: int, *, threads: int) -> None:
        asked.append((count, threads))
        raise ZeroDivisionError("enough seen")

    monkeypatch.setattr("experiments.column.workers", workers)
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    plan = Plan(experiments, tmp_path / "out", "cpu-small", device="cpu", jobs=8, quiet=True)
    with pytest.raises(ZeroDivisionError):
        reproduce.reproduce("imdb", plan, rows=("baseline", "advt"), results_folder=tmp_path / "kept")
    assert asked == [(2, 8)]


def _invented(row: Row, plan: Plan) -> results.Record:
    told = {"column": "imdb", "preset": plan.preset, "row": row.name, "seed": 1, "epochs": 2, "seconds": 1.0}
    scored = {"criterion": "error", "dev": {"error": 0.5}, "test": {"value": 0.5, "low": 0.0, "high": 1.0}}
    return {**told, **scored, "counted": 1, "wrong": pack_bits([True]), "device": "cpu", "versions": {}}


def _in_threads(monkeypatch: pytest.MonkeyPatch, run_row: Callable[..., results.Record]) -> None:
    """Rows side by side, in threads of this process, by another `run_row`."""
    monkeypatch.setattr("experiments.column.run_row", run_row)
    monkeypatch.setattr(ColumnRuns, "_read_first", lambda *_: None)
    monkeypatch.setattr("experiments.column.workers", lambda jobs, threads: ThreadPoolExecutor(jobs))
    monkeypatch.setattr("experiments.column.stoppable", lambda work, *given: work(*given))


def test_a_row_that_finds_no_memory_goes_on_when_fewer_run(
    experiments: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A GPU with room for two rows, and three at a time: one of them waits, and from then on two are begun."""
    room, refused = Semaphore(2), []

    def run_row(column: Column, row: Row, seed: int, plan: Plan) -> results.Record:
        if not room.acquire(blocking=False):
            refused.append(row.name)
            raise torch.OutOfMemoryError("CUDA out of memory")
        time.sleep(0.3)
        room.release()
        return _invented(row, plan)

    _in_threads(monkeypatch, run_row)
    plan = Plan(experiments, tmp_path / "out", "cpu-small", device="cpu", jobs=3)
    rows = ("baseline", "random", "advt", "vat", "ivat")
    reproduce.reproduce("imdb", plan, rows=rows, results_folder=tmp_path / "kept")
    assert {record["row"] for record in results.load(tmp_path / "kept" / "imdb.jsonl")} == set(rows)
    told = f"{refused[0]}, seed 1 ran out of memory beside the others; it continues later, 2 at a time"
    assert told in capsys.readouterr().err
    assert len(refused) == 1


def test_a_row_that_finds_no_memory_though_it_is_alone_is_an_error(
    experiments: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = []

    def run_row(column: Column, row: Row, seed: int, plan: Plan) -> results.Record:
        begun.append(row.name)
        raise torch.OutOfMemoryError("CUDA out of memory")

    _in_threads(monkeypatch, run_row)
    plan = Plan(experiments, tmp_path / "out", "cpu-small", device="cpu", jobs=2, quiet=True)
    with pytest.raises(torch.OutOfMemoryError):
        reproduce.reproduce("imdb", plan, rows=("baseline", "advt"), results_folder=tmp_path / "kept")
    assert len(begun) == 3  # both, and one of them alone


def test_a_row_is_kept_when_it_is_done_though_one_before_it_is_not(
    experiments: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In threads, of which the one of ivat, the longest and so begun first, fails once advt is kept."""
    kept, begun = Event(), []

    def run_row(column: Column, row: Row, seed: int, plan: Plan) -> results.Record:
        begun.append(row.name)
        if row.name == "ivat":
            assert kept.wait(20), "advt was not kept while ivat was going on"
            raise ZeroDivisionError("power cut")
        return _invented(row, plan)

    def append(path: Path, record: results.Record) -> None:
        real(path, record)
        kept.set()

    real = results.append
    monkeypatch.setattr(results, "append", append)
    _in_threads(monkeypatch, run_row)
    plan = Plan(experiments, tmp_path / "out", "cpu-small", device="cpu", jobs=2, quiet=True)
    with pytest.raises(ZeroDivisionError):
        reproduce.reproduce("imdb", plan, rows=("advt", "ivat"), results_folder=tmp_path / "kept")
    assert begun == ["ivat", "advt"]
    assert [record["row"] for record in results.load(tmp_path / "kept" / "imdb.jsonl")] == ["advt"]


@pytest.mark.slow
def test_ctrl_c_stops_rows_side_by_side(experiments: Path, tmp_path: Path) -> None:
    """Those that run are stopped, and no other is begun; the same command goes on."""
    kept = tmp_path / "out" / "cpu-small" / "imdb.jsonl"
    command = ["reproduce", "imdb", "--preset", "cpu-small", "--jobs", "2", "--rows", "baseline", "advt"]
    command += ["--experiments", str(experiments), "--out", str(tmp_path / "out")]
    going = started("experiments.__main__", [*command, "--seeds", "200"], tmp_path / "said.txt")
    assert going.pid is not None
    while not kept.exists():
        assert going.is_alive()
        time.sleep(0.05)
    os.kill(going.pid, signal.SIGINT)
    try:
        going.join(timeout=60)
        assert going.exitcode == 130
    finally:
        going.kill()
    said = (tmp_path / "said.txt").read_text()
    assert "run the same command again to continue" in said
    # Python itself prints one if the signal comes while it calls back for a weak reference, and goes on.
    assert said.count("Traceback") == said.count("Exception ignored in")
    before = results.load(kept)
    assert len(before) < 100
    assert main([*command, "--seeds", "2"]) == 0
    after = results.load(kept)
    assert {(row, seed) for row in ("baseline", "advt") for seed in (1, 2)} <= {
        (record["row"], record["seed"]) for record in after
    }
    assert [record for record in after if record in before] == before


@pytest.mark.usefixtures("loaded_processes")
@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_row_that_diverges_is_left_out_and_the_others_go_on(
    jobs: int, experiments: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = experiments / "imdb" / "advt.toml"
    file.write_text(file.read_text() + "\n[perturbation]\nregularizer_weight = 1e39\n")
    plan = Plan(experiments, tmp_path / "out", "cpu-small", device="cpu", jobs=jobs, quiet=True)
    table = reproduce.reproduce("imdb", plan, rows=("advt", "baseline"), results_folder=tmp_path / "kept")
    assert "advt, seed 1 left out: the loss is not finite at step" in capsys.readouterr().err
    assert [record["row"] for record in results.load(tmp_path / "kept" / "imdb.jsonl")] == ["baseline"]
    assert "| AdvT-Text | 6.12 | – |" in table


@pytest.mark.parametrize(
    ("file", "change"), [("baseline.toml", "[training]\nbatch_size = 7\n"), ("pretrain.toml", "window = 7\n")]
)
def test_what_was_trained_with_other_settings_is_refused(
    file: str, change: str, experiments: Path, tmp_path: Path
) -> None:
    place, kept = experiments / "imdb", tmp_path / "kept" / "imdb.jsonl"
    sizes = "[model]\ndim = 8\nhidden = 8\n"
    (place / "common.toml").write_text((place / "common.toml").read_text() + f"{sizes}[training]\nepochs = 1\n")
    (place / "pretrain.toml").write_text(f"epochs = 1\n{(place / 'pretrain.toml').read_text()}{sizes}")
    plan = Plan(experiments, tmp_path / "out", device="cpu", quiet=True)
    for _ in range(2):
        reproduce.reproduce("imdb", plan, rows=("baseline",), results_folder=kept.parent)
        kept.unlink()
    before = (place / file).read_text()
    (place / file).write_text(change + before if file == "pretrain.toml" else before + change)
    setting = change.split()[-3]
    with pytest.raises(run_folder.RunError, match=rf"other settings \({setting} \d+, not 7\): choose another"):
        reproduce.reproduce("imdb", plan, rows=("baseline",), results_folder=kept.parent)


def test_what_is_recorded_is_said_and_not_trained(
    experiments: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a clone, whose records come with it: not even the language model is trained."""
    plan = Plan(experiments, tmp_path / "out", "cpu-small", device="cpu")
    first = reproduce.reproduce("imdb", plan, rows=("baseline",), results_folder=tmp_path / "kept")
    assert "not trained" not in capsys.readouterr().err
    for name in ("row.train", "column.pretrain"):
        monkeypatch.setattr(f"experiments.{name}", None)
    elsewhere = replace(plan, out=tmp_path / "elsewhere")
    again = reproduce.reproduce("imdb", elsewhere, rows=("baseline",), results_folder=tmp_path / "kept")
    assert again == first
    assert f"1 of 1 runs are in {tmp_path / 'kept' / 'imdb.jsonl'}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--rows", "advt", "iadvtt"), "expected rows of imdb (baseline, random, "),
        (("--seeds", "0"), "seeds must be a whole number, 1 or more, but is 0"),
        (("--jobs", "0"), "jobs must be a whole number, 1 or more, but is 0"),
    ],
)
def test_what_would_train_nothing_is_refused(
    flags: tuple[str, ...], said: str, experiments: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--experiments", str(experiments), "--out", str(tmp_path / "out"), "--preset", "cpu-small"]
    assert main(["reproduce", "imdb", *place, *flags]) == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_row_without_its_toml_is_not_trained_as_another(
    experiments: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (experiments / "imdb" / "vat.toml").unlink()
    place = ["--experiments", str(experiments), "--out", str(tmp_path / "out"), "--preset", "cpu-small"]
    assert main(["reproduce", "imdb", *place]) == 1
    assert f"missing: {experiments / 'imdb' / 'vat.toml'}: restore it" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_results_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["results", "--folder", str(tmp_path)]) == 1
    assert f"expected results as *.jsonl in {tmp_path}; found none" in capsys.readouterr().err
    whole = (ROOT / "experiments" / "results" / "imdb.jsonl").read_text(encoding="utf-8").split("\n")[0]
    for line in ('{"colu', '{"column": "imdb"}', "[1]", "\x85"):
        (tmp_path / "imdb.jsonl").write_text(f"{whole}\n{line}", encoding="latin-1")
        assert main(["results", "--folder", str(tmp_path)]) == 1
        assert "imdb.jsonl, line 2: expected a result as JSON" in capsys.readouterr().err


def test_results_page_agrees_with_the_records() -> None:
    page = ROOT / "docs" / "results.md"
    assert page.read_text(encoding="utf-8") == results.page(ROOT / "experiments" / "results") + "\n"


def test_interval_over_seeds_is_students(tmp_path: Path) -> None:
    record = {
        "column": "imdb",
        "preset": "paper",
        "seconds": 1.0,
        "criterion": "error",
        "dev": {"error": 0.075},
        "counted": 2,
        "wrong": pack_bits([False, True]),
        "device": "cpu",
        "versions": {},
    }
    for seed, value in enumerate((0.07, 0.08, 0.09), start=1):
        test = {"value": value, "low": 0.0, "high": 1.0}
        results.append(tmp_path / "imdb.jsonl", record | {"row": "baseline", "seed": seed, "test": test})
    shown = results.markdown(COLUMNS["imdb"], results.load(tmp_path / "imdb.jsonl"))
    half = 4.303 * 1.0 / np.sqrt(3)
    assert f"| 8.00 | {8 - half:.2f} to {8 + half:.2f} (seeds) | 3 | +0.95 | 7.50 | 1 |" in shown


@pytest.mark.parametrize(
    ("values", "interval"), [((0.02, 0.30), "0.00 to 100.00"), ((0.97, 0.99), "85.29 to 100.00")]
)
def test_interval_over_seeds_is_within_what_a_share_can_be(
    values: tuple[float, ...], interval: str, tmp_path: Path
) -> None:
    file = tmp_path / "fce.jsonl"
    for seed, value in enumerate(values, start=1):
        told = {"column": "fce", "row": "advt", "preset": "paper", "seed": seed, "seconds": 1.0}
        told |= {"criterion": "f0.5", "dev": {"f0.5": value}, "device": "cpu", "versions": {}}
        told |= {"counted": 1, "wrong": pack_bits([True])}
        results.append(file, told | {"test": {"value": value, "low": 0.0, "high": 1.0}})
    assert f"| {interval} (seeds) | 2 |" in results.markdown(COLUMNS["fce"], results.load(file))


def of_row(row: str, seed: int, wrong: list[bool], criterion: str = "error") -> dict[str, Any]:
    """What a comparison takes of a record."""
    value = sum(wrong) / len(wrong)
    told = {"row": row, "seed": seed, "criterion": criterion, "test": {"value": value}}
    return {**told, "counted": len(wrong), "wrong": pack_bits(wrong)}


def test_gains_are_paired_by_seed() -> None:
    """By hand: 10 and 30 points over the baseline of the same seed, whatever its third seed does."""
    ten = [[n < wrong for n in range(10)] for wrong in range(11)]
    records = [of_row("baseline", seed, ten[wrong]) for seed, wrong in ((1, 5), (2, 7), (3, 1))]
    records += [of_row("advt", 1, ten[4]), of_row("advt", 2, ten[4]), of_row("advt", 4, ten[9])]
    assert gain("baseline", records) == gain("vat", records) == ""
    assert gain("advt", records) == "+20.00 (-107.06 to +147.06)"  # 12.706 * 10 around it, as Student's t says
    assert gain("advt", [{**each, "criterion": "f0.5"} for each in records]).startswith("-20.00 (")


def test_a_gain_of_one_seed_has_the_interval_of_its_texts() -> None:
    """Against resampled texts."""
    rng = np.random.default_rng(0)
    base = rng.random(400) < 0.3
    ours = np.where(rng.random(400) < 0.1, ~base, base)
    records = [of_row("baseline", 1, base.tolist()), of_row("advt", 1, ours.tolist())]
    drawn = rng.integers(0, 400, (4000, 400))
    low, high = np.quantile((base[drawn].mean(1) - ours[drawn].mean(1)) * 100, (0.025, 0.975))
    found = [float(number) for number in re.findall(r"[+-][\d.]+", gain("advt", records))]
    assert found[0] == pytest.approx(100 * (base.mean() - ours.mean()), abs=0.01)
    assert found[1:] == pytest.approx([low, high], abs=0.4)
    unknown = [{**each, "criterion": "f0.5"} for each in records]  # which words made it is not in the record
    assert "(" not in gain("advt", unknown)


@pytest.mark.parametrize(("freedom", "point"), [(1, 12.706), (9, 2.262), (10, 2.228), (14, 2.145), (30, 2.042)])
def test_students_t_against_the_table(freedom: int, point: float) -> None:
    assert student(freedom) == pytest.approx(point, abs=0.003)


def test_small_runs_are_not_on_the_page(tmp_path: Path) -> None:
    record = {
        "column": "imdb",
        "row": "advt",
        "seed": 1,
        "seconds": 1.0,
        "criterion": "error",
        "device": "cpu",
    }
    record |= {
        "dev": {"error": 0.1},
        "counted": 1,
        "wrong": pack_bits([True]),
        "versions": {"torch": "2"},
    }
    for preset, value in (("cpu-small", 0.4), ("paper", 0.0625)):
        test = {"value": value, "low": 0.0, "high": 1.0}
        results.append(tmp_path / "results" / "imdb.jsonl", record | {"preset": preset, "test": test})
    (row,) = [line for line in results.page(tmp_path / "results").splitlines() if "| 6.25 |" in line]
    assert "| 0.00 to 100.00 (test texts) | 1 |" in row


def test_rows_are_paired_text_by_text_and_seed_by_seed() -> None:
    """Nine texts: iAdvT alone errs on one, AdvT alone on six, both on the last; a seed of one row has no pair."""
    wrong = {"iadvt": [True] + [False] * 7 + [True], "advt": [False, *[True] * 6, False, True]}
    record = {"seconds": 1.0, "criterion": "error", "dev": {"error": 0.1}, "counted": 9}
    record |= {"test": {"value": 0.1, "low": 0.0, "high": 1.0}}
    records = [
        record | {"row": row, "seed": seed, "wrong": pack_bits(wrong[row])}
        for row, seed in (("advt", 1), ("iadvt", 2), ("advt", 2), ("iadvt", 3))
    ]
    pairs = [line for line in results.markdown(COLUMNS["imdb"], records).splitlines() if "against" in line]
    told = "- iadvt against advt, seed 2: only iadvt wrong on 1, only advt on 6; McNemar p = 0.125"
    assert pairs == [told]  # 2 (1 + 7) / 2^7


def test_mcnemar_by_hand() -> None:
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(5, 5) == 1.0
    assert mcnemar(0, 4) == pytest.approx(2 / 16)
    assert mcnemar(10, 2) == pytest.approx(2 * (1 + 12 + 66) / 4096)
    assert mcnemar(2, 10) == mcnemar(10, 2)
    assert mcnemar(1500, 1700) < 0.001


def test_tagged_corpora_reproduce_too(tmp_path: Path) -> None:
    folder = tmp_path / "experiments" / "fce"
    folder.mkdir(parents=True)
    splits = {"train": tagged(60, 1), "dev": tagged(20, 2), "test": tagged(30, 3), "unlabelled": []}
    write_pack(tmp_path / "tags.pack", encode_splits(splits, SHORT, quiet=True), SHORT, quiet=True)
    (folder / "common.toml").write_text(f'corpus = "{tmp_path / "tags.pack"}"\npositive = "i"\n')
    (folder / "vat.toml").write_text('method = "vat"\n')
    plan = Plan(tmp_path / "experiments", tmp_path / "out", "cpu-small", device="cpu", quiet=True)
    reproduce.reproduce("fce", plan, rows=("vat",), results_folder=tmp_path / "kept")
    (record,) = results.load(tmp_path / "kept" / "fce.jsonl")
    assert record["criterion"] == "f0.5"
    assert record["counted"] == sum(len(example.tags or ()) for example in splits["test"])


@pytest.mark.parametrize(
    ("limit", "names"), [(300, ("train", "test")), (5, ("train", "dev", "test"))], ids=["room", "no room"]
)
def test_rare_labels_outlive_the_limit_of_the_small_preset(
    limit: int, names: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels of a few texts among thousands, of which a plain draw leaves none to learn from."""
    monkeypatch.setitem(SMALL_TRAINING, "limit", limit)
    folder = tmp_path / "experiments" / "r52"
    folder.mkdir(parents=True)
    names_of_few = ("rye", "tin", "zinc", "lead", "tea")
    rare, more = (
        [Example(f"a word on the {name} was {said}", name) for name in names_of_few] for said in ("said", "lost")
    )
    write_csv(tmp_path / "train.csv", [*dict.fromkeys(reviews(3000, 1)), *rare, *more])  # no text twice
    write_csv(tmp_path / "dev.csv", rare)
    write_csv(tmp_path / "test.csv", [*reviews(20, 2), *rare])
    files = (f'{name} = "{tmp_path / name}.csv"\n' for name in names)
    (folder / "common.toml").write_text("".join(files))
    (folder / "baseline.toml").write_text('method = "baseline"\n')
    plan = Plan(tmp_path / "experiments", tmp_path / "out", "cpu-small", device="cpu", quiet=True)
    shown = reproduce.reproduce("elec-rcv1-rotten", plan, rows=("baseline",), results_folder=tmp_path / "kept")
    assert shown.count("not found") == shown.count("expected a folder of TOML files")
    (record,) = results.load(tmp_path / "kept" / "r52.jsonl")
    learnt = record["texts"]["train"] + (0 if "dev" in names else record["texts"]["dev"])
    assert learnt == limit
    assert record["counted"] == min(limit, 25)
    run = tmp_path / "out" / "r52" / "baseline" / "seed-1"
    assert run_folder.load_labels(run) == ("bad", "good", "lead", "rye", "tea", "tin", "zinc")


def test_missing_corpora_are_named_and_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORDWARD_DATA", str(tmp_path / "nothing"))
    plan = Plan(ROOT / "experiments", tmp_path / "out", "cpu-small", device="cpu")
    with pytest.raises(reproduce.TableError, match="none of the 5 corpora of elec-rcv1-rotten") as none:
        reproduce.reproduce("elec-rcv1-rotten", plan, results_folder=tmp_path / "kept")
    shown = none.value.shown
    assert shown.count("not found") == 5
    assert "elec was not found and is skipped" in capsys.readouterr().err  # said at once, too
    assert "wordward data fetch elec" in shown
    assert f"none of this name here or in the data folder, {tmp_path / 'nothing'}" in shown
    with pytest.raises(DataError, match="wordward data fetch imdb"):
        reproduce.reproduce("imdb", plan, results_folder=tmp_path / "kept")


def test_hugging_face_rows_are_scored_and_attacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a tiny model of the same name in the data folder, on sentences of ours in Rotten Tomatoes' layout."""
    hf_tiny = pytest.importorskip("hf_tiny", reason="needs pip install 'wordward[hf]'")
    hf_tiny.saved(tmp_path / "data" / "sentence-transformers" / "all-MiniLM-L6-v2")
    corpus = tmp_path / "data" / "rotten_tomatoes"
    corpus.mkdir()
    for label, name in (("good", "pos"), ("bad", "neg")):
        texts = [example.text for example in reviews(200, 5) if example.label == label]
        (corpus / f"rt-polarity.{name}").write_text("\n".join(texts) + "\n")
    monkeypatch.setenv("WORDWARD_DATA", str(tmp_path / "data"))
    plan = Plan(ROOT / "experiments", tmp_path / "out", "cpu-small", device="cpu", quiet=True)
    shown = reproduce.reproduce("minilm", plan, rows=("baseline", "iadvt"), results_folder=tmp_path / "kept")
    records = results.load(tmp_path / "kept" / "minilm_rotten_tomatoes.jsonl")
    assert [record["row"] for record in records] == ["baseline", "iadvt"]
    for record in records:
        wrong = unpack_bits(record["wrong"], record["counted"])
        assert wrong.mean() == pytest.approx(record["test"]["value"])
        assert record["attacked"]["texts"] == record["counted"]
        right = 1 - record["test"]["value"] + 1e-9
        for sense in ("any", "kept"):
            values = [right, *(record["attacked"][sense][str(swaps)] for swaps in (1, 2, 4, 8))]
            assert values == sorted(values, reverse=True)
        assert record["attacked"]["any"]["8"] <= record["attacked"]["kept"]["8"]
        assert 'transformer = "sentence-transformers/all-MiniLM-L6-v2"' in record["config"]
    low = 100 * records[0]["attacked"]["any"]["8"]
    assert f"| {low:.1f} ± " in shown.partition("| method | any, 1 | any, 2 |")[2]
    assert "slice of IMDB, test error (%)\n\nnot found" in shown


def rows_of_readme(head: str) -> list[list[str]]:
    """The cells of the table whose first line ends so."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = readme.partition(head)[2].partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows if row.startswith("| ")]


def test_the_readme_shows_what_the_records_say() -> None:
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    section = page.partition("### all-MiniLM-L6-v2 on a slice of IMDB")[2]
    told, after_four = {}, 0
    for line in section.partition("###")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 9 and "(seeds)" in line:
            told[cells[0]] = [f"{cells[2]} ({cells[3].removesuffix(' (seeds)')})"]
        elif "any, 4" in cells:
            after_four = cells.index("any, 4")
        elif len(cells) > 2 and cells[0] in told:
            told[cells[0]].append(cells[after_four])
    shown = rows_of_readme("accuracy under 4 swaps (%) |")
    assert len(shown) == 3
    for name, *cells in shown:
        assert cells == told[name]


def test_so_does_its_table_of_the_papers_lstm() -> None:
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    section = page.partition("### IMDB, test error")[2].partition("###")[0]
    told: dict[str, list[str]] = {}
    columns: list[int] = []
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 9 and cells[0] != "method":
            told[cells[0]] = [cells[1], cells[2], cells[4], "", ""]
        elif "any, 8" in cells:
            columns = [cells.index("any, 8"), cells.index("kept, 8")]
        elif columns and len(cells) == 10 and cells[0] in told:
            told[cells[0]][3:] = [cells[at].partition(" ")[0] for at in columns]
    shown = rows_of_readme("| that keep the sense |")
    assert len(shown) == 5
    for name, *cells in shown:
        assert cells == told[name]
