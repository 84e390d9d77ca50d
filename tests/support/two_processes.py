"""What each of two processes does for tests/processes/test_distributed.py, and the same in one."""

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from wordward.cli.main import main
from wordward.config.settings import (
    DataSettings,
    MethodSettings,
    ModelSettings,
    PretrainConfig,
    TrainConfig,
    TrainingSettings,
)
from wordward.perturbation.recipes import RECIPES
from wordward.support.distributed import ALONE, Team, team
from wordward.text.corpus import Batch, Stream
from wordward.train.building import adversaries, build
from wordward.train.data import prepare
from wordward.train.pretraining import pretrain
from wordward.train.step import Stepper
from wordward.train.training import DivergedError, train
from wordward.train.updater import Updater

CPU = torch.device("cpu")
# A head of very few units may be dead for a text, whose gradient is then only rounding.
SIZES = ModelSettings(dim=6, hidden=5, head=12, word_dropout=0.0, head_dropout=0.0)
STEPS = 4  # an epoch, with batches of 5 texts and a last one of a single text, and the first step of the next
NEAR = MethodSettings(epsilon=1.0, k=3, refresh=3)
CASES: dict[str, tuple[str, str, MethodSettings]] = {
    **{f"classify {name}": ("reviews.csv", name, NEAR) for name in ("baseline", *RECIPES)},
    **{f"tag {name}": ("tags.conll", name, NEAR) for name in ("baseline", *RECIPES)},
    "tag iadvt+vat by tokens": ("tags.conll", "iadvt+vat", replace(NEAR, average="tokens")),
    "classify random+ivat": ("reviews.csv", "random+ivat", replace(NEAR, power_iterations=2)),
    "classify iadvt-rand over all words": ("reviews.csv", "iadvt-rand", replace(NEAR, k=None)),
}


def case_config(folder: Path, case: str) -> TrainConfig:
    file, method, settings = CASES[case]
    return TrainConfig(
        method=method,
        data=DataSettings(train=str(folder / file), limit=12, dev_share=0.1),
        model=SIZES,
        perturbation=settings,
        training=TrainingSettings(
            batch_size=5,
            unlabelled_batch_size=3,
            learning_rate=0.02,
            decay=0.9,
            clip=0.5,
            averaging=0.5,
            device="cpu",
        ),
    )


def run_case(folder: Path, case: str, processes: Team) -> dict[str, Tensor]:
    """The weights after some steps, in double precision, their average, and the losses."""
    config, data = prepare(case_config(folder, case))
    torch.manual_seed(0)
    model = build(config, data).double()
    stepper = Stepper(
        model,
        adversaries(config, data, model),
        config.training,
        CPU,
        average=config.perturbation.average,
        team=processes,
    )
    processes.fork_rng(CPU, seed=0, steps=0)
    assert len(data.train.rows) % 5 == 1
    labelled = Stream(data.train, 5, seed=(0, 1), team=processes)
    unlabelled = Stream(data.train, 3, seed=(0, 2), team=processes)
    losses = [stepper(labelled.next(CPU), unlabelled.next(CPU) if stepper.virtual else None) for _ in range(STEPS)]
    assert stepper.updater.average is not None
    return {**model.state_dict(), **stepper.updater.average.tensors(), "losses": torch.stack(losses)}


def whole_config(folder: Path, method: str, **model: float) -> TrainConfig:
    return TrainConfig(
        method=method,
        data=DataSettings(train=str(folder / "reviews.csv"), limit=60),
        model=replace(SIZES, **model),  # type: ignore[arg-type]
        perturbation=NEAR,
        training=TrainingSettings(
            epochs=3, batch_size=7, learning_rate=0.02, averaging=0.9, checkpoint_steps=5, device="cpu"
        ),
    )


def reading_config(folder: Path, **model: float) -> PretrainConfig:
    return PretrainConfig(
        texts=(str(folder / "reviews.csv"),),
        epochs=2,
        streams=5,
        window=9,
        learning_rate=0.01,
        device="cpu",
        model=replace(SIZES, **model),  # type: ignore[arg-type]
    )


