"""Using a model: texts predicted, explained and attacked a second."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from benchmarks.attack import a_run, texts
from benchmarks.timing import Figure, rate, side_by_side
from wordward.attack.attacker import attack
from wordward.config.attack import AttackSettings
from wordward.config.settings import ModelSettings
from wordward.datasets import Example
from wordward.explain.explainer import explain
from wordward.runs.hub import load_model, load_tokenizer
from wordward.runs.input_table import installed_model
from wordward.runs.opening import open_model
from wordward.runs.run import Run
from wordward.text.vocabulary import SPECIALS, Vocabulary

WORDS, COUNT, MANY = 230, 32, 256  # many on a GPU
GROUP, GOAL = "using a model", "at least 1,000"
JOBS, EACH = 8, 2_048  # processes that share a GPU, and texts for each of them
SWAPS = AttackSettings(max_swaps=2)


def using(device: torch.device) -> Iterator[Figure]:
    """Many texts together, each about as long as a film review; on a GPU a Transformer, too, if one is installed."""
    sizes = ModelSettings() if device.type == "cuda" else ModelSettings(dim=64, hidden=128)
    run, count = a_run(20_000, sizes, device.type), MANY if device.type == "cuda" else COUNT
    note = f"{count} texts of about {WORDS} words, LSTM {sizes.dim} -> {sizes.hidden}, 20,000 words"
    yield from rates(run, texts(count, WORDS, run.vocabulary), "", note, goal=GOAL if device.type == "cuda" else "")
    if device.type == "cuda" and (folder := installed_model()) is not None:
        with TemporaryDirectory() as place:
            run = a_transformer(folder, Path(place), device.type)
            note = f"{count} texts of about {WORDS} words, MiniLM of six layers"
            examples = texts(count, WORDS, whole_words(run))
            yield from rates(run, examples, "Transformer: ", note, goal=GOAL)
            many = texts(JOBS * EACH, WORDS, whole_words(run))
            name, note = f"attack, up to 2 swaps, {JOBS} processes", f"{len(many):,} texts, once all have begun"
            yield rate(
                GROUP, f"Transformer: {name}", 1, [together(run, many, JOBS)], "texts/s", note=note, target=GOAL
            )


def works(run: Run, examples: list[Example]) -> dict[str, Callable[[], object]]:
    """What is measured, by name."""
    return {
        "predict": lambda: run.predict([example.text for example in examples]),
        "explain, iadvt": lambda: explain(run, examples),
        "explain, advt": lambda: explain(run, examples, method="advt"),
        "explain, iadvt, all places": lambda: [each.places for each in explain(run, examples)],
        "attack, up to 2 swaps": lambda: list(attack(run, examples, SWAPS)),
    }


def rates(run: Run, examples: list[Example], before: str, note: str, *, goal: str = "") -> Iterator[Figure]:
    """Texts a second of each."""
    taken = side_by_side(works(run, examples), run.device, repeats=3, times=1)
    for name, seconds in taken.items():
        target = "" if name in ("predict", "explain, iadvt, all places") else goal  # places are made when asked for
        yield rate(GROUP, f"{before}{name}", len(examples), seconds, "texts/s", note=note, target=target)


def together(run: Run, examples: list[Example], jobs: int) -> float:
    """Seconds a text that several processes take to attack texts together, from when a quarter of these are done."""
    done = [time.perf_counter() for _ in attack(run, examples, SWAPS, jobs=jobs)]
    begun = len(done) // 4
    return (done[-1] - done[begun - 1]) / (len(done) - begun)


def whole_words(run: Run) -> Vocabulary:
    """The pieces that are words of letters by themselves, in the order of their ids: frequent ones come first."""
    words = [run.vocabulary.word(int(number)) for number in run.vocabulary.candidates()]
    kept = tuple(dict.fromkeys(word for word in words if word.isalpha() and word.islower()))
    return Vocabulary((*SPECIALS, *kept), np.ones(len(SPECIALS) + len(kept)))


def a_transformer(folder: Path, place: Path, device: str) -> Run:
    """The installed Transformer with a head for two labels that has learnt nothing."""
    torch.manual_seed(0)
    load_model(str(folder), tagging=False, labels=("bad", "good")).save_pretrained(place)
    load_tokenizer(str(folder), tagging=False).save_pretrained(place)
    return open_model(str(place), device=device)
