"""Fine-tuning reads a batch of long texts in parts, and learns from them what it learns from the whole."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from hf_tiny import saved
from reviews import reviews, tagged, write_conll, write_csv
from safetensors.torch import load_file
from torch import Tensor

from wordward.config import DataSettings, TrainConfig, TrainingSettings
from wordward.perturbation.settings import MethodSettings
from wordward.train import finetuning_start, finetuning_trainer, train
from wordward.train.finetuner import FineTuning

FITS = 60  # ids; a batch has up to 200


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model without dropout, and 40 texts of each kind."""
    folder = tmp_path_factory.mktemp("place")
    saved(folder / "tiny")
    write_csv(folder / "texts.csv", reviews(40))
    write_conll(folder / "tags.conll", tagged(40))
    return folder


def config_of(place: Path, method: str, texts: str = "texts.csv", **training: Any) -> TrainConfig:
    """Two epochs of three steps, the last of them with fewer texts; words are searched at every other step."""
    settings = {"epochs": 2, "learning_rate": 0.01, "batch_size": 16, "device": "cpu"} | training
    return TrainConfig(
        method=method,
        transformer=str(place / "tiny"),
        data=DataSettings(train=str(place / texts)),
        perturbation=MethodSettings(epsilon=0.5, k=5, refresh=2),
        training=TrainingSettings(**settings),  # type: ignore[arg-type]
    )


def waves(size: tuple[int, ...], **settings: Any) -> Tensor:
    """The same noise at each token, which no LayerNorm takes away."""
    return torch.arange(1, size[-1] + 1, **settings).sin().expand(size)


class Watched:
    """Models in double precision, and how many ids they read at once in training; more than `most` do not fit."""

    def __init__(self, patch: pytest.MonkeyPatch, most: int = 10_000) -> None:
        self.most, self.read = most, list[int]()
        load = finetuning_start.load_model

        def loaded(*args: Any, **options: Any) -> Any:
            model = load(*args, **options).double()
            model.register_forward_pre_hook(self._note, with_kwargs=True)
            return model

        patch.setattr(finetuning_start, "load_model", loaded)
        patch.setattr(torch, "randn", waves)

    def _note(self, model: Any, args: Any, inputs: dict[str, Tensor]) -> None:
        if model.training:
            self.read.append(inputs["input_ids"].numel())
            if self.read[-1] > self.most:
                raise torch.OutOfMemoryError("CUDA out of memory.")


def learnt(config: TrainConfig, run: Path, *, fits: int, most: int = 10_000, quiet: bool = True) -> dict[str, Any]:
    """All that a run learns, and what it read at once."""
    going: list[FineTuning] = []
    fit = FineTuning.fit
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FineTuning, "fit", lambda self: (going.append(self), fit(self)))
        patch.setattr(finetuning_trainer, "FITS_CPU", fits)
        watched = Watched(patch, most)
        result = train(config, run, quiet=quiet)
    trainer = going[0].trainer
    return {
        "weights": load_file(run / "model" / "model.safetensors"),
        "loss": torch.tensor(trainer.record.loss),
        "learnt": trainer.learnt.recent,
        "predicted": trainer.pseudo_labels.predicted if trainer.pseudo_labels else None,
        "searched": [adversary.directions._steps for adversary in trainer.adversaries],
        "dev": result["dev"],
        "read": watched.read,
    }


def same(whole: dict[str, Any], parts: dict[str, Any], names: Iterable[str] = ("weights", "loss", "learnt")) -> None:
    for name in names:
        torch.testing.assert_close(
            parts[name], whole[name], rtol=1e-4, atol=1e-7, msg=lambda why, at=name: f"{at} {why}"
        )
    assert (parts["searched"], parts["dev"]) == (whole["searched"], whole["dev"])


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("baseline", {}),
        ("iadvt", {"gradual": True}),
        ("freelb", {}),
        ("advt", {"texts": "tags.conll"}),
        ("vat", {"unlabelled_batch_size": 24}),  # which has more parts than the labelled texts
        ("iadvt+ivat", {"texts": "tags.conll", "unlabelled_batch_size": 4}),
        ("ivat", {"self_training": True}),
    ],
)
def test_parts_teach_what_the_whole_batch_does(
    method: str, settings: dict[str, Any], place: Path, tmp_path: Path
) -> None:
    config = config_of(place, method, **settings)
    whole, parts = (learnt(config, tmp_path / str(fits), fits=fits) for fits in (10_000, FITS))
    assert max(whole["read"]) > 2 * FITS
    assert max(parts["read"]) < 1.5 * FITS  # the parts are of as many texts, not of as many ids
    same(whole, parts)
    if settings.get("self_training"):
        same(whole, parts, ["predicted"])


def test_what_does_not_fit_in_memory_is_read_in_smaller_parts(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = config_of(place, "iadvt+ivat")
    whole = learnt(config, tmp_path / "whole", fits=10_000)
    parts = learnt(config, tmp_path / "parts", fits=10_000, most=FITS, quiet=False)
    same(whole, parts)
    failed = [read for read in parts["read"] if read > FITS]
    assert failed == sorted(failed, reverse=True)  # none is tried again once a smaller one was
    assert len(failed) == capsys.readouterr().err.count("did not fit in memory; from here on about") > 1


def test_a_text_that_alone_does_not_fit_ends_the_run(place: Path, tmp_path: Path) -> None:
    with pytest.raises(torch.OutOfMemoryError):
        learnt(config_of(place, "iadvt"), tmp_path / "run", fits=10_000, most=1)
