"""Fine-tuning that ends before its last step, by `minutes` or `patience`, and goes on when it is given more."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from beside import in_two
from hf_tiny import FILLED, SMALL, TASKS, saved, word_pieces
from reviews import reviews, tagged, write_conll, write_csv
from safetensors.torch import load_file

from wordward.cli.main import main
from wordward.config import DataSettings, TrainConfig, TrainingSettings
from wordward.config.settings import FineTuningSettings
from wordward.datasets import DataError, Example
from wordward.perturbation.settings import MethodSettings
from wordward.runs import run_folder
from wordward.runs.run_folder import RunError
from wordward.train import train
from wordward.train.augmenting import Augmenter
from wordward.train.clock import Clock
from wordward.train.finetuner import FineTuning
from wordward.train.record import Record

PAIRS = [("the film was warm", "the film was dull", "first"), ("this cast was cold", "our cast was funny", "second")]
AUGMENTED = {"augment": 8, "augment_edits": ("all",)}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model, and 40 texts of each kind."""
    folder = tmp_path_factory.mktemp("place")
    saved(folder / "tiny", dropout=0.1)
    write_csv(folder / "texts.csv", reviews(40))
    write_conll(folder / "tags.conll", tagged(40))
    rows = "".join(f"{','.join(row)}\n" for row in PAIRS * 20)
    (folder / "pairs.csv").write_text(f"text,second,label\n{rows}")
    return folder


def config_of(
    place: Path, method: str = "iadvt", texts: str = "texts.csv", lora: int | None = None, **training: Any
) -> TrainConfig:
    """Three epochs of three steps; nearest words are searched at each step, so also where one is resumed."""
    settings = {"epochs": 3, "learning_rate": 0.01, "batch_size": 16, "device": "cpu"} | training
    pair_column = "second" if texts == "pairs.csv" else None
    return TrainConfig(
        method=method,
        transformer=str(place / "tiny"),
        data=DataSettings(train=str(place / texts), pair_column=pair_column),
        perturbation=MethodSettings(epsilon=0.5, k=5, refresh="batch"),
        training=TrainingSettings(**settings),  # type: ignore[arg-type]
        finetuning=FineTuningSettings(lora=lora),
    )


def with_training(config: TrainConfig, **changed: Any) -> TrainConfig:
    return replace(config, training=replace(config.training, **changed))


def cut(config: TrainConfig, run: Path, *, at: int, resume: bool = False) -> dict[str, Any]:
    """The result of a run that `minutes` end after so many steps."""
    going: list[FineTuning] = []
    fit = FineTuning.fit
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FineTuning, "fit", lambda self: (going.append(self), fit(self)))
        patch.setattr(Clock, "out_of_time", lambda self, deadline, team=None: going[0].steps >= at)
        result = train(config, run, resume=resume, quiet=True)
    assert (result["steps"], result["stopped"]) == (at, False)
    return result


def same(one: Path, two: Path) -> None:
    """Weights, metrics and result are those of the other run, but for the time."""
    weights, others = (load_file(run / "model" / "model.safetensors") for run in (one, two))
    assert all(torch.equal(weights[name], others[name]) for name in weights)
    lines = ([line | {"seconds": 0} for line in run_folder.read_metrics(run)] for run in (one, two))
    assert next(lines) == next(lines)
    results = (json.loads((run / "result.json").read_text()) | {"seconds": 0} for run in (one, two))
    assert next(results) == next(results)


def whole_and_cut(rank: int, config: TrainConfig, folder: Path, at: int) -> None:
    """Train without an end by `minutes`, and with one after so many steps and resumed."""
    train(config, folder / "whole", quiet=True)
    cut(with_training(config, minutes=1.0), folder / "cut", at=at)
    train(with_training(config, minutes=60.0), folder / "cut", resume=True, quiet=True)


