"""Numbers at their limits, for every method: nothing is NaN, padding never moves, and a CPU gives the same bits."""

import math
from typing import Any

import pytest
import torch
from derivation import CLASSES, DIM, PAD, SIZE, make, padded
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from torch import Tensor, nn

import wordward
from wordward.perturbation.outcome import Outcome
from wordward.perturbation.recipes import UNMOVED
from wordward.support.errors import SettingError

EVERY = [*wordward.RECIPES, *UNMOVED]
UNKNOWN = 1


class Small(nn.Module):
    """A classifier of the mean of a text's vectors, quick at any length."""

    def __init__(self, table: Tensor | None = None, scale: float = 1.0) -> None:
        super().__init__()
        self.words = nn.Embedding(SIZE, DIM, padding_idx=PAD)
        if table is not None:
            self.words.weight.data.copy_(table)
        self.head = nn.Linear(DIM, CLASSES)
        self.scale = scale

    def forward(self, ids: Tensor) -> Tensor:
        real = (ids != PAD).unsqueeze(-1)
        mean = (self.words(ids) * real).sum(1) / real.sum(1).clamp(min=1)
        return self.head(mean.tanh()) * self.scale


def check(out: Outcome, ids: Tensor, model: nn.Module) -> None:
    """No number is NaN or infinite, in r, in the loss and in its gradients; padding stays where it is."""
    assert out.loss.isfinite()
    for numbers in (out.perturbation, out.strengths, out.perturbed):
        assert numbers.isfinite().all()
    assert not out.perturbation[ids == PAD].any()
    if out.loss.requires_grad:
        model.zero_grad()
        out.loss.backward()
        assert all(weight.grad is None or weight.grad.isfinite().all() for weight in model.parameters())


def called(name: str, model: nn.Module, ids: Tensor, **how: Any) -> Outcome:
    how = {"epsilon": 2.0, "k": 3} | how
    labels = torch.arange(len(ids)) % CLASSES
    return wordward.adversary(model, name, **how)(lambda: model(ids), labels)


