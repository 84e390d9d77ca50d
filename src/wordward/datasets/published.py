"""What every published corpus says of itself, and the shape in which it comes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, TypeVar

from wordward.datasets.example import Example

Item = TypeVar("Item")
SEED = 0  # of the splits that no publication fixes


class Counts(NamedTuple):
    """Texts in each split."""

    train: int
    dev: int
    test: int
    unlabelled: int = 0


class Splits(NamedTuple):
    """The texts of a corpus, in the paper's splits."""

    train: list[Example]
    dev: list[Example]
    test: list[Example]
    unlabelled: list[Example]

    @property
    def counts(self) -> Counts:
        """Texts in each split."""
        return Counts(*map(len, self))


@dataclass(frozen=True)
class Download:
    """A file to fetch, with the hash that some public source states for it."""

    url: str
    name: str
    checksum: str | None = None  # "sha256:..." or "md5:..."; never one that we computed
    cited: str = ""  # where the checksum is stated
    megabytes: float | None = None  # where it is known


@dataclass(frozen=True)
class CorpusInfo:
    """A published corpus: where it comes from, on what terms, and how large the paper says it is."""

    name: str
    task: Literal["classify", "tag"]
    title: str
    citation: str
    licence: str
    homepage: str
    counts: Counts  # of the paper's table "Summary of datasets"
    needs: tuple[str, ...]  # what a folder must hold, also compressed, to be this corpus
    downloads: tuple[Download, ...]
    terms: str = ""  # what one agrees to by downloading; such a corpus is fetched only when told to
    note: str = ""  # what else to know before getting it


class Corpus(Protocol):
    """A module of one published corpus."""

    INFO: CorpusInfo

    def load(self, source: Path) -> Splits:
        """The corpus from a folder or archive as published."""
        ...


def tenth(count: int) -> int:
    """A tenth, rounded up: what is held out where a split is not published."""
    return -(-count // 10)


def hold_out(items: Sequence[Item], count: int) -> tuple[list[Item], list[Item]]:
    """(kept, held out), drawn at random, both in the order they came.

    Places are drawn by a hash of their number: the same on every machine and version of Python and numpy.
    """
    drawn = sorted(range(len(items)), key=lambda at: blake2b(b"%d %d" % (SEED, at), digest_size=16).digest())
    held = set(drawn[:count])
    kept = [item for at, item in enumerate(items) if at not in held]
    return kept, [items[at] for at in sorted(held)]
