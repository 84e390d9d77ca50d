"""Training steps: every method over the baseline's, the LSTM's share, the memory of directions."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import wordward
from benchmarks.timing import Figure, ratio, side_by_side
from benchmarks.words import draw
from wordward.config.settings import ModelSettings, TrainingSettings, filled
from wordward.models import Classifier
from wordward.perturbation.recipes import RECIPES, parse_methods
from wordward.runs.word_run import adversary_of
from wordward.text.corpus import Batch
from wordward.text.vocabulary import SPECIALS, Vocabulary
from wordward.train.step import Stepper

TARGETS = {"advt": "2.15", "iadvt": "2.15", "vat": "3.6", "ivat": "3.6"}
THREE_LINES = "2.7"


@dataclass(frozen=True)
class Size:
    """A model and its batches."""

    name: str
    words: int
    model: ModelSettings
    batch: int
    length: int
    repeats: int
    methods: tuple[str, ...] = tuple(RECIPES)

    def batches(self, device: torch.device) -> tuple[Batch, Batch]:
        """A labelled batch and one without labels."""
        ranks = draw(self.words - len(SPECIALS), (2, self.batch, self.length))
        ids = torch.from_numpy(ranks + len(SPECIALS)).to(device)
        mask = torch.ones_like(ids, dtype=torch.bool)
        labels = torch.arange(self.batch, device=device) % 2
        return Batch(ids[0], mask[0], labels), Batch(ids[1], mask[1], None)

    def classifier(self, device: torch.device) -> Classifier:
        """A fresh model."""
        torch.manual_seed(0)
        return Classifier(self.words, 2, self.model).to(device).train()

    def vocabulary(self) -> Vocabulary:
        """Words that may all be pointed at."""
        names = (f"word{number}" for number in range(self.words - len(SPECIALS)))
        return Vocabulary((*SPECIALS, *names), np.ones(self.words))


SMALL = Size("small", 5_000, ModelSettings(dim=64, hidden=128), batch=32, length=40, repeats=10)
PAPER = Size(
    "paper",
    20_000,
    ModelSettings(),
    batch=32,
    length=100,
    repeats=3,
    methods=("advt", "iadvt", "vat", "ivat"),  # a step takes seconds on a CPU
)
SIZES = {size.name: size for size in (SMALL, PAPER)}


def stepper(size: Size, method: str, device: torch.device, **settings: int) -> Stepper:
    """Our training step of a method."""
    model, words = size.classifier(device), size.vocabulary()
    methods = [replace(m, settings=replace(m.settings, **settings)) for m in parse_methods(method)]
    made = [adversary_of(each, model, words, 1) for each in methods]
    return Stepper(model, made, filled(TrainingSettings(device=device.type)), device)


def a_step(size: Size, method: str, device: torch.device) -> Callable[[], object]:
    """One update by our loop; nearest words are searched every 100 steps, beforehand for the first."""
    step = stepper(size, method, device)
    labelled, unlabelled = size.batches(device)
    return lambda: step(labelled, unlabelled if step.virtual else None)


def three_lines(size: Size, method: str, device: torch.device) -> Callable[[], object]:
    """One update as a user writes it, with `wordward.iadvt(model)` in a loop of their own."""
    model = size.classifier(device)
    optimizer = torch.optim.Adam(model.parameters(), fused=device.type == "cuda")
    labelled, unlabelled = size.batches(device)
    labels = labelled.labels
    assert labels is not None
    adv = wordward.adversary(model, method, site=model.words.dropout)
    virtual, gpu = RECIPES[method].objective == "kl", device.type == "cuda"
    scaler = torch.amp.GradScaler(device.type, enabled=gpu)

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast(device.type, torch.float16, enabled=gpu):  # as our own loop computes
            if virtual:
                loss = F.cross_entropy(model(labelled.ids), labels)
                loss = loss + adv(lambda: model(unlabelled.ids), mask=unlabelled.mask).loss
            else:
                out = adv(lambda: model(labelled.ids), labels, mask=labelled.mask)
                loss = F.cross_entropy(out.clean, labels) + out.loss
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        scaler.step(optimizer)
        scaler.update()

    return step


def lstm_alone(size: Size, device: torch.device) -> Callable[[], object]:
    """The baseline step's recurrent kernels: the LSTM forward and backward over a batch of vectors."""
    lstm = size.classifier(device).lstm
    vectors = torch.randn(size.batch, size.length, size.model.dim, device=device, requires_grad=True)
    half = torch.autocast(device.type, torch.float16, enabled=device.type == "cuda")

    def work() -> None:
        with half:
            states, _ = lstm(vectors)
        states.backward(torch.ones_like(states))

    return work


def update_alone(size: Size, device: torch.device) -> Callable[[], object]:
    """The baseline step's update: clipping and Adam over all weights, every word's included."""
    step = stepper(size, "baseline", device)
    step(size.batches(device)[0])

    def work() -> None:
        nn.utils.clip_grad_norm_(step.model.parameters(), 5.0)
        step.updater.optimizer.step()

    return work


def measure(size: Size, device: torch.device) -> Iterator[Figure]:
    """Every method's step over the baseline's, and what the baseline's is made of."""
    gpu = device.type == "cuda"
    works = {name: a_step(size, name, device) for name in ("baseline", *(RECIPES if gpu else size.methods))}
    loops = ("advt", "iadvt") if gpu or size is not PAPER else ("iadvt",)
    works |= {f"{name}, three lines": three_lines(size, name, device) for name in loops}
    parts = {
        "LSTM kernels": lstm_alone(size, device),
        "clipping and Adam over all weights": update_alone(size, device),
    }
    works |= parts
    taken = side_by_side(works, device, repeats=max(size.repeats, 10) if gpu else size.repeats)
    group = f"a training step, {size.name} size, over the baseline's"
    for name in works:
        if name == "baseline" or name in parts:
            continue
        target = THREE_LINES if "three" in name else TARGETS.get(name, "")
        yield ratio(group, name, taken[name], taken["baseline"], target=target and f"at most {target}")
    for name in parts:
        yield ratio(group, f"{name}, of the baseline's step", taken[name], taken["baseline"], note="a share")


def memory(size: Size, device: torch.device) -> Iterator[Figure]:
    """The memory peak of iAdvT's step over AdvT's, each in a process of its own."""
    peaks = {
        (method, k): _peak(size, method, k, device) for method, k in (("advt", 10), ("iadvt", 10), ("iadvt", 100))
    }
    for k in (10, 100):
        value = peaks["iadvt", k] / peaks["advt", 10]
        target = "at most 1.3" if k == 100 else ""
        yield Figure(
            f"memory peak of a step, {size.name} size", f"iadvt, k = {k}, over advt", value, value, value, "x",
            target=target,
        )  # fmt: skip


def _peak(size: Size, method: str, k: int, device: torch.device) -> float:
    command = [sys.executable, "-m", "benchmarks.steps", size.name, method, str(k), device.type]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def print_peak(size: Size, method: str, k: int, device: torch.device) -> None:
    """Bytes of memory that two steps took, the model's own and Adam's included."""
    step = stepper(size, method, device, k=k)
    labelled, _ = size.batches(device)
    before = _resident()
    for _ in range(2):
        step(labelled)
    print(torch.cuda.max_memory_allocated() if device.type == "cuda" else _resident() - before)


def _resident() -> int:
    """The most memory that this process ever held."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage counts what the process held that started this one
        (most,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(most.split()[1]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    given_size, given_method, given_k, given_device = sys.argv[1:]
    print_peak(SIZES[given_size], given_method, int(given_k), torch.device(given_device))
