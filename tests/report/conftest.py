"""Runs and pages that all tests of reports share; they write beside them, and change copies only."""

from pathlib import Path

import pytest
from reported import Page, make_runs

from wordward.cli.main import main


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="session")
def page(runs: Path) -> Page:
    """The page on a classifier beside another."""
    out = runs / "classifier.html"
    flags = ["--test", str(runs / "test.csv"), "--against", str(runs / "plain"), "--attack", "40", "--quiet"]
    assert main(["report", str(runs / "mine"), *flags, "--device", "cpu", "--out", str(out)]) == 0
    return Page(out)


@pytest.fixture(scope="session")
def tags(runs: Path) -> Page:
    """The page on a tagger beside another."""
    out = runs / "tagger.html"
    flags = ["--test", str(runs / "test.conll"), "--against", str(runs / "tagger2"), "--quiet"]
    assert main(["report", str(runs / "tagger"), *flags, "--device", "cpu", "--out", str(out)]) == 0
    return Page(out)
