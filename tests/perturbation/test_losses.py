"""What is to grow: the label loss, the divergence, and a user's own loss."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from derivation import (
    CLASS_LABELS,
    DIM,
    MODELS,
    PAD,
    TEXTS,
    check,
    derive,
    labels_for,
    logits_at,
    make,
    negative_log_likelihood,
    padded,
)
from torch import Tensor, nn

import wordward
from wordward.perturbation import objective


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


def test_a_class_that_is_ruled_out_counts_as_none():
    clean, moved = torch.randn(4, 3).double(), torch.randn(4, 3).double().requires_grad_()
    ruled_out = torch.tensor([0.0, 0.0, -torch.inf]).double()

    def losses(some: slice, out: Tensor | float) -> list[Tensor]:
        a, b = clean[:, some] + out, moved[:, some] + out
        return [objective.kl(b, a), objective.kl(a, b), objective.entropy(objective.kl, b)]

    for one, other in zip(losses(slice(3), ruled_out), losses(slice(2), 0.0), strict=True):
        torch.testing.assert_close(one, other)
        gradients = (torch.autograd.grad(loss, moved, retain_graph=True)[0] for loss in (one, other))
        torch.testing.assert_close(*gradients)


def test_losses_of_half_precision_are_taken_in_single():
    logits = torch.tensor([[40.0, 0.0, 0.0]])
    labels = torch.tensor([1])
    for half in (torch.float16, torch.bfloat16):
        assert objective.label_loss(logits.to(half), labels).dtype == torch.float32
        assert objective.kl(logits.to(half), torch.zeros(1, 3, dtype=half)).dtype == torch.float32


def test_gradients_of_a_model_that_is_all_but_sure_are_those_of_double_precision():
    """1 - p is 0 in single precision, but its direction counts as any other, since r is as long as any other."""
    logits, moved = torch.tensor([[25.0, 0.0, 1.0]]), torch.tensor([[24.0, 0.0, 2.0]])
    label = torch.tensor([0])
    for loss in (
        lambda a: objective.label_loss(a, label),
        lambda a: objective.label_loss(a.unsqueeze(1), label.unsqueeze(1)),
        lambda a: objective.kl(a, moved.to(a)),
        lambda a: objective.kl(moved.to(a), a),
    ):
        single, double = logits.clone().requires_grad_(), logits.double().requires_grad_()
        (found,), (exact,) = (torch.autograd.grad(loss(each), each) for each in (single, double))
        torch.testing.assert_close(found, exact.float(), rtol=1e-4, atol=0)


@pytest.mark.parametrize("average", ["sentences", "tokens"])
def test_a_tagged_sentence_counts_its_labelled_tokens(average: objective.Average):
    logits = torch.randn(2, 3, 4).double()
    labels = torch.tensor([[1, -100, 3], [0, 2, 2]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    each = [negative_log_likelihood(logits[b, t], int(labels[b, t])) for b, t in ((0, 0), (0, 2), (1, 0), (1, 1))]
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
            torch.testing.assert_close(out.perturbation[row, : len(gradient)], 2.0 * gradient / gradient.norm())
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


def test_a_text_without_a_label_does_not_count() -> None:
    logits, labels = torch.randn(3, 4), torch.tensor([1, objective.IGNORE, 2])
    torch.testing.assert_close(objective.label_loss(logits, labels), F.cross_entropy(logits, labels))


def test_labels_of_several_tasks_go_to_the_users_own_loss() -> None:
    """What is no tensor is not looked into: logits of both tasks stand side by side."""
    model, ids = make("classifier"), padded(TEXTS)
    stars, topics = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64), torch.tensor([1, 0, 1])

    def loss(logits: Tensor, labels: Any) -> Tensor:
        return (logits[:, 0] - labels["stars"]).square().mean() + F.cross_entropy(logits[:, 1:], labels["topics"])

    out = wordward.advt(model, epsilon=0.1, loss=loss)(
        lambda: model(ids),
        {"stars": stars, "topics": topics},
    )
    torch.testing.assert_close(out.loss, loss(out.perturbed, {"stars": stars, "topics": topics}))


@pytest.mark.parametrize("name", ["advt", "iadvt", "vat", "ivat", "freelb", "smart", "entropy"])
def test_only_the_tokens_counted_have_a_loss_and_only_those_of_the_mask_move(name: str) -> None:
    model, ids, labels = make("tagger"), padded(TEXTS), labels_for("tagger")
    mask = ids != PAD
    counted = torch.zeros_like(mask)
    counted[:, 0] = True  # of each sentence its first token

    def of_the_first(logits: Tensor, target: Tensor) -> Tensor:
        own = objective.kl if target.is_floating_point() else objective.label_loss
        return own(logits, target, counted)

    noise = torch.randn(*ids.shape, DIM, dtype=torch.float64)
    adv = wordward.adversary(model, name, epsilon=2.0, k=3)
    out = adv(lambda: model(ids), labels, mask=mask, counted=counted, noise=noise)
    with_own = wordward.adversary(model, name, epsilon=2.0, k=3, loss=of_the_first)
    own = with_own(lambda: model(ids), labels, mask=mask, noise=noise)
    torch.testing.assert_close((out.loss, out.perturbation), (own.loss, own.perturbation))
    everywhere = adv(lambda: model(ids), labels, noise=noise)
    assert not torch.allclose(out.loss, everywhere.loss)
    moved = out.perturbation.abs().sum(-1) > 0
    assert not (moved & ~mask).any()
    assert name == "entropy" or (moved & ~counted).any()


def test_a_loss_of_ones_own_is_not_given_what_counts() -> None:
    model, ids, labels = make("tagger"), padded(TEXTS), labels_for("tagger")
    adv = wordward.advt(model, loss=objective.label_loss)
    with pytest.raises(ValueError, match="your own loss is not given `counted`"):
        adv(lambda: model(ids), labels, counted=ids != PAD)
    with pytest.raises(ValueError, match="mask must be"):
        wordward.advt(model)(lambda: model(ids), labels, counted=torch.ones(2, 2))


@pytest.mark.parametrize("average", ["sentences", "tokens"])
def test_several_labels_at_once_have_the_divergences_of_their_own(average: objective.Average) -> None:
    """Where a model's config says so, though it is first said between two calls."""
    torch.manual_seed(0)
    model: Any = nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(12, 5)).double()
    model.config = SimpleNamespace(problem_type=None)
    adv, ids = wordward.ivat(model, k=3, epsilon=1.0, average=average), torch.tensor([[1, 2, 3], [4, 5, 6]])
    among = adv(lambda: model(ids))
    model.config.problem_type = "multi_label_classification"
    several = adv(lambda: model(ids))
    clean, moved = (torch.distributions.Bernoulli(logits=each) for each in (several.clean, several.perturbed))
    each = torch.distributions.kl_divergence(clean, moved)
    expected = each.mean() if average == "tokens" else each.sum(1).mean()
    torch.testing.assert_close(several.loss, expected)
    assert not torch.allclose(several.perturbation, among.perturbation)  # found for that divergence, too


