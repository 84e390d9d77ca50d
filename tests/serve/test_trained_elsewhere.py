"""A model that wordward never trained is served without a method of its training."""

from pathlib import Path

from any_model import Guard, fine_tuned

from wordward.runs.opening import open_model
from wordward.serve.limits import Limits
from wordward.serve.service import Service


def test_no_method_is_claimed(tmp_path: Path) -> None:
    runs = [open_model(Guard()), open_model(fine_tuned(tmp_path / "sentiment"), device="cpu")]
    served = Service(runs, Limits()).served([])
    assert [run.trained_with for run in served.runs] == [None, None]
    assert '"trained_with":null' in served.model_dump_json()
