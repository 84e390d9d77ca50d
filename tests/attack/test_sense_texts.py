"""Labelled texts by which the edits of a model from elsewhere are judged: in attacks, and in texts to learn from."""

import json
from pathlib import Path
from typing import Any

import pytest
from any_model import Guard, guard_in, word_vectors
from reviews import reviews, write_csv
from small_training import config

import wordward
from wordward.attack import AttackSettings
from wordward.cli.main import main
from wordward.support.errors import SettingError
from wordward.train.training import train


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    guard_in(tmp_path, "judged_model")
    write_csv(tmp_path / "few.csv", reviews(6))
    write_csv(tmp_path / "many.csv", reviews(400, seed=5))
    return tmp_path


def said(command: str, *more: str, texts: str = "few.csv") -> int:
    space = ["--word-space", "vectors.txt", "--words", "any", "--device", "cpu"]
    return main([command, "judged_model:guard", texts, *space, *more])


def senses(file: Path) -> set[str]:
    lines: list[dict[str, Any]] = [json.loads(line) for line in file.read_text().splitlines()]
    return {change["sense"] for line in lines for change in line.get("changes", ())}


def test_an_attack_is_judged_by_texts_that_are_given(here: Path, capsys: pytest.CaptureFixture[str]):
    assert said("attack", "--sense-from", "many.csv", "--out", "by_many.jsonl") == 0
    assert senses(here / "by_many.jsonl") == {"changed"}
    assert "sense changed" in capsys.readouterr().out
    assert said("attack", "--sense-from", "many.csv", "--sense", "kept") == 0
    shown = capsys.readouterr().out  # praise for blame is all that it could do, and not a measured 0 %
    assert shown.count("\N{EN DASH}") == 3
    assert "\n\nnot measured: 6 of 6 texts to attack have no words that can be judged\n" in shown
    assert said("attack", "--sense-from", "many.csv", "--sense", "kept", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["unmeasured"].startswith("not measured: 6 of 6")
    assert [told[name] for name in ("accuracy_under_attack", "success", "success_sense_kept")] == [None] * 3
    assert told["accuracy"]["value"] == 1


def test_by_those_attacked_where_none_are(here: Path, capsys: pytest.CaptureFixture[str]):
    assert said("attack", "--limit", "6", "--out", "own.jsonl", texts="many.csv") == 0
    assert senses(here / "own.jsonl") == {"changed"}
    assert said("attack", "--no-labels", "--limit", "6", "--out", "unlabelled.jsonl", texts="many.csv") == 0
    assert senses(here / "unlabelled.jsonl") == {"unknown"}
    assert said("attack", "--no-labels", "--sense", "kept") == 1
    assert "give labelled texts as --sense-from, or attack with --sense any" in capsys.readouterr().err


def test_a_file_judged_by_other_texts_is_not_gone_on_with(here: Path, capsys: pytest.CaptureFixture[str]):
    assert said("attack", "--out", "found.jsonl") == 0
    assert said("attack", "--out", "found.jsonl", "--sense-from", "many.csv") == 1
    assert "judged_by" in capsys.readouterr().err


def test_texts_to_learn_from_are_judged(here: Path, capsys: pytest.CaptureFixture[str]):
    assert said("augment", "--out", "own.csv") == 0
    assert "only 3 words are in 5 labelled texts or more" in capsys.readouterr().err
    assert said("augment", "--out", "by_many.csv", "--sense-from", "many.csv") == 0
    told = capsys.readouterr().err
    assert "only 30 words are in 5 labelled texts or more" in told
    assert "give more texts as --sense-from" in told


def test_in_python(tmp_path: Path):
    settings = AttackSettings(word_space=str(word_vectors(tmp_path / "vectors.txt")), words="any")
    run = wordward.open_model(Guard())
    found = run.attack(reviews(6), settings, sense_from=[(each.text, each.label) for each in reviews(400, seed=5)])
    assert {each.sense for each in found if each.flipped} == {"changed"}
    train(config(write_csv(tmp_path / "train.csv", reviews(40)), epochs=1), tmp_path / "run", quiet=True)
    with pytest.raises(SettingError, match="has counted its own training texts"):
        wordward.load_run(tmp_path / "run").attack(reviews(6), sense_from=reviews(9))
