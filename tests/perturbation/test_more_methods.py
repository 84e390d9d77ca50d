"""The methods beyond the paper: each is its equation, costs what it says, and works wherever a method does."""

import math
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from counting import Count
from derivation import (
    CLASS_LABELS,
    DIM,
    MODELS,
    PAD,
    SIZE,
    TAG_LABELS,
    TEXTS,
    Derived,
    check,
    divergence,
    labels_for,
    logits_at,
    make,
    negative_log_likelihood,
    neighbours,
    noise_for,
    padded,
)
from stepping import Kind, a_step, passes
from torch import Tensor, nn
from untrained import a_run

import wordward
from wordward.cli.main import main
from wordward.datasets import Example
from wordward.explain.explainer import explain
from wordward.models import Classifier, Tagger
from wordward.perturbation import objective
from wordward.perturbation.choice import CHOICES
from wordward.perturbation.recipes import RECIPES, UNMOVED, at_text, parse_methods
from wordward.perturbation.settings import MethodSettings
from wordward.support.distributed import Part, Shares

MORE = [name for name, recipe in RECIPES.items() if recipe.reference is not None]
CLIMBING = ["advt", "vat", "iadvt", "ivat", "iadvt-best", "ivat-best", *MORE]


def derived(
    name: str,
    model: Classifier | Tagger,
    text: list[int],
    label: Any,
    noise: Tensor,
    *,
    epsilon: float,
    size: float,
    steps: int,
    xi: float = 1.0,
    k: int = 3,
) -> tuple[list[Derived], Tensor]:
    """Every r of one sentence whose loss counts, by a plain walk over alpha; and the loss."""
    table = model.words.table.weight.detach()
    vectors, time = model.words.table.weight[text], len(text)
    clean = logits_at(model, vectors).detach()
    word, kind = name.startswith("i"), name.removeprefix("i").split("-")[0]

    def loss(r: Tensor) -> Tensor:
        moved = logits_at(model, vectors + r)
        if kind == "smart":
            return divergence(clean, moved) + divergence(moved, clean)
        return divergence(clean, moved) if kind == "vat" else negative_log_likelihood(moved, label)

    candidates = [neighbours(one, table, k, list(range(1, SIZE))) for one in text] if word else None
    d = torch.eye(DIM, dtype=torch.float64).repeat(time, 1, 1)
    if candidates is not None:
        pairs = [[table[other] - table[one] for other in near] for one, near in zip(text, candidates, strict=True)]
        d = torch.stack([torch.stack([each / each.norm() for each in row]) for row in pairs])

    def r_of(alpha: Tensor) -> Tensor:
        return torch.einsum("tj,tjd->td", alpha, d)

    def slope(alpha: Tensor) -> Tensor:
        leaf = alpha.clone().requires_grad_()
        (g,) = torch.autograd.grad(loss(r_of(leaf)), leaf)
        if name.endswith("-best"):
            return g * F.one_hot(g.argmax(1), g.shape[1])
        if name.endswith("-one"):
            best = max(range(time), key=lambda t: float(g[t].max() if word else g[t].norm()))
            kept = F.one_hot(g[best].argmax(), g.shape[1]) if word else torch.ones(DIM)
            return torch.stack([g[t] * kept * (t == best) for t in range(time)])
        return g

    def step(alpha: Tensor, at: Tensor) -> Tensor:
        g = slope(at)
        alpha = alpha + size * g / g.norm()
        return alpha * min(1.0, epsilon / float(alpha.norm()))

    alpha = torch.zeros(d.shape[:2], dtype=torch.float64)
    walk = []
    if kind in ("pgd", "freelb"):
        uniform = 2 * torch.distributions.Normal(0.0, 1.0).cdf(noise) - 1
        alpha = epsilon / math.sqrt(alpha.numel()) * uniform
        walk.append(alpha)
    for number in range(steps):
        at = alpha
        if number == 0 and kind in ("vat", "smart"):  # KL has no gradient at the text itself
            at = torch.ones_like(alpha) if word else noise
            at = torch.stack([xi * a / (a @ d[t]).norm() for t, a in enumerate(at)])
        alpha = step(alpha, at)
        walk.append(alpha)
    kept = walk[:-1] if kind == "freelb" else walk[-1:]
    found = [Derived(r_of(each), each, candidates, loss) for each in kept]
    return found, torch.stack([loss(one.r) for one in found]).mean()


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", CLIMBING)
def test_every_method_is_its_equation(name: str, kind: str, steps: int):
    """r, alpha, the loss, and its gradient for the weights; the second step is long enough to leave the ball."""
    model, ids, labels, noise = make(kind), padded(TEXTS), labels_for(kind), noise_for(name, 3)
    epsilon, size = 2.5, 2.5 if steps == 1 else 1.4
    adv = wordward.adversary(
        model, name, epsilon=epsilon, k=3, xi=0.3, ascent_steps=steps, step_size=size, regularizer_weight=0.7
    )
    out = adv(lambda: model(ids), labels, mask=ids != PAD, noise=noise)
    rows = zip(TEXTS, CLASS_LABELS if kind == "classifier" else TAG_LABELS, noise, strict=True)
    found = [
        derived(name, model, text, label, chance[: len(text)], epsilon=epsilon, size=size, steps=steps, xi=0.3)
        for text, label, chance in rows
    ]
    check(out, [each[-1] for each, _ in found])
    assert out.perturbation.any()
    loss = 0.7 * torch.stack([each for _, each in found]).mean()
    torch.testing.assert_close(out.loss, loss)
    parameters = list(model.parameters())
    torch.testing.assert_close(torch.autograd.grad(out.loss, parameters), torch.autograd.grad(loss, parameters))
    assert (out.strengths.flatten(1).norm(dim=1) <= epsilon * (1 + 1e-12)).all()
    assert not out.perturbation.requires_grad


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", ["advt", "vat", "iadvt", "ivat", "iadvt-best", "smart"])
def test_one_step_is_the_papers_method_to_the_last_digit(name: str, kind: str):
    model, ids, labels, noise = make(kind), padded(TEXTS), labels_for(kind), noise_for(name, 3)
    asked: list[dict[str, Any]] = [{}, {"ascent_steps": 1}, {"step_size": 9.0}]
    paper, one, long = (
        wordward.adversary(model, name, epsilon=2.0, k=3, **each)(lambda: model(ids), labels, noise=noise)
        for each in asked
    )
    for other in (one, long):
        assert torch.equal(paper.perturbation, other.perturbation)
        assert torch.equal(paper.strengths, other.strengths)
        assert torch.equal(paper.loss, other.loss)


