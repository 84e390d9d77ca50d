"""Labelled and unlabelled texts, from the user's own files or a published corpus."""

from wordward.datasets.example import Example, check_labels, drop_shared, hold_out, sample
from wordward.datasets.files import FORMATS, Columns, read, read_each
from wordward.datasets.given import examples_of
from wordward.datasets.published import CorpusInfo, Splits
from wordward.datasets.registry import CORPORA, find, load
from wordward.support.errors import ColumnError, DataError, MissingError

__all__ = [
    "CORPORA",
    "FORMATS",
    "ColumnError",
    "Columns",
    "CorpusInfo",
    "DataError",
    "Example",
    "MissingError",
    "Splits",
    "check_labels",
    "drop_shared",
    "examples_of",
    "find",
    "hold_out",
    "load",
    "read",
    "read_each",
    "sample",
]
