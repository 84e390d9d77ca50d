"""Chance: where it is, and a pass that draws once more what another drew."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

State = dict[str, Tensor]  # of each kind of device's default generator


def state_of(device: torch.device) -> State:
    """Where chance is, on the CPU and on the device."""
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    elif device.type == "mps":
        state["mps"] = torch.mps.get_rng_state()
    return state


def put_back(state: State, device: torch.device) -> None:
    """Go on from where `state_of` was taken."""
    torch.set_rng_state(state["cpu"])
    if device.type == "cuda":
        torch.cuda.set_rng_state(state["cuda"], device)
    elif device.type == "mps":
        torch.mps.set_rng_state(state["mps"])


@contextmanager
def replayed(state: State | None, device: torch.device) -> Iterator[None]:
    """What is drawn here is what was drawn from `state` on; afterwards as if nothing had been drawn."""
    if state is None:
        yield
        return
    now = state_of(device)
    put_back(state, device)
    try:
        yield
    finally:
        put_back(now, device)
