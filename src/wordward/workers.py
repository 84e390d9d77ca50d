"""Processes that work beside this one: they stop with it, and end where it was killed."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Found = TypeVar("Found")


@contextmanager
def workers(count: int, *, threads: int | None = None) -> Iterator[ProcessPoolExecutor]:
    """A pool of processes; where its block is left by an error or Ctrl-C, they break off what they are at."""
    others = set(active_children())
    with ProcessPoolExecutor(count, get_context("spawn"), initializer=_begin, initargs=(threads,)) as pool:
        try:
            yield pool
        except BaseException:
            for process in set(active_children()) - others:
                process.terminate()
            pool.shutdown(cancel_futures=True)
            raise


def stoppable(work: Callable[Given, Found], *arguments: Given.args, **options: Given.kwargs) -> Found:
    """Work of a process that is broken off as by Ctrl-C, so that it can keep what it has; then the process ends."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        return work(*arguments, **options)
    finally:
        if signal.getsignal(signal.SIGTERM) == signal.SIG_IGN:
            os._exit(1)  # it would wait for ever for a queue that another process left locked
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _stop(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a pool that misses one process sends it to all, again
    raise KeyboardInterrupt


def _begin(threads: int | None) -> None:
    """Leave Ctrl-C to the process that started this one, and watch it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if threads is not None:
        import torch

        torch.set_num_threads(threads)


def _end_with_parent() -> None:
    """A process whose pool was killed would wait for work for ever, or train beside the next command."""
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)
