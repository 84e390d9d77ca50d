"""Commands in processes beside the tests' own, forked from one that has loaded all: a new one takes seconds."""

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import pairwise
from multiprocessing import forkserver, get_context, resource_tracker, util
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import multiprocessing as mp

LOADED = ["torch._dynamo", "wordward.train.training", "wordward.attack", "wordward.explain", "wordward.hf.trainer"]
FORKED = get_context("forkserver")  # where such processes are made


def start() -> None:
    """Fork the process that all of them are forked from, those of `wordward.support.workers` too."""
    FORKED.set_forkserver_preload(LOADED)  # it loads what is not loaded here
    resource_tracker.ensure_running()  # before, since it ends by letting Ctrl-C through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with patch.object(util, "spawnv_passfds", _fork):
            forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _fork(_: str, arguments: Sequence[str], files: Sequence[int]) -> int:
    """Do what `python -c PROGRAM` would in a fork of this process, with those open files alone."""
    process = os.fork()
    if process:
        return process
    try:
        sys.stdout, sys.stderr, sys.unraisablehook = sys.__stdout__, sys.__stderr__, sys.__unraisablehook__
        threading.excepthook = threading.__excepthook__
        forkserver._forkserver.__init__()  # type: ignore[attr-defined]  # whose lock is held here
        for before, after in pairwise([*sorted({0, 1, 2, *files}), os.sysconf("SC_OPEN_MAX")]):
            os.closerange(before + 1, after)
        exec(arguments[-1])
    finally:
        os._exit(0)


def take_signals() -> None:
    """Let Ctrl-C reach a process that was forked so."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def in_two(work: Callable[..., None], *given: Any) -> Any:
    """Two such processes that do `work(rank, *given)` as torchrun would have started them; to be joined."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    start = FORKED.get_start_method()
    return mp.start_processes(_one_of_two, (port, work, *given), nprocs=2, join=False, start_method=start)  # type: ignore[attr-defined]


def _one_of_two(rank: int, port: int, work: Callable[..., None], *given: Any) -> None:
    take_signals()
    torch.set_num_threads(1)
    where = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ |= {name: str(value) for name, value in where.items()}
    work(rank, *given)


def started(module: str, arguments: list[str], said: Path) -> ForkServerProcess:
    """A process that does a command of `module.main`, as this process would; what it says goes to a file."""
    process = FORKED.Process(target=_do, args=(module, arguments, said, dict(os.environ)))
    process.start()
    return process


def _do(module: str, arguments: list[str], said: Path, environment: dict[str, str]) -> None:
    os.environ |= environment
    take_signals()
    with said.open("w") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
    sys.exit(import_module(module).main(arguments))
