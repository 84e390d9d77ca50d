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

import httpx
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


async def _asked(address: str, question: str, connections: int, seconds: float) -> tuple[Counter[str], list[float]]:
    statuses, times, until = Counter[str](), [], time.monotonic() + seconds

    async def one(client: httpx.AsyncClient, number: int) -> None:
        rng = random.Random(number)
        while time.monotonic() < until:
            text = " ".join(rng.choice([*PRAISE, *THINGS, f"word{rng.randrange(WORDS)}"]) for _ in range(LENGTH))
            began = time.monotonic()
            answer = await client.post(f"/api/{question}", json={"text": text})
            statuses[str(answer.status_code)] += 1
            times.append(time.monotonic() - began)

    limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
    async with httpx.AsyncClient(base_url=address, timeout=120, limits=limits) as client:
        await asyncio.gather(*(one(client, number) for number in range(connections)))
    return statuses, times


def _measured(given: tuple[str, str, int, float]) -> dict[str, Any]:
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
        for question in ("predict", "explain", "predict"):
            pool.apply(_measured, [(address, question, 4, 2.0)])  # one-time set-up
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            found = pool.apply(_measured, [(address, question, given.connections, given.seconds)])
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
            where = {"machine": platform.machine(), "cores": os.cpu_count(), "date": time.strftime("%Y-%m-%d")}
            print(json.dumps({"connections": given.connections, **found, "grown_mb": grown, **where}), flush=True)


if __name__ == "__main__":
    main()
