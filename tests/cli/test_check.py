"""The command `wordward check`: what it shows and writes, and its exit status."""

import json
import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from any_model import fine_tuned, guard_in
from documented import ROOT, blocks
from reviews import reviews, tagged, write_conll, write_csv

import wordward
from wordward.attack import check
from wordward.cli.check_output import show
from wordward.cli.main import main

BROKEN = "\n\ndef broken(texts):\n    raise KeyError('cake')\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    guard_in(tmp_path, "checked_model", BROKEN)
    texts = [*reviews(20), wordward.Example("<b>a text | without praise</b>", "bad")]
    write_csv(tmp_path / "test.csv", texts)
    return tmp_path


def checked(*more: str, model: str = "checked_model:guard", texts: str = "test.csv") -> int:
    space = ["--word-space", "vectors.txt", "--words", "any", "--sense", "any"]
    return main(["check", model, texts, *space, "--device", "cpu", "--quiet", *more])


def test_says_what_breaks_it_and_what_decides(here: Path, capsys: pytest.CaptureFixture[str]):
    assert checked("--min-accuracy", "0.9") == 0
    said = capsys.readouterr().out
    assert "checked_model:guard on 21 texts of test.csv" in said
    for part in ("accuracy under 4 edits", "flip rate", "words that break it most", "worst examples"):
        assert part in said
    assert said.rstrip().endswith("holds: 1 condition fulfilled")
    assert checked("--max-flip-rate", "0.5") == 1
    assert "falls short: 1 of 1 condition not fulfilled" in capsys.readouterr().out


def test_exit_statuses(here: Path, capsys: pytest.CaptureFixture[str]):
    assert checked() == 0
    assert checked("--min-accuracy-under-attack", "0.9") == 1
    could_not_run = [
        checked(texts="none.csv"),
        checked("--min-accuracy", "95"),
        checked("--max-swaps", "3"),
        checked("--against", "none.json"),
        checked("--max-false-positives", "0.1"),
        checked(model="checked_model:broken"),
        checked(model="nowhere:model"),
    ]
    assert could_not_run == [2] * len(could_not_run)
    assert "KeyError: 'cake'" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stopped:
        checked("--no-such-flag")
    assert stopped.value.code == 2


def test_a_limit_that_could_not_be_measured_is_not_taken_for_a_model_that_falls_short(
    here: Path, capsys: pytest.CaptureFixture[str]
):
    write_csv(here / "few.csv", [wordward.Example("fine", "good"), wordward.Example("awful", "bad")])
    kept = ["--sense", "kept", "--sense-from", "few.csv", "--junit", "a.xml"]
    assert checked("--max-flip-rate", "0.5", *kept) == 2
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("could not be measured: 1 of 1 condition; ")
    assert "more labelled texts to judge edits by as --sense-from, or --sense any" in last
    assert ElementTree.parse(here / "a.xml").getroot().get("errors") == "1"
    assert checked("--max-flip-rate", "0.5", "--min-accuracy", "1", *kept) == 1
    assert checked("--min-accuracy", "0.9", *kept) == 0


def test_what_is_no_share_or_no_earlier_check_is_told(here: Path, capsys: pytest.CaptureFixture[str]):
    assert checked("--against", ".") == 2
    told = "expected the JSON of an earlier `wordward check`, a file that --json writes; this is a folder"
    assert told in " ".join(capsys.readouterr().err.split())
    assert checked("--against", "none.json") == 2
    assert "a file that --json writes; this does not exist" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(SystemExit) as stopped:
        checked("--min-accuracy", "90%")
    assert stopped.value.code == 2
    assert "--min-accuracy: expected a share such as 0.9; got '90%'" in capsys.readouterr().err
    assert checked("--min-accuracy", "None") == 0


def test_a_fault_of_our_own_is_not_taken_for_a_model_that_falls_short(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("wordward.attack.checking.check", lambda *_, **__: 1 / 0)
    assert checked() == 2
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.parametrize("flags", [[], ["--json", "-"]])
def test_it_falls_short_although_the_reader_of_a_pipe_has_gone(
    here: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str]
) -> None:
    read, written = os.pipe()
    os.close(read)
    with os.fdopen(written, "w") as unread:
        monkeypatch.setattr(sys, "stdout", unread)
        assert checked("--max-flip-rate", "0.5", "--junit", "a.xml", *flags) == 1
        assert checked("--max-flip-rate", "1", *flags) == 0
    assert ElementTree.parse(here / "a.xml").getroot().get("failures") == "1"


