"""An encoded corpus as one small file, to carry to another machine."""

import json
import lzma
from collections.abc import Set
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from wordward.config.settings import TextSettings
from wordward.datasets import DataError, MissingError
from wordward.support.console import progress
from wordward.support.files import whole
from wordward.text.cache import Encoded
from wordward.text.corpus import Corpus
from wordward.text.ragged import Rows
from wordward.text.vocabulary import Vocabulary

MAGIC = b"wordward-pack 2\n"
PIECE = 1 << 20


def write_pack(path: Path, encoded: Encoded, settings: TextSettings, *, quiet: bool = False) -> None:
    """Write a corpus encoded with `settings`: 16 bits of each id, 8 more kept apart if needed, all under xz."""
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
    header = {"words": encoded.vocabulary.words, "classes": encoded.classes, "tagging": encoded.tagging}
    header |= {"splits": splits, "text": asdict(settings)}
    head = json.dumps(header, ensure_ascii=False).encode()
    payload = b"".join([len(head).to_bytes(8, "little"), head, *(array.tobytes() for array in arrays)])
    try:
        with whole(path) as part, lzma.open(part, "wb") as file, progress(quiet=quiet) as bars:
            bar = bars.add_task("packing", total=len(payload), unit="bytes")
            file.write(MAGIC)
            for start in range(0, len(payload), PIECE):
                bars.advance(bar, file.write(payload[start : start + PIECE]))
    except OSError as error:
        raise DataError(
            f"expected a file that can be written; got: {error.strerror or error}: free some space, or name "
            "another place; an existing file was left unchanged",
            path,
        ) from None


def read_pack(path: Path, settings: TextSettings) -> Encoded:
    """Read what `write_pack` wrote into memory; refused if it was encoded with different settings."""
    if not path.is_file():
        raise MissingError("expected a corpus packed by `wordward data pack`; there is no file of this name", path)
    try:
        with lzma.open(path, "rb") as opened:
            file = cast(BinaryIO, opened)
            if file.read(len(MAGIC)) != MAGIC:
                raise DataError("expected a corpus packed by `wordward data pack`; got another kind of file", path)
            header: dict[str, Any] = json.loads(_exactly(file, int.from_bytes(_exactly(file, 8), "little")))
            _refuse_others(path, header["text"], settings)
            return _read(file, header)
    except (lzma.LZMAError, EOFError) as error:
        raise DataError(f"expected a complete packed corpus; got: {error}", path) from None


def _refuse_others(path: Path, packed: dict[str, Any], asked: TextSettings) -> None:
    """Refuse settings that the ids were not made with, since they would be recorded but not used."""
    default, ours = asdict(TextSettings()), asdict(asked)
    theirs = default | packed
    differ = {name for name in theirs if theirs[name] != ours.get(name)}
    if not differ:
        return

    def written(settings: dict[str, Any], names: Set[str]) -> str:
        return " ".join(f"`{name}={settings.get(name)!r}`" for name in theirs if name in names)

    had, got = written(theirs, differ), written(ours, differ)
    again = written(ours, differ | {name for name in ours if ours[name] != default[name]})
    raise DataError(
        f"expected the text settings it was packed with, {had}; got {got}: give {had}, or write it again by "
        f"`wordward data pack` with {again}",
        path,
    )


def _read(file: BinaryIO, header: dict[str, Any]) -> Encoded:
    size, tagging = len(header["words"]), bool(header["tagging"])

    def array(kind: type, count: int) -> np.ndarray:
        return np.frombuffer(_exactly(file, count * np.dtype(kind).itemsize), dtype=kind)

    vocabulary = Vocabulary(tuple(header["words"]), array(np.int64, size))
    splits = {}
    for name, texts, tokens, labelled in header["splits"]:
        offsets = np.concatenate([[0], np.cumsum(array(np.uint32, texts), dtype=np.int64)])
        flat = array(np.uint16, tokens).astype(np.int32)
        if size > 1 << 16:
            flat |= array(np.uint8, tokens).astype(np.int32) << 16
        labels: Any = None
        if labelled:
            labels = array(np.int32, tokens if tagging else texts).astype(np.int64)
        splits[name] = Corpus(Rows(flat, offsets), Rows(labels, offsets) if labelled and tagging else labels)
    return Encoded(vocabulary, tuple(header["classes"]), splits, tagging)


def _exactly(file: BinaryIO, count: int) -> bytes:
    content = file.read(count)
    if len(content) < count:
        raise EOFError(f"it ends {count - len(content)} bytes early")
    return content
