"""Runs that all tests of reports share; they write beside them, and change copies only."""

from pathlib import Path

import pytest
from reported import make_runs


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runs(tmp_path_factory.mktemp("runs"))
