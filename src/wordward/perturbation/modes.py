"""In which mode a model runs for a while: without dropout, ready for a backward pass, on one path."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Put the module and its parts in eval mode, then each back in its own."""
    training = [part for part in module.modules() if part.training]
    try:
        for part in training:
            part.training = False
        yield
    finally:
        for part in training:
            part.training = True


@contextmanager
def ready_for_backward(model: nn.Module) -> Iterator[None]:
    """Run recurrent layers in training mode without dropout: cuDNN supports a backward pass only in that mode."""
    held = [module for module in model.modules() if isinstance(module, nn.RNNBase) and not module.training]
    dropouts = [module.dropout for module in held]
    try:
        for module in held:
            module.training, module.dropout = True, 0.0
        yield
    finally:
        for module, dropout in zip(held, dropouts, strict=True):
            module.training, module.dropout = False, dropout


@contextmanager
def one_path(model: nn.Module) -> Iterator[None]:
    """Keep attention layers from PyTorch's fast path, which passes without gradient alone take: it zeroes padding."""
    layers = nn.MultiheadAttention, nn.TransformerEncoderLayer
    fast = torch.backends.mha.get_fastpath_enabled()
    if not fast or not any(isinstance(module, layers) and not module.training for module in model.modules()):
        yield
        return
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
