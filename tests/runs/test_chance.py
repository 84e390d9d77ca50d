"""A run that is no better than the most frequent label is said to be so."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from reviews import reviews, write_csv
from untrained import a_run

from wordward.cli.main import main
from wordward.config.settings import ModelSettings, TrainConfig, TrainingSettings
from wordward.report import ReportSettings, gather
from wordward.runs.chance import at_chance
from wordward.runs.run_folder import RESULT
from wordward.train.training import train


def told(folder: Path, *, task: str = "classify", **result: Any) -> str:
    """What is said of a run with this result."""
    whole = {"stopped": False, "texts": {"dev": 100}, "criterion": next(iter(result["dev"] or {"error"})), **result}
    (folder / RESULT).write_text(json.dumps(whole))
    return at_chance(replace(a_run(task=task), folder=folder))


@pytest.mark.parametrize(
    ("error", "majority", "warned"),
    [
        (0.49, 0.5, True),
        (0.5, 0.5, True),
        (0.46, 0.5, True),
        (0.44, 0.5, False),
        (0.1, 0.5, False),
        (0.09, 0.1, True),
        (0.0, 0.0, False),  # all dev texts have one label
    ],
)
def test_the_error_must_be_below_the_majoritys_by_its_standard_error(
    tmp_path: Path, error: float, majority: float, warned: bool
) -> None:
    line = told(tmp_path, dev={"error": error}, majority_error=majority)
    assert bool(line) == warned
    assert not warned or f"{error:.1%}" in line


def test_few_dev_texts_do_not_tell_that_nothing_is_learnt(tmp_path: Path) -> None:
    few = told(tmp_path, dev={"error": 0.2}, majority_error=0.2667, texts={"dev": 30})
    assert few.startswith("it is not known whether ")
    assert "30 dev texts are too few to tell its dev error, 20.0%, from 26.7%" in few
    assert "has not learnt" not in few
    assert "has not learnt" in told(tmp_path, dev={"error": 0.2667}, majority_error=0.2667, texts={"dev": 30})
    assert "has not learnt" in told(tmp_path, dev={"error": 0.23}, majority_error=0.2667, texts={"dev": 120})


def test_more_test_texts_tell_more(tmp_path: Path) -> None:
    def tested(error: float, texts: int) -> dict[str, Any]:
        scores = {"error": {"value": error, "low": error, "high": error}}
        return {"file": "test.csv", "texts": texts, "scores": scores, "majority_error": 0.3}

    few: dict[str, Any] = {"dev": {"error": 0.2}, "majority_error": 0.2667, "texts": {"dev": 30}}
    assert not told(tmp_path, **few, test=tested(0.14, 1000))
    assert "its test error, 29.0%, is not clearly below 30.0%" in told(tmp_path, **few, test=tested(0.29, 1000))
    assert "30 dev texts" in told(tmp_path, **few, test=tested(0.14, 29))
    older = tested(0.14, 1000)
    del older["majority_error"]
    assert "30 dev texts" in told(tmp_path, **few, test=older)


def test_a_tagger_that_never_flags_rightly(tmp_path: Path) -> None:
    assert told(tmp_path, task="tag", dev={"f0.5": 0.0, "error": 0.2}, majority_error=0.1)
    assert not told(tmp_path, task="tag", dev={"f0.5": 0.3, "error": 0.2}, majority_error=0.1)
    assert not told(tmp_path, task="tag", dev={"macro_f1": 0.3, "error": 0.2}, majority_error=0.1)


def test_nothing_is_said_where_nothing_is_known(tmp_path: Path) -> None:
    assert at_chance(a_run()) == ""
    assert told(tmp_path, dev=None) == ""
    (tmp_path / RESULT).write_text("{")
    assert at_chance(replace(a_run(), folder=tmp_path)) == ""


def test_explain_attack_and_report_say_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = write_csv(tmp_path / "reviews.csv", reviews(80))
    config = TrainConfig(
        method="baseline",
        model=ModelSettings(dim=4, hidden=4, head=4),
        training=TrainingSettings(epochs=1, learning_rate=1e-6, device="cpu"),
    )
    folder = tmp_path / "run"
    result = train(replace(config, data=replace(config.data, train=str(texts))), folder, quiet=True)
    unlearnt = {"dev": {"error": 0.5}, "majority_error": 0.5, "texts": {"train": 72, "dev": 100}}
    (folder / RESULT).write_text(json.dumps(result | unlearnt))
    line = "has not learnt to tell its labels apart"
    for command in (
        ["explain", str(folder), "a warm film"],
        ["attack", str(folder), "--text", "a warm film", "--quiet"],
        ["attack", str(texts), "--models", str(folder), "--limit", "4", "--quiet"],
    ):
        main(command)
        assert capsys.readouterr().err.count(line) == 1, command
    report = gather(folder, ReportSettings(attack=0, sentences=0), quiet=True)
    assert any(line in note for note in report.subjects[0].notes)
