"""An encoded corpus as one small file, to carry to another machine."""

import json
import lzma
import os
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from wordward.cache import Encoded
from wordward.console import progress
from wordward.corpus import Corpus, Rows
from wordward.datasets import DataError, MissingError
from wordward.text import Vocabulary

MAGIC = b"wordward-pack 1\n"
PIECE = 1 << 20


def write_pack(path: Path, encoded: Encoded, *, quiet: bool = False) -> None:
    """Write `encoded`: ids as 16 bits and, where the vocabulary is larger, 8 more apart, all under xz."""
    arrays: list[np.ndarray] = [encoded.vocabulary.counts.astype(np.int64)]
    splits = []
    wide = len(encoded.vocabulary) > 1 << 16
    for name, corpus in encoded.splits.items():
        flat = np.asarray(Rows.of(corpus.rows).flat)
        arrays += [corpus.lengths.astype(np.uint32), (flat & 0xFFFF).astype(np.uint16)]
        arrays += [(flat >> 16).astype(np.uint8)] if wide else []
        if corpus.labels is not None:
            labels = np.concatenate(list(corpus.labels)) if encoded.tagging else np.asarray(corpus.labels)
            arrays.append(labels.astype(np.int32))
        splits.append([name, len(corpus.rows), len(flat), corpus.labels is not None])
    told = {"words": encoded.vocabulary.words, "classes": encoded.classes, "tagging": encoded.tagging}
    header = json.dumps({**told, "splits": splits}, ensure_ascii=False).encode()
    payload = b"".join([len(header).to_bytes(8, "little"), header, *(array.tobytes() for array in arrays)])
    part = path.with_name(path.name + ".part")
    try:
        with lzma.open(part, "wb") as file, progress(quiet=quiet) as bars:
            bar = bars.add_task("packing", total=len(payload), unit="bytes")
            file.write(MAGIC)
            for start in range(0, len(payload), PIECE):
                bars.advance(bar, file.write(payload[start : start + PIECE]))
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def read_pack(path: Path) -> Encoded:
    """What `write_pack` wrote, in memory."""
    if not path.is_file():
        raise MissingError(
            "expected a corpus packed by `wordward data pack`; there is no file of this name", path
        )
    try:
        with lzma.open(path, "rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise DataError(
                    "expected a corpus packed by `wordward data pack`; got another kind of file", path
                )
            return _read(file)  # type: ignore[arg-type]
    except (lzma.LZMAError, EOFError) as error:
        raise DataError(f"expected a whole packed corpus; got: {error}", path) from None


def _read(file: BinaryIO) -> Encoded:
    told: dict[str, Any] = json.loads(_exactly(file, int.from_bytes(_exactly(file, 8), "little")))
    size, tagging = len(told["words"]), bool(told["tagging"])

    def array(kind: type, count: int) -> np.ndarray:
        return np.frombuffer(_exactly(file, count * np.dtype(kind).itemsize), dtype=kind)

    vocabulary = Vocabulary(tuple(told["words"]), array(np.int64, size))
    splits = {}
    for name, texts, tokens, labelled in told["splits"]:
        offsets = np.concatenate([[0], np.cumsum(array(np.uint32, texts), dtype=np.int64)])
        flat = array(np.uint16, tokens).astype(np.int32)
        if size > 1 << 16:
            flat |= array(np.uint8, tokens).astype(np.int32) << 16
        labels: Any = None
        if labelled:
            labels = array(np.int32, tokens if tagging else texts).astype(np.int64)
        splits[name] = Corpus(Rows(flat, offsets), Rows(labels, offsets) if labelled and tagging else labels)
    return Encoded(vocabulary, tuple(told["classes"]), splits, tagging)


def _exactly(file: BinaryIO, count: int) -> bytes:
    found = file.read(count)
    if len(found) < count:
        raise EOFError(f"it ends {count - len(found)} bytes early")
    return found
