"""Compressed files, decompressed up to a limit, so that a small one does not fill the memory."""

import gzip
import io
import lzma
from typing import IO, Any
from zipfile import ZipInfo

from wordward.support.errors import DataError

LARGE = 128 << 20  # bytes that any file may unfold to
TIMES = 100  # and beyond that, so many times its own size: texts reach 3 to 20
LONGEST = 64 << 20  # bytes of a line, of a field, and of a file that is one text


def decompressed(stream: IO[bytes], name: str) -> IO[bytes]:
    """The stream, decompressed if the name ends in .gz or .xz."""
    # Buffered, since both are slow at reading single lines.
    if name.lower().endswith(".gz"):
        return io.BufferedReader(_Unfolding(gzip.GzipFile(fileobj=stream), stream, name), 1 << 16)
    if name.lower().endswith(".xz"):
        return io.BufferedReader(_Unfolding(lzma.LZMAFile(stream), stream, name), 1 << 16)
    return stream


class _Unfolding(io.RawIOBase):
    """A stream that is decompressed, until it is too large for what it comes from."""

    def __init__(self, unpacked: Any, packed: IO[bytes], name: str) -> None:
        self._unpacked, self._packed, self._name, self._size = unpacked, packed, name, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._unpacked.readinto(buffer)
        self._size += count
        if self._size > LARGE:  # asked only then, since it takes time
            check_unfolded(self._size, self._packed.tell(), self._name)
        return count

    def close(self) -> None:
        self._unpacked.close()
        super().close()


def check_unfolded(size: int, packed: int, path: object) -> None:
    """Refuse what unfolds to `size` bytes from `packed`."""
    if size > LARGE and size > TIMES * packed:
        raise DataError(
            f"expected at most {LARGE >> 20:,} MiB, or {TIMES} times the size of the compressed file; it unfolds to "
            "more, as no text does: if it is what you want, unpack it first",
            path,
        )


def check_member(member: ZipInfo, path: object) -> None:
    """Refuse a member of a zip archive that unfolds to too much; no more is read of it than it says there is."""
    check_unfolded(member.file_size, member.compress_size, path)


def too_long(what: str, path: object, line: int = 0) -> DataError:
    """The error of a line, a field or a file that is longer than a text can be."""
    return DataError(
        f"expected {what} of at most {LONGEST >> 20} MiB; this one is longer: is it made of lines that end in a line "
        "feed, and are its quotes closed?",
        path,
        line,
    )
