"""Two processes over gloo train as one: the same weights for every method, one of them writes, both stop together."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from beside import in_two, started
from launching import LAUNCHERS
from reviews import reviews, tagged, write_conll, write_csv
from safetensors.torch import load_file
from two_processes import CASES, command, run_alone, work

from wordward.cli.main import main
from wordward.config.settings import TrainConfig
from wordward.runs import run_folder
from wordward.support.distributed import Team, team
from wordward.train.sweep import train_sweep


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes and one wrote."""
    folder = tmp_path_factory.mktemp("processes")
    write_csv(folder / "reviews.csv", reviews(120))
    write_conll(folder / "tags.conll", tagged(60))
    processes = in_two(work, folder)
    run_alone(folder)
    while not processes.join():
        pass
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_two_processes_give_the_weights_of_one(case: str, folder: Path) -> None:
    one = load_file(folder / f"{case}.safetensors")
    first, second = (load_file(folder / f"process-{rank}" / f"{case}.safetensors") for rank in (0, 1))
    for name in one:
        assert torch.equal(first[name], second[name])
        torch.testing.assert_close(first[name], one[name], rtol=0, atol=1e-9)
    assert (one["losses"][0] - one["losses"][-1]).abs() > 1e-3  # something was learnt


def lines(folder: Path) -> list[dict[str, object]]:
    return [
        {name: value for name, value in line.items() if "second" not in name}
        for line in run_folder.read_metrics(folder)
    ]


@pytest.mark.parametrize(("cut", "whole"), [("cut", "two"), ("lm cut", "lm whole")])
def test_a_resumed_run_equals_the_uninterrupted_one(cut: str, whole: str, folder: Path) -> None:
    """With dropout, of which each process draws its own."""
    assert lines(folder / cut) == lines(folder / whole)
    ours, theirs = (load_file(folder / name / run_folder.WEIGHTS) for name in (cut, whole))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_a_language_model_of_two_processes_is_that_of_one(folder: Path) -> None:
    one, two = (lines(folder / name) for name in ("lm one", "lm two"))
    assert len(one) == len(two) == 2
    for ours, theirs in zip(one, two, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-5)
    before, after = (load_file(folder / name / run_folder.WEIGHTS) for name in ("lm one", "lm two"))
    for name in before:
        torch.testing.assert_close(before[name], after[name], rtol=0, atol=1e-5)


def test_the_first_process_alone_writes_and_says_what_happens(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = folder / "process-0", folder / "process-1"
    assert {file.name for file in second.iterdir() if not file.name.endswith(".safetensors")} == {
        "shown.txt",
        "done",
    }
    assert "2 processes" in (first / "shown.txt").read_text()
    assert (first / "shown.txt").read_text().count("best epoch") == 1
    assert (second / "shown.txt").read_text() == ""
    monkeypatch.chdir(tmp_path)
    assert main(command(folder)) == 0
    assert {file.name for file in (tmp_path / "run").iterdir()} == {file.name for file in (first / "run").iterdir()}
    ours, theirs = (load_file(path / "run" / run_folder.WEIGHTS) for path in (tmp_path, first))
    for name in ours:
        torch.testing.assert_close(ours[name], theirs[name], rtol=0, atol=1e-5)


def test_a_run_of_two_processes_goes_on_in_one(folder: Path) -> None:
    from wordward.train.training import train

    result = train(TrainConfig(), folder / "stopped", resume=True, quiet=True)
    assert not result["stopped"]
    assert result["epochs"] == 3


@pytest.mark.parametrize("count", range(1, 8))
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_every_row_falls_to_one_process(count: int, size: int) -> None:
    shares = [Team(rank, size).rows(count) for rank in range(size)]
    taken = [row for rows, share in shares if share for row in range(count)[rows]]
    assert taken == list(range(count))
    assert sum(share for _, share in shares) == pytest.approx(1)
    assert all(len(range(count)[rows]) > 0 for rows, _ in shares)  # a process is never left without a row


def test_shares_of_texts_and_tokens() -> None:
    ids, lengths = torch.zeros(3, 4, dtype=torch.long), np.array([1, 2, 4])
    parts = []
    for rank in (0, 1):
        processes = Team(rank, 2)
        processes.noise = torch.Generator()
        parts.append(processes.part(ids, lengths))
    assert [part.shares for part in parts if part] == [(1 / 3, 1 / 7), (2 / 3, 6 / 7)]
    assert Team().part(ids, lengths) is None


def test_what_several_processes_cannot_do_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="a sweep takes one process, but 2 were started"):
        train_sweep(TrainConfig(), ["epsilon=1,2"], tmp_path / "sweep")
    with pytest.raises(ValueError, match="without a number"):
        team("cuda:0")


@pytest.mark.slow
@pytest.mark.parametrize(("launcher", "processes"), [("torchrun", "new"), *((name, "forked") for name in LAUNCHERS)])
def test_a_launcher_starts_two_processes_that_train_one_run(
    launcher: str, processes: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = tmp_path / "said"
    both = started("launching", [launcher, processes, *command(folder)], said)
    both.join()
    assert both.exitcode == 0, said.read_text()
    assert said.read_text().count("in 2 processes") == 1
    ours, theirs = lines(tmp_path / "run"), lines(folder / "process-0" / "run")
    assert [line["loss"] for line in ours] == pytest.approx([line["loss"] for line in theirs], rel=1e-5)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="takes two GPUs")
def test_two_gpus_give_the_losses_of_one(folder: Path, tmp_path: Path) -> None:
    shared = [*command(folder), "--device", "cuda", "--precision", "fp32", "--method", "iadvt+vat"]
    for count in (1, 2):
        launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
        run = [*launch, "-m", "wordward", *shared, "--out", str(tmp_path / f"{count}")]
        subprocess.run(run, check=True)
    one, two = (lines(tmp_path / name) for name in "12")
    for ours, theirs in zip(one, two, strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-3)
