"""Several processes that train as one: each takes its rows of a batch, gradients are summed, the first writes."""

import atexit
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from wordward.support.errors import SettingError
from wordward.support.random_state import put_back, state_of

Value = TypeVar("Value")
TIMEOUT = timedelta(minutes=30)  # how long a process waits for the others
PATIENCE = timedelta(days=7)  # the same, while one process encodes a corpus for the others
LARGE = 1 << 20  # numbers of a gradient that travels alone; smaller ones travel together


class Shares(NamedTuple):
    """The share of a batch that some rows make up, by which their means are weighted."""

    texts: float = 1.0
    tokens: float = 1.0


class Part(NamedTuple):
    """The rows of a batch assigned to one of several processes."""

    ids: Tensor  # of the whole batch, (batch, time)
    rows: slice
    shares: Shares
    noise: torch.Generator  # the same in all processes

    def draw(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Gaussian noise for these rows: drawn for the whole batch, so that processes differ row by row."""
        whole = (len(self.ids), *shape[1:])
        return torch.randn(whole, dtype=dtype, device=self.ids.device, generator=self.noise)[self.rows]


class Team:
    """The processes of a run: by default this one alone, for which every method is a no-op."""

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size = rank, size
        self.noise: torch.Generator | None = None
        self._asked = False  # to stop, in this process
        self._stop: Tensor | None = None  # in how many processes, as of the last step

    @property
    def first(self) -> bool:
        """Whether this is the process that writes files and shows progress."""
        return self.rank == 0

    def rows(self, count: int) -> tuple[slice, float]:
        """This process's share of `count` rows; if there are too few, one row with weight zero."""
        start, end = (count * at // self.size for at in (self.rank, self.rank + 1))
        return (slice(start, end), (end - start) / count) if end > start else (slice(0, 1), 0.0)

    def part(self, ids: Tensor, lengths: np.ndarray) -> Part | None:
        """This process's part of a batch of texts; None where it has them all."""
        if self.size == 1:
            return None
        rows, texts = self.rows(len(lengths))
        tokens = float(lengths[rows].sum() / max(1, lengths.sum())) if texts else 0.0
        assert self.noise is not None, "fork_rng must be called first"
        return Part(ids, rows, Shares(texts, tokens), self.noise)

    def add_up(self, parameters: Iterable[nn.Parameter], loss: Tensor) -> Tensor:
        """Add up the gradients over all processes, in place; and the losses, one or several."""
        if self.size == 1:
            return loss
        gradients = []
        for parameter in parameters:
            if parameter.requires_grad:
                parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                gradients.append(parameter.grad)
        pending = [dist.all_reduce(large, async_op=True) for large in gradients if large.numel() >= LARGE]
        small = [gradient for gradient in gradients if gradient.numel() < LARGE]
        asked = torch.full((1,), float(self._asked), dtype=loss.dtype, device=loss.device)
        flat = torch.cat([*(gradient.flatten() for gradient in small), loss.flatten(), asked])
        dist.all_reduce(flat)
        *sums, total, self._stop = flat.split([*(gradient.numel() for gradient in small), loss.numel(), 1])
        for gradient, summed in zip(small, sums, strict=True):
            gradient.copy_(summed.view_as(gradient))
        for work in pending:
            work.wait()  # type: ignore[union-attr]
        return total.view_as(loss)

    def ask_to_stop(self) -> None:
        """Have all processes stop together, after a step that all of them have made."""
        self._asked = True

    def stopping(self) -> bool:
        """Whether some process asked to stop before the last step (waits for the device)."""
        return self._asked if self.size == 1 else self._stop is not None and bool(self._stop > 0)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let Ctrl-C only request a stop: a process interrupted within a step would leave the others waiting."""
        self._asked, self._stop = False, None
        if self.size == 1 or threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, lambda *_: self.ask_to_stop())
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def agree(self, value: Value) -> Value:
        """The first process's value, in all processes."""
        if self.size == 1:
            return value
        values: list[Any] = [value]
        dist.broadcast_object_list(values)
        return values[0]

    def gather(self, value: Value) -> list[Value]:
        """The values of all processes, in order of rank."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value)
        return values

    def same(self, model: nn.Module) -> None:
        """Give all processes the first one's weights: the same seed may differ by a digit on another machine."""
        if self.size > 1:
            for tensor in model.state_dict().values():
                dist.broadcast(tensor, 0)

    def meet(self, device: torch.device) -> None:
        """Restore the random state that all processes share, to be saved in a checkpoint."""
        if self.noise is not None:
            put_back({device: self.noise.get_state()})

    def fork_rng(self, device: torch.device, *, seed: int, steps: int) -> None:
        """From here on all processes share the noise for a batch, and each draws its own dropout."""
        if self.size == 1:
            return
        self.noise = self.noise or torch.Generator(device)
        self.noise.set_state(state_of([device])[device])
        torch.manual_seed(int(np.random.default_rng([seed, steps, self.rank]).integers(1 << 62)))

    @contextmanager
    def one_a_machine_first(self) -> Iterator[None]:
        """Let one process per machine go first, so that the others find its work in the cache."""
        if self.size == 1:
            yield
            return
        patient: Any = dist.new_group(backend="gloo", timeout=PATIENCE)
        ahead = int(os.environ.get("LOCAL_RANK", "0")) == 0
        if not ahead:
            dist.barrier(patient)
        yield
        if ahead:
            dist.barrier(patient)


ALONE = Team()


def launched() -> int:
    """How many processes a launcher such as torchrun started."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def refuse_several(what: str) -> None:
    """Stop if a launcher started several processes for something that takes one."""
    if launched() > 1:
        raise SettingError(
            "WORLD_SIZE",
            f"{what} takes one process, but {launched()} were started: start one command per GPU, "
            "each with its own CUDA_VISIBLE_DEVICES and `out`",
        )


def team(device: str) -> Team:
    """The processes that a launcher started, connected until they end; else this one alone."""
    if launched() > 1 and not dist.is_initialized():
        dist.init_process_group(_backend(device), timeout=TIMEOUT)
        atexit.register(dist.destroy_process_group)
    return Team(dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else Team()


def _backend(device: str) -> str:
    """How processes communicate; a process on a GPU uses the one with its number."""
    gpus, number = torch.cuda.device_count(), int(os.environ.get("LOCAL_RANK", "0"))
    if device == "cpu" or (device == "auto" and not gpus and not torch.backends.mps.is_available()):
        return "gloo"
    if device not in ("auto", "cuda") or not gpus:
        raise SettingError(
            "device",
            f"several processes compute on the CPU or on one GPU each, but the device is {device}: "
            "give `device='cpu'`, or `device='cuda'` without a number",
        )
    if number >= gpus:
        raise SettingError(
            "LOCAL_RANK",
            f"process {number + 1} of this machine has no GPU: there are {gpus}, so start {gpus} with "
            f"--nproc-per-node {gpus}",
        )
    torch.cuda.set_device(number)
    return "cpu:gloo,cuda:nccl"
