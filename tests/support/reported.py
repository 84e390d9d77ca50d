"""Small runs to report on, and a reader of the pages."""

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from reviews import reviews, tagged, write_conll, write_csv

from wordward.cli.main import main
from wordward.datasets import Example

SMALL = "--dim 12 --hidden 12 --head 6 --learning-rate 0.02 --device cpu --quiet".split()
METHOD = "--epsilon 1 --k 5 --epochs 3 --lowercase".split()
VOID = {"meta", "br", "link", "img", "input", "hr"}


def make_runs(folder: Path) -> Path:
    """Two classifiers that start from a language model, and two taggers, with texts to test them on."""
    train = str(write_csv(folder / "train.csv", reviews(300)))
    tags = str(write_conll(folder / "tags.conll", tagged(160)))
    write_csv(folder / "test.csv", hard(60))
    write_conll(folder / "test.conll", tagged(50, seed=3))
    lm = str(folder / "lm")
    assert main(["pretrain", "--texts", train, "--out", lm, "--epochs", "3", "--lowercase", *SMALL]) == 0
    for name, method, data, start in (
        ("mine", "iadvt", train, ["--pretrained", lm]),
        ("plain", "baseline", train, ["--pretrained", lm]),
        ("tagger", "iadvt", tags, ["--epochs", "8"]),
        ("tagger2", "baseline", tags, ["--epochs", "8"]),
    ):
        out = ["--out", str(folder / name), "--method", method, "--train", data]
        assert main(["train", *out, *METHOD, *start, *SMALL]) == 0
    return folder


def hard(count: int) -> list[Example]:
    """Reviews of which some have the other label, so that no model is right on all."""
    swap = {"good": "bad", "bad": "good"}
    found = reviews(count, seed=9)
    return [Example(each.text, swap[str(each.label)] if at % 5 == 0 else each.label) for at, each in enumerate(found)]


class Page(HTMLParser):
    """A page as a person reads it; every tag that opens must close in its turn."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.source = path.read_text(encoding="utf-8")
        self.open: list[str] = []
        self.headings: list[str] = []
        self.rows: dict[str, list[list[str]]] = {}  # of the tables under each heading
        self.parts: list[str] = []
        self.links: list[str] = []
        self.feed(self.source)
        self.close()
        assert not self.open
        self.text = " ".join(" ".join(self.parts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [str(value) for name, value in attrs if name in ("href", "src")]
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("h1", "h2", "h3"):
            self.headings.append("")
        if tag == "tr":
            self.rows.setdefault(self.headings[-1], []).append([])
        if tag in ("td", "th"):
            self.rows[self.headings[-1]][-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """As <circle/>: it opens nothing."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            return
        self.parts.append(data)
        if self.open and self.open[-1] in ("h1", "h2", "h3"):
            self.headings[-1] += data
        if {"td", "th"} & set(self.open):
            cells = self.rows[self.headings[-1]][-1]
            cells[-1] = " ".join(f"{cells[-1]} {data}".split())


def evaluated(capsys: pytest.CaptureFixture[str], run: Path, data: str) -> dict[str, str]:
    """What `wordward evaluate` says, written as the page writes it."""
    assert main(["evaluate", str(run), data, "--json", "--device", "cpu"]) == 0
    found = json.loads(capsys.readouterr().out)
    intervals = {name: value for name, value in found.items() if isinstance(value, dict) and "low" in value}
    ends = {
        name: f"{100 * each['low']:.2f} to {100 * each['high']:.2f} %"
        if each["low"] < each["high"]
        else "no interval"
        for name, each in intervals.items()
    }
    return {name: f"{100 * each['value']:.2f} % {ends[name]}" for name, each in intervals.items()}


def numbers(page: Page, heading: str) -> list[list[str]]:
    """The cells of the tables under a heading, without what the measures mean."""
    return [row[1:] for row in page.rows[heading][1:]]
