"""Texts that fool the model so far, learnt from as training goes on."""

import json
import time
from math import ceil
from pathlib import Path
from typing import Any

import pytest
import torch
from reviews import reviews, write_csv
from small_training import config, lines, weights

from wordward.cli.main import main
from wordward.config import TrainConfig, TrainingSettings
from wordward.runs import run_folder
from wordward.runs.opening import load_run
from wordward.runs.run import Run
from wordward.support.errors import SettingError
from wordward.text.corpus import Batch
from wordward.train.augmenting import Augmenter
from wordward.train.step import Stepper
from wordward.train.training import train

SOME: dict[str, Any] = {"augment": 24, "augment_edits": ("typo", "space"), "epochs": 3}


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As many as a model learns from, which can then be fooled."""
    return write_csv(tmp_path_factory.mktemp("texts") / "reviews.csv", reviews(240))


@pytest.fixture(scope="module")
def run(texts: Path) -> Run:
    train(config(texts), texts.parent / "run", quiet=True)
    return load_run(texts.parent / "run")


@pytest.fixture(scope="module")
def whole(texts: Path) -> Path:
    """A run that was trained without a stop."""
    train(config(texts, **SOME), texts.parent / "whole", quiet=True)
    return texts.parent / "whole"


def test_each_epoch_has_as_many_more_and_says_how_many_fooled_the_model(
    texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = train(config(texts, **SOME), tmp_path / "run")
    assert result["steps"] == 3 * ceil((result["texts"]["train"] + 24) / 32)
    counts = [line["augmented"] for line in run_folder.read_metrics(tmp_path / "run")]
    assert counts[0] == {"attacked": 0, "added": 0}
    assert all(0 < count["added"] <= count["attacked"] <= 24 for count in counts[1:])
    assert result["augmented"] == {name: sum(count[name] for count in counts) for name in ("attacked", "added")}
    assert json.loads((tmp_path / "run" / run_folder.RESULT).read_text())["augmented"] == result["augmented"]
    said = capsys.readouterr().err
    assert f"  {counts[2]['added']} adversarial texts" in next(
        line for line in said.splitlines() if "epoch   3" in line
    )


def test_what_is_added_fools_the_model_and_has_its_true_label(run: Run) -> None:
    examples = reviews(60, seed=5)
    found = Augmenter(run, examples, TrainingSettings(augment=40, augment_edits=("typo",)), quiet=True)
    before = list(found.texts)
    assert len({example.text for example in before}) > 30
    state = torch.get_rng_state()
    found(1)
    assert torch.equal(torch.get_rng_state(), state)
    known = {example.text: example.label for example in examples}
    new = [example for example in found.texts if example.text not in known]
    assert len(new) == found.counts["added"] > 0
    assert all(one.label != given.label for one, given in zip(run.predict([e.text for e in new]), new, strict=True))
    others = [example for example in found.texts if example.text in known]
    assert all(known[example.text] == example.label for example in others)
    assert len(found.texts) == 40
    first = [example.text for example in found.texts]
    found(2)
    assert [example.text for example in found.texts] != first  # drawn anew
    found(1)
    assert [example.text for example in found.texts] == first  # by seed and epoch alone


def test_time_ends_the_attack(run: Run) -> None:
    found = Augmenter(run, reviews(60), TrainingSettings(augment=60), quiet=True)
    found(1, time.monotonic())
    assert found.counts["attacked"] <= 1
    assert len(found.texts) == 60  # the others as they are


@pytest.mark.parametrize("every", [None, 3])
def test_continued_run_equals_the_uninterrupted_one(
    every: int | None, texts: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config(texts, checkpoint_steps=every, **SOME)
    if every is not None:  # a checkpoint has nearest words searched again
        whole = tmp_path / "whole"
        train(settings, whole, quiet=True)
    step, count = Stepper.__call__, 0
    steps = run_folder.read_metrics(whole)[-1]["steps"]
    stop = 2 * steps // 3 - 1  # in the second epoch, whose texts an attack found

    def killed(self: Stepper, *batches: Batch) -> torch.Tensor:
        nonlocal count
        count += 1
        if count == stop:
            raise ZeroDivisionError("power cut")
        return step(self, *batches)

    monkeypatch.setattr(Stepper, "__call__", killed)
    with pytest.raises(ZeroDivisionError):
        train(settings, tmp_path / "cut", quiet=True)
    train(TrainConfig(), tmp_path / "cut", resume=True, quiet=True)
    assert lines(tmp_path / "cut") == lines(whole)
    one, other = weights(whole), weights(tmp_path / "cut")
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_more_epochs_go_on_as_if_never_ended(texts: Path, whole: Path, tmp_path: Path) -> None:
    train(config(texts, **{**SOME, "epochs": 1}), tmp_path / "longer", quiet=True)
    train(TrainConfig(training=TrainingSettings(epochs=3)), tmp_path / "longer", resume=True, quiet=True)
    assert lines(tmp_path / "longer") == lines(whole)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, run = str(write_csv(tmp_path / "t.csv", reviews(80))), str(tmp_path / "run")
    small = "--preset small --dim 12 --hidden 12 --epochs 2 --learning-rate 0.02 --device cpu --quiet".split()
    assert (
        main(["train", "--train", file, "--out", run, *small, "--augment", "10", "--augment-edits", "typo,case"]) == 0
    )
    kept = run_folder.load_config(run, TrainConfig).training
    assert (kept.augment, kept.augment_edits) == (10, ("typo", "case"))
    assert main(["train", "--train", file, "--out", run, *small, "--augment-edits", "typo", "--force"]) == 1
    assert "--augment" in capsys.readouterr().err


def test_what_cannot_be_used_is_refused(conll_file: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="augment_edits must be among swap, typo"):
        TrainingSettings(augment=5, augment_edits=("tyop",))
    with pytest.raises(SettingError, match="give how many"):
        TrainingSettings(augment_edits=("typo",))
    with pytest.raises(SettingError, match="augment must be a whole number, 1 or more, or None"):
        TrainingSettings(augment=0)
    with pytest.raises(SettingError, match="these have tags"):
        train(config(conll_file, augment=5), tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()