@pytest.mark.parametrize(("steps", "expected"), [(1, 2.0), (2, 2.0), (3, 5 / 3), (10, 0.5)])
def test_the_default_step_reaches_the_edge_from_anywhere(steps: int, expected: float):
    adv = wordward.advt(make("classifier"), epsilon=2.0, ascent_steps=steps)
    assert adv.step_size == pytest.approx(expected)
    assert wordward.adversary(make("classifier"), "random", epsilon=2.0, step_size=0.1).step_size == 2.0


def test_a_step_is_as_long_as_given_though_epsilon_is_open():
    model, ids, labels = make("classifier"), padded(TEXTS), labels_for("classifier")
    usual = wordward.advt(model)(lambda: model(ids), labels).perturbation.flatten(1).norm(dim=1)
    given = float(usual.median())  # which the shorter texts' default epsilon does not allow
    found = wordward.advt(model, step_size=given)(lambda: model(ids), labels)
    torch.testing.assert_close(found.perturbation.flatten(1).norm(dim=1), usual.clamp(max=given))


def test_a_multiple_of_the_default_epsilon():
    """For every text, whatever its length: what an epsilon of one's own cannot say."""
    model, ids, labels = make("classifier"), padded(TEXTS), labels_for("classifier")
    usual, threefold = (wordward.iadvt(model, k=3, epsilon_factor=factor) for factor in (1.0, 3.0))
    lengths = [adv(lambda: model(ids), labels).strengths.flatten(1).norm(dim=1) for adv in (usual, threefold)]
    assert torch.allclose(lengths[1], 3 * lengths[0])
    assert lengths[0].unique().numel() > 1


