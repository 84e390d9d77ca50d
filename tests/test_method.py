"""Every method equals the paper's equations, derived here a second time, sentence by sentence, in float64."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from torch import Tensor, nn

import wordward
from wordward import objective
from wordward.choice import unit
from wordward.config import ModelSettings
from wordward.models import Classifier, Tagger
from wordward.recipes import MethodSettings, parse_methods

SIZE, DIM, CLASSES, PAD = 13, 5, 3, 0
TEXTS = [[3, 7, 11, 3], [5, 2], [9]]
CLASS_LABELS = [2, 0, 1]
TAG_LABELS = [[0, 2, 1, 1], [2, 0], [1]]
METHODS = list(wordward.RECIPES)
WORDS = [name for name in METHODS if wordward.RECIPES[name].space == "words"]
LABELLED = [name for name in METHODS if wordward.RECIPES[name].objective == "label_loss"]
MODELS = ("classifier", "tagger")
pytestmark = pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")  # torch, on a CPU without bfloat16


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def make(kind: str, *, seed: int = 0) -> Classifier | Tagger:
    """A tiny model in double precision, without dropout."""
    torch.manual_seed(seed)
    model = (Classifier if kind == "classifier" else Tagger)(
        SIZE, CLASSES, ModelSettings(dim=DIM, hidden=4, head=6, word_dropout=0.5, head_dropout=0.5)
    )
    return model.double().eval()


def padded(rows: list[list[int]], value: int = PAD, width: int = 6) -> Tensor:
    """(batch, time), at least two columns wider than the longest text."""
    return torch.tensor([row + [value] * (width - len(row)) for row in rows])


def labels_for(kind: str) -> Tensor:
    return torch.tensor(CLASS_LABELS) if kind == "classifier" else padded(TAG_LABELS)


def noise_for(name: str, k: int, width: int = 6, seed: int = 1) -> Tensor:
    """Chance, as a method takes it."""
    generator = torch.Generator().manual_seed(seed)
    last = DIM if wordward.RECIPES[name].space == "free" else k
    return torch.randn(len(TEXTS), width, last, generator=generator, dtype=torch.float64)


# ---------------------------------------------------------------- the second derivation: one sentence, loops


class Derived(NamedTuple):
    """What the paper says of one sentence."""

    r: Tensor  # (time, dim)
    alpha: Tensor
    candidates: list[list[int]] | None
    loss: Callable[[Tensor], Tensor]  # of a perturbation


def logits_at(model: Classifier | Tagger, vectors: Tensor) -> Tensor:
    """One sentence of vectors (time, dim), without padding and without the models' own forward."""
    ahead = model.lstm(vectors[None])[0][0]
    if isinstance(model, Classifier):
        return model.head(ahead[-1])
    back = model.backward_lstm(vectors.flip(0)[None])[0][0].flip(0)
    return model.head(torch.cat([ahead, back], -1))


def negative_log_likelihood(logits: Tensor, label: Any) -> Tensor:
    """-log p(Y | X), for tags the sum over tokens."""
    rows, labels = (logits[None], [label]) if logits.dim() == 1 else (logits, label)
    losses = [row.exp().sum().log() - row[y] for row, y in zip(rows, labels, strict=True) if y != -100]
    return torch.stack(losses).sum()


def divergence(clean: Tensor, moved: Tensor) -> Tensor:
    """KL(p_clean || p_moved), for tags the sum over tokens."""
    p, q = clean.softmax(-1), moved.softmax(-1)
    return sum((p * (p / q).log()).flatten())  # type: ignore[return-value]


def neighbours(word: int, table: Tensor, k: int | None, allowed: list[int]) -> list[int]:
    """The k words of largest cosine, nearest first; all allowed where k is None, itself included."""
    if k is None:
        return allowed

    def cosine(other: int) -> float:
        return float(table[word] @ table[other] / (table[word].norm() * table[other].norm()))

    return sorted((other for other in allowed if other != word), key=cosine, reverse=True)[:k]


