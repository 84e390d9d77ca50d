"""What is found: a perturbation, the end of an ascent with its losses, and what a call of an adversary returns."""

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from wordward.perturbation.tap import Pass


class Found(NamedTuple):
    """A perturbation and how it is made up."""

    perturbation: Tensor  # r (batch, time, dim)
    strengths: Tensor  # alpha (batch, time, k), r = D alpha; r itself where every direction is free
    candidates: Tensor | None  # V^(t) (batch, time, k); None where every direction is free


class Ascent(NamedTuple):
    """Where an ascent ended, and the losses on the way."""

    found: Found
    last: Pass  # at the last r
    losses: list[Tensor]  # those that count: at the last r, or at every r


@dataclass(frozen=True)
class Outcome:
    """What a call of an adversary returns: the loss to add to yours, and everything needed to explain it.

    Args:
        loss: The regulariser, `regularizer_weight` included: one number.
        clean: Logits of the text itself; a constant for VAT and iVAT, which measure KL from them.
        perturbed: Logits of the perturbed text.
        ids: What the embedding read, (batch, time).
        mask: Where tokens are, (batch, time).
        perturbation: r, (batch, time, dim).
        strengths: alpha, (batch, time, k); r itself where every direction is free.
        candidates: Ids of the words that the strengths are toward, (batch, time, k); None where directions are free.

    Examples:
        >>> import torch, wordward
        >>> ids, labels = torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([0, 1])
        >>> model = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Flatten(), torch.nn.Linear(12, 2))
        >>> out = wordward.iadvt(model, k=3)(lambda: model(ids), labels)
        >>> strongest = out.strengths.argmax(-1, keepdim=True)
        >>> out.candidates.gather(-1, strongest).squeeze(-1).shape  # the word that pulls each word hardest
        torch.Size([2, 3])
    """

    loss: Tensor
    clean: Tensor
    perturbed: Tensor
    ids: Tensor
    mask: Tensor
    perturbation: Tensor
    strengths: Tensor
    candidates: Tensor | None
