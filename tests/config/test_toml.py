"""Settings as TOML: what is written is read again, files are the defaults of flags, and None may be a name."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asking import asked_of
from hypothesis import given
from hypothesis import strategies as st
from reviews import reviews, tagged, write_conll

from wordward.cli.main import main
from wordward.config.settings import (
    DataSettings,
    MethodSettings,
    ModelSettings,
    PretrainConfig,
    TextSettings,
    TrainConfig,
    TrainingSettings,
    filled,
)
from wordward.config.toml import from_toml, named, to_toml
from wordward.runs.opening import load_run
from wordward.support.errors import SettingError

SMALL = "--dim 8 --hidden 8 --head 4 --epochs 1 --epsilon 1 --k 3 --device cpu --quiet".split()
words = st.sampled_from(["None", "", "true", "1", 'a"b', "a\nb", "\x7f", "[x]", "ü"]) | st.text(
    st.characters(codec="utf-8"), max_size=5
)


@given(words, words, words, st.none() | st.integers(1, 9), st.none() | words)
def test_what_is_written_is_read_again(
    train: str, text: str, label: str, k: int | None, positive: str | None
) -> None:
    data = DataSettings(train=train, text_column=text, label_column=label)
    config = TrainConfig(data=data, perturbation=MethodSettings(k=k), training=TrainingSettings(positive=positive))
    assert from_toml(TrainConfig, to_toml(config)) == config
    reading = PretrainConfig(texts=(train, text), text_column=label, minutes=1.5)
    assert from_toml(PretrainConfig, to_toml(reading)) == reading


def test_what_is_none_is_left_out_where_that_is_the_default() -> None:
    written = to_toml(TrainConfig(perturbation=MethodSettings(k=None)))
    assert [line for line in written.splitlines() if "None" in line] == ['k = "None"']
    assert "epochs" not in written
    assert filled(from_toml(TrainConfig, written).training).epochs == 30
    assert filled(PretrainConfig()).epochs == 50
    left = replace(TrainConfig(), transformer="some").training
    assert (left.epochs, left.patience, left.learning_rate, left.clip) == (None, None, None, 1.0)


def test_a_file_or_a_number_may_be_none_but_not_a_name() -> None:
    told = {"vectors": "None", "limit": "None", "positive": "None", "text_column": "None"}
    wanted = {"vectors": None, "limit": None, "positive": "None", "text_column": "None"}
    assert named(told, TrainConfig, source="here") == wanted


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('epochs = "many"', 'epochs = "many"; expected a whole number or None'),
        ("epochs = 1.5", "epochs = 1.5; expected a whole number or None"),
        ('refresh = "never"', 'refresh = "never"; expected a whole number or auto or batch or epoch'),
        ("dev = [1]", "dev = [1]; expected a text or None"),
        ('tokenizer = "letters"', "expected words or authors or punctuation or whitespace"),
        ("[data]\ntrian = 1", "did you mean 'train'?"),
    ],
)
def test_a_value_of_another_type_is_refused_with_what_was_expected(
    line: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "set.toml").write_text(f"{line}\n")
    assert main(["train", "--config", str(tmp_path / "set.toml"), "--out", str(tmp_path / "run")]) == 1
    assert told in capsys.readouterr().err


def test_flags_complete_a_file_that_alone_would_be_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "set.toml"
    file.write_text('train = "a.csv"\nunlabelled = "more.txt"\nvectors = "words.txt"\nlearning_rate = 1\n')
    flags = (
        "--config",
        file,
        "--method",
        "ivat",
        "--vectors",
        "None",
        "--pretrained",
        "lm",
        "--preset",
        "small",
    )
    config = asked_of(monkeypatch, *flags)
    assert (config.method, config.data.unlabelled, config.vectors) == ("ivat", "more.txt", None)
    assert (config.training.learning_rate, config.model.hidden, config.pretrained) == (1.0, 128, "lm")
    assert isinstance(config.training.learning_rate, float)
    assert main(["train", "--config", str(file), "--out", "some"]) == 1  # iadvt has no use for such texts


def test_help_shows_what_a_file_sets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "set.toml").write_text("epochs = 77\nseed = 99\n")
    for command, default in (("train", 30), ("pretrain", 50)):
        for files, shown in (([], default), (["--config", str(tmp_path / "set.toml")], 77)):
            with pytest.raises(SystemExit):
                main([command, *files, "--help"])
            said = " ".join(capsys.readouterr().out.replace("│", " ").split())
            assert f"(default: {shown})" in said
            assert ("(default: 99)" in said) is bool(files)


def test_a_label_and_a_column_called_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, run = tmp_path / "none.csv", str(tmp_path / "run")
    names = {"good": "good", "bad": "None"}
    with file.open("w", newline="") as opened:
        rows = ([each.text, names[each.label or ""]] for each in reviews(80))
        csv.writer(opened).writerows([["text", "None"], *rows])
    assert main(["train", "--train", str(file), "--label-column", "None", "--out", run, *SMALL]) == 0
    kept = load_run(run, device="cpu")
    assert kept.labels == ("None", "good")
    assert kept.config.data.label_column == "None"
    assert main(["evaluate", run, str(file), "--device", "cpu"]) == 0  # read as in training
    assert main(["evaluate", run, str(file), "--label-column", "None", "--device", "cpu"]) == 0
    assert main(["evaluate", run, str(file), "--label-column", "label", "--device", "cpu"]) == 1
    capsys.readouterr()
    explain = ["explain", run, "the film was dull", "--device", "cpu", "--json", "-", "--label"]
    assert main([*explain, "None"]) == 0
    assert json.loads(capsys.readouterr().out)["label"] == "None"


def test_a_tag_called_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sentences = [replace(each, tags=[tag.replace("i", "None") for tag in each.tags or []]) for each in tagged(60)]
    file, run = write_conll(tmp_path / "none.conll", sentences), str(tmp_path / "run")
    assert main(["train", "--train", str(file), "--positive", "None", "--out", run, *SMALL]) == 0
    kept = load_run(run, device="cpu")
    assert kept.config.training.positive == "None"
    assert kept.positive == kept.labels.index("None")
    capsys.readouterr()
    for positive in ("None", "c"):
        evaluate = ["evaluate", run, str(file), "--positive", positive, "--device", "cpu"]
        assert main(evaluate) == 0


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [
        (ModelSettings, "kind", "conv"),
        (TrainingSettings, "schedule", "cosine"),
        (TrainingSettings, "criterion", "f1"),
        (TrainingSettings, "precision", "fp8"),
        (TextSettings, "unknown", "keep"),
        (TrainConfig, "task", "tagging"),
        (PretrainConfig, "schedule", "exponential"),
    ],
)
def test_what_is_no_choice_is_refused_from_python_too(make: Any, name: str, value: str) -> None:
    with pytest.raises(SettingError, match=f"{name} must be .* or .*, but is '{value}'"):
        make(**{name: value})
