"""The model boundary: at the embedding of any model, read ids and add a shift, leaving nothing behind."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from wordward.perturbation.embedding import module_of, name_of, table_reader, unlimited, unwritten
from wordward.perturbation.hooks import Hooks, hooked
from wordward.perturbation.modes import evaluating, one_path, ready_for_backward
from wordward.support.errors import ModelError, SettingError, SettingTypeError
from wordward.support.random_state import State, pinned_state, replayed

Forward = Callable[[], Any]
FP16_SCALE = 4096.0  # keeps small gradients from vanishing in half precision; changes no digit of others


class Pass(NamedTuple):
    """One forward pass through a tapped model."""

    logits: Tensor
    ids: Tensor  # (batch, time)
    shift: Tensor | None  # (batch, time, dim), a leaf where the gradient was asked for
    chance: State | None = None  # random state before it; None unless later passes are to use the same dropout masks


class Tap:
    """Where a model is perturbed: reads the ids of a pass at its embedding, and adds a shift to the word vectors.

    Nothing is left on the model: hooks are there during a pass only.

    Args:
        model: Any PyTorch model with an embedding.
        embedding: The module that reads token ids, or its name; found where not given.
        site: The module after which the shift is added, or its name; the embedding by default.
        same_dropout: Let a pass that is run `like` an earlier one use the same dropout masks.

    Raises:
        SettingError: If no embedding, or more than one, can be found.

    Examples:
        >>> import torch, wordward
        >>> ids, labels = torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([0, 1])
        >>> model = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Flatten(), torch.nn.Linear(12, 2))
        >>> tap = wordward.Tap(model)
        >>> tap.size, tap.dim
        (9, 4)
        >>> shifted = tap.run(lambda: model(ids), torch.ones(2, 3, 4))
        >>> bool((shifted.logits == model(ids)).any())
        False
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        embedding: nn.Module | str | None = None,
        site: nn.Module | str | None = None,
        same_dropout: bool = False,
    ) -> None:
        if not isinstance(model, nn.Module):
            raise SettingTypeError("model", f"expected a model (torch.nn.Module), but got {type(model).__name__}")
        _refuse_wrapper(model)
        self.model, self.same_dropout = model, same_dropout
        self.embedding = table_reader(model, embedding)
        self.site = module_of(model, site) if site is not None else self.embedding

    def __repr__(self) -> str:
        """Which modules were given or found."""
        site = "" if self.site is self.embedding else f", site={name_of(self.model, self.site)!r}"
        return f"embedding={name_of(self.model, self.embedding)!r} ({self.size} x {self.dim}){site}"

    @property
    def _weight(self) -> Tensor:
        return self.embedding.weight  # type: ignore[return-value]

    @property
    def size(self) -> int:
        """The number of words in the table."""
        return self._weight.shape[0]

    @property
    def dim(self) -> int:
        """The dimension of the vectors."""
        return self._weight.shape[1]

    @property
    def padding(self) -> int | None:
        """The id of padding, if the embedding has one."""
        return getattr(self.embedding, "padding_idx", None)

    @property
    def dtype(self) -> torch.dtype:
        """The precision of perturbations: single, or double if the table is."""
        return torch.float64 if self._weight.dtype == torch.float64 else torch.float32

    @property
    def device(self) -> torch.device:
        """Where the table is."""
        return self._weight.device

    @property
    def several_labels(self) -> bool:
        """Whether a Hugging Face model says that each of its logits is a label's own yes or no.

        Asked anew each time: transformers may find it out in the first pass with labels.
        """
        config = getattr(unwrapped(self.model), "config", None)
        return getattr(config, "problem_type", None) == "multi_label_classification"

    @torch.no_grad()
    def words(self, ids: Tensor) -> Tensor:
        """w_k without dropout, read through the embedding module since some scale their output."""
        with evaluating(self.embedding), unwritten(self.embedding):  # some apply dropout, too
            vectors = self.embedding(ids)
        if not isinstance(vectors, Tensor):
            raise SettingTypeError(
                "embedding",
                f"the embedding must give one tensor of vectors, but {type(self.embedding).__name__} gave "
                f"{type(vectors).__name__}: pass another `embedding=`; if it is the model's only one, its words "
                "cannot be perturbed",
            )
        return vectors.detach().to(self.dtype)  # a hook on it may require gradients nevertheless

    def table(self) -> Tensor:
        """All vectors, (vocabulary, dim)."""
        return self.words(torch.arange(self.size, device=self.device))

    def rows(self, start: int, end: int) -> Tensor:
        """The vectors from one id up to another: a view of the table where the embedding just looks them up."""
        plain = type(self.embedding) is nn.Embedding and self.embedding.max_norm is None
        hooked = self.embedding._forward_hooks or self.embedding._forward_pre_hooks
        if plain and not hooked and self._weight.dtype == self.dtype:
            return self._weight.detach()[start:end]
        return self.words(torch.arange(start, end, device=self.device))

    def run(
        self, forward: Forward, shift: Tensor | None = None, *, watch: bool = False, like: Pass | None = None
    ) -> Pass:
        """Call `forward` with `shift` added at the site; `watch` makes the (zero) shift a leaf with gradient.

        `like`: an earlier pass over the same texts, whose dropout is repeated where the tap has `same_dropout`.
        """
        if not callable(forward):
            raise SettingTypeError(
                "forward",
                f"expected a closure that runs the model, but got {type(forward).__name__}: pass "
                "`lambda: model(ids)`, not `model(ids)`",
            )
        again = None if like is None else like.chance
        before = pinned_state(self.model) if self.same_dropout and again is None else again
        hooks = Hooks(shift, watch=watch)
        with (
            hooked(self.model, hooks.given, before=True, with_kwargs=True),
            hooked(self.embedding, hooks.read, with_kwargs=True),
            hooked(self.site, hooks.add),
            ready_for_backward(self.model),
            one_path(self.model),
            replayed(again),
            nullcontext() if like is None else unlimited(self.embedding),  # the first pass shortened these vectors
        ):
            logits = logits_of(forward(), tuples=False)
        ids = hooks.checked_ids()
        if watch and not logits.requires_grad:
            raise ModelError(
                "the logits have no gradient, so no direction can be found: pass a closure that does not detach them"
            )
        return Pass(logits, ids, hooks.added, before)


