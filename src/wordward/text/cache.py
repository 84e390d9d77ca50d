"""Encode a corpus once: word ids in memory-mapped files, under a key that covers everything they depend on."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from wordward.config.texts import TextSettings
from wordward.datasets import Example
from wordward.datasets.example import check_labels
from wordward.text.cache_files import keep, reading, stamps
from wordward.text.corpus import Corpus
from wordward.text.labels import label_numbers
from wordward.text.ragged import Rows
from wordward.text.tokens import Tokens, tokenise
from wordward.text.vocabulary import EOS, UNK, Vocabulary

VERSION = 3  # of the encoding; increase it when the same settings would give other ids
Splits = dict[str, list[Example]]  # train, dev, test, unlabelled


@dataclass(frozen=True)
class Encoded:
    """A corpus as ids, with its vocabulary and classes."""

    vocabulary: Vocabulary
    classes: tuple[str, ...]
    splits: dict[str, Corpus]
    tagging: bool


def load_or_encode(
    folder: Path,
    name: str,
    sources: Sequence[Path],
    settings: TextSettings,
    read: Callable[[], Splits],
    *,
    vocabulary: Vocabulary | None = None,
    workers: int = 1,
    quiet: bool = False,
) -> Encoded:
    """The encoded corpus from the cache in `folder`; if it is missing, `read` loads the texts of `sources`."""
    place = folder / f"{name}-{_key(name, sources, settings, vocabulary)}"
    if not place.exists():
        encoded = encode_splits(read(), settings, vocabulary, workers=workers, quiet=quiet)
        keep(place, lambda part: save(part, encoded), quiet=quiet)
    with reading(place):
        return load(place)


def _key(name: str, sources: Sequence[Path], settings: TextSettings, vocabulary: Vocabulary | None) -> str:
    """A hash of what an encoding depends on: corpus, files, text settings, given vocabulary, version."""
    words = [] if vocabulary is None else [vocabulary.fingerprint]
    parts = json.dumps([VERSION, name, stamps(sources), asdict(settings), *words])
    return hashlib.sha256(parts.encode()).hexdigest()[:16]


def encode_splits(
    splits: Splits,
    settings: TextSettings,
    vocabulary: Vocabulary | None = None,
    *,
    workers: int = 1,
    quiet: bool = False,
) -> Encoded:
    """All splits as ids of a vocabulary, by default the one built from the training and unlabelled texts."""
    tagging = splits["train"][0].tags is not None
    labelled = [example for name in ("train", "dev", "test") for example in splits[name]]
    classes = check_labels(labelled)  # of all splits: a rare class may be missing from the training texts
    examples = [example for split in splits.values() for example in split]
    tokens = tokenise(examples, settings, workers=workers, quiet=quiet)
    ends = np.cumsum([0, *map(len, splits.values())])
    places = {name: slice(ends[at], ends[at + 1]) for at, name in enumerate(splits)}
    learnt = np.zeros(len(examples), dtype=bool)
    for name in ("train", "unlabelled"):
        learnt[places.get(name, slice(0))] = True
    if vocabulary is None:
        vocabulary = _vocabulary(tokens, learnt, settings)
    ids = np.array([vocabulary[word] for word in tokens.words], dtype=np.int32)[tokens.numbers]
    whole = replace(settings, max_length=None)  # every token of a tagger's test texts must get a tag
    reading = {name: whole if tagging and name == "test" else settings for name in splits}
    longest = [reading[name].max_length or np.iinfo(np.int64).max for name in splits]
    limits = np.repeat(np.array(longest), [len(split) for split in splits.values()])  # (texts,)
    rows = _rows(ids, tokens.lengths, limits, drop=settings.unknown == "drop", eos=not tagging)
    corpora = {}
    for name, split in splits.items():
        labels = None
        if name != "unlabelled":
            labels = label_numbers(split, classes, reading[name], tagging=tagging, source=name)
        corpora[name] = Corpus(rows[places[name]], labels)
    return Encoded(vocabulary, classes, corpora, tagging)


def _vocabulary(tokens: Tokens, learnt: np.ndarray, settings: TextSettings) -> Vocabulary:
    """The vocabulary of the texts marked in `learnt` (texts,)."""
    chosen = np.repeat(learnt, tokens.lengths)  # (tokens,)
    numbers = tokens.numbers[chosen]
    text = np.repeat(np.arange(len(learnt)), tokens.lengths)[chosen]
    counts = np.bincount(numbers, minlength=len(tokens.words))
    pairs = np.unique(text * len(tokens.words) + numbers)
    spread = np.bincount(pairs % len(tokens.words), minlength=len(tokens.words))
    occurrences, texts = (dict(zip(tokens.words, each.tolist(), strict=True)) for each in (counts, spread))
    least, most = settings.min_documents, settings.max_vocabulary
    return Vocabulary.of_counts(occurrences, texts, int(learnt.sum()), min_documents=least, max_size=most)


def _rows(ids: np.ndarray, lengths: np.ndarray, limits: np.ndarray, *, drop: bool, eos: bool) -> Rows:
    """Each text cut to its maximum length, unknown words dropped with `drop`, followed by <eos> with `eos`."""
    text = np.repeat(np.arange(len(lengths)), lengths)
    if drop and eos:
        known = ids != UNK
        ids, text = ids[known], text[known]
        lengths = np.bincount(text, minlength=len(lengths))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    if (lengths > limits).any():
        near = np.arange(len(ids)) - starts[text] < limits[text]
        ids, text = ids[near], text[near]
        starts = np.concatenate([[0], np.cumsum(np.minimum(lengths, limits))])
    offsets = starts + (np.arange(len(starts)) if eos else 0)
    flat = np.full(offsets[-1], EOS, dtype=np.int32)
    flat[np.arange(len(ids)) + (text if eos else 0)] = ids
    return Rows(flat, offsets)


def save(folder: Path, encoded: Encoded) -> None:
    """Write an encoded corpus as plain arrays."""
    folder.mkdir(parents=True)
    encoded.vocabulary.save(folder / "vocabulary.txt")
    header = {"classes": encoded.classes, "tagging": encoded.tagging, "splits": list(encoded.splits)}
    header["words"] = len(encoded.vocabulary)
    (folder / "corpus.json").write_text(json.dumps(header))
    for name, corpus in encoded.splits.items():
        rows = Rows.of(corpus.rows)
        np.save(folder / f"{name}.ids.npy", rows.flat)
        np.save(folder / f"{name}.offsets.npy", rows.offsets)
        if corpus.labels is not None:
            labels = np.concatenate(list(corpus.labels)) if encoded.tagging else np.asarray(corpus.labels)
            np.save(folder / f"{name}.labels.npy", labels)


def load(folder: Path) -> Encoded:
    """An encoded corpus whose ids stay on disk until they are used."""
    header = json.loads((folder / "corpus.json").read_text())
    vocabulary = Vocabulary.load(folder / "vocabulary.txt")
    if len(vocabulary) != header["words"]:
        raise ValueError(f"{len(vocabulary)} words in vocabulary.txt instead of {header['words']}")
    splits = {}
    for name in header["splits"]:
        offsets = np.load(folder / f"{name}.offsets.npy")
        rows = Rows(np.load(folder / f"{name}.ids.npy", mmap_mode="r"), offsets)
        labels = None
        if name != "unlabelled":
            flat = np.load(folder / f"{name}.labels.npy")
            labels = Rows(flat, offsets) if header["tagging"] else flat
        splits[name] = Corpus(rows, labels)
    return Encoded(vocabulary, tuple(header["classes"]), splits, bool(header["tagging"]))
