"""Threads and how they wait: an LSTM's forward and backward on a quiet machine, and beside busy processes."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from benchmarks.steps import SMALL, lstm_alone
from benchmarks.timing import Figure, quartiles, seconds
from wordward.support.threads import cores

REPEATS, WARM_UP = 20, 3
WAYS = {  # what wordward takes on few cores comes first
    "one thread": {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"},
    "default threads, passive": {"OMP_WAIT_POLICY": "PASSIVE"},
    "default threads": {},
}


def threads(device: torch.device) -> Iterator[Figure]:
    """Each way in a process of its own, since OpenMP reads its settings once; nothing where a GPU computes."""
    if device.type != "cpu":
        return
    sizes = f"LSTM {SMALL.model.dim} -> {SMALL.model.hidden}, batch {SMALL.batch} x {SMALL.length}"
    group = f"threads: a forward and backward of an {sizes}, {cores()} cores"
    for busy in (0, cores()):
        beside = f"beside {busy} busy processes" if busy else "quiet"
        for name, chosen in WAYS.items():
            with _busy(busy):
                value, low, high = _measured(chosen)
            yield Figure(group, f"{name}, {beside}", value, low, high, "ms")


def _measured(chosen: dict[str, str]) -> tuple[float, float, float]:
    """Milliseconds of a pass in a new process: the median and the range of its middle half."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")} | chosen
    command = [sys.executable, "-m", "benchmarks.threads"]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return quartiles([float(line) for line in done.stdout.split()])


@contextmanager
def _busy(count: int) -> Iterator[None]:
    """So many processes that compute without end."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        time.sleep(0.5 if others else 0)  # until they run
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def print_times() -> None:
    """Milliseconds of each pass, with this process's threads."""
    device = torch.device("cpu")
    work = lstm_alone(SMALL, device)
    for _ in range(WARM_UP):
        work()
    for _ in range(REPEATS):
        print(1000 * seconds(work, device))


if __name__ == "__main__":
    print_times()
