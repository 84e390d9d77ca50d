"""Two commands that would write the same folder or file: one of them is refused, and nothing is lost."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from any_model import word_vectors
from beside import started
from reviews import reviews, write_csv

from wordward.cli import demo
from wordward.cli.main import main
from wordward.runs import claiming, run_folder
from wordward.runs.results_file import held
from wordward.support.locks import locked

SIZES = "--dim 8 --hidden 8 --head 4 --epsilon 1 --k 3 --device cpu --quiet".split()
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a process is held by POSIX signals")


@contextmanager
def halted(command: list[str], lock: Path, begun: Path) -> Iterator[None]:
    """Another process that runs a command, halted when it has begun a file; afterwards it has ended well."""
    process = started("wordward.cli.main", command, Path(os.devnull))
    assert process.pid is not None
    try:
        while not begun.exists():
            assert process.is_alive(), "it ended before it was seen to hold its lock"
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGSTOP)
        while not _stands_still(process.pid):  # the signal takes a moment, in which it may go on
            time.sleep(0.002)
        assert lock.exists()
        yield
        os.kill(process.pid, signal.SIGCONT)
        process.join(timeout=120)
        assert process.exitcode == 0
    finally:
        process.kill()
        process.join()
    assert not lock.exists()


def _stands_still(pid: int) -> bool:
    """Whether a process is stopped, as Linux tells; elsewhere it is given time for that."""
    told = Path(f"/proc/{pid}/stat")
    if not told.exists():
        time.sleep(0.2)
        return True
    return told.read_text().rpartition(")")[2].split()[0] == "T"


@pytest.mark.slow
def test_a_sweep_holds_its_folder(csv_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "sweep"
    train = ["train", "--train", str(csv_file), "--out", str(out), "--epochs", "2", *SIZES]
    sweep = [*train, "--sweep", "epsilon=1,2"]
    with halted(sweep, out / run_folder.LOCK, out / run_folder.SWEEP):
        for command in (train, sweep, [*sweep, "--resume"]):
            assert main([*command, *(["--force"] if "--resume" not in command else [])]) == 1
            assert f"another process is training into {out}: wait" in capsys.readouterr().err
    record = json.loads((out / run_folder.SWEEP).read_text())
    assert [entry["choice"] for entry in record["tried"]] == [{"epsilon": "1"}, {"epsilon": "2"}]
    with claiming.held(out):
        assert main([*sweep, "--force"]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("command", ["attack", "explain"])
def test_results_are_written_by_one_command(
    command: str, csv_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, data = str(tmp_path / "run"), write_csv(tmp_path / "test.csv", reviews(300, seed=5))
    assert main(["train", "--train", str(csv_file), "--out", run, "--epochs", "1", *SIZES]) == 0
    asked = ["attack", run, str(data)] if command == "attack" else ["explain", run, "--file", str(data)]
    out, flag = tmp_path / "out.jsonl", "--out" if command == "attack" else "--json"
    asked += ["--device", "cpu", "--quiet", flag]
    assert main([*asked, str(tmp_path / "alone.jsonl")]) == 0
    capsys.readouterr()
    with halted([*asked, str(out)], Path(f"{out}.lock"), out):
        before = out.read_bytes()
        for force in ([], ["--force"]):
            assert main([*asked, str(out), *force]) == 1
            said = f"{out}: another command is writing it: wait until that has ended, or choose another {flag}"
            assert said in capsys.readouterr().err
        assert out.read_bytes() == before
    assert out.read_bytes() == (tmp_path / "alone.jsonl").read_bytes()
    assert main([*asked, str(out)]) == 0  # nothing is left to do
    assert out.read_bytes() == (tmp_path / "alone.jsonl").read_bytes()


@pytest.mark.parametrize("command", ["check", "augment", "yardsticks", "report"])
def test_a_file_that_another_command_makes_is_left_alone(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Refused before anything is attacked; with the other command gone it is written."""
    texts = write_csv(tmp_path / "test.csv", reviews(4, seed=5))
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "locked_model.py").write_text(
        "def model(texts):\n    return [{'good': 0.9, 'bad': 0.1} for _ in texts]\n"
    )
    end, flag = {"augment": ("csv", "--out"), "check": ("json", "--json"), "report": ("html", "--out")}.get(
        command, ("jsonl", "--out")
    )
    out = tmp_path / f"out.{end}"
    asked = [command, "locked_model:model", *(["--test"] if command == "report" else []), str(texts), "--quiet"]
    near = str(word_vectors(tmp_path / "vectors.txt"))
    asked += {
        "yardsticks": ["--attacks", "textbugger", "--similarity-model", "none", "--vectors", near],
        "report": ["--attack", "0"],
        "augment": ["--sense", "any"],
    }.get(command, [])
    with held(out, flag):
        assert main([*asked, flag, str(out)]) == (2 if command == "check" else 1)
        assert f"{out}: another command is writing it: wait" in " ".join(capsys.readouterr().err.split())
        assert not out.exists()
    assert main([*asked, flag, str(out)]) in (0, 1), capsys.readouterr().err
    assert out.exists()
    assert not Path(f"{out}.lock").exists()


