"""Kill commands at any moment, go on with the same command, and compare with what an undisturbed one gives.

    python -m tests.reliability.kills --kills 60

Each chain is a command that is killed (SIGKILL) a few times, at random moments or while a file is half written, and
goes on after each. A problem is a command that cannot go on, or a chain that ends with other bytes or weights than
one that was never killed.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "HF_HUB_OFFLINE": "1"}
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")]

from records import record
from reviews import reviews, write_csv
from safetensors.torch import load_file

from wordward.cli.main import main

SIZES = "--dim 8 --hidden 8 --head 4 --epsilon 1 --k 3 --device cpu --quiet".split()
PATIENCE = 600  # seconds that a command may take
Compared = Any  # what a chain ended with


@dataclass(frozen=True)
class Chain:
    """A command, how to go on with it, and what it is to end with."""

    command: list[str]  # its output goes after it
    again: list[str]
    result: Callable[[Path], Compared]
    suffix: str = ""


@dataclass
class Outcome:
    """What came of a chain."""

    kind: str
    kills: int
    half_written: int  # of these, those that hit a file being written
    problem: str


def _folder(out: Path) -> Compared:
    """Weights and metrics of a run folder, without times."""
    file = next(path for path in (out / "model.safetensors", out / "model" / "model.safetensors") if path.exists())
    weights = {name: tensor.tolist() for name, tensor in load_file(file).items()}
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return weights, [{name: value for name, value in line.items() if "second" not in name} for line in lines]


def _sweep(out: Path) -> Compared:
    tried = json.loads((out / "sweep.json").read_text())["tried"]
    return _folder(out), [(each["choice"], each.get("dev")) for each in tried]


def chains(place: Path) -> dict[str, Chain]:
    """The commands that write for long, over texts and a run in `place`."""
    data, some, run = (str(place / name) for name in ("reviews.csv", "some.csv", "run"))
    train = ["train", "--train", data, "--epochs", "6", *SIZES]
    sweep = ["train", "--train", data, "--epochs", "2", *SIZES, "--sweep", "epsilon=1,2"]
    pretrain = "--epochs 3 --streams 4 --window 8 --dim 8 --hidden 8 --device cpu --quiet".split()
    pretrain = ["pretrain", "--texts", data, *pretrain]
    attack = ["attack", run, some, "--device", "cpu", "--quiet", "--out"]
    learnt = ["train", "--train", data, "--epochs", "4", *SIZES, "--kind", "convolution", "--augment", "20"]
    tuned = ["train", "--train", some, "--epochs", "3", "--model", str(place / "tiny"), "--checkpoint-steps", "4"]
    tuned += ["--method", "iadvt", "--k", "3", "--device", "cpu", "--quiet"]
    taught = [*tuned, "--method", "ivat", "--unlabelled", data, "--self-training"]
    augment = ["augment", run, some, "--device", "cpu", "--quiet", "--force", "--out"]
    explain = ["explain", run, "--file", some, "--device", "cpu", "--quiet", "--json"]
    return {
        "train": Chain([*train, "--out"], [*train, "--resume", "--out"], _folder),
        "pretrain": Chain([*pretrain, "--out"], [*pretrain, "--resume", "--out"], _folder),
        "sweep": Chain([*sweep, "--out"], [*sweep, "--resume", "--out"], _sweep),
        "augmented": Chain([*learnt, "--out"], [*learnt, "--resume", "--out"], _folder),
        "transformer": Chain([*tuned, "--out"], [*tuned, "--resume", "--out"], _folder),
        "self-training": Chain([*taught, "--out"], [*taught, "--resume", "--out"], _folder),
        "augment": Chain(augment, augment, Path.read_bytes, ".csv"),
        "attack": Chain(attack, attack, Path.read_bytes),
        "explain": Chain(explain, explain, Path.read_bytes),
    }


def build(place: Path) -> None:
    """The texts, and the run that is attacked and explained."""
    data = write_csv(place / "reviews.csv", reviews(300))
    write_csv(place / "some.csv", reviews(260, seed=3))
    from hf_tiny import bert, word_pieces

    tokenizer = word_pieces()
    bert("sequence", len(tokenizer)).save_pretrained(place / "tiny")
    tokenizer.save_pretrained(place / "tiny")
    train = ["train", "--train", str(data), "--epochs", "3", "--learning-rate", "0.02", *SIZES]
    assert finished(started([*train, "--out", str(place / "run")], place)) == 0, (place / "said").read_text()


def started(command: list[str], place: Path) -> int:
    """A process of its own for a command: a copy of this one, which has loaded everything."""
    if child := os.fork():
        with contextlib.suppress(ProcessLookupError, PermissionError):  # it has done so itself, and may have ended
            os.setpgid(child, child)
        return child
    status = 70
    try:
        os.setpgid(0, 0)
        said = os.open(place / "said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(said, 1)
        os.dup2(said, 2)
        status = main(command) or 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        sys.stdout.flush()
        os._exit(status)


def finished(child: int, until: Callable[[], bool] = lambda: False) -> int | None:
    """The exit status of a process; None if it was killed, because `until` came true first."""
    late = time.monotonic() + PATIENCE
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if until() or time.monotonic() > late:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(0.002)


def moment(out: Path, seconds: float, rng: random.Random) -> Callable[[], bool]:
    """When to kill: at some time, or at some sight of a file that is being written."""
    if rng.random() < 0.5:
        at = time.monotonic() + rng.uniform(0, seconds)
        return lambda: time.monotonic() > at
    left = [rng.randrange(8)]

    def seen() -> bool:
        if not half_written(out):
            return False
        left[0] -= 1
        return left[0] < 0

    return seen


def half_written(out: Path) -> bool:
    """Whether a file is being written: a part, or a last line without an end."""
    if out.is_file():
        content = out.read_bytes()
        return bool(content) and not content.endswith(b"\n")
    return out.is_dir() and any(out.rglob("*.part"))


def killed(kind: str, chain: Chain, wanted: Compared, seconds: float, place: Path, rng: random.Random) -> Outcome:
    """Run one chain to its end."""
    out = place / f"{kind}-{rng.randrange(1 << 40)}{chain.suffix}"
    outcome = Outcome(kind, 0, 0, "")
    most, command = rng.randint(1, 5), chain.command
    while True:
        until = moment(out, seconds, rng) if outcome.kills < most else (lambda: False)
        status = finished(started([*command, str(out)], place), until)
        if status is None:
            if outcome.kills == most:
                outcome.problem = "it did not end"
                return outcome
            outcome.kills += 1
            outcome.half_written += half_written(out)
            command = chain.again
        elif status == 0:
            outcome.problem = "" if chain.result(out) == wanted else "it ended otherwise than the undisturbed one"
            return outcome
        elif command == chain.again != chain.command and "holds no" in (place / "said").read_text():
            command = chain.command  # it was killed before there was anything to go on from, and says so
        else:
            outcome.problem = f"status {status}: {(place / 'said').read_text()[-300:]}"
            return outcome


def run(place: Path, kills: int, seed: int, kinds: tuple[str, ...] = ()) -> list[Outcome]:
    """Chains of every kind in turn until there were so many kills."""
    build(place)
    every = {kind: chain for kind, chain in chains(place).items() if not kinds or kind in kinds}
    wanted, seconds = {}, {}
    for kind, chain in every.items():
        began, out = time.monotonic(), place / f"undisturbed {kind}{chain.suffix}"
        assert finished(started([*chain.command, str(out)], place)) == 0, (place / "said").read_text()
        wanted[kind], seconds[kind] = chain.result(out), time.monotonic() - began
    outcomes, rng = list[Outcome](), random.Random(seed)
    while sum(outcome.kills for outcome in outcomes) < kills:
        kind = list(every)[len(outcomes) % len(every)]
        outcomes.append(killed(kind, every[kind], wanted[kind], seconds[kind], place, rng))
        if outcomes[-1].problem:
            print(outcomes[-1], flush=True)
    return outcomes


def figures(outcomes: list[Outcome]) -> dict[str, Any]:
    """What is counted."""
    return {
        "kills": sum(outcome.kills for outcome in outcomes),
        "half_written": sum(outcome.half_written for outcome in outcomes),
        "chains": len(outcomes),
        "equal": sum(not outcome.problem for outcome in outcomes),
        "problems": sum(bool(outcome.problem) for outcome in outcomes),
        "kinds": sorted({outcome.kind for outcome in outcomes}),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=[], help="kinds of chains, such as train or attack")
    parser.add_argument("--record", action="store_true", help="keep the figures for the documentation")
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        found = figures(run(Path(name), given.kills, given.seed, tuple(given.only)))
    found |= {"seed": given.seed, "seconds": round(time.monotonic() - began)}
    record("kills", found, keep=given.record)
    sys.exit(1 if found["problems"] else 0)