def command(folder: Path) -> list[str]:
    """`wordward train` into a folder of the name that is relative to where a process works."""
    sizes = "--dim 6 --hidden 5 --head 12 --word-dropout 0 --head-dropout 0 --batch-size 7 --epochs 2 --k 3"
    return [
        "train",
        "--train",
        str(folder / "reviews.csv"),
        "--out",
        "run",
        "--device",
        "cpu",
        *sizes.split(),
    ]


def work(rank: int, folder: Path) -> None:
    """All that one of two processes does."""
    own = folder / f"process-{rank}"
    own.mkdir()
    os.chdir(own)
    with Path("shown.txt").open("w") as shown:
        os.dup2(shown.fileno(), 2)  # what `wordward` says goes to standard error
    assert main(command(folder)) == 0
    for case in CASES:
        save_file(run_case(folder, case, team("cpu")), own / f"{case}.safetensors")
    _whole_runs(folder)
    _interrupted(folder, rank)
    _overflow_and_divergence(rank)
    (own / "done").touch()


def _whole_runs(folder: Path) -> None:
    """Runs with dropout, one of them broken off and taken up again."""
    dropout = {"word_dropout": 0.3, "head_dropout": 0.3}
    settings = whole_config(folder, "iadvt+random-kl", **dropout)
    train(settings, folder / "two", quiet=True)
    with pytest.MonkeyPatch.context() as patch:
        _break_off(patch, at=9)
        with pytest.raises(ZeroDivisionError):
            train(settings, folder / "cut", quiet=True)
    train(TrainConfig(), folder / "cut", resume=True, quiet=True)
    pretrain(reading_config(folder), folder / "lm two", quiet=True)
    reading = reading_config(folder, word_dropout=0.3)
    pretrain(reading, folder / "lm whole", quiet=True)
    pretrain(replace(reading, epochs=1), folder / "lm cut", quiet=True)
    pretrain(PretrainConfig(epochs=2), folder / "lm cut", resume=True, quiet=True)
    late = pretrain(replace(reading, minutes=1e-9), folder / "lm late", quiet=True)
    assert late["epochs"] == 1


def _break_off(patch: pytest.MonkeyPatch, *, at: int) -> None:
    step = Stepper.__call__

    def broken(self: Stepper, *batches: Batch | None) -> Tensor:
        if self.updater.steps == at:
            raise ZeroDivisionError("power cut")
        return step(self, *batches)  # type: ignore[arg-type]

    patch.setattr(Stepper, "__call__", broken)


def _interrupted(folder: Path, rank: int) -> None:
    """Ctrl-C that reaches the second process alone stops both after the same step."""
    step = Stepper.__call__

    def interrupted(self: Stepper, *batches: Any) -> Tensor:
        if rank == 1 and self.updater.steps == 12:
            os.kill(os.getpid(), signal.SIGINT)
        return step(self, *batches)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stepper, "__call__", interrupted)
        result = train(whole_config(folder, "baseline"), folder / "stopped", quiet=True)
    assert result["stopped"]
    assert result["steps"] == 13
    assert result["best_epoch"] == 1


def _overflow_and_divergence(rank: int) -> None:
    """What is no number in one process is seen by both, which skip the step or stop at it."""
    processes, model = team("cpu"), nn.Linear(3, 2)
    processes.same(model)
    updater = Updater(model, CPU, clip=1.0, precision="fp16", team=processes)
    before = model.weight.detach().clone()
    for broken in (True, False):
        updater.begin(0.1)
        loss = updater.backward(model(torch.ones(1, 3)).sum())
        assert model.weight.grad is not None
        if broken and rank == 1:
            model.weight.grad[0, 0] = torch.inf
        updater.finish(loss)
        assert torch.equal(model.weight, before) == broken
    assert len(set(processes.gather(float(updater.scaler.get_scale())))) == 1
    updater.finish(torch.tensor(torch.nan if rank == 1 else 1.0))
    with pytest.raises(DivergedError, match="step 3"):
        updater.refuse_broken(lambda: "nothing is kept")


def run_alone(folder: Path) -> None:
    """What the two processes are compared with."""
    for case in CASES:
        save_file(run_case(folder, case, ALONE), folder / f"{case}.safetensors")
    pretrain(reading_config(folder), folder / "lm one", quiet=True)