@pytest.mark.parametrize("end", ["onnx", "csv", "html", "svg", "png", "jsonl"])
def test_what_is_made_of_a_run_is_written_by_one_command(
    end: str, csv_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every file that a command writes at its end is held from its beginning."""
    run, out = str(tmp_path / "run"), tmp_path / f"out.{end}"
    asked = {
        "onnx": ["export", run, "--onnx"],
        "csv": ["attack", run, "--text", "the film was warm", "--quiet", "--csv"],
        "png": ["attack", str(csv_file), "--models", run, run, "--limit", "2", "--quiet", "--figure"],
        "html": ["explain", run, "the film was warm", "--html"],
        "svg": ["explain", run, "the film was warm", "--figure"],
        "jsonl": ["explain", run, "the film was warm", "--json"],
    }[end]
    for module in {"onnx": ["onnx", "onnxruntime"], "svg": ["matplotlib"], "png": ["matplotlib"]}.get(end, []):
        pytest.importorskip(module)
    assert main(["train", "--train", str(csv_file), "--out", run, "--epochs", "1", *SIZES]) == 0
    with held(out, asked[-1]):
        assert main([*asked, str(out)]) == 1
        said = f"{out}: another command is writing it: wait until that has ended, or choose another {asked[-1]}"
        assert said in " ".join(capsys.readouterr().err.split())
        assert not out.exists()
    assert main([*asked, str(out)]) == 0, capsys.readouterr().err
    assert out.exists()
    assert [path.name for path in tmp_path.glob("out.*")] == [out.name]


def test_a_demo_holds_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second one neither clears nor trains anything; the lock is no file of another kind of folder."""
    seen = []
    monkeypatch.setattr(demo.reviews, "load", lambda _: [])
    monkeypatch.setattr(demo, "installed_model", lambda: tmp_path)
    monkeypatch.setattr(demo, "_show", lambda out, *_, **__: seen.append(sorted(path.name for path in out.iterdir())))
    demo.demo(tmp_path / "new")
    assert seen == [[demo.MARK, run_folder.LOCK]]
    with claiming.held(tmp_path / "new"), pytest.raises(run_folder.RunError, match="another process is training"):
        demo.demo(tmp_path / "new", seed=5)
    assert len(seen) == 1
    assert [path.name for path in (tmp_path / "new").iterdir()] == [demo.MARK]


def test_many_processes_take_turns(tmp_path: Path) -> None:
    """A number in a file, raised by several processes at once, counts them all."""
    file, lock = tmp_path / "number", tmp_path / "number.lock"
    file.write_text("0")
    code = (
        "import sys; from pathlib import Path; from wordward.support.locks import locked\n"
        "file = Path(sys.argv[1])\n"
        "for _ in range(40):\n"
        "    with locked(Path(sys.argv[2])): file.write_text(str(int(file.read_text()) + 1))"
    )
    workers = [subprocess.Popen([sys.executable, "-c", code, file, lock]) for _ in range(3)]
    assert [worker.wait(timeout=120) for worker in workers] == [0, 0, 0]
    assert file.read_text() == "120"
    assert not lock.exists()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_no_lock(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError), locked(tmp_path / "a.lock"):
        pass
