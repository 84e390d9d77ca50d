"""The TOML files of experiments/: settings of rows and language models, checked against those of their records."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from experiments.results import Record
from experiments.tables import Column, Row
from wordward.config.model import PRESETS
from wordward.config.settings import PretrainConfig, TrainConfig, TrainingSettings, filled
from wordward.config.toml import built, from_toml, named, read_toml
from wordward.perturbation.recipes import parse_methods
from wordward.runs import run_folder
from wordward.support.errors import DataError
from wordward.support.rules import COUNT, check
from wordward.text.corpora import PACK

Config = TypeVar("Config", TrainConfig, PretrainConfig)
COMMON, READING = "common.toml", "pretrain.toml"
LANGUAGE_MODEL = "language_model"  # key of a record: the model its row started from
SETTLED = "task", "criterion", "positive", "max_length"  # filled in by a run if left open
WITHOUT_LABELS = "unlabelled.jsonl"
FOLD_FILES = "train", "test", "unlabelled", "texts"  # which may be elsewhere on another machine
SPLIT_SEED = 1  # of the texts held out if a column has no dev texts: the same for every seed

# The overrides of the preset cpu-small: everything runs in minutes on two cores, and learns something. There are only
# a few hundred steps, so they are large and not averaged; perturbations are small; and the language model, which
# reads little, changes little.
_SMALL: dict[str, Any] = {"limit": 1000, "max_length": 60, "precision": "fp32"}
_SIZES: dict[str, Any] = _SMALL | {"max_vocabulary": 5000, "dim": 32, "hidden": 32}
SMALL_READING = _SIZES | {"epochs": 1, "streams": 8, "learning_rate": 0.0003}
SMALL_TRAINING = _SIZES | {"head": PRESETS["small"]["head"], "vectors": None, "rescaled": False}
SMALL_TRAINING |= {"word_dropout": 0.2, "head_dropout": 0.0, "learning_rate": 0.01, "averaging": 0.0}
SMALL_TRAINING |= {"epsilon": 0.3, "epochs": 5, "batch_size": 16, "unlabelled_batch_size": 16}
SMALL_FINE_TUNING = _SMALL | {"limit": 64, "max_length": 32, "epochs": 1}


@dataclass(frozen=True)
class Plan:
    """Where files are, and how and how often to run."""

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
    """A config from TOML files, later ones overriding earlier ones, and `settings` overriding all."""
    values: dict[str, Any] = {}
    for file in files:
        values |= named(read_toml(file), kind, source=str(file)) if file.exists() else {}
    try:
        return built(kind, values | named(settings, kind, source="reproduce"))
    except ValueError as error:
        raise DataError(
            f"{' and '.join(map(str, files))}: expected valid values of their settings; got: {error}"
        ) from None


def row_config(column: Column, row: Row, seed: int, plan: Plan) -> TrainConfig:
    """The config of one row of a column with one seed."""
    folder = plan.experiments / column.settings
    files = folder / COMMON, folder / f"{row.name}.toml"
    asked = config_of(TrainConfig, *files)
    settings: dict[str, Any] = {"seed": seed, "device": plan.device}
    if not asked.data.corpus and not asked.data.dev and asked.data.split_seed is None:
        settings["split_seed"] = SPLIT_SEED
    if column.folds_of:
        settings |= _fold_settings(column, row, seed, plan)
    if (folder / READING).exists():
        settings["pretrained"] = str(plan.out / column.name / "lm")
    if plan.preset == "cpu-small":
        settings |= SMALL_FINE_TUNING if asked.transformer else SMALL_TRAINING
    return config_of(TrainConfig, *files, **settings)


def fold_folder(column: Column, plan: Plan) -> Path:
    """Where the texts of its folds are."""
    return plan.out / column.name / "folds"


def _fold_settings(column: Column, row: Row, fold: int, plan: Plan) -> dict[str, Any]:
    """The texts of one fold; those without labels for the methods that use them."""
    folder = fold_folder(column, plan)
    files = {name: str(folder / str(fold) / f"{name}.jsonl") for name in ("train", "test")}
    uses_all = any(method.recipe.objective == "kl" for method in parse_methods(row.name))
    without = str(folder / WITHOUT_LABELS) if uses_all else None
    columns = {"text_column": "text", "label_column": "label"}
    return {"corpus": None, "dev": None, "unlabelled": without, "split_seed": SPLIT_SEED, **files, **columns}


def reading_config(column: Column, plan: Plan) -> PretrainConfig | None:
    """The config of the column's language model; None if it starts from word vectors."""
    folder = plan.experiments / column.settings
    if not (folder / READING).exists():
        return None
    settings = dict(SMALL_READING) if plan.preset == "cpu-small" else {}
    if column.folds_of:  # a labelled text is a test text of some fold
        settings |= {
            "corpus": None,
            "texts": (str(fold_folder(column, plan) / WITHOUT_LABELS),),
            "text_column": "text",
        }
    return config_of(PretrainConfig, folder / READING, device=plan.device, **settings)


