"""Random states of all devices: taken, put back, and a pass that draws once more what another drew."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

State = dict[torch.device, Tensor]  # of each device's default generator
CPU = torch.device("cpu")


def settled(model: nn.Module) -> State:
    """The random state before a first pass, which is also set, so that a pass that repeats it starts in the same way.

    cuDNN's recurrent layers take a new seed for the dropout between them whenever a generator is set.
    """
    state = state_of(drawn_on(model))
    put_back(state)
    return state


def drawn_on(model: nn.Module) -> set[torch.device]:
    """Where a pass through the model may draw: a model may be spread over several devices."""
    return {CPU, *(parameter.device for parameter in model.parameters())}


def state_of(devices: Iterable[torch.device]) -> State:
    """The random state of each of the devices."""
    state: State = {}
    for device in devices:
        if device.type == "cuda":
            state[device] = torch.cuda.get_rng_state(device)
        elif device.type == "mps":
            state[device] = torch.mps.get_rng_state()
        elif device.type == "cpu":
            state[device] = torch.get_rng_state()
    return state


def put_back(state: State) -> None:
    """Go on from where `state_of` was taken."""
    for device, numbers in state.items():
        if device.type == "cuda":
            torch.cuda.set_rng_state(numbers, device)
        elif device.type == "mps":
            torch.mps.set_rng_state(numbers)
        else:
            torch.set_rng_state(numbers)


@contextmanager
def replayed(state: State | None) -> Iterator[None]:
    """What is drawn here is what was drawn from `state` on; afterwards as if nothing had been drawn."""
    if state is None:
        yield
        return
    now = state_of(state)
    put_back(state)
    try:
        yield
    finally:
        put_back(now)
