"""Whole corpora attacked and explained: files that grow and are gone on with, and several processes at work."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from any_model import fine_tuned
from reviews import reviews, tagged, write_conll, write_csv

import wordward.explain.corpus
from wordward.attack.attacked import Attacked
from wordward.attack.attacker import attack
from wordward.attack.files import from_record
from wordward.cli.main import main
from wordward.config.attack import AttackSettings
from wordward.config.settings import TrainConfig
from wordward.config.toml import to_toml
from wordward.datasets import DataError, Example, registry
from wordward.datasets.published import Splits
from wordward.explain.corpus import ExplainSettings, explain_all
from wordward.explain.explanation import from_json
from wordward.runs import run_folder
from wordward.runs.opening import load_run, open_model
from wordward.runs.results_file import ResultsFile, describe
from wordward.runs.run import Run
from wordward.support.threads import cores
from wordward.support.workers import MANY, jobs_for

KEPT = Attacked("fine", "fine", "good", given=True, before="good", after="good", passes=9, words=1)
SMALL = "--dim 10 --hidden 10 --head 5 --epochs 3 --learning-rate 0.02 --epsilon 1 --k 5 --device cpu --quiet"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier and a tagger beside texts like those that they learnt from."""
    place = tmp_path_factory.mktemp("growing")
    write_csv(place / "train.csv", reviews(240))
    write_csv(place / "test.csv", reviews(30, seed=5))
    write_conll(place / "tags.conll", tagged(80))
    for name, data in (("run", "train.csv"), ("tagger", "tags.conll")):
        command = ["train", "--train", str(place / data), "--out", str(place / name), *SMALL.split()]
        assert main(command) == 0
    return place


@pytest.fixture
def run(folder: Path) -> Run:
    return load_run(folder / "run", device="cpu")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def test_files_of_something_else_are_left_alone(run: Run, tmp_path: Path) -> None:
    described = describe(run, [Example("warm")], settings=asdict(AttackSettings()))

    def opened(name: str, **options: bool) -> ResultsFile:
        return ResultsFile(tmp_path / name, described, command="attack", name="out", **options)

    mine = tmp_path / "mine.jsonl"
    mine.write_text("my own\n")
    with pytest.raises(DataError, match=r"expected mine.jsonl.settings.json beside it"):
        opened("mine.jsonl")
    opened("mine.jsonl", force=True)  # nothing is lost before there is something to write
    assert mine.read_text() == "my own\n"
    opened("ours.jsonl").append(asdict(KEPT))
    assert list(opened("ours.jsonl").records(from_record)) == [KEPT]
    (tmp_path / "ours.jsonl").write_text('{"number": 3}\n')
    with pytest.raises(DataError, match="the texts are not in order"):
        list(opened("ours.jsonl").records(from_record))
    (tmp_path / "ours.jsonl").write_text('{"number": 0}\n')
    with pytest.raises(DataError, match="expected results of `wordward attack`"):
        list(opened("ours.jsonl").records(from_record))


