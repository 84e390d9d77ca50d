"""The three lines a user writes: any method on any model."""

from collections.abc import Collection
from dataclasses import fields
from typing import Literal, TypedDict, Unpack

from torch import Tensor, nn

from wordward.perturbation.adversary import Adversary
from wordward.perturbation.objective import Loss
from wordward.perturbation.recipe import Recipe
from wordward.perturbation.recipes import parse_methods
from wordward.perturbation.settings import MethodSettings
from wordward.support.errors import SettingError, SettingTypeError


class Options(TypedDict, total=False):
    """The options of a method; see `MethodSettings` for what the settings mean."""

    embedding: nn.Module | str | None  # the module (or its name) that reads token ids; found automatically
    site: nn.Module | str | None  # where the shift is added: the embedding, or a dropout after it
    candidates: Tensor | Collection[int] | None  # ids of the words that may be pointed to; all but padding
    loss: Loss | None  # your own, (logits, labels) -> a number; for the VAT family (logits, clean logits)
    epsilon: float | None
    epsilon_factor: float
    regularizer_weight: float
    k: int | None
    xi: float
    first_step: Literal["alike", "random"]
    power_iterations: int
    ascent_steps: int | None
    step_size: float | None
    metric: Literal["cosine", "euclidean"]
    refresh: int | Literal["auto", "batch", "epoch"]
    normalization: Literal["paper", "authors"]
    average: Literal["sentences", "tokens"]
    same_dropout: bool
    direction_dropout: float


