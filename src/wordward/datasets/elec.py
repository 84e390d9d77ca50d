"""Elec, reviews of electronics (Johnson & Zhang 2015), from `elec-unlab.tar.gz` or its folder."""

import re
from pathlib import Path

from wordward.datasets.archive import files
from wordward.datasets.example import Example
from wordward.datasets.lines import legacy_lines
from wordward.datasets.published import CorpusInfo, Counts, Download, Splits, tenth
from wordward.support.errors import DataError

INFO = CorpusInfo(
    name="elec",
    task="classify",
    title="Elec: Amazon reviews of electronics",
    citation=(
        "Rie Johnson, Tong Zhang: Effective Use of Word Order for Text Categorization with Convolutional "
        "Neural Networks. NAACL 2015; the same: Semi-supervised Convolutional Neural Networks for Text "
        "Categorization via Region Embedding. NIPS 2015"
    ),
    licence="none stated; taken from the Amazon reviews of snap.stanford.edu (McAuley & Leskovec 2013)",
    homepage="http://riejohnson.com/cnn_data.html",
    counts=Counts(22_500, 2_500, 25_000, 200_000),
    needs=("elec-25k-train.txt.tok", "elec-25k-train.cat", "elec-test.txt.tok", "elec-test.cat"),
    downloads=(Download("https://www.riejohnson.com/software/elec-unlab.tar.gz", "elec-unlab.tar.gz"),),
    note="elec2.tar.gz on the same page holds only the labelled texts.",
)

LABELS = {"1": "negative", "2": "positive"}  # as in the publisher's README
_UNLABELLED = re.compile(r"elec-25k-unlab\d*\.txt\.tok")


def load(source: Path) -> Splits:
    """The tokenised reviews; dev is the last tenth of the training set, which is ordered by product."""
    found: dict[str, list[str]] = {}
    for entry in files(source, _is_part):
        if entry.base in found:
            raise DataError(f"expected one file {entry.base}; found two: move one of them away", entry)
        found[entry.base] = list(legacy_lines(entry))
    if missing := [name for name in INFO.needs if name not in found]:
        raise DataError(f"expected {', '.join(missing)}; found {', '.join(sorted(found)) or 'none'}", source)
    labelled = _labelled("elec-25k-train", found, source)
    cut = len(labelled) - tenth(len(labelled))
    unlabelled = [
        Example(text, line=line)
        for name in sorted(found)
        if _UNLABELLED.fullmatch(name)
        for line, text in enumerate(found[name], start=1)
        if text.strip()
    ]
    return Splits(labelled[:cut], labelled[cut:], _labelled("elec-test", found, source), unlabelled)


def _is_part(name: str) -> bool:
    base = name.rpartition("/")[2]
    return base in INFO.needs or _UNLABELLED.fullmatch(base) is not None


def _labelled(name: str, found: dict[str, list[str]], source: Path) -> list[Example]:
    texts, labels = found[f"{name}.txt.tok"], found[f"{name}.cat"]
    if len(texts) != len(labels):
        raise DataError(
            f"expected one label per text; got {len(texts)} lines in {name}.txt.tok and {len(labels)} in {name}.cat",
            source,
        )
    examples: list[Example] = []
    for line, (text, label) in enumerate(zip(texts, labels, strict=True), start=1):
        if label.strip() not in LABELS:
            raise DataError(f"expected the label 1 or 2 in {name}.cat; got {label!r}", source, line)
        examples.append(Example(text.strip(" "), LABELS[label.strip()], line=line))
    return examples
