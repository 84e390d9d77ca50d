"""The bookkeeping of a run: which epoch's model is kept, and what is said of it."""

from pathlib import Path

import pytest
import torch
from reviews import reviews

from wordward.config.settings import ModelSettings, TrainConfig, TrainingSettings
from wordward.runs.metrics import Interval
from wordward.train.record import Record
from wordward.train.trainer import Trainer
from wordward.train.training import train


@pytest.mark.parametrize(
    ("tolerance", "kept", "said"),
    [
        (None, [1, 2], ["best so far", "best so far", "", ""]),
        (0.05, [1, 2, 3], ["best so far", "best so far", "as good within chance", ""]),
    ],
)
def test_a_later_epoch_is_kept_if_it_is_as_good_but_for_chance(
    tolerance: float | None, kept: list[int], said: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, saved = Record(tmp_path, quiet=False), []
    for value in (-0.30, -0.20, -0.24, -0.26):  # the last is within the tolerance of the third, not of the best
        record.add(torch.tensor(1.0))
        record.close_epoch(
            value,
            f"dev error {-value:.2f}",
            steps=1,
            scores={},
            table=torch.ones(2, 2),
            save_model=lambda: saved.append(record.epoch),
            tolerance=tolerance,
        )
    assert saved == kept
    assert record.best == {"score": -0.20, "epoch": kept[-1]}
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition("dev error")[2][5:].strip() for line in lines] == said


@pytest.mark.parametrize(("self_training", "errors", "kept"), [(False, 0.45, 1), (True, 0.45, 3), (True, 0.7, 1)])
def test_of_self_trainings_many_epochs_one_is_best_by_chance_alone(
    self_training: bool, errors: float, kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = iter([0.2, errors, errors])  # of 20 texts: 0.25 is more than one standard error, and less than two
    monkeypatch.setattr(Trainer, "_dev", lambda self: {"error": Interval(next(found), 0.0, 1.0)})
    settings = TrainingSettings(device="cpu", epochs=3, schedule="linear", self_training=self_training)
    model = ModelSettings(kind="lstm", dim=4, hidden=4, head=4)
    config = TrainConfig("vat", model=model, training=settings)
    result = train(config, tmp_path / "run", train=reviews(20), dev=reviews(20, 1), quiet=True)
    assert result["best_epoch"] == kept


def test_a_run_stopped_again_tells_of_the_model_that_is_kept(tmp_path: Path) -> None:
    def closed(record: Record, value: float) -> None:
        record.add(torch.tensor(1.0))
        scores = {"dev": {"error": -value}}
        record.close_epoch(value, "", steps=1, scores=scores, table=torch.ones(2, 2), save_model=lambda: None)

    first = Record(tmp_path, quiet=True)
    closed(first, -0.3)
    state = first.state()
    closed(first, -0.1)  # kept, but stopped before a checkpoint
    again = Record(tmp_path, quiet=True)
    again.load(state)
    assert again.best["epoch"] == 1
    assert (again.saved["epoch"], again.saved["dev"]) == (2, {"error": 0.1})
    closed(again, -0.2)  # another model takes its place
    assert (again.saved["epoch"], again.saved["dev"]) == (2, {"error": 0.2})
    fresh = Record(tmp_path, quiet=True)
    fresh.load(None)  # no checkpoint at all

    def stop() -> None:
        raise KeyboardInterrupt

    assert fresh.interrupted(stop, lambda: pytest.fail("the model that is kept is overwritten"))
