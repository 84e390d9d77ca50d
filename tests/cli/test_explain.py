"""`wordward explain`, used as a person would."""

import io
import json
import re
import sys
from pathlib import Path

import pytest
from reviews import reviews, tagged, write_conll, write_csv

from wordward.cli.main import main
from wordward.datasets import Example
from wordward.explain.explainer import explain
from wordward.explain.explanation import from_json
from wordward.runs.opening import load_run

SMALL = "--limit 70 --dim 10 --hidden 10 --head 5 --learning-rate 0.02 --device cpu --epsilon 1 --k 3 --quiet".split()
TEXT = "The film was dull, and cold"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier and a tagger, and the sentences they learnt from."""
    folder = tmp_path_factory.mktemp("runs")
    write_csv(folder / "reviews.csv", reviews(120))
    write_conll(folder / "tags.conll", tagged(80))
    for name, data in (("classifier", "reviews.csv"), ("tagger", "tags.conll")):
        out, train = str(folder / name), str(folder / data)
        assert main(["train", "--train", train, "--out", out, "--epochs", "2", "--lowercase", *SMALL]) == 0
    return folder


@pytest.fixture
def run(folder: Path) -> str:
    return str(folder / "classifier")


@pytest.fixture
def tagger(folder: Path) -> str:
    return str(folder / "tagger")


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command says that fails and prints nothing else."""
    assert main(["explain", *arguments]) == 1
    shown = capsys.readouterr()
    assert shown.err.startswith("wordward: ")
    return shown.err


