"""`direction_dropout`: while training, directions lie between vectors that have lost a share of their numbers."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from derivation import DIM, MODELS, PAD, TAG_LABELS, TEXTS, WORDS, check, derive, labels_for, make, noise_for, padded
from stepping import a_step
from torch import Tensor, nn

import wordward
from wordward.models import Classifier, Tagger
from wordward.perturbation.outcome import Outcome
from wordward.perturbation.recipes import at_text, parse_methods
from wordward.perturbation.settings import MethodSettings
from wordward.perturbation.space import Neighbors
from wordward.perturbation.tap import Tap

K = 3


def training(kind: str) -> Classifier | Tagger:
    """A model that is being trained, without dropout of its own, so that its passes leave chance as it is."""
    model = make(kind).train()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return model


def called(
    name: str, model: Classifier | Tagger, *, seed: int = 3, rows: list[list[int]] = TEXTS, **how: Any
) -> Outcome:
    """A method's outcome, all chance but that of the directions given."""
    kind, ids = "classifier" if isinstance(model, Classifier) else "tagger", padded(rows)
    adv = wordward.adversary(model, name, **{"epsilon": 2.0, "k": K, "direction_dropout": 0.5} | how)
    torch.manual_seed(seed)
    return adv(lambda: model(ids), labels_for(kind), mask=ids != PAD, noise=noise_for(name, K))


def factors(share: float, seed: int = 3) -> tuple[Tensor, Tensor]:
    """What numbers are multiplied by: 0, or what makes up for it; of words, then of their candidates in turn."""
    torch.manual_seed(seed)
    chance = torch.Generator().manual_seed(int(torch.randint(1 << 62, ())))
    shape = (len(TEXTS), 6, DIM)
    drawn = [
        torch.bernoulli(torch.full(shape, 1 - share, dtype=torch.float64), generator=chance) / (1 - share)
        for _ in range(1 + K)
    ]
    return drawn[0], torch.stack(drawn[1:], 2)


@pytest.mark.parametrize("share", [0.2, 0.5])
@pytest.mark.parametrize("normalization", ["paper", "authors"])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", WORDS)
def test_r_is_that_of_directions_between_dropped_vectors(name: str, kind: str, normalization: str, share: float):
    """Derived a second time, by the same draws: one matrix D for a first step, the strengths and r."""
    model, noise, (of_words, of_candidates) = training(kind), noise_for(name, K), factors(share)
    labels = [2, 0, 1] if kind == "classifier" else TAG_LABELS
    expected = [
        derive(
            name,
            model,
            text,
            labels[row],
            noise[row],
            epsilon=2.0,
            k=K,
            normalization=normalization,
            factors=(of_words[row], of_candidates[row]),
        )
        for row, text in enumerate(TEXTS)
    ]
    out = called(name, model, normalization=normalization, direction_dropout=share)
    check(out, expected)
    torch.testing.assert_close(out.loss, torch.stack([one.loss(one.r) for one in expected]).mean())


@pytest.mark.parametrize("more", [{}, {"ascent_steps": 3}, {"power_iterations": 2}, {"same_dropout": True}])
@pytest.mark.parametrize("name", WORDS)
def test_a_batch_draws_one_seed(name: str, more: dict[str, Any]):
    """However many products its r takes."""
    called(name, training("classifier"), **more)
    after = torch.get_rng_state()
    torch.manual_seed(3)
    torch.randint(1 << 62, ())
    assert torch.equal(torch.get_rng_state(), after)


@pytest.mark.parametrize("name", ["iadvt", "ivat"])
@pytest.mark.parametrize("kind", [Classifier, Tagger])
def test_so_does_that_of_a_training_step(name: str, kind: type[Classifier] | type[Tagger]):
    """Beside the dropout of its passes: as many as of a step whose directions keep all numbers, and one."""
    losses = []
    for dropout in (0.0, 0.5):
        stepper, labelled, unlabelled = a_step(name, kind, direction_dropout=dropout)
        for module in stepper.model.modules():
            module.p = 0.0  # type: ignore[assignment]
        torch.manual_seed(3)
        losses.append(float(stepper(labelled, unlabelled if stepper.virtual else None)))
        after = torch.get_rng_state()
        torch.manual_seed(3)
        if dropout:
            torch.randint(1 << 62, ())
        assert torch.equal(torch.get_rng_state(), after)
    assert losses[0] != losses[1]


