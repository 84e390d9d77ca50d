"""Whether any test notices a mutant: tests that reach its code, in a copy of a process that has loaded everything.

A change inside a function is put into the living function, so that nothing is loaded again. What stands outside of
functions (constants, defaults, fields) is done once for all by importing, so for these the tests are loaded anew.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mutants import Mutant

QUIET = ["-o", "addopts=--import-mode=importlib", "-p", "no:terminal", "-p", "no:cacheprovider", "-p", "no:xdist"]
QUIET += ["-k", "not hugging and not HuggingFace"]
SECONDS = 60  # and ten times what its tests take: a mutant that runs for longer is noticed by whoever waits
FUNCTION = 0x1  # the flag of code that is a function's, not a module's or a class's
Code = tuple[str, str, int]  # file, name, first line


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def _key(code: CodeType) -> Code:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _own(code: CodeType) -> tuple[Any, ...]:
    """Code without the functions inside it."""
    consts = [repr(each) for each in code.co_consts if not isinstance(each, CodeType)]
    return code.co_code, consts, code.co_names


def changed(mutant: Mutant) -> dict[Code, CodeType] | None:
    """The functions of a mutant that are not those of its file; None if it changes what importing does."""
    plain = {
        _key(code): code for code in _codes(compile(mutant.file.read_text(encoding="utf-8"), mutant.file, "exec"))
    }
    other = {_key(code): code for code in _codes(compile(mutant.tree, mutant.file, "exec"))}
    if plain.keys() != other.keys():
        return None
    for key, code in other.items():
        if not code.co_flags & FUNCTION and _own(code) != _own(plain[key]):
            return None
    return {key: code for key, code in other.items() if code.co_flags & FUNCTION and code != plain[key]}


def waited(child: int, note: Path, seconds: float) -> str:
    """The test that a copy of this process wrote down as failed; empty if none."""
    late = time.monotonic() + seconds
    while not (done := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > late:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "it does not end"
        time.sleep(0.005)
    return note.read_text() or ("it cannot be loaded" if os.waitstatus_to_exitcode(done[1]) else "")


def silent() -> None:
    """Nothing that this process prints is shown."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)


class InPlace:
    """A plugin of pytest that, in the place of the tests, tries every mutant with those that reach it."""

    def __init__(self, mutants: list[Mutant], note: Path, tell: Callable[[Mutant, str], bool]) -> None:
        self.mutants, self.note, self.tell = mutants, note, tell
        self.killers: dict[str, float] = {}  # tests that noticed a mutant, and when last

    def pytest_configure(self) -> None:
        """Let hypothesis stop at the first example that fails, without looking for a simpler one."""
        from hypothesis import Phase, settings

        phases = [Phase.explicit, Phase.generate]
        settings.register_profile("first", settings.get_profile("wordward"), phases=phases)
        settings.load_profile("first")

    def pytest_runtest_logreport(self, report: Any) -> None:
        """End this copy at the first failure."""
        if report.failed:
            self.note.write_text(report.nodeid)
            os._exit(1)

    def pytest_runtestloop(self, session: Any) -> bool | None:
        """Find out what each test reaches, then try the mutants."""
        for file in {mutant.file for mutant in self.mutants}:
            import_module(f"wordward.perturbation.{file.stem}")  # some are loaded when they are first used
        gc.unfreeze()
        found = [each for each in gc.get_objects() if type(each) is FunctionType]
        living: dict[Code, list[FunctionType]] = {}
        for function in found:
            living.setdefault(_key(function.__code__), []).append(function)
        reach, seconds = self._reached(session)
        for mutant in self.mutants:
            codes = changed(mutant)
            items = [item for item in session.items if codes and not reach[item.nodeid].isdisjoint(codes)]
            if not codes or not items or codes.keys().isdisjoint(living):
                continue  # is loaded anew
            items.sort(key=lambda item: (-self.killers.get(item.nodeid, 0), seconds[item.nodeid]))
            self.note.write_text("")
            if child := os.fork():
                limit = SECONDS + 10 * sum(seconds[item.nodeid] for item in items)
                why = waited(child, self.note, limit)
                self.killers[why] = time.monotonic()
                if not self.tell(mutant, why):
                    break
                continue
            silent()
            for key, code in codes.items():
                for function in living.get(key, []):
                    function.__code__ = code
            _run(items)
            os._exit(0)
        return True

    def _reached(self, session: Any) -> tuple[dict[str, set[Code]], dict[str, float]]:
        """The functions that each test reaches, and its seconds, from a run in a copy of this process."""
        result = self.note.with_suffix(".reached")
        self.note.write_text("")
        if not (child := os.fork()):
            silent()
            reach, seconds = dict[str, list[Code]](), dict[str, float]()
            for item in session.items:
                seen: set[CodeType] = set()
                began = time.monotonic()
                sys.setprofile(lambda frame, event, _, seen=seen: seen.add(frame.f_code) if event == "call" else None)
                _run([item])
                sys.setprofile(None)
                reach[item.nodeid] = [_key(code) for code in seen if "perturbation" in code.co_filename]
                seconds[item.nodeid] = time.monotonic() - began
            result.write_text(json.dumps([reach, seconds]))
            os._exit(0)
        if why := waited(child, self.note, 3600):
            raise AssertionError(f"the tests fail without any change: {why}")
        reach, seconds = json.loads(result.read_text())
        result.unlink()
        return {name: {(file, code, line) for file, code, line in codes} for name, codes in reach.items()}, seconds


def _run(items: list[Any]) -> None:
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def in_place(mutants: list[Mutant], tests: list[str], note: Path, tell: Callable[[Mutant, str], bool]) -> None:
    """Try the mutants whose change is inside functions; `tell` says whether to go on."""
    import pytest

    if not (child := os.fork()):
        os._exit(int(pytest.main([*QUIET, *tests], plugins=[InPlace(mutants, note, tell)])))
    assert os.waitpid(child, 0)[1] == 0


def anew(mutant: Mutant, tests: list[str], note: Path, first: list[str]) -> str:
    """The first test that fails where the mutant is loaded in its file's place; `first` go before other tests."""
    import pytest

    note.write_text("")
    if child := os.fork():
        return waited(child, note, 10 * SECONDS)
    silent()
    code, plain = compile(mutant.tree, str(mutant.file), "exec"), SourceFileLoader.get_code
    loads = lambda self, name: code if self.path == str(mutant.file) else plain(self, name)  # noqa: E731
    setattr(SourceFileLoader, "get_code", loads)  # noqa: B010

    class Watch(InPlace):
        def pytest_runtestloop(self, session: Any) -> None:
            session.items.sort(key=lambda item: first.index(item.nodeid) if item.nodeid in first else len(first))

    os._exit(int(pytest.main([*QUIET, "-x", *tests], plugins=[Watch([], note, lambda *_: True)])))
