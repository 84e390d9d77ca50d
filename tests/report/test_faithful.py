"""Faithfulness on the page of a report, and the report's numbers as JSON."""

import json
import re
import sys
from pathlib import Path

import pytest
from any_model import fine_tuned
from reported import Page, hard
from reviews import write_csv

import wordward
from wordward.cli.main import main
from wordward.explain.faithfulness import CHOICES
from wordward.report import ReportSettings, draw, gather, gathering, record

HEADING = "Whether pulls name words that matter"


def reported(runs: Path, *more: str, run: str = "mine") -> tuple[Page, dict[str, dict[str, object]]]:
    out, numbers = runs / "page.html", runs / "page.json"
    flags = ["--attack", "30", "--sentences", "0", "--device", "cpu", "--quiet", "--json", str(numbers)]
    assert main(["report", str(runs / run), *flags, *more, "--out", str(out)]) == 0
    return Page(out), json.loads(numbers.read_text(encoding="utf-8"))["runs"]


def test_a_figure_for_each_run(runs: Path):
    page, found = reported(runs, "--test", str(runs / "test.csv"), "--against", str(runs / "plain"))
    assert HEADING in page.headings
    assert set(found) == {"mine", "plain"}
    examples = wordward.datasets.read(runs / "test.csv")
    for name, numbers in found.items():
        run = wordward.load_run(runs / name, device="cpu")
        measured = wordward.explain.faithfulness(run, wordward.datasets.sample(examples, 30, apart=True))
        assert numbers["faithfulness"] == json.loads(json.dumps(measured.to_json()))
        for choice, interval in measured.flips.items():
            share = f"{100 * interval.value:.1f}\u00a0%"
            assert f'aria-label="{CHOICES[choice].replace(chr(39), "&#39;")}: {share}"' in page.source
        first = measured.ahead["random"]
        assert f"{100 * first.value:+.1f} percentage points".replace("-", "−") in page.source


def test_numbers_are_those_of_the_page(runs: Path):
    _, found = reported(runs, "--test", str(runs / "test.csv"))
    report = gather(runs / "mine", ReportSettings(str(runs / "test.csv"), 0, 30), device="cpu", quiet=True)
    assert record(report)["runs"] == found
    assert report.subjects[0].test is not None
    scores = found["mine"]["test"]
    assert isinstance(scores, dict)
    assert scores["error"]["value"] == report.subjects[0].test.scores["error"].value


def test_an_opened_model(runs: Path):
    fine_tuned(runs / "opened")
    write_csv(runs / "other.csv", hard(30))
    page, found = reported(runs, "--test", str(runs / "other.csv"), run="opened")
    assert HEADING in page.headings
    assert found["opened"]["faithfulness"]
    settings = ReportSettings(str(runs / "other.csv"), 0, 0)
    other, own = (draw(gather(runs / name, settings, device="cpu", quiet=True)) for name in ("opened", "mine"))
    assert "Dev texts chose" not in other  # none are known
    assert "Dev texts chose" in own


def test_what_is_left_out_is_said(runs: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys.modules["wordward.explain.faithfulness"], "find_spec", lambda name: None)
    report = gather(runs / "mine", ReportSettings(attack=10, sentences=0), device="cpu", quiet=True)
    assert "is left out: captum is not installed" in draw(report)


@pytest.mark.parametrize(("run", "texts"), [("tagger", 10), ("mine", 0)])
def test_no_section_where_nothing_is_measured(run: str, texts: int, runs: Path):
    report = gather(runs / run, ReportSettings(attack=texts, sentences=0), device="cpu", quiet=True)
    assert report.subjects[0].faithfulness is None
    assert HEADING not in draw(report)


def test_of_a_transformer_on_a_cpu_fewer_texts_are_attacked_and_it_is_said(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    assert (gathering.ATTACKED, gathering.FAITHFUL, gathering.ON_CPU) == (200, 100, (80, 20))
    for name, fewer in (("ATTACKED", 50), ("FAITHFUL", 25), ("ON_CPU", (20, 5))):
        monkeypatch.setattr(gathering, name, fewer)
    fine_tuned(runs / "opened")
    write_csv(tmp_path / "many.csv", hard(25))
    amounts = {}
    for name, more in (("opened", ()), ("opened", ("--attack", "22")), ("mine", ())):
        flags = ["--test", str(tmp_path / "many.csv"), "--sentences", "0", "--device", "cpu", "--html"]
        assert main(["report", str(runs / name), *flags, str(tmp_path / "page.html"), *more]) == 0
        page, told = Page(tmp_path / "page.html").text, capsys.readouterr().err
        attacked = re.search(r"Words of (\d+) test texts", page)
        measured = re.search(r"share of (\d+) test texts that a swap", page)
        assert attacked
        assert measured
        assert ("with --attack 50 up to 50 and 25 are" in page) == ("with --attack 50" in told) == (not amounts)
        amounts[name, more] = int(attacked[1]), int(measured[1])
    assert amounts["opened", ()][0] == 20
    assert 0 < amounts["opened", ()][1] <= 5
    assert [attacked for attacked, _ in amounts.values()] == [20, 22, 25]
    assert amounts["mine", ()][1] > 5