def test_strange_labels_of_test_texts_are_refused_before_training(place: Path, tmp_path: Path) -> None:
    strange = write_csv(tmp_path / "test.csv", [*reviews(3), Example("a warm film", "excellent")])
    config = config_of(place)
    with pytest.raises(DataError, match=r"line 5: expected a label that the model knows \(bad, good\); got 'excell"):
        train(replace(config, data=replace(config.data, test=str(strange))), tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("settings", "at"),
    [
        ({}, 1),  # inside the first epoch
        ({"method": "ivat"}, 3),  # at the end of an epoch
        ({"method": "iadvt+ivat", "gradual": True}, 8),  # inside the last one
        ({"method": "ivat", "self_training": True}, 4),  # where the second half begins
        ({"method": "ivat", "self_training": True}, 5),  # after a teacher was kept
        ({"method": "vat", "texts": "tags.conll", "self_training": True}, 7),
        (AUGMENTED, 5),
        ({"lora": 2}, 4),
        ({"texts": "pairs.csv"}, 4),
        ({"texts": "tags.conll"}, 2),
    ],
)
def test_ended_by_minutes_and_resumed_is_never_ended(
    settings: dict[str, Any], at: int, place: Path, tmp_path: Path
) -> None:
    config = config_of(place, **settings)
    whole_and_cut(0, config, tmp_path, at)
    same(tmp_path / "whole", tmp_path / "cut")
    assert not (tmp_path / "cut" / "checkpoints").exists()


def test_several_processes_go_on_with_the_texts_that_are_left(place: Path, tmp_path: Path) -> None:
    """Of the second epoch, which has another order than the first."""
    processes = in_two(whole_and_cut, config_of(place), tmp_path, 4)
    while not processes.join():
        pass
    same(tmp_path / "whole", tmp_path / "cut")


