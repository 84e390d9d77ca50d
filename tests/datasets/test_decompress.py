"""Limits on lines and on what compressed files unfold to: a small file does not fill the memory."""

import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from wordward.datasets import DataError, decompress, read
from wordward.datasets.archive import named

LINE = b"the same film again,good\n"
MANY = b"text,label\n" + LINE * 20_000  # 500 kB, of which gzip makes 2 kB


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompress, "LARGE", 100_000)
    for place in ("decompress", "lines", "archive", "files"):
        monkeypatch.setattr(f"wordward.datasets.{place}.LONGEST", 1 << 20)


def zipped(content: bytes, kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", kind) as archive:
        archive.writestr("a.csv", content)
    return packed.getvalue()


def in_tar(content: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo("a.csv")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_file_that_unfolds_to_too_much(pack: Callable[[bytes], bytes], tmp_path: Path, small_limits: None) -> None:
    path = tmp_path / f"a.csv.{'gz' if pack is gzip.compress else 'xz'}"
    path.write_bytes(pack(MANY))
    with pytest.raises(DataError, match=r"a\.csv\..z: .*100 times .*: if it is what you want, unpack it first"):
        read(path)
    (tmp_path / "a.csv").write_bytes(MANY)
    assert len(read(tmp_path / "a.csv")) == 20_000  # as it is told


def test_texts_that_are_no_bombs(tmp_path: Path, small_limits: None) -> None:
    content = b"text,label\n" + b"".join(b"film %d was %x,good\n" % (at, at**5) for at in range(20_000))
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(content))
    assert len(content) > decompress.LARGE
    assert len(read(tmp_path / "a.csv.gz")) == 20_000


@pytest.mark.parametrize(
    ("name", "pack"),
    [("a.zip", zipped), ("a.tar.gz", in_tar), ("b.zip", lambda content: zipped(gzip.compress(content), 0))],
)
def test_an_archive_that_unfolds_to_too_much(
    name: str, pack: Callable[[bytes], bytes], tmp_path: Path, small_limits: None
) -> None:
    path = tmp_path / name
    path.write_bytes(pack(MANY))
    if name == "b.zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.csv.gz", gzip.compress(MANY))
    with pytest.raises(DataError, match="unpack it first"):
        [entry.read() for entry in named(path, "a.csv")]


def test_tables_that_unfold_to_too_much(tmp_path: Path, small_limits: None) -> None:
    rows = pyarrow.table({"text": [f"{at} " + "warm " * 9_000 for at in range(100)], "label": ["good"] * 100})
    pyarrow.parquet.write_table(rows, tmp_path / "a.parquet", compression="zstd", compression_level=19)
    (tmp_path / "a.xlsx").write_bytes(zipped(MANY))
    for name in ("a.parquet", "a.xlsx"):
        with pytest.raises(DataError, match="unpack it first"):
            read(tmp_path / name)


FIRST = {".csv": b"text,label\n", ".csv.gz": b"text,label\n", ".jsonl": b'{"text": "warm", "label": "good"}\n'}
FIRST |= {".txt": b"warm\n", ".tsv": b"text\n", ".conll": b"warm\tgood\n"}


@pytest.mark.parametrize("ending", FIRST)
def test_a_line_that_is_too_long(ending: str, tmp_path: Path, small_limits: None, monkeypatch: Any) -> None:
    """It is refused before it is read to its end."""
    monkeypatch.setattr(decompress, "LARGE", 1 << 30)
    content = FIRST[ending] + b"film " * 300_000
    path = tmp_path / f"a{ending}"
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    with pytest.raises(DataError, match="expected a line of at most 1 MiB"):
        read(path, labelled=ending not in (".txt", ".tsv"))


def test_a_field_over_many_lines_that_is_too_long(tmp_path: Path, small_limits: None) -> None:
    (tmp_path / "a.csv").write_bytes(b'text,label\n"' + b"warm film\n" * 150_000)
    with pytest.raises(DataError, match=r"expected a field of at most 1 MiB; .* are its quotes closed"):
        read(tmp_path / "a.csv")


def test_a_file_of_one_text_that_is_too_long(tmp_path: Path, small_limits: None) -> None:
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "1.txt").write_bytes(b"warm film\n" * 150_000)
    with pytest.raises(DataError, match="expected a file that is one text of at most 1 MiB"):
        read(tmp_path)
    with pytest.raises(DataError, match="expected a file of at most 1 MiB"):
        [entry.read() for entry in named(tmp_path / "good", "1.txt")]
