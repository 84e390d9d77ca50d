"""What makes a CPU compute fast: how many threads, how they wait for each other, and memory that is kept."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

FEW = 4  # cores; with 16, OpenMP's defaults were the fastest for every size (docs/scale.md)
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
    """Let PyTorch keep freed memory for a second, unless the user chose; to call before torch is loaded.

    Its builds for ARM return memory after 10 ms, and so fetch it anew in every training step, which takes up to a
    quarter of the time. Builds with another allocator do not read this.
    """
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "1000")  # milliseconds


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
