"""Ask the page's server over many connections at once, and count what it answers and how long that takes.

python tests/reliability/load.py --connections 64 --seconds 30
"""

import argparse
import asyncio
import json
import os
import platform
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
    sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from reviews import PRAISE, THINGS
from serving import serving

from wordward.config.settings import MethodSettings, ModelSettings, TrainConfig
from wordward.models import Classifier
from wordward.runs.lstm import LstmRun
from wordward.text.vocabulary import Vocabulary

WORDS, HIDDEN, LENGTH = 7_500, 128, 60  # as of the demo's model; words of a text


def a_model(folder: Path) -> LstmRun:
    """A model of the demo's size that has learnt nothing."""
    import torch

    words = [*PRAISE, *THINGS, *(f"word{number}" for number in range(WORDS))]
    vocabulary, sizes = Vocabulary.build([words] * 2), ModelSettings(dim=HIDDEN, hidden=HIDDEN, head=30)
    config = TrainConfig(model=sizes, perturbation=MethodSettings(epsilon=1.0, k=10))
    model = Classifier(len(vocabulary), 2, sizes).eval()
    return LstmRun(folder, config, vocabulary, ("bad", "good"), model, torch.device("cpu"))


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


def main() -> None:
    """Measure predictions, then explanations; print a line of JSON for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=30)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        serving(a_model(Path(name))) as address,
        get_context("spawn").Pool(1) as pool,  # a process of its own: it is not to wait for the server's
    ):
        port = int(address.rpartition(":")[2])
        for question in ("predict", "explain", "predict"):
            pool.apply(_measured, [(port, question, 4, 2.0)])  # one-time set-up
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            found = pool.apply(_measured, [(port, question, given.connections, given.seconds)])
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
            where = {"machine": platform.machine(), "cores": os.cpu_count(), "date": time.strftime("%Y-%m-%d")}
            print(json.dumps({"connections": given.connections, **found, "grown_mb": grown, **where}), flush=True)


if __name__ == "__main__":
    main()
