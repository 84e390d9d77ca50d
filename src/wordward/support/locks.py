"""Locks between processes: held by one at a time, and released if that process is killed."""

import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

PAUSE = 0.2  # seconds until a lock is tried again
# Raised by file systems without locks, where only one command should run at a time.
UNKNOWN = errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP


@contextmanager
def locked(path: Path, *, busy: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock of this name; if another process holds it, call `busy` (which may raise), then wait."""
    held = _take(path)
    if held is None:
        busy()
    while held is None:
        time.sleep(PAUSE)
        held = _take(path)
    try:
        yield
    finally:
        with suppress(OSError):  # Windows does not delete open files; leaving it does no harm
            path.unlink()
        held.close()


def _take(path: Path) -> IO[bytes] | None:
    """The locked file; None where another process has it, or has just deleted it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("ab")
    try:
        _lock(file)
        if os.path.samestat(os.fstat(file.fileno()), path.stat()):
            return file
    except (BlockingIOError, PermissionError, FileNotFoundError):
        pass
    except OSError as error:
        if error.errno in UNKNOWN:
            return file
        file.close()
        raise
    file.close()
    return None


def _lock(file: IO[bytes]) -> None:
    """Lock it or raise; the system unlocks it when it is closed, or the process ends."""
    if sys.platform == "win32":
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
