"""Time several things side by side, so that a ratio holds whatever else the machine does."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Figure:
    """One line of the table."""

    group: str
    name: str
    value: float
    low: float  # of the repeats
    high: float
    unit: str  # what the value is: "x" for a ratio
    note: str = ""
    target: str = ""

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def seconds(work: Callable[[], object], device: torch.device, *, times: int = 0) -> float:
    """How long `work` takes, until the device is done with it; on a GPU, which is told ahead, ten in a row."""
    times = times or (10 if device.type == "cuda" else 1)
    wait(device)
    started = time.perf_counter()
    for _ in range(times):
        work()
    wait(device)
    return (time.perf_counter() - started) / times


def wait(device: torch.device) -> None:
    """Until the device has done all it was told to."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def side_by_side(
    works: Mapping[str, Callable[[], object]],
    device: torch.device,
    *,
    repeats: int,
    warm_up: int = 1,
    times: int = 0,
) -> dict[str, list[float]]:
    """Seconds of each work, all of them in turn, again and again."""
    for _ in range(warm_up):
        for work in works.values():
            work()
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            taken[name].append(seconds(work, device, times=times))
    return taken


def ratio(group: str, name: str, over: list[float], under: list[float], **more: str) -> Figure:
    """over / under, repeat by repeat: the median and the range of its middle half."""
    each = [a / b for a, b in zip(over, under, strict=True)]
    return Figure(group, name, *quartiles(each), "x", **more)


def rate(group: str, name: str, count: float, taken: list[float], unit: str, **more: str) -> Figure:
    """count / seconds: the median and the range of its middle half."""
    return Figure(group, name, *quartiles([count / one for one in taken]), unit, **more)


def quartiles(values: list[float]) -> tuple[float, float, float]:
    """The median and the range of the middle half."""
    low, _, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return statistics.median(values), low, high
