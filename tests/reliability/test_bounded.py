"""Bounded parts of the long runs: kills, files and requests."""

import ast
import os
import sys
from pathlib import Path

import kills
import mutant_tests
import mutants
import page
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


def test_the_page_shows_the_figures_that_were_kept() -> None:
    """A figure that was changed by hand, or a run that was kept and not written, would differ."""
    whole = page.PAGE.read_text(encoding="utf-8")
    assert page.written(whole) == whole, "write it: python -m tests.reliability.page"
    assert all(f"<!-- {name} -->" in whole for name in page.BLOCKS)


def test_every_change_to_the_code_is_one_and_loads() -> None:
    """Mutants differ from each other and from the code."""
    file = mutants.CODE / "choice.py"
    found = list(mutants.mutants(file))
    texts = {ast.unparse(mutant.tree) for mutant in found}
    assert len(found) == len(texts) > 50
    assert ast.unparse(ast.parse(file.read_text())) not in texts
    functions = {mutant.name: mutant_tests.changed(mutant) for mutant in found}
    assert {name for name, codes in functions.items() if codes is None} == {
        name for name in functions if name.startswith("choice.py module: ") and name[18:19].isdecimal()
    }
    assert all(codes is None or len(codes) == 1 for codes in functions.values())
    files = {name.partition(" ")[0] for name in mutants.EXPLAINED}
    known = {name for file in files for name, _, _ in mutants.named(mutants.CODE / file)}
    assert mutants.EXPLAINED.keys() <= known  # none of code that has changed since
    assert all(mutants.EXPLAINED.values())
