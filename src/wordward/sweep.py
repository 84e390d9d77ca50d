"""Try several values of a setting, and keep the run that is best on dev."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import tyro

from wordward import checkpoint
from wordward.config import TrainConfig, setting_names
from wordward.console import say
from wordward.train import train


def parse(choices: Sequence[str]) -> dict[str, list[str]]:
    """`epsilon=1,2.5,5` as a setting and the values to try."""
    found: dict[str, list[str]] = {}
    for choice in choices:
        name, equals, values = choice.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not values.strip():
            raise ValueError(f"a sweep is written SETTING=A,B,C, but came {choice!r}")
        if name not in setting_names(TrainConfig):
            known = ", ".join(sorted(setting_names(TrainConfig)))
            raise ValueError(f"{name!r} is no setting to sweep; known are {known}")
        found[name] = [value.strip() for value in values.split(",") if value.strip()]
    return found


def with_settings(config: TrainConfig, chosen: dict[str, str]) -> TrainConfig:
    """The config with some settings changed."""
    for name, value in chosen.items():
        config = with_setting(config, name, value)
    return config


def with_setting(config: Any, name: str, value: str) -> Any:
    """The config with one setting changed, wherever it stands."""
    for item in fields(config):
        part = getattr(config, item.name)
        if item.name == name:
            flag = [f"--{name.replace('_', '-')}", value]
            changed = tyro.cli(
                type(config),
                args=flag,
                default=config,
                config=(tyro.conf.FlagConversionOff,),
                console_outputs=False,
            )
            return replace(config, **{name: getattr(changed, name)})
        if is_dataclass(part) and name in setting_names(type(part)):
            return replace(config, **{item.name: with_setting(part, name, value)})
    raise AssertionError(f"{name} is not in {type(config).__name__}")


def train_sweep(
    config: TrainConfig,
    choices: Sequence[str],
    out: str | Path,
    *,
    force: bool = False,
    resume: bool = False,
    quiet: bool = False,
) -> dict[str, Any]:
    """Train every combination into a folder of its own below `out`, and copy the best into `out` itself."""
    grid = parse(choices)
    trials = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    configs = [with_settings(config, chosen) for chosen in trials]  # refused before anything is trained
    folder = Path(out) if resume else checkpoint.create(out, force=force)
    tried: list[dict[str, Any]] = []
    for chosen, settings in zip(trials, configs, strict=True):
        say(f"sweep: {_label(chosen)}", quiet=quiet)
        result = _train_one(settings, folder / _label(chosen), force=force, resume=resume, quiet=quiet)
        tried.append({"choice": chosen, **{name: result[name] for name in ("criterion", "dev", "seconds")}})
        checkpoint.write(
            folder / checkpoint.SWEEP, json.dumps({"chosen": None, "tried": tried}, indent=1) + "\n"
        )
        if result["stopped"]:
            break
    best = _best(tried, folder)
    record = {"chosen": best["choice"], "tried": tried}
    checkpoint.write(folder / checkpoint.SWEEP, json.dumps(record, indent=1) + "\n")
    checkpoint.copy_run(folder / _label(best["choice"]), folder)
    say(f"chosen on dev: {_label(best['choice'])}, copied to {folder}", quiet=quiet)
    return record


def _train_one(
    settings: TrainConfig, folder: Path, *, force: bool, resume: bool, quiet: bool
) -> dict[str, Any]:
    """One run of the sweep; a finished one is not trained again on resuming."""
    done = folder / checkpoint.RESULT
    if resume and done.exists():
        result = json.loads(done.read_text(encoding="utf-8"))
        if not result["stopped"]:
            return result
    going = resume and (folder / checkpoint.CONFIG).exists()
    return train(settings, folder, force=force, resume=going, quiet=quiet)


def _best(tried: list[dict[str, Any]], folder: Path) -> dict[str, Any]:
    scored = [entry for entry in tried if entry["dev"]]
    if not scored:
        raise RuntimeError(f"no epoch of the sweep in {folder} was finished, so nothing was chosen")
    criterion = scored[0]["criterion"]
    sign = 1 if criterion == "error" else -1
    return min(scored, key=lambda entry: sign * entry["dev"][criterion])


def _label(chosen: dict[str, str]) -> str:
    """A combination as a folder name."""
    return ",".join(f"{name}={value}" for name, value in chosen.items()).replace("/", "_")