@pytest.mark.parametrize("average", ["sentences", "tokens"])
def test_a_single_token_counts_as_one(average: Any) -> None:
    """Of a batch in which all others are padding, or have no label."""
    logits, clean = torch.randn(2, 1, 3, 4, dtype=torch.float64)
    labels, mask = torch.tensor([[2, 1, 3]]), torch.tensor([[True, False, False]])
    wanted = -logits[0, 0].log_softmax(-1)[2]
    torch.testing.assert_close(objective.label_loss(logits, labels, mask, average=average), wanted)
    torch.testing.assert_close(objective.label_loss(logits[:, 0], labels[:, 0], average=average), wanted)
    torch.testing.assert_close(objective.label_loss(logits, torch.tensor([[2, -100, -100]]), average=average), wanted)
    p, q = clean[0, 0].log_softmax(-1), logits[0, 0].log_softmax(-1)
    torch.testing.assert_close(objective.kl(logits, clean, mask, average=average), (p.exp() * (p - q)).sum())


@pytest.mark.parametrize("shape", [(3,), (3, 1), (2, 3, 1)])
def test_a_single_logit_is_refused_by_either_loss(shape: tuple[int, ...]) -> None:
    logits = torch.zeros(shape)
    for loss in (
        lambda: objective.label_loss(logits, torch.zeros(shape[:-1]).long()),
        lambda: objective.kl(logits, logits),
    ):
        with pytest.raises(ValueError, match="logits must be of two or more classes"):
            loss()


@pytest.mark.parametrize("labels", [torch.zeros(3), torch.zeros(2).long(), torch.zeros(3, 1).long()])
def test_labels_of_another_shape_or_kind_are_refused(labels: Tensor) -> None:
    with pytest.raises(ValueError, match=r"labels must be whole numbers of shape \(3,\)"):
        objective.label_loss(torch.zeros(3, 4), labels)
