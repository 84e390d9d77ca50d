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
from wordward.runs.checkpoint import save_weights
from wordward.runs.hub import load_model, load_tokenizer
from wordward.runs.input_table import installed_model
from wordward.runs.opening import load_run, open_model
from wordward.runs.run import Run
from wordward.runs.run_folder import save_settings
from wordward.text.vocabulary import SPECIALS, Vocabulary

WORDS, COUNT, MANY = 230, 32, 256  # many on a GPU
GROUP, GOAL = "using a model", "at least 1,000"
JOBS, EACH = 14, 1_024  # processes that share a GPU, and texts for each of them
SWAPS = AttackSettings(max_swaps=2)
SURE = 200  # times as sure as a head is before it has learnt


def using(device: torch.device) -> Iterator[Figure]:
    """Many texts together, each about as long as a film review; on a GPU a Transformer, too, if one is installed."""
    gpu = device.type == "cuda"
    sizes = ModelSettings() if gpu else ModelSettings(dim=64, hidden=128)
    run, goal = a_run(20_000, sizes, device.type), GOAL if gpu else ""
    yield from rates(run, run.vocabulary, "", f"LSTM {sizes.dim} -> {sizes.hidden}, 20,000 words", goal=goal)
    if not gpu:
        return
    with TemporaryDirectory() as place:
        yield together(saved(run, Path(place)), run.vocabulary, "")
    if (folder := installed_model()) is not None:
        with TemporaryDirectory() as place:
            run = a_transformer(folder, Path(place), device.type)
            words = whole_words(run)
            yield from rates(run, words, "Transformer: ", "MiniLM of six layers", goal=goal)
            yield together(run, words, "Transformer: ")


def works(run: Run, examples: list[Example]) -> dict[str, Callable[[], object]]:
    """What is measured, by name."""
    return {
        "predict": lambda: run.predict([example.text for example in examples]),
        "explain, iadvt": lambda: explain(run, examples),
        "explain, advt": lambda: explain(run, examples, method="advt"),
        "explain, iadvt, all places": lambda: [each.places for each in explain(run, examples)],
        "attack, up to 2 swaps": lambda: list(attack(run, examples, SWAPS)),
    }


def rates(run: Run, words: Vocabulary, before: str, model: str, *, goal: str) -> Iterator[Figure]:
    """Texts a second of each."""
    count = MANY if run.device.type == "cuda" else COUNT
    note = f"{count} texts of about {WORDS} words, {model}"
    taken = side_by_side(works(run, texts(count, WORDS, words)), run.device, repeats=3, times=1)
    for name, seconds in taken.items():
        target = "" if name in ("predict", "explain, iadvt, all places") else goal  # places are made when asked for
        yield rate(GROUP, f"{before}{name}", count, seconds, "texts/s", note=note, target=target)


def together(run: Run, words: Vocabulary, before: str) -> Figure:
    """Texts a second that several processes attack together, from when a quarter of the texts are done."""
    examples = texts(JOBS * EACH, WORDS, words)
    done = [time.perf_counter() for _ in attack(run, examples, SWAPS, jobs=JOBS)]
    begun = len(done) // 4
    taken = (done[-1] - done[begun - 1]) / (len(done) - begun)
    name, note = f"attack, up to 2 swaps, {JOBS} processes", f"{len(examples):,} texts, once all have begun"
    return rate(GROUP, f"{before}{name}", 1, [taken], "texts/s", note=note, target=GOAL)


def saved(run: Run, folder: Path) -> Run:
    """A run in a folder, from which other processes open it."""
    save_settings(folder, run.config, run.vocabulary, run.labels)
    save_weights(folder, run.model, run.vocabulary)
    return load_run(folder, device=run.device.type)


def whole_words(run: Run) -> Vocabulary:
    """The pieces that are words of letters by themselves, in the order of their ids: frequent ones come first."""
    words = [run.vocabulary.word(int(number)) for number in run.vocabulary.candidates()]
    kept = tuple(dict.fromkeys(word for word in words if word.isalpha() and word.islower()))
    return Vocabulary((*SPECIALS, *kept), np.ones(len(SPECIALS) + len(kept)))


def a_transformer(folder: Path, place: Path, device: str) -> Run:
    """The installed Transformer with a head for two labels that has learnt nothing, but is sure of itself."""
    torch.manual_seed(0)
    model = load_model(str(folder), tagging=False, labels=("bad", "good"))
    model.classifier.weight.data.mul_(SURE)
    model.save_pretrained(place)
    load_tokenizer(str(folder), tagging=False).save_pretrained(place)
    return open_model(str(place), device=device)
