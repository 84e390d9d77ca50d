"""Settings remember which of them were given: a value that is the default is given, too."""

import copy
import inspect
import pickle
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from asking import asked_of

from wordward.config.settings import (
    DataSettings,
    FineTuningSettings,
    MethodSettings,
    ModelSettings,
    PretrainConfig,
    TextSettings,
    TrainConfig,
    TrainingSettings,
)
from wordward.config.toml import from_toml, settings_of, to_toml
from wordward.runs.run_folder import load_config
from wordward.support.errors import SettingError
from wordward.support.given_settings import changed, given_names, mark_given
from wordward.train.sweep import with_setting

KINDS = DataSettings, FineTuningSettings, MethodSettings, ModelSettings, TextSettings, TrainingSettings
KINDS = *KINDS, TrainConfig, PretrainConfig


def test_keywords_and_values_by_position_are_given() -> None:
    config = TrainConfig("iadvt", model=ModelSettings("auto", dim=256), training=TrainingSettings(minutes=None))
    assert given_names(config) == {"method", "kind", "dim"}
    assert given_names(TrainConfig()) == set()


@pytest.mark.parametrize("kind", KINDS)
def test_of_what_names_all_settings_those_count_that_differ(kind: Any) -> None:
    assert given_names(replace(kind())) == set()
    assert given_names(replace(ModelSettings(), dim=8, hidden=1024)) == {"dim"}
    assert list(inspect.signature(kind).parameters) == [item.name for item in fields(kind)]


def test_a_change_and_a_copy_keep_what_was_given() -> None:
    settings = ModelSettings(dim=256)
    for copied in (copy.copy(settings), copy.deepcopy(settings), pickle.loads(pickle.dumps(settings))):
        assert copied == settings
        assert given_names(copied) == {"dim"}
    assert given_names(changed(settings, hidden=1024)) == {"dim", "hidden"}
    config = TrainConfig(model=settings, transformer=None)
    assert given_names(with_setting(config, "decay", "0.9998")) == {"dim", "decay"}
    assert given_names(mark_given(config, ["method", "k"])) == {"method", "k"}


def test_a_file_gives_what_it_names() -> None:
    assert given_names(from_toml(TrainConfig, "dim = 256\n[training]\ndecay = 0.9998\n")) == {"dim", "decay"}
    whole = from_toml(TrainConfig, to_toml(TrainConfig()))
    assert given_names(whole) == {name for name, value in settings_of(whole).items() if value is not None}


def test_flags_give_what_they_name_with_their_defaults_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "set.toml").write_text("lowercase = false\n")
    flags = "--dim=256 --no-gradual --schedule exponential --text_column text --decay 0.9998 --model folder"
    asked = asked_of(monkeypatch, "a.csv", "--config", tmp_path / "set.toml", *flags.split()[:-4])
    assert given_names(asked) == {"train", "lowercase", "dim", "gradual", "schedule", "text_column"}
    asked = asked_of(monkeypatch, "--train", "a.csv", *flags.split()[-2:])
    assert given_names(asked) == {"train", "transformer"}
    assert {"kind", "dim", "hidden", "head"} < given_names(asked_of(monkeypatch, "a.csv", "--preset", "sec"))


@pytest.mark.parametrize(
    ("files", "flags", "expected"),
    [
        (["dim = 32"], ["--preset", "sec"], 256),
        (["dim = 32"], ["--preset=sec", "--dim", "16"], 16),
        (['dim = 32\npreset = "small"'], [], 32),
        (['preset = "sec"'], ["--preset", "small"], 64),
        (["dim = 32", 'preset = "small"'], [], 64),
        (['preset = "small"', "dim = 32"], [], 32),
    ],
)
def test_flags_override_files_and_later_files_earlier_ones_with_presets_too(
    files: list[str], flags: list[str], expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []
    for number, content in enumerate(files):
        (tmp_path / f"{number}.toml").write_text(content)
        given += ["--config", str(tmp_path / f"{number}.toml")]
    assert asked_of(monkeypatch, "a.csv", *flags, *given).model.dim == expected


def test_what_cannot_have_any_effect_is_refused_but_earlier_runs_are_opened(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"`decay` is the factor of the exponential schedule, but is 0.9 with"):
        TrainingSettings(schedule="linear", decay=0.9)
    taught = TrainingSettings(self_training=True)
    with pytest.raises(SettingError, match=r"`self_training` is used only by .*, but the method is baseline"):
        TrainConfig("baseline", training=taught)
    assert TrainConfig("iadvt+ivat", training=taught).training.self_training
    assert TrainConfig("baseline", perturbation=MethodSettings(epsilon=5.0)).perturbation.epsilon == 5.0
    earlier = to_toml(TrainConfig("baseline", training=TrainingSettings(schedule="linear", epochs=3)))
    earlier = earlier.replace("decay = 0.9998", "decay = 0.9").replace(
        "self_training = false", "self_training = true"
    )
    (tmp_path / "config.toml").write_text(earlier)
    kept = load_config(tmp_path, TrainConfig).training
    assert (kept.epochs, kept.schedule, kept.decay, kept.self_training) == (3, "linear", 0.9998, False)


def test_a_hugging_face_model_has_the_schedule_it_is_trained_with() -> None:
    assert TrainConfig(transformer="some").training.schedule == "linear"
    assert given_names(TrainConfig(transformer="some", training=TrainingSettings(seed=0)).training) == {"seed"}
