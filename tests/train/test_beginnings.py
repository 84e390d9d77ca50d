"""Words that no text has are read as what they begin with: trained, saved, explained, stopped and resumed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from reviews import BLAME, PRAISE, reviews
from stopped import check_stopped_is_never_stopped

from wordward.config.settings import ModelSettings, TextSettings, TrainConfig, TrainingSettings
from wordward.datasets import Example
from wordward.explain.kin import Kin
from wordward.runs.evidence import evidence_of
from wordward.runs.opening import load_run
from wordward.runs.word_run import WordRun
from wordward.text.spelling import BEGINNING, beginnings_of
from wordward.text.vocabulary import SPECIALS, UNK
from wordward.train import choosing
from wordward.train.training import train

ENDINGS = ("ly", "er", "est")  # of the words to learn from


@pytest.fixture(autouse=True)
def nothing_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "installed_model", lambda: None)


def inflected(count: int, seed: int = 0) -> list[Example]:
    """Little reviews in which each word of praise or blame has one of several endings."""
    rng = np.random.default_rng(seed)
    words = {*PRAISE, *BLAME}

    def inflect(word: str) -> str:
        return word + str(rng.choice(ENDINGS)) if word in words else word

    return [
        Example(" ".join(map(inflect, example.text.split())), example.label) for example in reviews(count, seed=seed)
    ]


def config(**settings: Any) -> TrainConfig:
    return TrainConfig("iadvt", training=TrainingSettings(device="cpu", **{"epochs": 8, **settings}))


@pytest.fixture
def trained(tmp_path: Path) -> WordRun:
    train(config(), tmp_path / "run", train=inflected(120), quiet=True)
    run = load_run(tmp_path / "run")
    assert isinstance(run, WordRun)
    return run


def unseen(ending: str) -> list[Example]:
    labelled = [("good", PRAISE), ("bad", BLAME)]
    return [Example(f"the film was {word}{ending}", label) for label, words in labelled for word in words]


def test_words_that_no_text_has_are_read_as_what_they_begin_with(trained: WordRun) -> None:
    words = trained.vocabulary
    texts = unseen("ishness")
    assert not any(example.text.split()[-1] in words for example in texts)
    assert words.word(words["warmishness"]) == f"{BEGINNING}warm"
    assert words.word(words["blandishness"]) == f"{BEGINNING}bland"
    assert trained.evaluate(texts).scores["error"].value == 0
    plain = replace(trained, vocabulary=words.first(words.plain))  # each is <unk>
    assert plain.evaluate(texts).scores["error"].value == 0.5


def test_alone_equals_in_a_padded_batch_and_another_opening(trained: WordRun) -> None:
    texts = [
        "the film was warmishness",
        "this story was blandishness and dulls , said their friend of mine",
        "warmish",
    ]
    together = trained.predict(texts)
    again = load_run(trained.folder)
    for text, found in zip(texts, together, strict=True):
        for alone in (trained.predict([text])[0], again.predict([text])[0]):
            assert alone.probabilities == pytest.approx(found.probabilities, abs=1e-6)


def test_training_leaves_forms_as_they_were(trained: WordRun) -> None:
    table, dim = trained.model.words.table.weight, trained.config.model.dim
    forms = table[trained.vocabulary.plain :]
    assert len(forms) == len(trained.vocabulary) - trained.vocabulary.plain > 0
    assert torch.equal(forms[:, :dim], table[UNK, :dim].expand(len(forms), -1))  # to the phrases an unknown word
    assert forms[:, dim:].abs().max() > 0


def test_an_explanation_claims_nothing_of_them_and_no_word_is_pulled_toward_one(trained: WordRun) -> None:
    found = trained.explain(["the film was warmishness and cold"], words="any")[0]
    places = {place.word: place for place in found.places}
    assert [word for word, place in places.items() if not place.known] == ["warmishness", "cold"]
    toward = {pull.toward for place in found.places for pull in place.pulls}
    assert toward
    assert toward <= set(trained.vocabulary.words[len(SPECIALS) : trained.vocabulary.plain])
    evidence = evidence_of(trained)
    assert evidence is not None
    assert not Kin(trained, evidence, None).evidence[trained.vocabulary.plain :].any()
    assert evidence.variance[trained.vocabulary["warmishness"]].min() > evidence.variance[len(SPECIALS) :].min()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (TextSettings(min_documents=2), "convolution"),
        (TextSettings(max_vocabulary=20), "convolution"),
        (TextSettings(unknown="drop"), "convolution"),
        (TextSettings(), "lstm"),
    ],
)
def test_only_of_a_convolution_that_knows_every_word_of_its_texts(
    text: TextSettings, kind: Any, tmp_path: Path
) -> None:
    asked = replace(config(epochs=1), text=text, model=ModelSettings(kind=kind))
    train(asked, tmp_path / "run", train=inflected(60), quiet=True)
    assert not any(word.startswith(BEGINNING) for word in load_run(tmp_path / "run").learnt.words)


def test_a_run_says_how_it_reads_other_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(config(epochs=1), tmp_path / "run", train=inflected(60))
    assert "words (others are read as what they begin with)" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("averaging", [0.0, 0.9])
def test_stopped_and_resumed_is_never_stopped(averaging: float, tmp_path: Path) -> None:
    asked, texts = config(epochs=3, checkpoint_steps=1, averaging=averaging), inflected(80)
    check_stopped_is_never_stopped(asked, texts, tmp_path)


def test_what_is_too_long_for_a_word_has_few_beginnings() -> None:
    assert len(beginnings_of("a" * 100_000)) == 31
