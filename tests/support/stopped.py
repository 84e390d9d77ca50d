"""A run that is stopped and resumed, beside one that never was."""

from collections.abc import Callable
from pathlib import Path

import pytest

from wordward.config.settings import TrainConfig
from wordward.datasets import Example
from wordward.runs import run_folder
from wordward.runs.opening import load_run
from wordward.train.trainer import Trainer
from wordward.train.training import train


def check_stopped_is_never_stopped(asked: TrainConfig, texts: list[Example], place: Path) -> None:
    """The weights of a run of three epochs are the same, to the bit, if it is stopped at its fifth step."""
    train(asked, place / "whole", train=texts, quiet=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "save", _stopping_at(5, Trainer.save))
        assert train(asked, place / "cut", train=texts, quiet=True)["stopped"]
    train(TrainConfig(), place / "cut", train=texts, resume=True, quiet=True)
    whole, cut = (load_run(place / name).weights[0].read_bytes() for name in ("whole", "cut"))
    assert whole == cut
    assert len(run_folder.read_metrics(place / "cut")) == 3


def _stopping_at(step: int, save: Callable[..., None]) -> Callable[..., None]:
    calls = []

    def saving(self: Trainer, written: bool = True) -> None:
        save(self, written)
        calls.append(1)
        if len(calls) == step:
            raise KeyboardInterrupt

    return saving
