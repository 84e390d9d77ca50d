"""Locks between processes: held by one at a time, and released if that process is killed."""

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PAUSE = 0.2  # seconds until a lock is tried again
# Raised by file systems without locks, where only one command should run at a time.
UNKNOWN = errno.ENOLCK, errno.ENOTSUP


@contextmanager
def locked(path: Path, *, busy: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock of this name; if another process holds it, call `busy` (which may raise), then wait.

    filelock may leave its file behind: it is deleted here, while the lock is held, so that folders stay as they were.
    """
    from filelock import FileLock, Timeout  # which `wordward --help` does without

    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        busy()
        lock.acquire(poll_interval=PAUSE)
    except OSError as error:
        if error.errno not in UNKNOWN:
            raise
    try:
        yield
    finally:
        with suppress(OSError):  # Windows does not delete open files; leaving it does no harm
            path.unlink()
        lock.release()