def test_the_terminal_shows_prediction_and_pulls(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", run, TEXT, "--label", "Bad", "--compare", "advt"]) == 0
    shown = capsys.readouterr().out
    said = load_run(run, device="cpu").predict([TEXT])[0]
    assert f"{said.label} {100 * said.probabilities[str(said.label)]:.1f} %" in shown
    assert "iAdvT: words that make bad less likely (the given label)" in shown
    assert "→" in shown
    assert "1.00" in shown


def test_json_is_what_explain_gives(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", run, TEXT, "the ending was warm", "--compare", "vat", "--top", "2", "--json", "-"]) == 0
    found = [from_json(record) for record in lines(capsys)]
    loaded = load_run(run, device="cpu")
    wanted = [
        explain(loaded, [Example(text)], method=method, top=2)[0]
        for text in (TEXT, "the ending was warm")
        for method in ("iadvt", "vat")
    ]
    assert [(e.text, e.method) for e in found] == [(e.text, e.method) for e in wanted]
    for one, other in zip(found, wanted, strict=True):
        assert [[p.toward for p in place.pulls] for place in one.places] == [
            [p.toward for p in place.pulls] for place in other.places
        ]


def test_files_are_written_and_said(
    run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib", reason="needs pip install 'wordward[figure]'")
    monkeypatch.chdir(tmp_path)
    named = ["--html", "a.html", "--figure", "a.svg", "--json", "a.jsonl"]
    assert main(["explain", run, '<script>alert("x")</script> was dull', *named]) == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "wrote a.svg, a.html, a.jsonl" in shown.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "a.jsonl", "a.svg"]
    html = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "(&#34;" in html
    assert "<script" not in html
    assert main(["explain", run, TEXT, "--png", "b.png"]) == 0
    assert (tmp_path / "b.png").read_bytes()[:4] == b"\x89PNG"


def test_a_file_gives_its_labels_where_it_has_some(
    run: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    examples = reviews(120)
    assert main(["explain", run, "--file", str(folder / "reviews.csv"), "--json", "-"]) == 0
    found = lines(capsys)
    assert [record["text"] for record in found] == [example.text for example in examples]
    assert [record["label"] for record in found] == [example.label for example in examples]
    assert all(record["given"] for record in found)
    (tmp_path / "plain.txt").write_text("the film was dull\nthe cast was warm\n")
    assert main(["explain", run, "--file", str(tmp_path / "plain.txt"), "--json", "-"]) == 0
    shown = capsys.readouterr()
    assert "plain.txt has no labels" in shown.err
    assert not any(json.loads(line)["given"] for line in shown.out.splitlines())
    (tmp_path / "other.csv").write_text("review,mood\nthe film was dull,bad\n")
    columns = ["--text-column", "review", "--label-column", "mood"]
    assert main(["explain", run, "--file", str(tmp_path / "other.csv"), *columns, "--json", "-"]) == 0
    assert lines(capsys)[0]["given"]
    columns[-1] = "feeling"
    assert "expected a column 'feeling'" in refused(capsys, run, "--file", str(tmp_path / "other.csv"), *columns)
    (tmp_path / "partly.csv").write_text("text,label\nthe film was warm,good\nthe cast was dull,\n")
    assert main(["explain", run, "--file", str(tmp_path / "partly.csv"), "--json", "-"]) == 0
    assert "partly.csv, line 3: expected a label; it is empty" in capsys.readouterr().err
    (tmp_path / "odd.csv").write_text("text,label\nthe film was warm,nice\n")
    odd = str(tmp_path / "odd.csv")
    assert f"{odd}, line 2: expected a label that the model knows" in refused(capsys, run, "--file", odd)


def test_standard_input(run: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("the film was dull\nthe cäst\n".encode())))
    assert main(["explain", run, "--json", "-"]) == 0
    assert [record["text"] for record in lines(capsys)] == ["the film was dull", "the cäst"]


def test_texts_beside_standard_input_are_refused(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    """They would not be explained."""
    said = refused(capsys, run, "-", "--text", TEXT)
    assert "expected texts as arguments or in a file; got 1 and --file -: leave one out" in said


def test_a_taggers_focus_by_word_and_by_number(tagger: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ["the film Are warm", "well this cast are dull"]
    assert main(["explain", tagger, *texts, "--focus", "Are", "--label", "c", "--json", "-"]) == 0
    found = lines(capsys)
    assert [record["focus"] for record in found] == [2, 3]
    assert [(record["label"], record["given"]) for record in found] == [("c", True)] * 2
    assert main(["explain", tagger, *texts, "--focus", "0", "--json", "-"]) == 0
    assert [record["focus"] for record in lines(capsys)] == [0, 0]
    assert main(["explain", tagger, "--file", str(folder / "tags.conll"), "--json", "-"]) == 0
    found = lines(capsys)
    assert len(found) == 80
    assert all(record["given"] and record["label"] is None for record in found)
    assert main(["explain", tagger, "--file", str(folder / "reviews.csv"), "--json", "-"]) == 0  # one label a text
    assert not any(record["given"] for record in lines(capsys))
    assert main(["explain", tagger, texts[0]]) == 0
    assert "words that make all tags less likely" in capsys.readouterr().out


def test_texts_without_words_are_said(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, run, "").endswith("no words to explain in the text\n")
    assert main(["explain", run, TEXT, " ", "--json", "-"]) == 1
    shown = capsys.readouterr()
    assert shown.err.splitlines()[-1] == "wordward: no words to explain in 1 of 2 texts"
    assert [len(json.loads(line)["places"]) for line in shown.out.splitlines()] == [6, 0]


@pytest.mark.parametrize("text", ["dull", "zyx", "🎬 was 🎉", "הסרט היה dull", "a\nb\tc", "the film was dull " * 500])
def test_odd_texts_are_explained(text: str, run: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["explain", run, text, "--compare", "advt"]) == 0
    assert "→" in capsys.readouterr().out
    assert main(["explain", run, text, "--html", str(tmp_path / "x.html")]) == 0
    if text == "zyx":
        assert "No word of this text is in the vocabulary." in (tmp_path / "x.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--label", "nice"], "expected a label that the model knows (bad, good); got 'nice'"),
        (["--method", "mine"], "unknown method 'mine'"),
        (["--compare", "iadvt+ivat"], "expected one method"),
        (
            ["--method", "ivat", "--label", "bad"],
            "--label is for methods that raise a label's loss, not for ivat",
        ),
        (["--focus", "film"], "--focus is for taggers"),
        (["--top", "0"], "top must be 1 or more"),
        (["--json", "."], "--json .: expected the name of a file; this is a folder"),
        (["--figure", "x.gif"], "expected --figure with a name in .png, .svg, .pdf; got x.gif"),
        (["another", "--figure", "x.png"], "--figure draws one text; got 2"),
        (["--file", "x.csv"], "expected texts as arguments or in a file; got 1 and --file x.csv"),
    ],
)
def test_bad_input_is_said_and_nothing_is_written(
    arguments: list[str],
    said: str,
    run: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    files = [] if "--html" in arguments else ["--html", "page.html"]
    assert said in refused(capsys, run, TEXT, *arguments, *files)
    assert list(tmp_path.iterdir()) == []


def test_folders_and_words_that_are_none(tagger: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is not a run folder" in refused(capsys, str(tmp_path), TEXT)
    assert "is not a run folder" in refused(capsys, str(tmp_path / "none"), TEXT)
    assert "a word of text 2 (the, cast); got 'film'" in refused(
        capsys, tagger, "the film", "the cast", "--focus", "film"
    )
    assert "it has positions 0 to 1" in refused(capsys, tagger, "the film", "--focus", "2")
    assert "give the focus it is for" in refused(capsys, tagger, "the film", "--label", "c")
    assert "text 1: expected UTF-8" in refused(capsys, tagger, "the \udcff film")


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_an_output_that_is_not_utf8_takes_any_text(run: str, encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "the film was “warm”, café 日本"

    def shown(*arguments: str) -> str:
        written = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
        assert main([*arguments, text]) == 0
        sys.stdout.flush()
        return written.getvalue().decode(encoding)

    assert re.search(r" > \w+ +#+", shown("explain", run))
    assert json.loads(shown("explain", run, "--json", "-"))["text"] == text
    assert json.loads(shown("predict", run))["text"] == text
    assert ">" in shown("attack", run, "--text")


def test_a_limit_of_a_files_name_as_a_text_is_refused(
    run: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(folder / "reviews.csv")
    assert f"--limit counts the texts of a file: give --file {file}" in refused(capsys, run, file, "--limit", "2")
