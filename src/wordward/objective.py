"""What a perturbation is to make grow: the label loss l or the divergence l_KL, of one batch."""

from collections.abc import Callable
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

Average = Literal["sentences", "tokens"]
Loss = Callable[[Tensor, Any], Tensor]  # (logits, labels) -> a number; for kl (logits, clean logits)
SURE = 1e4  # a logit ahead of all others by so much leaves them no probability in any precision
IGNORE = -100  # label of a position that has none, as in torch.nn.functional.cross_entropy


def label_loss(
    logits: Tensor, labels: Tensor, mask: Tensor | None = None, *, average: Average = "sentences"
) -> Tensor:
    """l = -log p(Y | X, W), the mean over texts; for tags the sum over a sentence's tokens.

    logits (batch, classes) with labels (batch,), or logits (batch, time, classes) with labels (batch, time).
    """
    _check_classes(logits)
    _check(logits, labels)
    labels = labels.long()  # cross_entropy knows no smaller whole numbers
    if labels.dim() == 1:
        # Not the mean of cross_entropy: that is no number where no text has a label.
        total = F.cross_entropy(_wide(logits), labels, ignore_index=IGNORE, reduction="sum")
        return total / (labels != IGNORE).sum().clamp(min=1)
    if mask is not None:
        _check_tokens(logits, mask)
        labels = labels.masked_fill(~mask, IGNORE)
    each = F.cross_entropy(_wide(logits).transpose(1, 2), labels, ignore_index=IGNORE, reduction="none")
    return _mean(each, labels != IGNORE, average)


def kl(
    logits: Tensor, clean: Tensor, mask: Tensor | None = None, *, average: Average = "sentences"
) -> Tensor:
    """KL(p(.|X) || p(.|X+r)) (eq:vat_loss), the mean over texts; for tags the sum over a sentence's tokens."""
    _check_classes(logits)
    log_clean, log_moved = F.log_softmax(_wide(clean), -1), F.log_softmax(_wide(logits), -1)
    ratio = (log_clean - log_moved).masked_fill(log_clean == -torch.inf, 0.0)  # of a class that is ruled out
    each = (log_clean.exp() * ratio).sum(-1)  # (batch,) or (batch, time)
    if each.dim() == 1:
        return each.mean()
    if mask is not None:
        _check_tokens(logits, mask)
    counted = torch.ones_like(each, dtype=torch.bool) if mask is None else mask
    return _mean(each, counted, average)


def entropy(divergence: Loss, logits: Tensor) -> Tensor:
    """KL(certain || uniform) - KL(p || uniform) = H(p) = -sum p log p; a user's own divergence serves too."""
    if logits.dim() < 2 or logits.shape[-1] < 2:
        raise ValueError(
            f"an entropy is that of two or more classes, but logits are of shape {tuple(logits.shape)}: "
            "leave entropy out, or give torch.stack([0 * logit, logit], -1) for one logit, of a sigmoid"
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


def _mean(each: Tensor, counted: Tensor, average: Average) -> Tensor:
    """The mean over sentences of the sum over tokens, or the mean over all tokens that count."""
    total = each.masked_fill(~counted, 0.0).sum()
    return total / (len(each) if average == "sentences" else counted.sum().clamp(min=1))


def _wide(logits: Tensor) -> Tensor:
    """Logits in single precision at least, since half loses the tails of a softmax, counted from the largest.

    The gradient of a class that the model is sure of, p - 1, is rounded to 0; through the maximum it is the sum of
    what the other classes have, which is not.
    """
    logits = logits if logits.dtype == torch.float64 else logits.float()
    return logits - logits.max(-1, keepdim=True).values


def _check_classes(logits: Tensor) -> None:
    """One logit is a certain prediction to a softmax: nothing would ever move it."""
    if logits.dim() < 2 or logits.shape[-1] < 2:
        raise ValueError(
            f"logits must be of two or more classes, but are of shape {tuple(logits.shape)}: for one logit, of a "
            "sigmoid, give torch.stack([0 * logit, logit], -1), or pass your own function as `loss=`"
        )


def _check_tokens(logits: Tensor, mask: Tensor) -> None:
    """Logits that are not a text's are its tokens'."""
    if logits.shape[:-1] != mask.shape:
        raise ValueError(
            f"logits must be of a text, or of each of its {mask.shape[1]} tokens, but are of shape "
            f"{tuple(logits.shape)}: for others (of the ends of an answer, say) pass your own function as `loss=`"
        )


def _check(logits: Tensor, labels: Tensor) -> None:
    if labels.is_floating_point() or labels.shape != logits.shape[:-1]:
        raise ValueError(
            f"labels must be whole numbers of shape {tuple(logits.shape[:-1])} for logits of shape "
            f"{tuple(logits.shape)}, but are {labels.dtype} of shape {tuple(labels.shape)}; for other kinds of "
            "labels (several at once, say) pass your own function as `loss=`"
        )
