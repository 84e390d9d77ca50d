"""Every method equals the paper's equations, derived a second time."""

import math
from typing import Any, Literal

import pytest
import torch
from derivation import (
    CLASS_LABELS,
    DIM,
    LABELLED,
    METHODS,
    MODELS,
    PAD,
    SIZE,
    TAG_LABELS,
    TEXTS,
    WORDS,
    check,
    derive,
    labels_for,
    logits_at,
    make,
    negative_log_likelihood,
    noise_for,
    padded,
)
from torch import Tensor

import wordward


@pytest.mark.parametrize("normalization", ["paper", "authors"])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_its_equation(name: str, kind: str, normalization: Literal["paper", "authors"]):
    """r, alpha, the loss, and the gradient of the loss for the weights with r, D and the target constant."""
    model, ids, labels = make(kind), padded(TEXTS), labels_for(kind)
    noise, weight = noise_for(name, 3), 0.7
    adv = wordward.adversary(
        model, name, epsilon=2.5, k=3, normalization=normalization, regularizer_weight=weight, xi=0.3
    )
    out = adv(lambda: model(ids), labels, mask=ids != PAD, noise=noise)
    rows = zip(TEXTS, CLASS_LABELS if kind == "classifier" else TAG_LABELS, noise, strict=True)
    expected = [
        derive(name, model, text, label, chance, epsilon=2.5, xi=0.3, normalization=normalization)
        for text, label, chance in rows
    ]
    check(out, expected)
    loss = weight * sum(one.loss(one.r) for one in expected) / len(TEXTS)
    assert isinstance(loss, Tensor)
    torch.testing.assert_close(out.loss, loss)
    parameters = [p for p in model.parameters() if p.requires_grad]
    torch.testing.assert_close(torch.autograd.grad(out.loss, parameters), torch.autograd.grad(loss, parameters))
    torch.testing.assert_close(out.clean, model(ids))
    torch.testing.assert_close(out.ids, ids)
    assert out.clean.requires_grad == (name in LABELLED)
    assert not out.perturbation.requires_grad
    assert not out.strengths.requires_grad


@pytest.mark.parametrize("normalization", ["paper", "authors"])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", WORDS)
def test_without_k_the_whole_vocabulary_counts(name: str, kind: str, normalization: Literal["paper", "authors"]):
    model, ids, labels = make(kind), padded(TEXTS), labels_for(kind)
    allowed = list(range(1, SIZE))
    noise = noise_for(name, len(allowed))
    adv = wordward.adversary(model, name, epsilon=2.5, k=None, normalization=normalization)
    out = adv(lambda: model(ids), labels, noise=noise)
    rows = zip(TEXTS, CLASS_LABELS if kind == "classifier" else TAG_LABELS, noise, strict=True)
    told = {"epsilon": 2.5, "k": None, "allowed": allowed, "normalization": normalization}
    check(out, [derive(name, model, *row, **told) for row in rows])


@pytest.mark.parametrize("k", [3, None])
@pytest.mark.parametrize("iterations", [1, 2])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", ["ivat", "ivat-best"])
def test_strengths_of_the_first_step_are_drawn_where_asked_for(name: str, kind: str, iterations: int, k: int | None):
    model, ids, noise = make(kind), padded(TEXTS), noise_for(name, k or SIZE - 1)
    told: dict[str, Any] = {"epsilon": 2.5, "k": k, "xi": 0.3}
    adv = wordward.adversary(model, name, first_step="random", power_iterations=iterations, **told)
    out = adv(lambda: model(ids), mask=ids != PAD, noise=noise)
    rows = zip(TEXTS, TEXTS, noise, strict=True)
    check(out, [derive(name, model, *row, first_step="random", iterations=iterations, **told) for row in rows])


