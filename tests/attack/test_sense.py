"""The rule that tells swaps which change the true label from swaps which do not."""

from dataclasses import replace
from math import log
from pathlib import Path

import numpy as np
import pytest
import torch
from reviews import reviews, write_csv

from wordward.attack.attacked import Sense
from wordward.attack.attacker import attack
from wordward.attack.sense import Judge, judge_of, make_judge
from wordward.config.attack import AttackSettings
from wordward.config.settings import DataSettings, ModelSettings, TextSettings, TrainConfig, TrainingSettings
from wordward.runs import checkpoint, claiming, run_folder
from wordward.runs.opening import load_run
from wordward.text.corpus import Corpus
from wordward.text.vocabulary import SPECIALS, Vocabulary
from wordward.train.training import train

# texts of blame and of praise that hold each word, of 1000 each
COUNTS = {
    "of": (600, 620),
    "from": (200, 190),
    "better": (60, 45),
    "worse": (40, 6),
    "boring": (60, 2),
    "dull": (50, 10),
    "lovely": (5, 60),
    "not": (300, 250),
    "never": (100, 90),
    "always": (100, 90),
    "rare": (1, 2),
    "odd": (0, 4),
    "meh": (5, 2),
    "film": (160, 150),
    "movie": (75, 50),
}


def a_judge() -> tuple[Judge, Vocabulary]:
    vocabulary = Vocabulary((*SPECIALS, *COUNTS), np.ones(len(SPECIALS) + len(COUNTS)))
    counts = [[1000, 1000], [700, 100], [1000, 1000], *COUNTS.values()]  # <unk> is in many texts
    return make_judge(torch.tensor(counts), vocabulary), vocabulary


BLAME, PRAISE = 0, 1
VERDICTS: list[tuple[int, str, str, Sense]] = [
    (PRAISE, "better", "worse", "changed"),
    (BLAME, "worse", "better", "changed"),
    (PRAISE, "of", "from", "kept"),
    (BLAME, "from", "of", "kept"),
    (BLAME, "boring", "dull", "kept"),  # weaker, but it still speaks for the label
    (BLAME, "boring", "meh", "unknown"),  # it seems to speak for the label, but is in few texts
    (BLAME, "boring", "of", "changed"),
    (PRAISE, "boring", "of", "kept"),  # away from the other label
    (PRAISE, "lovely", "boring", "changed"),
    (BLAME, "lovely", "boring", "kept"),
    (PRAISE, "always", "never", "changed"),  # a negation comes
    (PRAISE, "not", "of", "changed"),
    (PRAISE, "not", "never", "kept"),
    (PRAISE, "rare", "of", "unknown"),
    (PRAISE, "of", "rare", "unknown"),  # of three texts one cannot tell, though it leans to praise
    (BLAME, "of", "odd", "changed"),
    (PRAISE, "odd", "rare", "unknown"),  # twice as strong, but by less than its error
    (PRAISE, "film", "movie", "unknown"),  # the loss is 0.34, but it may well be log 2
    (PRAISE, "rare", "not", "changed"),  # a negation is one however rare its neighbour
]


@pytest.mark.parametrize(("label", "word", "toward", "sense"), VERDICTS)
def test_verdicts(label: int, word: str, toward: str, sense: Sense) -> None:
    judge, vocabulary = a_judge()
    swap = label, vocabulary[word], vocabulary[toward]
    assert judge.of(*swap) == sense
    tensors = [torch.tensor([each]) for each in swap]  # of many swaps at once the same
    assert (judge.changed(*tensors).item(), judge.kept(*tensors).item()) == (
        sense == "changed",
        sense == "kept",
    )


def test_evidence_by_hand() -> None:
    judge, vocabulary = a_judge()
    by_hand = log(40.5 / 1001) - log(6.5 / 1001)
    assert float(judge.evidence[vocabulary["worse"], BLAME]) == pytest.approx(by_hand, abs=1e-5)
    assert float(judge.evidence[vocabulary["worse"], PRAISE]) == pytest.approx(-by_hand, abs=1e-5)
    for label in (BLAME, PRAISE):
        assert judge.of(label, vocabulary["nowhere to be found"], vocabulary["of"]) == "unknown"


def test_several_classes_count_against_the_one() -> None:
    vocabulary = Vocabulary((*SPECIALS, "goal", "match"), np.ones(5))
    counts = torch.tensor([[10, 20, 30], [0, 0, 0], [10, 20, 30], [8, 1, 1], [5, 10, 15]])
    judge = make_judge(counts, vocabulary)
    share = 11 / 62
    by_hand = log((8 + share) / 11) - log((3 - share) / 51)
    assert float(judge.evidence[3, 0]) == pytest.approx(by_hand, abs=1e-5)
    assert float(judge.variance[3, 0]) == pytest.approx(1 / (8 + share) + 1 / (3 - share), abs=1e-5)
    assert judge.of(0, 3, 4) == "changed"
    assert judge.of(2, 3, 4) == "kept"


@pytest.mark.parametrize(
    ("label", "word", "toward", "sense"),
    [
        (
            0,
            "the",
            "unseen",
            "unknown",
        ),  # not kept: that few texts are of the class does not say that it speaks for it
        (0, "the", "elsewhere", "unknown"),
        (0, "the", "refund", "kept"),
        (1, "the", "unseen", "unknown"),  # not changed: nor that it speaks against the other one
        (0, "refund", "the", "changed"),
    ],
)
def test_a_word_that_no_text_of_a_class_holds_does_not_speak_for_it(
    label: int, word: str, toward: str, sense: Sense
) -> None:
    vocabulary = Vocabulary((*SPECIALS, "the", "refund", "elsewhere", "unseen"), np.ones(7))
    texts = [20, 4000]
    counts = torch.tensor([texts, [0, 0], texts, [16, 3200], [12, 30], [0, 1], [0, 0]])
    judge = make_judge(counts, vocabulary)
    assert judge.of(label, vocabulary[word], vocabulary[toward]) == sense
    assert judge.evidence[vocabulary["unseen"]].tolist() == pytest.approx([0, 0], abs=1e-5)
    assert not judge.speaks(label, vocabulary["unseen"], comes=False)


