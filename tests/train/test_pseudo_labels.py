"""Self-training: what the KL methods compare with where a model's own predictions teach it."""

import torch
from torch import nn

import wordward
from wordward.perturbation.objective import kl
from wordward.train.pseudo_labels import PseudoLabels


def test_targets_are_balanced_and_sharpened() -> None:
    pseudo_labels = PseudoLabels(torch.tensor([0.25, 0.75], dtype=torch.float64))
    for _ in range(2_000):
        pseudo_labels.update(torch.tensor([0.5, 0.5]))
    torch.testing.assert_close(pseudo_labels.predicted, torch.tensor([0.5, 0.5], dtype=torch.float64))
    found, mean = pseudo_labels.target(torch.tensor([[0.5, 0.5], [0.9, 0.1]]).log())
    weights = torch.tensor([[0.5 * 0.25, 0.5 * 0.75], [0.9 * 0.25, 0.1 * 0.75]], dtype=torch.float64) ** 2
    torch.testing.assert_close(found.softmax(-1), weights / weights.sum(1, keepdim=True), rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(mean, torch.tensor([0.7, 0.3]))


def test_a_class_that_is_predicted_too_often_loses() -> None:
    pseudo_labels = PseudoLabels(torch.tensor([0.5, 0.5]))
    for _ in range(100):
        pseudo_labels.update(torch.tensor([0.9, 0.1]))
    assert pseudo_labels.target(torch.tensor([[0.6, 0.4]]).log())[0].argmax() == 1


def test_a_target_is_made_of_a_pass_without_dropout_and_nothing_is_left_changed() -> None:
    torch.manual_seed(0)
    table, frozen = nn.Embedding(9, 4), nn.Dropout(0.5)
    model = nn.Sequential(table, frozen, nn.Dropout(0.5), nn.Flatten(), nn.Linear(12, 2))
    frozen.eval()  # as someone may have left it
    ids = torch.tensor([[1, 2, 3], [4, 5, 6]])
    seen = []

    def target(logits: torch.Tensor) -> torch.Tensor:
        seen.append(logits)
        return 3 * logits

    out = wordward.vat(model, epsilon=0.5)(lambda: model(ids), target=target)
    with torch.no_grad():
        plain = model.eval()(ids)
    torch.testing.assert_close(seen[0], plain)
    torch.testing.assert_close(out.clean, 3 * plain)
    torch.testing.assert_close(out.loss, kl(out.perturbed, 3 * plain))


def test_modes_are_left_as_they_were() -> None:
    model = nn.Sequential(nn.Embedding(9, 4), nn.Dropout(0.5), nn.Dropout(0.1), nn.Flatten(), nn.Linear(12, 2))
    model[1].eval()
    wordward.ivat(model, k=3, epsilon=0.5)(lambda: model(torch.tensor([[1, 2, 3]])), target=lambda logits: logits)
    assert [part.training for part in model] == [True, False, True, True, True]
