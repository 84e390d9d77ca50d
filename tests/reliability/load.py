"""Ask the page's server over many connections at once, and count what it answers and how long that takes.

    python -m tests.reliability.load --connections 64 --seconds 30
    python -m tests.reliability.load --minutes 10

The second asks for predictions and explanations in turn for so long, and counts memory: after the first minutes, in
which it is set up, it stays what it is.
"""

import argparse
import asyncio
import json
import os
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from multiprocessing import get_context
from pathlib import Path
from typing import Any

if __name__ in ("__main__", "__mp_main__"):
    os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")]

from records import record
from reviews import PRAISE, THINGS
from serving import serving

from wordward.config.settings import MethodSettings, ModelSettings, TrainConfig
from wordward.models import Classifier
from wordward.runs.word_run import WordRun
from wordward.text.vocabulary import Vocabulary

WORDS, HIDDEN, LENGTH = 7_500, 128, 60  # as of the demo's model; words of a text


def a_model(folder: Path) -> WordRun:
    """A model of the demo's size that has learnt nothing."""
    import torch

    words = [*PRAISE, *THINGS, *(f"word{number}" for number in range(WORDS))]
    vocabulary, sizes = Vocabulary.build([words] * 2), ModelSettings(dim=HIDDEN, hidden=HIDDEN, head=30)
    config = TrainConfig(model=sizes, perturbation=MethodSettings(epsilon=1.0, k=10))
    model = Classifier(len(vocabulary), 2, sizes).eval()
    return WordRun(folder, config, vocabulary, ("bad", "good"), model, torch.device("cpu"))


async def _asked(port: int, question: str, connections: int, seconds: float) -> tuple[Counter[str], list[float]]:
    statuses, times, until = Counter[str](), [], time.monotonic() + seconds

    async def one(number: int) -> None:
        """A connection that is kept; plain sockets, since a client of comfort would be slower than the server."""
        rng = random.Random(number)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.monotonic() < until:
            began = time.monotonic()
            writer.write(_request(port, question, rng))
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            await reader.readexactly(int(head.partition("content-length: ")[2].partition("\r\n")[0]))
            statuses[head.split(" ", 2)[1]] += 1
            times.append(time.monotonic() - began)
        writer.close()

    await asyncio.gather(*(one(number) for number in range(connections)))
    return statuses, times


def _request(port: int, question: str, rng: random.Random) -> bytes:
    words = [
        rng.choice((rng.choice(PRAISE), rng.choice(THINGS), f"word{rng.randrange(WORDS)}")) for _ in range(LENGTH)
    ]
    body = json.dumps({"text": " ".join(words)})
    head = f"POST /api/{question} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


def _measured(given: tuple[int, str, int, float]) -> dict[str, Any]:
    statuses, times = asyncio.run(_asked(*given))
    times.sort()
    return {
        "question": given[1],
        "answers": dict(statuses),
        "p50_s": round(times[len(times) // 2], 3),
        "p99_s": round(times[int(len(times) * 0.99)], 3),
    }


def short(port: int, pool: Any, connections: int, seconds: float, *, keep: bool) -> None:
    """Predictions, then explanations, each for so long."""
    found = []
    for question in ("predict", "explain"):
        pool.apply(_measured, [(port, question, 4, 2.0)])  # one-time set-up
        found.append(pool.apply(_measured, [(port, question, connections, seconds)]))
    record("load", {"connections": connections, "seconds": seconds, "asked": found}, keep=keep)


def long(port: int, pool: Any, connections: int, minutes: float, *, keep: bool) -> None:
    """Both in turn for minutes; memory at the end of each half minute."""
    memory, answers, until = [], Counter[str](), time.monotonic() + 60 * minutes
    while time.monotonic() < until:
        for question in ("predict", "explain"):
            answers.update(pool.apply(_measured, [(port, question, connections, 15.0)])["answers"])
        memory.append(_megabytes())
        print(f"{len(memory) / 2:.1f} minutes: {memory[-1]} MB", flush=True)
    half = len(memory) // 2
    figures = {"connections": connections, "minutes": minutes, "answers": dict(answers), "memory_mb": memory}
    record("soak", {**figures, "grown_in_the_second_half_mb": memory[-1] - memory[half]}, keep=keep)


def _megabytes() -> int:
    """What this process, the server's, holds now."""
    status = Path("/proc/self/status")
    if not status.exists():  # elsewhere what it held at most
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> (20 if sys.platform == "darwin" else 10)
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) >> 10


def main() -> None:
    """Serve a model in this process, and ask from another."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--minutes", type=float, help="ask for so long, and watch the memory")
    parser.add_argument("--record", action="store_true", help="keep the figures for the documentation")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        serving(a_model(Path(name))) as address,
        get_context("spawn").Pool(1) as pool,  # a process of its own: it is not to wait for the server's
    ):
        port = int(address.rpartition(":")[2])
        if given.minutes:
            long(port, pool, given.connections, given.minutes, keep=given.record)
        else:
            short(port, pool, given.connections, given.seconds, keep=given.record)


if __name__ == "__main__":
    main()
