"""Bounded parts of the long runs: kills, files and requests."""

import os
import sys
from pathlib import Path

import kills
import pytest
from fuzz_readers import fuzzed, readers
from fuzz_requests import fuzzed as asked


def test_readers_read_or_refuse(tmp_path: Path) -> None:
    for name, reader in readers(tmp_path).items():  # undamaged, each is read
        path = (tmp_path / "whole").with_suffix(reader.suffix)
        path.write_bytes(reader.content)
        reader.read(path)
        path.unlink()
        assert name
    outcomes = list(fuzzed(tmp_path, 400, seed=7))
    assert [(reader, problem) for reader, _, problem in outcomes if problem] == []
    assert {came for _, came, _ in outcomes} == {"read", "refused"}


def test_requests_are_answered(tmp_path: Path) -> None:
    outcomes = list(asked(tmp_path, 150, seed=7))
    assert [problem for _, problem in outcomes if problem] == []
    assert {"200", "422"} <= {status for status, _ in outcomes}


@pytest.mark.slow
@pytest.mark.skipif(
    not hasattr(os, "fork") or sys.platform == "darwin", reason="copies a process that has loaded torch"
)
def test_killed_commands_go_on(tmp_path: Path) -> None:
    outcomes = kills.run(tmp_path, 2, seed=0, kinds=("attack",))
    assert [outcome for outcome in outcomes if outcome.problem] == []
    assert sum(outcome.kills for outcome in outcomes) >= 2
