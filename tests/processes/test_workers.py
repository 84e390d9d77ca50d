"""Processes beside this one: they stop with it, keep what they have, and end where it was killed."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest

from wordward.support.workers import spread, stoppable, workers


def work(begun: Path) -> None:
    """Tell that it has begun, and wait to be stopped."""
    begun.touch()
    try:
        time.sleep(300)
    except KeyboardInterrupt:
        time.sleep(1)  # as long as a model takes to write
        begun.with_name("kept").touch()
        raise


def fail(begun: Path) -> None:
    """Fail as soon as the other work has begun."""
    until_there(begun)
    raise ValueError("a row that cannot be trained")


def until_there(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.05)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ValueError])
def test_work_is_broken_off_and_can_keep_what_it_has(kind: type[BaseException], tmp_path: Path) -> None:
    def begin_and_fail() -> None:
        with workers(2) as pool:
            pool.submit(stoppable, work, tmp_path / "begun")
            until_there(tmp_path / "begun")
            raise kind

    started = time.monotonic()
    with pytest.raises(kind):
        begin_and_fail()
    assert time.monotonic() - started < 100
    assert (tmp_path / "kept").exists()


def test_work_that_fails_ends_the_others(tmp_path: Path) -> None:
    """One process waits for work then, and holds the lock of their queue when it is ended."""

    def begin_both() -> None:
        with workers(2) as pool:
            going = [pool.submit(stoppable, each, tmp_path / "begun") for each in (work, fail)]
            going[1].result()

    started = time.monotonic()
    with pytest.raises(ValueError, match="cannot be trained"):
        begin_both()
    assert time.monotonic() - started < 100
    assert (tmp_path / "kept").exists()


def test_workers_end_where_their_process_was_killed(tmp_path: Path) -> None:
    script = (
        "from pathlib import Path\n"
        "from test_workers import work\n"
        "from wordward.support.workers import stoppable, workers\n"
        "if __name__ == '__main__':\n"
        "    with workers(1) as pool:\n"
        f"        pool.submit(stoppable, work, Path({str(tmp_path / 'begun')!r})).result()\n"
    )
    (tmp_path / "main.py").write_text(f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n{script}")
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "main.py")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    until_there(tmp_path / "begun")
    process.kill()
    process.communicate(timeout=30)  # what it shares with its workers is open until the last of them ends
    assert not (tmp_path / "kept").exists()


def blocked() -> set[int]:
    """Signals that wait."""
    return {int(each) for each in signal.pthread_sigmask(signal.SIG_BLOCK, [])}


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="Windows has no masks of signals")
def test_ctrl_c_does_not_break_into_a_process_that_starts() -> None:
    """It would print where its imports were broken off; the process that started it gets the Ctrl-C."""
    with workers(1) as pool:
        assert signal.SIGINT in pool.submit(blocked).result()
        assert signal.SIGINT not in blocked()


def loaded() -> bool:
    """Whether torch is there before this process needs it."""
    return "torch" in sys.modules


@pytest.fixture
def first_pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing was forked before: other tests may have loaded more than a pool does."""
    server: Any = forkserver.ForkServer()
    for name in ("ensure_running", "get_inherited_fds", "connect_to_new_process", "set_forkserver_preload"):
        monkeypatch.setattr(forkserver, name, getattr(server, name))
    yield
    server._stop()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each process loads torch itself")
@pytest.mark.usefixtures("first_pool")
def test_processes_begin_with_torch_loaded() -> None:
    with workers(1) as pool:
        assert pool.submit(loaded).result()


def double(number: int) -> int:
    return 2 * number


def doubling() -> Callable[[int], int]:
    """The work of another process."""
    return double


def test_texts_are_shared_out_and_come_back_in_order() -> None:
    for jobs in (1, 2):
        assert list(spread(double, doubling, range(20), jobs=jobs)) == list(range(0, 40, 2))
    assert list(spread(double, doubling, [], jobs=2)) == []