def gradient_at(loss: Tensor, shift: Tensor | None, *, retain_graph: bool = False) -> Tensor:
    """The gradient at the vectors, in single precision at least, without touching any `.grad` of the model."""
    assert shift is not None, "the pass was not watched"
    gradient = None
    if loss.requires_grad:
        scaled = loss * FP16_SCALE  # always, since half precision inside the model cannot be seen from here
        (gradient,) = torch.autograd.grad(scaled, shift, retain_graph=retain_graph, allow_unused=True)
    if gradient is None:
        raise ModelError(
            "the loss does not depend on the embedding's vectors, so no direction can be found: make sure that the "
            "model uses them, and that nothing detaches them (or your own loss)"
        )
    return (gradient if gradient.dtype == torch.float64 else gradient.float()) / FP16_SCALE


def logits_of(output: Any, *, tuples: bool = True) -> Tensor:
    """The logits in a model's output: the tensor itself, or what the attribute or key `logits` holds.

    `tuples`: in a tuple they are the first tensor that is not a single number, which is the loss.
    """
    held = output.get("logits", output) if isinstance(output, Mapping) else getattr(output, "logits", output)
    if tuples and isinstance(held, tuple | list):
        held = next((part for part in held if isinstance(part, Tensor) and part.dim() > 0), None)
    if not isinstance(held, Tensor):
        key = repr(next(iter(output), "logits")) if isinstance(output, Mapping) else 0
        raise SettingTypeError(
            "forward",
            f"the closure must return logits (a tensor), but returned {type(output).__name__}: "
            f"for example `lambda: model(ids)[{key}]`",
        )
    return held


def unwrapped(model: nn.Module) -> nn.Module:
    """The model inside DDP, which shares its modules."""
    return model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model


def _refuse_wrapper(model: nn.Module) -> None:
    """Refuse wrappers that run several copies of a model, or mistake r's backward pass for that of the weights."""
    if isinstance(model, nn.DataParallel) and len(model.device_ids) > 1:
        raise SettingError(
            "model",
            "nn.DataParallel splits a batch over several copies of the model, so there is no single pass to "
            "perturb: use DistributedDataParallel, or device_ids with one GPU",
        )
    if isinstance(model, nn.parallel.DistributedDataParallel) and model.static_graph:
        raise SettingError(
            "model",
            "DistributedDataParallel with static_graph=True mistakes the search for a perturbation for the backward "
            "pass and does not exchange the weights' gradients: leave static_graph off",
        )
