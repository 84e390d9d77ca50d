"""Small models of texts that hold given words of grammar and many made-up ones."""

import random
from pathlib import Path
from typing import Literal

from reviews import write_csv

from wordward.config.settings import DataSettings, ModelSettings, TextSettings, TrainConfig, TrainingSettings
from wordward.datasets import Example
from wordward.runs.opening import load_run
from wordward.runs.run import Run
from wordward.train.training import train

FRENCH, ENGLISH = "le film qu il est dans une", "the film of it is for and"
SYLLABLES = [a + b for a in "bdfglmprtv" for b in "aeiou"]


def a_run(
    folder: Path, grammar: str, *, kind: Literal["lstm", "convolution"] = "lstm", vectors: str | None = None
) -> Run:
    """A classifier of texts with these words and many others."""
    rng = random.Random(0)
    many = ["".join(rng.choices(SYLLABLES, k=3)) for _ in range(700)]
    texts = [
        Example(" ".join([*grammar.split(), "superbe" if at % 2 else "ennuyeux", *rng.sample(many, 30)]), str(at % 2))
        for at in range(120)
    ]
    config = TrainConfig(
        method="advt",
        vectors=vectors,
        data=DataSettings(train=str(write_csv(folder / "texts.csv", texts))),
        model=ModelSettings(kind=kind, dim=32, hidden=8, head=4, word_dropout=0.0, head_dropout=0.0),
        text=TextSettings(lowercase=True),
        training=TrainingSettings(epochs=1, device="cpu"),
    )
    train(config, folder / "run", quiet=True)
    return load_run(folder / "run", device="cpu")
