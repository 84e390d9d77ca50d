"""Commands in processes beside the tests' own, forked from one that has loaded torch: a new one takes seconds."""

import os
import signal
import sys
from importlib import import_module
from multiprocessing import forkserver, get_context, resource_tracker
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

LOADED = ["torch._dynamo", "wordward.train.training", "wordward.attack", "wordward.explain"]


def forked() -> ForkServerContext:
    """Where such processes are made; the one they are forked from starts as `wordward.support.workers` starts it."""
    context = get_context("forkserver")
    context.set_forkserver_preload(LOADED)
    resource_tracker.ensure_running()  # before, since it ends by letting Ctrl-C through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return context


def take_signals() -> None:
    """Let Ctrl-C reach a process that was forked so."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


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
