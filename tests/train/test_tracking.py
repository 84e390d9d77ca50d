"""Trackers are told the settings and the metrics of each epoch by every training loop."""

import json
import sys
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hf_tiny import saved
from reviews import reviews

from wordward.cli import main as cli
from wordward.config import ModelSettings, PretrainConfig, TrainConfig, TrainingSettings
from wordward.support.errors import MissingExtraError, RunError
from wordward.train import pretrain, train
from wordward.train.tracking import check_tracker, flat

TEXTS = [(each.text, str(each.label)) for each in reviews(40)]
SIZES = ModelSettings(dim=8, hidden=8)
TRACKERS = ("tensorboard", "wandb", "mlflow", "trackio")


def config(tracker: str | None, **changes: Any) -> TrainConfig:
    training = TrainingSettings(epochs=2, device="cpu", report_to=tracker)  # type: ignore[arg-type]
    return TrainConfig("baseline", **({"model": SIZES, "training": training} | changes))


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def scalars(folder: Path) -> dict[str, dict[int, float]]:
    """What TensorBoard itself reads, by step."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder / "tensorboard")).Reload()
    tags = found.Tags()
    assert "settings/text_summary" in tags["tensors"]
    return {name: {each.step: each.value for each in found.Scalars(name)} for name in tags["scalars"]}


class Calls(ModuleType):
    """A package of which only the calls are kept."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = ModuleSpec(name, None, origin="nowhere")
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **options: self.calls.append((name, args, options))


class TestTensorBoard:
    def test_our_own_loop(self, tmp_path: Path) -> None:
        train(config("tensorboard"), tmp_path / "run", train=TEXTS, quiet=True)
        written, found = lines(tmp_path / "run"), scalars(tmp_path / "run")
        assert len(written) == 2
        for name, of_line in (("loss", "loss"), ("dev/error", "error")):
            wanted = {line["steps"]: (line | line["dev"])[of_line] for line in written}
            assert found[name] == pytest.approx(wanted)

    def test_fine_tuning(self, tmp_path: Path) -> None:
        saved(tmp_path / "tiny")
        chosen = config("tensorboard", transformer=str(tmp_path / "tiny"), model=ModelSettings())
        train(chosen, tmp_path / "run", train=TEXTS, quiet=True)
        written = lines(tmp_path / "run")
        assert scalars(tmp_path / "run")["loss"] == pytest.approx({line["steps"]: line["loss"] for line in written})

    def test_the_language_model(self, tmp_path: Path) -> None:
        sizes: Any = {"epochs": 2, "streams": 2, "window": 5, "held_out_share": 0.2, "model": SIZES, "device": "cpu"}
        chosen = PretrainConfig(report_to="tensorboard", **sizes)
        pretrain(chosen, tmp_path / "lm", texts=[text for text, _ in TEXTS], quiet=True)
        found = scalars(tmp_path / "lm")["perplexity"]
        assert found == pytest.approx({line["steps"]: line["perplexity"] for line in lines(tmp_path / "lm")})

    def test_a_resumed_run_goes_on_and_a_replaced_one_starts_anew(self, tmp_path: Path) -> None:
        folder, chosen = tmp_path / "run", config("tensorboard")
        train(chosen, folder, train=TEXTS, quiet=True)
        more = replace(chosen, training=replace(chosen.training, epochs=3))
        train(more, folder, train=TEXTS, quiet=True, resume=True)
        assert len(scalars(folder)["loss"]) == 3
        train(chosen, folder, train=TEXTS, quiet=True, force=True)
        assert len(scalars(folder)["loss"]) == 2

    def test_a_run_without_a_tracker_is_as_before(self, tmp_path: Path) -> None:
        train(config(None), tmp_path / "a", train=TEXTS, quiet=True)
        train(config("tensorboard"), tmp_path / "b", train=TEXTS, quiet=True)
        assert not (tmp_path / "a" / "tensorboard").exists()
        assert "report_to" not in (tmp_path / "a" / "config.toml").read_text()
        kept = [(tmp_path / run / "model.safetensors").read_bytes() for run in "ab"]
        assert kept[0] == kept[1]


@pytest.mark.parametrize("name", TRACKERS[1:])
def test_the_others_are_told_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their own packages take the calls that are made here: docs of wandb.init, mlflow.log_metrics, trackio.log."""
    package = Calls(name)
    monkeypatch.setitem(sys.modules, name, package)
    monkeypatch.setenv("WANDB_PROJECT", "films")
    train(config(name), tmp_path / "mine", train=TEXTS, quiet=True)
    written = [{key: float(value) for key, value in flat(line).items()} for line in lines(tmp_path / "mine")]
    first, *told, last = package.calls
    if name == "mlflow":
        params, *told = told
        assert first == ("start_run", (), {"run_name": "mine"})
        assert params[0] == "log_params"
        assert params[1][0]["training/epochs"] == 2
        assert last == ("end_run", (), {})
    else:
        assert first[0] == "init"
        assert first[2]["name"] == "mine"
        assert first[2]["project"] == ("films" if name == "wandb" else "wordward")
        assert first[2]["config"]["training/epochs"] == 2
        assert last == ("finish", (), {})
    assert [call[1][0] for call in told] == written
    assert [call[2]["step"] for call in told] == [line["steps"] for line in written]


@pytest.mark.parametrize("failing", ["log_metrics", "end_run"])
def test_a_tracker_that_fails_does_not_end_the_run(
    failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    package, told = Calls("mlflow"), []

    def fail(*_: Any, **__: Any) -> None:
        told.append(failing)
        raise ConnectionError("no route to the server")

    setattr(package, failing, fail)
    monkeypatch.setitem(sys.modules, "mlflow", package)
    assert not train(config("mlflow"), tmp_path / "run", train=TEXTS, quiet=True)["stopped"]
    assert len(lines(tmp_path / "run")) == 2
    assert told == [failing]  # once, and nothing after it
    said = " ".join(capsys.readouterr().err.split())
    assert said.count("mlflow failed (ConnectionError: no route to the server) and is told nothing more") == 1
    setattr(package, "start_run", fail)  # noqa: B010
    with pytest.raises(RunError, match=r"mlflow could not be started .* leave out `report_to`"):
        train(config("mlflow"), tmp_path / "other", train=TEXTS, quiet=True)


@pytest.mark.parametrize("name", TRACKERS)
def test_a_missing_package_is_named_before_anything_is_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("wordward.train.tracking.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=f"pip install {name}"):
        check_tracker(name)
    for command in (["train", "--train", "nowhere.csv"], ["pretrain", "--texts", "nowhere.csv"]):
        assert cli.main([*command, "--out", str(tmp_path / "run"), "--report-to", name]) == 1
        said = " ".join(capsys.readouterr().err.split())
        assert f"--report-to {name} needs {name}, which is not installed: pip install {name}" in said
    assert not (tmp_path / "run").exists()


def test_a_folder_of_that_name_is_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trackio").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingExtraError, match="trackio"):
        check_tracker("trackio")


def test_the_tracker_is_closed_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = Calls("trackio")
    monkeypatch.setitem(sys.modules, "trackio", package)

    def broken(*given: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("wordward.train.trainer.Trainer._epoch", broken)
    assert train(config("trackio"), tmp_path / "run", train=TEXTS, quiet=True)["stopped"]
    assert package.calls[-1][0] == "finish"