def derive(
    name: str,
    model: Classifier | Tagger,
    text: list[int],
    label: Any,
    noise: Tensor,  # (time, dim) or (time, k)
    *,
    epsilon: float,
    k: int | None = 3,
    xi: float = 1.0,
    iterations: int = 1,
    normalization: str = "paper",
    allowed: list[int] | None = None,
) -> Derived:
    """eq:adv_approx to eq:update_alpha_new2 by explicit alpha, r(alpha) = sum_k alpha_k d_k and autograd."""
    recipe = wordward.RECIPES[name]
    table = model.words.table.weight.detach()
    vectors, time = model.words.table.weight[text], len(text)
    clean = logits_at(model, vectors).detach()

    def loss(r: Tensor) -> Tensor:
        moved = logits_at(model, vectors + r)
        if recipe.objective == "kl":
            return divergence(clean, moved)
        return negative_log_likelihood(moved, label)

    # D: the identity, or unit directions toward candidates
    candidates: list[list[int]] | None = None
    if recipe.space == "free":
        d = torch.eye(DIM, dtype=torch.float64).expand(time, DIM, DIM)
    else:
        words = list(range(1, SIZE)) if allowed is None else allowed
        candidates = [neighbours(word, table, k, words) for word in text]
        d = torch.zeros(time, len(candidates[0]), DIM, dtype=torch.float64)
        for t, word in enumerate(text):
            for j, other in enumerate(candidates[t]):
                if other != word:
                    d[t, j] = (table[other] - table[word]) / (table[other] - table[word]).norm()

    def r_of(alpha: Tensor) -> Tensor:
        return torch.stack([sum(alpha[t, j] * d[t, j] for j in range(d.shape[1])) for t in range(time)])  # type: ignore[arg-type]

    # the point where the gradient is taken
    alpha = torch.zeros(d.shape[:2], dtype=torch.float64)
    if recipe.objective == "kl" and recipe.follows_gradient:
        for t in range(time):
            alpha[t] = noise[t] if candidates is None else 1.0
            alpha[t] *= xi / r_of(alpha)[t].norm()
    g = torch.zeros_like(alpha)
    for _ in range(iterations if recipe.follows_gradient else 0):
        alpha.requires_grad_()
        (g,) = torch.autograd.grad(loss(r_of(alpha)), alpha)
        alpha = g * xi * math.sqrt(time) / r_of(g).norm()  # where a next iteration would start

    # which directions, how strongly
    chosen = torch.zeros_like(g)
    for t in range(time):
        others = [j for j in range(d.shape[1]) if candidates is None or candidates[t][j] != text[t]]
        if recipe.choice == "steepest":
            chosen[t] = g[t]
        elif recipe.choice == "at_random":
            chosen[t] = noise[t]
        elif recipe.choice == "best_one":
            best = max(others, key=lambda j: float(g[t, j]))
            chosen[t, best] = g[t, best]
        else:
            chosen[t, max(others, key=lambda j: float(noise[t, j]))] = 1.0

    # how long
    if normalization == "authors" and recipe.space == "words":
        alpha = torch.stack([chosen[t] / chosen[t].norm() for t in range(time)])
        r = r_of(alpha)
        return Derived(epsilon * r / r.norm(), alpha, candidates, loss)
    alpha = epsilon * chosen / chosen.norm()
    return Derived(r_of(alpha), alpha, candidates, loss)


def check(out: wordward.Outcome, expected: list[Derived]) -> None:
    """An outcome against what was derived for each text."""
    for row, one in enumerate(expected):
        time = len(TEXTS[row])
        torch.testing.assert_close(out.perturbation[row, :time], one.r)
        torch.testing.assert_close(out.strengths[row, :time], one.alpha)
        assert not out.perturbation[row, time:].any()
        assert not out.strengths[row, time:].any()
        if one.candidates is None:
            assert out.candidates is None
        else:
            assert out.candidates is not None
            assert out.candidates[row, :time].tolist() == one.candidates


# ---------------------------------------------------------------------------------- all methods, one table


@pytest.mark.parametrize("normalization", ["paper", "authors"])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_its_equation(name: str, kind: str, normalization: str):
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
    torch.testing.assert_close(
        torch.autograd.grad(out.loss, parameters), torch.autograd.grad(loss, parameters)
    )
    torch.testing.assert_close(out.clean, model(ids))
    torch.testing.assert_close(out.ids, ids)
    assert out.clean.requires_grad == (name in LABELLED)
    assert not out.perturbation.requires_grad
    assert not out.strengths.requires_grad


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", WORDS)
def test_without_k_the_whole_vocabulary_counts(name: str, kind: str):
    model, ids, labels = make(kind), padded(TEXTS), labels_for(kind)
    allowed = list(range(1, SIZE))
    noise = noise_for(name, len(allowed))
    out = wordward.adversary(model, name, epsilon=2.5, k=None)(lambda: model(ids), labels, noise=noise)
    rows = zip(TEXTS, CLASS_LABELS if kind == "classifier" else TAG_LABELS, noise, strict=True)
    check(out, [derive(name, model, *row, epsilon=2.5, k=None, allowed=allowed) for row in rows])


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
        wordward.adversary(model, name, epsilon=1.0, k=3, average=average)(
            lambda: model(ids), labels, noise=noise
        )
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


# ---------------------------------------------------------------------------------------- padding, lengths


@pytest.mark.parametrize("normalization", ["paper", "authors"])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", METHODS)
def test_a_text_alone_and_in_a_padded_batch_are_the_same(name: str, kind: str, normalization: str):
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


class Everywhere(nn.Module):
    """A model that reads every position, padding too, so that only the mask protects it."""

    def __init__(self, tags: bool, padding: int | None = None) -> None:
        super().__init__()
        self.words = nn.Embedding(SIZE, DIM, padding_idx=padding)
        self.out = nn.Linear(DIM, CLASSES)
        self.tags = tags
        self.double()

    def mix(self, vectors: Tensor) -> Tensor:
        mixed = torch.tanh(vectors)
        return mixed + mixed.mean(1, keepdim=True)

    def forward(self, ids: Tensor) -> Tensor:
        mixed = self.mix(self.words(ids))
        return self.out(mixed if self.tags else mixed.mean(1))


