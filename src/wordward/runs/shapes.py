"""The shapes of a model's tensors, found without making their numbers."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode


class _Unfilled(TorchFunctionMode):
    """Leaves new tensors without numbers as they are: to "fill" them, PyTorch would first load its compiler."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in ("normal_", "uniform_"):
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


def shapes_of(make: Callable[[], nn.Module]) -> dict[str, tuple[int, ...]]:
    """The shape of each tensor of the model that `make` makes; sizes that no file has take no memory."""
    with torch.device("meta"), _Unfilled():
        return {name: tuple(tensor.shape) for name, tensor in make().state_dict().items()}
