"""The run folder: settings, metrics, weights, vocabulary and labels, all as plain or safetensors files."""

import json
import os
import platform
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import wordward
from wordward.text import Vocabulary
from wordward.toml import Config, from_toml, to_toml

CONFIG, METRICS, WEIGHTS, RESULT = "config.toml", "metrics.jsonl", "model.safetensors", "result.json"
VOCABULARY, LABELS, POINTER, SWEEP = "vocabulary.txt", "labels.txt", "checkpoint.json", "sweep.json"
CLASS_COUNTS = "class_counts.safetensors"
TRANSFORMER, TRAINER = (
    "model",
    "checkpoints",
)  # folders: a Hugging Face model; while it is trained, the Trainer's


# Of settings that are not of the kind expected: what the other kind alone has, and what to say then.
OTHER_KIND = {
    "TrainConfig": (
        "streams",
        "{0} is a language model of wordward pretrain: train from it with `wordward train --pretrained {0} ...`, and "
        "give that run here",
    ),
    "PretrainConfig": (
        "method",
        "{0} is no language model of wordward pretrain, but a run of wordward train",
    ),
}


class RunError(ValueError):
    """A run folder that is not what was expected."""


def check_free(folder: Path, *, force: bool, inputs: Iterable[str] = ()) -> None:
    """Refuse a folder that a new run may not take: one in use without `force`, or one it reads from."""
    for given in inputs:
        if Path(given).resolve().is_relative_to(folder.resolve()):
            raise RunError(f"{given} lies in {folder}, which would be replaced: choose another --out")
    if not folder.exists():
        return
    if folder.is_dir() and {path.name for path in folder.iterdir()} <= {f"{CONFIG}.part"}:
        return  # empty, or killed before anything was whole
    if not force:
        raise RunError(
            f"{folder} exists already: choose another --out, --resume to go on with it, or --force to replace it"
        )
    if not folder.is_dir() or not any((folder / name).exists() for name in (CONFIG, SWEEP)):
        raise RunError(f"{folder} is not a run folder, so --force will not replace it: choose another --out")


def create(path: str | Path, *, force: bool = False) -> Path:
    """An empty run folder; one that exists is refused, or cleared of a run's files with `force`."""
    folder = Path(path)
    check_free(folder, force=force)
    folder.mkdir(parents=True, exist_ok=True)
    _drop_checkpoints(folder, keep=None)
    for name in (TRANSFORMER, f"{TRANSFORMER}.part", TRAINER):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in (
        POINTER,
        METRICS,
        WEIGHTS,
        RESULT,
        VOCABULARY,
        LABELS,
        CLASS_COUNTS,
        SWEEP,
        CONFIG,
    ):  # what marks a run, last
        (folder / name).unlink(missing_ok=True)
        (folder / f"{name}.part").unlink(missing_ok=True)
    return folder


def save_settings(folder: Path, config: Any, vocabulary: Vocabulary, labels: Iterable[str] = ()) -> None:
    """What a run is, before it starts."""
    write(folder / CONFIG, to_toml(config))
    part = folder / f"{VOCABULARY}.part"
    vocabulary.save(part)
    _put(part, folder / VOCABULARY)
    write(folder / LABELS, "".join(f"{json.dumps(label, ensure_ascii=False)}\n" for label in labels))


def begun(folder: Path) -> bool:
    """Whether a run wrote all that `save_settings` writes; killed before that, it has learnt nothing yet."""
    return (folder / LABELS).exists()


def load_config(path: str | Path, kind: type[Config]) -> Config:
    """The settings of a run."""
    file = Path(path) / CONFIG
    if not file.exists():
        raise RunError(f"{path} is not a run folder: it holds no {CONFIG}")
    text = file.read_text(encoding="utf-8")
    try:
        return from_toml(kind, text)
    except (TypeError, AttributeError, ValueError) as error:
        mark, why = OTHER_KIND[kind.__name__]
        if re.search(rf"^{mark} = ", text, re.MULTILINE):
            raise RunError(why.format(path)) from None
        raise RunError(f"{file} cannot be read: {error}") from None


def config_text(path: str | Path) -> str:
    """The settings of a run as they stand in its folder."""
    return (Path(path) / CONFIG).read_text(encoding="utf-8")


def load_vocabulary(path: str | Path) -> Vocabulary:
    """The vocabulary of a run."""
    file = Path(path) / VOCABULARY
    if not file.exists():
        raise RunError(f"{path} is not a run folder: it holds no {VOCABULARY}")
    return Vocabulary.load(file)


def load_labels(path: str | Path) -> tuple[str, ...]:
    """The classes or tags of a run."""
    text = (Path(path) / LABELS).read_text(encoding="utf-8")
    return tuple(json.loads(line) for line in text.split("\n") if line)


def save_weights(folder: Path, model: nn.Module, vocabulary: Vocabulary) -> None:
    """The model, marked with the vocabulary it belongs to."""
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    _save_tensors(folder / WEIGHTS, tensors, {"vocabulary": vocabulary.fingerprint})


def load_weights(path: str | Path, model: nn.Module, vocabulary: Vocabulary) -> None:
    """Fill a model; refused where the weights belong to another vocabulary."""
    try:
        model.load_state_dict(load_tensors(path, vocabulary))
    except RuntimeError as error:
        raise RunError(f"{Path(path) / WEIGHTS} does not fit the model of {CONFIG}: {error}") from None


def save_class_counts(folder: Path, counts: Tensor, vocabulary: Vocabulary) -> None:
    """In how many training texts of each class each word is, (words, classes)."""
    _save_tensors(folder / CLASS_COUNTS, {"texts": counts}, {"vocabulary": vocabulary.fingerprint})


