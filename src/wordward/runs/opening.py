"""Opening a run folder: one of ours, or one with a Hugging Face model."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from wordward.config.settings import TrainConfig
from wordward.runs import lstm, run_folder, transformer
from wordward.runs.run import Run
from wordward.support.device import pick_device
from wordward.support.errors import RunError, SettingError


def load_run(path: str | Path, *, device: str = "auto", positive: str | None = None) -> Run:
    """The best model of a run folder, ready to predict: one of ours, or a Hugging Face model.

    `positive`: a tagger's tag whose F0.5 counts and which attacks make it miss, instead of the one of its training.
    """
    config = run_folder.load_config(path, TrainConfig)
    if positive is not None:
        config = _flagging(positive, config, path)
    kind = lstm if config.transformer is None else transformer
    return kind.open_run(Path(path), config, pick_device(device))


def opener(run: Run) -> partial[Run]:
    """A picklable function that loads the same run in another process."""
    return partial(load_run, run.folder, device=str(run.device), positive=run.config.training.positive)


def short_names(folders: Sequence[Path]) -> list[str]:
    """The last names of the folders, with as many of those before as it takes to tell them apart."""
    parts = [folder.resolve().parts for folder in folders]
    for count in range(1, max(map(len, parts)) + 1):
        names = ["/".join(of_folder[-count:]) for of_folder in parts]
        if len(set(names)) == len(names):
            return names
    raise RunError(f"expected different runs; got {', '.join(map(str, folders))}: name each once")


def _flagging(tag: str, config: TrainConfig, path: str | Path) -> TrainConfig:
    """The settings of a run whose `positive` is another tag."""
    labels = run_folder.load_labels(path)
    if config.task != "tag":
        raise SettingError(
            "positive", f"positive names a tag of a tagger, but {path} gives each text one label: leave it out"
        )
    if tag not in labels:
        raise SettingError(
            "positive", f"expected `positive` among the tags of {path}, {', '.join(labels)}; got {tag!r}"
        )
    return replace(config, training=replace(config.training, positive=tag))
