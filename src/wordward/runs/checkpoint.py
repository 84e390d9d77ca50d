"""Weights, and everything needed to resume a run, as safetensors files in its folder."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from wordward.runs import json_checks, run_folder
from wordward.runs.json_checks import check_kind
from wordward.runs.run_folder import CONFIG, POINTER, WEIGHTS
from wordward.runs.shapes import shapes_of
from wordward.support.errors import RunError
from wordward.support.files import settle, whole, write
from wordward.support.random_state import drawn_on, put_back, state_of
from wordward.text.vocabulary import Vocabulary

NAME = re.compile(r"checkpoint-\d+\.safetensors")
AFRESH = f"delete {POINTER} to start this run from the beginning"


def save_weights(folder: Path, model: nn.Module, vocabulary: Vocabulary) -> None:
    """Write the weights of a model, marked with the vocabulary that they belong to."""
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    _save_tensors(folder / WEIGHTS, tensors, {"vocabulary": vocabulary.fingerprint})


def load_weights(path: str | Path, model: nn.Module, vocabulary: Vocabulary) -> None:
    """Load weights into a model; raises an error if they belong to another vocabulary."""
    tensors = load_tensors(path, vocabulary)
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise RunError(f"{Path(path) / WEIGHTS} does not fit the model of {CONFIG}: {error}") from None
    if broken := [name for name, tensor in tensors.items() if not tensor.isfinite().all()]:
        raise RunError(f"{Path(path) / WEIGHTS} is damaged: {broken[0]} holds numbers that are not finite")


def check_fits(file: Path, make: Callable[[], nn.Module], *, prefix: str = "") -> None:
    """Refuse a file whose tensors (those with the prefix) do not have the shapes of the model that `make` makes."""
    if not file.exists():  # which is said elsewhere
        return
    try:
        with safe_open(file, "pt") as opened:
            names = [name for name in opened.keys() if name.startswith(prefix)]  # noqa: SIM118 - no dictionary
            found = {name.removeprefix(prefix): tuple(opened.get_slice(name).get_shape()) for name in names}
    except (SafetensorError, OSError) as error:
        raise RunError(f"{file} is damaged or missing: {error}") from None
    try:
        wanted = shapes_of(make)
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        raise RunError(f"{file} does not fit the sizes in {CONFIG}, of which no model can be made: {error}") from None
    for name in sorted(wanted.keys() | found.keys()):
        if wanted.get(name) != found.get(name):
            shapes = [
                f"is {shape}" if (shape := each.get(name)) is not None else "is none" for each in (wanted, found)
            ]
            raise RunError(
                f"{file} does not fit the model of {CONFIG}, in which {name} {shapes[0]}: here it {shapes[1]}; "
                "another version of wordward trained it, or the two files are of different runs: train it again"
            )


def save_class_counts(
    folder: Path,
    counts: Tensor,
    vocabulary: Vocabulary,
    standing: Tensor | None = None,
    capitals: Tensor | None = None,
) -> None:
    """Save how many training texts of each class contain each word, (words, classes), and where words stand in them.

    `standing`: a vector for each word, (words, dim), if known; `capitals`: with it the share of each, (words,), that
    is written with a capital within sentences.
    """
    more = {"standing": standing, "capitals": None if standing is None else capitals}
    tensors = {"texts": counts} | {name: values.half() for name, values in more.items() if values is not None}
    _save_tensors(folder / run_folder.CLASS_COUNTS, tensors, {"vocabulary": vocabulary.fingerprint})


def load_class_counts(path: str | Path, vocabulary: Vocabulary) -> Tensor | None:
    """What `save_class_counts` wrote; None if a run has none."""
    file = Path(path) / run_folder.CLASS_COUNTS
    if not file.exists():
        return None
    counts = _checked(file, vocabulary).get("texts")
    wanted = len(vocabulary), len(run_folder.load_labels(path))
    if counts is None or counts.shape != wanted or counts.is_floating_point() or bool((counts < 0).any()):
        raise RunError(
            f"{file} is damaged: expected how many texts hold each word, {wanted[0]} by {wanted[1]} counts"
        )
    return counts


def load_contexts(path: str | Path, vocabulary: Vocabulary) -> Tensor | None:
    """Of `save_class_counts` where words stand; None if a run, such as an older one, has not kept it."""
    file = Path(path) / run_folder.CLASS_COUNTS
    found = _checked(file, vocabulary).get("standing") if file.exists() else None
    if found is None:
        return None
    if found.dim() != 2 or len(found) != len(vocabulary) or not bool(found.isfinite().all()):
        raise RunError(f"{file} is damaged: expected a vector for each of {len(vocabulary)} words as standing")
    return found.float()


def load_capitals(path: str | Path, vocabulary: Vocabulary) -> Tensor:
    """Of `save_class_counts` how large a share of each word is written with a capital; 0 if a run has not kept it."""
    file = Path(path) / run_folder.CLASS_COUNTS
    found = _checked(file, vocabulary).get("capitals") if file.exists() else None
    if found is None:
        return torch.zeros(len(vocabulary))
    if found.shape != (len(vocabulary),) or not bool(((found >= 0) & (found <= 1)).all()):
        raise RunError(f"{file} is damaged: expected a share for each of {len(vocabulary)} words as capitals")
    return found.float()


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
    settle(folder)  # else a power cut might keep the old pointer, and not what it points to
    run_folder.drop_checkpoints(folder, keep=name)


def load_checkpoint(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """What `save_checkpoint` wrote last; None if there is none."""
    state = _last_state(folder)
    return None if state is None else (_read_tensors(folder / state["file"])[0], state)


def check_resumable(folder: Path, make: Callable[[], nn.Module]) -> None:
    """Refuse a checkpoint that does not fit the model that `make` makes, before it is made in full."""
    if (state := _last_state(folder)) is not None:
        check_fits(folder / state["file"], make, prefix="model.")


def _last_state(folder: Path) -> dict[str, Any] | None:
    """What the last checkpoint keeps beside its tensors; None if there is none."""
    pointer = folder / POINTER
    if not pointer.exists():
        return None
    try:
        state = json.loads(pointer.read_text(encoding="utf-8"))
        check_kind(state, json_checks.CHECKPOINT)
        if not NAME.fullmatch(state["file"]):
            raise ValueError(f"expected a checkpoint's name as file; got {state['file'][:60]!r}")
    except (ValueError, RecursionError, OSError) as error:
        raise RunError(f"{pointer} is damaged ({error}): {AFRESH}") from None
    return state


@contextmanager
def restoring(folder: Path, remedy: str = AFRESH) -> Iterator[None]:
    """Refuse a checkpoint that cannot be continued from."""
    try:
        yield
    except RunError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RuntimeError, OverflowError) as error:
        raise damaged(folder, error, remedy) from None


def damaged(folder: Path, error: Exception, remedy: str) -> RunError:
    """What to raise where a checkpoint could not be taken over."""
    why = str(error).strip().partition("\n")[0][:200] or type(error).__name__
    return RunError(f"the checkpoint of {folder} is damaged ({why}): {remedy}")


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
            state.setdefault(int(number), {})[name] = value.clone()  # or the file stays open
    groups = optimizer.state_dict()["param_groups"]
    _check_optimizer(state, [parameter for group in optimizer.param_groups for parameter in group["params"]])
    optimizer.load_state_dict({"state": state, "param_groups": groups})
    kept = {device: f"random.{device.type}" for device in drawn_on(model)}  # none if saved on another kind of device
    put_back({device: tensors[name] for device, name in kept.items() if name in tensors})


def _check_optimizer(state: dict[int, dict[str, Tensor]], parameters: list[Tensor]) -> None:
    """Refuse a state of Adam that is not one number of steps, and two means, for each parameter."""
    for number, values in state.items():
        shapes = {name: tuple(value.shape) for name, value in values.items()}
        of_parameter = tuple(parameters[number].shape)
        if shapes != {"step": (), "exp_avg": of_parameter, "exp_avg_sq": of_parameter}:
            raise ValueError(f"expected the optimiser's state of parameter {number}; got {shapes}")


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
