"""What values a setting may take."""

from typing import Any

import numpy as np
import pytest

from wordward.config import DataSettings, ModelSettings, TextSettings, TrainingSettings
from wordward.support.errors import SettingError


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((TrainingSettings, name) for name in ("epochs", "patience", "batch_size", "augment", "seed")),
        *((ModelSettings, name) for name in ("dim", "hidden")),
        *((TextSettings, name) for name in ("max_length", "min_documents")),
        *((DataSettings, name) for name in ("limit", "split_seed")),
    ],
)
def test_counts_and_seeds_are_whole_numbers(kind: Any, name: str) -> None:
    for value in (3, np.int64(3)):
        assert getattr(kind(**{name: value}), name) == 3
    for value in (2.5, 3.0, float("nan"), "3", -1):
        with pytest.raises(SettingError, match=f"^{name} must be a whole number, [01] or more.*, but is {value!r}$"):
            kind(**{name: value})