@pytest.mark.parametrize("normalization", ["paper", "authors"])
@pytest.mark.parametrize("tags", [False, True])
@pytest.mark.parametrize("k", [3, None])
@pytest.mark.parametrize("name", METHODS)
def test_padding_never_moves_and_never_counts(name: str, k: int | None, tags: bool, normalization: str):
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
        torch.testing.assert_close(out.strengths.norm(dim=-1), mask.double())
        torch.testing.assert_close(out.perturbation.flatten(1).norm(dim=1), torch.full((3,), 2.0).double())
    if tags:  # neither labels nor predictions at padding count
        other = labels.masked_fill(~mask, 1)
        chance = torch.where(mask.unsqueeze(-1), noise, 7.0)
        again = adv(lambda: model(ids), other, mask=mask, noise=chance)
        torch.testing.assert_close(again.loss, out.loss)
        torch.testing.assert_close(again.perturbation, out.perturbation)
        loss = (
            sum(
                divergence(out.clean[row, : len(t)], out.perturbed[row, : len(t)])
                for row, t in enumerate(TEXTS)
            )
            if adv.method.recipe.objective == "kl"
            else sum(
                negative_log_likelihood(out.perturbed[row, : len(t)], TAG_LABELS[row])
                for row, t in enumerate(TEXTS)
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
def test_the_scale_of_the_loss_does_not_matter(name: str, scale: float, normalization: str):
    model = Everywhere(False).float()
    ids, labels = padded(TEXTS), labels_for("classifier")
    losses: dict[str, Any] = {"label_loss": objective.label_loss, "kl": objective.kl}
    function = losses[wordward.RECIPES[name].objective]
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


# ------------------------------------------------------------------------------------------------ the losses


@pytest.mark.parametrize("average", ["sentences", "tokens"])
def test_kl_is_that_of_torch_distributions(average: objective.Average):
    clean, moved = torch.randn(4, 3, 5).double(), torch.randn(4, 3, 5).double()
    mask = torch.tensor([[True] * 3, [True, True, False], [True, False, False], [False] * 3])
    each = torch.distributions.kl_divergence(
        torch.distributions.Categorical(logits=clean), torch.distributions.Categorical(logits=moved)
    )
    torch.testing.assert_close(objective.kl(moved[:, 0], clean[:, 0]), each[:, 0].mean())
    expected = (each * mask).sum() / (4 if average == "sentences" else 6)
    torch.testing.assert_close(objective.kl(moved, clean, mask, average=average), expected)
    whole = each.sum() / (4 if average == "sentences" else 12)
    torch.testing.assert_close(objective.kl(moved, clean, average=average), whole)


def test_kl_has_neither_value_nor_gradient_where_nothing_moved():
    logits = torch.randn(4, 5).double().requires_grad_()
    loss = objective.kl(logits, logits.detach())
    assert float(loss.detach()) == pytest.approx(0.0, abs=1e-15)
    (gradient,) = torch.autograd.grad(loss, logits)
    torch.testing.assert_close(gradient, torch.zeros_like(logits))


def test_losses_of_half_precision_are_taken_in_single():
    logits = torch.tensor([[40.0, 0.0, 0.0]])
    labels = torch.tensor([1])
    for half in (torch.float16, torch.bfloat16):
        assert objective.label_loss(logits.to(half), labels).dtype == torch.float32
        assert objective.kl(logits.to(half), torch.zeros(1, 3, dtype=half)).dtype == torch.float32


@pytest.mark.parametrize("average", ["sentences", "tokens"])
def test_a_tagged_sentence_counts_its_labelled_tokens(average: objective.Average):
    logits = torch.randn(2, 3, 4).double()
    labels = torch.tensor([[1, -100, 3], [0, 2, 2]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    each = [
        negative_log_likelihood(logits[b, t], int(labels[b, t])) for b, t in ((0, 0), (0, 2), (1, 0), (1, 1))
    ]
    expected = sum(each) / (2 if average == "sentences" else 4)
    assert isinstance(expected, Tensor)
    torch.testing.assert_close(objective.label_loss(logits, labels, mask, average=average), expected)
    nothing = objective.label_loss(logits, labels, torch.zeros_like(mask), average=average)
    assert float(nothing) == 0.0


def test_tokens_without_label_are_still_moved_but_do_not_count():
    model, ids = make("tagger"), padded(TEXTS)
    tags = [[0, -100, 1, -100], [-100, 0], [1]]
    out = wordward.advt(model, epsilon=1.5)(lambda: model(ids), padded(tags, -100))
    expected = [
        derive("advt", model, text, label, torch.zeros(4, DIM), epsilon=1.5)
        for text, label in zip(TEXTS, tags, strict=True)
    ]
    check(out, expected)
    total = sum(one.loss(one.r) for one in expected) / 3
    assert isinstance(total, Tensor)
    torch.testing.assert_close(out.loss, total)
    assert out.perturbation[0, 1].any()


USER_LOSSES: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Tensor]] = {
    "class weights": (
        nn.CrossEntropyLoss(weight=torch.tensor([1.0, 5.0, 0.2]).double()),
        torch.tensor(CLASS_LABELS),
    ),
    "label smoothing": (nn.CrossEntropyLoss(label_smoothing=0.3), torch.tensor(CLASS_LABELS)),
    "several labels at once": (
        F.binary_cross_entropy_with_logits,
        torch.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]).double(),
    ),
    "scores": (lambda logits, scores: (logits[:, 0] - scores).square().mean(), torch.randn(3).double()),
}


