"""Where to compute."""

import gc
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from wordward.support.errors import SettingError


def pick_device(name: str) -> torch.device:
    """The device of that name; auto takes the fastest available."""
    if name == "auto":
        name = _devices()[0]
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = re.split(r"\n|[.;] |\.$", str(error))[0]
        if reason.startswith("Expected one of"):  # torch lists every device type it knows
            reason = "there is no such device"
        choices = " or ".join(_devices())
        raise SettingError("device", f"device {name!r} cannot be used here ({reason}): choose {choices}") from None
    return device


def release() -> None:
    """Return GPU memory that this process holds in reserve."""
    gc.collect()
    torch.cuda.empty_cache()


def attention(device: torch.device) -> AbstractContextManager[object]:
    """Attention without cuDNN's kernels on a GPU, which are planned anew for each length of a batch."""
    if device.type != "cuda":
        return nullcontext()
    return sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])


@contextmanager
def searching(device: torch.device) -> Iterator[None]:
    """Products in TF32 on a GPU, for passes that only look for something that is confirmed afterwards."""
    if device.type != "cuda":
        yield
        return
    products: Any = torch.backends.cuda.matmul
    name, coarse = ("fp32_precision", "tf32") if hasattr(products, "fp32_precision") else ("allow_tf32", True)
    before = getattr(products, name)  # torch 2.9 and later refuse a mix of both names
    try:
        setattr(products, name, coarse)
        yield
    finally:
        setattr(products, name, before)


def _devices() -> list[str]:
    """The available devices, the fastest first."""
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    return [name for name, usable in available.items() if usable]


def at_once(texts: int, device: torch.device) -> int:
    """How many texts a device reads at once where a CPU reads so many: a GPU more, which few texts do not fill."""
    return 8 * texts if device.type == "cuda" and texts > 1 else texts
