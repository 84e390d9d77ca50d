"""What a run folder holds is checked on reading, and nothing is made of sizes that its files do not have."""

import json
import os
import re
import resource
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from reviews import reviews, write_csv
from safetensors.torch import load_file, save_file
from small_training import config, copied

from wordward.cli.main import main
from wordward.runs import checkpoint, run_folder
from wordward.runs.json_checks import check_kind
from wordward.runs.opening import load_run
from wordward.support.errors import RunError
from wordward.train.training import train


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    train(config(write_csv(folder / "texts.csv", reviews(120)), epochs=1), folder / "run", quiet=True)
    return folder / "run"


@pytest.fixture
def run(trained: Path, csv_file: Path, tmp_path: Path) -> Path:
    return copied(trained, tmp_path / "run", csv_file)


def changed(file: Path, change: Callable[[Any], Any]) -> None:
    """Change a file of JSON."""
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('"bad"\n3\n', "expected a string as 1; got 3"),
        ('"bad"\n["good"]\n', "expected a string as 1"),
        ('"bad"\n"bad"\n', "expected each label once"),
        ('"bad"\n"\\ud800"\n', "surrogates not allowed"),
        ('"bad"\n' + "[" * 100_000, "cannot be read"),
    ],
)
def test_labels_are_strings_each_once(content: str, said: str, run: Path) -> None:
    (run / run_folder.LABELS).write_text(content)
    with pytest.raises(RunError, match=rf"labels\.txt cannot be read: .*{re.escape(said)}|labels\.txt {said}"):
        load_run(run, device="cpu")


@pytest.mark.parametrize("line", ['{"epoch": "1"}', "[]", '{"epoch": 1, "loss": null, "seconds": 1.0}', '"x"'])
def test_metrics_are_numbers(line: str, run: Path) -> None:
    with (run / run_folder.METRICS).open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(RunError, match=r"metrics\.jsonl cannot be read: expected"):
        run_folder.read_metrics(run)


@pytest.mark.parametrize(
    "damage",
    [
        {"stopped": "no"},
        {"dev": -1},
        {"dev": {"error": 15}},
        {"criterion": "magic"},
        {"texts": [1]},
        {"majority_error": "x"},
        {"yardstick": {"name": "linear"}},
    ],
)
def test_results_are_what_a_run_writes(damage: dict[str, Any], run: Path) -> None:
    changed(run / run_folder.RESULT, lambda result: result.update(damage))
    with pytest.raises(RunError, match=r"result\.json cannot be read: expected .*: delete it"):
        run_folder.load_result(run)


