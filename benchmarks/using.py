"""Using a model: texts predicted, explained and attacked a second."""

from collections.abc import Iterator

import torch

from benchmarks.attack import a_run, texts
from benchmarks.timing import Figure, rate, side_by_side
from wordward.attack.attacker import attack
from wordward.config.attack import AttackSettings
from wordward.config.settings import ModelSettings
from wordward.explain.explainer import explain

WORDS, COUNT = 230, 32


def using(device: torch.device) -> Iterator[Figure]:
    """Many texts together, each about as long as a film review."""
    sizes = ModelSettings() if device.type == "cuda" else ModelSettings(dim=64, hidden=128)
    run = a_run(20_000, sizes, device.type)
    examples = texts(COUNT, WORDS, run.vocabulary)
    works = {
        "predict": lambda: run.predict([example.text for example in examples]),
        "explain, iadvt": lambda: explain(run, examples),
        "explain, advt": lambda: explain(run, examples, method="advt"),
        "attack, up to 2 swaps": lambda: list(attack(run, examples, AttackSettings(max_swaps=2))),
    }
    taken = side_by_side(works, device, repeats=3, times=1)
    for name in works:
        note = f"{COUNT} texts of about {WORDS} words, LSTM {sizes.dim} -> {sizes.hidden}, 20,000 words"
        yield rate("using a model", name, COUNT, taken[name], "texts/s", note=note)
