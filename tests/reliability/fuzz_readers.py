"""Give damaged and hostile files to everything that reads texts: each is read, or refused with what is wrong.

    python -m tests.reliability.fuzz_readers --inputs 100000

A problem is an exception that is not one of wordward's own errors, or ten seconds for one small file.
"""

import argparse
import gzip
import io
import json
import lzma
import os
import random
import sys
import tarfile
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")]

import numpy as np
from records import record
from reviews import reviews, tagged, write_conll, write_csv

from wordward import WordwardError
from wordward.config.settings import TextSettings, TrainConfig
from wordward.config.toml import from_toml, to_toml
from wordward.datasets import read
from wordward.datasets.m2 import read_m2
from wordward.datasets.registry import corpus
from wordward.runs.initialization import read_vectors, vectors_width
from wordward.text.cache import encode_splits
from wordward.text.pack import read_pack, write_pack
from wordward.text.tokenizers import TOKENIZERS, tokenize
from wordward.text.vocabulary import Vocabulary

SECONDS = 10
# What readers may stumble over, put in anywhere.
ODD = (b"\x00", b'"', b'""', b"'", b"\r", b"\r\n", b"\n\n", b"\t", b",", b";", b"|", b"\xff", b"\xef\xbb\xbf", b"\\")
ODD += (b"\xed\xa0\x80", b"\xc2\x85", b"\xe2\x80\xa8", b"{", b"}", b"[", b"]", b"null", b"NaN", b"1e999", b"-1")
ODD += (
    b"9" * 400,
    b"[" * 3000,
    b"<br />",
    b"\xf0\x9f\x98\x80",
    b"a" * 5000,
    b"\xcc\x81" * 50,
    b".I 1\n.W\n",
    b"S ",
    b"A ",
)


@dataclass(frozen=True)
class Reader:
    """A whole file, and what reads it."""

    suffix: str
    content: bytes
    read: Callable[[Path], Any]


def _archives(place: Path) -> dict[str, Reader]:
    """The layouts of the published corpora, in small, as archives of each kind."""
    tagged_text = write_conll(place / "c", tagged(6)).read_text()
    lines = "".join(f"{each.text}\n" for each in reviews(8))
    layouts: dict[str, dict[str, str]] = {
        "rotten_tomatoes": {"d/rt-polarity.pos": lines, "d/rt-polarity.neg": lines},
        "fce": {f"d/fce-public.{split}.original.tsv": tagged_text for split in ("train", "dev", "test")},
        "dbpedia": {f"d/{split}.csv": '1,"Oslo","a town"\n2,"Ida","a name"\n' for split in ("train", "test")}
        | {"d/classes.txt": "Place\nName\n"},
        "imdb": {f"d/{split}/{kind}/{at}_7.txt": "a film" for split in ("train", "test") for kind in ("pos", "neg")
                 for at in range(3)},
        "elec": {f"d/elec-{part}.{end}": {"cat": "1\n2\n" * 10, "txt.tok": "a warm film\n" * 20}[end]
                 for part in ("25k-train", "test") for end in ("txt.tok", "cat")},
        "rcv1": {"d/rcv1-v2.topics.qrels": "C11 2286 1\nC12 2287 1\nC11 30000 1\n",
                 "d/rcv1.topics.hier.orig": "parent: Root child: CCAT child-description: X\n"
                 "parent: CCAT child: C11 child-description: Y\nparent: CCAT child: C12 child-description: Z\n"}
        | {f"d/lyrl2004_tokens_{part}.dat": f".I {at + 2286}\n.W\nword two\n\n"
           for at, part in enumerate(("train", "test_pt0", "test_pt1", "test_pt2", "test_pt3"))},
    }  # fmt: skip
    found = {}
    for name, files in layouts.items():
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w:gz") as tar:
            for path, text in files.items():
                member = tarfile.TarInfo(path)
                member.size = len(text.encode())
                tar.addfile(member, io.BytesIO(text.encode()))
        found[f"{name} tar"] = Reader(".tar.gz", stream.getvalue(), corpus(name).load)
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as zipped:
            for path, text in files.items():
                zipped.writestr(path, text)
        found[f"{name} zip"] = Reader(".zip", stream.getvalue(), corpus(name).load)
        found[f"{name} tar, repacked"] = Reader(
            ".tar", gzip.decompress(found[f"{name} tar"].content), corpus(name).load
        )
    return found


