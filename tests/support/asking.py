"""What a command line asks for, without training."""

from typing import Any

import pytest

import wordward.train.training
from wordward.cli.main import main
from wordward.config.settings import TrainConfig


def asked_of(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> TrainConfig:
    """The settings that a command line asks for."""
    asked: list[Any] = []
    monkeypatch.setattr(
        wordward.train.training, "train", lambda config, *_, **__: asked.append(config) or {"stopped": True}
    )
    assert main(["train", "--out", "some", *map(str, arguments)]) == 130
    return asked[0]