@pytest.mark.parametrize("name", ["advt", "iadvt"])
@pytest.mark.parametrize("case", list(USER_LOSSES))
def test_a_loss_of_the_users_own(case: str, name: str):
    loss, labels = USER_LOSSES[case]
    model, ids = make("classifier"), padded(TEXTS)
    adv = wordward.adversary(model, name, epsilon=2.0, k=3, loss=loss)
    out = adv(lambda: model(ids), labels)
    leaves = [model.words.table.weight.detach()[text].requires_grad_() for text in TEXTS]
    clean = torch.stack([logits_at(model, leaf) for leaf in leaves])
    gradients = torch.autograd.grad(loss(clean, labels), leaves)
    padded_gradients = torch.zeros(3, 6, DIM, dtype=torch.float64)
    for row, gradient in enumerate(gradients):
        padded_gradients[row, : len(gradient)] = gradient
        if name == "advt":
            torch.testing.assert_close(
                out.perturbation[row, : len(gradient)], 2.0 * gradient / gradient.norm()
            )
    torch.testing.assert_close(adv.perturb(ids, padded_gradients, ids != PAD).perturbation, out.perturbation)
    moved = torch.stack(
        [
            logits_at(model, model.words.table.weight[text] + out.perturbation[row, : len(text)])
            for row, text in enumerate(TEXTS)
        ]
    )
    torch.testing.assert_close(out.loss, loss(moved, labels))


def test_a_divergence_of_the_users_own():
    model, ids = make("classifier"), padded(TEXTS)

    def squares(logits: Tensor, clean: Tensor) -> Tensor:
        assert not clean.requires_grad
        return (logits.softmax(-1) - clean.softmax(-1)).square().sum()

    out = wordward.vat(model, epsilon=1.0, loss=squares)(lambda: model(ids))
    torch.testing.assert_close(out.loss, squares(out.perturbed, out.clean))


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", ["advt", "iadvt", "iadvt-best", "vat", "ivat", "ivat-best"])
def test_a_small_step_raises_the_loss(name: str, kind: str):
    model, ids, labels = make(kind), padded(TEXTS), labels_for(kind)
    adv = wordward.adversary(model, name, epsilon=1e-3, k=3, xi=1e-2)
    out = adv(lambda: model(ids), labels)
    if adv.method.recipe.objective == "label_loss":
        before = adv.loss(out.clean, labels, out.mask)
        first_order = (out.loss - before).item()
        assert first_order > 0
        back = adv.tap.run(lambda: model(ids), -out.perturbation).logits
        assert adv.loss(back, labels, out.mask).item() < before.item()
    else:
        chance = "random-kl" if name == "vat" else "ivat-rand"
        random = wordward.adversary(model, chance, epsilon=1e-3, k=3)
        mean = sum(random(lambda: model(ids)).loss.item() for _ in range(10)) / 10
        assert out.loss.item() > mean > 0


# --------------------------------------------------------------------------------------- in a user's training


