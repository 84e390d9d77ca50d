"""Classifiers of ours as ONNX files: the same probabilities, for any texts; and checked as a function."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from any_model import Guard
from hf_tiny import saved
from reviews import reviews, tagged, write_conll, write_csv
from small_training import config

from wordward.cli import main as cli
from wordward.config import ModelSettings, TrainConfig, TrainingSettings
from wordward.runs import onnx_file
from wordward.runs.onnx_file import export_onnx
from wordward.runs.opening import load_run, open_model
from wordward.support.errors import MissingExtraError, RunError
from wordward.text.batches import pad
from wordward.train import train

onnxruntime = pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")

TEXTS = [
    "warm",
    "",
    "the film was warm and funny",
    "never seen words only",
    *(each.text for each in reviews(30, seed=4)),
]
MODULE = """
import onnxruntime
import wordward
from wordward.text.batches import pad

run = wordward.load_run("lstm")
session = onnxruntime.InferenceSession("lstm.onnx")


def probabilities(texts):
    return session.run(["probabilities"], {"ids": pad([run.ids_of(text) for text in texts])})[0]


probabilities.labels = run.labels
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with texts and a run of each kind."""
    folder = tmp_path_factory.mktemp("onnx")
    texts = write_csv(folder / "texts.csv", reviews(60))
    train(config(texts, "baseline", epochs=3), folder / "lstm", quiet=True)
    chosen = TrainConfig(
        "baseline",
        model=ModelSettings(kind="convolution", dim=8, hidden=8),
        training=TrainingSettings(epochs=2, device="cpu"),
    )
    train(chosen, folder / "convolution", train=[(each.text, str(each.label)) for each in reviews(60)], quiet=True)
    return folder


@pytest.mark.parametrize("kind", ["lstm", "convolution"])
def test_probabilities_are_those_of_the_run(kind: str, place: Path) -> None:
    file = place / f"{kind}.onnx"
    assert cli.main(["export", str(place / kind), "--onnx", str(file)]) == 0
    run, session = load_run(place / kind, device="cpu"), onnxruntime.InferenceSession(str(file))
    texts = [text for text in TEXTS if run.ids_of(text).size]
    rows: Any = [run.ids_of(text) for text in texts]
    (found,) = session.run(["probabilities"], {"ids": pad(rows)})
    wanted = run.probabilities(run.corpus(rows))
    np.testing.assert_allclose(found, np.stack(wanted), atol=1e-5)
    told = session.get_modelmeta().custom_metadata_map
    assert json.loads(told["labels"]) == ["bad", "good"]
    assert json.loads(told["text"])["tokenizer"] == run.text.tokenizer


def test_it_is_checked_and_attacked_as_a_function(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    export_onnx(load_run("lstm", device="cpu"), "lstm.onnx")
    (place / "as_onnx.py").write_text(MODULE)
    edits = ["--edits", "typo", "--limit", "12", "--quiet"]
    shown = []
    for model in ("as_onnx:probabilities", "lstm"):
        assert cli.main(["check", model, "texts.csv", "--json", "-", "--budgets", "1", *edits]) == 0
        shown.append(json.loads(capsys.readouterr().out)["accuracy"]["0"])
    assert shown[0] == shown[1]
    assert cli.main(["attack", "as_onnx:probabilities", "texts.csv", *edits]) == 0


def test_the_model_stays_in_its_mode(place: Path, tmp_path: Path) -> None:
    run = load_run(place / "lstm", device="cpu")
    run.model.train()
    export_onnx(run, tmp_path / "a.onnx")
    assert all(part.training for part in run.model.modules())


def test_a_file_that_would_differ_is_not_written(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_file, "EQUAL", -1.0)
    with pytest.raises(RunError, match="was not written"):
        export_onnx(load_run(place / "lstm", device="cpu"), tmp_path / "a.onnx")
    assert not list(tmp_path.iterdir())


def test_other_models_are_refused(place: Path, tmp_path: Path) -> None:
    sentences = write_conll(tmp_path / "a.conll", tagged(40))
    train(config(sentences, "baseline", epochs=1), tmp_path / "tagger", quiet=True)
    with pytest.raises(RunError, match="is a tagger"):
        export_onnx(load_run(tmp_path / "tagger", device="cpu"), tmp_path / "a.onnx")


def test_of_a_model_from_elsewhere_it_is_said_what_exports_it(tmp_path: Path) -> None:
    saved(tmp_path / "sentiment", id2label={0: "bad", 1: "good"}, label2id={"bad": 0, "good": 1})
    of_transformers, function = open_model(tmp_path / "sentiment", device="cpu"), open_model(Guard())
    with pytest.raises(RunError, match=r"optimum-cli export onnx, of .*sentiment\)$"):
        export_onnx(of_transformers, tmp_path / "mine.onnx")
    with pytest.raises(RunError, match=r"was not trained by wordward$"):
        export_onnx(function, tmp_path / "mine.onnx")


def test_a_missing_package_is_named(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_file, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'wordward\[onnx\]'"):
        export_onnx(load_run(place / "lstm", device="cpu"), tmp_path / "a.onnx")
