"""FCE-public error detection (Yannakoudakis et al. 2011; Rei & Yannakoudakis 2016), one tag per token."""

from pathlib import Path

from wordward.datasets.archive import Entry, named
from wordward.datasets.columns import Columns
from wordward.datasets.conll import sentences
from wordward.datasets.example import Example
from wordward.datasets.published import CorpusInfo, Counts, Download, Splits
from wordward.support.errors import DataError

INFO = CorpusInfo(
    name="fce",
    task="tag",
    title="FCE-public: errors in learners' English (c correct, i incorrect)",
    citation=(
        "Helen Yannakoudakis, Ted Briscoe, Ben Medlock: A New Dataset and Method for Automatically Grading "
        "ESOL Texts. ACL 2011; Marek Rei, Helen Yannakoudakis: Compositional Sequence Labeling Models for "
        "Error Detection in Learner Writing. ACL 2016"
    ),
    licence="CLC FCE Dataset Licence: non-commercial research and education, excerpts under 100 words",
    homepage="https://ilexir.co.uk/datasets/index.html",
    counts=Counts(28_731, 2_222, 2_720),
    needs=("fce-public.train.original.tsv", "fce-public.dev.original.tsv", "fce-public.test.original.tsv"),
    downloads=(
        Download(
            "https://s3-eu-west-1.amazonaws.com/ilexir-website-media/fce-error-detection.tar.gz",
            "fce-error-detection.tar.gz",
        ),
    ),
    terms=(
        "by downloading you enter into the CLC FCE Dataset Licence with the University of Cambridge: non-commercial "
        "research and educational use only, no transfer, citation of Yannakoudakis et al. (2011) in "
        "publications, excerpts of less than 100 words"
    ),
)

TAGS = {"c", "i"}


def load(source: Path) -> Splits:
    """The publisher's own three splits."""
    found = {entry.base: _checked(entry) for entry in named(source, *INFO.needs)}
    if missing := [name for name in INFO.needs if name not in found]:
        raise DataError(f"expected {', '.join(missing)}; found {', '.join(found) or 'none'}", source)
    train, dev, test = (found[name] for name in INFO.needs)
    return Splits(train, dev, test, [])


def _checked(entry: Entry) -> list[Example]:
    examples = list(sentences(entry, Columns()))
    for example in examples:
        if odd := set(example.tags or ()) - TAGS:
            raise DataError(f"expected the tags c and i; got {sorted(odd)}", entry, example.line)
    return examples
