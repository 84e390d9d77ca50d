"""A pass over a window of running text as a CUDA graph: one launch where there were hundreds."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from wordward.models import NONE, LanguageModel
from wordward.train.updater import PRECISIONS, Updater

WARM_UP = 3
SPARE = 1.1  # space reserved for the targets in a cluster, relative to the largest window so far

State = tuple[Tensor, Tensor]


class GraphedWindow:
    """A language model's pass over a window of fixed size, captured at its first use.

    The gradients live in the graph's own memory, and each replay overwrites them. Where a window's targets do not fit
    into the space reserved for them, the pass is captured again with more.
    """

    def __init__(self, model: LanguageModel, updater: Updater) -> None:
        self.model, self.updater = model, updater
        self._graph: torch.cuda.CUDAGraph | None = None
        self._inputs: list[Tensor] = []  # ids, targets, one group per tail
        self._gradients: list[Tensor | None] = []

    def fits(self, ids: Tensor) -> bool:
        """Whether a window has the size of the captured one."""
        return self._graph is None or ids.shape == self._inputs[0].shape

    def __call__(
        self, ids: Tensor, targets: Tensor, groups: Sequence[Tensor], state: State | None
    ) -> tuple[Tensor, State]:
        """The mean loss, with its gradients in `.grad`, and the next state (all overwritten by the next call)."""
        rooms = self._inputs[2:]
        if not rooms or any(len(rows) > len(room) for rows, room in zip(groups, rooms, strict=True)):
            self._make_room(ids, targets, groups)
        for room, values in zip(self._inputs, (ids, targets, *groups), strict=True):
            filled = F.pad(values, (0, len(room) - len(values)), value=NONE) if values.dim() == 1 else values
            room.copy_(filled.pin_memory(), non_blocking=True)
        for kept, new in zip(self._state, state or (None, None), strict=True):
            if new is not kept:
                kept.zero_() if new is None else kept.copy_(new)
        if self._graph is None:
            self._capture()
        assert self._graph is not None
        for parameter, gradient in zip(self.model.parameters(), self._gradients, strict=True):
            parameter.grad = gradient
        self._graph.replay()
        return self._loss, self._state

    def _make_room(self, ids: Tensor, targets: Tensor, groups: Sequence[Tensor]) -> None:
        device, hidden = self.updater.device, self.model.lstm.hidden_size
        before = [len(room) for room in self._inputs[2:]] or [0] * len(groups)
        wanted = [int(SPARE * len(rows)) + 64 for rows in groups]
        rooms = [min(targets.numel(), max(pair)) for pair in zip(before, wanted, strict=True)]
        self._graph = None
        self._inputs = [ids.to(device), targets.to(device)]
        self._inputs += [torch.full((room,), NONE, device=device) for room in rooms]
        kind = PRECISIONS.get(self.updater.precision, torch.float32)
        state = torch.zeros(2, 1, len(ids), hidden, device=device, dtype=kind)
        self._state: State = (state[0], state[1])

    def _pass(self) -> Tensor:
        ids, targets, *groups = self._inputs
        with self.updater.autocast(cache=False):
            losses, after = self.model(ids, targets, self._state, groups)
        loss = self.updater.backward(losses.mean())
        for kept, new in zip(self._state, after, strict=True):
            kept.copy_(new.detach())
        return loss

    def _capture(self) -> None:
        """Warm up on a separate stream, as CUDA graphs require, then record; parameters stay unchanged."""
        before = [part.clone() for part in self._state]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                self._forget()
                self._pass()
        torch.cuda.current_stream().wait_stream(stream)
        self._forget()
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._loss = self._pass()
        self._gradients = [parameter.grad for parameter in self.model.parameters()]
        for kept, old in zip(self._state, before, strict=True):
            kept.copy_(old)

    def _forget(self) -> None:
        for parameter in self.model.parameters():
            parameter.grad = None
