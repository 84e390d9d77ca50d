"""Training for so many minutes, and resuming with the flags a run was started with."""

import itertools
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from reviews import reviews, write_csv
from small_training import SMALL, config

import wordward.train.clock
from wordward.cli.main import main
from wordward.config import ModelSettings, PretrainConfig, TrainConfig
from wordward.runs import run_folder
from wordward.runs.opening import load_run
from wordward.support.errors import SettingError
from wordward.train import pretrain, train
from wordward.train.clock import Clock
from wordward.train.trainer import Trainer


def test_time_ends_an_epoch_and_dev_is_scored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(monotonic=itertools.count().__next__)  # a second each time it is looked at
    monkeypatch.setattr(wordward.train.clock, "time", clock)
    settings = config(write_csv(tmp_path / "t.csv", reviews(200)), epochs=50, patience=50, batch_size=4, minutes=1)
    result = train(settings, tmp_path / "run")
    # An epoch has 45 steps, each of which looks once; then the clock is stopped, dev scored, a checkpoint
    # written (which is timed), and the clock started again.
    assert (result["epochs"], result["steps"], result["stopped"]) == (2, 53, False)
    assert len(run_folder.read_metrics(tmp_path / "run")) == 2
    assert "stopping: 1 minute is over" in capsys.readouterr().err
    assert load_run(tmp_path / "run").predict(["a warm film"])[0].label in ("good", "bad")
    # Resumed, the time before counts; with more it goes on.
    again = train(settings, tmp_path / "run", resume=True, quiet=True)
    assert again["steps"] - result["steps"] < 5  # what was not training is left
    longer = replace(settings, training=replace(settings.training, minutes=2))
    assert train(longer, tmp_path / "run", resume=True, quiet=True)["steps"] > result["steps"] + 30


def test_the_shortest_time_still_gives_a_model(tmp_path: Path) -> None:
    settings = config(write_csv(tmp_path / "t.csv", reviews(40)), minutes=1e-9)
    result = train(settings, tmp_path / "run", quiet=True)
    assert (result["epochs"], result["steps"], result["best_epoch"]) == (1, 1, 1)
    with pytest.raises(SettingError, match="minutes must be greater than 0, or None"):
        config(tmp_path, minutes=0.0)


def test_without_minutes_nothing_changes(tmp_path: Path) -> None:
    settings = config(write_csv(tmp_path / "t.csv", reviews(40)), epochs=2)
    train(settings, tmp_path / "one", quiet=True)
    timed = replace(settings, training=replace(settings.training, minutes=60.0))
    train(timed, tmp_path / "other", quiet=True)
    one, other = ((tmp_path / name / run_folder.WEIGHTS).read_bytes() for name in ("one", "other"))
    assert one == other


def test_resume_takes_the_flags_it_was_started_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, run, lm = str(write_csv(tmp_path / "t.csv", reviews(40))), str(tmp_path / "run"), str(tmp_path / "lm")
    small = "--preset small --dim 12 --hidden 12 --epochs 1 --device cpu --quiet".split()
    settings = tmp_path / "settings.toml"
    settings.write_text("learning_rate = 0.02\nk = 3\n")
    command = ["train", "--train", file, "--config", str(settings), "--lowercase", "--out", run, *small]
    assert main(command) == 0
    assert main([*command, "--resume"]) == 0
    assert main([*command, "--resume", "--epochs", "2"]) == 0
    assert run_folder.load_config(run, TrainConfig).training.epochs == 2
    capsys.readouterr()
    assert main([*command, "--resume", "--k", "4", "--batch-size", "8"]) == 1
    said = capsys.readouterr().err
    assert "--k, --batch-size came with it, not as the run has them" in said.replace(
        "--batch-size, --k", "--k, --batch-size"
    )
    assert "--lowercase" not in said
    command = ["pretrain", "--texts", file, "--streams", "4", "--window", "10", "--out", lm, *small]
    assert main(command) == 0
    assert main([*command, "--resume", "--epochs", "2"]) == 0
    assert len(run_folder.read_metrics(Path(lm))) == 2
    assert main([*command, "--resume", "--window", "20"]) == 1
    assert "--window came with it, not as the run has it" in capsys.readouterr().err


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_fewer_epochs_than_trained_are_refused_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a checkpoint before the best epoch, an earlier epoch would come out as the best."""
    texts = write_csv(tmp_path / "t.csv", reviews(40))
    monkeypatch.setattr(wordward.train.clock, "RARELY", 1e9)  # one checkpoint, after the first epoch
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "fit", Trainer._fit)  # killed before it writes the last one
        train(config(texts, epochs=3), tmp_path / "run", quiet=True)
    before = contents(tmp_path / "run")
    with pytest.raises(SettingError, match=r"epochs must be at least 3, as many as .* has trained already, but is 2"):
        train(config(texts, epochs=2), tmp_path / "run", resume=True, quiet=True)
    assert contents(tmp_path / "run") == before
    assert train(config(texts, epochs=3), tmp_path / "run", resume=True, quiet=True)["epochs"] == 3
    reading = PretrainConfig(texts=(str(texts),), epochs=2, streams=4, window=10, model=SMALL, device="cpu")
    pretrain(reading, tmp_path / "lm", quiet=True)
    with pytest.raises(SettingError, match="epochs must be at least 2"):
        pretrain(replace(reading, epochs=1), tmp_path / "lm", resume=True, quiet=True)


def test_resume_of_nothing_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(write_csv(tmp_path / "t.csv", reviews(40)))
    assert main(["train", "--train", file, "--out", str(tmp_path / "none"), "--resume"]) == 1
    assert "none: there is no such folder here to resume; in " in capsys.readouterr().err


def test_minutes_that_are_used_up_are_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock(quiet=False)
    clock.seconds = 90
    clock.say_out_of_time(0.5, trained=False)
    said = " ".join(capsys.readouterr().err.split())
    assert said.startswith("nothing was trained: `minutes` are those of the whole run")
    assert said.endswith("which has trained for 1.5 of 0.5; give more")
    clock.say_out_of_time(0.5, trained=True)
    assert capsys.readouterr().err == "stopping: 0.5 minutes are over\n"


def test_a_language_model_tells_of_minutes_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = PretrainConfig(minutes=1e-9, window=5, streams=2, model=ModelSettings(dim=8, hidden=8), device="cpu")
    texts = [each.text for each in reviews(40)]
    assert pretrain(settings, tmp_path / "lm", texts=texts)["epochs"] == 1
    assert "stopping: 1e-09 minutes are over" in capsys.readouterr().err
    assert pretrain(settings, tmp_path / "lm", texts=texts, resume=True)["epochs"] == 1
    assert "nothing was trained: `minutes` are those of the whole run" in capsys.readouterr().err
