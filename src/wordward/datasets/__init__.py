"""Labelled and unlabelled texts, from the user's own files or a published corpus."""

from wordward.datasets.example import DataError, Example, check_labels, drop_shared, split
from wordward.datasets.files import FORMATS, read

__all__ = ["FORMATS", "DataError", "Example", "check_labels", "drop_shared", "read", "split"]
