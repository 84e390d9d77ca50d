"""Try several values of a setting, and keep the run that is best on dev."""

import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

from wordward.config.settings import TrainConfig
from wordward.config.toml import differing, from_toml, hint_of, setting_names, to_toml, typed
from wordward.runs import claiming, json_checks, run_folder
from wordward.runs.json_checks import check_kind
from wordward.runs.model_card import write_card
from wordward.support.console import say
from wordward.support.device import pick_device
from wordward.support.distributed import refuse_several
from wordward.support.errors import DivergedError, RunError, SettingError
from wordward.support.files import refuse_pipes, write
from wordward.support.given_settings import changed, given_names
from wordward.train.building import adversaries, build, with_fitting_k
from wordward.train.data import prepare, settle
from wordward.train.training import inputs_of, train, with_model

KEPT = "criterion", "dev", "best_epoch", "seconds"  # of a trial's result


def parse(choices: Sequence[str]) -> dict[str, list[str]]:
    """The values to try of each setting, by its name, from choices such as `epsilon=1,2.5,5`."""
    found: dict[str, list[str]] = {}
    for choice in choices:
        name, equals, values = choice.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not values.strip():
            raise SettingError("sweep", f"a sweep is written SETTING=A,B,C, but got {choice!r}")
        if name not in setting_names(TrainConfig):
            known = ", ".join(sorted(setting_names(TrainConfig)))
            raise SettingError("sweep", f"{name!r} is not a setting to sweep; choose from {known}")
        found.setdefault(name, []).extend(value.strip() for value in values.split(",") if value.strip())
    return found


def with_settings(config: TrainConfig, chosen: dict[str, str]) -> TrainConfig:
    """The config with some settings changed."""
    for name, value in chosen.items():
        config = with_setting(config, name, value)
    return config


def with_setting(config: Any, name: str, value: str) -> Any:
    """The config with one setting changed, at any level."""
    for item in fields(config):
        part = getattr(config, item.name)
        if item.name == name:
            return changed(config, **{name: _read(name, value)})
        if is_dataclass(part) and name in setting_names(type(part)):
            return changed(config, **{item.name: with_setting(part, name, value)})
    raise AssertionError(f"{name} is not in {type(config).__name__}")


def _read(name: str, value: str) -> Any:
    """A value converted to its setting's type."""
    hint = hint_of(TrainConfig, name)
    try:
        return typed({"true": True, "false": False}.get(value.lower(), value) if hint is bool else value, hint)
    except ValueError as error:
        raise SettingError("sweep", f"a sweep tries {name}={value}, but {name} must be {error}") from None


def train_sweep(
    config: TrainConfig,
    choices: Sequence[str],
    out: str | Path,
    *,
    force: bool = False,
    resume: bool = False,
    quiet: bool = False,
) -> dict[str, Any]:
    """Train every combination in its own folder below `out`, and copy the best into `out` itself."""
    refuse_several("a sweep")
    folder, trials = Path(out), _trials(config, choices)
    failures = _former_failures(folder, config) if resume else {}
    if not resume:
        claiming.check_free(folder, force=force, inputs=inputs_of(config))
    _refuse_unusable([settings for _, settings in trials])  # before an old result is replaced
    with claiming.held(folder):
        if not resume:
            claiming.create(folder, force=force)
        return _try_all(config, trials, failures, folder, force=force, resume=resume, quiet=quiet)


def _try_all(
    config: TrainConfig,
    trials: list[tuple[dict[str, str], TrainConfig]],
    failures: dict[str, str],
    folder: Path,
    *,
    force: bool,
    resume: bool,
    quiet: bool,
) -> dict[str, Any]:
    """Train the trials one after the other, and copy the best; `failures`: those that failed before a resume."""
    known = [(chosen, failures.get(_label(chosen))) for chosen, _ in trials]
    tried: list[dict[str, Any]] = [{"choice": chosen, "failed": why} for chosen, why in known if why is not None]
    given = sorted(given_names(config))
    record: dict[str, Any] = {"config": to_toml(config), "given": given}
    record |= {"chosen": None, "stopped": False, "tried": tried}
    _write(folder, record)
    for chosen, settings in trials:
        label = _label(chosen)
        say(f"sweep: {label}", quiet=quiet)
        if label in failures:
            say(f"{label} failed: {failures[label]}", quiet=quiet)
            continue
        try:
            result = _train_one(settings, folder / label, force=force, resume=resume, quiet=quiet)
            tried.append({"choice": chosen, **{name: result[name] for name in KEPT}})
            record["stopped"] = result["stopped"]
        except DivergedError as error:
            say(f"{label} failed: {error}", quiet=quiet)
            tried.append({"choice": chosen, "failed": str(error)})
        _write(folder, record)
        if record["stopped"]:
            break
    best = _best(tried)
    if best is None and not record["stopped"]:
        raise RunError(f"no trial of the sweep in {folder} finished, so nothing was chosen")
    if best is not None:
        label, record["chosen"] = _label(best["choice"]), best["choice"]
        run_folder.copy_run(folder / label, folder)
        if (folder / run_folder.TRANSFORMER).is_dir():
            write_card(folder, anew=True)  # by its own name
        for entry in tried:
            say(_outcome(entry), quiet=quiet)
        say(f"chosen on dev: {label}{_alike(best, tried)}, copied to {folder}", quiet=quiet)
    _write(folder, record)
    return record | {name: best[name] for name in KEPT} if best else record


