"""Threads and how they wait: a forward and backward of our models on a quiet machine, and beside busy processes."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from benchmarks.steps import SMALL, lstm_alone
from benchmarks.timing import Figure, quartiles, seconds
from wordward.config.model import ModelSettings
from wordward.models import Convolution
from wordward.support.threads import cores

REPEATS, WARM_UP = 20, 3
DEVICE = torch.device("cpu")
WAYS = {
    "one thread": {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"},
    "default threads, passive": {"OMP_WAIT_POLICY": "PASSIVE"},
    "default threads": {},
}


def convolution_alone() -> Callable[[], object]:
    """A pass of the model that is chosen for texts of one's own, from vectors of 384 numbers."""
    model = Convolution(SMALL.words, 2, ModelSettings(kind="convolution", dim=384, hidden=64)).train()
    labelled, _ = SMALL.batches(DEVICE)
    return lambda: model(labelled.ids, labelled.mask).square().sum().backward()


WORKS: dict[str, Callable[[], Callable[[], object]]] = {
    f"LSTM {SMALL.model.dim} -> {SMALL.model.hidden}": lambda: lstm_alone(SMALL, DEVICE),
    "convolution 384 -> 64": convolution_alone,
}
CHOSEN = dict(zip(WORKS, WAYS, strict=False))  # on few cores: one thread for a small LSTM, all for a convolution


def threads(device: torch.device) -> Iterator[Figure]:
    """Each way in a process of its own, since OpenMP reads its settings once; nothing where a GPU computes."""
    if device.type != "cpu":
        return
    for work in WORKS:
        group = f"threads: a forward and backward, {work}, batch {SMALL.batch} x {SMALL.length}, {cores()} cores"
        for busy in (0, cores()):
            beside = f"beside {busy} busy processes" if busy else "quiet"
            for name, chosen in WAYS.items():
                with _busy(busy):
                    value, low, high = _measured(work, chosen)
                note = "wordward's choice on few cores" if CHOSEN[work] == name else ""
                yield Figure(group, f"{name}, {beside}", value, low, high, "ms", note)


def _measured(work: str, chosen: dict[str, str]) -> tuple[float, float, float]:
    """Milliseconds of a pass in a new process: the median and the range of its middle half."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")} | chosen
    command = [sys.executable, "-m", "benchmarks.threads", work]
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


def print_times(name: str) -> None:
    """Milliseconds of each pass, with this process's threads."""
    work = WORKS[name]()
    for _ in range(WARM_UP):
        work()
    for _ in range(REPEATS):
        print(1000 * seconds(work, DEVICE))


if __name__ == "__main__":
    print_times(sys.argv[1])