@pytest.mark.parametrize("name", METHODS)
def test_gradients_that_a_user_accumulates_stay(name: str):
    model, ids = make("classifier"), padded(TEXTS)
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 0.5)
    before = [parameter.grad for parameter in model.parameters()]
    out = wordward.adversary(model, name, k=3)(lambda: model(ids), labels_for("classifier"))
    assert all(p.grad is g for p, g in zip(model.parameters(), before, strict=True))
    assert all(bool((p.grad == 0.5).all()) for p in model.parameters() if p.grad is not None)
    out.loss.backward()
    assert not all(bool((p.grad == 0.5).all()) for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("frozen", ["table", "everything"])
@pytest.mark.parametrize("name", METHODS)
def test_frozen_embeddings_are_perturbed_all_the_same(name: str, frozen: str):
    model, ids, labels, noise = (
        make("classifier"),
        padded(TEXTS),
        labels_for("classifier"),
        noise_for(name, 3),
    )
    adv = wordward.adversary(model, name, k=3)
    free = adv(lambda: model(ids), labels, noise=noise)
    (model if frozen == "everything" else model.words).requires_grad_(False)
    out = adv(lambda: model(ids), labels, noise=noise)
    torch.testing.assert_close(out.perturbation, free.perturbation)
    torch.testing.assert_close(out.loss, free.loss)
    if frozen == "everything":  # a pass keeps a graph only for a gradient that is taken
        assert out.clean.requires_grad == (name in ("advt", "iadvt", "iadvt-best"))
        assert not out.loss.requires_grad
    if frozen == "table":
        out.loss.backward()
        assert model.words.table.weight.grad is None
        assert all(p.grad is not None for p in model.lstm.parameters())


@pytest.mark.parametrize("k", [3, None])
@pytest.mark.parametrize("name", METHODS)
def test_ids_may_be_of_32_bits(name: str, k: int | None):
    model, ids, labels = make("classifier"), padded(TEXTS), labels_for("classifier")
    noise = noise_for(name, k or SIZE - 1)
    adv = wordward.adversary(model, name, k=k)
    long, short = (
        adv(lambda ids=ids: model(ids), labels, noise=noise).perturbation for ids in (ids, ids.int())
    )
    assert torch.equal(long, short)


def test_it_works_where_gradients_are_switched_off():
    model, ids, labels = make("classifier"), padded(TEXTS), labels_for("classifier")
    adv = wordward.iadvt(model, k=3)
    expected = adv(lambda: model(ids), labels).perturbation
    with torch.no_grad():
        torch.testing.assert_close(adv(lambda: model(ids), labels).perturbation, expected)


def test_both_graphs_can_be_walked_back_in_one_sum():
    """The three lines of the README."""
    model, ids, labels = make("classifier"), padded(TEXTS), labels_for("classifier")
    out = wordward.iadvt(model, k=3)(lambda: model(ids), labels)
    parameters = list(model.parameters())
    separate = [
        torch.autograd.grad(loss, parameters, retain_graph=True)
        for loss in (F.cross_entropy(model(ids), labels), out.loss)
    ]
    (F.cross_entropy(out.clean, labels) + out.loss).backward()
    for parameter, one, two in zip(parameters, *separate, strict=True):
        torch.testing.assert_close(parameter.grad, one + two)


class Precise(nn.Module):
    """Words, a matrix product that autocast takes in half precision, and logits."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 16)
        self.net = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 3))

    def forward(self, ids: Tensor) -> Tensor:
        return self.net(self.words(ids)).mean(1)


@pytest.mark.parametrize("k", [5, None])
@pytest.mark.parametrize("name", METHODS)
def test_autocast_gives_nearly_the_same_perturbation(name: str, k: int | None):
    model, ids, labels = Precise(), torch.randint(50, (4, 6)), torch.tensor([0, 1, 2, 1])
    adv = wordward.adversary(model, name, epsilon=5.0, k=k)
    last = 16 if adv.method.recipe.space == "free" else k or 50
    noise = torch.randn(4, 6, last)
    single = adv(lambda: model(ids), labels, noise=noise)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = adv(lambda: model(ids), labels, noise=noise)
    assert mixed.perturbed.dtype == torch.bfloat16
    assert mixed.perturbation.dtype == mixed.strengths.dtype == mixed.loss.dtype == torch.float32
    if not name.endswith("best"):  # two neighbours may be equally good
        cosine = F.cosine_similarity(single.perturbation.flatten(1), mixed.perturbation.flatten(1))
        assert (cosine > (0.9 if "vat" in name else 0.99)).all()
    mixed.loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("k", [5, None])
@pytest.mark.parametrize("name", METHODS)
def test_models_of_other_precision(name: str, k: int | None, dtype: torch.dtype):
    model, ids, labels = Precise().to(dtype), torch.randint(50, (4, 6)), torch.tensor([0, 1, 2, 1])
    out = wordward.adversary(model, name, epsilon=5.0, k=k, power_iterations=2)(lambda: model(ids), labels)
    expected = torch.float64 if dtype == torch.float64 else torch.float32
    assert out.perturbation.dtype == out.strengths.dtype == out.loss.dtype == expected
    assert out.perturbed.dtype == dtype
    length = out.perturbation if out.candidates is None else out.strengths
    torch.testing.assert_close(length.flatten(1).norm(dim=1), torch.full((4,), 5.0, dtype=expected))


@pytest.mark.parametrize("autocast", [False, True])
def test_small_gradients_survive_half_precision(autocast: bool):
    """Of 2^-24 and less nothing would be left."""
    model, ids, labels = Precise(), torch.randint(50, (4, 6)), torch.tensor([0, 1, 2, 1])
    model = model if autocast else model.half()

    def tiny(logits: Tensor, labels: Tensor) -> Tensor:
        return objective.label_loss(logits, labels) * 1e-6

    with torch.autocast("cpu", torch.float16, enabled=autocast):
        plain, small = (
            wordward.advt(model, epsilon=5.0, loss=loss)(lambda: model(ids), labels).perturbation
            for loss in (None, tiny)
        )
    assert (F.cosine_similarity(plain.flatten(1), small.flatten(1)) > 0.99).all()


class Count(torch.autograd.Function):
    """The identity that counts how often a backward pass walks through it."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, counter: list[int]) -> Tensor:
        ctx.counter = counter
        return value.clone()

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        ctx.counter[0] += 1
        return grad_outputs[0], None


class Counting(Everywhere):
    """Counts forward passes, backward passes, and those backward passes that reach the weights."""

    def __init__(self) -> None:
        super().__init__(tags=False)
        self.forwards, self.backwards, self.reached = [0], [0], [0]

    def forward(self, ids: Tensor) -> Tensor:
        self.forwards[0] += 1
        vectors = Count.apply(self.words(ids), self.backwards)
        weight = Count.apply(self.out.weight, self.reached)
        assert isinstance(vectors, Tensor)
        return torch.tanh(vectors).mean(1) @ weight.T  # type: ignore[operator]

    @property
    def counts(self) -> tuple[int, int, int]:
        return self.forwards[0], self.backwards[0], self.reached[0]


@pytest.mark.parametrize(
    ("name", "in_the_call", "after_backward"),
    [
        # forward passes, backward passes through the vectors, of which to the weights
        ("random", (2, 0, 0), (2, 2, 2)),
        ("advt", (2, 1, 0), (2, 3, 2)),
        ("iadvt", (2, 1, 0), (2, 3, 2)),
        ("random-kl", (2, 0, 0), (2, 1, 1)),
        ("vat", (3, 1, 0), (3, 2, 1)),
        ("ivat", (3, 1, 0), (3, 2, 1)),
    ],
)
def test_the_number_of_passes(
    name: str, in_the_call: tuple[int, int, int], after_backward: tuple[int, int, int]
):
    model, ids, labels = Counting(), padded(TEXTS), labels_for("classifier")
    adv = wordward.adversary(model, name, k=3)
    assert model.counts == (0, 0, 0)
    out = adv(lambda: model(ids), labels)
    assert model.counts == in_the_call
    loss = out.loss
    if adv.method.recipe.objective == "label_loss":
        loss = loss + F.cross_entropy(out.clean, labels)
    else:
        assert not out.clean.requires_grad
    loss.backward()
    assert model.counts == after_backward
    beyond_the_clean_pass = in_the_call[0] - (adv.method.recipe.objective == "label_loss")
    assert adv.method.recipe.forwards == beyond_the_clean_pass


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", METHODS)
def test_a_gpu_finds_what_a_cpu_finds_also_in_eval_mode(name: str, kind: str):
    """cuDNN's LSTM refuses a backward pass in eval mode."""
    found = []
    for device in ("cpu", "cuda"):
        model, ids = make(kind).to(device), padded(TEXTS).to(device)
        adv = wordward.adversary(model, name, epsilon=2.0, k=3)
        noise, labels = noise_for(name, 3).to(device), labels_for(kind).to(device)
        out = adv(lambda model=model, ids=ids: model(ids), labels, noise=noise)
        found.append([out.loss.detach().cpu(), out.perturbation.cpu(), out.strengths.cpu()])
    torch.testing.assert_close(found[0], found[1])


@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_result(name: str):
    model, ids, labels = make("tagger").train(), padded(TEXTS), labels_for("tagger")
    adv = wordward.adversary(model, name, k=3, site=model.words.dropout)
    outs = []
    for chance in (7, 7, 8):
        torch.manual_seed(chance)
        outs.append(adv(lambda: model(ids), labels))
    assert torch.equal(outs[0].perturbation, outs[1].perturbation)
    assert torch.equal(outs[0].loss, outs[1].loss)
    assert not torch.equal(outs[0].loss, outs[2].loss)


@pytest.mark.parametrize("name", METHODS)
def test_noise_and_gradients_are_taken_in_the_precision_of_the_model(name: str):
    model, ids, labels = make("classifier"), padded(TEXTS), labels_for("classifier")
    adv = wordward.adversary(model, name, k=3)
    out = adv(lambda: model(ids), labels, noise=noise_for(name, 3).float())
    assert out.perturbation.dtype == out.strengths.dtype == torch.float64
    gradient = torch.randn(3, 6, DIM, requires_grad=True)
    found = adv.perturb(ids, gradient, ids != PAD)
    assert found.perturbation.dtype == found.strengths.dtype == torch.float64
    assert not found.perturbation.requires_grad


def test_random_noise_is_gaussian_and_new_each_time():
    model, ids = make("classifier"), torch.full((50, 8), 3)
    adv = wordward.adversary(model, "random-kl", epsilon=math.sqrt(8 * DIM))
    first, second = (adv(lambda: model(ids)).perturbation for _ in range(2))
    assert not torch.equal(first, second)
    assert float(first.mean()) == pytest.approx(0.0, abs=0.05)
    assert float(first.pow(4).mean()) == pytest.approx(3.0, abs=0.4)  # as of a Gaussian


def test_the_site_may_be_the_dropout_after_the_embedding():
    """The authors add r there; directions stay those of the table, without dropout."""
    model, ids, labels = make("classifier").train(), padded(TEXTS), labels_for("classifier")
    before, after = (
        wordward.advt(model, site=site)(lambda: model(ids), labels).perturbation[ids != PAD]
        for site in (None, "words.dropout")
    )
    assert (before == 0).any()  # a dropped number has no gradient
    assert (after != 0).all()
    adv = wordward.iadvt(model, epsilon=2.0, k=3, site="words.dropout")
    out = adv(lambda: model(ids), labels)
    table = model.words.table.weight.detach()
    assert out.candidates is not None
    for row, text in enumerate(TEXTS):
        for t, word in enumerate(text):
            r = torch.zeros(DIM, dtype=torch.float64)
            for alpha, other in zip(out.strengths[row, t], out.candidates[row, t], strict=True):
                r += alpha * (table[other] - table[word]) / (table[other] - table[word]).norm()
            torch.testing.assert_close(out.perturbation[row, t], r)


# ----------------------------------------------------------------------------------------- nearest words, when


def searched(refresh: Any, calls: int, *, told: tuple[int, ...] = ()) -> list[int]:
    """The calls at which nearest words were searched anew, seen by a table that changes before each."""
    model, ids = make("classifier"), padded(TEXTS)
    adv = wordward.iadvt(model, k=3, refresh=refresh)
    seen, known = [], None
    for call in range(calls):
        nn.init.normal_(model.words.table.weight)
        if call in told:
            adv.refresh()
        out = adv(lambda: model(ids), labels_for("classifier"))
        assert out.candidates is not None
        here = out.candidates[ids != PAD].tolist()
        table = model.words.table.weight.detach()
        now = [neighbours(word, table, 3, list(range(1, SIZE))) for text in TEXTS for word in text]
        if here == now:
            seen.append(call)
            known = now
        else:
            assert here == known, "neither the nearest words of now nor those of the last search"
    return seen


@pytest.mark.parametrize(
    ("refresh", "told", "expected"),
    [
        ("batch", (), [0, 1, 2, 3, 4, 5]),
        (1, (), [0, 1, 2, 3, 4, 5]),
        (3, (), [0, 3]),
        (3, (2,), [0, 2, 5]),
        ("epoch", (), [0]),
        ("epoch", (4,), [0, 4]),
        ("auto", (), [0]),  # every 100 steps on a CPU
    ],
)
def test_nearest_words_are_searched_when_they_should_be(
    refresh: Any, told: tuple[int, ...], expected: list[int]
):
    assert searched(refresh, 6, told=told) == expected


def test_on_a_cpu_nearest_words_are_searched_every_hundred_steps():
    adv = wordward.iadvt(make("classifier"), k=3)
    first, searches = adv.space(torch.tensor([[3]])).candidates, []
    for step in range(201):
        adv.tick()
        if adv._nearest is None:
            searches.append(step)
        adv.space(torch.tensor([[3]]))
    assert first is not None
    assert searches == [0, 100, 200]


def test_elsewhere_than_on_a_cpu_nearest_words_are_searched_each_batch():
    model = make("classifier")
    adv = wordward.iadvt(model, k=3, epsilon=1.0)
    for _ in range(3):
        adv.space(torch.tensor([[3]]))
        assert adv._nearest is not None
        model.to("meta")
        adv.tick()
        assert adv._nearest is None
        model.to_empty(device="cpu")
        nn.init.normal_(model.words.table.weight)


def test_the_directions_follow_the_table_even_where_the_candidates_are_kept():
    model, ids = make("classifier"), torch.tensor([[3]])
    adv = wordward.adversary(model, "iadvt-rand", epsilon=1.0, k=3, refresh="epoch")
    adv(lambda: model(ids), torch.tensor([0]))
    nn.init.normal_(model.words.table.weight)
    out = adv(lambda: model(ids), torch.tensor([0]))
    assert out.candidates is not None
    table = model.words.table.weight.detach()
    toward = table[out.candidates[0, 0, out.strengths[0, 0].argmax()]] - table[3]
    torch.testing.assert_close(out.perturbation[0, 0], toward / toward.norm())


@pytest.mark.parametrize("name", METHODS)
def test_the_default_epsilon_is_the_papers_times_the_deviation_of_the_table(name: str):
    model = make("classifier")
    with torch.no_grad():
        model.words.table.weight.mul_(3.0).add_(7.0)
    table = model.words.table.weight.detach()
    rms = math.sqrt(sum(float((table[:, j] - table[:, j].mean()).square().mean()) for j in range(DIM)) / DIM)
    paper = 15.0 if name in WORDS else 5.0
    assert wordward.adversary(model, name, k=3).epsilon == pytest.approx(paper * rms)
    assert wordward.adversary(model, name, k=3, epsilon=0.5).epsilon == 0.5


def test_euclidean_neighbours_on_request():
    model = make("classifier")
    out = wordward.iadvt(model, k=4, metric="euclidean")(
        lambda: model(torch.tensor([[3]])), torch.tensor([0])
    )
    table = model.words.table.weight.detach()
    others = [word for word in range(1, SIZE) if word != 3]
    assert out.candidates is not None
    assert (
        out.candidates[0, 0].tolist()
        == sorted(others, key=lambda word: float((table[word] - table[3]).norm()))[:4]
    )


# ------------------------------------------------------------------------------------------- names and errors


def test_the_defaults_are_the_papers():
    assert MethodSettings() == MethodSettings(
        epsilon=None,
        regularizer_weight=1.0,
        k=10,
        xi=1.0,
        power_iterations=1,
        metric="cosine",
        refresh="auto",
        normalization="paper",
        average="sentences",
    )


def test_the_four_methods_have_functions_of_their_own():
    model = make("classifier")
    for name in ("advt", "vat", "iadvt", "ivat"):
        adv = getattr(wordward, name)(model, k=3, epsilon=0.1)
        assert adv.method.name == name
        assert adv.method.settings == MethodSettings(k=3, epsilon=0.1)


def test_sums_of_methods():
    settings = MethodSettings(epsilon=1.0)
    assert parse_methods("baseline") == ()
    one = parse_methods("iAdvT", settings)
    two = parse_methods("iadvt + ivat", settings)
    assert [method.name for method in two] == ["iadvt", "ivat"]
    assert two[0] == one[0]
    assert all(method.settings is settings for method in two)
    assert parse_methods("vat")[0].settings == MethodSettings()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("iadv", r"unknown method 'iadv'; known are baseline, random, .*, and sums such as iadvt\+ivat"),
        ("advt+", "unknown method ''"),
        ("", "unknown method ''"),
        ("advt+advt", "names a method twice"),
        ("baseline+advt", "baseline"),
    ],
)
def test_names_that_are_none(names: str, message: str):
    with pytest.raises(ValueError, match=message):
        parse_methods(names)


