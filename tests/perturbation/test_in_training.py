"""A method inside a user's own training: gradients, passes, precision, frozen tables."""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from counting import Count
from derivation import (
    CLASSES,
    DIM,
    METHODS,
    MODELS,
    PAD,
    SIZE,
    TEXTS,
    Everywhere,
    labels_for,
    make,
    noise_for,
    padded,
)
from torch import Tensor, nn

import wordward
from wordward.perturbation import objective
from wordward.support.errors import ModelError


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
    long, short = (adv(lambda ids=ids: model(ids), labels, noise=noise).perturbation for ids in (ids, ids.int()))
    assert torch.equal(long, short)


def test_it_works_where_gradients_are_switched_off():
    model, ids, labels = make("classifier"), padded(TEXTS), labels_for("classifier")
    adv = wordward.iadvt(model, k=3)
    expected = adv(lambda: model(ids), labels).perturbation
    with torch.no_grad():
        torch.testing.assert_close(adv(lambda: model(ids), labels).perturbation, expected)


@pytest.mark.parametrize("name", [*METHODS, "pgd", "freelb"])
def test_vectors_that_max_norm_shortens_may_be_those_of_the_output_layer(name: str):
    """The first pass shortens them, and its graph needs them; all is as of a table that was short before."""

    class Tied(nn.Module):
        def __init__(self, max_norm: float | None) -> None:
            super().__init__()
            self.words = nn.Embedding(SIZE, DIM, padding_idx=PAD, max_norm=max_norm).double()

        def forward(self, ids: Tensor) -> Tensor:
            return self.words(ids).tanh().mean(1) @ self.words.weight.T

    ids, labels, found = padded(TEXTS), labels_for("classifier"), []
    torch.manual_seed(0)
    table = torch.randn(SIZE, DIM, dtype=torch.float64)
    short = torch.where(torch.isin(torch.arange(SIZE), ids).unsqueeze(-1), table.renorm(2, 0, 1.0), table)
    for max_norm, weight in ((1.0, table), (None, short)):
        model = Tied(max_norm)
        model.words.weight.data.copy_(weight)
        adv = wordward.adversary(
            model, name, epsilon=2.0, k=3, candidates=torch.isin(torch.arange(SIZE), ids).nonzero()
        )
        noise = noise_for(name, 3) if adv.method.recipe.space == "words" else torch.ones(3, 6, DIM)
        out = adv(lambda model=model: model(ids), labels, noise=noise)
        loss = out.loss + (F.cross_entropy(out.clean, labels) if out.clean.requires_grad else 0)
        loss.backward()
        found.append([out.perturbation, loss.detach(), model.words.weight.grad])
        assert model.words.max_norm == max_norm
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-5)


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


@pytest.mark.parametrize("where", ["model", "autocast", "autocast in the model"])
def test_small_gradients_survive_half_precision(where: str):
    """Of 2^-24 and less nothing would be left. accelerate puts autocast into the model, and takes logits out wide."""
    model, ids, labels = Precise(), torch.randint(50, (4, 6)), torch.tensor([0, 1, 2, 1])
    model = model.half() if where == "model" else model

    def forward() -> Tensor:
        with torch.autocast("cpu", torch.float16, enabled=where != "model"):
            return model(ids).float()

    def tiny(logits: Tensor, labels: Tensor) -> Tensor:
        return objective.label_loss(logits, labels) * 1e-6

    with torch.autocast("cpu", torch.float16, enabled=where == "autocast"):
        plain, small = (
            wordward.advt(model, epsilon=5.0, loss=loss)(forward, labels).perturbation for loss in (None, tiny)
        )
    assert (F.cosine_similarity(plain.flatten(1), small.flatten(1)) > 0.99).all()


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
def test_the_number_of_passes(name: str, in_the_call: tuple[int, int, int], after_backward: tuple[int, int, int]):
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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of what the compiler leaves to Python
@pytest.mark.parametrize("name", ["iadvt", "ivat"])
def test_a_compiled_model_is_perturbed_as_it_is_or_refused(name: str):
    """Once it has run, compiled code may leave hooks out: no loss is silently that of the text unperturbed."""
    torch.compiler.reset()
    model = nn.Sequential(nn.Embedding(SIZE, DIM), nn.Flatten(), nn.Linear(3 * DIM, CLASSES)).double()
    ids, labels = torch.tensor([[3, 4, 5], [6, 7, 8]]), torch.tensor([0, 1])
    labels = labels if wordward.RECIPES[name].needs_labels else None
    before = model(ids).detach()

    def losses(ran: Callable[[Tensor], Tensor]) -> Tensor:
        adv = wordward.adversary(model, name, k=3, epsilon=2.0)
        return torch.stack([adv(lambda: ran(ids), labels).loss.detach() for _ in range(3)])

    fresh = torch.compile(model, backend="eager")
    torch.testing.assert_close(losses(fresh), losses(model))
    torch.testing.assert_close(fresh(ids).detach(), before)
    torch.compiler.reset()  # else it shares the code above, which knows of hooks
    used = torch.compile(model, backend="eager")
    used(ids)
    with pytest.raises(ModelError, match="the embedding did not run in the forward pass"):
        losses(used)
    torch.testing.assert_close(used(ids).detach(), before)
