"""An encoded corpus as one small file, to carry to another machine."""

import json
import lzma
from collections.abc import Set
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from wordward.config.texts import TextSettings
from wordward.datasets import DataError, MissingError
from wordward.datasets.decompress import check_unfolded
from wordward.support.console import progress
from wordward.support.errors import SettingError
from wordward.support.files import whole
from wordward.text.cache import Encoded
from wordward.text.corpus import Corpus
from wordward.text.ragged import Rows
from wordward.text.vocabulary import PAD, Vocabulary

MAGIC = b"wordward-pack 2\n"
PIECE = 1 << 20
LABELLED = ("train", "dev", "test")


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
    """Read what `write_pack` wrote into memory; refused if it is damaged, or was encoded with different settings."""
    if not path.is_file():
        raise MissingError("expected a corpus packed by `wordward data pack`; there is no file of this name", path)
    try:
        with path.open("rb") as packed, lzma.open(packed, "rb") as opened:
            source = _Source(cast(BinaryIO, opened), packed, path)
            if source.take(len(MAGIC), short=True) != MAGIC:
                raise DataError("expected a corpus packed by `wordward data pack`; got another kind of file", path)
            header = _checked(json.loads(source.take(int.from_bytes(source.take(8), "little"))))
            _refuse_others(path, header["text"], settings)
            encoded = _read(source, header)
            if source.take(1, short=True):  # also compares the checksum, which comes last
                raise _DamageError("there is more in it than its header says")
            return encoded
    except (
        lzma.LZMAError,
        EOFError,
        RecursionError,
        _DamageError,
        UnicodeDecodeError,
        json.JSONDecodeError,
    ) as error:
        raise DataError(
            f"expected a complete packed corpus; got: {error}: write it again by `wordward data pack`", path
        ) from None


class _DamageError(Exception):
    """What is wrong with a pack."""


def _expect(fits: bool, problem: str) -> None:
    if not fits:
        raise _DamageError(problem)


class _Source:
    """The unpacked bytes, taken piece by piece, with a limit on what they unfold to."""

    def __init__(self, unpacked: BinaryIO, packed: BinaryIO, path: Path) -> None:
        self._unpacked, self._packed, self._path, self._size = unpacked, packed, path, 0

    def take(self, count: int, *, short: bool = False) -> bytes:
        """The next bytes; fewer only if `short`. No more memory is taken than there are bytes."""
        parts, left = [], count
        while left and (part := self._unpacked.read(min(left, PIECE))):
            parts.append(part)
            left -= len(part)
            self._size += len(part)
            check_unfolded(self._size, self._packed.tell(), self._path)
        if left and not short:
            raise EOFError(f"it ends {left} bytes early")
        return b"".join(parts)

    def array(self, kind: type, count: int) -> np.ndarray:
        """The next numbers."""
        return np.frombuffer(self.take(count * np.dtype(kind).itemsize), dtype=kind)


def _checked(header: Any) -> dict[str, Any]:
    """The header, each of whose values has the type and range that `write_pack` gives it."""
    _expect(isinstance(header, dict), "its header is no JSON object")
    for name in ("words", "classes"):
        value = header.get(name)
        sound = isinstance(value, list) and all(isinstance(each, str) for each in value)
        _expect(sound and len(set(value)) == len(value), f"{name} that are not different strings")
    _expect(isinstance(header.get("tagging"), bool), "tagging that is neither true nor false")
    _expect(_are_settings(header.get("text")), "text settings that there are none of")
    splits = header.get("splits")
    _expect(isinstance(splits, list) and all(map(_is_split, splits)), "splits of another form")
    names = [split[0] for split in splits]
    _expect(
        len(set(names)) == len(names) and {*LABELLED} <= {*names} <= {*LABELLED, "unlabelled"},
        f"the splits {names!r:.80}",
    )
    return header


def _are_settings(value: Any) -> bool:
    """Whether these are settings of texts, with values that they may have."""
    if not isinstance(value, dict) or any(isinstance(each, float | dict | list) for each in value.values()):
        return False
    try:
        TextSettings(**value)
    except (TypeError, SettingError):
        return False
    return True


def _is_split(value: Any) -> bool:
    """Whether this is [name, texts, tokens, labelled] of a split, in which every text has a token."""
    if not isinstance(value, list) or [type(each) for each in value] != [str, int, int, bool]:
        return False
    name, texts, tokens, labelled = value
    return 0 <= texts <= tokens and labelled == (name in LABELLED) and (texts > 0 or name not in LABELLED)


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


def _read(source: _Source, header: dict[str, Any]) -> Encoded:
    size, classes, tagging = len(header["words"]), len(header["classes"]), header["tagging"]
    counts = source.array(np.int64, size)
    _expect(bool((counts >= 0).all()), "counts of words below 0")
    try:
        vocabulary = Vocabulary(tuple(header["words"]), counts)
    except DataError as error:
        raise _DamageError(error.message) from None
    splits = {}
    for name, texts, tokens, labelled in header["splits"]:
        lengths = source.array(np.uint32, texts).astype(np.int64)
        _expect(bool((lengths > 0).all()) and lengths.sum() == tokens, f"lengths that are not those of {name}")
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        flat = source.array(np.uint16, tokens).astype(np.int32)
        if size > 1 << 16:
            flat |= source.array(np.uint8, tokens).astype(np.int32) << 16
        _expect(bool(((flat > PAD) & (flat < size)).all()), f"ids in {name} that no word has")
        labels: Any = None
        if labelled:
            labels = source.array(np.int32, tokens if tagging else texts).astype(np.int64)
            _expect(bool(((labels >= 0) & (labels < classes)).all()), f"labels in {name} that no class has")
        splits[name] = Corpus(Rows(flat, offsets), Rows(labels, offsets) if labelled and tagging else labels)
    return Encoded(vocabulary, tuple(header["classes"]), splits, tagging)
