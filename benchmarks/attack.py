"""Texts attacked a second: many side by side, against reading texts and candidates one at a time.

python -m benchmarks.attack [--texts 200] [--words 230] [--hidden 1024] [--json]
"""

import argparse
import json
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

import wordward.attack.attacker
from wordward.attack import guide
from wordward.attack.attacker import attack
from wordward.config.attack import AttackSettings
from wordward.config.settings import ModelSettings, TrainConfig
from wordward.datasets import Example
from wordward.models import Classifier
from wordward.runs import scoring
from wordward.runs.run import Run
from wordward.runs.word_run import WordRun
from wordward.support.device import pick_device
from wordward.text.vocabulary import SPECIALS, Vocabulary


def a_run(words: int, model: ModelSettings, device: str) -> Run:
    """A model of the given size that has learnt nothing, sure enough of itself to be attacked for some rounds."""
    names = tuple(f"w{number}" for number in range(words))
    vocabulary = Vocabulary((*SPECIALS, *names), np.ones(words + len(SPECIALS)))
    torch.manual_seed(0)
    network = Classifier(len(vocabulary), 2, model).eval()
    where = pick_device(device)
    config = TrainConfig(task="classify", model=model)
    return WordRun(Path("nowhere"), config, vocabulary, ("bad", "good"), network.to(where), where)


def texts(count: int, words: int, vocabulary: Vocabulary, seed: int = 0) -> list[Example]:
    """Texts of about so many words, which are as unequally frequent as words are."""
    rng = random.Random(seed)
    known = vocabulary.words[len(SPECIALS) :]
    frequencies = [1 / (rank + 3) for rank in range(len(known))]
    lengths = [max(5, round(rng.gauss(words, words / 4))) for _ in range(count)]
    return [Example(" ".join(rng.choices(known, frequencies, k=length))) for length in lengths]


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Let the attack read a single text at a time, candidates too."""
    places = [(guide, "TEXTS"), (scoring, "TEXTS"), (wordward.attack.attacker, "CHUNK")]
    before = [getattr(module, name) for module, name in places]
    for module, name in places:
        setattr(module, name, 1)
    try:
        yield
    finally:
        for (module, name), value in zip(places, before, strict=True):
            setattr(module, name, value)


def every_candidate(run: Run, examples: list[Example], rounds: float, sample: int = 32) -> float:
    """Seconds a text if each of a round's words x k candidates were read by the model, one at a time.

    Measured on `sample` of them, since all would take hours.
    """
    words = [[token.text for token in run.read(example).tokens] for example in examples]
    rng = random.Random(0)
    rows = [run.encode([Example(" ".join(rng.choice(words)))], labelled=False).rows[0] for _ in range(sample)]
    started = time.perf_counter()
    for row in rows:
        run.logits([row])
    a_candidate = (time.perf_counter() - started) / sample
    k = run.config.perturbation.k or len(run.vocabulary)
    return a_candidate * k * rounds * sum(map(len, words)) / len(words)


def measure(run: Run, examples: list[Example], settings: AttackSettings, alone: int) -> dict[str, float]:
    """All ways in one run, the slow ones on the first `alone` texts."""
    list(attack(run, examples[:4], settings))  # first calls are slower
    started = time.perf_counter()
    together = list(attack(run, examples, settings))
    seconds = (time.perf_counter() - started) / len(examples)
    started = time.perf_counter()
    with one_at_a_time():
        slowly = list(attack(run, examples[:alone], settings))
    slow = (time.perf_counter() - started) / alone
    same = sum(a.adversarial == b.adversarial for a, b in zip(together, slowly, strict=False))
    rounds = sum(len(each.changes) for each in together) / len(together)
    exhaustive = every_candidate(run, examples, rounds)
    return {
        "texts": len(examples),
        "words a text": sum(each.words for each in together) / len(together),
        "flipped": sum(each.flipped for each in together),
        "swaps a text": rounds,
        "passes a text": sum(each.passes for each in together) / len(together),
        "texts a second": 1 / seconds,
        "same search, one text read at a time: texts a second": 1 / slow,
        "  times as fast": slow / seconds,
        f"  same adversarial text (of {alone})": same,
        "every candidate read, one at a time: texts a second": 1 / exhaustive,
        "  times as fast as that": exhaustive / seconds,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (
        ("texts", 200),
        ("words", 230),
        ("vocabulary", 20_000),
        ("hidden", 1024),
        ("dim", 256),
    ):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--max-swaps", type=int, default=2)
    parser.add_argument("--rescore", type=int, default=8)
    parser.add_argument("--alone", type=int, default=20, help="texts for the slow ways")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    run = a_run(given.vocabulary, ModelSettings(dim=given.dim, hidden=given.hidden), given.device)
    settings = AttackSettings(max_swaps=given.max_swaps, rescore=given.rescore)
    found = measure(run, texts(given.texts, given.words, run.vocabulary), settings, given.alone)
    if given.json:
        print(json.dumps({"device": str(run.device), "threads": torch.get_num_threads(), **found}))
        return
    print(f"{given.dim} -> {given.hidden} LSTM on {run.device}, {torch.get_num_threads()} threads")
    for name, value in found.items():
        print(f"{name:56} {value:12.4g}")


if __name__ == "__main__":
    main()
