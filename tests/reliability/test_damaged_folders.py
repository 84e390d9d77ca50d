"""A bounded part of the damage that `damaged_folders.py` does in the long run."""

from pathlib import Path

import pytest
from damaged_folders import build, damaged

KINDS = ("classifier", "language model")


@pytest.mark.slow
def test_damaged_folders_are_refused_or_read(tmp_path: Path) -> None:
    build(tmp_path, KINDS)
    outcomes = list(damaged(tmp_path, KINDS, 24, seed=0))
    assert [outcome for outcome in outcomes if outcome.problem] == []
    assert {outcome.status for outcome in outcomes} == {0, 1}  # some damage does no harm, and some is refused