@pytest.mark.parametrize("name", WORDS)
def test_the_seed_decides_and_each_batch_has_its_own(name: str):
    model = training("classifier")
    first, again, other = (called(name, model, seed=seed).perturbation for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    ids, adv = padded(TEXTS), wordward.adversary(model, name, epsilon=2.0, k=K, direction_dropout=0.5)
    two = [adv(lambda: model(ids), labels_for("classifier"), noise=noise_for(name, K)) for _ in range(2)]
    assert not torch.equal(two[0].perturbation, two[1].perturbation)


@pytest.mark.parametrize("name", WORDS)
def test_the_other_texts_of_a_batch_do_not_matter(name: str):
    """LoneWords a text has other draws than in a padded batch; in batches of one shape it has the same."""
    model = training("classifier")
    one, two = (called(name, model, rows=[TEXTS[0], *rest]) for rest in (TEXTS[1:], [[4, 4, 8], [12, 6]]))
    torch.testing.assert_close(one.perturbation[0], two.perturbation[0])
    assert one.perturbation[0].any()
    for out in (one, two):
        assert not out.perturbation[out.ids == PAD].any()
        assert not out.strengths[out.ids == PAD].any()


def same(one: Outcome, other: Outcome) -> bool:
    return torch.equal(one.perturbation, other.perturbation) and torch.equal(one.loss, other.loss)


@pytest.mark.parametrize("name", WORDS)
def test_a_model_at_rest_drops_nothing(name: str):
    model = make("classifier").eval()
    clean, dropped = (called(name, model, direction_dropout=share) for share in (0.0, 0.5))
    assert same(clean, dropped)
    adv, before = wordward.adversary(model, name, k=K, direction_dropout=0.5), torch.get_rng_state()
    adv.space(padded(TEXTS))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("name", [name for name in wordward.RECIPES if wordward.RECIPES[name].space == "free"])
def test_free_directions_have_nothing_to_drop(name: str):
    model = training("classifier")
    assert same(called(name, model, direction_dropout=0.0), called(name, model))


def test_a_space_of_ones_own_is_left_alone():
    def space(ids: Tensor, tap: Tap) -> Neighbors:
        return Neighbors(ids, torch.stack([(ids + 1) % tap.size, (ids + 2) % tap.size], -1), tap.words)

    recipe, model, ids = replace(wordward.RECIPES["iadvt"], space=space), training("classifier"), padded(TEXTS)
    found = []
    for share in (0.0, 0.5):
        adv = wordward.adversary(model, recipe, epsilon=2.0, direction_dropout=share)
        found.append(adv(lambda: model(ids), labels_for("classifier"), mask=ids != PAD))
    assert same(*found)


def test_nothing_dropped_draws_nothing():
    adv = wordward.iadvt(training("classifier"), k=K)
    before = torch.get_rng_state()
    space = adv.space(padded(TEXTS))
    space.vectors(space.strengths(torch.ones(3, 6, DIM, dtype=torch.float64)))
    assert torch.equal(torch.get_rng_state(), before)


def test_each_word_and_each_candidate_loses_its_share():
    """A candidate's numbers are seen in a direction from the origin, a word's in one to it; lengths are one."""
    table, shape = torch.ones(2, 64, dtype=torch.float64), (4, 8, 5)
    table[0] = 0.0
    one, seen = torch.eye(5, dtype=torch.float64), []
    for ids, others in ((0, 1), (1, 0)):
        space = Neighbors(torch.full(shape[:2], ids), torch.full(shape, others), table.__getitem__, dropout=0.25)
        units = torch.stack([space.vectors(each.expand(shape)) for each in one], 2)  # (batch, time, k, dim)
        torch.testing.assert_close(units.norm(dim=-1), torch.ones(shape, dtype=torch.float64))
        seen.append(units != 0)
    candidates, words = seen
    assert torch.equal(words, words[:, :, :1].expand_as(words))  # a word has lost the same toward each
    for kept in (candidates.flatten(0, 2), words[:, :, 0].flatten(0, 1)):
        assert len(kept.unique(dim=0)) == len(kept)  # no two alike
        assert 0.7 < kept.double().mean() < 0.8


def test_where_all_numbers_are_dropped_a_direction_is_zero():
    table = torch.randn(9, 1, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    space = Neighbors(torch.randint(9, (3, 4)), torch.randint(9, (3, 4, 5)), table.__getitem__, dropout=0.9)
    strengths = space.strengths(torch.ones(3, 4, 1))
    assert strengths.isfinite().all()
    assert 0 < int((strengths == 0).sum()) < strengths.numel()


@pytest.mark.parametrize("name", WORDS)
def test_a_text_is_explained_by_whole_directions(name: str):
    (method,) = parse_methods(name, MethodSettings(direction_dropout=0.5, first_step="random"))
    assert at_text(method).settings.direction_dropout == 0.0
    assert at_text(method).settings.first_step == "alike"  # the same explanation each time
