"""The parameters of a TextClassifier as the settings of a run."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from sklearn.utils import check_random_state

from wordward.config.model import PRESETS, ModelSettings
from wordward.config.settings import TrainConfig, TrainingSettings
from wordward.config.texts import DataSettings, TextSettings
from wordward.perturbation.settings import MethodSettings
from wordward.sklearn.inputs import plain

SIZES = {name: PRESETS["small"][name] for name in ("dim", "hidden")}


def config_of(parameters: Mapping[str, Any], data: DataSettings) -> TrainConfig:
    """The settings of a run with these parameters, on texts that `data` names; those that are None are left open."""
    values = {name: plain(value) for name, value in parameters.items()}
    seed = values["random_state"]
    values["seed"] = seed if isinstance(seed, int) else int(check_random_state(seed).randint(2**31 - 1))

    def part(kind: Any) -> Any:
        given = {item.name: values[item.name] for item in fields(kind) if item.name in values}
        return kind(**{name: value for name, value in given.items() if value is not None or name == "k"})

    return TrainConfig(
        method=values["method"],
        task="classify",
        pretrained=values["pretrained"],
        vectors=values["vectors"],
        data=data,
        text=part(TextSettings),
        model=_model(values),
        perturbation=part(MethodSettings),
        training=part(TrainingSettings),
    )


def _model(values: dict[str, Any]) -> ModelSettings:
    """The model as the parameters give it, left open where they do not; small where only a part of it is given."""
    kind, sizes = values["kind"], [item.name for item in fields(ModelSettings) if item.name != "kind"]
    given = {name: values[name] for name in sizes if values[name] is not None}
    if not (given or kind == "lstm" or values["pretrained"]):
        return ModelSettings(kind=kind)
    return ModelSettings(kind="lstm" if kind == "auto" else kind, **SIZES | given)