def test_help_tells_the_exit_statuses(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["check", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "Exit status: 0, it holds" in said
    assert "2, it could not be checked" in said


def test_files(here: Path, capsys: pytest.CaptureFixture[str]):
    files = {"json": "out/a.json", "junit": "a.xml", "card": "ROBUSTNESS.md", "html": "a.html"}
    flags = [part for name, path in files.items() for part in (f"--{name}", path)]
    assert checked(*flags, "--target", "good", "--max-flip-rate", "0.5", "--min-accuracy", "0.9") == 1
    record = json.loads((here / files["json"]).read_text(encoding="utf-8"))
    assert record["holds"] is False
    assert record["flip_rate"]["value"] == 1
    suite = ElementTree.parse(here / "a.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    failures = {case.get("name"): case.find("failure") for case in suite.findall("testcase")}
    assert failures["accuracy at least 90.0%"] is None
    failed = failures["flip rate at most 50.0%"]
    assert failed is not None
    assert "→" in str(failed.text)
    card = (here / "ROBUSTNESS.md").read_text(encoding="utf-8")
    assert card.startswith("# Robustness of checked_model:guard\n")
    assert "| flip rate | at most 50.0% | 100.0% | **falls short** |" in card
    page = (here / "a.html").read_text(encoding="utf-8")
    assert "falls short" in page
    assert "<script" not in page
    capsys.readouterr()
    assert checked("--json", "-") == 0
    assert json.loads(capsys.readouterr().out)["texts"] == 21
    assert checked("--against", files["json"]) == 0
    assert "no worse than out/a.json" in capsys.readouterr().out


def test_texts_are_escaped(here: Path):
    nasty = [wordward.Example("warm <script>alert(1)</script> | film & \ufffe\uffff\x1b\x85", "good")]
    write_csv(here / "test.csv", nasty)
    assert checked("--html", "a.html", "--card", "a.md", "--junit", "a.xml", "--max-flip-rate", "0") == 1
    assert "<script>alert" not in (here / "a.html").read_text() + (here / "a.md").read_text()
    ElementTree.parse(here / "a.xml")


def test_without_labels(here: Path, capsys: pytest.CaptureFixture[str]):
    (here / "plain.txt").write_text("the film was warm\nthis script was dull\n")
    assert checked("--no-labels", "--max-flip-rate", "1", texts="plain.txt") == 0
    said = capsys.readouterr().out
    assert "flip rate" in said
    assert "accuracy" not in said


def test_a_folder_and_a_tagger(here: Path, capsys: pytest.CaptureFixture[str]):
    assert checked("--limit", "6", model=str(fine_tuned(here / "sentiment", steps=30))) == 0
    assert "sentiment on 6 texts" in capsys.readouterr().out
    write_conll(here / "tags.conll", tagged(60))
    flags = "--epochs 8 --dim 10 --hidden 10 --learning-rate 0.03 --positive i --device cpu --quiet --method baseline"
    assert main(["train", "--train", "tags.conll", "--kind", "lstm", "--out", "run", *flags.split()]) == 0
    assert main(["check", "run", "tags.conll", "--budgets", "1", "--device", "cpu", "--quiet"]) == 0
    said = capsys.readouterr().out
    assert "accuracy under 1 edit" in said
    assert "sentences with a word tagged i" in said


def shown(title: str) -> str:
    """The file of this name that docs/check.md shows."""
    page = "docs/check.md"
    (block,) = [each for each in blocks(page, (ROOT / page).read_text(encoding="utf-8")) if each.title == title]
    return block.code


def test_the_pytest_example(here: Path):
    """Done on texts that the model gets right, and on texts that it gets wrong."""
    fine_tuned(here / "sentiment")
    write_csv(here / "test.csv", reviews(60))
    names: dict[str, Any] = {}
    exec(compile(shown("test_robustness.py"), "test_robustness.py", "exec"), names)
    (test,) = [value for name, value in names.items() if name.startswith("test_")]  # what pytest would find
    test()
    other = {"good": "bad", "bad": "good"}
    write_csv(here / "test.csv", [replace(each, label=other[str(each.label)]) for each in reviews(60)])
    with pytest.raises(AssertionError, match="falls short"):
        test()


def test_the_github_actions_example(here: Path, capsys: pytest.CaptureFixture[str]):
    workflow = yaml.safe_load(shown("robustness.yml"))
    assert set(workflow) == {"name", True, "jobs"}  # YAML reads the key `on` as true
    steps = workflow["jobs"]["check"]["steps"]
    (command,) = [step["run"] for step in steps if str(step.get("run", "")).startswith("wordward check")]
    fine_tuned(here / "sentiment")
    write_csv(here / "test.csv", reviews(60))
    words = shlex.split(command.replace("\\\n", " "))
    assert main(["check", "sentiment", "test.csv", "--json", "release.json", "--budgets", "1", "2", "--quiet"]) == 0
    assert main([*words[1:], "--device", "cpu"]) in (0, 1)
    capsys.readouterr()
    written = [words[at + 1] for at, word in enumerate(words) if word in ("--json", "--junit", "--card")]
    assert all((here / path).exists() for path in written)
    kept = next(step["with"]["path"] for step in steps if "upload-artifact" in str(step.get("uses")))
    assert set(kept.split()) == set(written)
    ElementTree.parse(here / "robustness.xml")


def test_texts_cut_are_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    model = fine_tuned(tmp_path / "model")
    long = replace(reviews(1)[0], text="the film was warm and funny " * 40)
    write_csv(tmp_path / "long.csv", [long, *reviews(3)])
    for command, *more in (["check", "--sense", "any"], ["attack"], ["augment", "--out", "more.csv"]):
        assert main([command, str(model), "long.csv", "--device", "cpu", *more]) == 0
        told = " ".join(capsys.readouterr().err.split())
        assert told.count("1 of 4 texts cut to the") == 1
        assert "word pieces that are read of each; edits are within them" in told


def test_what_limits_a_check_stands_once_on_a_screen(here: Path, capsys: pytest.CaptureFixture[str]):
    found = check(wordward.open_model("checked_model:guard"), reviews(6))
    for told in (False, True):
        show(found, 0, told=told)
        assert ("only 3 words are in 5 labelled texts" in capsys.readouterr().out) is not told
