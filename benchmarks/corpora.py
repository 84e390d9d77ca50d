"""A whole corpus from its archive to mapped files, where the data folder (WORDWARD_DATA) holds it."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from benchmarks.timing import Figure
from wordward.config.settings import TextSettings
from wordward.datasets import DataError
from wordward.text.corpora import open_corpus

NAME, TEXTS = "imdb", "100,000 reviews"


def corpora(device: torch.device) -> Iterator[Figure]:
    """Seconds and memory of the first opening, in a process of its own with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.corpora", NAME]
        environment = {**os.environ, "WORDWARD_CACHE": folder}
        work = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        peak = 0
        while work.poll() is None:
            peak = max(peak, _held(work.pid))
            time.sleep(0.1)
        told = work.communicate()[0]
    if work.returncode:
        return  # it said why
    group, note = f"{NAME}, {TEXTS}, from the archive to the encoded cache", f"{os.cpu_count()} cores"
    seconds, memory = float(told), peak / 1e6
    yield Figure(group, "time", seconds, seconds, seconds, "s", note, "under 90 on 2 cores")
    note = "most that all its processes held together"
    yield Figure(group, "memory", memory, memory, memory, "GB", note, "under 2")


def _held(process: int) -> int:
    """Kilobytes that a process and its workers hold now, what they share counted once (0 where /proc is not)."""
    try:
        own = Path(f"/proc/{process}/smaps_rollup").read_text()
        workers = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:  # it has just ended
        return 0
    pss = sum(int(line.split()[1]) for line in own.splitlines() if line.startswith("Pss:"))
    return pss + sum(_held(int(worker)) for worker in workers)


def print_opening(name: str) -> None:
    """Seconds that the first opening of a corpus takes."""
    started = time.perf_counter()
    open_corpus(name, TextSettings(), quiet=True)
    print(time.perf_counter() - started)


if __name__ == "__main__":
    try:
        print_opening(sys.argv[1])
    except DataError as error:
        sys.exit(f"nothing to encode: {error}")
