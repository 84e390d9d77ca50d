"""A folder claimed for a new run: refused where it is in use, emptied, held while the run is trained."""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from wordward.runs.run_folder import (
    CLASS_COUNTS,
    CONFIG,
    LABELS,
    LOCK,
    METRICS,
    POINTER,
    RESULT,
    SWEEP,
    TENSORBOARD,
    TRAINER,
    TRANSFORMER,
    VOCABULARY,
    WEIGHTS,
    drop_checkpoints,
)
from wordward.support.errors import RunError
from wordward.support.files import denied
from wordward.support.locks import locked


def check_free(folder: Path, *, force: bool, inputs: Iterable[str] = (), resumable: bool = True) -> None:
    """Refuse a folder that a new run may not take: one in use without `force`, or one it reads from."""
    for source in inputs:
        if Path(source).resolve().is_relative_to(folder.resolve()):
            raise RunError(f"{source} is in {folder}, which would be replaced: choose another `out`")
    check_writable(folder)
    if not folder.exists():
        return
    before = {f"{CONFIG}.part", f"{SWEEP}.part", LOCK, TRAINER}  # what is there before any file is complete
    begun = not folder.is_dir() or not {path.name for path in folder.iterdir()} <= before
    if not begun and not any((folder / TRAINER).glob("*")):
        return
    if not force:
        again = "`resume=True` to continue it, " if resumable else ""
        raise RunError(f"{folder} exists already: choose another `out`, {again}or `force=True` to replace it")
    if not folder.is_dir() or not any((folder / name).exists() for name in (CONFIG, SWEEP)):
        raise RunError(f"{folder} is not a run folder, so `force` will not replace it: choose another `out`")


def check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written or created, before hours of work depend on it."""
    if not folder.is_file() and (why := denied(folder)):  # a file is refused elsewhere
        raise RunError(f"{folder} cannot be written ({why}): choose another `out`")


def create(path: str | Path, *, force: bool = False) -> Path:
    """Create an empty run folder; an existing one is refused, or with `force` cleared of a run's files."""
    folder = Path(path)
    check_free(folder, force=force)
    folder.mkdir(parents=True, exist_ok=True)
    drop_checkpoints(folder, keep=None)
    for name in (TRANSFORMER, f"{TRANSFORMER}.part", f"{TRANSFORMER}.before", TRAINER, TENSORBOARD):
        shutil.rmtree(folder / name, ignore_errors=True)
    marks = SWEEP, CONFIG  # these identify a run folder, so they are deleted last
    for name in (POINTER, METRICS, WEIGHTS, RESULT, VOCABULARY, LABELS, CLASS_COUNTS, *marks):
        (folder / name).unlink(missing_ok=True)
        (folder / f"{name}.part").unlink(missing_ok=True)
    return folder


@contextmanager
def held(folder: Path, *, first: bool = True) -> Iterator[None]:
    """Hold a run folder while training into it; refuse one that another process holds.

    Of several processes that train together only the `first` holds it.
    """
    if not first:
        yield
        return

    def busy() -> None:
        raise RunError(
            f"another process is training into {folder}: wait until it has ended, stop it, or choose another `out`"
        )

    with locked(folder / LOCK, busy=busy):
        yield