def test_class_counts_are_of_texts_not_words() -> None:
    corpus = Corpus([np.array([3, 3, 4, 2]), np.array([4, 2]), np.array([3, 2])], [0, 1, 1])
    assert corpus.class_counts(6, 2).tolist() == [[1, 2], [0, 0], [1, 2], [1, 1], [1, 1], [0, 0]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on little reviews."""
    place = tmp_path_factory.mktemp("sense")
    write_csv(place / "reviews.csv", reviews(240))
    config = TrainConfig(
        method="baseline",
        data=DataSettings(train=str(place / "reviews.csv")),
        model=ModelSettings(dim=12, hidden=12, head=6, word_dropout=0.1, head_dropout=0.0),
        text=TextSettings(lowercase=True),
        training=TrainingSettings(epochs=4, learning_rate=0.02, device="cpu"),
    )
    train(config, place / "run", quiet=True)
    return place / "run"


def test_swaps_are_judged_by_other_texts_where_these_are_given(folder: Path) -> None:
    """Counts of many texts know more of words than those of the run's own; here, that all words are alike."""
    run, settings = load_run(folder, device="cpu"), AttackSettings(sense="kept")
    texts = reviews(40, seed=7)
    judge = make_judge(torch.full((len(run.learnt), 2), 1000), run.learnt)
    own, other = (list(attack(run, texts, settings, judge=each)) for each in (None, judge))
    assert sum(each.flipped for each in other) > sum(each.flipped for each in own)
    assert {change.sense for each in other for change in each.changes} == {"kept"}


def test_training_keeps_the_counts_and_a_run_without_them_works(folder: Path) -> None:
    run = load_run(folder, device="cpu")
    judge = judge_of(run)
    assert judge is not None
    assert judge.of(1, run.vocabulary["warm"], run.vocabulary["dull"]) == "changed"
    assert judge.of(1, run.vocabulary["warm"], run.vocabulary["funny"]) == "kept"
    assert judge.of(1, run.vocabulary["was"], run.vocabulary["and"]) == "kept"
    assert judge.of(1, run.vocabulary["film"], run.vocabulary["story"]) == "unknown"  # in few texts
    judged = list(attack(run, reviews(12, seed=7)))
    assert "changed" in {change.sense for each in judged for change in each.changes}
    file = folder / run_folder.CLASS_COUNTS
    kept = file.read_bytes()
    file.unlink()
    try:
        assert judge_of(run) is None
        unjudged = list(attack(run, reviews(12, seed=7)))
        assert {change.sense for each in unjudged for change in each.changes} == {"unknown"}
        assert [each.adversarial for each in judged] == [each.adversarial for each in unjudged]
        file.write_bytes(b"no tensors")
        with pytest.raises(run_folder.RunError, match="damaged"):
            judge_of(run)
    finally:
        file.write_bytes(kept)


def test_only_swaps_that_keep_the_sense(folder: Path) -> None:
    run = load_run(folder, device="cpu")
    examples = reviews(30, seed=8)
    any_swap, kept = (
        list(attack(run, examples, AttackSettings(sense=sense, max_swaps=2))) for sense in ("any", "kept")
    )
    assert any(change.sense == "changed" for each in any_swap for change in each.changes)
    changes = [change for each in kept for change in each.changes]
    assert changes
    assert {change.sense for change in changes} == {"kept"}
    assert sum(each.flipped for each in kept) < sum(each.flipped for each in any_swap)
    assert all(each.sense_kept for each in kept if each.flipped)


def test_counts_go_with_the_run(folder: Path, tmp_path: Path) -> None:
    """A run that is trained again keeps its own counts; a sweep's best run brings its along."""
    config = run_folder.load_config(folder, TrainConfig)
    fewer = replace(config, training=replace(config.training, epochs=1), data=replace(config.data, limit=60))
    train(fewer, tmp_path / "run", quiet=True)
    vocabulary = run_folder.load_vocabulary(tmp_path / "run")
    counts = checkpoint.load_class_counts(tmp_path / "run", vocabulary)
    assert counts is not None
    assert int(counts[0].sum()) == 54  # a tenth is held out
    with pytest.raises(run_folder.RunError, match="another vocabulary"):
        checkpoint.load_class_counts(tmp_path / "run", Vocabulary((*SPECIALS, "other"), np.ones(4)))
    run_folder.copy_run(tmp_path / "run", tmp_path)
    assert (tmp_path / run_folder.CLASS_COUNTS).exists()
    claiming.create(tmp_path / "run", force=True)
    assert checkpoint.load_class_counts(tmp_path / "run", vocabulary) is None


@pytest.mark.parametrize(
    ("label", "word", "comes", "speaks"),
    [
        (BLAME, "boring", False, True),  # it goes, and spoke for the label
        (PRAISE, "boring", False, False),
        (PRAISE, "boring", True, True),
        (BLAME, "boring", True, False),
        (PRAISE, "of", True, False),
        (BLAME, "not", False, True),  # a negation
        (BLAME, "rare", True, False),
    ],
)
def test_a_word_that_comes_or_goes_by_itself(label: int, word: str, comes: bool, speaks: bool) -> None:
    judge, vocabulary = a_judge()
    assert judge.speaks(label, vocabulary[word], comes=comes) == speaks
