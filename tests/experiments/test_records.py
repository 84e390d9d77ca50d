"""Records of reproduced rows: their settings are those of the TOML files, and several commands add to them."""

import errno
import io
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from beside import started
from reviews import reviews
from rich.console import Console

from experiments import reproduce, results, settings
from experiments.__main__ import main
from experiments.paired import pack_bits
from experiments.row import run_row
from experiments.settings import Plan
from experiments.tables import TABLES
from wordward.config.settings import TextSettings, TrainConfig
from wordward.runs import run_folder
from wordward.support import locks
from wordward.text.cache import encode_splits
from wordward.text.loading import labelled_examples
from wordward.text.pack import write_pack

ROOT = Path(__file__).parents[2]
COLUMNS = {column.name: column for table in TABLES.values() for column in table}
RECORDED = sorted((ROOT / "experiments" / "results").glob("*.jsonl"))
RECORD = {
    "column": "imdb",
    "preset": "paper",
    "row": "baseline",
    "seed": 1,
    "seconds": 1.0,
    "criterion": "error",
    "dev": {"error": 0.5},
    "test": {"value": 0.5, "low": 0.0, "high": 1.0},
    "counted": 2,
    "wrong": pack_bits([False, True]),
    "device": "cpu",
    "versions": {"torch": "2"},
}


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """The baseline of the IMDB column in small, on sentences of ours."""
    folder = tmp_path / "experiments" / "imdb"
    folder.mkdir(parents=True)
    read = TextSettings()
    texts = {name: reviews(40, seed) for seed, name in enumerate(("train", "dev", "test", "unlabelled"))}
    write_pack(tmp_path / "little.pack", encode_splits(texts, read, quiet=True), read, quiet=True)
    sizes = "[model]\ndim = 8\nhidden = 8\n"
    place = f'epochs = 1\ncorpus = "{tmp_path / "little.pack"}"\n{sizes}'
    (folder / "common.toml").write_text(place)
    (folder / "pretrain.toml").write_text(place)
    (folder / "baseline.toml").write_text('method = "baseline"\n')
    return Plan(tmp_path / "experiments", tmp_path / "out", device="cpu", quiet=True)


def run(plan: Plan) -> list[results.Record]:
    kept = plan.experiments / "results"
    reproduce.reproduce("imdb", plan, rows=("baseline",), results_folder=kept)
    return results.load(kept / "imdb.jsonl")


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
@pytest.mark.parametrize("place", ["runs/reproduce/paper", "elsewhere"])
def test_every_record_has_the_settings_of_its_toml(file: Path, place: str) -> None:
    plan = Plan(ROOT / "experiments", Path(place), device="cpu")
    assert RECORDED
    settings.check_records(COLUMNS[file.stem], results.load(file), plan, file)


@pytest.mark.parametrize(
    ("file", "change", "told"),
    [
        ("common.toml", "learning_rate = 0.25\n", r"\(learning_rate 0.001, not 0.25\)"),
        ("baseline.toml", "batch_size = 7\n", r"\(batch_size 32, not 7\)"),
        ("pretrain.toml", "window = 7\n", r"\(of the language model: window 100, not 7\)"),
    ],
)
def test_records_of_other_settings_are_refused(plan: Plan, file: str, change: str, told: str) -> None:
    """Also where only other seeds are to be trained: one table has one language model."""
    run(plan)
    changed = plan.experiments / "imdb" / file
    changed.write_text(change + changed.read_text())
    for seeds in (1, 2):
        with pytest.raises(run_folder.RunError, match=rf"baseline, seed 1, .*{told}: restore the settings"):
            run(replace(plan, seeds=seeds, out=plan.out / "other"))


