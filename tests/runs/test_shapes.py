"""The shapes of a model are those of its tensors, and to find them costs neither memory nor PyTorch's compiler."""

import subprocess
import sys
from functools import partial
from typing import Any

import pytest
from torch import nn

from wordward.config import ModelSettings
from wordward.models import Classifier, Convolution, LanguageModel, Tagger
from wordward.runs.shapes import shapes_of

SIZES = ModelSettings(dim=6, hidden=5, head=4)
MODELS: dict[str, Any] = {
    "classifier": partial(Classifier, 30, 2, SIZES),
    "tagger": partial(Tagger, 30, 2, SIZES),
    "language model": partial(LanguageModel, 30, SIZES),
    "convolution": partial(Convolution, 30, 3, ModelSettings(kind="convolution", dim=6, hidden=5, pairs=True)),
}


@pytest.mark.parametrize("name", MODELS)
def test_they_are_those_of_the_tensors(name: str) -> None:
    assert shapes_of(MODELS[name]) == {key: tuple(value.shape) for key, value in MODELS[name]().state_dict().items()}


def test_sizes_that_no_memory_has() -> None:
    assert shapes_of(lambda: nn.Embedding(1 << 40, 1 << 10)) == {"weight": (1 << 40, 1 << 10)}


def test_the_compiler_is_not_loaded() -> None:
    code = (
        "import sys; from torch import nn; from wordward.runs.shapes import shapes_of\n"
        "shapes_of(lambda: nn.ModuleList([nn.Embedding(9, 4), nn.LSTM(4, 4), nn.Linear(4, 2)]))\n"
        "print('torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
