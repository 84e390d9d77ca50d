"""Updates of a model's weights: Adam with clipping, in mixed precision, over one process or several."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from wordward.runs import checkpoint
from wordward.support.distributed import ALONE, Team
from wordward.support.errors import DivergedError
from wordward.train.averaging import MovingAverage

PRECISIONS = {"fp16": torch.float16, "bf16": torch.bfloat16}
FUSED = ("cpu", "cuda")  # devices on which one kernel updates weights and both of Adam's means: half the time
CHECKED = 50  # steps between checks of the loss on a GPU, since each check waits for it


def settled_precision(asked: str, device: torch.device) -> str:
    """The precision to compute with; auto is the device's fastest."""
    return asked if asked != "auto" else "fp16" if device.type == "cuda" else "fp32"


class Updater:
    """Adam with clipping and mixed precision; remembers the first step whose loss was not finite.

    Several processes add up their gradients before they are clipped, so all make the same update.
    """

    def __init__(
        self,
        model: nn.Module,
        device: torch.device,
        *,
        clip: float,
        precision: str,
        averaging: float = 0.0,
        team: Team = ALONE,
    ) -> None:
        self.model, self.device, self.clip, self.team = model, device, clip, team
        self.precision = settled_precision(precision, device)
        self.check_every = 1 if device.type == "cpu" else CHECKED  # steps between two checks of the loss
        self.optimizer = torch.optim.Adam(model.parameters(), fused=device.type in FUSED)
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.precision == "fp16")
        self.average = MovingAverage(model, averaging) if averaging else None
        self.steps = 0
        self._broken = torch.full((), -1, device=device)

    def autocast(self, *, cache: bool = True) -> Any:
        """The context for forward passes; inside a CUDA graph, without the cache of casts."""
        if self.precision == "fp32":
            return nullcontext()
        return torch.autocast(self.device.type, dtype=PRECISIONS[self.precision], cache_enabled=cache)

    def begin(self, learning_rate: float) -> None:
        """Start a step: set the learning rate, clear the gradients."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.optimizer.zero_grad(set_to_none=True)

    def backward(self, loss: Tensor) -> Tensor:
        """Backpropagate a loss; returns it detached."""
        self.scaler.scale(loss).backward()
        return loss.detach()

    def finish(self, loss: Tensor) -> Tensor:
        """Clip and update; returns the step's losses, one or several, over all processes, still on the device."""
        loss = self.team.add_up(self.model.parameters(), loss)  # where one overflowed, all get inf and skip
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self._broken = torch.where((self._broken < 0) & ~loss.isfinite().all(), self.steps, self._broken)
        self.steps += 1
        if self.average is not None:
            self.average.update(self.steps)
        return loss

    def averaged(self) -> AbstractContextManager[None]:
        """The model as it is scored and saved: with averaged weights if averaging is on."""
        return nullcontext() if self.average is None else self.average.in_place()

    def refuse_broken(self, kept: Callable[[], str]) -> None:
        """Stop if a loss was NaN or infinite (waits for the device); only then `kept` is asked what is left."""
        if (step := int(self._broken)) >= 0:
            raise diverged(step + 1, kept())

    def tensors(self) -> dict[str, Tensor]:
        """Weights, optimiser, random states and averages by name, for a checkpoint."""
        averages = {} if self.average is None else self.average.tensors()
        return checkpoint.pack(self.model, self.optimizer) | averages

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps beside `tensors`."""
        return {"steps": self.steps, "scaler": self.scaler.state_dict()}

    def load(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Take over what `tensors` and `state` gave."""
        checkpoint.unpack(tensors, self.model, self.optimizer)
        if self.average is not None:
            self.average.load(tensors)
        self.steps = state["steps"]
        if state["scaler"]:  # none was needed before, on a device that computes in fp32
            self.scaler.load_state_dict(state["scaler"])


def diverged(step: int, kept: str) -> DivergedError:
    """The error of a loss that is not finite; `kept` says what is left of the run."""
    return DivergedError(
        f"the loss is not finite at step {step}; {kept}. "
        "Lower `learning_rate`, or the `epsilon` of a method, or use `precision='fp32'`"
    )
