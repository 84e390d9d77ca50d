"""What a perturbation is to increase: the label loss l or the divergence l_KL of a batch."""

from collections.abc import Callable
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from wordward.support.errors import SettingError

Average = Literal["sentences", "tokens"]
Loss = Callable[[Tensor, Any], Tensor]  # (logits, labels) -> a number; for kl (logits, clean logits)
SURE = 1e4  # a lead of one logit that leaves the others zero probability in any precision
IGNORE = -100  # label of a position that has none, as in torch.nn.functional.cross_entropy


def label_loss(
    logits: Tensor, labels: Tensor, mask: Tensor | None = None, *, average: Average = "sentences"
) -> Tensor:
    """l = -log p(Y | X, W), the mean over texts; for tags the sum over a sentence's tokens.

    logits (batch, classes) with labels (batch,), or logits (batch, time, classes) with labels (batch, time).
    """
    _check_classes(logits)
    _check(logits, labels)
    labels = labels.long()  # cross_entropy accepts no smaller integer type
    if mask is not None and labels.dim() != 1:
        _check_tokens(logits, mask)
        labels = labels.masked_fill(~mask, IGNORE)
    if labels.device.type == "cpu":  # elsewhere it would have to be waited for
        check_range(labels, logits.shape[-1])
    if labels.dim() == 1:
        # Not the mean of cross_entropy, which is NaN where no text has a label.
        total = F.cross_entropy(_wide(logits), labels, ignore_index=IGNORE, reduction="sum")
        return total / (labels != IGNORE).sum().clamp(min=1)
    losses = F.cross_entropy(_wide(logits).transpose(1, 2), labels, ignore_index=IGNORE, reduction="none")
    return _mean(losses, labels != IGNORE, average)


def kl(logits: Tensor, clean: Tensor, mask: Tensor | None = None, *, average: Average = "sentences") -> Tensor:
    """KL(p(.|X) || p(.|X+r)) (eq:vat_loss), the mean over texts; for tags the sum over a sentence's tokens."""
    _check_classes(logits)
    log_clean, log_moved = F.log_softmax(_wide(clean), -1), F.log_softmax(_wide(logits), -1)
    ratio = (log_clean - log_moved).masked_fill(log_clean == -torch.inf, 0.0)  # impossible classes
    divergences = (log_clean.exp() * ratio).sum(-1)  # (batch,) or (batch, time)
    if divergences.dim() == 1:
        return divergences.sum() / max(1, len(divergences))
    if mask is not None:
        _check_tokens(logits, mask)
    counted = torch.ones_like(divergences, dtype=torch.bool) if mask is None else mask
    return _mean(divergences, counted, average)


def yes_or_no(logits: Tensor) -> Tensor:
    """Logits of several labels at once, each as those of no and yes, (batch, labels, 2)."""
    return torch.stack([torch.zeros_like(logits), logits], -1)


def entropy(divergence: Loss, logits: Tensor) -> Tensor:
    """KL(certain || uniform) - KL(p || uniform) = H(p) = -sum p log p; a user's own divergence serves too."""
    if logits.dim() < 2 or logits.shape[-1] < 2:
        raise SettingError(
            "entropy",
            f"entropy needs two or more classes, but logits are of shape {tuple(logits.shape)}: "
            "leave entropy out, or give torch.stack([0 * logit, logit], -1) for the single logit of a sigmoid",
        )
    uniform, certain = torch.zeros_like(logits), torch.zeros_like(logits)
    certain[..., 1:] = -SURE
    return divergence(uniform, certain) - divergence(uniform, logits)


OBJECTIVES: dict[str, Callable[..., Tensor]] = {"label_loss": label_loss, "kl": kl}
MEASURES: dict[str, Callable[[Loss, Tensor, Any], Tensor]] = {
    "one_way": lambda loss, logits, target: loss(logits, target),
    "both_ways": lambda loss, logits, target: loss(logits, target) + loss(target, logits),
    "entropy": lambda loss, logits, target: entropy(loss, logits),
}


def _mean(values: Tensor, counted: Tensor, average: Average) -> Tensor:
    """The mean over sentences of the sum over tokens, or the mean over all tokens that count; of none 0."""
    total = values.masked_fill(~counted, 0.0).sum()
    return total / (max(1, len(values)) if average == "sentences" else counted.sum().clamp(min=1))


def _wide(logits: Tensor) -> Tensor:
    """Logits relative to the largest, at least in single precision, since half loses the tails of a softmax.

    Where the model is certain of a class, its gradient p - 1 rounds to 0; taken through the maximum, it is the sum of
    the other classes' gradients, which does not.
    """
    logits = logits if logits.dtype == torch.float64 else logits.float()
    return logits - logits.max(-1, keepdim=True).values


def _check_classes(logits: Tensor) -> None:
    """Refuse a single logit: its softmax is always certain, so nothing could change it."""
    if logits.dim() < 2 or logits.shape[-1] < 2:
        raise SettingError(
            "logits",
            f"logits must be of two or more classes, but are of shape {tuple(logits.shape)}: for the single logit of "
            "a sigmoid, give torch.stack([0 * logit, logit], -1), or pass your own function as `loss=`",
        )


def _check_tokens(logits: Tensor, mask: Tensor) -> None:
    """Refuse logits that belong neither to a text nor to each of its tokens."""
    if logits.shape[:-1] != mask.shape:
        raise SettingError(
            "logits",
            f"logits must be given per text, or for each of its {mask.shape[1]} tokens, but are of shape "
            f"{tuple(logits.shape)}: for others (such as the ends of an answer) pass your own function as `loss=`",
        )


def check_range(labels: Tensor, classes: int) -> None:
    """Refuse labels of classes that the logits do not have."""
    labels = labels.long()
    outside = (labels != IGNORE) & ((labels < 0) | (labels >= classes))
    if bool(outside.any()):
        raise SettingError(
            "labels",
            f"labels must be from 0 to {classes - 1}, since there are logits of {classes} classes, but one is "
            f"{int(labels[outside][0])}: number them from 0, give the model as many outputs as there are labels, and "
            f"{IGNORE} to positions without one",
        )


def _check(logits: Tensor, labels: Tensor) -> None:
    if labels.is_floating_point() or labels.shape != logits.shape[:-1]:
        raise SettingError(
            "labels",
            f"labels must be whole numbers of shape {tuple(logits.shape[:-1])} for logits of shape "
            f"{tuple(logits.shape)}, but are {labels.dtype} of shape {tuple(labels.shape)}; for other kinds of "
            "labels (several at once, say) pass your own function as `loss=`",
        )
