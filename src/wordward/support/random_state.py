"""Random states of all devices: saved, restored, and replayed for a pass that repeats another's draws."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

State = dict[torch.device, Tensor]  # of each device's default generator
CPU = torch.device("cpu")


def pinned_state(model: nn.Module) -> State:
    """The random state before a first pass; also set, so that a replay starts in exactly the same way.

    cuDNN's recurrent layers draw a new dropout seed whenever a generator's state is set.
    """
    state = state_of(drawn_on(model))
    put_back(state)
    return state


def drawn_on(model: nn.Module) -> set[torch.device]:
    """The devices whose generators a pass may use; a model may be spread over several."""
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
    """Restore what `state_of` returned."""
    for device, numbers in state.items():
        if device.type == "cuda":
            torch.cuda.set_rng_state(numbers, device)
        elif device.type == "mps":
            torch.mps.set_rng_state(numbers)
        else:
            torch.set_rng_state(numbers)


@contextmanager
def replayed(state: State | None) -> Iterator[None]:
    """Draw again what was drawn from `state` on; afterwards restore the states, as if nothing had been drawn."""
    if state is None:
        yield
        return
    now = state_of(state)
    put_back(state)
    try:
        yield
    finally:
        put_back(now)
