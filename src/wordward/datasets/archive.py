"""Read files by name from a folder or an archive, without unpacking it."""

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

from wordward.datasets.decompress import LONGEST, check_member, decompressed, too_long
from wordward.support.errors import DataError

ENDINGS = (".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar", ".zip")
DEPTH = 5  # levels of folders searched: a corpus may lie three down, and IMDB has two levels of its own

# What reading a damaged file or archive may raise.
BROKEN = (
    OSError,
    EOFError,
    NotImplementedError,  # a zip version that Python does not support
    zlib.error,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
)


@dataclass(frozen=True, eq=False)
class Entry:
    """A file in a folder or archive, open until the next one is requested."""

    source: Path
    name: str  # its path relative to the source, without its compression suffix
    stream: IO[bytes]

    @property
    def base(self) -> str:
        """The last part of the name."""
        return self.name.rpartition("/")[2]

    def read(self) -> bytes:
        """The whole content."""
        try:
            content = self.stream.read(LONGEST + 1)
        except BROKEN as error:
            raise DataError(f"expected a readable file; got: {error}", self) from error
        if len(content) > LONGEST:
            raise too_long("a file", self)
        return content

    def __str__(self) -> str:
        """Its location for messages; a name from an archive may contain any character."""
        return f"{self.source}: {''.join(c if c.isprintable() else '?' for c in self.name)}"


def is_archive(path: Path) -> bool:
    """Whether the file name is that of a supported archive."""
    return path.name.lower().endswith(ENDINGS)


def files(source: Path, wanted: Callable[[str], bool]) -> Iterator[Entry]:
    """The files whose name is wanted, in one pass; each must be read before the next is requested."""
    if source.is_dir():
        members = _folder(source, wanted)
    elif not source.exists():
        raise DataError("expected a folder or archive; there is none of this name", source)
    elif not is_archive(source):
        raise DataError(f"expected a folder or an archive ({', '.join(ENDINGS)})", source)
    else:
        members = (_zip if source.name.lower().endswith(".zip") else _tar)(source, wanted)
    seen: set[str] = set()
    try:
        with closing(members):
            for name, member in members:
                # A repeated name is a file with its compressed copy next to it, or an older member of a tar.
                if name not in seen:
                    seen.add(name)
                    yield Entry(source, name, member)
    except (*BROKEN, UnicodeDecodeError) as error:  # the latter: names in a damaged zip
        raise DataError(f"expected a readable folder or archive; got: {error}", source) from error


def named(source: Path, *names: str) -> Iterator[Entry]:
    """The files with these names at any depth, in the order found; each name at most once."""
    places: dict[str, str] = {}
    for entry in files(source, lambda name: name.rpartition("/")[2] in names):
        if entry.base in places:
            raise DataError(
                f"expected one file {entry.base}; found {places[entry.base]} and {entry.name}: move one of them away",
                source,
            )
        places[entry.base] = entry.name
        yield entry


def plain_name(name: str) -> str:
    """The name without its compression suffix."""
    return name[:-3] if name.lower().endswith((".gz", ".xz")) else name


_Members = Generator[tuple[str, IO[bytes]], None, None]
_ODD = re.compile(r"(^|/)\.|^/|//|/$|\\|__MACOSX|^$")
_HIDDEN = re.compile(r"(^|/)(\.|__MACOSX(/|$))")


def _folder(source: Path, wanted: Callable[[str], bool]) -> _Members:
    for folder, inner, names in os.walk(source, followlinks=True):
        relative = Path(folder).relative_to(source)
        inner[:] = sorted(name for name in inner if not name.startswith(".")) if len(relative.parts) < DEPTH else []
        for name in sorted(names):
            clean = _clean((relative / plain_name(name)).as_posix())
            path = Path(folder, name)
            if clean is not None and wanted(clean) and path.is_file():
                with path.open("rb") as raw:
                    yield clean, decompressed(raw, name)


def _tar(source: Path, wanted: Callable[[str], bool]) -> _Members:
    packed = source.name.lower().replace(".tgz", ".gz").replace(".txz", ".xz")
    # Read as a stream: seeking to each member would decompress the archive over and over.
    with (
        source.open("rb") as raw,
        decompressed(raw, packed) as unpacked,
        tarfile.open(fileobj=unpacked, mode="r|", tarinfo=_Member) as tar,
    ):
        while (member := tar.next()) is not None:
            tar.members.clear()  # type: ignore[attr-defined]  # tarfile would keep every header in memory
            clean = _clean(plain_name(member.name))
            if clean is None or not member.isreg() or not wanted(clean):
                continue
            stream = tar.extractfile(member)
            assert stream is not None, "a regular member has content"
            yield clean, decompressed(stream, member.name)
        while unpacked.read(1 << 20):  # to the end, where the compression's checksum is
            pass


class _Member(tarfile.TarInfo):
    """A member whose header must be valid: tarfile takes a damaged one for the end of the archive."""

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> Self:
        """As usual, but only a block of zeros counts as the end of the archive."""
        try:
            return super().fromtarfile(tarfile)
        except EOFHeaderError:
            raise
        except HeaderError as error:
            raise ReadError(f"{error} where a file or the end of the archive should be") from None


def _zip(source: Path, wanted: Callable[[str], bool]) -> _Members:
    with zipfile.ZipFile(source) as archive:
        for member in archive.infolist():
            clean = _clean(plain_name(member.filename))
            linked = stat.S_ISLNK(member.external_attr >> 16)
            if clean is None or member.is_dir() or linked or not wanted(clean):
                continue
            check_member(member, source)
            try:
                stream = archive.open(member)
            except RuntimeError as error:  # a password, or a compression that Python does not support
                raise DataError(f"expected a plain archive; got: {error}", source) from None
            with stream, BufferedReader(stream, 1 << 16) as buffered:  # type: ignore[type-var]
                yield clean, decompressed(buffered, member.filename)


def _clean(name: str) -> str | None:
    """The name with single forward slashes; None for one that points outside or is a hidden or system file."""
    if _ODD.search(name):
        name = "/".join(part for part in name.replace("\\", "/").split("/") if part not in ("", "."))
        if not name or _HIDDEN.search(name):
            return None
    return name