def test_a_random_first_step_is_drawn_anew_and_by_the_seed():
    model, ids = make("classifier"), padded(TEXTS)
    adv = wordward.ivat(model, epsilon=2.5, k=3, first_step="random")
    torch.manual_seed(5)
    one, two = (adv(lambda: model(ids)).perturbation for _ in range(2))
    torch.manual_seed(5)
    assert torch.equal(adv(lambda: model(ids)).perturbation, one)
    assert not torch.equal(one, two)


@pytest.mark.parametrize("kind", MODELS)
def test_the_authors_ivat_adds_up_to_nothing_over_a_word(kind: str):
    """Its gradient passes through the first step, at which all strengths are equal."""
    model, ids = make(kind), padded(TEXTS)
    sums = {}
    for normalization in ("paper", "authors"):
        out = wordward.ivat(model, epsilon=2.5, k=3, normalization=normalization)(lambda: model(ids))
        sums[normalization] = out.strengths.sum(-1)[ids != PAD].abs()
    assert sums["authors"].max() < 1e-12
    assert sums["paper"].min() > 1e-6
    with pytest.raises(ValueError, match="so ivat takes one, but power_iterations is 2: set normalization="):
        wordward.ivat(model, epsilon=2.5, normalization="authors", power_iterations=2)
    with pytest.raises(ValueError, match="but ivat has first_step='random': set normalization='paper'"):
        wordward.ivat(model, epsilon=2.5, normalization="authors", first_step="random")


