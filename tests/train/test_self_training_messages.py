"""Training of a Transformer in halves: what is said where the second, with the KL method, is not reached."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hf_tiny import saved
from reviews import reviews, write_csv

from wordward.config import DataSettings, TrainConfig, TrainingSettings
from wordward.perturbation.settings import MethodSettings
from wordward.train import train
from wordward.train.clock import Clock
from wordward.train.finetuner import FineTuning
from wordward.train.finetuning_trainer import twice
from wordward.train.self_training_messages import say_pace


def halves_of(tmp_path: Path, **training: Any) -> TrainConfig:
    """Two epochs a half, of three steps each."""
    more = tmp_path / "more.txt"
    more.write_text("".join(f"{each.text}\n" for each in reviews(30, seed=9)))
    settings = {"epochs": 4, "learning_rate": 0.01, "batch_size": 16, "device": "cpu", "self_training": True}
    return TrainConfig(
        method="ivat",
        transformer=str(tmp_path / "tiny"),
        data=DataSettings(train=str(write_csv(tmp_path / "t.csv", reviews(50))), unlabelled=str(more)),
        perturbation=MethodSettings(epsilon=0.5, k=5),
        training=TrainingSettings(**settings | training),  # type: ignore[arg-type]
    )


UNREACHED = "ended before its second half, the only one with ivat and texts without labels"


@pytest.mark.parametrize(("last", "told"), [(2, True), (6, True), (7, False), (1000, False)])
def test_time_that_ends_before_the_second_half_is_told_of(
    last: int, told: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sixth step is the last of the first half."""
    monkeypatch.setattr(Clock, "out_of_time", lambda self, deadline, team=None: going[0].steps >= last)
    going: list[FineTuning] = []
    fit = FineTuning.fit
    monkeypatch.setattr(FineTuning, "fit", lambda self: (going.append(self), fit(self)))
    saved(tmp_path / "tiny", dropout=0.1)
    result = train(halves_of(tmp_path, minutes=60.0), tmp_path / "run")
    assert result["steps"] == min(last, 12)
    said = " ".join(capsys.readouterr().err.split())
    assert (UNREACHED in said) is told
    assert ("trained without that; `resume=True` with more `minutes` goes on to it" in said) is told


def test_ctrl_c_before_the_second_half_is_told_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(tmp_path / "tiny", dropout=0.1)
    settings, ended = halves_of(tmp_path), FineTuning.on_epoch_end

    def on_epoch_end(self: FineTuning, *args: Any, **others: Any) -> None:
        if self.steps == 6:
            raise KeyboardInterrupt
        ended(self, *args, **others)

    with monkeypatch.context() as patch:
        patch.setattr(FineTuning, "on_epoch_end", on_epoch_end)
        assert train(settings, tmp_path / "run")["stopped"]
    said = " ".join(capsys.readouterr().err.split())
    assert f"{UNREACHED}: this model was trained without that; `resume=True` goes on to it" in said
    assert train(settings, tmp_path / "run", resume=True)["steps"] == 12
    assert UNREACHED not in " ".join(capsys.readouterr().err.split())


def test_patience_that_ends_before_the_second_half_is_told_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though there were `minutes`, and enough of them."""
    monkeypatch.setattr("wordward.train.finetuner.tolerance", lambda *_: None)
    saved(tmp_path / "tiny", dropout=0.1)
    still = {"learning_rate": 1e-9, "minutes": 60.0}  # it does not learn
    assert train(halves_of(tmp_path, **still, patience=1), tmp_path / "run")["steps"] == 6
    said = " ".join(capsys.readouterr().err.split())
    assert f"{UNREACHED}: this model was trained without that; `resume=True` with a larger `patience` goes on" in said
    assert "`minutes`" not in said
    longer = halves_of(tmp_path, patience=9)
    assert train(longer, tmp_path / "run", resume=True)["steps"] == 12
    assert UNREACHED not in " ".join(capsys.readouterr().err.split())


def test_without_a_second_half_there_is_none_to_reach(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved(tmp_path / "tiny", dropout=0.1)
    train(halves_of(tmp_path, self_training=False, minutes=1e-9), tmp_path / "run")
    assert "second half" not in capsys.readouterr().err


@pytest.mark.parametrize(("minutes", "told"), [(1.0, True), (2.0, False), (None, False)])
def test_a_pace_that_is_too_slow_is_told_of_after_an_epoch(
    minutes: float | None, told: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data: Any = SimpleNamespace(unlabelled=None)
    say_pace(halves_of(tmp_path, minutes=minutes), data, seconds=45.0, quiet=False)
    said = " ".join(capsys.readouterr().err.split())
    slow = "at this pace 1 minutes end after about 1.3 of 4 epochs, before the second half, the only one with ivat: "
    assert said == (f"{slow}give more `minutes` or fewer `epochs`" if told else "")


def test_the_pace_is_looked_at_after_the_first_epoch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Clock, "out_of_time", lambda self, deadline, team=None: False)
    saved(tmp_path / "tiny", dropout=0.1)
    train(halves_of(tmp_path, minutes=1e-6), tmp_path / "run")
    said = " ".join(capsys.readouterr().err.split())
    assert said.count("at this pace") == 1
    assert said.index("epoch 1 loss") < said.index("at this pace") < said.index("epoch 2 loss")
    assert "the only one with ivat and texts without labels: give more `minutes`" in said


@pytest.mark.parametrize("steps", [1, 2, 3, 15, 40, 41])
def test_each_half_rises_and_falls(steps: int) -> None:
    half = max(1, steps // 2)
    rates = [twice(step, steps) for step in range(steps)]
    for part in (rates[:half], rates[half:]):
        top = part.index(max(part, default=0.0)) if part else 0
        assert part[:top] == sorted(part[:top])
        assert part[top:] == sorted(part[top:], reverse=True)
        assert all(0 < rate <= 1 for rate in part[top:])
