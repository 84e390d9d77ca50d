"""What is said of labels that are probably mistakes, of what is unknown, and of a k that is too large."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hf_tiny import saved
from reviews import reviews, write_csv
from small_training import config

from wordward.config import TrainConfig
from wordward.datasets import Example
from wordward.perturbation.settings import MethodSettings
from wordward.runs import run_folder
from wordward.runs.opening import load_run
from wordward.support.errors import SettingError
from wordward.train import train
from wordward.train.label_warnings import warn_of_labels
from wordward.train.sweep import train_sweep

Said = Callable[[], str]
TINY = [Example(f"{word} {thing}", label) for word, label in (("fine", "good"), ("dull", "bad")) for thing in "abc"]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    """What was said since it was last asked for, on one line."""
    return lambda: " ".join(capsys.readouterr().err.split())


def with_label(texts: list[Example], label: str, *places: int) -> list[Example]:
    return [replace(each, label=label) if at in places else each for at, each in enumerate(texts)]


@pytest.mark.parametrize("model", ["ours", "transformer"])
def test_a_text_with_two_labels_is_counted_and_shown(model: str, tmp_path: Path, said: Said) -> None:
    once = list({each.text: each for each in reviews(60)}.values())
    twice = [*once, Example("  ".join(once[3].text.split()), "bad" if once[3].label == "good" else "good"), once[5]]
    settings = config(write_csv(tmp_path / "t.csv", twice), epochs=1)
    if model == "transformer":
        saved(tmp_path / "tiny")
        settings = TrainConfig(transformer=str(tmp_path / "tiny"), data=settings.data, training=settings.training)
    train(settings, tmp_path / "run")
    first, second = f"{once[3].label!r} (line 5)", f"{twice[-2].label!r} (line {len(once) + 2})"
    told = said()
    assert f"1 text is there with different labels, such as '{once[3].text[:20]}" in told
    assert f"{first} and {second}: correct them, or leave them out" in told
    write_csv(tmp_path / "t.csv", [*once, once[5]])  # twice, but with one label
    train(settings, tmp_path / "run", force=True)
    assert "different labels" not in said()


def test_dev_texts_of_another_file_contradict_nothing(tmp_path: Path, said: Said) -> None:
    texts = list({each.text: each for each in reviews(60)}.values())
    other = [replace(each, label="bad" if each.label == "good" else "good") for each in texts[:4]]
    settings = config(write_csv(tmp_path / "t.csv", texts), epochs=1)
    dev = str(write_csv(tmp_path / "dev.csv", other))
    train(replace(settings, data=replace(settings.data, dev=dev)), tmp_path / "run")
    assert "different labels" not in said()


@pytest.mark.parametrize("name", ["NaN", "None", "null", "N/A"])
def test_labels_that_stand_for_none_are_named(name: str, tmp_path: Path, said: Said) -> None:
    texts = with_label(reviews(60), name, 4, 9, 30)
    train(config(write_csv(tmp_path / "t.csv", texts), epochs=1), tmp_path / "run")
    told = said()
    assert f"3 texts are labelled '{name}' (first in line 6), which is learnt like any other label" in told
    assert "leave such texts out" in told
    train(config(write_csv(tmp_path / "t.csv", with_label(texts, "nano", 4, 9, 30)), epochs=1), tmp_path / "named")
    assert "stands for no label" not in said()


def test_of_many_labels_those_of_few_texts_are_named(tmp_path: Path, said: Said) -> None:
    texts = [replace(each, label=f"kind {at % 6}") for at, each in enumerate(reviews(60))]
    settings = config(write_csv(tmp_path / "t.csv", texts), epochs=1)
    settings = replace(settings, data=replace(settings.data, dev=str(write_csv(tmp_path / "dev.csv", texts[:12]))))
    train(settings, tmp_path / "run")
    assert "6 labels, " in said()
    write_csv(tmp_path / "t.csv", with_label(with_label(texts, "slip", 7), "rare", 8, 9))
    train(settings, tmp_path / "run", force=True)
    assert "8 labels (with fewer than 3 texts: slip 1, rare 2)" in said()
    strays = [replace(each, label=f"stray {at}") if at >= 50 else each for at, each in enumerate(texts)]
    write_csv(tmp_path / "t.csv", strays)
    train(settings, tmp_path / "run", force=True)
    assert "stray 4 1" not in (told := said())
    assert "stray 54 1 and 5 more)" in told


def test_unknown_words_are_those_of_the_dev_texts(tmp_path: Path, said: Said) -> None:
    settings = config(write_csv(tmp_path / "t.csv", reviews(60)), epochs=1)
    settings = replace(settings, text=replace(settings.text, min_documents=1))
    known, new = Example("the film was warm", "good"), Example("zither quaint vellum was", "bad")
    dev = str(write_csv(tmp_path / "dev.csv", [known, new]))
    train(replace(settings, data=replace(settings.data, dev=dev)), tmp_path / "run")
    assert "(30.0% of the words of the dev texts unknown)" in said()  # 3 of 8 words and 2 ends


def test_texts_that_are_only_read_alike_are_not_told_as_the_same(tmp_path: Path, said: Said) -> None:
    settings = config(write_csv(tmp_path / "t.csv", [*reviews(60), Example("zither quaint", "bad")]), epochs=1)
    dev = [Example("vellum oboe", "bad"), Example(reviews(60)[0].text, "good")]
    dev_file = str(write_csv(tmp_path / "dev.csv", dev))
    train(replace(settings, data=replace(settings.data, dev=dev_file)), tmp_path / "run")
    assert "2 dev (1 of them also among the training texts)" in said()


def open_k(path: Path) -> TrainConfig:
    return replace(config(path, epochs=1), perturbation=MethodSettings(epsilon=1.0))


def test_a_default_k_shrinks_to_the_words_there_are(tmp_path: Path, said: Said) -> None:
    settings = open_k(write_csv(tmp_path / "t.csv", TINY))
    settings = replace(settings, data=replace(settings.data, dev=str(write_csv(tmp_path / "dev.csv", TINY))))
    train(settings, tmp_path / "run")
    assert "may point at 5 words, those of the training texts, too few for `k=10`: `k=4` is taken" in said()
    assert run_folder.load_config(tmp_path / "run", TrainConfig).perturbation.k == 4
    assert load_run(tmp_path / "run").explain(["fine a"])
    train_sweep(settings, ["epsilon=1,2"], tmp_path / "swept", quiet=True)
    train(replace(settings, method="advt"), tmp_path / "free")  # whose perturbations point at no word
    assert "may point at" not in said()
    given = replace(settings, perturbation=MethodSettings(k=7))
    with pytest.raises(SettingError, match=r"k must be less than the 5 words .*, but is 7; `k=None` takes them all"):
        train(given, tmp_path / "given")


def test_labels_that_are_others_joined_are_named(tmp_path: Path, said: Said) -> None:
    texts = [*with_label(reviews(60), "good|bad", 4, 9, 30), *with_label(reviews(8, seed=1), "a|b", 1, 2, 3)]
    train(config(write_csv(tmp_path / "texts.csv", texts), epochs=1), tmp_path / "run")
    assert "'good|bad' is learnt as a label of its own" in said()


def warned(labels: list[str], said: Said) -> str:
    warn_of_labels([Example(f"text {at}", label) for at, label in enumerate(labels)], quiet=False)
    return said()


def test_a_rare_label_that_is_spelt_like_a_frequent_one_is_told(said: Said) -> None:
    usual = ["negative", "positive"] * 40
    assert warned([*usual, "negatve"], said) == (
        "labels that are spelt nearly alike are learnt as different ones: 'negatve' (1) and 'negative' (40). "
        "Is the rarer one a typo?"
    )
    assert not warned([*usual, "neutral"], said)
    assert not warned([*usual, *["negatve"] * 3], said)  # no mistake of one's fingers
    assert not warned([*["version 1", "version 2"] * 40, "version 3"], said)


def test_numbers_that_are_hardly_labels_are_told(said: Said) -> None:
    told = warned([f"{at / 7:.2f}" for at in range(30)], said)
    assert told.startswith("the labels are 30 different numbers, such as '0.00', and each is learnt as a label")
    assert "is `label_column` the column of labels?" in told
    assert not warned([str(at % 30) for at in range(300)], said)
    assert not warned([str(at % 5) for at in range(10)], said)
    assert not warned([f"topic {at}" for at in range(30)], said)
