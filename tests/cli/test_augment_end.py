"""What `wordward augment` says at its end: the next command, or what to try where nothing was found."""

from dataclasses import replace
from pathlib import Path

import pytest
from any_model import word_vectors
from reviews import reviews, write_csv

from wordward.cli.main import main

MODULE = """
from any_model import Guard


class Stubborn(Guard):
    def __call__(self, texts):
        return [[0.1, 0.9] for _ in texts]


guard, stubborn = Guard(), Stubborn()
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "augmented_model.py").write_text(MODULE)
    write_csv(tmp_path / "texts.csv", reviews(12))
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], name: str, *more: str) -> str:
    given = ["augment", f"augmented_model:{name}", "texts.csv", "--out", "more.csv", "--device", "cpu", "--force"]
    assert main([*given, *more]) == 0
    return " ".join(capsys.readouterr().err.split())


def test_nothing_found(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = said(capsys, "stubborn", "--edits", "typo", "--limit", "8")
    assert "so nothing was added: more.csv holds the 12 texts themselves only; try" in told
    assert (
        "try more texts (a larger --limit) or --sense any (also edits whose sense is unknown, with labels copied"
        in told
    )
    assert "that may then be wrong) or --edits all" in told
    assert "wordward train" not in told
    told = said(capsys, "stubborn", "--edits", "typo", "--sense", "any", "--only-new")
    assert "more.csv holds no texts; try more texts or --edits all" in told


def test_labels_that_may_be_wrong_are_told(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_csv(here / "others.csv", [replace(each, text="so it is") for each in reviews(8)])
    word_vectors(here / "vectors.txt")
    swaps = ("--word-space", "vectors.txt", "--words", "any", "--sense-from", "others.csv", "--quiet")
    told = said(capsys, "guard", *swaps, "--sense", "any")
    assert "warning: in 12 of these 12 texts the edits have an unknown sense, and labels are copied" in told
    assert told.endswith("before you train on them; --sense kept makes only edits that are judged to keep it")
    assert "warning" not in said(capsys, "guard", "--edits", "typo", "--sense", "any")


def test_some_found(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = said(capsys, "guard", "--edits", "typo")
    assert "after the 12 texts themselves; next: wordward train --train more.csv --dev FILE" in told
    assert "nothing was added" not in told
