"""A model that wordward never trained is served without a method of its training."""

from pathlib import Path

import pytest
from any_model import Guard, fine_tuned

from wordward.runs.opening import open_model
from wordward.serve.limits import Limits
from wordward.serve.schemas import Asked
from wordward.serve.service import Service
from wordward.support.errors import SettingError


def test_a_function_is_asked_about_symbols() -> None:
    service = Service([open_model(Guard())], Limits())
    assert service.predict(Asked(text="😀😀"))[0].label == "good"
    with pytest.raises(SettingError, match="the text is empty"):
        service.predict(Asked(text=" "))


def test_no_method_is_claimed(tmp_path: Path) -> None:
    runs = [open_model(Guard()), open_model(fine_tuned(tmp_path / "sentiment"), device="cpu")]
    served = Service(runs, Limits()).served([])
    assert [run.trained_with for run in served.runs] == [None, None]
    assert '"trained_with":null' in served.model_dump_json()
