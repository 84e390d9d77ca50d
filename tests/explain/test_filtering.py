"""Of the pulls on a text those are shown toward words that speak less for the label, by counts and by kin."""

from dataclasses import replace
from math import log
from pathlib import Path

import numpy as np
import pytest
import torch
from untrained import MODEL

from wordward.config.settings import MethodSettings, ModelSettings, TrainConfig
from wordward.explain import filtering
from wordward.explain.candidates import FAR
from wordward.explain.filtering import LESS, RARE, SILENT, Sensible
from wordward.explain.kin import NOISE, RIDGE, Kin, Ridge
from wordward.models import Classifier
from wordward.runs.evidence import Evidence, evidence_in
from wordward.runs.reading import Row
from wordward.runs.run import Run
from wordward.runs.word_run import WordRun
from wordward.runs.word_space import WordSpace
from wordward.text.vocabulary import SPECIALS, Vocabulary

GOOD, BAD = "lovely charming witty graceful clever".split(), "dull clumsy lifeless dreary stale".split()
WORDS = (*GOOD, *BAD, "harbor", "tunnel")
LABEL = 1  # good


def a_run() -> tuple[Run, Evidence, WordSpace]:
    """Words of praise near each other, and of blame; "harbor" is among praise by accident, "tunnel" among blame."""
    vocabulary = Vocabulary((*SPECIALS, *WORDS), np.array([0, 0, 3, *[40] * len(WORDS)]))
    config = TrainConfig(task="classify", model=MODEL, perturbation=MethodSettings(epsilon=1.0, k=3))
    model = Classifier(len(vocabulary), 2, MODEL).eval()
    run = WordRun(Path("nowhere"), config, vocabulary, ("bad", "good"), model, torch.device("cpu"))
    of_good = [5.0, 35.0]
    counts = torch.tensor([[200.0, 200.0]] * len(SPECIALS) + [of_good] * 5 + [of_good[::-1]] * 5 + [of_good, [35, 5]])
    generator = torch.Generator().manual_seed(0)
    middle = torch.eye(4)[[0] * 5 + [1] * 5 + [2, 2]]
    table = torch.cat([torch.zeros(len(SPECIALS), 4), middle + 0.1 * torch.randn(12, 4, generator=generator)])
    return run, evidence_in(counts), WordSpace(table, table.abs().sum(-1) > 0, "here")


def ids(run: Run, *words: str) -> torch.Tensor:
    return torch.tensor([run.vocabulary[word] for word in words])


def test_what_kin_say_is_a_regression_without_the_word_itself() -> None:
    generator = torch.Generator().manual_seed(1)
    vectors, values = torch.randn(30, 5, generator=generator), torch.randn(30, 2, generator=generator)
    variance = torch.rand(30, generator=generator) + 0.1
    x = torch.nn.functional.normalize(vectors.double() - vectors.double().mean(0), dim=-1)
    x = torch.cat([x, torch.ones(30, 1, dtype=x.dtype)], -1)
    for left_out in (0, 7, 29):
        rest = [at for at in range(30) if at != left_out]
        weights = (1 / (variance.double() + NOISE))[rest].unsqueeze(-1)
        solved = torch.linalg.solve(
            x[rest].T @ (weights * x[rest]) + RIDGE * torch.eye(6, dtype=x.dtype),
            x[rest].T @ (weights * values[rest].double()),
        )
        torch.testing.assert_close(Ridge(vectors, values, variance).fitted[left_out], (x[left_out] @ solved).float())


def test_kin_speak_for_a_label_where_the_words_near_do() -> None:
    run, evidence, space = a_run()
    kin = Kin(run, evidence, space).evidence[:, LABEL]
    assert (kin[ids(run, *GOOD)] > 0.3).all()
    assert (kin[ids(run, *BAD)] < -0.3).all()
    lovely, harbor = (evidence.evidence[ids(run, word), LABEL] for word in ("lovely", "harbor"))
    assert torch.equal(lovely, harbor)  # the texts alone tell no difference
    assert kin[ids(run, "harbor")] < 0.5 * kin[ids(run, "lovely")]