def load_class_counts(path: str | Path, vocabulary: Vocabulary) -> Tensor | None:
    """What `save_class_counts` kept; None where a run has none."""
    file = Path(path) / CLASS_COUNTS
    return _checked(file, vocabulary)["texts"] if file.exists() else None


def load_tensors(path: str | Path, vocabulary: Vocabulary) -> dict[str, Tensor]:
    """The weights of a run by name; refused where they belong to another vocabulary."""
    file = Path(path) / WEIGHTS
    if not file.exists():
        raise RunError(f"{path} holds no {WEIGHTS}: was the run stopped before its first epoch ended?")
    return _checked(file, vocabulary)


def _checked(file: Path, vocabulary: Vocabulary) -> dict[str, Tensor]:
    tensors, metadata = _read_tensors(file)
    if metadata.get("vocabulary") != vocabulary.fingerprint:
        raise RunError(
            f"{file} belongs to another vocabulary (expected {metadata.get('vocabulary')}, {VOCABULARY} is "
            f"{vocabulary.fingerprint}): put the vocabulary of that run back"
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
    """All it takes to go on; the former checkpoint stays until this one is whole."""
    name = f"checkpoint-{state['steps']:08d}.safetensors"
    _save_tensors(folder / name, tensors, None)
    write(folder / POINTER, json.dumps({"file": name, **state}, indent=1))
    _drop_checkpoints(folder, keep=name)


def load_checkpoint(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """What `save_checkpoint` kept last; None where there is none."""
    pointer = folder / POINTER
    if not pointer.exists():
        return None
    try:
        state = json.loads(pointer.read_text(encoding="utf-8"))
        name = state["file"]
    except (ValueError, KeyError, TypeError):
        raise RunError(f"{pointer} is damaged: delete it to start this run from the beginning") from None
    return _read_tensors(folder / name)[0], state


def _drop_checkpoints(folder: Path, *, keep: str | None) -> None:
    for file in folder.glob("checkpoint-*.safetensors"):
        if file.name != keep:
            file.unlink()


def pack(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Weights, optimiser and random states as named tensors."""
    tensors = {f"model.{name}": tensor.contiguous() for name, tensor in model.state_dict().items()}
    for number, values in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": torch.as_tensor(value) for name, value in values.items()}
    tensors["random.cpu"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["random.cuda"] = torch.cuda.get_rng_state()
    return {name: tensor.clone() for name, tensor in tensors.items()}


def unpack(tensors: dict[str, Tensor], model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Put back what `pack` took."""
    model.load_state_dict({k.removeprefix("model."): v for k, v in tensors.items() if k.startswith("model.")})
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        if key.startswith("optimizer."):
            _, number, name = key.split(".", 2)
            state.setdefault(int(number), {})[name] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})
    torch.set_rng_state(tensors["random.cpu"])
    if "random.cuda" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors["random.cuda"])


def append_metrics(folder: Path, record: dict[str, Any]) -> None:
    """One line of metrics.jsonl."""
    with (folder / METRICS).open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def read_metrics(folder: str | Path) -> list[dict[str, Any]]:
    """All whole lines of metrics.jsonl; a power cut may leave half a line at the end."""
    file = Path(folder) / METRICS
    if not file.exists():
        return []
    lines = file.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
    return [json.loads(line) for line in lines]


def keep_metrics(folder: Path, count: int) -> None:
    """Cut metrics.jsonl back to the lines that a checkpoint knew of."""
    write(folder / METRICS, "".join(json.dumps(record) + "\n" for record in read_metrics(folder)[:count]))


def save_result(folder: Path, result: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """What came out of a run, with the machine and versions it came from."""
    on_gpu = device.type == "cuda"
    whole = {
        **result,
        "device": torch.cuda.get_device_name() if on_gpu else platform.processor() or platform.machine(),
        "versions": {
            "wordward": wordward.__version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
    }
    write(folder / RESULT, json.dumps(whole, indent=1) + "\n")
    return whole


def copy_run(source: Path, target: Path) -> None:
    """The finished run's files, without what only serves to go on with it."""
    for name in (CONFIG, METRICS, WEIGHTS, RESULT, VOCABULARY, LABELS, CLASS_COUNTS):
        if (source / name).exists():
            part = target / f"{name}.part"
            shutil.copy2(source / name, part)
            _put(part, target / name)
    if (source / TRANSFORMER).is_dir():
        part = target / f"{TRANSFORMER}.part"
        shutil.rmtree(part, ignore_errors=True)
        shutil.copytree(source / TRANSFORMER, part)
        put_folder(part, target / TRANSFORMER)


def put_folder(part: Path, path: Path) -> None:
    """Make a finished folder take the place of another, which stays until the last moment."""
    before = path.with_name(path.name + ".before")
    shutil.rmtree(before, ignore_errors=True)
    if path.exists():
        os.replace(path, before)
    os.replace(part, path)
    shutil.rmtree(before, ignore_errors=True)


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all, its folder too where there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_bytes(text.encode())
    _put(part, path)


def _save_tensors(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str] | None) -> None:
    part = path.with_name(path.name + ".part")
    try:
        save_file(tensors, part, metadata)
    except (SafetensorError, OSError) as error:
        part.unlink(missing_ok=True)
        raise RunError(
            f"{path} cannot be written: {error}: the run goes on from its last checkpoint with --resume"
        ) from None
    _put(part, path)


def _put(part: Path, path: Path) -> None:
    """Make a finished file take its place, safe against a power cut: on disk before it is renamed."""
    with part.open("rb") as file:
        os.fsync(file.fileno())
    os.replace(part, path)