def readers(place: Path) -> dict[str, Reader]:
    """Everything that reads a file of texts, words or settings, with a file it can read."""
    table = write_csv(place / "t", reviews(8)).read_bytes()
    rows = [{"text": each.text, "label": each.label, "more": {"a": [1]}} for each in reviews(8)]
    json_lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    conll = write_conll(place / "c", tagged(6)).read_bytes()
    m2 = b"S this are warm\nA 1 2|||R:VERB|||is|||REQUIRED|||-NONE-|||0\n\n"
    m2 += b"S fine\nA -1 -1|||noop|||-NONE-|||REQUIRED|||-NONE-|||0\n"
    words = Vocabulary.build([["a", "warm", "film"]] * 2)
    words.save(place / "v")
    vectors = b"3 2\nwarm 0.5 1\nfilm -1 2e-3\ndull 0 0\n"
    splits = {"train": reviews(20), "dev": reviews(5, 1), "test": reviews(5, 2), "unlabelled": reviews(3, 3)}
    write_pack(place / "p", encode_splits(splits, TextSettings(), quiet=True), TextSettings(), quiet=True)
    packed = (place / "p").read_bytes()

    def unlabelled(path: Path) -> Any:
        return read(path, labelled=False, skip_empty=True)

    def again(path: Path) -> Any:  # damage under a sound compression
        (place / "again").write_bytes(lzma.compress(path.read_bytes(), preset=0))
        return read_pack(place / "again", TextSettings())

    found = {
        "csv": Reader(".csv", table, read),
        "tsv": Reader(".tsv", table.replace(b",", b"\t"), read),
        "semicolons": Reader(".csv", table.replace(b",", b";"), unlabelled),
        "json lines": Reader(".jsonl", json_lines, read),
        "json": Reader(".json", json_lines, read),
        "conll": Reader(".conll", conll, read),
        "text": Reader(".txt", b"a warm film\n\na dull one\n", unlabelled),
        "snap": Reader(".txt", b"product/productId: 1\nreview/text: a warm film\n\n" * 3, unlabelled),
        "csv.gz": Reader(".csv.gz", gzip.compress(table), read),
        "jsonl.xz": Reader(".jsonl.xz", lzma.compress(json_lines), read),
        "m2": Reader(".m2", m2, read_m2),
        "vocabulary": Reader(".txt", (place / "v").read_bytes(), Vocabulary.load),
        "vectors": Reader(".vec", vectors, lambda path: read_vectors(path, words, vectors_width(path))),
        "pack": Reader(".pack", packed, lambda path: read_pack(path, TextSettings())),
        "pack, repacked": Reader(".pack", lzma.decompress(packed), again),
        "settings": Reader(".toml", to_toml(TrainConfig()).encode(), _settings),
        "tokenizers": Reader(
            ".txt", b"A warm, funny film: don't miss it \xc3\xa9 \xe4\xbd\xa0\xe5\xa5\xbd", _tokenized
        ),
    }
    return found | _tables(place, rows) | _archives(place)


def _tables(place: Path, rows: list[dict[str, Any]]) -> dict[str, Reader]:
    """Parquet and Excel, where their readers are installed."""
    try:
        import openpyxl
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        return {}
    parquet.write_table(pa.Table.from_pylist(rows), place / "q")
    book = openpyxl.Workbook()
    sheet: Any = book.active
    for row in [("text", "label"), *((row["text"], row["label"]) for row in rows)]:
        sheet.append(row)
    book.save(place / "x")
    return {
        "parquet": Reader(".parquet", (place / "q").read_bytes(), read),
        "excel": Reader(".xlsx", (place / "x").read_bytes(), read),
    }


def _settings(path: Path) -> Any:
    return from_toml(TrainConfig, path.read_text(encoding="utf-8", errors="replace"), source="it")


def _tokenized(path: Path) -> None:
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    for name in TOKENIZERS:
        for token in tokenize(text, name, lowercase=True):
            assert text[token.start : token.end]


def damaged(content: bytes, rng: random.Random) -> bytes:
    """The content with a few parts changed, moved, doubled, gone, or replaced by odd ones."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 10))):
        at, length = rng.randrange(len(data) + 1), min(rng.choice((1, 1, 2, 8, 60, 400)), len(data))
        what = rng.randrange(7)
        if what == 0 and data:
            data[at % len(data)] = rng.randrange(256)
        elif what == 1:
            del data[at : at + length]
        elif what == 2:
            data[at:at] = data[at : at + length]
        elif what == 3:
            start = rng.randrange(len(data) + 1)
            data[at:at] = data[start : start + length]
        elif what == 4:
            del data[at:]
        else:
            data[at:at] = rng.choice(ODD)
    return bytes(data)


def fuzzed(place: Path, count: int, seed: int) -> Iterator[tuple[str, str, str]]:
    """So many inputs, all readers in turn: the reader's name, what came of it, and the problem if it is one."""
    every, file = readers(place), place / "input"
    slow = {name for name in every if name in ("parquet", "excel") or "tar" in name or "zip" in name}
    names = [name for name in every if name in slow] + [name for name in every if name not in slow] * 4
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        name = names[number % len(names)]
        path = file.with_suffix(every[name].suffix)
        path.write_bytes(damaged(every[name].content, rng))
        began, came, problem = time.monotonic(), "read", ""
        try:
            every[name].read(path)
        except WordwardError:
            came = "refused"
        except ValueError as error:  # of settings, which are refused so
            came = "refused"
            problem = "" if name == "settings" else _told(error)
        except Exception as error:
            problem = _told(error)
        if time.monotonic() - began > SECONDS:
            problem = f"it took {time.monotonic() - began:.0f} s"
        yield f"{name} {number}", came, problem


def _told(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error!s:.150} at {Path(last.filename).name}:{last.lineno}"


def main(count: int, seed: int, *, keep: bool) -> int:
    """Read so many files, show what went wrong, and print the figures."""
    counts, began = Counter[str](), time.monotonic()
    np.seterr(all="ignore")
    with tempfile.TemporaryDirectory() as name:
        for reader, came, problem in fuzzed(Path(name), count, seed):
            counts["problems" if problem else came] += 1
            if problem:
                print(f"{reader}: {problem}", flush=True)
        kinds = len(readers(Path(name)))
    found = {"inputs": count, "readers": kinds, "read": counts["read"], "refused": counts["refused"]}
    found |= {"problems": counts["problems"], "seed": seed, "seconds": round(time.monotonic() - began)}
    record("fuzz_readers", found, keep=keep)
    return 1 if counts["problems"] else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", action="store_true", help="keep the figures for the documentation")
    given = parser.parse_args()
    sys.exit(main(given.inputs, given.seed, keep=given.record))