def test_words_that_speak_for_the_label_never_pull_nor_such_as_speak_for_it_more() -> None:
    run, evidence, space = a_run()
    rule = Sensible(run, evidence, space)
    pulls = [("lovely", "dull"), ("lovely", "charming"), ("dull", "lovely"), ("dull", "stale")]
    assert may(run, rule, pulls) == [True, False, False, False]
    # At the edges: how much the new word may speak for the label, and how much less it must.
    rule.both[ids(run, "harbor"), LABEL] = SILENT - 0.01
    rule.both[ids(run, "lovely"), LABEL] = SILENT - 0.01 + log(LESS)
    assert may(run, rule, [("lovely", "harbor"), ("witty", "harbor")]) == [True, True]
    rule.both[ids(run, "lovely"), LABEL] -= 0.02
    assert may(run, rule, [("lovely", "harbor")]) == [False]
    rule.both[ids(run, "harbor"), LABEL] = SILENT + 0.01
    assert may(run, rule, [("witty", "harbor")]) == [False]


def test_contrast_is_what_the_new_word_says_for_the_rival_and_against_the_label() -> None:
    run, evidence, space = a_run()
    rule = Sensible(run, evidence, space)
    row, toward = row_of(run, "lovely", "dull", "witty"), ids(run, "dull", "lovely", "graceful")
    rivals, positions = torch.tensor([0, 0, 0]), torch.arange(3)
    found = rule.of(row, LABEL).contrast(rivals, positions, toward)
    lost, other, none = found.tolist()
    assert lost > 2
    assert lost == pytest.approx(-other)
    assert abs(none) < 0.5
    doubting = Sensible(of_pieces(run), evidence, space)
    doubt = doubting.doubt[toward].sum(-1)  # of two classes
    assert (doubt > 0).all()
    torch.testing.assert_close(doubting.of(row, LABEL).contrast(rivals, positions, toward), found - doubt)


class OfPieces(WordRun):
    """A run whose vocabulary is not that of its training texts, as a Transformer's is."""

    @property
    def learnt(self) -> Vocabulary:
        return Vocabulary(self.vocabulary.words, self.vocabulary.counts)


def of_pieces(run: Run) -> Run:
    config = replace(run.config, transformer="a BERT", model=ModelSettings())
    return OfPieces(run.folder, config, run.vocabulary, run.labels, run.model, run.device)


def test_what_few_texts_hold_is_doubted_more_and_what_many_hold_tells_most() -> None:
    run, evidence, space = a_run()
    lovely, charming, dull, harbor = ids(run, "lovely", "charming", "dull", "harbor").tolist()
    evidence.variance[lovely], evidence.variance[charming] = 0.01, torch.inf
    evidence.evidence[harbor], evidence.variance[harbor] = torch.tensor([4.0, -4.0]), 1.5
    rule = Sensible(of_pieces(run), evidence, space)
    found = rule.speaking(ids(run, *WORDS))
    assert found.doubt[lovely] == pytest.approx((0.5 * 0.01 / 0.51) ** 0.5)
    assert found.doubt[charming] == pytest.approx(0.5**0.5)
    surely = rule.both - rule.doubt
    assert {int(at) for at in found.telling} == {int(at) for at in ids(run, *WORDS) if (surely[at] > 0).any()}
    assert {lovely, dull} <= set(found.telling.tolist())
    assert lovely not in rule.speaking(ids(run, "dull", "stale")).telling
    rule._silent[lovely] = True
    assert lovely not in rule.speaking(ids(run, *WORDS)).telling
    other = Sensible(run, evidence, space).speaking(ids(run, *WORDS))  # no Transformer
    assert not len(other.telling)
    assert not other.doubt.any()


def test_of_each_class_some_words_tell_most(monkeypatch: pytest.MonkeyPatch) -> None:
    run, evidence, space = a_run()
    rule = Sensible(of_pieces(run), evidence, space)
    monkeypatch.setattr(filtering, "TELLING", 2)
    few = rule.speaking(ids(run, *WORDS)).telling
    assert len(few) == 4
    monkeypatch.setattr(filtering, "IN_ALL", 3)
    fewer = rule.speaking(ids(run, *WORDS)).telling
    assert len(fewer) == 2
    assert set(fewer.tolist()) < set(few.tolist())


def test_rare_words_are_unknown_but_to_a_transformer() -> None:
    run, evidence, space = a_run()
    evidence.variance[ids(run, "dull")] = RARE
    for each, unknown in ((run, ["dull"]), (of_pieces(run), [])):
        said = Sensible(each, evidence, space).speaking(ids(run, *WORDS)).evidence
        assert [word for word in WORDS if said[ids(run, word)].isnan().any()] == unknown