def test_methods_that_climb_take_the_steps_that_are_set():
    settings = MethodSettings(ascent_steps=5)
    methods = parse_methods("random+advt+freelb+iadvt-rand+entropy", settings)
    assert [method.recipe.steps for method in methods] == [1, 5, 5, 1, 1]
    assert [method.recipe.steps for method in parse_methods("advt+pgd+freelb+smart")] == [1, 3, 3, 1]


def test_the_defaults_are_the_papers():
    told = {
        "epsilon_factor": 1.0,
        "regularizer_weight": 1.0,
        "k": 10,
        "xi": 1.0,
        "power_iterations": 1,
        "metric": "cosine",
    }
    told |= {"refresh": "auto", "normalization": "paper", "average": "sentences", "same_dropout": False}
    told |= {"direction_dropout": 0.0, "first_step": "alike"}
    assert asdict(MethodSettings()) == told | dict.fromkeys(["epsilon", "ascent_steps", "step_size"])
    assert [parse_methods("pgd", MethodSettings(ascent_steps=1))[0].recipe.moves] == [1]


@pytest.mark.parametrize(("steps", "counted"), [(1, 1), (3, 3)])
def test_how_many_losses_are_averaged(steps: int, counted: int):
    for name, recipe in (RECIPES | UNMOVED).items():
        (method,) = parse_methods(name, MethodSettings(ascent_steps=steps))
        assert method.recipe.counted == (counted if recipe.counts == "every" else 1)


