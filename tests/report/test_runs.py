"""Reports on runs of all kinds, on runs that are not whole, and on what is no run."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from reported import METHOD, SMALL, Page, evaluated, hard, numbers
from reviews import reviews, tagged, write_conll, write_csv

from wordward.attack.attacked import Attacked, Change
from wordward.attack.wording import stretches
from wordward.cli.main import main
from wordward.config.settings import TrainConfig
from wordward.datasets import Example
from wordward.explain.html import render
from wordward.report.contents import ReportSettings
from wordward.report.gathering import check_alike, gather
from wordward.report.texts import texts_to_score
from wordward.runs import run_folder
from wordward.runs.opening import load_run


def test_markup_in_texts_labels_and_names_stays_text(tmp_path: Path) -> None:
    evil = "<script>alert('x')</script>"
    labels = {"good": f'"good" {evil}', "bad": "<b>bad & co</b>"}
    examples = [Example(f"{e.text} {evil} <i>", labels[str(e.label)]) for e in reviews(120)]
    train = str(write_csv(tmp_path / "<u>train.csv", examples))
    run = tmp_path / "a<b>"
    assert main(["train", "--train", train, "--out", str(run), *METHOD, *SMALL]) == 0
    out = tmp_path / "page.html"
    assert main(["report", str(run), "--out", str(out), "--attack", "20", "--quiet"]) == 0
    page = Page(out)  # checks that tags match
    assert "<script" not in page.source
    assert "<i>" not in page.source
    assert evil in page.text
    assert page.headings[0] == "Report on a<b>"


def test_small_shares_are_no_markup() -> None:
    change = Change(0, "a", "b", 0, 1, "kept")
    attacked = Attacked("a", "b", "x", before="x", after="y", probability_before=0.9999, probability_after=1e-5)
    attacked = replace(attacked, changes=(change,), outcome="flipped")
    drawn = render("report/templates/attacked.html.j2", attacked=attacked, stretches=stretches)
    assert "x &gt;99.9 %" in drawn
    assert "x &lt;0.1 %" in drawn


def test_many_labels_are_told_by_their_mixups(tmp_path: Path) -> None:
    rows = [Example(f"this text is about thing{at % 12} and no other", f"kind {at % 12}") for at in range(240)]
    train = str(write_csv(tmp_path / "train.csv", rows))
    run, out = tmp_path / "run", tmp_path / "page.html"
    assert main(["train", "--train", train, "--out", str(run), *METHOD, "--epochs", "1", *SMALL]) == 0
    assert main(["report", str(run), "--out", str(out), "--attack", "0", "--sentences", "0", "--quiet"]) == 0
    page = Page(out)
    report = gather(run, ReportSettings(attack=0, sentences=0), device="cpu", quiet=True)
    assert report.subjects[0].dev is not None
    counts = report.subjects[0].dev.confusion
    shown = page.rows["Which labels it mixes up"][1:]
    assert shown
    assert len(shown) <= 12
    labels = report.subjects[0].run.labels
    for true, said, count, share in shown:
        t, s = labels.index(true), labels.index(said)
        assert true != said
        assert int(count) == counts[t, s] > 0
        assert share == f"{100 * counts[t, s] / counts[t].sum():.1f} %"
    assert "Adversarial texts" not in page.headings
    assert "What changes its mind" not in page.headings


def three_tags(place: Path) -> str:
    """Sentences of ours whose words have one of three tags."""
    tags = {"the": "D", "this": "D", "was": "V"}
    sentences = [
        Example(e.text, tokens=tuple(e.text.split()), tags=tuple(tags.get(w, "N") for w in e.text.split()))
        for e in reviews(80)
    ]
    return str(write_conll(place / "t.conll", sentences))


def test_a_tagger_without_a_tag_to_flag_has_no_attack(tmp_path: Path) -> None:
    train, run, out = three_tags(tmp_path), tmp_path / "run", tmp_path / "page.html"
    assert (
        main(["train", "--train", train, "--out", str(run), *METHOD, "--epochs", "30", "--patience", "30", *SMALL])
        == 0
    )
    assert main(["report", str(run), "--out", str(out), "--quiet", "--device", "cpu"]) == 0
    page = Page(out)
    assert "Adversarial texts" not in page.headings
    assert "What changes its mind" in page.headings
    assert "Nearest words" in page.headings
    assert "Macro-F1 on 8 dev sentences" in page.text


@pytest.mark.parametrize("kinds", [1, 9])  # beyond ten labels the page lists mix-ups in the place of a square
def test_tags_that_the_model_does_not_know_count_as_wrong(
    kinds: int, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    strange = [Example("the film", tokens=("the", "film"), tags=("c", f"X{kind}")) for kind in range(kinds)]
    test = write_conll(tmp_path / "test.conll", [*tagged(20, seed=3), *strange])
    out, written = tmp_path / "page.html", tmp_path / "page.json"
    asked = ["--test", str(test), "--against", str(runs / "tagger2"), "--json", str(written), "--device", "cpu"]
    assert main(["report", str(runs / "tagger"), *asked, "--attack", "30", "--out", str(out)]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert said.count(f"{kinds} tag{' ' if kinds == 1 else 's '}that the model does not know count") == 1
    page = Page(out)
    rows = page.rows["Which tags it mixes up"]
    assert [row[0] for row in rows if "X" in row[0]] == (["is X0"] if kinds == 1 else [f"X{at}" for at in range(9)])
    assert main(["evaluate", str(runs / "tagger"), str(test), "--json", "--device", "cpu"]) == 0
    assert (
        json.loads(written.read_text())["runs"]["tagger"]["test"]["error"]
        == json.loads(capsys.readouterr().out)["error"]
    )


def test_taggers_that_flag_a_tag_or_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train, page = three_tags(tmp_path), tmp_path / "page.html"
    for name, flags in {"none": [], "verbs": ["--positive", "V"], "words": ["--positive", "D"]}.items():
        out = str(tmp_path / name)
        assert main(["train", "--train", train, "--out", out, *METHOD, "--epochs", "1", *SMALL, *flags]) == 0
    asked = ["--out", str(page), "--quiet", "--device", "cpu"]
    for first, other in (("verbs", "none"), ("none", "verbs")):
        assert main(["report", str(tmp_path / first), "--against", str(tmp_path / other), *asked]) == 0
        assert ("F0.5 on 8 dev sentences" in Page(page).text) == (first == "verbs")
    capsys.readouterr()
    assert main(["report", str(tmp_path / "verbs"), "--against", str(tmp_path / "words"), *asked]) == 1
    assert "expected runs that flag the same tag (--positive)" in capsys.readouterr().err


# Known corpora


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sentences of ours laid out as a known corpus is, and a run on them."""
    monkeypatch.setenv("WORDWARD_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("WORDWARD_CACHE", str(tmp_path / "cache"))
    place = tmp_path / "data" / "rotten_tomatoes"
    place.mkdir(parents=True)
    for name, label in (("rt-polarity.pos", "good"), ("rt-polarity.neg", "bad")):
        texts = [example.text for example in reviews(400) if example.label == label]
        (place / name).write_text("\n".join(texts) + "\n")
    run = tmp_path / "run"
    assert main(["train", "--corpus", "rotten_tomatoes", "--out", str(run), *METHOD, *SMALL]) == 0
    return run


def test_a_run_on_a_known_corpus(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.html"
    flags = ["--test", "test", "--attack", "20", "--quiet", "--device", "cpu", "--out", str(out)]
    assert main(["report", str(corpus), *flags]) == 0
    page = Page(out)
    for split in ("test", "dev"):
        wanted = evaluated(capsys, corpus, split)
        shown = numbers(page, f"{split.capitalize()} texts")
        assert [row[:1] for row in shown] == [[value] for value in wanted.values()]
        assert {len(row) for row in shown} == {1 + (split == "dev")}  # dev has the yardstick beside
    assert "of rotten_tomatoes test" in page.text
    assert "Adversarial texts" in page.headings


def test_a_packed_corpus_has_numbers_but_no_texts(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pack, run, out = tmp_path / "little.pack", tmp_path / "packed", tmp_path / "page.html"
    capsys.readouterr()
    assert main(["data", "pack", "rotten_tomatoes", str(pack), "--lowercase", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    train = ["train", "--corpus", str(pack), "--out", str(run), *METHOD, *SMALL]
    assert main([*train, "--no-lowercase"]) == 1
    assert "packed with, --lowercase; got --no-lowercase: give --lowercase" in capsys.readouterr().err
    assert main(train) == 0
    assert main(["report", str(run), "--test", "test", "--quiet", "--device", "cpu", "--out", str(out)]) == 0
    page = Page(out)
    capsys.readouterr()
    assert numbers(page, "Test texts") == [[each] for each in evaluated(capsys, run, "test").values()]
    assert "Adversarial texts" not in page.headings
    assert "What changes its mind" not in page.headings


def test_runs_on_other_corpora_need_a_file(corpus: Path, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = load_run(corpus, device="cpu")
    other = load_run(runs / "mine", device="cpu")
    with pytest.raises(ValueError, match="test names a split of rotten_tomatoes, but a run is on files"):
        texts_to_score([first, other], "test")


# Runs that are not whole, and what cannot be


def copied(runs: Path, tmp_path: Path, name: str = "mine") -> Path:
    return Path(shutil.copytree(runs / name, tmp_path / name))


def report_on(run: Path, tmp_path: Path) -> Page:
    out = tmp_path / "page.html"
    flags = ["--attack", "0", "--sentences", "0", "--quiet", "--device", "cpu", "--out", str(out)]
    assert main(["report", str(run), *flags]) == 0
    return Page(out)


def test_a_run_that_is_not_finished_says_so(runs: Path, tmp_path: Path) -> None:
    run = copied(runs, tmp_path)
    assert "not finished" not in report_on(run, tmp_path).text
    result = json.loads((run / "result.json").read_text())
    (run / "result.json").write_text(json.dumps({**result, "stopped": True}))
    lines = (run / "metrics.jsonl").read_text().splitlines()
    (run / "metrics.jsonl").write_text("\n".join(lines[:2]) + "\n")
    said = "The run mine is not finished: 2 of 3 epochs are done. The best model so far is shown."
    assert said in report_on(run, tmp_path).text
    (run / "result.json").unlink()
    page = report_on(run, tmp_path)
    assert said in page.text
    assert {row[0]: row[1] for row in page.rows["How it was made"]}["seconds"] == "–"


def test_dev_scores_stand_beside_the_yardstick(runs: Path, tmp_path: Path) -> None:
    run = copied(runs, tmp_path)
    result = json.loads((run / "result.json").read_text())
    entry = result["yardstick"] | {"dev": {"error": 0.1234, "macro_f1": 0.8}}
    entry["intervals"] = {"error": [0.1, 0.15], "macro_f1": [0.7, 0.9]}

    def page(**changed: Any) -> Page:
        (run / "result.json").write_text(json.dumps(result | changed))
        return report_on(run, tmp_path)

    shown = page(yardstick=entry, dev={"error": 0.13, "macro_f1": 0.8})
    assert shown.rows["Dev texts"][0] == ["measure", "mine", "linear model on word counts"]
    assert [row[-1] for row in numbers(shown, "Dev texts")] == [
        "12.34 % 10.00 to 15.00 %",
        "80.00 % 70.00 to 90.00 %",
    ]
    assert "worse than a simple model" not in shown.text
    worse = "worse than a simple model (linear model on word counts): error 20.00% against 12.34%. What may help: "
    assert f"{worse}more epochs," in page(yardstick=entry, dev={"error": 0.2, "macro_f1": 0.8}).text
    for old in (result | {"yardstick": None}, {name: value for name, value in result.items() if name != "yardstick"}):
        (run / "result.json").write_text(json.dumps(old))
        assert report_on(run, tmp_path).rows["Dev texts"][0] == ["measure", "mine"]


def test_a_run_without_metrics_has_no_curves(runs: Path, tmp_path: Path) -> None:
    run = copied(runs, tmp_path)
    (run / "metrics.jsonl").unlink()
    page = report_on(run, tmp_path)
    assert "The run mine has no learning curve: its folder holds no metrics.jsonl." in page.text
    assert "There are no curves to draw" in page.text
    assert "Dev texts" in page.headings


def test_dev_texts_that_are_gone_or_changed_are_told(runs: Path, tmp_path: Path) -> None:
    run = copied(runs, tmp_path)
    config = run_folder.load_config(run, TrainConfig)
    for data, said in (
        (tmp_path / "gone.csv", "The dev texts of mine cannot be read again, so they are not scored:"),
        (write_csv(tmp_path / "other.csv", hard(300)), "When mine was trained its dev error was "),
    ):
        changed = replace(config, data=replace(config.data, train=str(data)))
        run_folder.save_settings(run, changed, run_folder.load_vocabulary(run), run_folder.load_labels(run))
        page = report_on(run, tmp_path)
        assert said in page.text
        assert ("There are no texts at hand" in page.text) == (data.name == "gone.csv")


def test_a_start_that_is_gone_is_told(runs: Path, tmp_path: Path) -> None:
    run = copied(runs, tmp_path)
    config = replace(run_folder.load_config(run, TrainConfig), pretrained=str(tmp_path / "nowhere"))
    run_folder.save_settings(run, config, run_folder.load_vocabulary(run), run_folder.load_labels(run))
    page = report_on(run, tmp_path)
    assert "The vectors that this run started from cannot be read" in page.text
    assert "Nearest words" in page.headings


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{}/nowhere"], "is not a run folder"),
        (["{}/lm"], "is a language model of wordward pretrain"),
        (["{}/mine", "--test", "{}/nowhere.csv"], "nowhere.csv"),
        (
            ["{}/mine", "--test", "{}/other.csv"],
            "expected a label that the model knows (bad, good); got 'superb'",
        ),
        (["{}/mine", "--against", "{}/tagger"], "expected runs of one task with the same labels"),
        (["{}/mine", "--against", "{}/mine"], "expected different runs"),
        (["{}/mine", "--against", "{}/plain", "{}/plain"], "expected different runs"),
        (["{}/mine", "--sentences", "-1"], "sentences must be 0 or more, but is -1"),
        (["{}/mine", "--device", "abacus"], "device 'abacus' cannot be used here"),
    ],
)
def test_bad_input_is_refused_and_a_former_page_stays(
    arguments: list[str], said: str, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_csv(runs / "other.csv", [Example("the film was warm", "superb")])
    out = tmp_path / "page.html"
    out.write_text("a former page")
    given = [argument.replace("{}", str(runs)) for argument in arguments]
    assert main(["report", *given, "--out", str(out), "--quiet"]) == 1
    assert said in capsys.readouterr().err
    assert out.read_text() == "a former page"
    assert os.listdir(tmp_path) == ["page.html"]


@pytest.mark.parametrize(
    ("out", "said"),
    [(".", "this is a folder"), ("page.pdf", "ends in .html")],
)
def test_a_page_that_cannot_be_written_is_refused_at_once(
    out: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "no such run", "--out", str(tmp_path / out)]) == 1
    assert said in capsys.readouterr().err


def test_a_run_without_a_model_or_with_damaged_metrics_is_refused(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, out = copied(runs, tmp_path), str(tmp_path / "page.html")
    (run / "metrics.jsonl").write_text("{\n")
    assert main(["report", str(run), "--out", out, "--quiet"]) == 1
    assert "damaged" in capsys.readouterr().err
    (run / "model.safetensors").unlink()
    assert main(["report", str(run), "--out", out, "--quiet"]) == 1
    assert "was the run stopped before its first epoch ended?" in capsys.readouterr().err
    assert not Path(out).exists()


def test_runs_of_other_labels_are_refused(runs: Path) -> None:
    run = load_run(runs / "mine", device="cpu")
    check_alike([run, replace(run, labels=("good", "bad"))])
    with pytest.raises(ValueError, match=r"gives labels bad, good, but .* gives labels no, yes"):
        check_alike([run, replace(run, labels=("no", "yes"))])
