"""Nothing is lost: runs go on only with what they were trained on, failures leave old runs alone."""

import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from reviews import reviews, write_csv
from small_training import SMALL, config, copied, lines, weights

from wordward.cli.main import main
from wordward.config.settings import (
    MethodSettings,
    PretrainConfig,
    TextSettings,
    TrainConfig,
    TrainingSettings,
    filled,
)
from wordward.datasets import DataError
from wordward.models import Classifier
from wordward.runs import run_folder
from wordward.runs.opening import load_run
from wordward.support.distributed import Shares
from wordward.support.files import write
from wordward.text.corpus import Batch, Corpus
from wordward.text.vocabulary import SPECIALS, Vocabulary
from wordward.train.building import adversaries, build
from wordward.train.data import Data, prepare
from wordward.train.pretrainer import Pretrainer
from wordward.train.pretraining import pretrain
from wordward.train.step import Stepper
from wordward.train.training import DivergedError, train


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that no test changes."""
    folder = tmp_path_factory.mktemp("trained")
    train(config(write_csv(folder / "texts.csv", reviews(120)), epochs=2), folder / "run", quiet=True)
    return folder / "run"


@pytest.fixture
def run(trained: Path, csv_file: Path, tmp_path: Path) -> Path:
    return copied(trained, tmp_path / "run", csv_file)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_who_may_read_the_settings_may_read_the_weights(run: Path) -> None:
    modes = {path.name: path.stat().st_mode for path in run.iterdir()}
    assert set(modes.values()) == {modes["config.toml"]}, modes


def resume(folder: Path, **training: Any) -> dict[str, Any]:
    return train(TrainConfig(training=TrainingSettings(**training)), folder, resume=True, quiet=True)


def test_resuming_with_more_epochs_goes_on(run: Path, csv_file: Path, tmp_path: Path) -> None:
    resume(run, epochs=4, device="cpu")
    train(config(csv_file, epochs=4), tmp_path / "whole", quiet=True)
    assert lines(run) == lines(tmp_path / "whole")
    assert torch.equal(weights(run)["head.0.weight"], weights(tmp_path / "whole")["head.0.weight"])
    assert load_run(run, device="cpu").config.training.epochs == 4


def test_resuming_takes_a_number_that_is_also_the_default(csv_file: Path, tmp_path: Path) -> None:
    train(config(csv_file, epochs=1, patience=1), tmp_path / "run", quiet=True)
    default = filled(TrainingSettings()).patience
    for given, wanted in (({}, (1, 1, "cpu")), ({"epochs": 2, "patience": default}, (2, default, "cpu"))):
        resume(tmp_path / "run", **given)
        kept = run_folder.load_config(tmp_path / "run", TrainConfig).training
        assert (kept.epochs, kept.patience, kept.device) == wanted


def test_resuming_pretraining_takes_epochs_that_are_also_the_default(
    csv_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = PretrainConfig(texts=(str(csv_file),), epochs=1, streams=8, window=10, model=SMALL, device="cpu")
    pretrain(reading, tmp_path / "lm", quiet=True)
    asked: list[int] = []
    monkeypatch.setattr(Pretrainer, "fit", lambda self, *_, **__: asked.append(self.config.epochs))
    default = filled(PretrainConfig()).epochs
    for again in (PretrainConfig(), PretrainConfig(epochs=default)):
        pretrain(again, tmp_path / "lm", resume=True, quiet=True)
    assert asked == [1, default]


def test_changed_labels_or_texts_are_noticed(run: Path, csv_file: Path) -> None:
    whole = csv_file.read_text()
    csv_file.write_text(whole.replace(",good", ",splendid"))
    with pytest.raises(run_folder.RunError, match="bad, good, but its texts now have bad, splendid"):
        resume(run, epochs=4)
    csv_file.write_text(whole.replace("the film was", "the was film"))
    with pytest.raises(run_folder.RunError, match="not those it was trained on"):
        resume(run, epochs=4)
    csv_file.write_text(whole)
    resume(run, epochs=4)


@pytest.mark.parametrize("name", ["config.toml", "checkpoint.json", "checkpoint-"])
def test_damaged_run_is_named(name: str, run: Path) -> None:
    (found,) = [path for path in run.iterdir() if path.name.startswith(name)]
    found.write_bytes(b"\x00half")
    with pytest.raises(ValueError, match=re.escape(found.name)):
        resume(run, epochs=4)


def test_half_a_line_of_metrics_is_dropped(run: Path, csv_file: Path, tmp_path: Path) -> None:
    with (run / run_folder.METRICS).open("a") as file:
        file.write('{"epoch": 3, "lo')
    assert len(run_folder.read_metrics(run)) == 2
    resume(run, epochs=3)
    assert [record["epoch"] for record in run_folder.read_metrics(run)] == [1, 2, 3]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX tells how a file is open")
def test_files_are_open_for_writing_when_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    flags: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda number: flags.append(fcntl.fcntl(number, fcntl.F_GETFL)))
    write(tmp_path / "file", "text")
    assert [flag & os.O_ACCMODE for flag in flags] == [os.O_RDWR]  # Windows syncs no other


def test_words_that_move_to_the_next_text_are_other_texts() -> None:
    words, one = Vocabulary(SPECIALS, np.ones(3)), Corpus([np.array([5])], [0])
    whole, moved = (
        Data(words, ("a", "b"), Corpus([np.array(row) for row in rows], [0, 1]), one, None, tagging=False)
        for rows in ([[5, 6], [7]], [[5], [6, 7]])
    )
    assert whole.fingerprint != moved.fingerprint


def test_failed_force_leaves_the_old_run(run: Path, csv_file: Path, tmp_path: Path) -> None:
    before = files(run)
    bad = tmp_path / "bad.csv"
    bad.write_text("words,label\nfine,good\n")
    with pytest.raises(DataError):
        train(config(bad), run, force=True, quiet=True)
    settings = replace(config(csv_file), perturbation=MethodSettings(k=500))
    with pytest.raises(ValueError, match="k must be less"):
        train(settings, run, force=True, quiet=True)
    assert files(run) == before


def test_run_may_not_replace_what_it_reads(csv_file: Path, tmp_path: Path) -> None:
    reading = PretrainConfig(texts=(str(csv_file),), epochs=1, streams=4, model=SMALL, device="cpu")
    pretrain(reading, tmp_path / "lm", quiet=True)
    before = files(tmp_path / "lm")
    settings = replace(config(csv_file), pretrained=str(tmp_path / "lm"))
    with pytest.raises(run_folder.RunError, match="choose another `out`"):
        train(settings, tmp_path / "lm", force=True, quiet=True)
    assert files(tmp_path / "lm") == before


def test_language_model_read_otherwise_is_refused(csv_file: Path, tmp_path: Path) -> None:
    reading = PretrainConfig(texts=(str(csv_file),), epochs=1, streams=4, model=SMALL, device="cpu")
    pretrain(reading, tmp_path / "lm", quiet=True)
    settings = replace(config(csv_file), pretrained=str(tmp_path / "lm"), text=TextSettings(lowercase=True))
    with pytest.raises(run_folder.RunError, match="set the same `lowercase`"):
        train(settings, tmp_path / "run", quiet=True)
    with pytest.raises(run_folder.RunError, match="not a run folder"):
        train(replace(settings, pretrained=str(tmp_path / "nothing")), tmp_path / "run", quiet=True)


def test_text_of_a_rare_class_stays_to_be_learnt_from(csv_file: Path) -> None:
    with csv_file.open("a") as file:
        file.write("the film was odd,strange\n")
    for seed in range(25):
        _, data = prepare(config(csv_file, seed=seed))
        assert data.classes == ("bad", "good", "strange")
        assert 2 in [int(np.asarray(label)) for label in data.train.labels or ()]


@pytest.mark.parametrize("positive", [None, "bad"])
def test_f_of_a_classifier_is_refused_at_once(positive: str | None, csv_file: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="counts one tag of a tagger"):
        train(config(csv_file, criterion="f0.5", positive=positive), tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


def test_nan_keeps_the_best_model(csv_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = Stepper.__call__

    def spoilt(self: Stepper, *batches: Batch) -> torch.Tensor:
        if self.updater.steps == 9:
            with torch.no_grad():
                self.model.head[3].bias.fill_(torch.nan)  # type: ignore[index, union-attr]
        return step(self, *batches)

    monkeypatch.setattr(Stepper, "__call__", spoilt)
    with pytest.raises(DivergedError, match="not finite at step 10") as error:
        train(config(csv_file, "baseline"), tmp_path / "run", quiet=True)
    best = min(run_folder.read_metrics(tmp_path / "run"), key=lambda line: line["dev"]["error"])
    assert f"the best model so far (epoch {best['epoch']}) is kept in {tmp_path / 'run'}" in str(error.value)
    assert load_run(tmp_path / "run", device="cpu").predict(["the film was dull"])[0].label in (
        "good",
        "bad",
    )


def test_nan_of_the_language_model_stops_it(csv_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, not when the epoch ends."""
    step = Pretrainer.step

    def spoilt(self: Pretrainer, *rest: Any) -> Any:
        assert self.updater.steps < 4, "it went on"
        if self.updater.steps == 3:
            with torch.no_grad():
                self.model.words.table.weight.fill_(torch.nan)
        return step(self, *rest)

    monkeypatch.setattr(Pretrainer, "step", spoilt)
    reading = PretrainConfig(texts=(str(csv_file),), epochs=2, streams=4, window=8, model=SMALL, device="cpu")
    with pytest.raises(DivergedError, match="not finite at step 4; no epoch has finished"):
        pretrain(reading, tmp_path / "lm", quiet=True)


