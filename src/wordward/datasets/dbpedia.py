"""DBpedia ontology classification (Zhang et al. 2015), from `dbpedia_csv` or its archive."""

from pathlib import Path

from wordward.datasets.archive import Entry, named
from wordward.datasets.example import Example, hold_out
from wordward.datasets.lines import csv_rows, lines
from wordward.datasets.published import CorpusInfo, Counts, Download, Splits, tenth
from wordward.support.errors import DataError

INFO = CorpusInfo(
    name="dbpedia",
    task="classify",
    title="DBpedia ontology classification, 14 classes",
    citation=(
        "Xiang Zhang, Junbo Zhao, Yann LeCun: Character-level Convolutional Networks for Text Classification. "
        "NIPS 2015; Jens Lehmann et al.: DBpedia - A Large-scale, Multilingual Knowledge Base Extracted from "
        "Wikipedia. Semantic Web 6(2), 2015"
    ),
    licence="Creative Commons Attribution-ShareAlike 3.0, GNU Free Documentation License",
    homepage="https://github.com/zhangxiangxiao/Crepe",
    counts=Counts(504_000, 56_000, 70_000),
    needs=("train.csv", "test.csv", "classes.txt"),
    downloads=(
        Download(
            "https://s3.amazonaws.com/fast-ai-nlp/dbpedia_csv.tgz",
            "dbpedia_csv.tgz",
            "sha256:42db5221ddedddb673a4cabcc5f3a7d869714c878bcfe4ba94b29d14aa38e417",
            "huggingface/datasets, datasets/dbpedia_14/dataset_infos.json",
            megabytes=68,
        ),
    ),
    note=(
        "The publisher's own copy, dbpedia_csv.tar.gz, is on Google Drive and needs a browser; the copy fetched is "
        "fast.ai's, which Hugging Face's datasets used too."
    ),
)


def load(source: Path) -> Splits:
    """Title and text of each entry as one text; a random tenth of the training set is dev."""
    found: dict[str, list[tuple[int, Example]]] = {}
    classes: list[str] = []
    for entry in named(source, *INFO.needs):
        if entry.base == "classes.txt":
            classes = [name for line in lines(entry) if (name := line.strip())]
        else:
            found[entry.base] = _rows(entry)
    missing = [name for name in ("train.csv", "test.csv") if name not in found]
    if missing or not classes:
        missing += [] if classes else ["classes.txt"]
        raise DataError(f"expected train.csv, test.csv and classes.txt; missing {', '.join(missing)}", source)
    labelled = _named(found["train.csv"], classes, source)
    train, dev = hold_out(labelled, tenth(len(labelled)))
    return Splits(train, dev, _named(found["test.csv"], classes, source), [])


def _rows(entry: Entry) -> list[tuple[int, Example]]:
    """Class number and text of each row: in an archive, classes.txt may come after the rows."""
    rows: list[tuple[int, Example]] = []
    # Not strict, because of stray quotes inside fields; the checks catch rows that one would swallow.
    for line, fields in csv_rows(entry, strict=False):
        if len(fields) != 3 or not fields[0].strip().isdecimal() or "\n" in fields[2]:
            shown = ", ".join(field[:20] for field in fields[:4])
            raise DataError(f'expected a row number,"title","text"; got {shown!r}', entry, line)
        text = " ".join(part for field in fields[1:] if (part := field.strip()))
        rows.append((int(fields[0]), Example(text, line=line)))
    return rows


def _named(rows: list[tuple[int, Example]], classes: list[str], source: Path) -> list[Example]:
    examples: list[Example] = []
    for number, example in rows:
        if not 1 <= number <= len(classes):
            raise DataError(f"expected a class from 1 to {len(classes)}; got {number}", source, example.line)
        examples.append(Example(example.text, classes[number - 1], line=example.line))
    return examples
