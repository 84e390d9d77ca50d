"""Labelled and unlabelled texts, from the user's own files or a published corpus."""

from wordward.datasets.example import Example, hold_out, sample
from wordward.datasets.files import FORMATS, read
from wordward.datasets.in_memory import examples_of
from wordward.datasets.pairs import joined
from wordward.datasets.registry import CORPORA, load
from wordward.support.errors import ColumnError, DataError, MissingError

__all__ = [
    "CORPORA",
    "FORMATS",
    "ColumnError",
    "DataError",
    "Example",
    "MissingError",
    "examples_of",
    "hold_out",
    "joined",
    "load",
    "read",
    "sample",
]
