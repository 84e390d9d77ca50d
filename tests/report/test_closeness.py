"""Which words lie near each other, before training and after."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from wordward.attack.sense import make_judge
from wordward.config.settings import DataSettings, ModelSettings, TrainConfig, TrainingSettings
from wordward.models import Classifier
from wordward.report.closeness import _opposite_pairs, _speaks_against, opposites
from wordward.runs import checkpoint
from wordward.runs.neighbors import nearest_words
from wordward.runs.opening import load_run
from wordward.runs.run import Run
from wordward.runs.word_run import WordRun
from wordward.text.vocabulary import Vocabulary
from wordward.train.data import prepare
from wordward.train.trainer import Trainer

WORDS = ("good", "bad", "fine", "best", "poor", "film", "plot", "the")


def toy(folder: Path, *, counts: bool = True) -> Run:
    """A run whose vectors lie on a circle, at degrees chosen by hand, and whose words lean as they do in English."""
    vocabulary = Vocabulary.build([list(WORDS)] * 20)
    model = ModelSettings(dim=2, hidden=2, head=2)
    classifier = Classifier(len(vocabulary), 2, model)
    place(classifier.words.table.weight, vocabulary, {"good": 0, "fine": 10, "best": 20, "bad": 50, "poor": 60})
    config = TrainConfig(task="classify", model=model)
    if counts:
        leans = {"good": (4, 16), "fine": (4, 16), "best": (2, 16), "bad": (18, 2), "poor": (12, 1)}
        table = torch.full((len(vocabulary), 2), 10, dtype=torch.int32)
        table[0] = 40
        for word, texts in leans.items():
            table[vocabulary[word]] = torch.tensor(texts, dtype=torch.int32)
        folder.mkdir(exist_ok=True)
        checkpoint.save_class_counts(folder, table, vocabulary)
        (folder / "labels.txt").write_text('"negative"\n"positive"\n')
    return WordRun(folder, config, vocabulary, ("negative", "positive"), classifier, torch.device("cpu"))


def place(table: torch.Tensor, vocabulary: Vocabulary, degrees: dict[str, float]) -> torch.Tensor:
    with torch.no_grad():
        table[:] = torch.tensor([-1.0, -0.2])
        for word, angle in degrees.items():
            radians = torch.tensor(angle * torch.pi / 180)
            table[vocabulary[word]] = torch.stack([radians.cos(), radians.sin()])
    return table


def test_opposite_pairs_are_found_and_followed(tmp_path: Path) -> None:
    run = toy(tmp_path)
    start = torch.zeros_like(run.model.words.table.weight)
    before = place(start, run.vocabulary, {"good": 0, "bad": 5, "fine": 25, "best": 40, "poor": 60})
    found = opposites(run, before, count=5, k=3)
    first = found[0]
    assert (first.word, first.label, first.other) in [
        ("good", "positive", "bad"),
        ("bad", "negative", "good"),
    ]
    good = next(each for each in found if {each.word, each.other} == {"good", "bad"})
    assert good.before is not None
    ranks = {"good": (1, 3), "bad": (1, 4)}[good.word]  # by the degrees above
    assert (good.before.rank, good.after.rank) == ranks
    assert good.before.cosine == pytest.approx(np.cos(np.deg2rad(5)), abs=1e-5)
    assert good.after.cosine == pytest.approx(np.cos(np.deg2rad(50)), abs=1e-5)
    marked = {near.word for near in good.after.nearest if near.against}
    assert marked == {"good": {"bad"}, "bad": {"best", "fine"}}[good.word]
    every = [word for each in found for word in (each.word, each.other)]
    assert len(set(every)) == len(every)
    assert not {"film", "plot", "the"} & set(every)


def test_only_words_that_surely_speak_for_another_label_are_opposite_pairs(tmp_path: Path) -> None:
    vocabulary = Vocabulary.build([list(WORDS)] * 20)
    texts = {"good": (100, 300), "bad": (200, 100), "fine": (160, 100), "best": (3, 1), "poor": (100, 90)}
    counts = torch.full((len(vocabulary), 2), 100)
    counts[0] = 1000
    for word, each in texts.items():
        counts[vocabulary[word]] = torch.tensor(each)
    judge = make_judge(counts, vocabulary)
    ids = torch.tensor([vocabulary[word] for word in ("bad", "fine", "best", "poor", "good")])
    positive = torch.ones_like(ids)
    against = _speaks_against(judge, ids, positive).tolist()
    assert against == [False, False, False, False, False]  # bad: e = -0.69, just not twice as rare
    counts[vocabulary["bad"]] = torch.tensor([210, 100])
    judge = make_judge(counts, vocabulary)
    assert _speaks_against(judge, ids, positive).tolist() == [True, False, False, False, False]
    run = toy(tmp_path)
    table = place(run.model.words.table.weight.detach(), vocabulary, dict.fromkeys(texts, 0.0))
    allowed = torch.from_numpy(vocabulary.candidates(1))
    pairs = [[vocabulary.word(each) for each in pair] for pair in _opposite_pairs(run, judge, table, allowed)]
    assert pairs == [["good", "bad"]] or pairs == [["bad", "good"]]
    counts[vocabulary["good"]] = torch.tensor([100, 150])  # leans too little the other way
    assert not _opposite_pairs(run, make_judge(counts, vocabulary), table, allowed)


def test_without_counts_the_swaps_say_which_words(tmp_path: Path) -> None:
    run = toy(tmp_path / "nowhere", counts=False)
    swapped = [
        ("fine", "poor"),
        ("good", "bad"),
        ("good", "bad"),
        ("good", "poor"),
        ("Good", "?"),
        ("film", "film"),
    ]
    found = opposites(run, None, count=5, k=4, swapped=swapped)
    assert [(each.word, each.other, each.label, each.before) for each in found] == [
        ("good", "bad", None, None),
        ("fine", "poor", None, None),
    ]
    assert [near.word for near in found[0].after.nearest if near.against] == ["bad"]
    assert [near.word for near in found[0].after.nearest] == ["fine", "best", "bad", "poor"]
    assert opposites(run, None, count=5) == []


def test_the_start_is_what_training_began_with(runs: Path) -> None:
    run = load_run(runs / "mine", device="cpu")
    torch.manual_seed(5)
    random = torch.rand(1)
    torch.manual_seed(5)
    table, why = run.starting_table()
    assert torch.equal(torch.rand(1), random)  # the caller's random numbers go on as they would have
    assert not why
    assert table is not None
    settled, data = prepare(run.config)
    began = Trainer(settled, data, runs / "unused", quiet=True).model.words.table.weight
    assert torch.equal(table, began)
    assert not torch.allclose(table, run.model.words.table.weight)


def test_vectors_from_a_file_are_a_start_too(runs: Path, tmp_path: Path) -> None:
    run = load_run(runs / "mine", device="cpu")
    file = tmp_path / "vectors.txt"
    rng = np.random.default_rng(0)
    lines = [f"{word} {' '.join(f'{x:.3f}' for x in rng.normal(size=12))}\n" for word in run.vocabulary.words[3:]]
    file.write_text("".join(lines))
    config = TrainConfig(
        method="baseline",
        vectors=str(file),
        data=DataSettings(train=run.config.data.train),
        text=run.config.text,
        model=run.config.model,
        training=TrainingSettings(device="cpu"),
    )
    settled, data = prepare(config)
    began = Trainer(settled, data, tmp_path / "unused", quiet=True).model.words.table.weight
    other = replace(run, config=settled, vocabulary=data.learnt)
    table, why = other.starting_table()
    assert not why
    assert table is not None
    assert torch.equal(table, began)


def test_a_start_that_cannot_be_known_says_why(runs: Path, tmp_path: Path) -> None:
    run = load_run(runs / "tagger", device="cpu")
    table, why = run.starting_table()
    assert table is None
    assert "drawn at random" in why
    table, why = replace(run, config=replace(run.config, pretrained=str(runs / "lm"))).starting_table()
    assert table is None
    assert "another vocabulary" in why
    table, why = replace(run, config=replace(run.config, vectors=str(tmp_path / "no.txt"))).starting_table()
    assert table is None
    assert "no.txt" in why


def test_ranks_and_neighbours_of_a_trained_run(runs: Path) -> None:
    run = load_run(runs / "mine", device="cpu")
    before, _ = run.starting_table()
    found = opposites(run, before, count=4, k=5)
    assert found
    lean = {word: run.labels.index("good") for word in ("warm", "funny", "bright", "lovely", "clever", "moving")}
    for each in found:
        assert each.label == ("good" if each.word in lean else "bad")
        assert (each.word in lean) != (each.other in lean)
        ((_, near),) = nearest_words(run.folder, [each.word], k=5)
        assert [n.word for n in each.after.nearest] == [word for word, _ in near]
        assert [n.cosine for n in each.after.nearest] == pytest.approx([cosine for _, cosine in near], abs=1e-5)
        allowed = run.vocabulary.candidates(5)
        for table, standing in ((before, each.before), (run.model.words.table.weight.detach(), each.after)):
            assert table is not None
            assert standing is not None
            word, other = run.vocabulary[each.word], run.vocabulary[each.other]
            cosines = [
                (float(F.cosine_similarity(table[word], table[at], dim=0)), at) for at in allowed if at != word
            ]
            order = [at for _, at in sorted(cosines, reverse=True)]
            assert standing.rank == 1 + order.index(other)
