"""Settings and files that all tests share."""

import csv
from pathlib import Path

import pytest
import torch
from hypothesis import settings
from reviews import reviews, tagged

settings.register_profile("wordward", deadline=None, derandomize=True)
settings.load_profile("wordward")
torch.set_num_threads(1)  # tiny tensors: more threads only wait for each other


@pytest.fixture(autouse=True)
def seed() -> None:
    """Each test starts at the same random state."""
    torch.manual_seed(0)


@pytest.fixture
def csv_file(tmp_path: Path) -> Path:
    """240 labelled little reviews."""
    path = tmp_path / "reviews.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        writer.writerows([example.text, example.label] for example in reviews(240))
    return path


@pytest.fixture
def conll_file(tmp_path: Path) -> Path:
    """160 tagged sentences."""
    path = tmp_path / "tags.conll"
    blocks = [
        "".join(
            f"{token}\t{tag}\n" for token, tag in zip(example.tokens or (), example.tags or (), strict=True)
        )
        for example in tagged(160)
    ]
    path.write_text("\n".join(blocks))
    return path
