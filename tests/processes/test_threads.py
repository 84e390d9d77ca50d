"""Threads: how many, and how they wait, on machines with few cores."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from reviews import reviews

from wordward.config.settings import ModelSettings, TrainConfig, TrainingSettings
from wordward.support import threads
from wordward.support.threads import keep_memory, threads_for, wait_passively
from wordward.train.trainer import Trainer
from wordward.train.training import train


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A machine of two cores where nobody chose; the numbers of threads that are set."""
    counts = [2]
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr(threads, "cores", lambda: 2)
    monkeypatch.setattr(torch, "get_num_threads", lambda: counts[-1])
    monkeypatch.setattr(torch, "set_num_threads", counts.append)
    return counts


def test_small_lstm_takes_one_thread_on_two_cores(chosen: list[int]) -> None:
    with threads_for(128):
        assert torch.get_num_threads() == 1
    assert chosen == [2, 1, 2]  # as before, also after an error:
    with pytest.raises(KeyboardInterrupt), threads_for(128):
        raise KeyboardInterrupt
    assert torch.get_num_threads() == 2


def test_large_lstm_keeps_its_threads(chosen: list[int]) -> None:
    with threads_for(1024):
        assert torch.get_num_threads() == 2


def test_number_in_the_environment_stays(chosen: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    with threads_for(128):
        assert torch.get_num_threads() == 2


def test_number_given_to_torch_stays(chosen: list[int]) -> None:
    torch.set_num_threads(3)
    with threads_for(128):
        assert torch.get_num_threads() == 3


def test_many_cores_keep_their_threads(chosen: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "cores", lambda: 16)
    torch.set_num_threads(16)
    with threads_for(128):
        assert torch.get_num_threads() == 16


def test_training_takes_one_thread_and_leaves_the_process_as_it_was(
    chosen: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    during: list[int] = []
    fit = Trainer.fit

    def watched(self: Trainer) -> None:
        during.append(torch.get_num_threads())
        fit(self)

    monkeypatch.setattr(Trainer, "fit", watched)
    config = TrainConfig(model=ModelSettings(dim=8, hidden=8), training=TrainingSettings(epochs=1, device="cpu"))
    train(config, tmp_path / "run", train=reviews(40), quiet=True)
    assert during == [1]
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize(
    ("cores", "given", "expected"), [(2, None, "PASSIVE"), (2, "ACTIVE", "ACTIVE"), (16, None, None)]
)
def test_wait_policy(cores: int, given: str | None, expected: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "cores", lambda: cores)
    monkeypatch.setenv("OMP_WAIT_POLICY", given or "")
    if given is None:
        monkeypatch.delenv("OMP_WAIT_POLICY")
    wait_passively()
    assert os.environ.get("OMP_WAIT_POLICY") == expected


@pytest.mark.parametrize(("given", "expected"), [(None, "1000"), ("0", "0")])
def test_freed_memory_is_kept_unless_the_user_chose(
    given: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIMALLOC_PURGE_DELAY", given or "")
    if given is None:
        monkeypatch.delenv("MIMALLOC_PURGE_DELAY")
    keep_memory()
    assert os.environ["MIMALLOC_PURGE_DELAY"] == expected


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the allocator is not glibc's")
@pytest.mark.parametrize(
    "given", [None, "MALLOC_TRIM_THRESHOLD_=131072", "GLIBC_TUNABLES=glibc.malloc.trim_threshold=131072"]
)
def test_large_tensors_are_not_fetched_anew_each_time_unless_the_user_chose(given: str | None) -> None:
    code = """
import resource, sys
from wordward.support.threads import keep_memory
if sys.argv[1] == "command line":
    keep_memory()
import torch
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
before = faults()
for _ in range(80):
    one, other = torch.ones(1 << 24), torch.ones(1 << 24)
    del one, other
print(faults() - before)
"""
    environment = {
        name: value for name, value in os.environ.items() if "MALLOC" not in name and name != "GLIBC_TUNABLES"
    }
    environment |= dict([given.split("=", 1)]) if given else {}
    library, command = (
        int(
            subprocess.run(
                [sys.executable, "-c", code, kind], env=environment, capture_output=True, check=True
            ).stdout
        )
        for kind in ("library", "command line")
    )
    assert command > library / 2 if given else command < library / 10


def test_command_line_chooses_before_torch_is_loaded_and_the_library_does_not() -> None:
    code = """
import builtins, os, sys
from wordward.support import threads
threads.cores = lambda: 2
load = builtins.__import__
def watched(name, *rest):
    if name == "torch":
        print(os.environ.get("OMP_WAIT_POLICY"), os.environ.get("MIMALLOC_PURGE_DELAY"), flush=True)
        os._exit(0)  # it need not be loaded
    return load(name, *rest)
builtins.__import__ = watched
if sys.argv[1] == "library":
    import wordward.train
else:
    from wordward.cli.main import main
    main(["predict", "no-such-run", "a text"])
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "MIMALLOC_"))}
    found = {}
    for kind in ("library", "command line"):
        command = [sys.executable, "-c", code, kind]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        found[kind] = done.stdout.strip()
    assert found == {"library": "None None", "command line": "PASSIVE 1000"}
