"""Files of the cache: folders written atomically, and stamps of the files they are made from."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from wordward.datasets import DataError
from wordward.support.console import say
from wordward.support.files import whole
from wordward.support.locks import locked

VARIABLE = "WORDWARD_CACHE"
Stamp = tuple[str, int, int]  # path relative to the given one, size, modification time


def cache_folder() -> Path:
    """Where encoded texts are kept: WORDWARD_CACHE, else the user's cache folder."""
    folder = os.environ.get(VARIABLE)
    return Path(folder) if folder else Path.home() / ".cache" / "wordward"


def stamps(paths: Iterable[Path]) -> list[Stamp]:
    """The stamps of files and of all files in folders, links included; hidden ones are never read, so left out."""
    found: list[Stamp] = []
    for path in paths:
        if path.is_dir():
            found += _inside(path, "", ())
        elif path.is_file():
            found.append((path.name, path.stat().st_size, path.stat().st_mtime_ns))
    return found


def _inside(folder: Path, prefix: str, above: tuple[Path, ...]) -> Iterator[Stamp]:
    """The stamps of a folder's files; a link back to a folder above is not followed."""
    above = (*above, folder.resolve())
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            if not entry.is_symlink() or Path(entry).resolve() not in above:
                yield from _inside(Path(entry), f"{prefix}{entry.name}/", above)
        elif entry.is_file():
            yield f"{prefix}{entry.name}", entry.stat().st_size, entry.stat().st_mtime_ns


def keep(place: Path, write: Callable[[Path], None], *, quiet: bool = False) -> None:
    """Let `write` create a folder, which is renamed to `place` once complete; one process at a time."""

    def busy() -> None:
        say(f"another command is writing {place}; waiting for it", quiet=quiet)

    try:
        with locked(place.with_name(f"{place.name}.lock"), busy=busy):
            if place.exists():
                return  # another process was faster
            with whole(place) as part:
                write(part)
    except OSError as error:
        raise DataError(
            f"expected a cache that can be written; got: {error}: free some space, or name another folder "
            f"with {VARIABLE}",
            place.parent,
        ) from None


@contextmanager
def reading(place: Path) -> Iterator[None]:
    """Turn errors of reading a cache folder into one that says which folder is damaged."""
    try:
        yield
    except (OSError, ValueError, EOFError, LookupError, TypeError) as error:
        raise DataError(
            f"expected encoded texts as they were written; got: {error or type(error).__name__}: delete this "
            "cache folder and run the same command again, which recreates it",
            place,
        ) from None