def test_what_changes_no_result_may_differ(plan: Plan) -> None:
    """Device, places of the corpus and the language model; a setting that a record is too old to know."""
    file = plan.experiments / "results" / "imdb.jsonl"
    (record,) = run(plan)
    kept = record["language_model"]
    assert kept["perplexity"] > 1
    assert {"dim": 8, "hidden": 8, "epochs": 1}.items() <= kept["settings"].items()
    lines = record["config"].splitlines()
    older = [line for line in lines if not line.startswith(("averaging", "rescaled"))]
    older = ['corpus = "imdb"' if line.startswith("corpus") else line for line in older]
    older = ['device = "cuda"' if line.startswith("device") else line for line in older]
    assert len(older) == len(lines) - 2
    record["config"] = "\n".join(older) + "\n"
    del record["language_model"]
    file.write_text(json.dumps(record) + "\n")
    assert run(replace(plan, out=plan.out / "other")) == [record]


@pytest.mark.parametrize("quiet", [True, False])
def test_a_quiet_table_draws_no_bars(plan: Plan, quiet: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a row that is trained beside others, in a process of its own."""
    screen = io.StringIO()
    monkeypatch.setattr("wordward.support.console.console", Console(file=screen, force_terminal=True))
    run(replace(plan, quiet=quiet))
    assert ("scoring" in screen.getvalue()) != quiet
    if not quiet:
        screen.truncate(0)
        (row,) = COLUMNS["imdb"].rows[:1]
        run_row(COLUMNS["imdb"], row, 2, replace(plan, quiet=False, jobs=2))
        assert "scoring" not in screen.getvalue()


@pytest.mark.parametrize("table", ["imdb", "dbpedia"])  # of one column, and of two
def test_a_folder_without_the_experiments_of_a_table_is_no_success(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", table, "--experiments", str(tmp_path), "--out", str(tmp_path / "out")]) == 1
    shown = capsys.readouterr()
    told = f"{tmp_path / table}: expected a folder of TOML files, one per row; there is none: see --experiments"
    assert told in shown.out + shown.err


def test_rows_begun_from_a_language_model_that_is_gone_are_refused(plan: Plan) -> None:
    run(plan)
    (plan.experiments / "results" / "imdb.jsonl").unlink()
    (plan.out / "imdb" / "lm").rename(plan.out / "moved")
    with pytest.raises(run_folder.RunError, match="seed-1 started from a language model that is no longer"):
        run(plan)
    (plan.out / "moved").rename(plan.out / "imdb" / "lm")
    assert len(run(plan)) == 1


def test_records_appended_at_once_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "kept" / "imdb.jsonl"
    record = RECORD | {"filling": "a word " * 2000}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda seed: results.append(path, record | {"seed": seed}), range(40)))
    assert [found["seed"] for found in results.load(path)] == list(range(40))
    assert [file.name for file in path.parent.iterdir()] == ["imdb.jsonl"]


@pytest.mark.parametrize("field", sorted(RECORD))
def test_a_record_without_what_the_tables_tell_is_refused(field: str, tmp_path: Path) -> None:
    path = tmp_path / "imdb.jsonl"
    cut = {name: value for name, value in RECORD.items() if name != field}
    path.write_text(f"{json.dumps(RECORD)}\r\n\r\n{json.dumps(cut)}\n")
    with pytest.raises(ValueError, match=rf"imdb\.jsonl, line 3: expected a result .* no {field}: delete the line"):
        results.load(path)


@pytest.mark.parametrize("wrong", ["", "AAAA", 5, "?"])
def test_a_record_with_other_bits_than_it_counts_is_refused(wrong: object, tmp_path: Path) -> None:
    path = tmp_path / "imdb.jsonl"
    path.write_text(json.dumps(RECORD | {"wrong": wrong}))
    with pytest.raises(ValueError, match=r"imdb\.jsonl, line 1: expected a result as JSON; got: "):
        results.load(path)


@pytest.mark.parametrize(
    "damage",
    [
        {"test": {}},
        {"test": {"value": None, "low": 0, "high": 1}},
        {"test": 0.5},
        {"dev": {"f0.5": 0.5}},
        {"dev": None},
        {"seconds": "1"},
    ],
)
def test_a_record_without_its_numbers_is_refused(damage: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "imdb.jsonl"
    path.write_text(f"{json.dumps(RECORD)}\n{json.dumps(RECORD | {'seed': 2} | damage)}\n")
    with pytest.raises(ValueError, match=r"imdb\.jsonl, line 2: expected a result as JSON; got: "):
        results.load(path)


def test_a_record_that_stands_twice_is_no_second_seed(tmp_path: Path) -> None:
    path = tmp_path / "imdb.jsonl"
    lines = [json.dumps(each) for each in (RECORD, RECORD | {"seed": 2}, RECORD | {"seconds": 2.0})]
    path.write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"line 3: expected one result of baseline, seed 1; got a second one"):
        results.load(path)


def test_a_full_disk_leaves_the_former_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "imdb.jsonl"
    results.append(path, RECORD)
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ValueError, match=r"imdb\.jsonl: expected a file .* No space left on device: free some"):
        results.append(path, RECORD | {"seed": 2})
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["imdb.jsonl"]


@pytest.mark.parametrize("started", [{}, {"settings": 3}, {"settings": {"texts": None}}, None])
def test_a_record_whose_language_model_cannot_be_read_is_refused(plan: Plan, started: object) -> None:
    (record,) = run(plan)
    record["language_model"] = started
    (plan.experiments / "results" / "imdb.jsonl").write_text(json.dumps(record))
    with pytest.raises(run_folder.RunError, match="of the language model: which cannot be read"):
        run(plan)


@pytest.mark.parametrize("name", ["lm", "baseline/seed-1"])
@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"stopped'])
def test_a_damaged_result_is_named_and_may_be_deleted(plan: Plan, name: str, content: str) -> None:
    (record,) = run(plan)
    (plan.experiments / "results" / "imdb.jsonl").unlink()
    file = plan.out / "imdb" / name / "result.json"
    file.write_text(content)
    with pytest.raises(run_folder.RunError, match=rf"{name}.result\.json cannot be read: .*: delete it and run"):
        run(plan)
    file.unlink()
    (again,) = run(plan)
    assert again["test"] == record["test"]


def test_a_killed_process_lets_go_of_its_lock(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from wordward.support.locks import locked\n"
        "with locked(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    path = tmp_path / "a.lock"
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        waited = []

        def busy() -> None:
            waited.append(path.exists())
            holder.kill()
            holder.wait()

        with locks.locked(path, busy=busy):
            assert waited == [True]
    assert not path.exists()


def test_a_row_of_another_command_is_left_to_it(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    with locks.locked(plan.out / "imdb" / "baseline" / "seed-1.lock"):
        assert run(plan) == []
    assert "baseline, seed 1 left out: another command is training it" in capsys.readouterr().err
    assert len(run(plan)) == 1


@pytest.mark.slow
def test_commands_side_by_side_share_language_model_and_rows(plan: Plan, tmp_path: Path) -> None:
    (plan.experiments / "imdb" / "advt.toml").write_text('method = "advt"\n')
    command = ["reproduce", "imdb", "--rows", "baseline", "advt", "--device", "cpu"]
    command += ["--experiments", str(plan.experiments), "--out", str(plan.out)]
    said = [tmp_path / f"said {number}.txt" for number in (1, 2)]
    going = [started("experiments.__main__", command, file) for file in said]
    for process in going:
        process.join(timeout=120)
    assert [process.exitcode for process in going] == [0, 0]
    assert (
        "".join(file.read_text() for file in said).count("held-out perplexity") == 1
    )  # one epoch of one language model
    found = results.load(plan.experiments / "results" / "imdb.jsonl")
    assert [record["row"] for record in found] == ["advt", "baseline"]
    assert found[0]["language_model"] == found[1]["language_model"]


def test_the_small_preset_learns(plan: Plan, tmp_path: Path) -> None:
    """With the settings of the IMDB column, made for a large run, on easy sentences of ours."""
    read = TextSettings(unknown="drop", max_length=60, max_vocabulary=5000)
    texts = {name: reviews(300, seed) for seed, name in enumerate(("train", "dev", "test", "unlabelled"))}
    write_pack(tmp_path / "more.pack", encode_splits(texts, read, quiet=True), read, quiet=True)
    for name in ("common.toml", "pretrain.toml"):
        told = (ROOT / "experiments" / "imdb" / name).read_text()
        place = f'corpus = "{tmp_path / "more.pack"}"'
        assert 'corpus = "imdb"' in told
        (plan.experiments / "imdb" / name).write_text(told.replace('corpus = "imdb"', place))
    (record,) = run(replace(plan, preset="cpu-small"))
    assert record["test"]["value"] < 0.3


def test_a_small_table_says_so_and_tells_no_difference(plan: Plan) -> None:
    records = run(plan)
    full, small = (results.markdown(COLUMNS["imdb"], records, preset=p) for p in ("paper", "cpu-small"))
    error = 100 * records[0]["test"]["value"]
    assert "### IMDB, test error (%)\n" in full
    assert f"| {error - 7.05:+.2f} |" in full
    assert "### IMDB, test error (%), preset cpu-small\n" in small
    assert f"| {error - 7.05:+.2f} |" not in small


def test_a_column_that_fails_is_no_column_that_is_missing(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others are shown all the same, and the command says that it failed."""
    monkeypatch.setenv("WORDWARD_DATA", str(tmp_path / "nothing"))
    monkeypatch.setenv("WORDWARD_CACHE", str(tmp_path / "cache"))
    broken = plan.experiments / "r52"
    broken.mkdir()
    (tmp_path / "broken.tsv").write_text("earn\tthe figures rose\n\tthe figures fell\n")
    (broken / "common.toml").write_text(
        f'train = "{tmp_path / "broken.tsv"}"\nlabel_column = "0"\ntext_column = "1"\n'
    )
    (plan.experiments / "imdb").rename(plan.experiments / "rotten_tomatoes")
    (plan.experiments / "rcv1").mkdir()
    (plan.experiments / "rcv1" / "common.toml").write_text('corpus = "rcv1"\n')
    for name in ("r52", "rcv1"):
        (plan.experiments / name / "baseline.toml").write_text('method = "baseline"\n')
    (plan.experiments / "elec").mkdir()
    (plan.experiments / "elec" / "baseline.toml").write_text('batch_size = "many"\n')
    place = ["--experiments", str(plan.experiments), "--out", str(plan.out), "--device", "cpu"]
    assert main(["reproduce", "elec-rcv1-rotten", "--rows", "baseline", *place]) == 1
    shown, said = capsys.readouterr()
    assert shown.count("not found") == 2  # a corpus, and the TOML files of a column
    assert "RCV1, test error (%)\n\nnot found" in shown
    assert "R52, test error (%)\n\nfailed: " in shown
    assert "| Baseline | 17.36 | " in shown
    assert "2 of the 5 columns failed: elec: " in said
    assert 'elec/baseline.toml sets batch_size = "many"; expected a whole number' in said
    assert "expected a label; it is empty" in said
    assert said.index("r52 failed: ") < said.index("rotten_tomatoes: baseline, seed 1")  # at once


def test_the_held_out_texts_are_the_same_for_every_seed(plan: Plan, tmp_path: Path) -> None:
    """And those that seed 1 alone drew before."""
    lines = "".join(f"{example.label}\t{example.text} {at}\n" for at, example in enumerate(reviews(60, 5)))
    (tmp_path / "own.tsv").write_text(lines)
    folder = plan.experiments / "r52"
    folder.mkdir()
    told = f'train = "{tmp_path / "own.tsv"}"\nlabel_column = "0"\ntext_column = "1"\n'
    (folder / "common.toml").write_text(told)
    (folder / "baseline.toml").write_text('method = "baseline"\n')
    column = COLUMNS["r52"]
    configs = [settings.row_config(column, column.rows[0], seed, plan) for seed in (1, 2, 3)]
    drawn = [labelled_examples(config)[:2] for config in configs]
    assert drawn[0] == drawn[1] == drawn[2]
    assert [config.training.seed for config in configs] == [1, 2, 3]

    def before(seed: int) -> TrainConfig:
        data = replace(configs[0].data, split_seed=None)
        return replace(configs[0], data=data, training=replace(configs[0].training, seed=seed))

    assert labelled_examples(before(1))[:2] == drawn[0]
    assert labelled_examples(before(2))[:2] != drawn[0]


def test_the_stand_in_for_elec_names_its_source() -> None:
    assert "LARA" in results.markdown(COLUMNS["elec_standin"], [])
