"""The run folder: settings, vocabulary, labels, metrics and result, all as plain files."""

import json
import platform
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from wordward.config.settings import without_unused
from wordward.config.toml import Config, built, named, parsed, to_toml
from wordward.runs import json_checks
from wordward.runs.json_checks import check_kind
from wordward.support.errors import RunError
from wordward.support.files import append, refuse_pipes, whole, write
from wordward.support.version import __version__
from wordward.text.vocabulary import Vocabulary

CONFIG, METRICS, WEIGHTS, RESULT = "config.toml", "metrics.jsonl", "model.safetensors", "result.json"
VOCABULARY, LABELS, POINTER, SWEEP = "vocabulary.txt", "labels.txt", "checkpoint.json", "sweep.json"
CLASS_COUNTS, LOCK = "class_counts.safetensors", "run.lock"
# Folders: a Hugging Face model, its Trainer's checkpoints, what TensorBoard shows.
TRANSFORMER, TRAINER, TENSORBOARD = "model", "checkpoints", "tensorboard"

# For settings of the wrong kind: a key that only the other kind has, and what to say then.
OTHER_KIND = {
    "TrainConfig": (
        "streams",
        "{0} is a language model of wordward pretrain: train from it with `wordward train`, as `pretrained`, and "
        "give that run here",
    ),
    "PretrainConfig": ("method", "{0} is a run of wordward train, not a language model of wordward pretrain"),
}


def save_settings(folder: Path, config: Any, vocabulary: Vocabulary, labels: Iterable[str] = ()) -> None:
    """Write what defines a run, before it starts."""
    write(folder / CONFIG, to_toml(config))
    with whole(folder / VOCABULARY) as part:
        vocabulary.save(part)
    write(folder / LABELS, "".join(f"{json.dumps(label, ensure_ascii=False)}\n" for label in labels))


def begun(folder: Path) -> bool:
    """Whether a run got past `save_settings`; one killed before that has not trained yet."""
    return (folder / LABELS).exists()


def load_config(path: str | Path, kind: type[Config]) -> Config:
    """The settings of a run."""
    file = _file_in(path, CONFIG)
    with readable(file):
        text = file.read_text(encoding="utf-8", errors="replace")
    try:
        return built(kind, without_unused(named(parsed(text), kind, source="it")))
    except (ValueError, RecursionError, OverflowError) as error:
        mark, why = OTHER_KIND[kind.__name__]
        if re.search(rf"^{mark} = ", text, re.MULTILINE):
            raise RunError(why.format(path)) from None
        raise RunError(f"{file} cannot be read: {error}") from None


def config_text(path: str | Path) -> str:
    """The settings of a run, as the text of its file."""
    return (Path(path) / CONFIG).read_text(encoding="utf-8")


def load_vocabulary(path: str | Path) -> Vocabulary:
    """The vocabulary of a run."""
    file = _file_in(path, VOCABULARY)
    with readable(file):
        return Vocabulary.load(file)


def _file_in(path: str | Path, name: str) -> Path:
    """A file that every run has; a folder without it is refused."""
    refuse_pipes(Path(path))
    file = Path(path) / name
    if not file.exists():
        there = f"it holds no {name}" if Path(path).is_dir() else "it is a file"
        why = there if Path(path).exists() else "there is no such folder here"
        raise RunError(
            f"{path} is not a run folder: {why}; give one that `wordward train` wrote (or `wordward pretrain`)"
        )
    return file


@contextmanager
def readable(file: Path, remedy: str = "") -> Iterator[None]:
    """Refuse a file whose content is not what a run writes there."""
    try:
        yield
    except RunError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OSError) as error:
        raise RunError(f"{file} cannot be read: {error}{remedy}") from None


def load_labels(path: str | Path) -> tuple[str, ...]:
    """The classes or tags of a run."""
    file = Path(path) / LABELS
    with readable(file):
        labels = [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]
        check_kind(labels, [str])
        if len(set(labels)) < len(labels):
            raise ValueError("expected each label once")
        "".join(labels).encode()  # half a character could not be shown
        return tuple(labels)


