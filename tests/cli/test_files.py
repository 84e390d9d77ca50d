"""Commands on files as people have them: standard input, columns of another name, empty texts, tags as text."""

import io
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import openpyxl
import pytest
from reviews import reviews, tagged, write_conll, write_csv

from wordward.cli.arguments import FileColumns
from wordward.cli.main import main
from wordward.cli.texts import texts_in
from wordward.datasets import streams
from wordward.runs.opening import load_run
from wordward.support.errors import RunError

SMALL = "--dim 10 --hidden 10 --head 5 --epochs 1 --learning-rate 0.02 --device cpu --epsilon 1 --k 3 --quiet".split()
TEXTS = reviews(30)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("files")
    file = write_csv(folder / "t.csv", TEXTS)
    assert main(["train", "--train", str(file), "--out", str(folder / "run"), *SMALL]) == 0
    return str(folder / "run")


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def put(content: str) -> None:
        streams.kept.cache_clear()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))

    return put


SEMICOLONS = "label;text\n" + "".join(f'{each.label};"{each.text}"\n' for each in TEXTS[:6])


def test_every_command_reads_standard_input(run: str, typed, capsys: pytest.CaptureFixture[str], tmp_path) -> None:
    typed(SEMICOLONS)
    assert main(["evaluate", run, "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["texts"] == 6
    for way in (["-"], ["--file", "-"]):
        typed(SEMICOLONS)
        assert main(["predict", run, *way]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [json.loads(line)["text"] for line in lines] == [each.text for each in TEXTS[:6]]
        typed(SEMICOLONS)
        assert main(["explain", run, *way, "--json", "-"]) == 0
        explained = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [(each["text"], each["label"]) for each in explained] == [
            (each.text, each.label) for each in TEXTS[:6]
        ]
    typed(SEMICOLONS)
    assert main(["attack", run, "-", "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["texts"] == 6
    typed(SEMICOLONS)
    page = tmp_path / "page.html"
    assert main(["report", run, "--test", "-", "--attack", "0", "--out", str(page), "--quiet"]) == 0
    assert "standard input" in page.read_text()


def test_training_on_standard_input(typed, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    typed("label;text\n" + "".join(f"{each.label};{each.text}\n" for each in TEXTS))
    out = str(tmp_path / "run")
    assert main(["train", "--train", "-", "--out", out, *SMALL]) == 0
    typed("")
    page = tmp_path / "page.html"
    assert main(["report", out, "--attack", "0", "--out", str(page), "--quiet"]) == 0  # does not wait for more
    assert "they came from standard input, which is not kept" in page.read_text()


def test_plain_lines_and_an_emoji(run: str, typed, capsys: pytest.CaptureFixture[str]) -> None:
    typed("a warm film\n😀😀\n")
    assert main(["predict", run, "-"]) == 1
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert first["label"] in ("good", "bad")
    assert "empty" not in second["error"]
    assert "none of the text's symbols" in second["error"]


def test_report_and_serve_take_the_columns(run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "test.jsonl"
    lines = [{"review": {"text": each.text}, "stars": each.label} for each in TEXTS[:8]]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    flags = ["--text-column", "review.text", "--label-column", "stars"]
    page = ["report", run, "--test", str(file), "--attack", "0", "--out", str(tmp_path / "page.html"), "--quiet"]
    assert main(page) == 1
    assert "expected a key 'text'; found review, stars: name it with --text-column" in capsys.readouterr().err
    assert main([*page, *flags]) == 0
    columns = FileColumns(text_column="review.text")
    assert [each.text for each in texts_in(load_run(run), str(file), labelled=False, **vars(columns))] == [
        each.text for each in TEXTS[:8]
    ]


def test_empty_texts(run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(write_csv(tmp_path / "t.csv", [replace(TEXTS[0], text=""), *TEXTS[1:5], replace(TEXTS[5], text=" ")]))
    assert main(["evaluate", run, file]) == 1
    assert "line 2: expected a text; it is empty, as 1 more is: " in (said := capsys.readouterr().err)
    assert "leave out such texts with --skip-empty" in said
    assert main(["evaluate", run, file, "--skip-empty", "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["texts"] == 4
    assert "left out 2 empty of 6 texts" in shown.err
    assert main(["predict", run, "--file", file, "--skip-empty"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_a_workbook(run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book = openpyxl.Workbook()
    for row in (["text", "label"], *([each.text, each.label] for each in TEXTS)):
        book.worksheets[0].append(row)
    book.save(tmp_path / "t.xlsx")
    assert main(["evaluate", run, str(tmp_path / "t.xlsx"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["texts"] == 30


@pytest.mark.parametrize("task", [[], ["--task", "tag"]])
def test_tags_in_a_text_file(task: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(write_conll(tmp_path / "train.txt", tagged(40)))
    assert main(["train", "--train", file, "--out", str(tmp_path / "run"), *SMALL, *task]) == 0
    (tmp_path / "plain.txt").write_text("a warm film\na dull one that went on\n")
    assert main(["train", "--train", str(tmp_path / "plain.txt"), "--out", str(tmp_path / "no"), *SMALL, *task]) == 1
    assert "--format conll for a token and its tag on each line" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        *("evaluate m t.csv", "explain m text", "attack m t.csv", "attack t.csv --models m n", "check m t.csv"),
        *("augment m t.csv --out more.csv", "serve m --port 0"),
    ],
)
def test_every_command_opens_its_model_as_its_flags_say(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[str, dict[str, str]]] = []

    def record(source: str, **how: str) -> None:
        asked.append((source, how))
        raise RunError("seen")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("wordward.runs.opening.open_model", record)
    flags = "--device cpu --positive yes --pair-column second"
    assert main([*command.split(), *flags.split()])  # an error
    assert "seen" in capsys.readouterr().err
    assert asked == [("m", {"device": "cpu", "positive": "yes", "pair_column": "second"})]