def _trials(config: TrainConfig, choices: Sequence[str]) -> list[tuple[dict[str, str], TrainConfig]]:
    """Every combination with its config, each once."""
    grid = parse(choices)
    found: list[tuple[dict[str, str], TrainConfig]] = []
    for values in itertools.product(*grid.values()):
        chosen = dict(zip(grid, values, strict=True))
        settings = with_settings(config, chosen)
        if all(settings != other for _, other in found):
            found.append((chosen, settings))
    return found


def _refuse_unusable(configs: list[TrainConfig]) -> None:
    """Do all that each trial does before its first step, reading the texts only once where they are the same."""
    source, texts, former, data = None, {}, None, None
    for config in configs:
        pick_device(config.training.device)
        if config.data != source:
            source, texts = config.data, {}
        config, _ = with_model(config, texts, quiet=True)
        if config.transformer is not None:
            from wordward.train.finetuning_start import start_of

            start_of(config, texts)
            continue
        reads = config.data, config.text, config.pretrained, config.vectors, config.model.kind, config.training.seed
        if data is None or reads != former:
            former, (config, data) = reads, prepare(config, texts, quiet=True)
        else:
            config, data = settle(config, data)
        adversaries(with_fitting_k(config, data), data, build(config, data))


def _former_failures(folder: Path, config: TrainConfig) -> dict[str, str]:
    """Trials that failed before a sweep was stopped; raises an error if it was a different sweep."""
    refuse_pipes(folder)
    file = folder / run_folder.SWEEP
    if not file.exists():
        raise run_folder.RunError(f"{folder} holds no sweep to resume: leave out `resume`")
    with run_folder.readable(file):
        record = json.loads(file.read_text(encoding="utf-8"))
        check_kind(record, json_checks.SWEEP)
        given = given_names(config)
        names = differing(config, from_toml(TrainConfig, record["config"]))
        names += sorted(given.symmetric_difference(record.get("given", given)) - {*names})
        failed = {_label(entry["choice"]): entry["failed"] for entry in record["tried"] if "failed" in entry}
    if names:
        raise run_folder.RunError(
            f"the sweep in {folder} was started with other settings ({', '.join(names)}): give the same ones, "
            "or choose another `out`"
        )
    return failed


def _train_one(settings: TrainConfig, folder: Path, *, force: bool, resume: bool, quiet: bool) -> dict[str, Any]:
    """One run of the sweep; a finished one is not trained again on resuming."""
    if resume and (done := run_folder.finished(folder)) and all(name in done for name in KEPT):
        return done
    going = resume and (folder / run_folder.CONFIG).exists()
    return train(settings, folder, force=force, resume=going, quiet=quiet)


def _best(tried: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The trial that is best on dev, of those that have been scored."""
    scored = [entry for entry in tried if entry.get("dev")]
    if not scored:
        return None
    criterion = scored[0]["criterion"]
    sign = 1 if criterion == "error" else -1
    return min(scored, key=lambda entry: sign * entry["dev"][criterion])


def _alike(best: dict[str, Any], tried: list[dict[str, Any]]) -> str:
    """That other trials have the score of the best, which dev does not tell from them; empty where none has."""
    criterion = best["criterion"]
    score = best["dev"][criterion]
    count = sum((entry.get("dev") or {}).get(criterion) == score for entry in tried)
    return f", the first of {count} with that score" if count > 1 else ""


def _outcome(entry: dict[str, Any]) -> str:
    """The outcome of a trial, in one line."""
    outcome = "failed" if "failed" in entry else "not scored"
    if scored := entry.get("dev"):
        criterion = entry["criterion"]
        outcome = f"dev {criterion} {scored[criterion]:.4f}"
    return f"{_label(entry['choice'])}: {outcome}"


def _write(folder: Path, record: dict[str, Any]) -> None:
    write(folder / run_folder.SWEEP, json.dumps(record, indent=1) + "\n")


def _label(chosen: dict[str, str]) -> str:
    """A combination as a folder name."""
    written = ",".join(f"{name}={value}" for name, value in chosen.items())
    safe = re.sub(r'[\\/:*?"<>|]', "_", written)
    return safe if safe == written else f"{safe}-{crc32(written.encode()):08x}"  # a/b is not a_b
