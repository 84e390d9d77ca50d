"""Trackers of experiments, which are told the settings of a run and the metrics of each epoch."""

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from wordward.config.toml import to_toml
from wordward.runs.run_folder import TENSORBOARD
from wordward.support.console import say
from wordward.support.errors import MissingExtraError, RunError

PROJECT = "wordward"  # where the tracker's own variable names no other
Metrics = Mapping[str, float]


class Tracker(Protocol):
    """Told the metrics of each epoch, and when training ends."""

    def log(self, metrics: Metrics, step: int) -> None: ...
    def close(self) -> None: ...


def check_tracker(name: str | None) -> None:
    """Refuse a tracker whose package is not installed, before any time is spent."""
    if name is None:
        return
    found = find_spec(name)
    if found is None or found.origin is None:  # a mere folder of that name
        raise MissingExtraError(f"`report_to={name!r}` needs {name}, which is not installed: pip install {name}")


@contextmanager
def tracked(name: str | None, folder: Path, config: Any) -> Iterator[Tracker | None]:
    """The tracker of that name, told the settings of a run; closed at the end, also after an error.

    One that cannot be started is refused; one that fails later is told nothing more, and training goes on.
    """
    if name is None:
        yield None
        return
    try:
        tracker: Tracker = _Tolerated(name, _KINDS[name](folder, config))
    except Exception as error:  # of whichever package
        raise RunError(
            f"{name} could not be started ({type(error).__name__}: {error}): set it up, or leave out `report_to`"
        ) from None
    try:
        yield tracker
    finally:
        tracker.close()


def flat(values: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Values of parts under one name each: {"dev": {"error": 0.1}} as {"dev/error": 0.1}."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= flat(value, f"{before}{name}/") if isinstance(value, Mapping) else {before + name: value}
    return found


def _settings(config: Any) -> dict[str, Any]:
    return flat(tomllib.loads(to_toml(config)))


class _Tolerated:
    """A tracker whose failures are told, once, and do not end a run of hours."""

    def __init__(self, name: str, tracker: Tracker) -> None:
        self._name, self._tracker = name, tracker
        self._failed = False

    def log(self, metrics: Metrics, step: int) -> None:
        self._do(lambda: self._tracker.log(metrics, step))

    def close(self) -> None:
        self._do(self._tracker.close)

    def _do(self, what: Callable[[], None]) -> None:
        if self._failed:
            return
        try:
            what()
        except Exception as error:  # of whichever package
            self._failed = True
            why = f"{type(error).__name__}: {error}"
            say(f"{self._name} failed ({why}) and is told nothing more; training goes on, with all in metrics.jsonl")


class _TensorBoard:
    def __init__(self, folder: Path, config: Any) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(folder / TENSORBOARD))
        self.writer.add_text("settings", "    " + to_toml(config).replace("\n", "\n    "))  # Markdown's code block

    def log(self, metrics: Metrics, step: int) -> None:
        for name, value in metrics.items():
            self.writer.add_scalar(name, value, step)
        self.writer.flush()

    def close(self) -> None:
        self.writer.close()


class _Project:
    """Weights & Biases and trackio, which are called alike."""

    def __init__(self, package: Any, variable: str, folder: Path, config: Any, **options: Any) -> None:
        project = os.environ.get(variable) or PROJECT
        self.package = package
        package.init(project=project, name=folder.name, config=_settings(config), **options)

    def log(self, metrics: Metrics, step: int) -> None:
        self.package.log(dict(metrics), step=step)

    def close(self) -> None:
        self.package.finish()


def _wandb(folder: Path, config: Any) -> Tracker:
    import wandb  # type: ignore[import-not-found]

    return _Project(wandb, "WANDB_PROJECT", folder, config, dir=str(folder))


def _trackio(folder: Path, config: Any) -> Tracker:
    import trackio  # type: ignore[import-not-found]

    return _Project(trackio, "TRACKIO_PROJECT", folder, config)


class _MLflow:
    def __init__(self, folder: Path, config: Any) -> None:
        import mlflow  # type: ignore[import-not-found]

        self.mlflow = mlflow
        mlflow.start_run(run_name=folder.name)
        mlflow.log_params(_settings(config))

    def log(self, metrics: Metrics, step: int) -> None:
        self.mlflow.log_metrics(dict(metrics), step=step)

    def close(self) -> None:
        self.mlflow.end_run()


_KINDS: dict[str, Any] = {"tensorboard": _TensorBoard, "wandb": _wandb, "mlflow": _MLflow, "trackio": _trackio}
