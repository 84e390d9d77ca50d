"""What makes a CPU compute fast: how many threads, how they wait for each other, and memory that is kept."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

FEW = 4  # cores; with 16, OpenMP's defaults were the fastest for every size (docs/scale.md)
GLIBC = {"MALLOC_TRIM_THRESHOLD_": -1, "MALLOC_MMAP_THRESHOLD_": -3}  # what a user may set: its number in <malloc.h>
FREED = 1 << 30  # bytes that are kept rather than given back
SMALL = 256  # units of an LSTM, up to which threads on few cores wait longer for each other than they compute


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def wait_passively() -> None:
    """Let waiting threads sleep instead of spin on few cores, unless the user chose; to call before torch is loaded.

    Processes that this one starts do the same.
    """
    if cores() <= FEW:
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def keep_memory() -> None:
    """Let this process keep freed memory, unless the user chose; to call before torch is loaded.

    glibc maps each large tensor anew and PyTorch's builds for ARM return memory after 10 ms: fetching it again in
    every training step takes up to a quarter of the time. Where there is neither, nothing changes.
    """
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "1000")  # milliseconds
    chosen = GLIBC.keys() & os.environ.keys() or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", "")
    if sys.platform == "linux" and not chosen:
        import ctypes

        setting = getattr(ctypes.CDLL(None), "mallopt", None)  # other libraries than glibc have none
        if setting is not None:
            for option in GLIBC.values():
                setting(option, FREED)


@contextmanager
def threads_for(units: int | None) -> Iterator[None]:
    """Compute with one thread where that is fastest for an LSTM of so many units, unless the user chose a number.

    None stands for a model that is no LSTM: its large products gain from every thread.

    By a rule, not by timing, so that the same seed gives the same result.
    """
    import torch

    before, available = torch.get_num_threads(), cores()
    untouched = "OMP_NUM_THREADS" not in os.environ and before in (available, available // 2)  # PyTorch's own choices
    if units is None or not (untouched and available <= FEW and units <= SMALL):
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