@pytest.mark.parametrize(
    "damage",
    [
        {"file": 1e308},
        {"file": "../../other.safetensors"},
        {"steps": 0.5},
        {"best": {"epoch": 1, "score": ""}},
        {"seconds": [1]},
        {"recent": []},
        {"labelled": [1]},
        {"metrics": [{"epoch": 1}]},
    ],
)
def test_a_damaged_checkpoint_is_told_with_what_to_do(
    damage: dict[str, Any], run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed(run / run_folder.POINTER, lambda state: state.update(damage))
    assert main(["train", "--out", str(run), "--resume", "--epochs", "2", "--quiet"]) == 1
    assert "is damaged" in (said := capsys.readouterr().err)
    assert "delete checkpoint.json to start this run from the beginning" in said


@pytest.mark.parametrize("name", ["optimizer.2.exp_avg_sq", "optimizer.0.step", "random.cpu"])
def test_a_checkpoint_with_other_tensors_is_refused(name: str, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file,) = run.glob("checkpoint-*.safetensors")
    save_file(load_file(file) | {name: torch.zeros(3)}, file)
    assert main(["train", "--out", str(run), "--resume", "--epochs", "2", "--quiet"]) == 1
    assert f"the checkpoint of {run} is damaged" in capsys.readouterr().err


@pytest.mark.parametrize("counts", [torch.zeros(()), torch.zeros(4, 2), torch.full((1, 1), -1), None])
def test_class_counts_have_a_number_for_each_word_and_label(counts: torch.Tensor | None, run: Path) -> None:
    words = run_folder.load_vocabulary(run)
    tensors = {"others": torch.zeros(1)} if counts is None else {"texts": counts}
    save_file(tensors, run / run_folder.CLASS_COUNTS, {"vocabulary": words.fingerprint})
    with pytest.raises(RunError, match=r"class_counts\.safetensors is damaged: expected how many texts"):
        checkpoint.load_class_counts(run, words)


@pytest.mark.parametrize("vectors", [torch.zeros(()), torch.zeros(4, 32), torch.full((9, 32), torch.nan)])
def test_where_words_stand_is_a_vector_for_each_word(vectors: torch.Tensor, run: Path) -> None:
    words = run_folder.load_vocabulary(run)
    kept = checkpoint.load_contexts(run, words)
    assert kept is not None
    assert kept.shape == (len(words), 32)
    if vectors.isnan().any():
        vectors = torch.full((len(words), 32), torch.nan)
    save_file({"standing": vectors}, run / run_folder.CLASS_COUNTS, {"vocabulary": words.fingerprint})
    with pytest.raises(RunError, match=r"class_counts\.safetensors is damaged: expected a vector for each of"):
        checkpoint.load_contexts(run, words)
    save_file({"texts": torch.zeros(1)}, run / run_folder.CLASS_COUNTS, {"vocabulary": words.fingerprint})
    assert checkpoint.load_contexts(run, words) is None  # as an older run
    (run / run_folder.CLASS_COUNTS).unlink()
    assert checkpoint.load_contexts(run, words) is None


@pytest.mark.parametrize("shares", [torch.zeros(()), torch.zeros(4), torch.tensor(2.0), torch.tensor(torch.nan)])
def test_how_words_are_written_is_a_share_for_each(shares: torch.Tensor, run: Path) -> None:
    words = run_folder.load_vocabulary(run)
    kept = checkpoint.load_capitals(run, words)
    assert kept.shape == (len(words),)
    if not shares.eq(0).all():
        shares = shares.expand(len(words)).contiguous()
    save_file({"capitals": shares}, run / run_folder.CLASS_COUNTS, {"vocabulary": words.fingerprint})
    with pytest.raises(RunError, match=r"class_counts\.safetensors is damaged: expected a share for each of"):
        checkpoint.load_capitals(run, words)
    save_file({"texts": torch.zeros(1)}, run / run_folder.CLASS_COUNTS, {"vocabulary": words.fingerprint})
    assert not checkpoint.load_capitals(run, words).any()  # as an older run


def test_weights_without_words_or_with_nan_are_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, words = run / run_folder.WEIGHTS, run_folder.load_vocabulary(run)
    tensors = load_file(file)
    marked = {"vocabulary": words.fingerprint}
    save_file(tensors | {"head.0.bias": torch.full_like(tensors["head.0.bias"], torch.nan)}, file, marked)
    with pytest.raises(RunError, match=r"head\.0\.bias holds numbers that are not finite"):
        load_run(run, device="cpu")
    del tensors["words.table.weight"]
    save_file(tensors, file, marked)
    assert main(["neighbors", str(run), "film"]) == 1
    assert "expected a vector for each word" in capsys.readouterr().err


@pytest.mark.parametrize("size", [15_000, 10**9, 10**30])
@pytest.mark.parametrize("command", ["predict", "resume"])
def test_sizes_that_no_file_has_take_no_memory(
    command: str, size: int, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (run / run_folder.CONFIG).read_text()
    (run / run_folder.CONFIG).write_text(re.sub(r"^hidden = \d+", f"hidden = {size}", text, flags=re.MULTILINE))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    resume = ["train", "--out", str(run), "--resume", "--epochs", "2", "--quiet"]
    assert main(["predict", str(run), "warm", "--device", "cpu"] if command == "predict" else resume) == 1
    assert "does not fit the" in capsys.readouterr().err
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KB


@pytest.mark.skipif(sys.platform == "win32", reason="pipes with a name are POSIX's")
@pytest.mark.parametrize("name", [run_folder.WEIGHTS, run_folder.CONFIG, run_folder.RESULT, "anything"])
def test_a_pipe_in_a_folder_is_not_waited_for(name: str, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    assert main(["predict", str(run), "warm", "--device", "cpu"]) == 1
    assert f"{run / name} is a pipe or a device, but a file was expected" in capsys.readouterr().err


@pytest.mark.parametrize("value", [1, 0.5, "x", None, True, [], [1], {"a": 1}, float("nan"), 10**30])
def test_kinds(value: Any) -> None:
    """A second derivation: which of the kinds a value is of."""
    of = {
        int: value == 1 and value is not True,
        float: value in (1, 0.5, 10**30) and value is not True,
        str: value == "x",
        bool: value is True,
        None: value is None,
    }
    for kind, fits in of.items():
        with nullcontext() if fits else pytest.raises(ValueError, match="expected"):
            check_kind(value, kind)
