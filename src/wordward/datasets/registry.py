"""The published corpora by name: finding, loading and adding them."""

import os
import shutil
from collections.abc import Iterator
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import cast

from wordward.datasets.archive import ENDINGS, is_archive
from wordward.datasets.files import read
from wordward.datasets.published import CorpusInfo, PublishedCorpus, Splits
from wordward.support.errors import DataError, MissingError
from wordward.support.files import whole
from wordward.support.locks import locked
from wordward.support.wording import did_you_mean

CORPORA = ("imdb", "elec", "rotten_tomatoes", "dbpedia", "rcv1", "fce")  # modules of this room
VARIABLE = "WORDWARD_DATA"


def corpus(name: str) -> PublishedCorpus:
    """The module of a corpus, imported on demand."""
    if name not in CORPORA:
        raise DataError(f"expected a corpus among {', '.join(CORPORA)}; got {name!r}{did_you_mean(name, CORPORA)}")
    return cast(PublishedCorpus, import_module(f"wordward.datasets.{name}"))


def folder(data: str | PathLike[str] | None = None) -> Path:
    """The data folder: the one given, else WORDWARD_DATA, else `data`."""
    return Path(data or os.environ.get(VARIABLE) or "data")


def find(name: str, data: str | PathLike[str] | None = None) -> Path:
    """The folder or archive of a corpus in the data folder."""
    info, place = corpus(name).INFO, folder(data)
    for path in _candidates(info, place):
        return path
    several = ", ".join(path.name for path in _archives(place / name))
    problem = f"which of {several} is it? Move the others away, or" if several else "it is not there:"
    raise MissingError(
        f"expected {info.title} in {place / name}, its archive or {', '.join(info.needs)}; {problem} get it with "
        f"`wordward data fetch {name}`, or `wordward data add {name} PATH` for a copy you have; {VARIABLE}, or "
        "`data` of `wordward data`, names another data folder"
    )


def sources(name: str, data: str | PathLike[str] | None = None) -> list[Path]:
    """Everything that `load` reads for a corpus: its folder or archive, and files next to it."""
    source = find(name, data)
    return [source, *beside(name, source)]


def beside(name: str, source: Path) -> list[Path]:
    """Files that a corpus reads from next to its folder or archive; for most there are none."""
    find_beside = getattr(corpus(name), "beside", None)
    return find_beside(source) if find_beside else []


def load(name: str, data: str | PathLike[str] | None = None, unlabelled: str | PathLike[str] | None = None) -> Splits:
    """A corpus in the paper's splits, with the unlabelled texts of another file if one is given.

    Args:
        name: A corpus of `wordward data list`.
        data: The data folder; by default that of WORDWARD_DATA, or `data`.
        unlabelled: A file of texts to take instead of the corpus's own unlabelled ones.

    Returns:
        Lists of `Example`: `train`, `dev`, `test` and `unlabelled`.

    Examples:
        >>> import tempfile, pathlib, wordward.datasets
        >>> folder = pathlib.Path(tempfile.mkdtemp()) / "rotten_tomatoes"
        >>> folder.mkdir()
        >>> _ = (folder / "rt-polarity.pos").write_text("warm and funny\\n" * 10)
        >>> _ = (folder / "rt-polarity.neg").write_text("cold and empty\\n" * 10)
        >>> wordward.datasets.load("rotten_tomatoes", folder.parent).counts
        Counts(train=16, dev=2, test=2, unlabelled=0)
    """
    splits = corpus(name).load(find(name, data))
    if unlabelled is None:
        return splits
    return splits._replace(unlabelled=read(unlabelled, labelled=False))


def place(name: str, source: Path, target: Path, *, link: bool) -> None:
    """Link or copy a corpus into the data folder; an interrupted copy leaves nothing behind."""
    needs = corpus(name).INFO.needs
    if source.is_dir() and not holds(source, corpus(name).INFO, depth=2):  # one less than in the data folder
        raise DataError(
            f"expected {', '.join(needs)} in one folder, this one or up to two folders down; found them apart or "
            "deeper: name the folder that contains them",
            source,
        )

    def busy() -> None:
        raise DataError("another command is copying to it: wait until that has ended", target)

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if link:
            target.symlink_to(source, target_is_directory=source.is_dir())
            return
        new = target.with_name(f".{target.name}.new")  # hidden, so that it is never read
        with locked(new.with_suffix(".lock"), busy=busy), whole(target, new):
            if source.is_dir():
                shutil.copytree(source, new, ignore_dangling_symlinks=True)
            else:
                shutil.copyfile(source, new)
    except OSError as error:
        # For a folder, every failed file is reported; the first is enough.
        reason = error.args[0][0][-1] if isinstance(error, shutil.Error) else error
        raise DataError(
            f"expected a folder that can be written; got: {reason}: free some space, name another folder with "
            "`data`, or give `link=True`, which copies nothing",
            target.parent,
        ) from None


def holds(path: Path, info: CorpusInfo, depth: int = 3) -> bool:
    """Whether a folder, or one up to `depth` levels below it, holds the files of a corpus."""
    return path.is_dir() and any(
        all(any((base / f"{need}{packed}").exists() for packed in ("", ".gz", ".xz")) for need in info.needs)
        for base in _folders(path, depth)
    )


def _candidates(info: CorpusInfo, place: Path) -> Iterator[Path]:
    """Possible locations of the corpus, likeliest first: a published archive is complete, a folder may not be."""
    stems = [_stem(download.name) for download in info.downloads if is_archive(Path(download.name))]
    own = place / info.name
    archives = _archives(own)
    yield from (path for path in archives if _stem(path.name) in stems)
    if holds(own, info):
        yield own
    if len(archives) == 1:
        yield archives[0]
    yield from (path for stem in stems for end in ENDINGS if (path := place / f"{stem}{end}").is_file())


def _archives(folder: Path) -> list[Path]:
    """The archives in a folder, except for broken links and hidden system files (._mine.zip)."""
    visible = (path for path in folder.glob("*") if not path.name.startswith("."))
    return sorted(path for path in visible if is_archive(path) and path.is_file())


def _stem(name: str) -> str:
    for ending in ENDINGS:
        if name.lower().endswith(ending):
            return name[: -len(ending)]
    return name


def _folders(path: Path, depth: int) -> Iterator[Path]:
    yield path
    if depth:
        for inner in sorted(path.iterdir()):
            if inner.is_dir() and not inner.name.startswith("."):
                yield from _folders(inner, depth - 1)