class Bowl(nn.Module):
    """Logits that bend in every direction, so that the steepest way at the text is not the best way in the end."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(SIZE, DIM)
        self.bend = nn.Parameter(torch.randn(DIM, 8) * 0.6)
        self.out = nn.Linear(8, 2)
        self.double()

    def forward(self, ids: Tensor) -> Tensor:
        return self.out(torch.sin(self.words(ids) @ self.bend).sum(1))


@pytest.mark.parametrize("name", ["advt", "iadvt", "vat"])
def test_more_steps_raise_the_loss_more(name: str):
    ids, labels = padded(TEXTS), labels_for("classifier") % 2
    means = []
    for steps in (1, 2, 4, 16):
        losses = []
        for seed in range(5):
            torch.manual_seed(seed)
            model = Bowl()
            adv = wordward.adversary(model, name, epsilon=2.0, k=4, ascent_steps=steps)
            out = adv(lambda model=model: model(ids), labels, mask=ids != PAD, noise=noise_for(name, 4))
            losses.append(float(out.loss.detach()))
        means.append(sum(losses) / len(losses))
    assert means == sorted(means)
    assert means[-1] > 1.02 * means[0]


def test_freelb_starts_uniformly_and_counts_the_mean_of_all_its_steps():
    model, ids = make("classifier"), torch.full((400, 6), 3)
    labels = torch.zeros(400, dtype=torch.long)
    start = wordward.adversary(model, "freelb", epsilon=2.0, ascent_steps=1)(lambda: model(ids), labels)
    scaled = start.perturbation / 2.0 * math.sqrt(6 * DIM)
    assert float(scaled.abs().max()) < 1
    assert float(scaled.mean()) == pytest.approx(0.0, abs=0.03)
    assert float(scaled.square().mean()) == pytest.approx(1 / 3, abs=0.02)  # of a uniform number
    assert float(scaled.pow(4).mean()) == pytest.approx(1 / 5, abs=0.02)


@pytest.mark.parametrize("name", ["advt", "iadvt"])
def test_without_a_bound_steps_are_as_in_a_large_ball(name: str):
    model, ids, labels = make("classifier"), padded(TEXTS), labels_for("classifier")
    free, large = (
        wordward.adversary(model, name, epsilon=epsilon, k=4, ascent_steps=5, step_size=0.5)
        for epsilon in (math.inf, 100.0)
    )
    torch.testing.assert_close(
        free(lambda: model(ids), labels).perturbation, large(lambda: model(ids), labels).perturbation
    )


def test_freelb_without_a_bound_leaves_the_usual_ball():
    """FreeLB++: the start is as long as a step, and 30 steps of usual length go further than one epsilon."""
    model, ids, labels = make("classifier"), padded(TEXTS), labels_for("classifier")
    usual = wordward.adversary(model, "freelb", ascent_steps=30)
    free = wordward.adversary(model, "freelb", ascent_steps=30, epsilon=math.inf)
    assert free.step_size == usual.step_size == pytest.approx(usual.epsilon / 12)
    lengths = [adv(lambda: model(ids), labels).perturbation.flatten(1).norm(dim=1) for adv in (usual, free)]
    reach = ((ids != 0).sum(1) / 240).sqrt() * usual.epsilon
    assert (lengths[0] <= reach * 1.0001).all()
    assert (lengths[1] > 1.5 * reach).all()
    assert (lengths[1] <= 2.6 * reach).all()
    start = wordward.adversary(model, "freelb", ascent_steps=1, epsilon=math.inf)(lambda: model(ids), labels)
    assert (start.perturbation.flatten(1).norm(dim=1) <= reach).all()


@pytest.mark.parametrize("k", [4, None])
@pytest.mark.parametrize("name", ["advt-one", "vat-one", "iadvt-one", "ivat-one"])
def test_one_token_moves_and_toward_one_word_at_most(name: str, k: int | None):
    model, ids = make("classifier"), padded(TEXTS)
    out = wordward.adversary(model, name, epsilon=3.0, k=k)(lambda: model(ids), labels_for("classifier"))
    assert out.perturbation.any(-1).sum(1).tolist() == [1, 1, 1]
    torch.testing.assert_close(out.perturbation.flatten(1).norm(dim=1), torch.full((3,), 3.0).double())
    if out.candidates is not None:
        assert out.strengths.any(-1).sum(1).tolist() == [1, 1, 1]
        one = out.strengths.abs().flatten(1).argmax(1)
        chosen = out.candidates.flatten(1).gather(1, one.unsqueeze(1)).squeeze(1)
        moved = ids[out.perturbation.any(-1)]
        assert (chosen != moved).all()


def test_one_word_is_a_real_one_even_where_every_direction_descends():
    """Padding and the word itself, with an ascent of 0, would be larger."""
    ascent = torch.tensor([[[-3.0, -2.0], [-0.5, -1.0], [0.0, 0.0]]])
    possible = torch.tensor([[[True, True], [False, True], [False, False]]])
    words = torch.tensor([[[True], [True], [False]]])

    def chosen(choice: str, values: Tensor, words: Tensor) -> Tensor:
        return CHOICES[choice](values, lambda: possible, lambda: words)

    assert chosen("one_word", ascent, words).tolist() == [[[0, 0], [0, -1], [0, 0]]]
    assert chosen("one_token", ascent, words).tolist() == [[[-3, -2], [0, 0], [0, 0]]]
    tiny = torch.tensor([[[1e-30, 0.0], [0.0, 3e-30], [9.0, 9.0]]])  # whose squares are no numbers any more
    assert chosen("one_token", tiny * words, words).any(-1).tolist() == [[False, True, False]]
    for choice in ("one_word", "one_token"):
        assert not chosen(choice, ascent, words & False).any()


@pytest.mark.parametrize("name", ["advt-one", "vat-one", "iadvt-one", "ivat-one"])
def test_the_one_is_a_word_that_may_be_pointed_to(name: str):
    """Else the end of a text, which its last states depend on most, would be it again and again."""
    model, ids, words = make("classifier"), padded(TEXTS), [3, 5, 8, 12]
    out = wordward.adversary(model, name, k=3, candidates=words)(
        lambda: model(ids), labels_for("classifier"), noise=noise_for(name, 3)
    )
    assert out.perturbation.any(-1).sum(1).tolist() == [1, 1, 0]  # the last text has no such word
    assert set(ids[out.perturbation.any(-1)].tolist()) == {3, 5}


@pytest.mark.parametrize("average", ["sentences", "tokens"])
@pytest.mark.parametrize("kind", MODELS)
def test_entropy_is_that_of_torch_distributions(kind: str, average: objective.Average):
    model, ids = make(kind), padded(TEXTS)
    mask = ids != PAD
    out = wordward.adversary(model, "entropy", average=average, regularizer_weight=0.3)(lambda: model(ids))
    each = torch.distributions.Categorical(logits=model(ids)).entropy()
    count = int(mask.sum()) if average == "tokens" else len(ids)
    expected = 0.3 * (each.mean() if kind == "classifier" else (each * mask).sum() / count)
    torch.testing.assert_close(out.loss, expected)
    parameters = list(model.parameters())
    torch.testing.assert_close(
        torch.autograd.grad(out.loss, parameters, retain_graph=True),
        torch.autograd.grad(expected, parameters),
    )
    assert not out.perturbation.any()
    assert out.perturbed is out.clean
    F.cross_entropy(out.clean.flatten(0, -2), labels_for(kind).flatten()).backward()  # the pass serves both


def test_entropy_of_a_divergence_of_the_users_own():
    """Of squares, the Gini impurity; none where the prediction is certain, most where it is uniform."""
    model, ids = make("classifier"), padded(TEXTS)

    def squares(logits: Tensor, clean: Tensor) -> Tensor:
        return (logits.softmax(-1) - clean.softmax(-1)).square().sum(-1).mean()

    out = wordward.adversary(model, "entropy", loss=squares)(lambda: model(ids))
    torch.testing.assert_close(out.loss, (1 - out.clean.softmax(-1).square().sum(-1)).mean())
    for dtype in (torch.float16, torch.float32, torch.float64):
        certain, uniform = torch.tensor([[60.0, 0.0, 0.0]], dtype=dtype), torch.zeros(1, 3, dtype=dtype)
        assert float(objective.entropy(objective.kl, certain)) == pytest.approx(0.0, abs=1e-6)
        assert float(objective.entropy(objective.kl, uniform)) == pytest.approx(math.log(3), rel=1e-6)


def test_kl_both_ways_is_a_sum_and_the_same_from_either_side():
    p, q = torch.randn(4, 3).double(), torch.randn(4, 3).double()
    both = objective.MEASURES["both_ways"]
    torch.testing.assert_close(both(objective.kl, p, q), objective.kl(p, q) + objective.kl(q, p))
    torch.testing.assert_close(both(objective.kl, p, q), both(objective.kl, q, p))


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", [*MORE, "entropy", "iadvt"])
def test_a_text_alone_and_in_a_padded_batch_are_the_same(name: str, kind: str):
    model, ids, labels = make(kind), padded(TEXTS), labels_for(kind)
    noise = noise_for("advt" if name == "entropy" else name, 3)
    adv = wordward.adversary(model, name, epsilon=2.0, k=3, ascent_steps=3)
    together = adv(lambda: model(ids), labels, noise=noise)
    losses = []
    for row, text in enumerate(TEXTS):
        one, time = torch.tensor([text]), len(text)
        label = labels[row : row + 1] if kind == "classifier" else labels[row : row + 1, :time]
        alone = adv(lambda one=one: model(one), label, noise=noise[row : row + 1, :time])
        torch.testing.assert_close(together.perturbation[row, :time], alone.perturbation[0])
        assert not together.perturbation[row, time:].any()
        losses.append(alone.loss)
    torch.testing.assert_close(together.loss, torch.stack(losses).mean())


@pytest.mark.parametrize("name", ["pgd", "freelb", "smart", "vat-one"])
def test_processes_that_share_a_batch_draw_its_noise_row_by_row(name: str):
    model, ids, labels = make("classifier"), padded(TEXTS), labels_for("classifier")
    found = []
    for rows in (slice(0, 3), slice(0, 1), slice(1, 3)):
        adv = wordward.adversary(model, name, epsilon=2.0)
        noise = Part(ids, rows, Shares(), torch.Generator().manual_seed(5)).draw
        found.append(adv(lambda rows=rows: model(ids[rows]), labels[rows], noise=noise).perturbation)
    torch.testing.assert_close(found[0], torch.cat(found[1:]))


@pytest.mark.parametrize("kind", [Classifier, Tagger])
@pytest.mark.parametrize(
    ("method", "steps", "forwards", "backwards"),
    [
        ("advt", 3, 4, 4),  # the clean pass, two steps more, the perturbed pass
        ("iadvt", 3, 4, 4),
        ("vat", 3, 6, 5),
        ("pgd", None, 5, 5),
        ("freelb", None, 4, 4),  # each step's one backward serves the weights and the ascent
        ("freelb", 1, 2, 2),
        ("smart", None, 4, 3),
        ("entropy", None, 2, 2),
        ("advt+vat+entropy", None, 6, 5),
        *((name, None, 1 + r.forwards, 1 + r.backwards) for name, r in (RECIPES | UNMOVED).items()),
    ],
)
def test_passes_of_a_step_and_that_it_learns(
    method: str, steps: int | None, forwards: int, backwards: int, kind: Kind
) -> None:
    stepper, labelled, unlabelled = a_step(method, kind, ascent_steps=steps)
    before = [parameter.detach().clone() for parameter in stepper.model.parameters()]
    through, back, loss = passes(stepper, labelled, unlabelled)
    assert (through, back) == (forwards, backwards)
    assert loss.isfinite()
    changed = [not torch.equal(b, a) for b, a in zip(before, stepper.model.parameters(), strict=True)]
    assert all(changed)
    promised = sum(each.method.recipe.forwards for each in (*stepper.supervised, *stepper.virtual))
    assert forwards == 1 + promised


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("method", ["pgd", "freelb", "advt"])
def test_our_loop_walks_back_the_loss_of_the_three_lines(method: str, kind: str, precision: str) -> None:
    """The fused step and the closure give the same gradients."""
    model = Classifier if kind == "classifier" else Tagger
    stepper, labelled, _ = a_step(method, model, ascent_steps=3, precision=precision)
    stepper.model.double().eval() if precision == "fp32" else stepper.model.eval()
    (adv,), labels = stepper.supervised, labelled.labels
    assert labels is not None
    torch.manual_seed(3)
    with stepper.updater.autocast():
        out = adv(lambda: stepper.model(labelled.ids, labelled.mask), labels, mask=labelled.mask)
        loss = objective.label_loss(out.clean, labels, labelled.mask) + out.loss
    parameters = list(stepper.model.parameters())
    expected = torch.autograd.grad(loss, parameters)
    assert (stepper.updater.scaler.get_scale() > 1) == (precision == "fp16")
    stepper.updater.clip = math.inf
    torch.manual_seed(3)
    close: Any = {} if precision == "fp32" else {"rtol": 0.05, "atol": 0.02}
    torch.testing.assert_close(stepper(labelled), loss.detach(), **close)
    torch.testing.assert_close([p.grad for p in parameters], list(expected), **close)


@pytest.mark.parametrize(
    ("name", "in_the_call", "after_backward"),
    [
        # forward passes, and backward passes through the vectors
        ("advt", (4, 3), (4, 5)),
        ("pgd", (5, 3), (5, 5)),
        ("freelb", (4, 2), (4, 6)),
        ("smart", (5, 3), (5, 4)),
        ("entropy", (1, 0), (1, 1)),
    ],
)
def test_passes_of_the_three_lines(name: str, in_the_call: tuple[int, int], after_backward: tuple[int, int]):
    through, back = [0], [0]
    words, out = nn.Embedding(SIZE, DIM), nn.Linear(DIM, 3)
    model, ids, labels = nn.Sequential(words, out), padded(TEXTS), labels_for("classifier")

    def forward() -> Any:
        through[0] += 1
        return out(Count.apply(words(ids), back)).tanh().mean(1)

    found = wordward.adversary(model, name, ascent_steps=3)(forward, labels)
    assert (through[0], back[0]) == in_the_call
    labelled = name in ("advt", "pgd", "freelb")
    (found.loss + (F.cross_entropy(found.clean, labels) if labelled else 0)).backward()
    assert (through[0], back[0]) == after_backward


@pytest.mark.parametrize("name", ["pgd", "freelb", "smart", "advt", "entropy"])
def test_small_gradients_survive_half_precision(name: str):
    """Of 2^-24 and less nothing would be left, and no step would be taken."""
    words = nn.Embedding(50, 16)
    model = nn.Sequential(words, nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 3))
    ids, labels, noise = torch.randint(50, (4, 6)), torch.tensor([0, 1, 2, 1]), torch.randn(4, 6, 16)
    base = objective.label_loss if name in ("pgd", "freelb", "advt") else objective.kl
    with torch.autocast("cpu", torch.float16):
        plain, small = (
            wordward.adversary(model, name, epsilon=5.0, ascent_steps=3, loss=loss)(
                lambda: model(ids).mean(1), labels, noise=noise
            )
            for loss in (None, lambda logits, target: base(logits, target) * 1e-6)
        )
    assert plain.loss.dtype == torch.float32
    if name != "entropy":
        assert (F.cosine_similarity(plain.perturbation.flatten(1), small.perturbation.flatten(1)) > 0.99).all()
    plain.loss.backward()
    assert words.weight.grad is not None
    assert words.weight.grad.isfinite().all()


@pytest.mark.parametrize("name", [*MORE, "entropy"])
def test_nothing_is_left_on_the_model(name: str):
    model, ids = make("classifier").train(), padded(TEXTS)
    state = {key: value.clone() for key, value in model.state_dict().items()}
    out = wordward.adversary(model, name, k=3)(lambda: model(ids), labels_for("classifier"))
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(torch.equal(state[key], value) for key, value in model.state_dict().items())
    hooks = [module._forward_hooks for module in model.modules()]
    assert not any(hooks)
    model.requires_grad_(False)
    frozen = wordward.adversary(model.eval(), name, k=3)(lambda: model(ids), labels_for("classifier"))
    assert frozen.loss.requires_grad == (name == "freelb")  # whose steps are in the graph of its loss
    assert out.loss.requires_grad


@pytest.mark.parametrize("name", [*MORE, "entropy"])
def test_a_zero_gradient_moves_no_further_and_gives_no_nan(name: str):
    model, ids = make("tagger"), padded([[3, 7, 11, 3], [5, 2], []])  # the last text has no words
    nn.init.zeros_(model.head[-1].weight)  # type: ignore[arg-type]
    noise = noise_for("iadvt" if name.startswith("i") else "advt", 3)
    out = wordward.adversary(model, name, epsilon=2.0, k=3)(lambda: model(ids), labels_for("tagger"), noise=noise)
    assert out.loss.isfinite()
    assert out.perturbation.isfinite().all()
    assert not out.perturbation[2].any()
    assert bool(out.perturbation.any()) == (name in ("pgd", "freelb"))  # whose start is drawn


def test_one_gradient_is_too_few_for_several_steps():
    model, ids = make("classifier"), padded(TEXTS)
    gradient = torch.randn(3, 6, DIM).double()
    for name, steps in (("pgd", None), ("freelb", None), ("iadvt", 2), ("pgd", 1)):
        adv = wordward.adversary(model, name, k=3, ascent_steps=steps)
        with pytest.raises(ValueError, match=f"{name} finds r in several steps.*`ascend`"):
            adv.perturb(ids, gradient, ids != PAD)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"ascent_steps": 0}, "ascent_steps must be greater than 0, but is 0"),
        ({"epsilon_factor": 0.0}, "epsilon_factor must be greater than 0, but is 0.0"),
        ({"epsilon_factor": 2.0, "epsilon": 1.0}, "multiplies the default `epsilon`, but that is given as 1.0"),
        ({"step_size": -1.0}, "step_size must be greater than 0, but is -1.0"),
        ({"ascent_steps": 2, "normalization": "authors"}, "iadvt takes one step, but ascent_steps is 2"),
    ],
)
def test_settings_that_no_ascent_can_use(setting: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        wordward.iadvt(make("classifier"), k=3, **setting)
    assert wordward.advt(make("classifier"), ascent_steps=2, normalization="authors").method.recipe.steps == 2


class TestExplained:
    TEXT = "the cast was good and the ending was dull"

    @pytest.mark.parametrize("name", ["advt-one", "vat-one", "iadvt-one", "ivat-one"])
    def test_one_swap_is_shown(self, name: str) -> None:
        (found,) = explain(a_run(k=4), [Example(self.TEXT)], method=name, top=1)
        pulled = [place for place in found.places if place.pulls]
        assert len(pulled) == 1
        assert len(pulled[0].pulls) == 1
        assert found.strongest is pulled[0]

    @pytest.mark.parametrize(("name", "as_name"), [("pgd", "advt"), ("freelb", "advt")])
    def test_a_climb_is_explained_by_its_step_from_the_text(self, name: str, as_name: str) -> None:
        run = a_run()
        one, other = (explain(run, [Example(self.TEXT)], method=each)[0] for each in (name, as_name))
        assert one.places == other.places

    def test_steps_of_training_do_not_change_an_explanation(self) -> None:
        settings = MethodSettings(ascent_steps=3, step_size=0.1)
        (method,) = parse_methods("iadvt", settings)
        assert at_text(method).recipe == RECIPES["iadvt"]
        assert at_text(method).settings.step_size is None

    def test_what_moves_no_word_is_refused(self) -> None:
        with pytest.raises(ValueError, match="entropy perturbs nothing, so it explains nothing: use one of random"):
            explain(a_run(), [Example(self.TEXT)], method="entropy")


@pytest.mark.parametrize("task", ["sequence", "token"])
def test_the_mixed_objective_in_a_hugging_face_trainer(tmp_path: Path, task: str) -> None:
    hf_tiny = pytest.importorskip("hf_tiny", reason="needs transformers", exc_type=ImportError)
    sums = [hf_tiny.trainer(tmp_path, task, name) for name in ("advt+vat+entropy", "advt+vat")]
    inputs = sums[0].data_collator(sums[0].train_dataset)
    found = []
    for made in sums:
        torch.manual_seed(3)
        found.append(made.compute_loss(made.model.train(), inputs, return_outputs=True))
    logits, counts = found[0][1].logits, inputs["labels"] != -100
    entropies = torch.distributions.Categorical(logits=logits).entropy()[counts]
    torch.testing.assert_close(found[0][0], found[1][0] + entropies.mean())
    assert any(value.any() for value in hf_tiny.gradients(sums[0]).values())


def test_what_is_listed_tells_the_papers_from_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["methods"]) == 0
    paper, more = capsys.readouterr().out.split("More methods")
    for name, recipe in (RECIPES | UNMOVED).items():
        where, other = (paper, more) if recipe.reference is None else (more, paper)
        (line,) = re.findall(rf"^ {name} .*$", where, re.MULTILINE)
        assert not re.search(rf"^ {name} ", other, re.MULTILINE)
        assert f" +{recipe.forwards} +{recipe.backwards} " in line
        assert recipe.reference is None or recipe.reference in line


def test_the_documents_table_is_that_of_the_recipes() -> None:
    page = (Path(__file__).parents[2] / "docs" / "methods.md").read_text(encoding="utf-8")
    for name, recipe in (RECIPES | UNMOVED).items():
        (line,) = re.findall(rf"^\| `{name}` \|.*$", page, re.MULTILINE)
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert f"+{recipe.forwards} / +{recipe.backwards}" in cells
        said = {None: "the paper", "wordward": "–"}.get(recipe.reference, recipe.reference)
        assert cells[-1].startswith(str(said))
