"""Rotten Tomatoes, sentence polarity v1.0 (Pang & Lee 2005), with unlabelled reviews next to it."""

from collections.abc import Iterator
from pathlib import Path

from wordward.datasets.archive import named
from wordward.datasets.example import Example, hold_out
from wordward.datasets.files import read
from wordward.datasets.lines import legacy_text
from wordward.datasets.published import CorpusInfo, Counts, Download, Splits, tenth
from wordward.support.errors import DataError

INFO = CorpusInfo(
    name="rotten_tomatoes",
    task="classify",
    title="Rotten Tomatoes: sentence polarity dataset v1.0",
    citation=(
        "Bo Pang, Lillian Lee: Seeing Stars: Exploiting Class Relationships for Sentiment Categorization "
        "with Respect to Rating Scales. ACL 2005, pages 115-124"
    ),
    licence="none stated; the publisher asks for the citation",
    homepage="https://www.cs.cornell.edu/people/pabo/movie-review-data/",
    counts=Counts(8_636, 960, 1_066, 7_911_684),
    needs=("rt-polarity.pos", "rt-polarity.neg"),
    downloads=(
        Download(
            "https://storage.googleapis.com/seldon-datasets/sentence_polarity_v1/rt-polaritydata.tar.gz",
            "rt-polaritydata.tar.gz",
            "sha256:a05befe52aafda71d458d188a1c54506a998b1308613ba76bbda2e5029409ce9",
            "huggingface/datasets, datasets/rotten_tomatoes/dataset_infos.json",
            megabytes=0.5,
        ),
    ),
    note=(
        "The copy fetched is Seldon's, which Hugging Face's datasets used too and state the SHA-256 of; of the "
        "publisher's own copy only an MD5 is stated. The paper's unlabelled texts are Amazon's film reviews, "
        "3.3 GB: put https://snap.stanford.edu/data/movies.txt.gz (McAuley & Leskovec, WWW 2013) next to it, or your "
        "own texts as unlabelled.txt, .csv, .tsv or .jsonl (also .gz and .xz)."
    ),
)

LABELS = {"rt-polarity.pos": "positive", "rt-polarity.neg": "negative"}
UNLABELLED = ("unlabelled.*", "movies.txt*")  # names of files next to it


def load(source: Path) -> Splits:
    """All sentences; a random tenth is test, a random tenth of the rest dev."""
    found = {entry.base: _sentences(legacy_text(entry.read())) for entry in named(source, *LABELS)}
    if missing := [name for name in LABELS if name not in found]:
        raise DataError(f"expected {' and '.join(missing)}; found {', '.join(found) or 'neither'}", source)
    examples = [Example(text, label, line=line) for name, label in LABELS.items() for line, text in found[name]]
    labelled, test = hold_out(examples, len(examples) // 10)
    train, dev = hold_out(labelled, tenth(len(labelled)))
    return Splits(train, dev, test, _unlabelled(source))


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        if sentence := line.strip(" \t\r"):
            yield number, sentence


def beside(source: Path) -> list[Path]:
    """The files of unlabelled texts next to the archive; in a folder, next to the sentences or above them."""
    folders = {source.parent}
    if source.is_dir():
        folders = {source / above for entry in named(source, *LABELS) for above in Path(entry.name).parents}
    return sorted(path for folder in folders for name in UNLABELLED for path in folder.glob(name))


def _unlabelled(source: Path) -> list[Example]:
    """The unlabelled texts from the one file, if any, next to the corpus."""
    found = beside(source)
    if len(found) > 1:
        folder = source if source.is_dir() else source.parent
        names = ", ".join(str(path.relative_to(folder)) for path in found)
        raise DataError(f"expected one file of unlabelled texts; found {names}: move the others away", folder)
    return read(found[0], labelled=False) if found else []
