"""Training on texts in memory: the same run as from a file, and what its folder says of them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from reviews import reviews, tagged, write_conll, write_csv
from small_training import SMALL, config, lines, weights

from wordward.config import DataSettings, PretrainConfig, TrainConfig
from wordward.datasets import Example
from wordward.runs import run_folder
from wordward.support.errors import DataError, RunError, SettingError
from wordward.text.loading import IN_MEMORY
from wordward.train import pretrain, train


def without_files(settings: TrainConfig) -> TrainConfig:
    return replace(settings, data=DataSettings())


def same(one: Path, other: Path) -> bool:
    a, b = weights(one), weights(other)
    return lines(one) == lines(other) and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("kind", ["pairs", "examples", "tags"])
def test_the_same_run_as_from_a_file(kind: str, tmp_path: Path) -> None:
    examples = tagged(40) if kind == "tags" else reviews(40)
    write = write_conll if kind == "tags" else write_csv
    settings = config(write(tmp_path / ("t.conll" if kind == "tags" else "t.csv"), examples), epochs=2)
    train(settings, tmp_path / "file", quiet=True)
    texts: Any = [(each.text, each.label) for each in examples] if kind == "pairs" else examples
    train(without_files(settings), tmp_path / "memory", train=texts, quiet=True)
    assert same(tmp_path / "file", tmp_path / "memory")
    assert run_folder.load_config(tmp_path / "memory", TrainConfig).data == DataSettings(train=IN_MEMORY)


def test_dev_and_unlabelled_texts_too(tmp_path: Path) -> None:
    more = [each.text for each in reviews(30, seed=7)]
    (tmp_path / "more.txt").write_text("\n".join(more))
    learnt, chosen = (write_csv(tmp_path / f"{seed}.csv", reviews(30, seed)) for seed in (0, 1))
    settings = config(learnt, "ivat", epochs=2)
    data = replace(settings.data, dev=str(chosen), unlabelled=str(tmp_path / "more.txt"))
    named = replace(settings, data=data)
    train(named, tmp_path / "file", quiet=True)
    given: Any = {"train": reviews(30), "dev": reviews(30, 1), "unlabelled": more}
    result = train(without_files(settings), tmp_path / "memory", quiet=True, **given)
    assert same(tmp_path / "file", tmp_path / "memory")
    assert result["texts"] == {"train": 30, "dev": 30, "unlabelled": 30}


def test_labels_of_unlabelled_texts_do_not_matter(tmp_path: Path) -> None:
    settings = without_files(config(tmp_path / "none.csv", "vat", epochs=1))
    more: Any = [("a warm film", ["praise", "film"]), ("a dull film", None), "a bland story"]
    table = pd.DataFrame({"text": ["a warm film", "a dull film"], "label": [["praise", "film"], []]})
    for unlabelled, count in ((more, 3), (table, 2)):
        result = train(settings, tmp_path / "run", train=reviews(30), unlabelled=unlabelled, quiet=True, force=True)
        assert result["texts"]["unlabelled"] == count


def test_to_resume_takes_the_same_texts_again(tmp_path: Path) -> None:
    settings, texts = without_files(config(tmp_path, epochs=1)), reviews(40)
    train(settings, tmp_path / "run", train=texts, quiet=True)
    longer = replace(settings, training=replace(settings.training, epochs=2))
    with pytest.raises(RunError, match="texts in memory, which it does not keep: give them again as `train`"):
        train(longer, tmp_path / "run", resume=True, quiet=True)
    with pytest.raises(RunError, match=r"not those it was trained on|another vocabulary"):
        train(longer, tmp_path / "run", train=texts[::-1], resume=True, quiet=True)
    train(longer, tmp_path / "run", train=texts, resume=True, quiet=True)
    train(longer, tmp_path / "whole", train=texts, quiet=True)
    assert same(tmp_path / "run", tmp_path / "whole")


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ([("a warm film", "good"), "a dull film"], r"train, line 2: expected an Example or a pair"),
        ([("a", "x"), (" ", "y")], "train, line 2: expected a text; it is empty"),
        ([("a", "x"), ("b", "")], "train, line 2: expected a label"),
        ([Example("a b", tokens=("a", "b"), tags=("x",))], "a tag for each token; got 2 tokens and 1 tags"),
        ([], "train: expected one or more texts"),
        ([("a", "x"), ("b", ["x", "y"])], r"train, line 2: expected one label, .*; got \['x', 'y'\]"),
        (pd.DataFrame({"text": ["a"], "label": [["x"]]}), r"train, line 1: expected one label, .*; got \['x'\]"),
    ],
)
def test_what_is_no_text_is_named(texts: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=told):
        train(without_files(config(tmp_path)), tmp_path / "run", train=texts, quiet=True)
    assert not (tmp_path / "run").exists()


def test_texts_are_given_once(tmp_path: Path) -> None:
    settings = config(write_csv(tmp_path / "t.csv", reviews(20)))
    with pytest.raises(SettingError, match="`train` was given both in memory and as the file"):
        train(settings, tmp_path / "run", train=reviews(20), quiet=True)
    corpus = replace(settings, data=DataSettings(corpus="imdb"))
    with pytest.raises(SettingError, match="a corpus has its own texts"):
        train(corpus, tmp_path / "run", train=reviews(20), quiet=True)
    with pytest.raises(TypeError, match="train must be a list of texts, but is str"):
        train(without_files(settings), tmp_path / "run", train="a film", quiet=True)


def test_texts_to_learn_from_must_be_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "1.txt").write_text("a file of the folder in which we are, which nobody named")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingError, match="no texts to learn from: give `train`"):
        train(TrainConfig(), "run", dev=reviews(4), quiet=True)
    with pytest.raises(SettingError, match="no texts to read: give `texts`"):
        pretrain(PretrainConfig(), "run", quiet=True)


def test_a_language_model_of_texts_in_memory(tmp_path: Path) -> None:
    examples = reviews(60)
    file = write_csv(tmp_path / "t.csv", examples)
    reading = PretrainConfig(epochs=1, streams=2, window=5, model=SMALL, device="cpu")
    pretrain(replace(reading, texts=(str(file),)), tmp_path / "file", quiet=True)
    pretrain(reading, tmp_path / "memory", texts=[each.text for each in examples], quiet=True)
    a, b = weights(tmp_path / "file"), weights(tmp_path / "memory")
    assert all(torch.equal(a[name], b[name]) for name in a)
    with pytest.raises(RunError, match="give them again as `texts`"):
        pretrain(reading, tmp_path / "memory", resume=True, quiet=True)
