"""Data sets of the hub in the place of files; the package reads folders of this machine in the same way."""

import json
import sys
from pathlib import Path

import pytest
from reviews import reviews, write_csv

from wordward.cli import main as cli
from wordward.datasets import DataError, read
from wordward.support.errors import MissingExtraError

datasets = pytest.importorskip("datasets")


@pytest.fixture
def films(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data set with two splits, its labels numbers with names, in a folder as the hub has it."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "films"
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["bad", "good"])}
    )
    for split, count in (("train", 40), ("test", 12)):
        rows = [{"text": each.text, "label": ["bad", "good"].index(str(each.label))} for each in reviews(count)]
        (folder / "data").mkdir(parents=True, exist_ok=True)
        datasets.Dataset.from_list(rows, features).to_parquet(folder / "data" / f"{split}-0.parquet")
    return folder


def test_labels_are_taken_by_name(films: Path) -> None:
    found = read(f"hub:{films}@test")
    assert [(each.text, each.label) for each in found] == [(each.text, each.label) for each in reviews(12)]


def test_a_split_must_be_named_where_there_are_several(films: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"expected one of its splits, hub:.*@train, hub:.*@test"):
        read(f"hub:{films}")
    (tmp_path / "one").mkdir()
    write_csv(tmp_path / "one" / "train.csv", reviews(5))
    assert len(read(f"hub:{tmp_path / 'one'}")) == 5


def test_every_command_takes_one(films: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(tmp_path / "run")
    sizes = "--dim 8 --hidden 8 --epochs 1 --method baseline --device cpu --quiet".split()
    assert cli.main(["train", "--train", f"hub:{films}@train", "--out", run, *sizes]) == 0
    assert f"hub:{films}@train" in (tmp_path / "run" / "config.toml").read_text()
    assert cli.main(["evaluate", run, f"hub:{films}@test", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["texts"] == 12
    assert cli.main(["predict", run, "--file", f"hub:{films}@test", "--quiet"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 12


def test_what_cannot_be_loaded_is_explained(films: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected hub:NAME"):
        read("hub:a@b@c")
    with pytest.raises(DataError, match="expected a data set of the Hugging Face hub, as hub:NAME@SPLIT"):
        read(f"hub:{tmp_path / 'nowhere'}@train")
    with pytest.raises(DataError, match=r"hub:.*dev"):
        read(f"hub:{films}@dev")


def test_code_of_a_data_set_is_never_run(tmp_path: Path) -> None:
    folder = tmp_path / "sly"
    folder.mkdir()
    (folder / "sly.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').write('!')\n")
    with pytest.raises(DataError):
        read(f"hub:{folder}@train")
    assert not (tmp_path / "ran").exists()


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'wordward\[datasets\]'"):
        read("hub:someone/without@train")
