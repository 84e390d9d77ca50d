"""Small training runs, and what they leave behind."""

import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file

from wordward.config.settings import (
    DataSettings,
    MethodSettings,
    ModelSettings,
    TrainConfig,
    TrainingSettings,
)
from wordward.runs import run_folder

SMALL = ModelSettings(dim=12, hidden=12, head=6, word_dropout=0.1, head_dropout=0.0)


def config(path: Path, method: str = "iadvt", **training: object) -> TrainConfig:
    values = {"epochs": 4, "learning_rate": 0.02, "device": "cpu"} | training
    return TrainConfig(
        method=method,
        data=DataSettings(train=str(path)),
        model=SMALL,
        perturbation=MethodSettings(epsilon=1.0, k=3, refresh=7),
        training=TrainingSettings(**values),  # type: ignore[arg-type]
    )


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / run_folder.WEIGHTS)


def lines(folder: Path) -> list[dict[str, object]]:
    return [{k: v for k, v in line.items() if k != "seconds"} for line in run_folder.read_metrics(folder)]


def copied(run: Path, folder: Path, data: Path) -> Path:
    """A run in a folder of its own, as if it had been trained there on `data`, which holds the same texts."""
    shutil.copytree(run, folder)
    before = run_folder.load_config(run, TrainConfig).data.train
    config = folder / run_folder.CONFIG
    config.write_text(config.read_text().replace(before, str(data)))
    return folder
