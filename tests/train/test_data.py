"""What a run learns from: words that no text has are known by their vectors."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from any_model import bert_table
from reviews import BLAME, OPENINGS, PRAISE, THINGS, reviews
from stopped import check_stopped_is_never_stopped

from wordward.config.settings import ModelSettings, TextSettings, TrainConfig, TrainingSettings
from wordward.datasets import Example
from wordward.explain.kin import Kin
from wordward.runs.evidence import Evidence, evidence_of
from wordward.runs.input_table import vectors_of
from wordward.runs.opening import load_run
from wordward.runs.word_run import WordRun
from wordward.text.vocabulary import UNK
from wordward.train import building
from wordward.train.augmenting import Augmenter
from wordward.train.training import train

UNSEEN = ("splendid", "dreadful")
OTHERS = ("was", "and", "said", "friend", "of", "mine")
PIECES = [*PRAISE, *BLAME, *THINGS, *OPENINGS, *OTHERS, *UNSEEN, "x", "##ing", "Bright"]


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    """A BERT's table in which words of praise are alike, and words of blame, also two that no text has."""
    table = torch.randn(len(PIECES), 8, generator=torch.Generator().manual_seed(0))
    for at, piece in enumerate(PIECES):
        table[at, 0] = 4.0 * ((piece in (*PRAISE, "splendid")) - (piece in (*BLAME, "dreadful")))
    return bert_table(tmp_path / "bert", PIECES, table)


def config(vectors: Path, **settings: Any) -> TrainConfig:
    training = TrainingSettings(device="cpu", **{"epochs": 20, **settings})
    return TrainConfig("iadvt", vectors=str(vectors), model=ModelSettings(kind="convolution"), training=training)


@pytest.fixture
def trained(vectors: Path, tmp_path: Path) -> WordRun:
    train(config(vectors), tmp_path / "run", train=reviews(120), quiet=True)
    run = load_run(tmp_path / "run")
    assert isinstance(run, WordRun)
    return run


def test_words_that_no_text_has_are_known_by_their_vectors(trained: WordRun) -> None:
    words = trained.vocabulary
    assert set(UNSEEN) <= set(words.words)
    assert not {"x", "##ing", "Bright"} & set(words.words)
    assert all(words.counts[words[word]] == 0 for word in UNSEEN)
    assert not {words[word] for word in UNSEEN} & set(words.candidates(1).tolist())  # nothing points at them
    good, bad = trained.predict([f"the film was {word}" for word in UNSEEN])
    assert (good.label, bad.label) == ("good", "bad")
    (found,) = trained.explain(["the film was splendid"])
    assert found.places[3].known


def test_training_leaves_them_as_they_were(trained: WordRun, vectors: Path) -> None:
    words, dim = trained.vocabulary, 8
    table = trained.model.words.table.weight.detach()
    counted = [word for word in words.words[3:] if words.counts[words[word]] and word in PIECES]
    known = vectors_of(counted, vectors)[0].astype(np.float64)
    weights = words.counts[[words[word] for word in counted]]
    mean = np.average(known, axis=0, weights=weights)
    deviation = np.sqrt(np.average((known - mean) ** 2, axis=0, weights=weights))
    for word in UNSEEN:
        expected = (vectors_of([word], vectors)[0][0] - mean) / deviation
        np.testing.assert_allclose(table[words[word], :dim], expected, rtol=1e-4, atol=1e-5)
    seen = (vectors_of(["warm"], vectors)[0][0] - mean) / deviation
    assert np.abs(table[words["warm"], :dim].numpy() - seen).max() > 0.01


def test_what_they_speak_for_is_foretold_by_their_vectors(trained: WordRun) -> None:
    good, bad = (trained.model.words.table.weight[trained.vocabulary[word], 8:] for word in UNSEEN)
    label = trained.labels.index("good")
    assert good[label] > good[1 - label]
    assert bad[label] < bad[1 - label]