def test_a_language_model_that_reads_nothing_is_not_kept(csv_file: Path, tmp_path: Path) -> None:
    """Its losses are numbers, but a word of the held-out texts has no probability left."""
    wild = PretrainConfig(
        texts=(str(csv_file),), epochs=2, streams=4, window=8, model=SMALL, device="cpu", learning_rate=1e10
    )
    with pytest.raises(DivergedError, match=r"not finite at step \d+; no epoch has finished"):
        pretrain(wild, tmp_path / "lm", quiet=True)
    assert not (tmp_path / "lm" / "model.safetensors").exists()


def test_no_step_reads_a_file(csv_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, reads = run_folder.read_metrics, []
    monkeypatch.setattr(run_folder, "read_metrics", lambda folder: reads.append(folder) or read(folder))
    for batch_size in (2, 24):
        train(config(csv_file, "baseline", epochs=1, batch_size=batch_size), tmp_path / f"{batch_size}", quiet=True)
    few, many = sorted(len([each for each in reads if each.name == str(size)]) for size in (2, 24))
    assert few == many


@pytest.mark.parametrize(
    ("method", "forwards", "backwards"),
    [("vat", 4, 2), ("ivat", 4, 2), ("random-kl", 3, 2), ("iadvt+ivat", 5, 3)],
)
def test_passes_of_a_step_with_unlabelled_texts(method: str, forwards: int, backwards: int, csv_file: Path) -> None:
    """Beside the clean pass: three forwards on unlabelled texts, of which only the last reaches the weights."""
    settled, data = prepare(config(csv_file, method))
    model = build(settled, data)
    stepper = Stepper(model, adversaries(settled, data, model), settled.training, torch.device("cpu"))
    seen = {"forward": 0, "backward": 0}
    model.register_forward_hook(lambda *_: seen.update(forward=seen["forward"] + 1))
    assert isinstance(model, Classifier)
    last: Any = model.head[3]
    last.weight.register_hook(lambda _: seen.update(backward=seen["backward"] + 1))
    batch = data.train.batch(np.arange(8), torch.device("cpu"))
    stepper(batch, batch._replace(labels=None))
    assert seen == {"forward": forwards, "backward": backwards}


@pytest.mark.parametrize("method", ["vat", "ivat", "random-kl"])
def test_every_weight_learns_under_autocast(method: str, csv_file: Path) -> None:
    settled, data = prepare(config(csv_file, method, precision="bf16"))
    model = build(settled, data)
    stepper = Stepper(model, adversaries(settled, data, model), settled.training, torch.device("cpu"))
    batch = data.train.batch(np.arange(8), torch.device("cpu"))
    stepper(batch._replace(shares=Shares(0.0, 0.0)), batch._replace(labels=None))  # of the labelled: nothing
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in model.parameters())