TABLES = {
    "zeros": lambda: torch.zeros(SIZE, DIM),
    "one vector for all": lambda: torch.randn(DIM).expand(SIZE, DIM),
    "pairs": lambda: torch.randn(SIZE, DIM)[torch.arange(SIZE) // 2],
    "tiny": lambda: torch.randn(SIZE, DIM) * 1e-30,
    "large": lambda: torch.randn(SIZE, DIM) * 1e25,
    "one far away": lambda: torch.randn(SIZE, DIM).index_fill(0, torch.tensor([4]), 1e30),
}


@pytest.mark.parametrize("normalization", ["paper", "authors"])
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", EVERY)
def test_zero_equal_and_huge_vectors(name: str, table: str, metric: str, normalization: str) -> None:
    model, ids = Small(TABLES[table]()), padded([[3, 4, 5, 6], [4, 4], [12]])
    for k in (3, None):
        check(called(name, model, ids, metric=metric, normalization=normalization, k=k), ids, model)


@pytest.mark.parametrize("name", ["iadvt-rand", "ivat-rand"])
def test_what_points_nowhere_has_no_strength_in_the_authors_lengths(name: str) -> None:
    """Where all words coincide, a word that is drawn at random moves nothing."""
    model, ids = Small(TABLES["one vector for all"]()), padded([[3, 4, 5, 6], [4, 4], [12]])
    out = called(name, model, ids, normalization="authors")
    assert not out.perturbation.any()
    assert not out.strengths.any()


@pytest.mark.parametrize("kind", ["classifier", "tagger"])
@pytest.mark.parametrize("name", EVERY)
def test_unknown_words_one_word_and_no_words(name: str, kind: str) -> None:
    model = make(kind)
    ids = padded([[UNKNOWN] * 4, [7], []])
    labels = torch.tensor([0, 1, 2]) if kind == "classifier" else padded([[0] * 4, [1], []])
    check(wordward.adversary(model, name, epsilon=2.0, k=3)(lambda: model(ids), labels), ids, model)


@pytest.mark.parametrize("kind", ["classifier", "tagger"])
@pytest.mark.parametrize("name", EVERY)
def test_a_batch_without_texts_adds_nothing(name: str, kind: str) -> None:
    """As where of some texts only those are kept that a model is sure of."""
    model, ids = make(kind), padded([[3, 4, 5]])[:0]
    labels = torch.zeros(0, dtype=torch.int64) if kind == "classifier" else ids
    out = wordward.adversary(model, name, epsilon=2.0, k=3)(lambda: model(ids), labels)
    check(out, ids, model)
    assert out.loss == 0


@pytest.mark.parametrize("name", EVERY)
def test_a_text_of_a_hundred_thousand_words(name: str) -> None:
    model, length = Small(), 100_000
    ids = torch.randint(1, SIZE, (2, length))
    ids[1, 1:] = PAD
    for k in (3, None):
        out = called(name, model, ids, epsilon=None, k=k)
        check(out, ids, model)
        if wordward.RECIPES.get(name):
            assert out.perturbation[0].any()
            assert out.perturbation[1, 0].any()


def moved_by_gradient(name: str) -> bool:
    """Whether nothing but a gradient moves a text."""
    return name in wordward.RECIPES and wordward.RECIPES[name].starts_uphill


@pytest.mark.parametrize("scale", [1e4, 1e6])
@pytest.mark.parametrize("name", EVERY)
def test_half_precision_that_overflows_moves_nothing(name: str, scale: float) -> None:
    """Gradients beyond 65,504 are infinite in half precision: no direction can be told from them."""
    model, ids = Small(scale=scale).half(), padded([[3, 4, 5, 6], [4, 4], [12]])
    model.head.weight.data.mul_(8)
    out = called(name, model, ids)
    assert out.perturbation.isfinite().all()
    assert out.strengths.isfinite().all()
    assert not out.perturbation[ids == PAD].any()
    if moved_by_gradient(name) and scale == 1e6:
        assert not out.perturbation.any()


class Broken(torch.autograd.Function):
    """The same numbers; the gradient of one text has one number that is none."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, value: float) -> Tensor:
        ctx.value = value
        return vectors.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        gradient = gradients[0].clone()
        gradient[1, 0, 0] = ctx.value
        return gradient, None


@pytest.mark.parametrize("k", [3, None])
@pytest.mark.parametrize("normalization", ["paper", "authors"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", EVERY)
def test_a_gradient_that_is_no_number_spoils_no_other_text(
    name: str, value: float, normalization: str, k: int | None
) -> None:
    """The other texts move as without it, its own does not."""
    ids = padded([[3, 4, 5, 6], [4, 4], [12]])

    class Wrapped(Small):
        broken = True

        def forward(self, ids: Tensor) -> Tensor:
            real = (ids != PAD).unsqueeze(-1)
            vectors = Broken.apply(self.words(ids), value) if self.broken else self.words(ids)
            return self.head(((vectors * real).sum(1) / real.sum(1).clamp(min=1)).tanh())

    model, found = Wrapped(), []
    for model.broken in (True, False):
        torch.manual_seed(3)
        found.append(called(name, model, ids, normalization=normalization, k=k))
    out, plain = found
    for numbers in (out.loss, out.perturbation, out.strengths, out.perturbed):
        assert numbers.isfinite().all()
    assert not out.perturbation[ids == PAD].any()
    assert torch.equal(out.perturbation[[0, 2]], plain.perturbation[[0, 2]])
    if wordward.RECIPES.get(name):
        assert out.perturbation[0].any()
        assert out.perturbation[2].any()
    if moved_by_gradient(name):
        assert not out.perturbation[1, 0].any()
        assert normalization == "authors" or not out.perturbation[1].any()


@given(
    name=st.sampled_from(EVERY),
    lengths=st.lists(st.integers(0, 6), min_size=1, max_size=4),
    exponent=st.integers(-20, 15),
    equal=st.integers(1, SIZE),
    epsilon=st.sampled_from((None, 1e-6, 1.0, 1e6)),
    k=st.sampled_from((1, 5, None)),
    seed=st.integers(0, 1000),
)
@hypothesis_settings(max_examples=60)
def test_any_texts_and_any_table(
    name: str, lengths: list[int], exponent: int, equal: int, epsilon: float | None, k: int | None, seed: int
) -> None:
    torch.manual_seed(seed)
    model = Small(torch.randn(SIZE, DIM)[torch.arange(SIZE) % equal] * 10.0**exponent)
    ids = padded([torch.randint(1, SIZE, (length,)).tolist() for length in lengths])
    try:
        out = called(name, model, ids, epsilon=epsilon, k=k)
    except SettingError:  # a table of equal vectors has no distances to reckon a default by
        assert epsilon is None
        return
    check(out, ids, model)


@pytest.mark.parametrize("k", [3, None])
@pytest.mark.parametrize("kind", ["classifier", "tagger"])
@pytest.mark.parametrize("name", EVERY)
def test_a_cpu_gives_the_same_bits_again(name: str, kind: str, k: int | None) -> None:
    """With dropout, from the same seed: r, loss and the gradients of every weight."""
    found, ids = [], padded([[3, 7, 11, 3], [5, 2], [9]])
    for _ in range(2):
        model = make(kind).float().train()
        labels = torch.tensor([0, 1, 2]) if kind == "classifier" else padded([[0, 1, 2, 0], [1, 1], [2]])
        torch.manual_seed(5)
        out = wordward.adversary(model, name, epsilon=2.0, k=k)(lambda model=model: model(ids), labels)
        out.loss.backward()
        found.append([out.loss, out.perturbation, *(weight.grad for weight in model.parameters())])
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True) if one is not None)