def test_what_decides_the_results_is_compared_wherever_it_lies(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same run by another path, or copied, goes on; other weights, settings or words do not."""
    out, options = str(tmp_path / "out.jsonl"), ["--device", "cpu", "--json"]
    data = str(folder / "test.csv")
    assert main(["attack", str(folder / "run"), data, "--out", out, *options]) == 0
    monkeypatch.chdir(folder)
    assert main(["attack", "run", "test.csv", "--out", out, *options]) == 0
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in (folder / "run").iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    assert main(["attack", str(copy), data, "--out", out, *options]) == 0
    capsys.readouterr()
    changed = {
        "class_counts.safetensors": "vocabulary",
        "config.toml": "run_settings",
        "model.safetensors": "weights",
    }
    for name, said in changed.items():
        whole = (copy / name).read_bytes()
        other = whole.replace(b"k = 5", b"k = 4") if name == "config.toml" else whole[:-1] + b"\x01"
        assert other != whole
        (copy / name).write_bytes(other)
        assert main(["attack", str(copy), data, "--out", out, *options]) == 1
        assert f"(other {said})" in capsys.readouterr().err
        (copy / name).write_bytes(whole)


def test_what_a_model_from_elsewhere_is_made_of_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights, names of labels and tokenizer of a folder, also in the cache of the hub; of a function its module."""
    place = fine_tuned(tmp_path / "models--someone--sense" / "snapshots" / "0")
    (place.parents[1] / "refs").mkdir()
    (place.parents[1] / "refs" / "main").write_text("0")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    module = tmp_path / "of_strings.py"
    module.write_text("def guard(texts):\n    return [0.5 for _ in texts]\n")

    def described(source: Any) -> dict[str, Any]:
        return describe(open_model(source, device="cpu"), [Example("warm")])

    opened = open_model(place, device="cpu")
    from_hub = replace(opened, folder=Path("someone/sense"), source="someone/sense")
    before, of_hub, of_function = described(place), describe(from_hub, []), described("of_strings:guard")
    assert (of_hub["weights"], of_hub["vocabulary"]) == (before["weights"], before["vocabulary"])
    assert None not in (before["weights"], before["vocabulary"], of_function["weights"])
    (place / "out.jsonl.settings.json").write_text("{}")  # results may lie there
    assert described(place) == before
    config, tokenizer = (json.loads((place / name).read_text()) for name in ("config.json", "tokenizer.json"))
    (place / "config.json").write_text(json.dumps(config | {"id2label": {0: "good", 1: "bad"}}))
    assert [name for name, value in described(place).items() if value != before[name]] == ["labels", "vocabulary"]
    (place / "config.json").write_text(json.dumps(config | {"label2id": None}))
    (place / "tokenizer.json").write_text(json.dumps(tokenizer, indent=3))
    assert describe(from_hub, [])["vocabulary"] != of_hub["vocabulary"]
    module.write_text(module.read_text() + "\n")
    assert described("of_strings:guard")["weights"] != of_function["weights"]
    assert describe(open_model(lambda texts: [0.5 for _ in texts]), [])["weights"] is None


@pytest.mark.usefixtures("loaded_processes")
@pytest.mark.slow
def test_processes_find_what_one_finds(run: Run) -> None:
    examples = reviews(150, seed=8)
    alone, together = (list(attack(run, examples, jobs=jobs)) for jobs in (1, 2))
    assert [each.text for each in alone] == [example.text for example in examples]
    assert together == alone


@pytest.mark.usefixtures("loaded_processes")
@pytest.mark.slow
def test_an_error_in_a_process_is_said(folder: Path, tmp_path: Path) -> None:
    """The run is gone once the texts are read, so the processes cannot open it."""
    for file in (folder / "run").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    run = load_run(tmp_path, device="cpu")
    (tmp_path / "config.toml").unlink()
    with pytest.raises(run_folder.RunError, match="is not a run folder"):
        list(attack(run, reviews(150), jobs=2))


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_done(folder: Path, tmp_path: Path) -> None:
    write_csv(tmp_path / "many.csv", reviews(6_000, seed=6))
    out = tmp_path / "out.jsonl"
    command = [sys.executable, "-m", "wordward", "attack", str(folder / "run"), str(tmp_path / "many.csv")]
    command += ["--out", str(out), "--device", "cpu", "--jobs", "2"]
    going = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background job ignores it
        start_new_session=True,
    )
    while not out.exists() or out.read_bytes().count(b"\n") < 2:  # the first text is counted before the second
        assert going.poll() is None
        time.sleep(0.05)
    os.killpg(going.pid, signal.SIGINT)  # as a terminal sends it, to the processes beside it too
    try:
        _, said = going.communicate(timeout=60)
    finally:
        going.kill()
    assert going.returncode == 130
    assert "the same command continues after them" in said
    assert "Traceback" not in said
    done = lines(out)
    assert 0 < len(done) < 6_000
    assert [line["number"] for line in done] == list(range(len(done)))


