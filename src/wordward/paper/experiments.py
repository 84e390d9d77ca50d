"""What the TOML files of experiments/ ask for: the settings of rows and language models, and of their records."""

import io
import json
from collections.abc import Iterable
from contextlib import redirect_stderr
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import tyro

from wordward import run_folder
from wordward.config import PRESETS, PretrainConfig, TrainConfig
from wordward.encoded.corpora import PACK
from wordward.paper.results import Record
from wordward.paper.tables import Column, Row
from wordward.rules import COUNT, check
from wordward.toml import flags, flags_of, from_toml

Config = TypeVar("Config", TrainConfig, PretrainConfig)
COMMON, READING = "common.toml", "pretrain.toml"
LANGUAGE_MODEL = "language_model"  # of a record: what its row started from
SETTLED = "task", "criterion", "positive", "max_length"  # what a run finds out where it is left open
SPLIT_SEED = 1  # of the texts held out where a column has no dev texts: the same for every seed

# The overrides of --preset cpu-small: everything runs, in minutes, on two cores, and learns something. It has a few
# hundred steps, so they are large and not averaged, perturbations are short, and the language model, which reads so
# little, changes little.
_SMALL: dict[str, Any] = {"limit": 1000, "max_length": 60, "precision": "fp32"}
_SIZES: dict[str, Any] = _SMALL | {"max_vocabulary": 5000, "dim": 32, "hidden": 32}
SMALL_READING = _SIZES | {"epochs": 1, "streams": 8, "learning_rate": 0.0003}
SMALL_TRAINING = _SIZES | {"head": PRESETS["small"]["head"], "vectors": "None", "rescaled": False}
SMALL_TRAINING |= {"word_dropout": 0.2, "head_dropout": 0.0, "learning_rate": 0.01, "averaging": 0.0}
SMALL_TRAINING |= {"epsilon": 0.3, "epochs": 5, "batch_size": 16, "unlabelled_batch_size": 16}
SMALL_FINE_TUNING = _SMALL | {"limit": 64, "max_length": 32, "epochs": 1}


@dataclass(frozen=True)
class Plan:
    """Where things are and how large they are to be."""

    experiments: Path
    out: Path
    preset: str = "paper"  # or cpu-small
    seeds: int = 1
    device: str = "auto"
    jobs: int = 1
    quiet: bool = False

    def __post_init__(self) -> None:
        check(self, COUNT, "seeds", "jobs")


def config_of(kind: type[Config], *files: Path, **settings: Any) -> Config:
    """A config from TOML files, later ones over earlier ones, and single settings over all."""
    arguments = [flag for file in files if file.exists() for flag in flags(file, kind)]
    arguments += flags_of(settings, kind, source="reproduce")
    shown = io.StringIO()
    try:
        with redirect_stderr(shown):
            return tyro.cli(kind, args=arguments, config=(tyro.conf.OmitArgPrefixes,))
    except SystemExit as stopped:  # tyro's, which would end the columns after this one too
        why = getattr(stopped.__context__, "message", None) or f"\n{shown.getvalue()}"
        raise ValueError(
            f"{' and '.join(map(str, files))}: expected values that their settings can have; got: {why}"
        ) from None


def row_config(column: Column, row: Row, seed: int, plan: Plan) -> TrainConfig:
    """What one row of a column trains with one seed."""
    folder = plan.experiments / column.name
    files = folder / COMMON, folder / f"{row.name}.toml"
    told = config_of(TrainConfig, *files)
    settings: dict[str, Any] = {"seed": seed, "device": plan.device}
    if not told.data.corpus and not told.data.dev and told.data.split_seed is None:
        settings["split_seed"] = SPLIT_SEED
    if (folder / READING).exists():
        settings["pretrained"] = str(plan.out / column.name / "lm")
    if plan.preset == "cpu-small":
        settings |= SMALL_FINE_TUNING if told.transformer else SMALL_TRAINING
    return config_of(TrainConfig, *files, **settings)


def reading_config(column: Column, plan: Plan) -> PretrainConfig | None:
    """What the column's language model trains with; None where it starts from word vectors."""
    folder = plan.experiments / column.name
    if not (folder / READING).exists():
        return None
    settings = SMALL_READING if plan.preset == "cpu-small" else {}
    return config_of(PretrainConfig, folder / READING, device=plan.device, **settings)


