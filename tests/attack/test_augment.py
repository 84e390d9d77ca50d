"""Adversarial texts as training data: true labels, what was changed, and files that training reads."""

import csv
import json
from pathlib import Path

import pytest
from reviews import reviews, tagged, write_conll, write_csv

from wordward.attack.attacked import Attacked, Change
from wordward.attack.augment import Augmented, augmented, write_augmented
from wordward.cli.main import main
from wordward.datasets import read
from wordward.runs.opening import load_run
from wordward.support.errors import SettingError

SMALL = "--dim 10 --hidden 10 --head 5 --epochs 8 --learning-rate 0.02 --device cpu --epsilon 1 --k 3 --quiet".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, and its texts in columns of other names than ours."""
    folder = tmp_path_factory.mktemp("augment")
    rows = [("id", "body", "mood"), *((at, each.text, each.label) for at, each in enumerate(reviews(240)))]
    with (folder / "texts.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    flags = ["--text-column", "body", "--label-column", "mood", *SMALL]
    assert main(["train", "--train", str(folder / "texts.csv"), "--out", str(folder / "run"), *flags]) == 0
    return folder


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_training_reads_what_is_written(folder: Path, suffix: str, tmp_path: Path) -> None:
    out = tmp_path / f"more.{suffix}"
    command = ["augment", str(folder / "run"), str(folder / "texts.csv"), "--out", str(out), "--limit", "20"]
    command += ["--edits", "typo,space", "--device", "cpu", "--quiet"]
    assert main(command) == 0
    columns = ["--text-column", "body", "--label-column", "mood"]
    texts = read(out, text_column="body", label_column="mood")
    given = reviews(240)
    assert [(each.text, each.label) for each in texts[:240]] == [(each.text, each.label) for each in given]
    new, run = texts[240:], load_run(folder / "run", device="cpu")
    assert len(new) > 5
    assert all(found.label != each.label for each, found in zip(new, run.predict([e.text for e in new]), strict=True))
    lines = out.read_text().splitlines()
    rows = list(csv.DictReader(lines)) if suffix == "csv" else [json.loads(line) for line in lines]
    assert [list(row) for row in rows[:1]] == [["body", "mood", "changed"]]
    assert {row["changed"] for row in rows[:240]} == {""}
    assert all(row["changed"].startswith(("typo: ", "space: ")) for row in rows[240:])
    quick = ["1" if flag == "8" else flag for flag in SMALL]
    assert main(["train", "--train", str(out), "--out", str(tmp_path / "again"), *columns, *quick]) == 0
    assert main(command) == 1  # it exists
    assert main([*command, "--force", "--only-new"]) == 0
    assert read(out, text_column="body", label_column="mood") == [
        each.__class__(each.text, each.label, line=at)
        for at, each in enumerate(new, start=2 if suffix == "csv" else 1)
    ]


def test_only_texts_whose_label_stays_true_are_learnt_from() -> None:
    change = Change(1, "warm", "waarm", 2, 6, "kept", kind="typo")
    flipped = Attacked(
        "a warm film", "a waarm film", "good", True, "good", "bad", changes=(change,), outcome="flipped"
    )
    wrong = Change(1, "warm", "cold", 2, 6, "changed")
    others = [
        Attacked("a", "a", "good", True, outcome="kept"),
        Attacked("a", "b", "good", False, outcome="flipped", changes=(change,)),
        Attacked("a warm film", "a cold film", "good", True, outcome="flipped", changes=(wrong,)),
    ]
    assert augmented([flipped, *others]) == [Augmented("a waarm film", "good", "typo: warm → waarm")]


@pytest.mark.parametrize("name", ["more.csv", "more.jsonl"])
def test_any_text_is_read_as_it_was_written(tmp_path: Path, name: str) -> None:
    texts = ["warm\rfilm", 'so "warm"\r\nfilm', "\x00,\u2028\x85.", "=1", "b"]
    write_augmented(tmp_path / name, [Augmented(text, "good") for text in texts], ("text", "label"))
    assert [example.text for example in read(tmp_path / name)] == texts


def test_what_cannot_be_written_is_refused(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SettingError, match=r"\.csv or \.jsonl"):
        write_augmented(tmp_path / "more.txt", [], ("text", "label"))
    assert main(["augment", str(folder / "run"), str(folder / "texts.csv"), "--out", str(tmp_path / "m.txt")]) == 1
    assert "expected a name that ends in .csv or .jsonl" in capsys.readouterr().err
    write_conll(tmp_path / "tags.conll", tagged(60))
    flags = ["--train", str(tmp_path / "tags.conll"), "--out", str(tmp_path / "tagger"), *SMALL]
    assert main(["train", *flags]) == 0
    made = ["augment", str(tmp_path / "tagger"), str(tmp_path / "tags.conll"), "--out", str(tmp_path / "m.csv")]
    assert main(made) == 1
    assert "is a tagger" in capsys.readouterr().err


def test_columns_by_number_get_names(folder: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.csv"
    write_csv(plain, reviews(30, seed=2))
    plain.write_text(plain.read_text().split("\n", 1)[1])
    out = tmp_path / "more.csv"
    flags = ["--text-column", "0", "--label-column", "1", "--edits", "typo", "--device", "cpu", "--quiet"]
    assert main(["augment", str(folder / "run"), str(plain), "--out", str(out), *flags]) == 0
    assert out.read_text().startswith("text,label,changed\n")
    assert len(read(out)) > 30


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_nested_keys_stay_the_names(
    suffix: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So that the next command reads what was written and other texts of the same kind."""
    texts, out = tmp_path / "texts.jsonl", tmp_path / f"more.{suffix}"
    rows = [{"review": {"body": each.text, "mood": each.label}} for each in reviews(60)]
    texts.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    columns = ["--text-column", "review.body", "--label-column", "review.mood"]
    assert main(["augment", str(folder / "run"), str(texts), "--out", str(out), *columns, "--edits", "typo"]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert f"next: wordward train --train {out} {' '.join(columns)} --dev FILE" in said
    again = ["train", "--train", str(out), *columns, "--dev", str(texts), "--out", str(tmp_path / "again"), *SMALL]
    assert main(["1" if flag == "8" else flag for flag in again]) == 0


def test_the_next_command_names_the_columns(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts, out = tmp_path / "texts.csv", tmp_path / "more.csv"
    texts.write_text("review,stars\nthe film was warm,good\nthe film was dull,bad\n", encoding="utf-8")
    columns = ["--text-column", "review", "--label-column", "stars"]
    assert main(["augment", str(folder / "run"), str(texts), "--out", str(out), *columns, "--edits", "typo"]) == 0
    assert f"--train {out} {' '.join(columns)} --dev FILE" in " ".join(capsys.readouterr().err.split())
