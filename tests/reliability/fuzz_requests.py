"""Send damaged and hostile requests to the page's server: it answers each, never with a fault of its own.

    python -m tests.reliability.fuzz_requests --requests 20000

Requests go over real connections: bodies of JSON with values of any kind in any place, and bytes that are not HTTP. A
problem is an answer of 500 or above, an answer that does not come, or a server that no longer predicts as it did.
"""

import argparse
import copy
import json
import logging
import os
import random
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")]

from fuzz_readers import damaged
from records import record
from serving import serving, small_run

from wordward.serve.limits import Limits

SECONDS = 120
TEXT = "the film was warm and funny"
BODIES: dict[str, dict[str, Any]] = {
    "predict": {"text": TEXT, "run": "iadvt"},
    "explain": {"text": TEXT, "method": "iadvt", "label": "good", "focus": None, "top": 3},
    "swap": {"text": TEXT, "start": 4, "end": 8, "toward": "story"},
    "attack": {"text": TEXT, "method": "advt", "label": "good", "max_swaps": 2},
    "page": {"text": TEXT, "views": [{"method": "iadvt"}, {"method": "vat"}], "label": "good"},
}
TEXTS = (
    "",
    " ",
    "\x00",
    "\ud800",
    "é" * 50,
    "😀 film",
    "\u202efilm",
    "<script>alert(1)</script>",
    "film " * 500,
    "\n\t",
)
TEXTS += (
    "a" * 30_000,
    "ﬁlm Film FILM",
    "{{7*7}}",
    "%00%0d%0a",
    "../../etc",
    "the film \u0085 was warm",
    "\u200b" * 9,
)
ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1e308,
    10**40,
    0.5,
    "",
    "x",
    [],
    {},
    [[]],
    {"a": 1},
    "iadvt",
    "ivat",
    "good",
)


def body(question: str, rng: random.Random) -> bytes:
    """A request's JSON with something else in a place or two, or damaged as bytes are."""
    asked = copy.deepcopy(BODIES[question])
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        name = rng.choice([*asked, "text", "text", "more"])
        what = rng.random()
        if what < 0.15:
            asked.pop(name, None)
        elif what < 0.5 or name == "text":
            asked[name] = rng.choice(TEXTS) if rng.random() < 0.8 else rng.choice(ODD)
        else:
            asked[name] = rng.choice(ODD)
    content = json.dumps(asked, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    return damaged(content, rng) if rng.random() < 0.3 else content


def request(port: int, rng: random.Random) -> tuple[bytes, bool]:
    """A request, and whether it is as long as it says: of others the server would wait for the rest."""
    question = rng.choice([*BODIES, "predict", "predict", "explain"])
    content = body(question, rng)
    method = rng.choice(("POST",) * 60 + ("GET", "PUT", "DELETE", "OPTIONS", "HEAD", "x"))
    path = rng.choice(
        (f"/api/{question}",) * 60 + ("/", "/api/runs", "/..%2f", "/api/", "/%ff", "//", "/api/predict?x=1")
    )
    kind = rng.choice(("application/json",) * 40 + ("text/plain", "", "application/json; charset=utf-16"))
    host = rng.choice((f"127.0.0.1:{port}",) * 40 + ("evil.example", ""))
    whole = rng.random() < 0.95
    length = len(content) if whole else rng.choice((0, -1, 10**12, "x", len(content) // 2))
    head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\nConnection: close\r\n"
    sent = f"{head}Content-Length: {length}\r\n\r\n".encode() + content
    return (damaged(sent, rng), False) if rng.random() < 0.1 else (sent, whole)


def answer(port: int, sent: bytes, whole: bool = True) -> bytes:
    """All that comes back; after what is not whole the sending side is closed."""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
        parts = []
        try:
            connection.sendall(sent)
            if not whole:
                connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(1 << 16):
                parts.append(part)
        except (BrokenPipeError, ConnectionResetError):  # refused before all was sent
            pass
        return b"".join(parts)


def fuzzed(place: Path, count: int, seed: int) -> Iterator[tuple[str, str]]:
    """So many requests: the status of each answer (or that there was none), and the problem if it is one."""
    plain = "POST /api/predict HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
    with serving(small_run(place), limits=Limits(rate=1e9)) as address:
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # a line for each that is not HTTP
        port = int(address.rpartition(":")[2])
        sound = json.dumps({"text": TEXT}).encode()
        asked = (plain % port + f"Connection: close\r\nContent-Length: {len(sound)}\r\n\r\n").encode() + sound
        wanted = answer(port, asked).partition(b"\r\n\r\n")[2]
        assert b"good" in wanted
        for number in range(count):
            rng, status, problem = random.Random(f"{seed} {number}"), "no answer", ""
            try:
                came = answer(port, *request(port, rng))
                status = came.split(b" ", 2)[1].decode() if came.startswith(b"HTTP/1.1 ") else "no answer"
                if status >= "5" and status != "no answer":
                    problem = f"request {number}: {came[:300]!r}"
            except TimeoutError:
                problem = f"request {number}: no answer within {SECONDS} s"
            if number % 100 == 99 and answer(port, asked).partition(b"\r\n\r\n")[2] != wanted:
                problem = f"after request {number} it predicts otherwise"
            yield status, problem


def main(count: int, seed: int, *, keep: bool) -> int:
    """Send so many requests, show what went wrong, and print the figures."""
    statuses, problems, began = Counter[str](), 0, time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        for status, problem in fuzzed(Path(name), count, seed):
            statuses[status] += 1
            problems += bool(problem)
            if problem:
                print(problem, flush=True)
    found = {"requests": count, "answers": dict(sorted(statuses.items())), "problems": problems, "seed": seed}
    record("fuzz_requests", {**found, "seconds": round(time.monotonic() - began)}, keep=keep)
    return 1 if problems else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", action="store_true", help="keep the figures for the documentation")
    given = parser.parse_args()
    sys.exit(main(given.requests, given.seed, keep=given.record))
