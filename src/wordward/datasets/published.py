"""The description that every published corpus has, and the form in which it is loaded."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from wordward.datasets.example import Example


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
    """A file to fetch, with its hash if a public source states one."""

    url: str
    name: str
    checksum: str | None = None  # "sha256:..."; never computed by us
    cited: str = ""  # where the checksum is stated
    megabytes: float | None = None  # if known


@dataclass(frozen=True)
class CorpusInfo:
    """A published corpus: its source, its terms, and its size according to the paper."""

    name: str
    task: Literal["classify", "tag"]
    title: str
    citation: str
    licence: str
    homepage: str
    counts: Counts  # from the paper's table "Summary of datasets"
    needs: tuple[str, ...]  # files, plain or compressed, by which a folder is recognised as this corpus
    downloads: tuple[Download, ...]
    terms: str = ""  # what one agrees to by downloading; if set, fetching needs accept_licence
    note: str = ""  # anything else to know before downloading it


class PublishedCorpus(Protocol):
    """The module of a published corpus."""

    INFO: CorpusInfo

    def load(self, source: Path) -> Splits:
        """Load the corpus from a folder or archive as published."""
        ...


def tenth(count: int) -> int:
    """A tenth, rounded up: how much is held out if no split is published."""
    return -(-count // 10)
