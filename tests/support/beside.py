"""Commands in processes beside the tests' own, forked from one that has loaded torch: a new one takes seconds."""

import os
import signal
import socket
import sys
from collections.abc import Callable
from importlib import import_module
from multiprocessing import forkserver, get_context, resource_tracker
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

import torch
from torch import multiprocessing as mp

LOADED = ["torch._dynamo", "wordward.train.training", "wordward.attack", "wordward.explain", "wordward.hf.trainer"]
_ours: list[int | None] = []  # the process they are forked from, once it runs


def forked() -> ForkServerContext:
    """Where such processes are made; the one they are forked from starts as `wordward.support.workers` starts it."""
    context = get_context("forkserver")
    server: Any = forkserver._forkserver
    if server._forkserver_pid not in (None, *_ours):  # a pool of processes started it, with torch alone
        os.kill(server._forkserver_pid, signal.SIGKILL)
        server._stop()
    context.set_forkserver_preload(LOADED)
    resource_tracker.ensure_running()  # before, since it ends by letting Ctrl-C through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    _ours[:] = [server._forkserver_pid]
    return context


def take_signals() -> None:
    """Let Ctrl-C reach a process that was forked so."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def in_two(work: Callable[..., None], *given: Any) -> Any:
    """Two such processes that do `work(rank, *given)` as torchrun would have started them; to be joined."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    start = forked().get_start_method()
    return mp.start_processes(_one_of_two, (port, work, *given), nprocs=2, join=False, start_method=start)  # type: ignore[attr-defined]


def _one_of_two(rank: int, port: int, work: Callable[..., None], *given: Any) -> None:
    take_signals()
    torch.set_num_threads(1)
    where = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ |= {name: str(value) for name, value in where.items()}
    work(rank, *given)


def started(module: str, arguments: list[str], said: Path) -> ForkServerProcess:
    """A process that does a command of `module.main`, as this process would; what it says goes to a file."""
    process = forked().Process(target=_do, args=(module, arguments, said, dict(os.environ)))
    process.start()
    return process


def _do(module: str, arguments: list[str], said: Path, environment: dict[str, str]) -> None:
    os.environ |= environment
    take_signals()
    with said.open("w") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
    sys.exit(import_module(module).main(arguments))
