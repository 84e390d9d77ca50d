"""Files and folders that are written whole or not at all."""

import os
from pathlib import Path

import pytest

from wordward.support import files
from wordward.support.errors import RunError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("existing", [False, True])
def test_a_file_is_whole_or_as_it_was(existing: bool, tmp_path: Path) -> None:
    path = tmp_path / "new" / "file.txt"
    if existing:
        files.write(path, "before")
    with pytest.raises(LookupError), files.whole(path) as part:
        raise LookupError(part.write_text("half"))
    assert names(path.parent) == (["file.txt"] if existing else [])
    files.write(path, b"after\r\n")
    assert path.read_bytes() == b"after\r\n"
    assert names(path.parent) == ["file.txt"]


@pytest.mark.parametrize("existing", [False, True])
def test_a_folder_is_whole_or_as_it_was(existing: bool, tmp_path: Path) -> None:
    path = tmp_path / "folder"
    if existing:
        path.mkdir()
        (path / "before").touch()
    (tmp_path / "folder.part").mkdir()
    (tmp_path / "folder.part" / "left").touch()  # by a process that was killed
    with pytest.raises(LookupError), files.whole(path) as part:
        raise LookupError(part.mkdir())
    assert names(tmp_path) == (["folder"] if existing else [])
    with files.whole(path) as part:
        (part / "inner").mkdir(parents=True)
        (part / "inner" / "after").touch()
    assert names(tmp_path) == ["folder"]
    assert names(path) == ["inner"]


@pytest.mark.parametrize("killed", [False, True])
def test_a_folder_survives_a_stop_between_two_renames(
    killed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, replaced = tmp_path / "folder", os.replace
    path.mkdir()
    (path / "before").touch()

    def stopped(source: Path, target: Path) -> None:
        if source.name == "folder.part":
            raise KeyboardInterrupt
        replaced(source, target)

    monkeypatch.setattr(os, "replace", stopped)
    if killed:  # nothing is done after it
        monkeypatch.setattr(files, "put_back", lambda _: None)
    with pytest.raises(KeyboardInterrupt), files.whole(path) as part:
        part.mkdir()
    monkeypatch.undo()
    files.put_back(path)
    assert names(tmp_path) == ["folder"]
    assert names(path) == ["before"]


def test_a_folder_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(OSError, match=r"mine"), files.whole(tmp_path / "mine") as part:
        part.touch()
    assert names(tmp_path) == ["mine"]


def test_all_files_of_a_folder_are_synced_before_it_is_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda _: synced.append((tmp_path / "folder").exists()))
    with files.whole(tmp_path / "folder") as part:
        (part / "inner").mkdir(parents=True)
        for name in ("a", "inner/b"):
            (part / name).touch()
    assert synced == [False, False]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes that have a name")
def test_a_device_is_written_to_and_stays(tmp_path: Path) -> None:
    before = os.stat(os.devnull)
    files.write(Path(os.devnull), "text")
    assert os.path.samestat(before, os.stat(os.devnull))


def test_a_file_that_another_process_deletes_meanwhile_is_no_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a lock's: it was listed, and asked whether it is there, a moment before."""
    lock, there = tmp_path / "run.lock", Path.exists
    lock.touch()

    def deleted(path: Path, **how: bool) -> bool:
        found = there(path, **how)
        if path == lock:
            lock.unlink(missing_ok=True)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(Path, "exists", deleted)
        files.refuse_pipes(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RunError, match="pipe is a pipe or a device"):
        files.refuse_pipes(tmp_path)
