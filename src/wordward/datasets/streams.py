"""Standard input, pipes that can be read only once, and hub data sets, kept as files while the program runs."""

from __future__ import annotations

import shutil
import sys
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from wordward.datasets.hub_sets import is_hub_set, write_hub_set
from wordward.support.errors import DataError

STANDARD_INPUT = "-"


def is_incoming(path: Path) -> bool:
    """Whether this is standard input (`-`), a pipe, or a data set of the hub (`hub:NAME`)."""
    return (
        is_hub_set(path)
        or str(path) == STANDARD_INPUT
        or (path.exists() and not path.is_file() and not path.is_dir())
    )


def called(path: str | Path) -> str:
    """What messages call a file of a command line: by its path, or standard input."""
    return "standard input" if str(path) == STANDARD_INPUT else str(path)


def shown(path: Path) -> object:
    """What messages call a file: its path, or what it is a copy of."""
    return _names.get(path, path)


def is_copy(path: Path) -> bool:
    """Whether a file is one that `kept` made: its name does not say what it holds."""
    return path in _names


@cache
def kept(path: Path) -> Path:
    """All that comes in, as a file; the same one each time it is asked for."""
    name = called(path)
    copy = Path(_folder().name) / str(len(_names))
    try:
        if is_hub_set(path):
            write_hub_set(path, copy)
        else:
            stream = nullcontext(sys.stdin.buffer) if str(path) == STANDARD_INPUT else path.open("rb")
            with stream as source, copy.open("wb") as file:
                shutil.copyfileobj(source, file)
    except OSError as error:
        raise DataError(f"expected texts that can be read; got: {error}", name) from None
    _names[copy] = name
    return copy


@cache
def _folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="wordward-")


_names: dict[Path, str] = {}