def test_iadvt_by_finite_differences_over_the_whole_vocabulary():
    """eq:adv_direction to eq:update_alpha_new without autograd."""
    model, text, label, step = make("classifier"), TEXTS[0], CLASS_LABELS[0], 1e-5
    table = model.words.table.weight.detach()
    g = torch.zeros(len(text), SIZE, dtype=torch.float64)
    d = torch.zeros(len(text), SIZE, DIM, dtype=torch.float64)
    for t, word in enumerate(text):
        for k in range(1, SIZE):
            if k == word:
                continue
            d[t, k] = (table[k] - table[word]) / (table[k] - table[word]).norm()
            nudge = torch.zeros(len(text), DIM, dtype=torch.float64)
            nudge[t] = step * d[t, k]
            up, down = (
                negative_log_likelihood(logits_at(model, table[text] + sign * nudge), label).item()
                for sign in (1, -1)
            )
            g[t, k] = (up - down) / (2 * step)
    alpha = 4.0 * g / g.norm()
    r = torch.einsum("tk,tkd->td", alpha, d)
    adv = wordward.iadvt(model, epsilon=4.0, k=None)
    out = adv(lambda: model(torch.tensor([text])), torch.tensor([label]))
    torch.testing.assert_close(out.strengths[0], alpha[:, 1:], atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(out.perturbation[0], r, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", ["vat", "ivat", "ivat-best"])
def test_power_iterations_start_anew_from_the_direction_found(name: str, kind: str):
    model, ids = make(kind), padded(TEXTS)
    noise = noise_for(name, 3)
    out = wordward.adversary(model, name, epsilon=2.5, k=3, xi=0.4, power_iterations=3)(
        lambda: model(ids), noise=noise
    )
    rows = zip(TEXTS, TEXTS, noise, strict=True)
    check(out, [derive(name, model, *row, epsilon=2.5, xi=0.4, iterations=3) for row in rows])


def test_candidates_come_in_any_form():
    model, ids = make("classifier"), padded(TEXTS)
    allowed = [4, 6, 8, 10, 12]
    given: Any = (
        allowed,
        set(allowed),
        torch.tensor(allowed, dtype=torch.int32),
        torch.tensor(allowed).numpy(),
    )
    for some in given:
        out = wordward.iadvt(model, candidates=some, k=3)(lambda: model(ids), labels_for("classifier"))
        assert out.candidates is not None
        assert set(out.candidates.unique().tolist()) <= set(allowed)


def test_only_allowed_candidates_are_pointed_to():
    model, ids, labels = make("classifier"), padded(TEXTS), labels_for("classifier")
    allowed = [2, 4, 5, 8, 12]
    adv = wordward.iadvt(model, epsilon=1.0, k=4, candidates=torch.tensor([12, 5, 4, 8, 2, 2, PAD]))
    out = adv(lambda: model(ids), labels)
    rows = zip(TEXTS, CLASS_LABELS, noise_for("iadvt", 4), strict=True)
    check(out, [derive("iadvt", model, *row, epsilon=1.0, k=4, allowed=allowed) for row in rows])


@pytest.mark.parametrize("name", ["advt", "iadvt", "vat", "ivat"])
def test_the_mean_over_tokens_changes_the_loss_but_not_the_perturbation(name: str):
    model, ids, labels = make("tagger"), padded(TEXTS), labels_for("tagger")
    noise = noise_for(name, 3)
    sentences, tokens = (
        wordward.adversary(model, name, epsilon=1.0, k=3, average=average)(lambda: model(ids), labels, noise=noise)
        for average in ("sentences", "tokens")
    )
    torch.testing.assert_close(sentences.perturbation, tokens.perturbation)
    torch.testing.assert_close(sentences.loss * len(TEXTS), tokens.loss * sum(map(len, TEXTS)))


@pytest.mark.parametrize("k", [3, None])
@pytest.mark.parametrize("name", ["iadvt-best", "iadvt-rand", "ivat-best", "ivat-rand"])
def test_one_word_is_chosen_for_each_token_and_never_itself(name: str, k: int | None):
    model, ids = make("classifier"), padded(TEXTS)
    adv = wordward.adversary(model, name, epsilon=3.0, k=k)
    for _ in range(20):
        out = adv(lambda: model(ids), labels_for("classifier"))
        assert out.candidates is not None
        assert torch.equal((out.strengths != 0).sum(-1), (ids != PAD).long())
        chosen = out.candidates.gather(-1, out.strengths.abs().argmax(-1, keepdim=True)).squeeze(-1)
        assert (chosen != ids)[ids != PAD].all()
        if name.endswith("rand"):
            lengths = out.perturbation.norm(dim=-1)
            equal = torch.tensor([3.0 / math.sqrt(len(text)) for text in TEXTS]).double().unsqueeze(-1)
            torch.testing.assert_close(lengths, equal * (ids != PAD))
            assert (out.strengths >= 0).all()


def test_rand_takes_every_neighbour_equally_often():
    model, ids = make("classifier"), torch.full((300, 1), 3)
    adv = wordward.adversary(model, "ivat-rand", k=3)
    counts = (adv(lambda: model(ids)).strengths > 0).sum((0, 1))
    assert counts.sum() == 300
    assert (counts > 60).all()


@pytest.mark.parametrize("k", [3, None])
def test_best_keeps_its_value_where_every_direction_descends(k: int | None):
    """The word itself, with ascent 0, would be larger."""
    model = make("classifier")
    with torch.no_grad():
        model.words.table.weight[3] = torch.tensor([50.0, 0, 0, 0, 0])
    adv = wordward.adversary(model, "iadvt-best", epsilon=2.0, k=k)
    gradient = torch.tensor([[[1.0, 0, 0, 0, 0]]]).double()
    found = adv.perturb(torch.tensor([[3]]), gradient, torch.tensor([[True]]))
    assert found.candidates is not None
    assert int((found.strengths != 0).sum()) == 1
    assert float(found.strengths.min()) == pytest.approx(-2.0)
    chosen = int(found.candidates[0, 0, found.strengths[0, 0].argmin()])
    table = model.words.table.weight.detach()
    among = found.candidates[0, 0][found.candidates[0, 0] != 3].tolist()

    def ascent(word: int) -> float:
        difference = table[word] - table[3]
        return float(difference[0] / difference.norm())

    assert chosen == max(among, key=ascent)
