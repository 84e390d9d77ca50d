"""How much of its labels a model has learnt, by which the methods' losses are weighted (`gradual`)."""

import torch
from torch import Tensor

RECENT = 0.98  # of the weight of earlier losses and predictions is left after each step


class LearntShare:
    """The share of what can be learnt: 0 for a model at chance, 1 where labels leave no loss.

    `chance` is the label loss of a model that has learnt nothing; None: the share is always 1.
    """

    def __init__(self, chance: float | None, device: torch.device) -> None:
        self.chance = chance
        self.recent = torch.zeros(2, device=device)  # label losses, recent ones counting most, and how many

    def add(self, loss: Tensor) -> None:
        """Take in the label loss of a step."""
        self.recent = RECENT * self.recent + torch.stack([loss, torch.ones_like(loss)]).to(self.recent)

    @property
    def share(self) -> Tensor | float:
        """The share, still on the device."""
        if self.chance is None:
            return 1.0
        loss, count = self.recent.unbind()
        learnt = 1 - loss / (count.clamp(min=1) * self.chance)
        return torch.where(count > 0, learnt, 0.0).clamp(0.0, 1.0)

    def state(self) -> list[float]:
        """What a checkpoint keeps."""
        return self.recent.tolist()

    def load(self, state: list[float]) -> None:
        """Take over what `state` gave."""
        self.recent = torch.tensor(state, device=self.recent.device).view_as(self.recent)