@pytest.mark.parametrize("left", [0, 1])
def test_metrics_that_were_lost_are_restored(
    left: int, run: Path, csv_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A resumed run ends like the uninterrupted one, also where its best epoch's line was lost."""
    metrics = run / run_folder.METRICS
    kept = metrics.read_bytes().splitlines(keepends=True)
    metrics.write_bytes(b"".join(kept[:left]) + b'{"epoch": ')
    train(config(csv_file, epochs=2), run, resume=True, quiet=True)  # finished already
    assert metrics.read_bytes() == b"".join(kept)
    metrics.unlink()
    assert main(["train", "--out", str(run), "--resume", "--epochs", "3"]) == 0
    assert "best epoch" in capsys.readouterr().err
    train(config(csv_file, epochs=3), tmp_path / "whole", quiet=True)
    assert lines(run) == lines(tmp_path / "whole")


def test_metrics_deleted_while_a_run_goes_on_end_in_no_traceback(
    csv_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_folder, "append_metrics", lambda *_: None)
    flags = "--dim 8 --hidden 8 --head 4 --epochs 1 --epsilon 1 --k 3 --device cpu".split()
    assert main(["train", "--train", str(csv_file), "--out", str(tmp_path / "run"), *flags]) == 0
    assert "best epoch 1, in" in capsys.readouterr().err


def test_metrics_are_on_disk_before_the_checkpoint_that_counts_them(
    csv_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    sync = os.fsync
    monkeypatch.setattr(
        os,
        "fsync",
        lambda number: (synced.append(Path(f"/proc/self/fd/{number}").resolve().name), sync(number)),
    )
    train(config(csv_file, epochs=1), tmp_path / "run", quiet=True)
    if sys.platform == "linux":
        assert synced.index("metrics.jsonl") < synced.index("checkpoint.json.part")


def test_a_checkpoint_is_replaced_on_disk_before_the_last_one_is_deleted(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, drop = os.fsync, run_folder.drop_checkpoints
    monkeypatch.setattr(
        os,
        "fsync",
        lambda number: (done.append(Path(f"/proc/self/fd/{number}").resolve().name), sync(number)),
    )
    monkeypatch.setattr(run_folder, "drop_checkpoints", lambda *a, **o: (done.append("dropped"), drop(*a, **o)))
    resume(run, epochs=3)
    if sys.platform == "linux":
        at = done.index("dropped")
        assert done[at - 1] == run.name
        assert "checkpoint.json.part" in done[:at]
