"""Texts larger than memory: read one at a time, their ids written to a memory-mapped file."""

import hashlib
import json
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from wordward.config.texts import TextSettings
from wordward.datasets import DataError, Example
from wordward.datasets.columns import Columns
from wordward.datasets.files import read_each
from wordward.support.console import progress
from wordward.text.cache_files import cache_folder, keep, reading, stamps
from wordward.text.corpus import encode_words
from wordward.text.ragged import Rows
from wordward.text.tokens import words_of
from wordward.text.vocabulary import Vocabulary

VERSION = 1  # of the files below; increase it when the same texts would give other ids
LARGE = 1 << 28  # bytes of text from which on their ids are stored
PACKED = 5  # bytes of text assumed per byte of a compressed file
SHOWN = 1000  # texts between two updates of the progress bar
IDS, OFFSETS = "ids.int32", "offsets.npy"


@dataclass(frozen=True)
class Texts:
    """Unlabelled texts of files, read again at each iteration."""

    paths: Sequence[Path]
    text_column: str = "text"
    format: str | None = None
    skip_empty: bool = False

    def __iter__(self) -> Iterator[Example]:
        columns = Columns(self.text_column, labelled=False, skip_empty=self.skip_empty)
        for path in self.paths:
            yield from read_each(path, columns, self.format)


def are_large(paths: Sequence[Path]) -> bool:
    """Whether files are too large for their texts to be held in memory."""
    sizes = (size * (PACKED if name.lower().endswith((".gz", ".xz")) else 1) for name, size, _ in stamps(paths))
    return sum(sizes) >= LARGE


def store(
    texts: Texts, vocabulary: Vocabulary, settings: TextSettings, *, tagging: bool = False, quiet: bool = False
) -> Rows:
    """The texts as ids in the cache, where they stay for the next run."""
    parts = [
        VERSION,
        stamps(texts.paths),
        texts.text_column,
        texts.format,
        *(["skip_empty"] if texts.skip_empty else []),
        asdict(settings),
        vocabulary.fingerprint,
        tagging,
    ]
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
    place = cache_folder() / f"texts-{key}"
    if not place.exists():
        keep(place, lambda part: _write(part, texts, vocabulary, settings, tagging=tagging, quiet=quiet), quiet=quiet)
    with reading(place):
        ids, offsets = np.memmap(place / IDS, dtype=np.int32, mode="r"), np.load(place / OFFSETS)
        if len(ids) != offsets[-1]:  # truncated: its last texts would be empty
            raise ValueError(f"{len(ids)} ids in {IDS} instead of {offsets[-1]}")
        return Rows(ids, offsets)


def _write(
    folder: Path, texts: Texts, vocabulary: Vocabulary, settings: TextSettings, *, tagging: bool, quiet: bool
) -> None:
    """Read the texts; write their ids and where each begins."""
    folder.mkdir(parents=True)
    lengths = array("q", [0])
    with (folder / IDS).open("wb") as file, progress(quiet=quiet) as bars:
        bar = bars.add_task("encoding", total=None, unit="texts")
        for example in texts:
            ids = encode_words(words_of(example, settings), vocabulary, settings, eos=not tagging)
            if not len(ids):
                raise DataError(
                    "expected a sentence; it has no tokens", ", ".join(map(str, texts.paths)), example.line
                )
            file.write(ids.tobytes())
            lengths.append(len(ids))
            if len(lengths) % SHOWN == 0:
                bars.advance(bar, SHOWN)
    np.save(folder / OFFSETS, np.cumsum(np.frombuffer(lengths, dtype=np.int64)))