def adversary(model: nn.Module, method: str | Recipe, **options: Unpack[Options]) -> Adversary:
    """Make any method of `wordward methods`, or one of your own, for a model.

    Args:
        model: Any PyTorch model with an embedding. It is not changed: hooks are removed after each pass.
        method: A name such as "iadvt-best" or "freelb" (`wordward.RECIPES` has them all), or a `wordward.Recipe`.
        **options: `embedding` and `site` (modules or their names: which one reads the ids, and after which one r is
            added; found where not given), `candidates` (ids of the words that may be pointed to; all but padding),
            `loss` (your own function of logits and labels), and every setting of `wordward.MethodSettings`:
            `epsilon`, `k`, `regularizer_weight` and so on.
            Your own `loss` is not given the mask: label padded positions with an index that it ignores.

    Returns:
        The method on the model, to be called in the place of the forward pass.

    Raises:
        SettingError: If the method or an option is unknown, or does not fit the model.

    Examples:
        >>> import torch, wordward
        >>> ids, labels = torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([0, 1])
        >>> model = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Flatten(), torch.nn.Linear(12, 2))
        >>> adv = wordward.adversary(model, "pgd", epsilon=1.0, ascent_steps=3)
        >>> out = adv(lambda: model(ids), labels)
        >>> bool((out.perturbation.flatten(1).norm(dim=1) <= 1.0001).all())
        True
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
            "method", f"{method} is only the label loss, so there is nothing to perturb: leave the adversary out"
        )
    if len(methods) > 1:
        raise SettingError(
            "method", f"expected one method, but got {method!r}: make an adversary for each and add their losses"
        )
    return Adversary(model, methods[0], **others)  # type: ignore[arg-type]


def advt(model: nn.Module, **options: Unpack[Options]) -> Adversary:
    """AdvT-Text: r = epsilon g / |g|, in any direction that raises the label loss (eq:adv_approx).

    Adversarial training of Miyato et al. 2017: word vectors move along the gradient g of the loss.

    Args:
        model: Any PyTorch model with an embedding. It is not changed: hooks are removed after each pass.
        **options: As for `iadvt`: `embedding`, `site`, `candidates`, `loss`, and every setting of
            `wordward.MethodSettings`, such as `epsilon`.

    Returns:
        An `Adversary`. Call it with a closure that runs the model and with the labels; it returns an `Outcome`, whose
        `loss` you add to your own on `clean`, the logits of the text itself.

    Examples:
        >>> import torch, wordward
        >>> ids, labels = torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([0, 1])
        >>> model = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Flatten(), torch.nn.Linear(12, 2))
        >>> adv = wordward.advt(model)
        >>> out = adv(lambda: model(ids), labels, mask=ids != 0)
        >>> loss = torch.nn.functional.cross_entropy(out.clean, labels) + out.loss
        >>> loss.backward()
        >>> tuple(out.perturbation.shape)  # r, for each token
        (2, 3, 4)
    """
    return adversary(model, "advt", **options)


def vat(model: nn.Module, **options: Unpack[Options]) -> Adversary:
    """VAT-Text: as AdvT-Text for the KL divergence, so without labels (eq:vat_approx).

    Virtual adversarial training of Miyato et al. 2017: r changes the prediction most, whatever the label.

    Args:
        model: Any PyTorch model with an embedding. It is not changed: hooks are removed after each pass.
        **options: As for `iadvt`: `embedding`, `site`, `candidates`, `loss`, and every setting of
            `wordward.MethodSettings`, such as `epsilon`.

    Returns:
        An `Adversary`. Call it with a closure that runs the model, without labels; it returns an `Outcome`, whose
        `loss` you add to your own, on labelled or unlabelled texts.

    Examples:
        >>> import torch, wordward
        >>> ids, labels = torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([0, 1])
        >>> model = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Flatten(), torch.nn.Linear(12, 2))
        >>> adv = wordward.vat(model)
        >>> adv(lambda: model(ids), mask=ids != 0).loss.backward()
    """
    return adversary(model, "vat", **options)


def iadvt(model: nn.Module, **options: Unpack[Options]) -> Adversary:
    """iAdvT-Text: r = sum_k alpha_k d_k, toward real words that raise the label loss (eq:update_alpha_new).

    The method of Sato et al. 2018: word vectors move only along the directions d_k to their `k` nearest words, so
    that the strengths alpha say which word a word is pulled toward.

    Args:
        model: Any PyTorch model with an embedding. It is not changed: hooks are removed after each pass.
        **options: All may be left out.
            Where: `embedding` (the module that reads ids (batch, time), or its name), `site` (the module after which
            r is added, such as the dropout after the embedding; else the embedding).
            How far: `epsilon`, the length of r over a text (by default a part of the distance between near words,
            and longer for longer texts), `epsilon_factor` (a multiple of that default).
            Toward which words: `k` nearest ones (10; None: all), by `metric` ("cosine"), searched again as `refresh`
            says ("auto": every 100 steps), among the ids `candidates` (all but padding); `direction_dropout` (0).
            How found: `ascent_steps` (1), `step_size`, `normalization` ("paper"), `same_dropout` (False);
            `xi`, `first_step` and `power_iterations` are of `vat` and `ivat` alone.
            What counts: `loss`, your own function of logits and labels (the label loss), `average` of tags
            ("sentences"), `regularizer_weight` of the loss that is returned (1).
            `help(wordward.MethodSettings)` says more of each.

    Returns:
        An `Adversary`. Call it in the place of the forward pass, with a closure that runs the model, the labels, and
        a `mask` (batch, time) that is True where tokens are; it returns an `Outcome`, whose `loss` you add to your
        own on `clean`, the logits of the text itself. `help(wordward.Adversary.__call__)` says what else it takes.

    Raises:
        SettingError: If the model has no embedding that can be found, or an option cannot be used.

    Examples:
        >>> import torch, wordward
        >>> ids, labels = torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([0, 1])
        >>> model = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Flatten(), torch.nn.Linear(12, 2))
        >>> adv = wordward.iadvt(model, k=3)
        >>> out = adv(lambda: model(ids), labels, mask=ids != 0)
        >>> loss = torch.nn.functional.cross_entropy(out.clean, labels) + out.loss
        >>> loss.backward()
        >>> tuple(out.strengths.shape)  # alpha, toward the words `out.candidates`
        (2, 3, 3)
    """
    return adversary(model, "iadvt", **options)


def ivat(model: nn.Module, **options: Unpack[Options]) -> Adversary:
    """iVAT-Text: as iAdvT-Text for the KL divergence, so without labels (eq:update_alpha_new2).

    The method of Sato et al. 2018 for texts without labels: r points toward words that change the prediction most.

    Args:
        model: Any PyTorch model with an embedding. It is not changed: hooks are removed after each pass.
        **options: As for `iadvt`: `embedding`, `site`, `candidates`, `loss`, and every setting of
            `wordward.MethodSettings`, such as `epsilon`.

    Returns:
        An `Adversary`. Call it with a closure that runs the model, without labels; it returns an `Outcome`, whose
        `loss` you add to your own, on labelled or unlabelled texts.

    Examples:
        >>> import torch, wordward
        >>> ids, labels = torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([0, 1])
        >>> model = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Flatten(), torch.nn.Linear(12, 2))
        >>> adv = wordward.ivat(model, k=3)
        >>> adv(lambda: model(ids), mask=ids != 0).loss.backward()
    """
    return adversary(model, "ivat", **options)