def language_model(folder: Path) -> dict[str, Any]:
    """What a record keeps of the language model: held-out perplexity, and the settings that are not the defaults."""
    result = json.loads((folder / run_folder.RESULT).read_text(encoding="utf-8"))
    default = _settings_of(PretrainConfig())
    found = _settings_of(run_folder.load_config(folder, PretrainConfig))
    changed = {name: value for name, value in found.items() if value != default[name] and name != "device"}
    return {"perplexity": result["perplexity"], "settings": changed}


def check_settings(folder: Path, config: Any) -> None:
    """Refuse a run that was trained with other settings than those asked for now."""
    if told := _other_settings(
        _settings_of(run_folder.load_config(folder, type(config))), _settings_of(config)
    ):
        raise run_folder.RunError(
            f"{folder} was trained with other settings ({told}): choose another --out, or delete it to train it anew"
        )


def _other_settings(had: dict[str, Any], wanted: dict[str, Any], *, free: Iterable[str] = ()) -> str:
    """In words, the settings that are not those asked for now; what is left open, or `free`, may differ."""
    had, wanted = (_split_settled(each) for each in (had, wanted))
    open_ = {"device", *free} | {
        name for name in SETTLED if name in wanted and wanted[name] in (None, "auto")
    }
    other = [name for name in wanted if name not in open_ and wanted[name] != had[name]]
    return ", ".join(f"{name} {had[name]}, not {wanted[name]}" for name in other)


def _split_settled(found: dict[str, Any]) -> dict[str, Any]:
    """The held-out share is drawn by the seed where it has none of its own."""
    left = "split_seed" in found and found["split_seed"] is None
    return found | {"split_seed": found["seed"]} if left else found


def _settings_of(config: Any) -> dict[str, Any]:
    """Settings by name, those of its parts too."""
    found: dict[str, Any] = {}
    for name, value in vars(config).items():
        found |= _settings_of(value) if is_dataclass(value) else {name: value}
    return found


def check_rows(column: Column, rows: Iterable[Row], plan: Plan) -> None:
    """Refuse rows without a TOML file, which would be trained with the default method and settings."""
    files = (plan.experiments / column.name / f"{row.name}.toml" for row in rows)
    if gone := [str(file) for file in files if not file.is_file()]:
        raise ValueError(
            f"expected a TOML file for every row; not there: {', '.join(gone)}: put it back, or name the other rows "
            "with --rows"
        )


def check_records(column: Column, records: Iterable[Record], plan: Plan, file: Path) -> None:
    """Refuse records of `file` that were trained with other settings than the TOML files give now."""
    rows = {row.name: row for row in column.rows}
    reading = reading_config(column, plan)
    wanted: dict[str, TrainConfig] = {}
    for record in (record for record in records if record["row"] in rows):
        name, seed = record["row"], record["seed"]
        if name not in wanted:
            wanted[name] = row_config(column, rows[name], 1, plan)
        told = _other_row(record, replace(wanted[name], training=replace(wanted[name].training, seed=seed)))
        if reading is not None and LANGUAGE_MODEL in record:
            other = _other_reading(record[LANGUAGE_MODEL], reading)
            told = ", ".join(filter(None, [told, other and f"of the language model: {other}"]))
        if told:
            raise run_folder.RunError(
                f"{file} holds {name}, seed {seed}, trained with other settings than "
                f"{plan.experiments / column.name} gives now ({told}): put the settings back, or move that file "
                "away and choose another --out"
            )


def _other_row(record: Record, wanted: TrainConfig) -> str:
    """The settings of a record that differ, other than those of the machine it was trained on."""
    try:
        had = from_toml(TrainConfig, record["config"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        return f"which cannot be read: {error}"
    free = ["checkpoint_steps"]
    free += ["corpus"] if _same_corpus(had.data.corpus, wanted.data.corpus) else []
    free += ["pretrained"] if had.pretrained and wanted.pretrained else []
    return _other_settings(_settings_of(had), _settings_of(wanted), free=free)


def _other_reading(started: dict[str, Any], wanted: PretrainConfig) -> str:
    try:
        had = _settings_of(PretrainConfig()) | started["settings"]
        had["texts"] = tuple(had["texts"])  # a list in JSON
    except (KeyError, TypeError) as error:
        return f"which cannot be read: {error}"
    free = ["corpus"] if _same_corpus(had["corpus"], wanted.corpus) else []
    return _other_settings(had, _settings_of(wanted), free=free)


def _same_corpus(had: str | None, wanted: str | None) -> bool:
    """Whether two corpora may be one: packed, it has the name of any file."""
    return had == wanted or bool(had and wanted and (had.endswith(PACK) or wanted.endswith(PACK)))
