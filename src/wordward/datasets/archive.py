"""Read files by name from a folder or an archive, without unpacking it."""

from __future__ import annotations

import gzip
import lzma
import os
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from tarfile import EOFHeaderError, HeaderError, ReadError  # type: ignore[attr-defined]
from typing import IO, Self

from wordward.datasets.example import DataError

ENDINGS = (".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar", ".zip")
DEPTH = 5  # folders below the source that are looked into: IMDB has two below what may lie three down

# What a damaged file or archive may raise while it is read.
BROKEN = (
    OSError,
    EOFError,
    NotImplementedError,  # a version of zip that Python does not know
    zlib.error,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
)


@dataclass(frozen=True, eq=False)
class Entry:
    """A file of a folder or archive, open until the next one is asked for."""

    source: Path
    name: str  # its path from the source, without the ending of its own compression
    stream: IO[bytes]

    @property
    def base(self) -> str:
        """The last part of the name."""
        return self.name.rpartition("/")[2]

    def read(self) -> bytes:
        """The whole content."""
        try:
            return self.stream.read()
        except BROKEN as error:
            raise DataError(f"expected a readable file; got: {error}", self) from error

    def __str__(self) -> str:
        """Where it is, for messages; a name from an archive may hold anything."""
        return f"{self.source}: {''.join(c if c.isprintable() else '?' for c in self.name)}"


def is_archive(path: Path) -> bool:
    """Whether the name is that of an archive that can be read."""
    return path.name.lower().endswith(ENDINGS)


def files(source: Path, wanted: Callable[[str], bool]) -> Iterator[Entry]:
    """The files whose name is wanted, in one pass; each must be read before the next is asked for."""
    if source.is_dir():
        found = _folder(source, wanted)
    elif not source.exists():
        raise DataError("expected a folder or archive; there is none of this name", source)
    elif not is_archive(source):
        raise DataError(f"expected a folder or an archive ({', '.join(ENDINGS)})", source)
    else:
        found = (_zip if source.name.lower().endswith(".zip") else _tar)(source, wanted)
    seen: set[str] = set()
    try:
        with closing(found):
            for name, member in found:
                # A name met again is the same file left packed beside itself, or an older member of a tar.
                if name not in seen:
                    seen.add(name)
                    yield Entry(source, name, member)
    except BROKEN as error:
        raise DataError(f"expected a readable folder or archive; got: {error}", source) from error


def named(source: Path, *names: str) -> Iterator[Entry]:
    """The files of these names at any depth, in the order they stand; each name at most once."""
    places: dict[str, str] = {}
    for entry in files(source, lambda name: name.rpartition("/")[2] in names):
        if entry.base in places:
            raise DataError(
                f"expected one file {entry.base}; found {places[entry.base]} and {entry.name}: "
                "move one of them away",
                source,
            )
        places[entry.base] = entry.name
        yield entry


def decompressed(stream: IO[bytes], name: str) -> IO[bytes]:
    """The stream unpacked, where the name ends in .gz or .xz."""
    # Buffered, since both are slow at handing out single lines.
    if name.lower().endswith(".gz"):
        return BufferedReader(gzip.GzipFile(fileobj=stream), 1 << 16)  # type: ignore[arg-type]
    return BufferedReader(lzma.LZMAFile(stream), 1 << 16) if name.lower().endswith(".xz") else stream


def plain_name(name: str) -> str:
    """The name without the ending of its compression."""
    return name[:-3] if name.lower().endswith((".gz", ".xz")) else name


_Found = Generator[tuple[str, IO[bytes]], None, None]
_ODD = re.compile(r"(^|/)\.|^/|//|/$|\\|__MACOSX|^$")
_HIDDEN = re.compile(r"(^|/)(\.|__MACOSX(/|$))")


def _folder(source: Path, wanted: Callable[[str], bool]) -> _Found:
    for folder, inner, names in os.walk(source, followlinks=True):
        here = Path(folder).relative_to(source)
        inner[:] = (
            sorted(name for name in inner if not name.startswith(".")) if len(here.parts) < DEPTH else []
        )
        for name in sorted(names):
            clean = _clean((here / plain_name(name)).as_posix())
            path = Path(folder, name)
            if clean is not None and wanted(clean) and path.is_file():
                with path.open("rb") as raw:
                    yield clean, decompressed(raw, name)


def _tar(source: Path, wanted: Callable[[str], bool]) -> _Found:
    packed = source.name.lower().replace(".tgz", ".gz").replace(".txz", ".xz")
    # Read as a stream: looking for a member by its place would unpack the archive again and again.
    with (
        source.open("rb") as raw,
        decompressed(raw, packed) as unpacked,
        tarfile.open(fileobj=unpacked, mode="r|", tarinfo=_Member) as tar,
    ):
        while (member := tar.next()) is not None:
            tar.members.clear()  # type: ignore[attr-defined]  # tarfile would keep every header
            clean = _clean(plain_name(member.name))
            if clean is None or not member.isreg() or not wanted(clean):
                continue
            stream = tar.extractfile(member)
            assert stream is not None, "a regular member has content"
            yield clean, decompressed(stream, member.name)
        while unpacked.read(1 << 20):  # to the end, where the checksum of the compression is
            pass


class _Member(tarfile.TarInfo):
    """A member whose header must be whole: tarfile takes a broken one for the end of the archive."""

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> Self:
        """As ever, but of what is no header only zeros are the end."""
        try:
            return super().fromtarfile(tarfile)
        except EOFHeaderError:
            raise
        except HeaderError as error:
            raise ReadError(f"{error} where a file or the end of the archive should be") from None


def _zip(source: Path, wanted: Callable[[str], bool]) -> _Found:
    with zipfile.ZipFile(source) as archive:
        for member in archive.infolist():
            clean = _clean(plain_name(member.filename))
            linked = stat.S_ISLNK(member.external_attr >> 16)
            if clean is None or member.is_dir() or linked or not wanted(clean):
                continue
            try:
                stream = archive.open(member)
            except RuntimeError as error:  # a password, or a compression that Python does not know
                raise DataError(f"expected a plain archive; got: {error}", source) from None
            with stream:
                yield clean, decompressed(stream, member.filename)


def _clean(name: str) -> str | None:
    """The name with single forward slashes; None for one that points outside or is a system's own."""
    if _ODD.search(name):
        name = "/".join(part for part in name.replace("\\", "/").split("/") if part not in ("", "."))
        if not name or _HIDDEN.search(name):
            return None
    return name
