"""Padding never moves and never counts; lengths are what they should be; zero stays zero."""

import math
from typing import Any, Literal

import pytest
import torch
from derivation import (
    DIM,
    METHODS,
    MODELS,
    PAD,
    SIZE,
    TAG_LABELS,
    TEXTS,
    Everywhere,
    divergence,
    labels_for,
    make,
    negative_log_likelihood,
    noise_for,
    padded,
)
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from torch import Tensor, nn

import wordward
from wordward.perturbation import objective
from wordward.perturbation.choice import unit


@pytest.mark.parametrize("normalization", ["paper", "authors"])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", METHODS)
def test_a_text_alone_and_in_a_padded_batch_are_the_same(
    name: str, kind: str, normalization: Literal["paper", "authors"]
):
    model, ids, labels, noise = make(kind), padded(TEXTS), labels_for(kind), noise_for(name, 3)
    adv = wordward.adversary(model, name, epsilon=2.0, k=3, normalization=normalization)
    together = adv(lambda: model(ids), labels, noise=noise)
    losses = []
    for row, text in enumerate(TEXTS):
        one, time = torch.tensor([text]), len(text)
        label = labels[row : row + 1] if kind == "classifier" else labels[row : row + 1, :time]
        alone = adv(lambda one=one: model(one), label, noise=noise[row : row + 1, :time])
        torch.testing.assert_close(together.perturbation[row, :time], alone.perturbation[0])
        torch.testing.assert_close(together.strengths[row, :time], alone.strengths[0])
        here = together.perturbed[row] if kind == "classifier" else together.perturbed[row, :time]
        torch.testing.assert_close(here, alone.perturbed[0])
        losses.append(alone.loss)
    torch.testing.assert_close(together.loss, torch.stack(losses).mean())


@pytest.mark.parametrize("normalization", ["paper", "authors"])
@pytest.mark.parametrize("tags", [False, True])
@pytest.mark.parametrize("k", [3, None])
@pytest.mark.parametrize("name", METHODS)
def test_padding_never_moves_and_never_counts(
    name: str, k: int | None, tags: bool, normalization: Literal["paper", "authors"]
):
    model, ids = Everywhere(tags), padded(TEXTS)
    mask = ids != PAD
    noise = noise_for(name, k or SIZE)
    labels = labels_for("tagger" if tags else "classifier")
    adv = wordward.adversary(model, name, epsilon=2.0, k=k, normalization=normalization)
    out = adv(lambda: model(ids), labels, mask=mask, noise=noise)
    assert torch.equal(out.mask, mask)
    assert not out.perturbation[~mask].any()
    assert not out.strengths[~mask].any()
    over_sentence = out.perturbation if adv.method.recipe.space == "free" else out.strengths
    if not adv.method.per_token:
        torch.testing.assert_close(over_sentence.flatten(1).norm(dim=1), torch.full((3,), 2.0).double())
    else:
        each = out.strengths.norm(dim=-1)  # alike at every token
        torch.testing.assert_close(each / each.amax(1, keepdim=True), mask.double())
        torch.testing.assert_close(adv.space(ids).vectors(out.strengths), out.perturbation)
        torch.testing.assert_close(out.perturbation.flatten(1).norm(dim=1), torch.full((3,), 2.0).double())
    if tags:  # neither labels nor predictions at padding count
        other = labels.masked_fill(~mask, 1)
        chance = torch.where(mask.unsqueeze(-1), noise, 7.0)
        again = adv(lambda: model(ids), other, mask=mask, noise=chance)
        torch.testing.assert_close(again.loss, out.loss)
        torch.testing.assert_close(again.perturbation, out.perturbation)
        loss = (
            sum(divergence(out.clean[row, : len(t)], out.perturbed[row, : len(t)]) for row, t in enumerate(TEXTS))
            if adv.method.recipe.objective == "kl"
            else sum(
                negative_log_likelihood(out.perturbed[row, : len(t)], TAG_LABELS[row]) for row, t in enumerate(TEXTS)
            )
        )
        torch.testing.assert_close(out.loss, loss / 3)


def test_where_tokens_are_is_told_by_the_embedding_unless_by_the_user():
    ids = padded(TEXTS)
    for padding, mask, expected in (
        (PAD, None, ids != PAD),
        (None, None, torch.ones_like(ids, dtype=torch.bool)),
        (PAD, ids > 4, ids > 4),
        (PAD, (ids > 4).long(), ids > 4),
    ):
        model = Everywhere(False, padding)
        out = wordward.advt(model)(lambda model=model: model(ids), labels_for("classifier"), mask=mask)
        assert out.mask.dtype == torch.bool
        assert torch.equal(out.mask, expected)
        assert torch.equal(out.perturbation.any(-1), expected)