def test_time_that_ends_an_attack_has_it_made_anew(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An epoch of which only the first texts were attacked would learn otherwise."""
    config, attacked = config_of(place, **AUGMENTED), Augmenter._attack
    train(config, tmp_path / "whole", quiet=True)
    attacks: list[Augmenter] = []

    def ends(self: Augmenter, deadline: float | None) -> None:  # in the third epoch
        attacks.append(self)
        attacked(self, 0.0 if len(attacks) == 2 else deadline)

    with monkeypatch.context() as patch:
        patch.setattr(Augmenter, "_attack", ends)
        patch.setattr(Clock, "out_of_time", lambda self, deadline, team=None: len(attacks) == 2)
        assert train(with_training(config, minutes=1.0), tmp_path / "cut", quiet=True)["steps"] == 7
    train(with_training(config, minutes=60.0), tmp_path / "cut", resume=True, quiet=True)
    same(tmp_path / "whole", tmp_path / "cut")


def test_more_than_once(place: Path, tmp_path: Path) -> None:
    config = config_of(place, "ivat")
    train(config, tmp_path / "whole", quiet=True)
    for minutes, at in enumerate((1, 2, 5, 6), start=1):
        cut(with_training(config, minutes=float(minutes)), tmp_path / "cut", at=at, resume=at > 1)
    train(with_training(config, minutes=60.0), tmp_path / "cut", resume=True, quiet=True)
    same(tmp_path / "whole", tmp_path / "cut")


def test_minutes_that_are_used_up_leave_it_as_it_was(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut(with_training(config_of(place), minutes=1.0), tmp_path / "run", at=4)
    result = tmp_path / "run" / "result.json"
    result.write_text(json.dumps(json.loads(result.read_text()) | {"seconds": 60.1}))
    files = ("metrics.jsonl", "result.json", "config.toml", "model/model.safetensors")
    before = [(tmp_path / "run" / name).read_bytes() for name in files]
    capsys.readouterr()
    assert main(["train", "--resume", "--out", str(tmp_path / "run")]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "nothing was trained: --minutes are those of the whole run" in said
    assert before == [(tmp_path / "run" / name).read_bytes() for name in files]


@pytest.mark.parametrize("more", [{"minutes": 60.0}, {"patience": 9}, {"epochs": 9}])
def test_without_its_checkpoint_it_is_finished(more: dict[str, Any], place: Path, tmp_path: Path) -> None:
    config = with_training(config_of(place), minutes=1.0)
    cut(config, tmp_path / "run", at=4)
    for file in (tmp_path / "run" / "checkpoints").glob("*/wordward.json"):
        file.unlink()
    with pytest.raises(RunError, match="is finished: after 2 of 3 epochs, and no checkpoint is left"):
        train(with_training(config, **more), tmp_path / "run", resume=True, quiet=True)


def test_ended_by_patience_it_goes_on_with_more(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From where it ended, whatever else it is given before; only the first epoch counts as better."""
    monkeypatch.setattr("wordward.train.finetuner.tolerance", lambda *_: None)
    still = config_of(place, learning_rate=1e-9, epochs=4, patience=4)  # it does not learn
    train(still, tmp_path / "whole", quiet=True)
    monkeypatch.setattr("wordward.train.clock.RARELY", 1e9)
    assert train(with_training(still, patience=2), tmp_path / "run")["epochs"] == 3
    assert "stopping: no better dev score for 2 epochs" in capsys.readouterr().err
    for given in ({}, {"minutes": 60.0}):
        assert train(with_training(still, patience=2, **given), tmp_path / "run", resume=True)["epochs"] == 3
        assert (tmp_path / "run" / "checkpoints" / "checkpoint-9").exists()
    longer = with_training(still, minutes=60.0)
    assert train(longer, tmp_path / "run", resume=True, quiet=True)["epochs"] == 4
    same(tmp_path / "whole", tmp_path / "run")
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_a_model_kept_in_a_cut_epoch_is_known_until_another_is(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though its line of the metrics gives way to that of the whole epoch, and training is cut or killed again."""
    scored = iter([0.3, 0.1, *[0.9] * 9])  # the second epoch's first step is best
    plain = Record.close_dev_epoch

    def close(self: Record, criterion: str, dev: dict[str, Any], **rest: Any) -> None:
        dev = {criterion: dev[criterion]._replace(value=next(scored))}
        plain(self, criterion, dev, **rest | {"tolerance": None})

    monkeypatch.setattr(Record, "close_dev_epoch", close)
    config = with_training(config_of(place), minutes=1.0)
    cut(config, tmp_path / "run", at=4)
    with monkeypatch.context() as patch:
        patch.setattr(FineTuning, "fit", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            train(with_training(config, minutes=60.0), tmp_path / "run", resume=True, quiet=True)
    for minutes, at in enumerate((5, 7), start=61):
        result = cut(with_training(config, minutes=float(minutes)), tmp_path / "run", at=at, resume=True)
        assert (result["best_epoch"], result["dev"]) == (2, {"error": 0.1}), at
    result = train(with_training(config, minutes=99.0), tmp_path / "run", resume=True, quiet=True)
    assert (result["best_epoch"], result["dev"], result["epochs"]) == (2, {"error": 0.1}, 3)


@pytest.mark.parametrize("texts", ["texts.csv", "tags.conll"])
@pytest.mark.parametrize(("kind", "sizes"), list(FILLED.items()))
def test_a_model_that_fills_up_texts_itself(
    kind: str, sizes: dict[str, Any], texts: str, place: Path, tmp_path: Path
) -> None:
    """Its batches are filled up before, so that a perturbation fits what it reads."""
    tokenizer, task = word_pieces(), "sequence" if texts == "texts.csv" else "token"
    config = transformers.AutoConfig.for_model(kind, **(SMALL | sizes | {"vocab_size": len(tokenizer)}))
    TASKS[task].from_config(config).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    settings = replace(config_of(place, "iadvt+ivat", texts, epochs=1), transformer=str(tmp_path / "model"))
    result = train(settings, tmp_path / "run", quiet=True)
    assert result["epochs"] == 1
