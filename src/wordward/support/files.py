"""Files and folders written whole or not at all, whatever stops the process or the machine."""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from wordward.support.errors import RunError, SettingError


def write(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all, creating its folder if needed; a pipe or device is written to as it is."""
    content = content.encode() if isinstance(content, str) else content
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    with whole(path) as part:
        part.write_bytes(content)


@contextmanager
def whole(path: Path, part: Path | None = None) -> Iterator[Path]:
    """The name to write a file or folder under, which takes the place of `path` once it is complete.

    After an error nothing is left of it, and `path` is as it was.
    """
    part = part or path.with_name(f"{path.name}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
    put_back(path)
    delete(part)  # left by a process that was killed
    try:
        yield part
        put(part, path)
    finally:
        delete(part)


def put(part: Path, path: Path) -> None:
    """Move what is complete into place; synced to disk before it is renamed, so that a power cut does no harm."""
    sync(part)
    before = path.with_name(f"{path.name}.before")
    if not (part.is_dir() and path.is_dir()):
        os.replace(part, path)
        return
    delete(before)
    try:
        os.replace(path, before)  # a folder cannot be replaced by another in one move
        os.replace(part, path)
    except BaseException:
        put_back(path)
        raise
    delete(before)


def put_back(path: Path) -> None:
    """Let a folder have its name again, if it was about to be replaced when the process was stopped."""
    before = path.with_name(f"{path.name}.before")
    if before.is_dir() and not path.exists():
        os.replace(before, path)


def sync(path: Path) -> None:
    """Wait until a file, or every file of a folder, is on disk."""
    for file in path.rglob("*") if path.is_dir() else [path]:
        if file.is_file() and os.access(file, os.W_OK):  # a copy of a read-only file can be made again
            with file.open("r+b") as opened:  # Windows syncs only files that are open for writing
                os.fsync(opened.fileno())


def settle(folder: Path) -> None:
    """Wait until the names in a folder are on disk, before something they replace is deleted."""
    if os.name == "posix":  # elsewhere folders cannot be synced
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def append(path: Path, text: str) -> None:
    """Add lines to a file and wait until they are on disk."""
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def delete(path: Path) -> None:
    """Delete a file or folder if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def denied(folder: Path) -> str | None:
    """Why a folder, or its nearest existing parent, cannot be written; None if it can."""
    existing = next(path for path in (folder, *folder.absolute().parents) if os.path.lexists(path))
    try:
        TemporaryFile(dir=existing).close()
    except OSError as error:
        return f"{existing}: {error.strerror or error}"
    return None


def check_file(path: str | Path, name: str) -> None:
    """Refuse a file that cannot be written, before time is spent on its content; `name` is the setting's."""
    path = Path(path)
    if path.is_dir():
        raise SettingError(name, f"{name} {path}: expected the name of a file; this is a folder")
    pipe = path.exists() and not path.is_file()  # or a device: nothing is put into its folder
    if not pipe and (why := denied(path.parent)):
        raise SettingError(name, f"{name} {path} cannot be written ({why}): choose another place")


def refuse_pipes(folder: Path) -> None:
    """Refuse a folder that holds a pipe or a device: reading it would wait for ever, or never end."""
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        try:
            mode = path.stat().st_mode  # asked once: another process may be deleting it
        except OSError:
            continue
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise RunError(f"{path} is a pipe or a device, but a file was expected: delete it, or restore the file")
