"""Every setting as a frozen dataclass, and as TOML; no torch."""

from wordward.config.settings import (
    DataSettings,
    FineTuningSettings,
    ModelSettings,
    PretrainConfig,
    TextSettings,
    TrainConfig,
    TrainingSettings,
)

__all__ = [
    "DataSettings",
    "FineTuningSettings",
    "ModelSettings",
    "PretrainConfig",
    "TextSettings",
    "TrainConfig",
    "TrainingSettings",
]
