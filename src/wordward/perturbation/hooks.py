"""The hooks of one forward pass: ids are read at the embedding, the shift is added at the site."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from wordward.support.errors import ModelError, SettingError, SettingTypeError


class Hooks:
    """What happens in one forward pass: ids are read at the embedding, the shift is added at the site."""

    def __init__(self, shift: Tensor | None, *, watch: bool) -> None:
        if torch.is_inference_mode_enabled():
            raise ModelError(
                "no gradient can be taken under torch.inference_mode: call it outside, or under torch.no_grad"
            )
        self.shift, self.watch, self.graded = shift, watch, torch.is_grad_enabled()
        self.input: Any = None  # what the model was called with first: its ids, mostly
        self.ids: Tensor | None = None
        self.added: Tensor | None = None  # what was added, a leaf where it is watched

    def given(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """At the model: note its input."""
        self.input = kwargs.get("input_ids", args[0] if args else None)

    def read(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        """At the embedding: note the ids."""
        if self.ids is not None:
            raise ModelError(
                "the embedding ran twice in one forward pass, so it is unclear which vectors to move: "
                "let it read both texts side by side, torch.cat([a, b], 1), and split its vectors"
            )
        self.ids = _ids(args, kwargs)

    def add(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> Tensor | None:
        """At the site: the vectors with the shift; None leaves them as they are."""
        if not isinstance(output, Tensor):
            raise SettingTypeError(
                "site",
                f"the site must give one tensor of vectors, but {type(module).__name__} gave "
                f"{type(output).__name__}: pass another `site=`",
            )
        if self.shift is None and not self.watch:
            return None
        if self.added is not None:
            raise ModelError(
                "the site ran twice in one forward pass (a dropout that serves several layers?), so it is "
                "unclear which vectors to move: pass a module that runs once as `site=`"
            )
        if self.graded:
            _refuse_checkpoint()
        if self.shift is not None and self.shift.shape != output.shape:
            raise SettingError(
                "shift", f"the shift is {tuple(self.shift.shape)}, the vectors are {tuple(output.shape)}"
            )
        delta = torch.zeros_like(output) if self.shift is None else self.shift.detach().to(output)
        self.added = delta.requires_grad_(self.watch)
        return output + delta

    def checked_ids(self) -> Tensor:
        """The ids (batch, time), after the pass; raises an error if the embedding or the site did not run."""
        if self.ids is None:
            raise ModelError(
                "the embedding did not run in the forward pass, so nothing could be perturbed: pass the module "
                "that really runs as `embedding=`, and let the closure run it (not a compiled model, nor one that is "
                "given ready-made vectors)"
            )
        if self.added is None and (self.watch or self.shift is not None):
            raise ModelError("the site did not run in the forward pass: pass a module that runs as `site=`")
        if self.ids.dim() != 2 or self.ids.is_nested:
            shape = "a nested tensor" if self.ids.is_nested else tuple(self.ids.shape)
            raise SettingError(
                "embedding",
                f"ids must be (batch, time), but the embedding read {shape}: let it read padded "
                "texts, and pack or reshape its vectors; if it does not read words, pass the one that does as "
                "`embedding=`",
            )
        if _turned(self.ids, self.input):
            raise ModelError(
                f"the model was given ids (batch, time), {tuple(self.input.shape)}, but its embedding read them as "
                "(time, batch), which is not supported (nor is XLNet, which always does so): let the embedding read "
                "ids as they came, and transpose its vectors"
            )
        return self.ids


@contextmanager
def hooked(
    module: nn.Module, hook: Callable[..., Any], *, before: bool = False, with_kwargs: bool = False
) -> Iterator[None]:
    """Let a hook run after (or before) a module, and take it off again."""
    register = module.register_forward_pre_hook if before else module.register_forward_hook
    handle = register(hook, with_kwargs=with_kwargs)
    try:
        yield
    finally:
        handle.remove()


def _ids(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """The ids an embedding was called with, by position or by name."""
    value = args[0] if args else next(iter(kwargs.values()), None)
    if not isinstance(value, Tensor) or value.is_floating_point():
        raise SettingTypeError(
            "embedding",
            f"the embedding must be called with a tensor of ids, but was called with {type(value).__name__}",
        )
    return value


def _turned(read: Tensor, given: Any) -> bool:
    """Whether an embedding read the transpose of the ids that its model was given; compares values if it may be."""
    if not isinstance(given, Tensor) or given.dtype != read.dtype or given.shape != read.T.shape:
        return False
    same = given.data_ptr() == read.data_ptr() and given.stride() == read.stride()  # no need to wait for the device
    return not same and not (given.shape == read.shape and torch.equal(given, read)) and torch.equal(given.T, read)


def _top_hooks() -> Callable[[bool], Any] | None:
    """What tells the hooks that this pass saves its tensors by; None before PyTorch 2.8."""
    return getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)  # type: ignore[attr-defined]


def _checkpointing() -> bool:
    """Whether this pass is one that torch.utils.checkpoint will recompute."""
    top = _top_hooks()
    if top is not None:
        hooks = top(False)
        return bool(hooks) and getattr(hooks[0], "__module__", "") == "torch.utils.checkpoint"
    frame = sys._getframe()  # before PyTorch 2.8 only the callers tell
    while frame is not None and frame.f_globals.get("__name__") != "torch.utils.checkpoint":
        frame = frame.f_back
    return frame is not None


def _refuse_checkpoint() -> None:
    """A checkpointed site is recomputed after the hook is gone, with a silently wrong gradient."""
    reentrant = not torch.is_grad_enabled()
    if reentrant or _checkpointing():
        raise ModelError(
            "the embedding (or its site) runs inside torch.utils.checkpoint or under no_grad, where a perturbation "
            "cannot be followed back: checkpoint the layers after it instead, and take no_grad out of the closure"
        )
