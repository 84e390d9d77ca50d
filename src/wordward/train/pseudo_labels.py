"""Pseudo-labels of texts without labels, which the KL methods compare with in self-training."""

import torch
from torch import Tensor

from wordward.train.data import Data
from wordward.train.gradual import RECENT

SHARPNESS = 2.0  # power that probabilities are raised to


class PseudoLabels:
    """Targets from predictions: balanced, so that classes are as frequent as among the labels, and sharpened.

    Without the balance (distribution alignment, Berthelot et al. 2020), a class that is predicted too often draws in
    ever more texts.
    """

    def __init__(self, shares: Tensor, sharpness: float = SHARPNESS) -> None:
        self.shares = shares  # (classes,): how frequent each is among the labels
        self.sharpness = sharpness
        self.predicted = shares.clone()  # how frequent each is predicted to be, of late

    def target(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (texts, classes) to compare with, and the mean prediction (classes,), for `update`.

        >>> pseudo_labels = PseudoLabels(torch.tensor([0.5, 0.5]))
        >>> pseudo_labels.predicted = torch.tensor([0.8, 0.2])  # too often the first class
        >>> target, _ = pseudo_labels.target(torch.tensor([[0.6, 0.4]]).log())
        >>> target.softmax(-1)
        tensor([[0.1233, 0.8767]])
        """
        predicted = logits.float().softmax(-1)
        balanced = predicted * (self.shares / self.predicted.clamp(min=1e-6))
        return self.sharpness * balanced.clamp(min=1e-9).log(), predicted.mean(0)

    def update(self, predicted: Tensor) -> None:
        """Take in the mean prediction (classes,) of a step's texts."""
        self.predicted = RECENT * self.predicted + (1 - RECENT) * predicted.to(self.predicted)

    def state(self) -> list[float]:
        """What a checkpoint keeps."""
        return self.predicted.tolist()

    def load(self, state: list[float]) -> None:
        """Take over what `state` gave."""
        self.predicted = torch.tensor(state, device=self.predicted.device).view_as(self.predicted)


def pseudo_labels_of(data: Data, device: torch.device, sharpness: float = SHARPNESS) -> PseudoLabels:
    """PseudoLabels that start from how frequent each label is."""
    counts = torch.bincount(torch.as_tensor(data.train.labels), minlength=len(data.classes))
    return PseudoLabels(((counts + 0.5) / (counts + 0.5).sum()).to(device), sharpness)
