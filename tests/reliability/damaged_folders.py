"""Damage run folders in thousands of ways and open each: every command says what is wrong, or does its work.

    python -m tests.reliability.damaged_folders --damages 2000

counts commands that raised an exception, did not end within a minute, or took half a gigabyte.
"""

import argparse
import contextlib
import io
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "HF_HUB_OFFLINE": "1"}
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")]

from mutations import mutate, restore
from records import record
from reviews import reviews, tagged, write_conll, write_csv

from wordward.cli.main import main
from wordward.config.settings import TextSettings
from wordward.text.cache import encode_splits
from wordward.text.pack import write_pack

SIZES = "--dim 8 --hidden 8 --head 4 --epsilon 1 --k 3 --min-candidate-count 1 --device cpu --quiet".split()
SECONDS, MEGABYTES = 60, 500  # that a command may take
RUNS = ("classifier", "tagger", "language model", "sweep", "transformer")
MORE = ("convolution", "spelling", "stopped transformer", "other model", "earlier check")
KINDS = {"folders": RUNS, "more": MORE, "packs": ("packed corpus",)}


@dataclass(frozen=True)
class Outcome:
    """What a command made of a damaged folder; `problem` is empty where it ended as it should."""

    run: str
    damage: str
    command: str
    status: int | None
    problem: str


def build(place: Path, kinds: tuple[str, ...] = RUNS) -> None:
    """Small runs of every kind, on sentences of our own."""
    data = write_csv(place / "reviews.csv", reviews(80))
    write_csv(place / "some.csv", reviews(6, seed=3))
    tags = write_conll(place / "tags.conll", tagged(60))
    write_conll(place / "some.conll", tagged(6, seed=3))
    made = {
        "classifier": ["train", "--train", str(data), "--epochs", "2", *SIZES],
        "tagger": ["train", "--train", str(tags), "--epochs", "2", "--positive", "i", *SIZES],
        "language model": f"pretrain --texts {data} --epochs 1 --streams 4 --window 8 --dim 8 --hidden 8".split(),
        "sweep": ["train", "--train", str(data), "--epochs", "1", *SIZES, "--sweep", "epsilon=1,2"],
        "transformer": ["train", "--train", str(data), "--epochs", "1", "--model", str(place / "tiny")],
    }
    made["language model"] += ["--device", "cpu", "--quiet"]
    made["transformer"] += ["--method", "iadvt", "--k", "3", "--device", "cpu", "--quiet"]
    made["convolution"] = [*made["classifier"], "--kind", "convolution", "--augment", "4"]
    made["spelling"] = [*made["tagger"], "--kind", "spelling"]
    made["stopped transformer"] = [*made["transformer"], "--checkpoint-steps", "1", "--augment", "4"]
    from hf_tiny import saved

    for name in ("tiny", "other model"):
        saved(place / name, id2label={0: "bad", 1: "good"}, label2id={"bad": 0, "good": 1})
    for kind in kinds:
        if kind == "other model":
            continue
        if kind == "earlier check":
            (place / kind).mkdir()
            with contextlib.redirect_stdout(io.StringIO()):
                assert main(_check(place, place / "other model", "--json", place / kind / "check.json")) == 0
            continue
        if kind == "packed corpus":
            splits = {
                "train": reviews(60),
                "dev": reviews(12, 1),
                "test": reviews(12, 2),
                "unlabelled": reviews(20, 3),
            }
            encoded = encode_splits(splits, TextSettings(), quiet=True)
            (place / kind).mkdir()
            write_pack(place / kind / "corpus.pack", encoded, TextSettings(), quiet=True)
            continue
        with _stopping(2) if kind == "stopped transformer" else contextlib.nullcontext():
            assert main([*made[kind], "--out", str(place / kind)]) in (0, 130), kind


@contextlib.contextmanager
def _stopping(step: int) -> Iterator[None]:
    """Training of a Transformer ends as by Ctrl-C after so many steps."""
    from wordward.train.finetuner import FineTuning

    plain = FineTuning.on_step_begin

    def stop(self: Any, args: Any, state: Any, control: Any, **others: Any) -> None:
        plain(self, args, state, control, **others)
        if state.global_step == step:
            raise KeyboardInterrupt

    FineTuning.on_step_begin = stop
    try:
        yield
    finally:
        FineTuning.on_step_begin = plain


def _check(place: Path, model: Path, *more: object) -> list[str]:
    given = ["check", str(model), str(place / "some.csv"), "--sense", "any", "--device", "cpu", "--quiet"]
    return [*given, *map(str, more)]