@pytest.fixture
def few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Explain 8 texts at a time, and break off after so many."""
    real, left = wordward.explain.corpus.spread, [10**6]

    def broken(*args: Any, **named: Any) -> Iterator[Any]:
        for part in real(*args, **named):
            if left[0] < len(part):
                raise KeyboardInterrupt
            left[0] -= len(part)
            yield part

    monkeypatch.setattr(wordward.explain.corpus, "TEXTS", 8)
    monkeypatch.setattr(wordward.explain.corpus, "spread", broken)
    return left


def test_an_explanation_goes_on_where_it_was_stopped(
    folder: Path, tmp_path: Path, few_at_a_time: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["explain", str(folder / "run"), "--file", str(folder / "test.csv"), "--device", "cpu"]
    command += ["--compare", "vat"]
    assert main([*command, "--json", "-"]) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    cut, html = tmp_path / "new" / "cut.jsonl", tmp_path / "page.html"
    few_at_a_time[0] = 16
    assert main([*command, "--json", str(cut)]) == 130
    assert "16 texts are in" in capsys.readouterr().err
    assert len(lines(cut)) == 32  # a line a method
    whole = cut.read_text().splitlines(keepends=True)
    cut.write_text(
        "".join(whole[:-1]) + '{"number": 15, "form'
    )  # a text with one of its lines, and half of the other
    few_at_a_time[0] = 22
    assert main([*command, "--json", str(cut), "--html", str(html)]) == 0
    assert few_at_a_time[0] == 0  # only the missing ones were explained, and those beside the first of them
    few_at_a_time[0] = 10**6
    assert main([*command, "--json", str(tmp_path / "whole.jsonl")]) == 0
    assert cut.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    found = lines(cut)
    assert [record.pop("number") for record in found] == [at // 2 for at in range(60)]
    assert [(each["text"], each["method"]) for each in found] == [(each["text"], each["method"]) for each in printed]
    for one, other in zip(found, printed, strict=True):  # which are printed with four digits
        assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-4)
    assert main([*command, "--html", str(tmp_path / "whole.html")]) == 0
    pages = [path.read_text(encoding="utf-8") for path in (html, tmp_path / "whole.html")]
    shown = [[page.count(word) for word in ("film", "cast", "<section", "<p")] for page in pages]
    assert shown[0] == shown[1]  # those that were explained before are on it too
    assert from_json(lines(cut)[0]).text == reviews(30, seed=5)[0].text
    capsys.readouterr()
    assert main([*command, "--json", str(cut), "--top", "2"]) == 1
    said = "another `wordward explain` (other question): choose another --json, or --force"
    assert said in capsys.readouterr().err
    few_at_a_time[0] = 10**6
    assert main([*command, "--json", str(cut), "--limit", "9", "--force"]) == 0
    assert len(lines(cut)) == 18


@pytest.mark.parametrize("command", ["attack", "explain"])
def test_what_is_gone_on_with_equals_the_uninterrupted(command: str, folder: Path, tmp_path: Path) -> None:
    """Byte for byte, wherever it was cut: batches are those of the whole."""
    write_csv(tmp_path / "test.csv", [each for at in range(40) for each in reviews(4, seed=at)])
    given = [str(tmp_path / "test.csv"), "--out"] if command == "attack" else None
    given = given or ["--file", str(tmp_path / "test.csv"), "--json"]
    asked = [command, str(folder / "run"), *given]
    assert main([*asked, str(tmp_path / "whole.jsonl"), "--device", "cpu", "--quiet"]) == 0
    whole = (tmp_path / "whole.jsonl").read_bytes()
    for done in (1, 63, 130, 160):
        cut = tmp_path / f"{done}.jsonl"
        cut.write_bytes(b"".join(whole.splitlines(keepends=True)[:done]))
        cut.with_name(f"{done}.jsonl.settings.json").write_bytes(
            (tmp_path / "whole.jsonl.settings.json").read_bytes()
        )
        assert main([*asked, str(cut), "--device", "cpu", "--quiet"]) == 0
        assert cut.read_bytes() == whole


@pytest.mark.usefixtures("loaded_processes")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["run", "tagger"])
def test_processes_explain_as_one_does(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wordward.explain.corpus, "TEXTS", 16)
    run = load_run(folder / name, device="cpu")
    examples = reviews(60, seed=8) if name == "run" else tagged(60, seed=8)
    question = ExplainSettings(("iadvt", "vat"), 2, None if name == "run" else "2")
    alone, together = (list(explain_all(run, examples, question, jobs=jobs)) for jobs in (1, 2))
    assert [each[0].text for each in alone] == [example.text for example in examples]
    assert together == alone


def test_texts_without_words_are_counted_after_going_on(
    folder: Path, tmp_path: Path, few_at_a_time: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "texts.txt").write_text("".join(f"{each.text}\n" for each in reviews(8)) + "...\n" * 2)
    command = ["explain", str(folder / "run"), "--file", str(tmp_path / "texts.txt"), "--device", "cpu"]
    command += ["--json", str(tmp_path / "out.jsonl")]
    first = [main(command), capsys.readouterr().err]
    assert first[0] == 1
    assert "no words to explain in 2 of 10 texts" in first[1]
    assert [main(command), capsys.readouterr().err] == first


def test_a_split_is_named_as_for_attack(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    splits = Splits(reviews(9), reviews(6, seed=3), reviews(30, seed=5), [])
    monkeypatch.setattr(registry, "load", lambda name: splits)
    on_corpus = tmp_path / "run"
    on_corpus.mkdir()
    for file in (folder / "run").iterdir():
        (on_corpus / file.name).write_bytes(file.read_bytes())
    config = run_folder.load_config(on_corpus, TrainConfig)
    config = replace(config, data=replace(config.data, train="", corpus="imdb"))
    (on_corpus / "config.toml").write_text(to_toml(config))
    plain = ["--device", "cpu", "--json", "-"]

    def explained(*arguments: str) -> tuple[list[dict[str, Any]], str]:
        assert main(["explain", *arguments, *plain]) == 0
        shown = capsys.readouterr()
        return [json.loads(line) for line in shown.out.splitlines()], shown.err

    found, said = explained(str(on_corpus), "test")
    assert [record["text"] for record in found] == [example.text for example in splits.test]
    assert all(record["given"] for record in found)
    assert "test is a split of imdb, 30 texts; to explain the word, give --text test" in said
    assert explained(str(on_corpus), "--file", "dev", "--limit", "4")[0][0]["text"] in {
        example.text for example in splits.dev
    }
    assert [record["text"] for record in explained(str(on_corpus), "--text", "test")[0]] == ["test"]
    found, said = explained(str(folder / "run"), "test")
    assert [record["text"] for record in found] == ["test"]
    assert "explained as a text: this run is on files" in said
    data = str(folder / "test.csv")
    assert f"for the texts in that file give --file {data}" in explained(str(folder / "run"), data)[1]


def test_limits_and_jobs_of_the_command(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["explain", str(folder / "run"), "--file", str(folder / "test.csv"), "--device", "cpu"]
    for flag in ("limit", "jobs"):
        assert main([*command, f"--{flag}", "0"]) == 1
        assert f"{flag} must be a whole number, 1 or more, but is 0" in capsys.readouterr().err
    assert main([*command, "--json", str(tmp_path / "x.jsonl"), "--top", "0"]) == 1
    assert list(tmp_path.iterdir()) == []  # what cannot be asked leaves nothing behind
    asked = [(None, MANY - 1, True), (None, MANY, True), (None, MANY, False), (3, 2, True), (2, 9, False)]
    assert [jobs_for(jobs, texts, on_cpu=cpu) for jobs, texts, cpu in asked] == [1, cores(), 1, 3, 2]
