"""Runs whose model has learnt nothing yet."""

from pathlib import Path
from typing import Any

import torch

from wordward.config.settings import (
    MethodSettings,
    ModelSettings,
    TextSettings,
    TrainConfig,
    TrainingSettings,
)
from wordward.models import Classifier, Tagger
from wordward.runs.run import Run
from wordward.runs.word_run import WordRun
from wordward.text.vocabulary import Vocabulary

SENTENCE = "the cast was good and the ending was dull".split()
MODEL = ModelSettings(dim=6, hidden=5, head=4)


def a_run(*, task: str = "classify", k: int | None = None, min_count: int = 1, **text: Any) -> Run:
    """A run whose model has learnt nothing yet."""
    vocabulary = Vocabulary.build([SENTENCE] * 3)
    kind, labels = (Tagger, ("c", "i")) if task == "tag" else (Classifier, ("bad", "good"))
    settings = TrainConfig(
        task=task,  # type: ignore[arg-type]
        text=TextSettings(**text),
        model=MODEL,
        perturbation=MethodSettings(epsilon=2.0, k=k),
        training=TrainingSettings(min_candidate_count=min_count),
    )
    model = kind(len(vocabulary), len(labels), MODEL).eval()
    return WordRun(Path("runs/mine"), settings, vocabulary, labels, model, torch.device("cpu"))
