"""Weights, and everything needed to resume a run, as safetensors files in its folder."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from wordward.runs import run_folder
from wordward.runs.run_folder import CONFIG, POINTER, WEIGHTS, RunError
from wordward.support.files import whole, write
from wordward.support.random_state import drawn_on, put_back, state_of
from wordward.text.vocabulary import Vocabulary


def save_weights(folder: Path, model: nn.Module, vocabulary: Vocabulary) -> None:
    """The model, marked with the vocabulary it belongs to."""
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    _save_tensors(folder / WEIGHTS, tensors, {"vocabulary": vocabulary.fingerprint})


def load_weights(path: str | Path, model: nn.Module, vocabulary: Vocabulary) -> None:
    """Load weights into a model; raises an error if they belong to another vocabulary."""
    try:
        model.load_state_dict(load_tensors(path, vocabulary))
    except RuntimeError as error:
        raise RunError(f"{Path(path) / WEIGHTS} does not fit the model of {CONFIG}: {error}") from None


def save_class_counts(folder: Path, counts: Tensor, vocabulary: Vocabulary) -> None:
    """Save how many training texts of each class contain each word, (words, classes)."""
    _save_tensors(folder / run_folder.CLASS_COUNTS, {"texts": counts}, {"vocabulary": vocabulary.fingerprint})


def load_class_counts(path: str | Path, vocabulary: Vocabulary) -> Tensor | None:
    """What `save_class_counts` wrote; None if a run has none."""
    file = Path(path) / run_folder.CLASS_COUNTS
    return _checked(file, vocabulary)["texts"] if file.exists() else None


def load_tensors(path: str | Path, vocabulary: Vocabulary) -> dict[str, Tensor]:
    """The weights of a run by name; raises an error if they belong to another vocabulary."""
    file = Path(path) / WEIGHTS
    if not file.exists():
        raise RunError(f"{path} holds no {WEIGHTS}: was the run stopped before its first epoch ended?")
    return _checked(file, vocabulary)


def _checked(file: Path, vocabulary: Vocabulary) -> dict[str, Tensor]:
    tensors, metadata = _read_tensors(file)
    if metadata.get("vocabulary") != vocabulary.fingerprint:
        raise RunError(
            f"{file} belongs to another vocabulary (expected {metadata.get('vocabulary')}, "
            f"{run_folder.VOCABULARY} is {vocabulary.fingerprint}): restore the vocabulary of that run"
        )
    return tensors


def _read_tensors(file: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    try:
        with safe_open(file, "pt") as opened:
            metadata = opened.metadata() or {}
        return load_file(file), metadata
    except (SafetensorError, OSError) as error:
        raise RunError(f"{file} is damaged or missing: {error}") from None


def save_checkpoint(folder: Path, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Write a checkpoint; the previous one is kept until this one is complete."""
    name = f"checkpoint-{state['steps']:08d}.safetensors"
    _save_tensors(folder / name, tensors, None)
    write(folder / POINTER, json.dumps({"file": name, **state}, indent=1))
    run_folder.drop_checkpoints(folder, keep=name)


def load_checkpoint(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """What `save_checkpoint` wrote last; None if there is none."""
    pointer = folder / POINTER
    if not pointer.exists():
        return None
    try:
        state = json.loads(pointer.read_text(encoding="utf-8"))
        name = state["file"]
    except (ValueError, KeyError, TypeError):
        raise RunError(f"{pointer} is damaged: delete it to start this run from the beginning") from None
    return _read_tensors(folder / name)[0], state


def pack(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Weights, optimiser and random states as named tensors."""
    tensors = {f"model.{name}": tensor.contiguous() for name, tensor in model.state_dict().items()}
    for number, values in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": torch.as_tensor(value) for name, value in values.items()}
    tensors |= {f"random.{device.type}": state for device, state in state_of(drawn_on(model)).items()}
    return {name: tensor.clone() for name, tensor in tensors.items()}


def unpack(tensors: dict[str, Tensor], model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Restore what `pack` took."""
    weights = {k.removeprefix("model."): v for k, v in tensors.items() if k.startswith("model.")}
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise RunError(f"the checkpoint does not fit the model of {CONFIG}: {error}") from None
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        if key.startswith("optimizer."):
            _, number, name = key.split(".", 2)
            state.setdefault(int(number), {})[name] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})
    kept = {device: f"random.{device.type}" for device in drawn_on(model)}  # none if saved on another kind of device
    put_back({device: tensors[name] for device, name in kept.items() if name in tensors})


def _save_tensors(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str] | None) -> None:
    try:
        with whole(path) as part:
            part.touch()
            mode = part.stat().st_mode  # as of any file made here; safetensors makes its own for the owner alone
            save_file(tensors, part, metadata)
            part.chmod(mode)
    except (SafetensorError, OSError) as error:
        raise RunError(
            f"{path} cannot be written: {error}: continue from the last checkpoint with `resume=True`"
        ) from None