def test_of_many_texts_words_speak_for_themselves_alone(
    vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "ENOUGH", 40)
    for count, spoken in ((30, True), (60, False)):
        train(config(vectors, epochs=1), tmp_path / f"{count}", train=reviews(count), quiet=True)
        run = load_run(tmp_path / f"{count}")
        assert isinstance(run, WordRun)
        assert bool(run.model.words.table.weight[run.vocabulary["splendid"], 8:].any()) == spoken


def test_words_without_a_vector_speak_only_by_texts_that_have_them(vectors: Path, tmp_path: Path) -> None:
    asked = replace(config(vectors, epochs=1), method="ivat")
    texts = [*reviews(60), Example("the film was zzz warm", "good")]
    others = ["the film was qqq dreadful"] * 3
    train(asked, tmp_path / "run", train=texts, dev=reviews(9), unlabelled=others, quiet=True)
    run = load_run(tmp_path / "run")
    assert isinstance(run, WordRun)
    spoken = {word: run.model.words.table.weight[run.vocabulary[word], 8:] for word in ("zzz", "qqq", "dreadful")}
    assert len({"zzz", "qqq"} & set(run.vocabulary.words)) == 2  # known, though no piece has their letters
    assert not spoken["qqq"].any()
    assert spoken["zzz"].any()
    assert spoken["dreadful"].any()


def test_they_do_not_blur_what_words_near_each_other_speak_for(trained: WordRun) -> None:
    known, evidence = trained.vocabulary["splendid"], evidence_of(trained)
    assert evidence is not None
    without = replace(trained, vocabulary=trained.vocabulary.first(known))
    alone = Evidence(evidence.evidence[:known], evidence.variance[:known])
    torch.testing.assert_close(Kin(trained, evidence, None).evidence[:known], Kin(without, alone, None).evidence)


@pytest.mark.parametrize("text", [{"min_documents": 2}, {"max_vocabulary": 20}])
def test_only_where_all_words_of_the_texts_are_known(text: dict[str, Any], vectors: Path, tmp_path: Path) -> None:
    asked = replace(config(vectors, epochs=1), text=TextSettings(**text))
    train(asked, tmp_path / "run", train=reviews(60), quiet=True)
    assert not set(UNSEEN) & set(load_run(tmp_path / "run").learnt.words)


def test_what_an_attack_put_in_is_read_as_training_reads(trained: WordRun) -> None:
    reader = replace(trained, vocabulary=trained.vocabulary.first(trained.vocabulary["splendid"]))
    given = [Example("the splendid film", "good")] * 3
    found = Augmenter(trained, given, TrainingSettings(augment=2), quiet=True, reader=reader)
    texts = trained.encode(given, labelled=True)
    rows = list(found.joined(texts).rows)
    assert len(rows) == 5
    assert all(trained.vocabulary["splendid"] == row[1] for row in rows[:3])
    assert all(row[1] == UNK for row in rows[3:])


def test_they_are_attacked_with_the_model_as_it_is_scored(vectors: Path, tmp_path: Path) -> None:
    """Dev texts, and texts that are attacked to be learnt from, may have words that training does not."""
    texts = [*reviews(60), *[Example("the film was warm", "good"), Example("the film was dull", "bad")] * 5]
    dev = [Example("the film was splendid", "good"), Example("the film was dreadful", "bad")] * 4
    result = train(config(vectors, augment=20), tmp_path / "run", train=texts, dev=dev, quiet=True)
    assert result["augmented"]["attacked"] > 0
    assert result["dev"]["error"] == 0


@pytest.mark.parametrize("averaging", [0.0, 0.9])
def test_stopped_and_resumed_is_never_stopped(averaging: float, vectors: Path, tmp_path: Path) -> None:
    asked = config(vectors, epochs=3, checkpoint_steps=1, averaging=averaging)
    texts = reviews(80)
    check_stopped_is_never_stopped(asked, texts, tmp_path)