def check_labels(folder: Path, labels: tuple[str, ...]) -> None:
    """Refuse texts whose labels are not those that a run was trained with."""
    if (kept := load_labels(folder)) != labels:
        raise RunError(
            f"{folder} was trained with the labels {', '.join(kept)}, but its texts now have {', '.join(labels)}"
        )


def check_vocabulary(folder: Path, vocabulary: Vocabulary) -> None:
    """Refuse texts whose words are not those that a run was trained with."""
    if load_vocabulary(folder).fingerprint != vocabulary.fingerprint:
        raise RunError(
            f"{folder} was trained with another vocabulary than that of its texts now: have they changed, or was it "
            "begun by an earlier version of wordward?"
        )


def drop_checkpoints(folder: Path, *, keep: str | None) -> None:
    """Delete the checkpoints of a run, except the one named."""
    for file in folder.glob("checkpoint-*.safetensors"):
        if file.name != keep:
            file.unlink()


def append_metrics(folder: Path, record: dict[str, Any]) -> None:
    """One line of metrics.jsonl, on disk before the checkpoint that counts it."""
    append(folder / METRICS, json.dumps(record) + "\n")


def read_metrics(folder: str | Path) -> list[dict[str, Any]]:
    """All complete lines of metrics.jsonl; a power cut may leave half a line at the end."""
    file = Path(folder) / METRICS
    if not file.exists():
        return []
    with readable(file):
        lines = file.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
        records = [json.loads(line) for line in lines]
        check_kind(records, [json_checks.METRICS])
        return records


def restore_metrics(folder: Path, records: list[dict[str, Any]]) -> None:
    """Make metrics.jsonl what a checkpoint knew, whatever was added since or lost."""
    write(folder / METRICS, "".join(json.dumps(record) + "\n" for record in records))


def load_result(folder: Path) -> dict[str, Any] | None:
    """The result of a run so far; None if there is none yet."""
    refuse_pipes(folder)
    file = folder / RESULT
    if not file.exists():
        return None
    with readable(file, ": delete it and run the same command again, which continues the run"):
        result = json.loads(file.read_text(encoding="utf-8"))
        check_kind(result, json_checks.RESULT)
        if (scores := result.get("dev")) and result.get("criterion") not in scores:
            raise ValueError("expected the criterion among the scores on dev")
        return result


def finished(folder: Path) -> dict[str, Any] | None:
    """The result of a finished run; None if there is something left to train."""
    result = load_result(folder)
    return None if result is None or result["stopped"] else result


def save_result(folder: Path, result: dict[str, Any], device: torch.device, **versions: str) -> dict[str, Any]:
    """Write the result of a run, with the machine and versions it comes from; returns it."""
    on_gpu = device.type == "cuda"
    told = {
        **result,
        "device": torch.cuda.get_device_name() if on_gpu else platform.processor() or platform.machine(),
        "versions": {
            "wordward": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
            **versions,
        },
    }
    with suppress(RunError):  # a damaged one is replaced
        before = load_result(folder) or {}
        if "test" in before and before.get("steps") == result.get("steps"):  # nothing was trained since
            told["test"] = before["test"]
    _write_result(folder, told)
    return told


def save_test(folder: Path, test: dict[str, Any]) -> None:
    """Add the scores on test texts to the result of a run."""
    _write_result(folder, {**(load_result(folder) or {}), "test": test})


def _write_result(folder: Path, result: dict[str, Any]) -> None:
    write(folder / RESULT, json.dumps(result, indent=1) + "\n")


def copy_run(source: Path, target: Path) -> None:
    """Copy a finished run's files, without those needed only to resume it."""
    refuse_pipes(source)
    for name in (CONFIG, METRICS, WEIGHTS, RESULT, VOCABULARY, LABELS, CLASS_COUNTS):
        if (source / name).exists():
            with whole(target / name) as part:
                shutil.copy2(source / name, part)
    if (source / TRANSFORMER).is_dir():
        with whole(target / TRANSFORMER) as part:
            shutil.copytree(source / TRANSFORMER, part)
