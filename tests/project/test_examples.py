"""Every example runs, and the loops of others make the updates of a plain one."""

import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from torch import Tensor
from torch.utils.data import DataLoader

import wordward

ROOT = Path(__file__).parents[2]
ELSEWHERE = {"textattack_cross_check.py"}  # needs TextAttack: tests/attack/test_textattack.py runs it
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*LeafSpec.* is deprecated"),  # Lightning, with a newer PyTorch
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),  # Lightning, of our few texts
]


@pytest.fixture(autouse=True)
def accelerators() -> Iterator[None]:
    """What accelerate keeps for a whole process is not to reach the next test."""
    yield
    AcceleratorState._reset_state(reset_partial_state=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({path.name for path in (ROOT / "examples").glob("*.py")} - ELSEWHERE))
def test_example_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
    shown = capsys.readouterr().out
    assert "training error 0%" in shown or "right tags 100%" in shown
    length = len((ROOT / "examples" / name).read_text(encoding="utf-8").splitlines())
    assert length < 40


def test_what_captum_and_wordward_say_of_the_same_text(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "captum_beside.py"))
    lines = capsys.readouterr().out.splitlines()[1:]
    counts = [float(line.split("counts")[1].split(";")[0]) for line in lines]
    pulled = [float(line.rsplit(":", 1)[1]) for line in lines]
    assert max(range(4), key=counts.__getitem__) == max(range(4), key=pulled.__getitem__) == 3
    assert re.search(r"warm counts .* toward (dull|cold|bland|tired)", lines[3])


def test_the_loops_of_others_make_the_updates_of_a_plain_one() -> None:
    """Lightning and accelerate add nothing to the three lines: the same model, batch and seed, the same weights."""
    import lightning  # by the one process that runs this: it takes seconds

    batches, models = _same_start()
    _plainly(models[0], batches)
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(models[1], DataLoader(batches, batch_size=None))  # type: ignore[arg-type]
    accelerator = Accelerator(cpu=True)
    model, optimizer = accelerator.prepare(models[2], models[2].configure_optimizers())
    adv = wordward.iadvt(model, epsilon=1.0, k=3)
    for ids, labels in batches:
        out = adv(lambda ids=ids: model(ids), labels, mask=ids != 0)
        optimizer.zero_grad()
        accelerator.backward(F.cross_entropy(out.clean, labels) + out.loss)
        optimizer.step()
    for other in models[1:]:
        for mine, theirs in zip(models[0].parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(mine, theirs)


def _same_start() -> tuple[list[tuple[Tensor, Tensor]], list[Any]]:
    from lightning_model import Mine

    batches = [(torch.randint(0, 12, (3, 5)), torch.randint(0, 2, (3,))) for _ in range(4)]
    models = [Mine() for _ in range(3)]
    for other in models[1:]:
        other.load_state_dict(models[0].state_dict())
    return batches, models


def _plainly(model: Any, batches: list[tuple[Tensor, Tensor]]) -> None:
    optimizer = model.configure_optimizers()
    for batch in batches:
        optimizer.zero_grad()
        model.training_step(batch).backward()
        optimizer.step()
