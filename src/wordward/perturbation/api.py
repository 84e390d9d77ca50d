"""The three lines a user writes: any method on any model."""

from collections.abc import Collection
from dataclasses import fields
from typing import Literal, TypedDict, Unpack

from torch import Tensor, nn

from wordward.perturbation.adversary import Adversary, Loss
from wordward.perturbation.recipes import MethodSettings, Recipe, parse_methods
from wordward.support.errors import SettingError, SettingTypeError


class Options(TypedDict, total=False):
    """The options of a method; see `MethodSettings` for what the settings mean."""

    embedding: nn.Module | str | None  # the module (or its name) that reads token ids; found automatically
    site: nn.Module | str | None  # where the shift is added: the embedding, or a dropout after it
    candidates: Tensor | Collection[int] | None  # ids of the words that may be pointed to; all but padding
    loss: Loss | None  # your own, (logits, labels) -> a number; for the VAT family (logits, clean logits)
    epsilon: float | None
    regularizer_weight: float
    k: int | None
    xi: float
    power_iterations: int
    ascent_steps: int | None
    step_size: float | None
    metric: Literal["cosine", "euclidean"]
    refresh: int | Literal["auto", "batch", "epoch"]
    normalization: Literal["paper", "authors"]
    average: Literal["sentences", "tokens"]
    same_dropout: bool


def adversary(model: nn.Module, method: str | Recipe, **options: Unpack[Options]) -> Adversary:
    """Any method that `wordward methods` lists on a model.

    Your own `loss` is not given the mask: label padded positions with an index that it ignores.
    """
    known = [item.name for item in fields(MethodSettings)]
    settings = {option: value for option, value in options.items() if option in known}
    others = {option: value for option, value in options.items() if option not in known}
    if unknown := others.keys() - {"embedding", "site", "candidates", "loss"}:
        every = ", ".join(Options.__annotations__)
        raise SettingTypeError(
            min(unknown), f"{method} has no option {', '.join(sorted(unknown))}; the options are {every}"
        )
    methods = parse_methods(method, MethodSettings(**settings))  # type: ignore[arg-type]
    if not methods:
        raise SettingError(
            "method",
            f"{method} is only the label loss, so there is nothing to perturb: leave the adversary out",
        )
    if len(methods) > 1:
        raise SettingError(
            "method",
            f"expected one method, but got {method!r}: make an adversary for each and add their losses",
        )
    return Adversary(model, methods[0], **others)  # type: ignore[arg-type]


def advt(model: nn.Module, **options: Unpack[Options]) -> Adversary:
    """AdvT-Text: r = epsilon g / |g| (eq:adv_approx)."""
    return adversary(model, "advt", **options)


def vat(model: nn.Module, **options: Unpack[Options]) -> Adversary:
    """VAT-Text: as AdvT-Text for the KL divergence, so without labels (eq:vat_approx)."""
    return adversary(model, "vat", **options)


def iadvt(model: nn.Module, **options: Unpack[Options]) -> Adversary:
    """iAdvT-Text: r = sum_k alpha_k d_k toward real words (eq:update_alpha_new)."""
    return adversary(model, "iadvt", **options)


def ivat(model: nn.Module, **options: Unpack[Options]) -> Adversary:
    """iVAT-Text: as iAdvT-Text for the KL divergence, so without labels (eq:update_alpha_new2)."""
    return adversary(model, "ivat", **options)
