"""Self-training of a Transformer: the model that learnt from labels alone is its teacher."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from wordward.runs.run_folder import RunError
from wordward.train.finetuning_trainer import twice
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


def test_it_is_the_model_it_was_made_of_without_dropout(model: Small, tmp_path: Path) -> None:
    teacher = Teacher(tmp_path, first=True)
    expected = model.eval()(**TEXTS).logits
    model.train()
    teacher.take(model, resumed=False)
    changed(model)
    teacher.take(model, resumed=True)
    torch.testing.assert_close(teacher(TEXTS), expected, rtol=0, atol=0)
    assert not teacher(TEXTS).requires_grad
    assert model.training
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_a_resumed_run_has_the_same_one(model: Small, tmp_path: Path) -> None:
    first = Teacher(tmp_path, first=True)
    first.take(model, resumed=False)
    changed(model)
    resumed = Teacher(tmp_path, first=True)
    resumed.take(model, resumed=True)
    torch.testing.assert_close(resumed(TEXTS), first(TEXTS), rtol=0, atol=0)


@pytest.mark.parametrize("content", [None, b"", b"no weights"])
def test_a_lost_or_damaged_one_is_named(model: Small, tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "teacher.safetensors").write_bytes(content)
    with pytest.raises(RunError, match=r"teacher\.safetensors is damaged .*to start this run from the beginning"):
        Teacher(tmp_path, first=True).take(model, resumed=True)


def test_only_the_first_of_several_processes_writes(model: Small, tmp_path: Path) -> None:
    Teacher(tmp_path, first=False).take(model, resumed=False)
    assert not list(tmp_path.iterdir())


def test_the_learning_rate_rises_and_falls_twice() -> None:
    rates = [twice(step, 40) for step in range(40)]
    assert rates[:20] == rates[20:]
    assert rates[:3] == [0.0, 0.5, 1.0]
    assert rates[2:20] == sorted(rates[2:20], reverse=True)
    assert 0 < rates[19] < 0.06


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
def test_few_steps_have_a_learning_rate(steps: int) -> None:
    assert all(0 <= twice(step, steps) <= 1 for step in range(steps + 1))
