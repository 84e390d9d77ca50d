"""Self-training of a Transformer: the model of half of the steps is its teacher."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from wordward.runs.run_folder import RunError
from wordward.train.teacher import Teacher


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.rest, self.head = nn.Embedding(9, 4), nn.Dropout(0.5), nn.Linear(4, 2)

    def forward(self, input_ids: Tensor) -> Any:
        return SimpleNamespace(logits=self.head(self.rest(self.words(input_ids).mean(1))))


TEXTS = {"input_ids": torch.tensor([[1, 2, 3], [4, 5, 6]])}


@pytest.fixture
def model() -> Small:
    torch.manual_seed(0)
    return Small().train()


def changed(model: nn.Module) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 1


def test_it_is_the_model_of_half_of_the_steps_without_dropout(model: Small, tmp_path: Path) -> None:
    teacher = Teacher(tmp_path, first=True)
    assert not teacher.ready(model, 4, 10)
    changed(model)
    expected = model.eval()(**TEXTS).logits
    model.train()
    assert teacher.ready(model, 5, 10)
    changed(model)
    assert teacher.ready(model, 6, 10)
    torch.testing.assert_close(teacher(TEXTS), expected, rtol=0, atol=0)
    assert not teacher(TEXTS).requires_grad
    assert model.training
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_a_resumed_run_has_the_same_one(model: Small, tmp_path: Path) -> None:
    first = Teacher(tmp_path, first=True)
    assert first.ready(model, 5, 10)
    changed(model)
    resumed = Teacher(tmp_path, first=True)
    assert resumed.ready(model, 8, 10)
    torch.testing.assert_close(resumed(TEXTS), first(TEXTS), rtol=0, atol=0)


@pytest.mark.parametrize("content", [None, b"", b"no weights"])
def test_a_lost_or_damaged_one_is_named(model: Small, tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "teacher.safetensors").write_bytes(content)
    with pytest.raises(RunError, match=r"teacher\.safetensors is damaged .*to start this run from the beginning"):
        Teacher(tmp_path, first=True).ready(model, 8, 10)


def test_only_the_first_of_several_processes_writes(model: Small, tmp_path: Path) -> None:
    assert Teacher(tmp_path, first=False).ready(model, 5, 10)
    assert not list(tmp_path.iterdir())
