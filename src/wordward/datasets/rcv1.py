"""RCV1-v2 newswire (Lewis et al. 2004) from its token files, with one second-level topic per text."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from wordward.datasets.archive import Entry, named
from wordward.datasets.example import Example, hold_out
from wordward.datasets.lines import legacy_lines
from wordward.datasets.published import CorpusInfo, Counts, Download, Splits, tenth
from wordward.support.errors import DataError

_TRAIN = "lyrl2004_tokens_train.dat"
_TEST = tuple(f"lyrl2004_tokens_test_pt{number}.dat" for number in range(4))
_TOPICS, _HIERARCHY = "rcv1-v2.topics.qrels", "rcv1.topics.hier.orig"
_BASE = "https://jmlr.csail.mit.edu/papers/volume5/lewis04a"

INFO = CorpusInfo(
    name="rcv1",
    task="classify",
    title="RCV1-v2 (LYRL2004): Reuters news, 55 second-level topics",
    citation=(
        "David D. Lewis, Yiming Yang, Tony G. Rose, Fan Li: RCV1: A New Benchmark Collection for Text "
        "Categorization Research. JMLR 5, 2004, pages 361-397"
    ),
    licence="texts: Reuters Corpus agreements (NIST); token files: online appendices of the article",
    homepage="https://www.jmlr.org/papers/volume5/lewis04a/lyrl2004_rcv1v2_README.htm",
    counts=Counts(14_007, 1_557, 49_838, 668_640),
    needs=(_TRAIN, *_TEST, _TOPICS, _HIERARCHY),
    downloads=(
        *(Download(f"{_BASE}/a12-token-files/{name}.gz", f"{name}.gz") for name in (_TRAIN, *_TEST)),
        Download(
            "https://ndownloader.figshare.com/files/5976048",  # scikit-learn's copy, of which a hash is stated
            f"{_TOPICS}.gz",
            "sha256:2a98e5e5d8b770bded93afc8930d88299474317fe14181aee1466cc754d0d1c1",
            "scikit-learn/scikit-learn, sklearn/datasets/_rcv1.py",
        ),
        Download(f"{_BASE}/a02-orig-topics-hierarchy/{_HIERARCHY}", _HIERARCHY),
    ),
    terms=(
        "the texts are Reuters', under the agreements of https://trec.nist.gov/data/reuters/reuters.html; the "
        "token files are published with the article as stems in scrambled order, so that the texts cannot be "
        "reconstructed: cite Lewis et al. (2004), and do not try to reconstruct them"
    ),
    note="The paper's models read words in order; these token files hold stems in scrambled order.",
)

LAST_TRAIN = 26_150  # LYRL2004 trains on the documents up to this id, 20 to 31 August 1996
LATER = 781_265  # number of documents after it


def load(source: Path) -> Splits:
    """Texts with a single second-level topic; all texts of the months before the test month are unlabelled.

    Johnson & Zhang (2015), whose counts the paper uses, tested on one month and took September 1996 to June
    1997 as unlabelled. The files carry no dates, so the splits are cut by these counts along the ids, which
    increase with the date.
    """
    second = _second_level(source)
    topics = _topics(source, second)
    single = {number: name for number, name in topics.items() if name in second}
    later = sorted(number for number in topics if number > LAST_TRAIN)
    free = round(len(later) * INFO.counts.unlabelled / LATER)
    tested = [number for number in later[free:] if number in single][: INFO.counts.test]
    label = {number: name for number, name in single.items() if number <= LAST_TRAIN}
    label |= {number: single[number] for number in tested}
    unlabelled = set(later[:free])
    texts = {
        number: Example(text, label.get(number), line=line)
        for entry in named(source, _TRAIN, *_TEST)
        for number, line, text in _documents(entry)
        if number in label or number in unlabelled
    }
    labelled = [texts[number] for number in sorted(texts) if number <= LAST_TRAIN]
    if not labelled:
        raise DataError(f"expected documents with one second-level topic in {_TRAIN}; found none", source)
    train, dev = hold_out(labelled, tenth(len(labelled)))
    return Splits(
        train,
        dev,
        test=[texts[number] for number in tested if number in texts],
        unlabelled=[texts[number] for number in later[:free] if number in texts],
    )


def _second_level(source: Path) -> set[str]:
    """Topics whose parent is a child of the root, from lines `parent: CCAT child: C11 child-description: ...`."""
    children: defaultdict[str, set[str]] = defaultdict(set)
    for entry in named(source, _HIERARCHY):
        for number, line in enumerate(legacy_lines(entry), start=1):
            fields = line.split()
            if fields and (len(fields) < 4 or fields[0] != "parent:" or fields[2] != "child:"):
                raise DataError(f"expected parent: NAME child: NAME; got {line[:60]!r}", entry, number)
            if fields:
                children[fields[1]].add(fields[3])
    if not children["Root"]:
        raise DataError(f"expected {_HIERARCHY} with the topics below Root; found none", source)
    return {topic for top in children["Root"] for topic in children[top]}


def _topics(source: Path, second: set[str]) -> dict[int, str]:
    """The second-level topic of each document, from lines `topic id 1`; "" for none, "*" for several."""
    topics: dict[int, str] = {}
    for entry in named(source, _TOPICS):
        for line, text in enumerate(legacy_lines(entry), start=1):
            fields = text.split()
            if not fields:
                continue
            if len(fields) != 3 or not fields[1].isdecimal():
                raise DataError(f"expected a line `topic id 1`; got {text[:60]!r}", entry, line)
            number, name = int(fields[1]), fields[0] if fields[0] in second else ""
            known = topics.get(number, "")
            topics[number] = name or known if not (name and known) or name == known else "*"
    if not topics:
        raise DataError(f"expected {_TOPICS} with the topics of the documents; found none", source)
    return topics


def _documents(entry: Entry) -> Iterator[tuple[int, int, str]]:
    """Id, line and words of each document, from blocks `.I id`, `.W`, lines of words, an empty line."""
    number, start = -1, 0
    words: list[str] = []
    for line, text in enumerate(legacy_lines(entry), start=1):
        if text.startswith(".I"):
            if number >= 0:
                yield number, start, " ".join(words)
            if not text[2:].strip().isdecimal():
                raise DataError(f"expected .I and a document id; got {text[:60]!r}", entry, line)
            number, start, words = int(text[2:]), line, []
        elif number < 0 and text.strip():
            raise DataError(f"expected .I and a document id; got {text[:60]!r}", entry, line)
        elif text.strip() != ".W":
            words += text.split()
    if number >= 0:
        yield number, start, " ".join(words)
