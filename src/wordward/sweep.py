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

SWEEP = "sweep.json"


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
    names = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    configs = []
    for chosen in names:
        tried = config
        for name, value in chosen.items():
            tried = with_setting(tried, name, value)
        configs.append(tried)
    folder = Path(out) if resume else checkpoint.create(out, force=force)
    results: list[dict[str, Any]] = []
    for chosen, tried in zip(names, configs, strict=True):
        label = ",".join(f"{name}={value}" for name, value in chosen.items())
        inner = folder / label.replace("/", "_")
        say(f"sweep: {label}", quiet=quiet)
        done = inner / checkpoint.RESULT
        if resume and done.exists() and not json.loads(done.read_text())["stopped"]:
            result = json.loads(done.read_text())
        else:
            going = resume and (inner / checkpoint.CONFIG).exists()
            result = train(tried, inner, force=force, resume=going, quiet=quiet)
        results.append({"choice": chosen, "dev": result["dev"], "seconds": result["seconds"]})
        if result["stopped"]:
            break
    criterion = result["criterion"]
    scored = [entry for entry in results if entry["dev"]]
    if not scored:
        raise RuntimeError(f"no epoch of the sweep in {folder} was finished, so nothing was chosen")
    sign = 1 if criterion == "error" else -1
    best = min(scored, key=lambda entry: sign * entry["dev"][criterion])
    record = {"criterion": criterion, "chosen": best["choice"], "tried": results}
    checkpoint.write(folder / SWEEP, json.dumps(record, indent=1) + "\n")
    label = ",".join(f"{name}={value}" for name, value in best["choice"].items())
    checkpoint.copy_run(folder / label.replace("/", "_"), folder)
    say(f"chosen on dev: {label} ({criterion} {best['dev'][criterion]:.4f}), copied to {folder}", quiet=quiet)
    return record