def test_a_word_that_no_text_holds_speaks_for_no_class_of_any_size() -> None:
    counts = torch.tensor([[300.0, 60.0, 40.0]] * len(SPECIALS) + [[0.0, 0.0, 0.0], [3.0, 0.0, 0.0]])
    found = evidence_in(counts)
    fair = found.evidence
    assert fair[len(SPECIALS)].abs().max() < 1e-5
    assert found.variance[len(SPECIALS)].isinf().all()
    torch.testing.assert_close(found.variance[-1], torch.tensor([1 / 3.5 + 2, 2 + 1 / 3.5, 2 + 1 / 3.5]))
    assert fair[-1, 0] > 0 > fair[-1, 1]
    equal = torch.tensor([[50.0, 50.0]] * len(SPECIALS) + [[7.0, 2.0]])
    half = torch.tensor([7.5, 2.5]).log() - torch.tensor([2.5, 7.5]).log()  # a half on either side
    torch.testing.assert_close(evidence_in(equal).evidence[-1], half)
    no_texts = torch.tensor([[0.0, 60.0, 40.0]] * len(SPECIALS) + [[0.0, 7.0, 2.0]])
    assert evidence_in(no_texts).evidence.isfinite().all()


def test_kin_foretell_words_that_no_training_text_holds() -> None:
    run, evidence, space = a_run()
    unseen = int(run.vocabulary["witty"])
    variance, said = evidence.variance.clone(), evidence.evidence.clone()
    variance[unseen], said[unseen] = torch.inf, -9.0  # what stands there counts for nothing
    kin = Kin(run, Evidence(said, variance), space).evidence
    assert 0.3 < kin[unseen, LABEL] < 3
    seen = [at for at in range(len(SPECIALS), len(run.vocabulary)) if at != unseen]
    without = Ridge(space.table[seen], evidence.evidence[seen], evidence.variance[seen].mean(-1))
    torch.testing.assert_close(kin[seen], without.fitted)


def row_of(run: Run, *words: str) -> Row:
    """A text of words, one id each."""
    numbers = ids(run, *words).numpy()
    return Row(numbers, np.arange(len(words)), np.arange(len(words)), numbers)


def may(run: Run, rule: Sensible, pulls: list[tuple[str, str]]) -> list[bool]:
    """Which pulls may be shown, each on a word of its own."""
    words, toward = zip(*pulls, strict=True)
    return rule.of(row_of(run, *words), LABEL).may(ids(run, *toward).unsqueeze(-1)).flatten().tolist()


def test_a_word_that_no_text_holds_has_evidence_of_the_word_it_is_close_to() -> None:
    run, evidence, space = a_run()
    lovely, charming, tunnel = ids(run, "lovely", "charming", "tunnel")
    evidence.evidence[lovely, LABEL], evidence.variance[lovely] = 4.0, 0.01
    evidence.variance[charming] = torch.inf
    rule = Sensible(run, evidence, space)
    row, toward = row_of(run, "lovely", "lovely", "dull"), torch.stack([charming, tunnel, charming])
    carried = rule.of(row, LABEL)._carried(toward.unsqueeze(-1)).flatten()
    close = torch.cosine_similarity(space.table[lovely], space.table[charming], dim=0)
    assert 0.8 < close < 1
    beyond = rule.both[lovely, LABEL] - rule._kin.evidence[lovely, LABEL]
    assert beyond > 1
    torch.testing.assert_close(carried, torch.stack([close * beyond, torch.tensor(0.0), torch.tensor(0.0)]))
    assert may(run, rule, [("lovely", "charming"), ("witty", "dull")]) == [False, True]


def test_near_words_count_more() -> None:
    run, evidence, space = a_run()
    rule = Sensible(run, evidence, space)
    toward = ids(run, "charming", "dull", "lovely").unsqueeze(0)
    near, far, itself = rule.of(row_of(run, "lovely"), LABEL).nearness(toward).flatten().tolist()
    assert FAR <= far < near < itself == pytest.approx(1.0)


def test_numbers_and_words_of_grammar_are_not_pulled_unless_they_turn_a_sentence_round() -> None:
    run, evidence, space = a_run()
    rule = Sensible(run, evidence, space)
    assert may(run, rule, [("lovely", "dull")]) == [True]
    rule._silent[run.vocabulary["lovely"]] = True
    assert may(run, rule, [("lovely", "dull")]) == [False]
    words = (*SPECIALS, "the", "never", "lovely", "7", "seven")
    other = replace(run, vocabulary=Vocabulary(words, np.ones(len(words))))
    evidence = Evidence(torch.zeros(len(words), 2), torch.ones(len(words), 2))
    table = torch.randn(len(words), 4)
    rule = Sensible(other, evidence, WordSpace(table, torch.ones(len(words), dtype=torch.bool), "here"))
    assert rule._silent[len(SPECIALS) :].tolist() == [True, False, False, True, True]