@pytest.mark.parametrize("name", METHODS)
def test_padding_moves_in_no_pass(name: str):
    """Neither in VAT's first step nor in those that follow."""
    model, ids = Everywhere(False), padded(TEXTS)
    seen = []

    original = model.mix

    def record(vectors: Tensor) -> Tensor:
        seen.append(vectors.detach())
        return original(vectors)

    model.mix = record  # type: ignore[method-assign]
    adv = wordward.adversary(model, name, epsilon=2.0, k=3, power_iterations=3)
    adv(lambda: model(ids), labels_for("classifier"), mask=ids != PAD)
    assert len(seen) == (2 if adv.method.recipe.forwards < 3 else 5)
    moved = [(vectors != model.words.weight[ids]).any(-1) for vectors in seen]
    assert not moved[0].any()
    assert all(torch.equal(where, ids != PAD) for where in moved[1:])


@pytest.mark.parametrize("padding", [None, 4])
def test_padding_is_never_a_candidate(padding: int | None):
    model, ids = Everywhere(False, padding), padded(TEXTS)
    for k in (SIZE - 2, None):
        out = wordward.iadvt(model, k=k)(lambda: model(ids), labels_for("classifier"))
        assert out.candidates is not None
        assert (4 in out.candidates) == (padding is None)


@pytest.mark.parametrize("k", [3, None])
@pytest.mark.parametrize("name", METHODS)
def test_a_zero_gradient_gives_zero_and_never_nan(name: str, k: int | None):
    model, ids = make("tagger"), padded([[3, 7, 11, 3], [5, 2], []])  # the last text has no words
    nn.init.zeros_(model.head[-1].weight)  # type: ignore[arg-type]
    adv = wordward.adversary(model, name, epsilon=2.0, k=k)
    out = adv(lambda: model(ids), labels_for("tagger"))
    assert out.loss.isfinite()
    assert out.perturbation.isfinite().all()
    assert not out.perturbation[2].any()
    if adv.method.recipe.follows_gradient:
        assert not out.perturbation.any()
    gradients = torch.autograd.grad(out.loss, list(model.parameters()), allow_unused=True)
    assert all(g is None or g.isfinite().all() for g in gradients)


@pytest.mark.parametrize("normalization", ["paper", "authors"])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e25])
@pytest.mark.parametrize("name", ["advt", "iadvt", "iadvt-best", "vat", "ivat"])
def test_the_scale_of_the_loss_does_not_matter(name: str, scale: float, normalization: Literal["paper", "authors"]):
    model = Everywhere(False).float()
    ids, labels = padded(TEXTS), labels_for("classifier")
    losses: dict[str, Any] = {"label_loss": objective.label_loss, "kl": objective.kl}
    function = losses[str(wordward.RECIPES[name].objective)]
    plain, scaled = (
        wordward.adversary(model, name, epsilon=2.0, k=3, loss=loss, normalization=normalization)(
            lambda: model(ids), labels, mask=ids != PAD, noise=noise_for(name, 3)
        )
        for loss in (None, lambda logits, target: function(logits, target) * scale)
    )
    torch.testing.assert_close(scaled.perturbation, plain.perturbation, atol=1e-4, rtol=1e-4)
    lengths = scaled.perturbation if name in ("advt", "vat") else scaled.strengths
    if normalization == "paper":
        torch.testing.assert_close(lengths.flatten(1).norm(dim=1), torch.full((3,), 2.0))


@pytest.mark.parametrize("broken", [math.inf, math.nan])
def test_a_gradient_that_overflowed_moves_nothing_in_its_own_text_alone(broken: float):
    model, ids = make("classifier"), padded(TEXTS)
    gradient = torch.randn(3, 6, DIM, dtype=torch.float64)
    gradient[1, 0, 0] = broken
    for name in ("advt", "iadvt"):
        found = wordward.adversary(model, name, epsilon=2.0, k=3).perturb(ids, gradient, ids != PAD)
        assert found.perturbation.isfinite().all()
        assert [bool(row.any()) for row in found.perturbation] == [True, False, True]


@given(
    shape=st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 4)),
    exponent=st.integers(-300, 300),
    seed=st.integers(0, 100),
)
@hypothesis_settings(max_examples=30)
def test_unit_has_length_one_at_any_scale(shape: tuple[int, int, int], exponent: int, seed: int):
    torch.manual_seed(seed)
    values = torch.randn(shape, dtype=torch.float64)
    for dims in ((2,), (1, 2)):
        found = unit(values * 10.0**exponent, dims)
        torch.testing.assert_close(found.square().sum(dims), torch.ones_like(found.sum(dims)))
        torch.testing.assert_close(found, values / values.square().sum(dims, keepdim=True).sqrt())
