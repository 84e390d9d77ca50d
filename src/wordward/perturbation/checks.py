"""Checks on what an adversary is given besides model and closure: a loss, labels and masks."""

import warnings
from collections.abc import Sized
from typing import Any

import torch
from torch import Tensor

from wordward.perturbation.objective import IGNORE, Loss, check_range
from wordward.support.errors import SettingError, SettingTypeError

EQUAL = 1e-3  # the most that a divergence or its slope may be between equal logits, for rounding


def check_loss(loss: Any) -> Any:
    """Return the loss unchanged, if it is a function of logits and labels."""
    if isinstance(loss, type) or not callable(loss):
        what = f"the class {loss.__name__}: pass an instance" if isinstance(loss, type) else f"{loss!r}"
        raise SettingTypeError("loss", f"loss must be a function of (logits, labels), but is {what}")
    return loss


def check_one_number(loss: Any) -> None:
    """Refuse a loss that is not a tensor holding one number."""
    if not isinstance(loss, Tensor):
        raise SettingTypeError(
            "loss", f"the loss must be a tensor computed from the logits, but is {type(loss).__name__}"
        )
    if loss.dim() != 0:
        raise SettingError(
            "loss",
            f"the loss must be one number for the batch, but has shape {tuple(loss.shape)}: "
            "average it over the texts",
        )


def check_divergence(loss: Loss, logits: Tensor) -> None:
    """Refuse an own loss of a method without labels that is not least between equal logits, by its slope there."""
    clean = logits.detach() if logits.dtype == torch.float64 else logits.detach().float()
    with torch.enable_grad():
        moved = clean.clone().requires_grad_()
        value = loss(moved, clean)
        check_one_number(value)
        if not value.requires_grad or not bool(clean.isfinite().all()):
            return
        (slope,) = torch.autograd.grad(value, moved, allow_unused=True)
    size = float(value.detach())
    if abs(size) <= EQUAL or slope is None or bool(slope.abs().max() <= EQUAL):
        return
    raise SettingError(
        "loss",
        "expected a divergence of (logits, clean logits), which is least where both are equal, as `loss` of a "
        f"method without labels (vat, ivat); got one that is {size:.4g} there and falls elsewhere: give one, such as "
        "symmetric KL, or leave `loss` out; for a loss of labels use advt or iadvt",
    )


def check_candidates(candidates: Any) -> None:
    """Refuse candidates that are there, but none."""
    shape = getattr(candidates, "shape", None)
    if 0 in shape if shape is not None else isinstance(candidates, Sized) and not len(candidates):
        raise SettingError(
            "candidates",
            "there are no words to point to: `candidates` is empty; give ids of words, or leave it out for all words "
            "but padding",
        )


def check_labels(labels: Any, ids: Tensor, *, own_loss: bool) -> None:
    """One label per text, or one per token; labels that are not a tensor need the user's own loss."""
    if isinstance(labels, Tensor):
        check_rows("labels", labels, ids)
    elif not own_loss:
        raise SettingTypeError(
            "labels", f"labels must be a tensor, but are {type(labels).__name__}: pass torch.tensor(labels)"
        )


def refuse_mask(labels: Any, logits: Tensor, ids: Tensor, *, method: str) -> None:
    """Refuse a mask in the place of the labels that a method does not need: it would be overlooked."""
    if not isinstance(labels, Tensor):
        return
    predictions = logits.shape, logits.shape[:-1]  # several labels each, or one
    if labels.dtype == torch.bool or (labels.shape == ids.shape and labels.shape not in predictions):
        raise SettingError("labels", f"{method} needs no labels; these look like a mask: pass `mask=`")


def check_first(logits: Tensor, labels: Any, counted: Tensor, *, own_loss: bool) -> None:
    """What a first batch shows (waits for the device), unless the loss is the user's own.

    Labels of classes that the model does not have are refused; probabilities given for logits are only warned of.
    """
    if own_loss or logits.dim() < 2:
        return
    if isinstance(labels, Tensor) and labels.shape == logits.shape[:-1] and not labels.is_floating_point():
        if labels.dim() == 1:
            check_range(labels, logits.shape[-1])
        elif labels.shape == counted.shape:
            check_range(labels.long().masked_fill(~counted, IGNORE), logits.shape[-1])
    rows = logits.detach().float().flatten(0, -2)
    if len(rows) > 1 and rows.shape[-1] > 1 and bool((rows >= 0).all() & ((rows.sum(-1) - 1).abs() < 1e-3).all()):
        warnings.warn(
            "the model gave probabilities (each row sums to 1) where logits are expected, so that a softmax is taken "
            "twice and every gradient shrinks: let the closure return what its softmax is given, or pass your own "
            "function as `loss=`",
            stacklevel=5,
        )


def refuse_positions(ids: Tensor, texts: int) -> None:
    """Refuse ids that count 0, 1, 2, ... in every text, which are places and not words."""
    alone = len(ids) == 1 and texts > 1  # positions are often read once for all texts
    if ids.shape[1] > 2 and (len(ids) > 1 or alone) and bool((ids.diff() == 1).all() & (ids == ids[:1]).all()):
        raise SettingError(
            "embedding",
            f"the embedding read {', '.join(map(str, ids[0, :3].tolist()))}, ... in every text: these are positions, "
            "not words; pass the module that reads token ids as `embedding=`",
        )


def check_rows(what: str, values: Tensor, ids: Tensor) -> None:
    """Refuse a batch whose rows are not texts: norms over the sentence would be over something else."""
    rows = len(values) if values.dim() else 0
    if rows != len(ids):
        raise SettingError(
            what,
            f"got {rows} {what} for {len(ids)} texts: ids are read as (batch, time), "
            f"here {tuple(ids.shape)}; let the embedding read them so, and transpose or reshape its vectors",
        )


def checked_mask(mask: Any, ids: Tensor) -> Tensor:
    """The mask as booleans; raises an error if it cannot belong to these ids."""
    if not isinstance(mask, Tensor):
        raise SettingTypeError(
            "mask", f"mask must be a tensor, but is {type(mask).__name__}: pass torch.tensor(mask)"
        )
    if mask.shape != ids.shape:
        raise SettingError(
            "mask", f"mask must be {tuple(ids.shape)} like the ids, but is {tuple(mask.shape)}: {_why(ids, mask)}"
        )
    if mask.is_floating_point() and bool((mask < 0).any()):
        raise SettingError(
            "mask",
            "mask must be True (or 1) at tokens and 0 elsewhere, but holds negative numbers, like a mask "
            "that is added to attention scores: pass the mask that it was made from",
        )
    return mask.bool()


def marks_tokens(mask: Tensor, ids: Tensor, padding: int) -> bool:
    """Whether a mask marks any token; raises an error if it marks padding instead (waits for the device)."""
    tokens = ids != padding
    if bool((mask & tokens).any()):
        return True
    if bool(tokens.any()) and bool(mask.any()):
        raise SettingError(
            "mask",
            f"mask must be True at tokens, but is True only at padding (id {padding}), like PyTorch's "
            "key_padding_mask: pass ~mask",
        )
    return False


def _why(ids: Tensor, mask: Tensor) -> str:
    """What to do about a mask of another shape than the ids that the embedding read."""
    if mask.shape == ids.T.shape:
        return "the embedding must read (batch, time); transpose its vectors, not the ids"
    if mask.dim() == 2 and len(mask) == len(ids) and mask.shape[1] < ids.shape[1]:
        return "if the model pads texts itself, pad them beforehand (the tokenizer's pad_to_multiple_of)"
    return "pass one number for each id that the embedding reads"
