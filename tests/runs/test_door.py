"""The door: one object for a trained run, whatever model is in it, that takes plain strings."""

import inspect
from dataclasses import replace
from pathlib import Path

import pytest
from hf_tiny import saved
from reviews import reviews, tagged
from small_training import SMALL

import wordward
from wordward.attack import Attacked, AttackSettings, attack
from wordward.config import DataSettings, TextSettings, TrainConfig, TrainingSettings
from wordward.explain import Explanations, explain
from wordward.runs.prediction import Prediction
from wordward.runs.run import Run
from wordward.runs.scoring import Evaluation
from wordward.runs.transformer import TransformerRun
from wordward.runs.word_run import WordRun
from wordward.train import train

TEXTS = ["the film was warm and funny", "the film was dull"]
TRAINING = TrainingSettings(epochs=3, learning_rate=0.02, device="cpu")


@pytest.fixture(scope="module", params=["lstm", "transformer"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp(request.param)
    config = TrainConfig(model=SMALL, training=TRAINING)
    if request.param == "transformer":
        saved(place / "model")
        config = TrainConfig(
            transformer=str(place / "model"),
            text=TextSettings(max_length=32),
            training=replace(TRAINING, epochs=1, learning_rate=0.005),
        )
    train(config, place / "run", train=reviews(120), quiet=True)
    return place / "run"


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    return wordward.load_run(folder, device="cpu")


def test_one_class_for_each_kind_of_model(run: Run, folder: Path) -> None:
    kind = TransformerRun if folder.parent.name.startswith("transformer") else WordRun
    assert type(run) is kind
    assert isinstance(run, wordward.Run)


def test_predictions_are_values(run: Run) -> None:
    first, empty = run.predict([TEXTS[0], "  "])
    assert isinstance(first, Prediction)
    assert first.label == max(first.probabilities, key=first.probabilities.__getitem__)
    assert sum(first.probabilities.values()) == pytest.approx(1, abs=1e-5)
    assert first.problem is None
    assert empty.label is None
    assert "no words" in str(empty.problem)
    assert run.predict([wordward.Example(TEXTS[0])]) == [first]


def test_strings_are_explained_as_examples_are(run: Run) -> None:
    found = run.explain(TEXTS, top=2)
    assert isinstance(found, Explanations)
    assert found == explain(run, [wordward.Example(text) for text in TEXTS], top=2)
    assert "<style>" in found._repr_html_()


def test_strings_are_attacked_as_examples_are(run: Run) -> None:
    settings = AttackSettings(max_swaps=2)
    found = run.attack(TEXTS, settings)
    assert all(isinstance(each, Attacked) for each in found)
    assert found == list(attack(run, [wordward.Example(text) for text in TEXTS], settings))


def test_an_evaluation_has_scores_with_intervals(run: Run) -> None:
    fresh = reviews(40, seed=5)
    found = run.evaluate(fresh)
    assert isinstance(found, Evaluation)
    wrong = [each.label != example.label for each, example in zip(run.predict(fresh), fresh, strict=True)]
    assert found.wrong.tolist() == wrong
    assert found.scores["error"].value == pytest.approx(sum(wrong) / 40)
    assert found.texts == found.confusion.sum() == 40


def test_an_adversary_is_the_methods_own_on_the_runs_words(run: Run) -> None:
    adversary = run.adversary("iadvt")
    assert adversary.method.name == "iadvt"
    readings = [run.read(wordward.Example(text)) for text in TEXTS]
    assert [reading.row.word.max() + 1 for reading in readings] == [6, 4]
    assert all(len(reading.row.first) == len(reading.tokens) for reading in readings)


def test_help_tells_what_they_take() -> None:
    for verb in (Run.predict, Run.evaluate, Run.explain, Run.attack, wordward.load_run):
        said = inspect.getdoc(verb) or ""
        assert "Args:" in said
        assert "Returns:" in said


def test_a_tagger_in_memory(tmp_path: Path) -> None:
    config = TrainConfig(task="tag", data=DataSettings(dev_share=0.2), model=SMALL, training=TRAINING)
    train(config, tmp_path / "run", train=tagged(120), quiet=True)
    run = wordward.load_run(tmp_path / "run", device="cpu")
    (found,) = run.predict(["the film are lovely"])
    assert [token.token for token in found.tokens] == ["the", "film", "are", "lovely"]
    assert found.labels == [token.label for token in found.tokens]
    assert found.label is None