def language_model(folder: Path) -> dict[str, Any]:
    """What a record keeps of the language model: held-out perplexity, and the settings that are not defaults."""
    result = json.loads((folder / run_folder.RESULT).read_text(encoding="utf-8"))
    default = _settings_of(PretrainConfig())
    settings = _settings_of(run_folder.load_config(folder, PretrainConfig))
    changed = {name: value for name, value in settings.items() if value != default[name] and name != "device"}
    return {"perplexity": result["perplexity"], "settings": changed}


def check_settings(folder: Path, config: Any) -> None:
    """Refuse a run that was trained with settings other than those requested now."""
    if differing := _other_settings(_settings_of(run_folder.load_config(folder, type(config))), _settings_of(config)):
        raise run_folder.RunError(
            f"{folder} was trained with other settings ({differing}): choose another `out`, or delete it to "
            "train it again"
        )


def _other_settings(had: dict[str, Any], wanted: dict[str, Any], *, free: Iterable[str] = ()) -> str:
    """In words, the settings that are not those requested now; those left open, or in `free`, may differ."""
    had, wanted = (_split_settled(settings) for settings in (had, wanted))
    open_ = {"device", *free} | {name for name in SETTLED if name in wanted and wanted[name] in (None, "auto")}
    other = [name for name in wanted if name not in open_ and wanted[name] != had[name]]
    return ", ".join(f"{name} {had[name]}, not {wanted[name]}" for name in other)


def _split_settled(settings: dict[str, Any]) -> dict[str, Any]:
    """With split_seed filled in: by default, the held-out share is drawn by the seed."""
    left_open = "split_seed" in settings and settings["split_seed"] is None
    return settings | {"split_seed": settings["seed"]} if left_open else settings


def _settings_of(config: Any) -> dict[str, Any]:
    """Settings by name, including those of its parts, numbers that are left open filled in."""
    settings: dict[str, Any] = {}
    if isinstance(config, TrainingSettings | PretrainConfig):
        config = filled(config)
    for name, value in vars(config).items():
        settings |= _settings_of(value) if is_dataclass(value) else {name: value}
    return settings


def check_rows(column: Column, rows: Iterable[Row], plan: Plan) -> None:
    """Refuse rows without a TOML file, which would be trained with the default method and settings."""
    files = (plan.experiments / column.settings / f"{row.name}.toml" for row in rows)
    if missing := [str(file) for file in files if not file.is_file()]:
        raise DataError(
            f"expected a TOML file for every row; missing: {', '.join(missing)}: restore it, or name the other rows "
            "with `rows`"
        )


def check_records(column: Column, records: Iterable[Record], plan: Plan, file: Path) -> None:
    """Refuse records of `file` that were trained with settings other than those now in the TOML files."""
    rows = {row.name: row for row in column.rows}
    reading = reading_config(column, plan)
    free = FOLD_FILES if column.folds_of else ()
    for record in (record for record in records if record["row"] in rows):
        name, seed = record["row"], record["seed"]
        differing = _other_row(record, row_config(column, rows[name], seed, plan), free=free)
        if reading is not None and LANGUAGE_MODEL in record:
            other = _other_reading(record[LANGUAGE_MODEL], reading, free=free)
            differing = ", ".join(filter(None, [differing, other and f"of the language model: {other}"]))
        if differing:
            raise run_folder.RunError(
                f"{file} holds {name}, seed {seed}, trained with other settings than "
                f"{plan.experiments / column.settings} has now ({differing}): restore the settings, or move that "
                "file away and choose another `out`"
            )


def _other_row(record: Record, wanted: TrainConfig, *, free: Iterable[str]) -> str:
    """The settings of a record that differ, except those specific to the machine it was trained on."""
    try:
        had = from_toml(TrainConfig, record["config"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        return f"which cannot be read: {error}"
    free = ["checkpoint_steps", *free]
    free += ["corpus"] if _same_corpus(had.data.corpus, wanted.data.corpus) else []
    free += ["pretrained"] if had.pretrained and wanted.pretrained else []
    return _other_settings(_settings_of(had), _settings_of(wanted), free=free)


def _other_reading(started: dict[str, Any], wanted: PretrainConfig, *, free: Iterable[str]) -> str:
    try:
        had = _settings_of(PretrainConfig()) | started["settings"]
        had["texts"] = tuple(had["texts"])  # a list in JSON
    except (KeyError, TypeError) as error:
        return f"which cannot be read: {error}"
    free = [*free, "corpus"] if _same_corpus(had["corpus"], wanted.corpus) else free
    return _other_settings(had, _settings_of(wanted), free=free)


def _same_corpus(had: str | None, wanted: str | None) -> bool:
    """Whether two corpora may be the same: a packed one can have any file name."""
    return had == wanted or bool(had and wanted and (had.endswith(PACK) or wanted.endswith(PACK)))