def commands(kind: str, place: Path, run: Path) -> list[list[str]]:
    """What reads a folder of this kind."""
    cpu, out = ["--device", "cpu"], place / "out"
    if kind == "packed corpus":
        train = ["train", "--corpus", str(run / "corpus.pack"), "--epochs", "1", *SIZES, "--out", str(out), "--force"]
        return [train, [*train, "--method", "ivat"]]
    if kind == "language model":
        start = ["train", "--train", str(place / "reviews.csv"), "--pretrained", str(run), "--epochs", "1"]
        return [
            ["neighbors", str(run), "film", "--k", "2", "--min-count", "1"],
            ["pretrain", "--out", str(run), "--resume", "--epochs", "2", "--quiet", *cpu],
            [*start, "--out", str(out), "--force", *SIZES],
        ]
    if kind == "earlier check":
        return [_check(place, place / "other model", "--against", run / "check.json")]
    data = str(place / ("some.conll" if kind in ("tagger", "spelling") else "some.csv"))
    text = "the film is warm"
    found = [
        ["predict", str(run), text, *cpu],
        ["evaluate", str(run), data, *cpu],
        ["explain", str(run), text, *cpu],
        ["attack", str(run), data, "--json", "--quiet", *cpu],
        ["neighbors", str(run), "film", "--k", "2", "--min-count", "1"],
        ["report", str(run), "--out", str(place / "report.html"), "--attack", "4", "--sentences", "1", *cpu],
    ]
    if kind == "other model":
        more = [
            "augment",
            str(run),
            data,
            "--out",
            str(place / "new.csv"),
            "--force",
            "--sense",
            "any",
            "--quiet",
            *cpu,
        ]
        start = [
            "train",
            "--train",
            data,
            "--epochs",
            "1",
            "--model",
            str(run),
            "--out",
            str(out),
            "--force",
            "--quiet",
        ]
        return [*found[:4], more, _check(place, run), [*start, *cpu]]
    if kind == "convolution":
        found.append(["export", str(run), "--onnx", str(place / "out.onnx")])
    if kind == "sweep":
        sweep = ["train", "--train", str(place / "reviews.csv"), "--epochs", "1", *SIZES, "--sweep", "epsilon=1,2"]
        return [found[0], [*sweep, "--out", str(run), "--resume"], [*sweep, "--out", str(run), "--resume"]]
    epochs = ["--epochs", "1" if "transformer" in kind else "3"]  # the tenth of a damaged number is enough
    resume = ["train", "--out", str(run), "--resume", *epochs, "--patience", "3", "--quiet", *cpu]
    return [resume] if kind == "stopped transformer" else [*found, resume, resume]


def damaged(place: Path, kinds: tuple[str, ...], count: int, seed: int) -> Iterator[Outcome]:
    """Damage a folder so many times, and give it to a command each time."""
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        kind = rng.choice(kinds)
        folder = place / "damaged"
        restore(folder, place / kind)
        damage = mutate(folder, rng)
        while kind == "earlier check" and damage.endswith(("pipe", "zero")):  # which --against <(zcat ...) is, too
            restore(folder, place / kind)
            damage = mutate(folder, rng)
        chosen = rng.choice(commands(kind, place, folder))
        status, problem = _tried(chosen)
        yield Outcome(kind, f"{number}: {damage}", " ".join(chosen[:1] + chosen[-4:]), status, problem)


def _tried(command: list[str]) -> tuple[int | None, str]:
    """The exit status of a command, and what went wrong that should not."""

    def late(*_: object) -> None:
        raise TimeoutError(f"it took more than {SECONDS} s")

    before, said, began = _megabytes(), io.StringIO(), time.monotonic()
    signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    status, problem = None, ""
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            status = main(command)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        places = [frame for frame in traceback.extract_tb(error.__traceback__) if "wordward/" in frame.filename]
        last = places[-1] if places else None
        where = f" at {last.filename.rpartition('wordward/')[2]}:{last.lineno}" if last else ""
        problem = f"{type(error).__name__}: {str(error)[:150]}{where}"
    finally:
        signal.alarm(0)
    if not problem and (taken := _megabytes() - before) > MEGABYTES:
        problem = f"it took {taken} MB: {said.getvalue()[-150:]}"
    if not problem and "not enough memory" in said.getvalue():
        problem = f"it asked for too much memory: {said.getvalue()[-150:]}"
    if not problem and time.monotonic() - began > SECONDS:  # said as another error
        problem = "it took too long"
    return status, problem


def _megabytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1 << 20 if sys.platform == "darwin" else 1 << 10)


def report(damages: int, seed: int, which: str, *, keep: bool) -> int:
    """Damage folders, show what went wrong, and print the figures as a line of JSON."""
    kinds = KINDS[which]
    counts, began = Counter[str](), time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        build(Path(name), kinds)
        for outcome in damaged(Path(name), kinds, damages, seed):
            counts["worked" if outcome.status == 0 else "refused" if not outcome.problem else "problems"] += 1
            if outcome.problem:
                print(f"{outcome.run} [{outcome.damage}] {outcome.command}\n    {outcome.problem}", flush=True)
    figures = {"damages": damages, "kinds": len(kinds), "seed": seed}
    figures |= {name: counts[name] for name in ("worked", "refused", "problems")}
    figures["seconds"] = round(time.monotonic() - began)
    record(f"damaged_{which}", figures, keep=keep)
    return 1 if counts["problems"] else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--damages", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--which", choices=KINDS, default="folders")
    parser.add_argument("--record", action="store_true", help="keep the figures for the documentation")
    given = parser.parse_args()
    sys.exit(report(given.damages, given.seed, given.which, keep=given.record))
