"""Worker processes: they stop with this one, and end if it is killed."""

import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.context import BaseContext
from typing import Any, ParamSpec, TypeVar

from wordward.support.threads import cores

Given = ParamSpec("Given")
Found = TypeVar("Found")
Part = TypeVar("Part")
MANY = 2000  # texts from which several processes are worth the seconds they take to start


def jobs_for(asked: int | None, texts: int, *, on_cpu: bool) -> int:
    """How many processes to use for this many texts; by default one per core for many texts on a CPU, else one."""
    if asked is not None:
        return asked
    return cores() if on_cpu and texts >= MANY else 1


def spread(
    here: Callable[[Part], Found], make: Callable[[], Callable[[Part], Found]], parts: Sequence[Part], *, jobs: int
) -> Iterator[Found]:
    """The results for all parts, in order: computed by this process, or by `jobs` others of one thread each.

    `make`, which must be picklable, creates in another process what `here` is in this one.
    """
    jobs = min(jobs, len(parts))
    if jobs < 2:
        yield from map(here, parts)
        return
    ahead: deque[Future[Found]] = deque()
    with workers(jobs, threads=1, make=make) as pool:
        for part in parts:
            ahead.append(pool.submit(_work, part))
            if len(ahead) > 2 * jobs:  # enough that no process idles while results are written
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


@contextmanager
def workers(
    count: int, *, threads: int | None = None, make: Callable[[], Callable[[Any], Any]] | None = None
) -> Iterator[ProcessPoolExecutor]:
    """A pool of processes, terminated if its block is left by an error or Ctrl-C."""
    others = set(active_children())
    with _Pool(count, _context(), initializer=_begin, initargs=(threads, make)) as pool:
        try:
            yield pool
        except BaseException:
            for process in set(active_children()) - others:
                process.terminate()
            pool.shutdown(cancel_futures=True)
            raise


def _context() -> BaseContext:
    """How processes are started: on Linux from one that has loaded torch, which takes seconds; elsewhere afresh."""
    if sys.platform != "linux":
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload(["torch"])
    return context


class _Pool(ProcessPoolExecutor):
    """Processes are started on demand, with Ctrl-C blocked: it would otherwise interrupt their imports."""

    def submit(self, fn: Callable[Given, Found], /, *args: Given.args, **kwargs: Given.kwargs) -> Future[Found]:
        """As usual, with Ctrl-C deferred until the process has started."""
        if not hasattr(signal, "pthread_sigmask"):  # Windows
            return super().submit(fn, *args, **kwargs)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # which a new process inherits
        try:
            return super().submit(fn, *args, **kwargs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def stoppable(work: Callable[Given, Found], *arguments: Given.args, **options: Given.kwargs) -> Found:
    """Run work so that SIGTERM interrupts it like Ctrl-C, letting it save what it has before the process ends."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        return work(*arguments, **options)
    finally:
        if signal.getsignal(signal.SIGTERM) == signal.SIG_IGN:
            os._exit(1)  # it would wait forever for a queue that another process left locked
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _stop(*_: object) -> None:
    # A pool that lost one process sends SIGTERM to all of them again.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


_held: list[Callable[..., Any]] = []  # in a process of `spread`: what makes its work, then the work itself


def _work(part: Any) -> Any:
    """This process's work on a part; set up here rather than in the initializer, since it may fail."""
    if len(_held) == 1:
        _held.append(_held[0]())
    return _held[1](part)


def _begin(threads: int | None, make: Callable[..., Any] | None) -> None:
    """Leave Ctrl-C to the parent process, and watch that process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _held[:] = [] if make is None else [make]
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if threads is not None:
        import torch

        torch.set_num_threads(threads)


def _end_with_parent() -> None:
    """Exit with the parent: an orphan would wait for work forever, or train alongside the next command."""
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)
