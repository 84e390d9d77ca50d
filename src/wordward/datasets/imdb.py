"""IMDB film reviews (Maas et al. 2011) from the tree `aclImdb` or its archive."""

import re
from pathlib import Path

from wordward.datasets.archive import files
from wordward.datasets.example import Example
from wordward.datasets.published import CorpusInfo, Counts, Download, Splits
from wordward.support.errors import DataError

INFO = CorpusInfo(
    name="imdb",
    task="classify",
    title="IMDB: Large Movie Review Dataset v1.0",
    citation=(
        "Andrew L. Maas, Raymond E. Daly, Peter T. Pham, Dan Huang, Andrew Y. Ng, Christopher Potts: "
        "Learning Word Vectors for Sentiment Analysis. ACL 2011, pages 142-150"
    ),
    licence="none stated; the publisher asks for the citation",
    homepage="https://ai.stanford.edu/~amaas/data/sentiment/",
    counts=Counts(21_246, 3_754, 25_000, 50_000),
    needs=("train/pos", "train/neg", "test/pos", "test/neg"),
    downloads=(
        Download(
            "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
            "aclImdb_v1.tar.gz",
            "sha256:c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",
            "tensorflow/datasets, tensorflow_datasets/url_checksums/imdb_reviews.txt; "
            "huggingface/datasets, datasets/imdb/dataset_infos.json",
            megabytes=84,
        ),
    ),
)

FIRST_DEV = {"pos": 10_621, "neg": 10_625}  # training reviews from these ids on are dev
LABELS = {"pos": "positive", "neg": "negative"}
_REVIEW = re.compile(r"(|.*/)(train|test)/(pos|neg|unsup)/(\d+)_\d+\.txt")


def load(source: Path) -> Splits:
    """All reviews, byte for byte, ordered by class and id."""
    found: dict[tuple[str, str], dict[int, str]] = {}
    roots: set[str] = set()
    for entry in files(source, lambda name: _REVIEW.fullmatch(name) is not None):
        match = _REVIEW.fullmatch(entry.name)
        assert match is not None, "only reviews are requested"
        root, part, kind, number = match.groups()
        roots.add(root)
        try:
            text = entry.read().decode()
        except UnicodeDecodeError as error:
            raise DataError(f"expected UTF-8; got: {error}", entry) from None
        reviews = found.setdefault((part, kind), {})
        if len(roots) > 1 or int(number) in reviews:
            raise DataError("expected one copy of each review; found a second one of this review", entry)
        reviews[int(number)] = text
    for part, kind in [(part, kind) for part in ("train", "test") for kind in LABELS]:
        if (part, kind) not in found:
            raise DataError(f"expected reviews {part}/{kind}/<id>_<rating>.txt; found none", source)
    labelled = {
        part: [
            (kind, number, Example(text, label))
            for kind, label in LABELS.items()
            for number, text in sorted(found[part, kind].items())
        ]
        for part in ("train", "test")
    }
    return Splits(
        train=[example for kind, number, example in labelled["train"] if number < FIRST_DEV[kind]],
        dev=[example for kind, number, example in labelled["train"] if number >= FIRST_DEV[kind]],
        test=[example for *_, example in labelled["test"]],
        unlabelled=[Example(text) for _, text in sorted(found.get(("train", "unsup"), {}).items())],
    )