@pytest.mark.parametrize("name", ["iadvt+ivat", "baseline"])
def test_an_adversary_is_of_one_method(name: str):
    with pytest.raises(ValueError, match="one method at a time"):
        wordward.adversary(make("classifier"), name)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"candidates": torch.tensor([], dtype=torch.long)}, "no word may be pointed to"),
        ({"epsilon": -1.0}, "epsilon must be greater than 0, but is -1.0"),
        ({"epsilon": 0.0}, "epsilon must be greater than 0, but is 0.0"),
        ({"epsilon": math.nan}, "epsilon must be greater than 0, but is nan"),
        ({"epsilon": math.inf}, "epsilon must be .* but is inf"),
        ({"xi": 0.0}, "xi must be greater than 0"),
        ({"k": 0}, "k must be greater than 0"),
        ({"power_iterations": 0}, "power_iterations must be greater than 0"),
        ({"regularizer_weight": -0.1}, "regularizer_weight must be 0 or more, but is -0.1"),
        ({"refresh": "never"}, "refresh must be auto, batch, epoch or a number of steps, but is 'never'"),
        ({"refresh": 0}, "refresh must be"),
        ({"metric": "manhattan"}, "metric must be cosine or euclidean, but is 'manhattan'"),
        ({"normalization": "author"}, "normalization must be paper or authors, but is 'author'"),
        ({"average": "token"}, "average must be sentences or tokens, but is 'token'"),
        (
            {"k": 12},
            "k must be less than the 12 words that may be pointed to, but is 12; k=None takes them all",
        ),
        ({"candidates": torch.tensor([3, 13])}, "candidates must be ids from 0 to 12, but go from 3 to 13"),
        ({"candidates": torch.tensor([-1, 3])}, "candidates must be ids from 0 to 12, but go from -1 to 3"),
        ({"candidates": torch.tensor([0]), "k": None}, "no word may be pointed to"),
        ({"candidates": torch.tensor([1.0, 2.0]), "k": 1}, "candidates must be .*ids"),
        ({"candidates": torch.ones(13, dtype=torch.bool), "k": 1}, "candidates must be .*ids"),
    ],
)
def test_settings_that_no_method_can_use(setting: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        wordward.iadvt(make("classifier"), **setting)


def test_largest_k_and_smallest_weight():
    model, ids = make("classifier"), padded(TEXTS)
    adv = wordward.iadvt(model, k=11, regularizer_weight=0.0)
    out = adv(lambda: model(ids), labels_for("classifier"))
    assert out.loss.item() == 0.0
    assert out.candidates is not None
    assert all(
        sorted([*row.tolist(), int(word)]) == list(range(1, SIZE))
        for row, word in zip(out.candidates[ids != PAD], ids[ids != PAD], strict=True)
    )


def test_a_misspelt_setting_is_named():
    with pytest.raises(TypeError, match="epsilom"):
        wordward.advt(make("classifier"), epsilom=1.0)


@pytest.mark.parametrize("name", LABELLED)
def test_missing_labels(name: str):
    model, ids = make("classifier"), padded(TEXTS)
    with pytest.raises(ValueError, match=f"{name} raises the label loss, so it needs `labels`"):
        wordward.adversary(model, name, k=3)(lambda: model(ids))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (torch.zeros(2, dtype=torch.long), r"2 labels came for 3 texts.*\(batch, time\), here \(3, 6\)"),
        (torch.zeros(3, 6, dtype=torch.long), r"whole numbers of shape \(3,\) for logits of shape \(3, 3\)"),
        (torch.zeros(3), r"are torch.float32 of shape \(3,\).*your own function as `loss=`"),
    ],
)
def test_labels_of_the_wrong_shape(labels: Tensor, message: str):
    model, ids = make("classifier"), padded(TEXTS)
    with pytest.raises(ValueError, match=message):
        wordward.advt(model)(lambda: model(ids), labels)


