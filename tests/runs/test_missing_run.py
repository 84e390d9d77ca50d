"""A mistyped run folder is told of at once, with those that are there; names of the hub are still looked up there."""

from pathlib import Path

import pytest

from wordward.cli.main import main
from wordward.runs import external
from wordward.runs.hub import load_tokenizer
from wordward.runs.opening import open_model
from wordward.support.errors import RunError


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """In a folder with runs, the names that the hub is asked for."""
    monkeypatch.chdir(tmp_path)
    for name in ("first", "sense", "other"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "config.toml").write_text("")
    (tmp_path / "runs" / "notes").mkdir()
    names: list[str] = []

    def open_hub(source: str, *_: object, **__: object) -> None:
        names.append(source)
        raise RunError("not there")

    monkeypatch.setattr(external, "open_hub", open_hub)
    return names


@pytest.mark.parametrize("name", ["runs/sence", "./runs/sence"])
def test_runs_beside_it_are_named_those_spelt_alike_first(name: str, asked: list[str]) -> None:
    with pytest.raises(RunError, match=r"sence is not a run folder: .* in runs there are: sense, first, other$"):
        open_model(name)
    assert asked == []


def test_some_of_many_are_named(asked: list[str], tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / "runs" / f"try{number}").mkdir()
        (tmp_path / "runs" / f"try{number}" / "config.json").write_text("{}")
    with pytest.raises(RunError, match=r"there are: (try\d, ){4}try\d and 8 more$"):
        open_model("runs/try")
    assert asked == []


@pytest.mark.parametrize("name", ["nowhere/a/b", "./nowhere/a", "/nowhere/a"])
def test_what_can_be_no_name_on_the_hub(name: str, asked: list[str]) -> None:
    with pytest.raises(RunError, match=r"there is no folder .*nowhere.* here"):
        open_model(name)
    assert asked == []


@pytest.mark.parametrize("name", ["someone/sense", "sense"])
def test_names_on_the_hub_are_looked_up(name: str, asked: list[str]) -> None:
    with pytest.raises(RunError, match="not there"):
        open_model(name)
    assert asked == [name]


def test_the_command_says_so(asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "runs/nope", "the film was warm"]) == 1
    assert "in runs there are: first, other, sense" in " ".join(capsys.readouterr().err.split())


def test_a_model_to_train_from(asked: list[str]) -> None:
    with pytest.raises(
        RunError, match=r"there is no folder runs/sence \(in runs there are: sense, first, other\): give"
    ):
        load_tokenizer("runs/sence", tagging=False)


def test_a_folder_without_runs_hides_no_name_of_the_hub(asked: list[str], tmp_path: Path) -> None:
    (tmp_path / "someone").mkdir()
    with pytest.raises(RunError, match="not there"):
        open_model("someone/sense")
    assert asked == ["someone/sense"]
