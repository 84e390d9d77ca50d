"""Every setting as a frozen dataclass, and as TOML; no torch."""

from wordward.config.model import ModelSettings
from wordward.config.pretraining import PretrainConfig
from wordward.config.settings import FineTuningSettings, TrainConfig, TrainingSettings
from wordward.config.texts import DataSettings, TextSettings

__all__ = [
    "DataSettings",
    "FineTuningSettings",
    "ModelSettings",
    "PretrainConfig",
    "TextSettings",
    "TrainConfig",
    "TrainingSettings",
]
