"""Counts of what a computation does: backward passes, and the size of its largest tensor."""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Count(torch.autograd.Function):
    """The identity that counts how often a backward pass walks through it."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, counter: list[int]) -> Tensor:
        ctx.counter = counter
        return value.clone()

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        ctx.counter[0] += 1
        return grad_outputs[0], None


class Largest(TorchDispatchMode):
    """Remembers the largest tensor that any operation gave; not of bytes, which are oneDNN's own notes on an LSTM.

    `views`: whether those count that share their numbers with what they were made from.
    """

    def __init__(self, dtype: torch.dtype | None = None, *, views: bool = True) -> None:
        super().__init__()
        self.numel, self.dtype, self.views = 0, dtype, views  # of one type alone, if given

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        tensors = [leaf for leaf in tree_leaves(output) if isinstance(leaf, Tensor) and leaf.dtype != torch.uint8]
        if not self.views:
            given = {leaf.untyped_storage().data_ptr() for leaf in tree_leaves(args) if isinstance(leaf, Tensor)}
            tensors = [tensor for tensor in tensors if tensor.untyped_storage().data_ptr() not in given]
        counted = [tensor.numel() for tensor in tensors if self.dtype in (None, tensor.dtype)]
        self.numel = max([self.numel, *counted])
        return output