def test_tags_of_the_wrong_shape():
    model, ids = make("tagger"), padded(TEXTS)
    with pytest.raises(ValueError, match=r"whole numbers of shape \(3, 6\)"):
        wordward.advt(model)(lambda: model(ids), labels_for("tagger")[:, :4])


@pytest.mark.parametrize("name", ["advt", "vat", "random", "random-kl"])
def test_time_first_ids_are_refused(name: str):
    """Lengths over a 'sentence' would be over one column of the batch."""
    model, ids = make("classifier"), padded(TEXTS)
    with pytest.raises(ValueError, match=r"ids are read as \(batch, time\), here \(6, 3\)"):
        wordward.adversary(model, name)(
            lambda: model.head(model.lstm(model.words(ids.T).transpose(0, 1))[0][:, -1]),
            labels_for("classifier"),
        )


@pytest.mark.parametrize("name", ["random", "vat", "iadvt-rand"])
def test_noise_and_masks_of_the_wrong_shape(name: str):
    model, ids = make("classifier"), padded(TEXTS)
    adv = wordward.adversary(model, name, k=3)
    last = 3 if name in WORDS else DIM
    with pytest.raises(ValueError, match=rf"noise must be \(3, 6, {last}\), but is \(3, 6, 9\)"):
        adv(lambda: model(ids), labels_for("classifier"), noise=torch.zeros(3, 6, 9))
    with pytest.raises(ValueError, match=r"mask must be \(3, 6\) like the ids, but is \(3, 5\)"):
        adv(lambda: model(ids), labels_for("classifier"), mask=torch.ones(3, 5))


def test_a_loss_that_is_not_one_number():
    model, ids = make("classifier"), padded(TEXTS)
    loss = nn.CrossEntropyLoss(reduction="none")
    for name in ("advt", "random"):
        with pytest.raises(
            ValueError, match=r"the loss must be one number for the batch, but has shape \(3,\)"
        ):
            wordward.adversary(model, name, loss=loss)(lambda: model(ids), labels_for("classifier"))
