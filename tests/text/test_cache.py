"""The encoded cache gives what encoding text by text gives, and is never stale."""

import errno
import lzma
import re
import shutil
import tarfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reviews import reviews, tagged

from wordward.config.settings import TextSettings
from wordward.datasets import DataError, Example, sample
from wordward.datasets.example import label_names
from wordward.support.locks import locked
from wordward.text import cache, tokens
from wordward.text.cache_files import keep, stamps
from wordward.text.corpora import open_corpus
from wordward.text.corpus import Corpus, encode
from wordward.text.pack import read_pack, write_pack
from wordward.text.ragged import Joined, Rows
from wordward.text.tokens import words_of
from wordward.text.vocabulary import Vocabulary

TEXTS = st.lists(st.text(alphabet="ab <>pad.é\x85", max_size=12), min_size=2, max_size=8)


def by_hand(splits: cache.Splits, settings: TextSettings, *, tagging: bool) -> tuple[Vocabulary, dict[str, Corpus]]:
    """The slow way: build the vocabulary, then encode each text."""
    documents = [words_of(example, settings) for name in ("train", "unlabelled") for example in splits[name]]
    vocabulary = Vocabulary.build(documents, min_documents=settings.min_documents, max_size=settings.max_vocabulary)
    classes = sorted({label for e in splits["train"] for label in (e.tags or [str(e.label)])})
    whole = replace(settings, max_length=None)
    found = {
        name: encode(
            some,
            vocabulary,
            whole if tagging and name == "test" else settings,  # every token of a test sentence counts
            None if name == "unlabelled" else classes,
            tagging=tagging,
        )
        for name, some in splits.items()
    }
    return vocabulary, found


def check(encoded: cache.Encoded, vocabulary: Vocabulary, wanted: dict[str, Corpus]) -> None:
    assert encoded.vocabulary.words == vocabulary.words
    np.testing.assert_array_equal(encoded.vocabulary.counts, vocabulary.counts)
    for name, corpus in wanted.items():
        found = encoded.splits[name]
        assert [row.tolist() for row in found.rows] == [row.tolist() for row in corpus.rows]
        np.testing.assert_array_equal(found.lengths, corpus.lengths)
        assert _plain(found.labels) == _plain(corpus.labels)


def _plain(labels: Any) -> Any:
    return None if labels is None else [np.asarray(label).tolist() for label in labels]


def splits_of(tagging: bool) -> cache.Splits:
    make = tagged if tagging else reviews
    unlabelled = [replace(example, label=None, tags=None) for example in make(20, seed=4)]
    return {
        "train": make(30, seed=1),
        "dev": make(9, seed=2),
        "test": make(11, seed=3),
        "unlabelled": unlabelled,
    }


SETTINGS = [
    TextSettings(),
    TextSettings(lowercase=True, min_documents=3, unknown="drop"),
    TextSettings(max_length=4, max_vocabulary=9),
    TextSettings(max_length=3, unknown="drop", min_documents=8, tokenizer="whitespace"),
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("tagging", [False, True])
def test_encoding_together_equals_text_by_text(settings: TextSettings, tagging: bool, tmp_path: Path) -> None:
    splits = splits_of(tagging)
    encoded = cache.encode_splits(splits, settings, quiet=True)
    vocabulary, wanted = by_hand(splits, settings, tagging=tagging)
    check(encoded, vocabulary, wanted)
    cache.save(tmp_path / "kept", encoded)
    check(cache.load(tmp_path / "kept"), vocabulary, wanted)


@given(TEXTS, st.sampled_from(SETTINGS))
def test_any_texts_encode_the_same(texts: list[str], settings: TextSettings) -> None:
    settings = replace(settings, min_documents=1)
    train = [Example(text, "ab"[at % 2]) for at, text in enumerate(texts)]
    splits = {"train": train, "dev": train[:1], "test": [], "unlabelled": []}
    if not any(words_of(example, settings) for example in train):
        return
    try:
        vocabulary, wanted = by_hand(splits, settings, tagging=False)
    except ValueError:
        with pytest.raises(ValueError, match="no word"):
            cache.encode_splits(splits, settings, quiet=True)
        return
    check(cache.encode_splits(splits, settings, quiet=True), vocabulary, wanted)


@pytest.mark.usefixtures("loaded_processes")
def test_several_processes_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "CHUNK", 7)
    examples = reviews(40)
    alone = tokens.tokenise(examples, TextSettings(), quiet=True)
    together = tokens.tokenise(examples, TextSettings(), workers=2, quiet=True)
    assert alone.words == together.words
    np.testing.assert_array_equal(alone.numbers, together.numbers)
    np.testing.assert_array_equal(alone.lengths, together.lengths)


def test_cache_is_read_once_and_never_stale(tmp_path: Path) -> None:
    source = tmp_path / "corpus.txt"
    source.write_text("one")
    reads = []

    def read() -> cache.Splits:
        reads.append(1)
        return splits_of(False)

    def get(settings: TextSettings) -> cache.Encoded:
        return cache.load_or_encode(tmp_path / "cache", "little", [source], settings, read, quiet=True)

    first, second = get(TextSettings()), get(TextSettings())
    assert len(reads) == 1
    assert first.vocabulary.words == second.vocabulary.words
    get(TextSettings(lowercase=True))
    assert len(reads) == 2
    source.write_text("other")
    get(TextSettings())
    assert len(reads) == 3
    assert isinstance(first.splits["train"].rows.flat, np.memmap)  # type: ignore[attr-defined]


def test_a_linked_folder_is_noticed_when_its_texts_change(tmp_path: Path) -> None:
    inner = tmp_path / "copy" / "texts"
    inner.mkdir(parents=True)
    (inner / "one.txt").write_text("the film was warm")
    (inner / ".hidden").write_text("never read")
    (inner / "back").symlink_to(tmp_path / "copy")  # would go round for ever
    linked = tmp_path / "data"
    linked.mkdir()
    (linked / "copy").symlink_to(tmp_path / "copy")
    before = stamps([linked])
    assert [(name, size) for name, size, _ in before] == [("copy/texts/one.txt", 17)]
    (inner / "one.txt").write_text("the film was cold!")
    assert stamps([linked]) != before
    assert stamps([inner / "one.txt", tmp_path / "nothing"])[0][:2] == ("one.txt", 18)


def test_texts_laid_beside_an_archive_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORDWARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("WORDWARD_DATA", str(tmp_path))
    folder = tmp_path / "rotten_tomatoes"
    folder.mkdir()
    with tarfile.open(folder / "rt-polaritydata.tar.gz", "w:gz") as tar:
        for name in ("pos", "neg"):
            file = tmp_path / f"rt-polarity.{name}"
            file.write_text("".join(f"{example.text}\n" for example in reviews(20, seed=len(name))))
            tar.add(file, file.name)
    found = [open_corpus("rotten_tomatoes", TextSettings(), quiet=True)]
    for texts in ("a warm film\n", "a warm film\na cold film\n"):
        (folder / "unlabelled.txt").write_text(texts)
        found.append(open_corpus("rotten_tomatoes", TextSettings(), quiet=True))
    assert [len(each.splits["unlabelled"].rows) for each in found] == [0, 1, 2]


def test_a_full_disk_leaves_no_half_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "corpus.txt"
    source.write_text("one")

    def full(*_: object) -> None:
        raise OSError("100 requested and 10 written")

    def get() -> cache.Encoded:
        return cache.load_or_encode(
            tmp_path / "cache", "little", [source], TextSettings(), lambda: splits_of(False), quiet=True
        )

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(DataError, match=r"cache.*10 written: free some space, .* WORDWARD_CACHE"):
        get()
    assert not list((tmp_path / "cache").iterdir())
    monkeypatch.undo()
    assert get().classes


def get(folder: Path) -> cache.Encoded:
    """A corpus of ours by way of a cache in the folder."""
    return cache.load_or_encode(folder, "little", [], TextSettings(), lambda: splits_of(False), quiet=True)


@pytest.mark.parametrize(
    "file", ["corpus.json", "vocabulary.txt", "train.ids.npy", "dev.offsets.npy", "test.labels.npy"]
)
@pytest.mark.parametrize("left", [None, 0.0, 0.5])
def test_a_damaged_cache_is_named(file: str, left: float | None, tmp_path: Path) -> None:
    wanted = get(tmp_path)
    (place,) = tmp_path.iterdir()
    damaged = place / file
    whole = damaged.read_bytes()
    damaged.unlink()  # what is mapped must not be cut
    if left is not None:
        cut = round(left * len(whole))
        damaged.write_bytes(whole[: whole.rfind(b"\n", 0, cut) + 1 if file == "vocabulary.txt" else cut])
    with pytest.raises(DataError, match=rf"{place.name}: expected encoded texts .*: delete this cache folder"):
        get(tmp_path)
    shutil.rmtree(place)
    check(get(tmp_path), wanted.vocabulary, wanted.splits)


def test_what_a_killed_process_left_in_the_cache_goes(tmp_path: Path) -> None:
    get(tmp_path)
    (place,) = tmp_path.iterdir()
    left = place.rename(tmp_path / f"{place.name}.part")
    (left / "train.ids.npy").unlink()
    assert get(tmp_path).classes
    assert [path.name for path in tmp_path.iterdir()] == [place.name]


def test_a_cache_that_another_process_writes_is_waited_for(tmp_path: Path) -> None:
    get(tmp_path)
    (place,) = tmp_path.iterdir()
    whole = place.rename(tmp_path / "whole")

    def never(_: Path) -> None:
        raise AssertionError("it was written by the other one")

    with ThreadPoolExecutor(1) as pool:
        with locked(tmp_path / f"{place.name}.lock"):
            second = pool.submit(keep, place, never)
            with pytest.raises(TimeoutError):
                second.result(timeout=0.1)
            whole.rename(place)
        second.result(timeout=60)


def test_a_corpus_without_texts_to_test_by_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORDWARD_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "data" / "fce"
    folder.mkdir(parents=True)
    for split in ("train", "dev", "test"):
        (folder / f"fce-public.{split}.original.tsv").write_text("I\tc\nlikes\ti\n" * (split == "dev"))
    with pytest.raises(DataError, match=r"fce has none in train, test: compare it with the paper's counts by"):
        open_corpus("fce", TextSettings(), data=str(tmp_path / "data"), quiet=True)


def test_a_full_disk_leaves_the_former_pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, encoded = tmp_path / "little.pack", cache.encode_splits(splits_of(False), TextSettings())
    write_pack(path, encoded, TextSettings(), quiet=True)
    before = path.read_bytes()

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(lzma.LZMAFile, "write", full)
    with pytest.raises(DataError, match=r"little\.pack: expected a file .* No space left on device: free some"):
        write_pack(path, encoded, TextSettings(), quiet=True)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["little.pack"]


def test_rows_and_joined_rows_are_sequences() -> None:
    given = [np.arange(n) for n in (3, 0, 2, 5)]
    rows, joined = Rows.of(given), Joined(Rows.of(given[:1]), given[1:])
    for found in (rows, joined):
        assert [row.tolist() for row in found] == [row.tolist() for row in given]
        assert found[-1].tolist() == given[-1].tolist()
        with pytest.raises(IndexError):
            found[4]
    assert [row.tolist() for row in rows[1:3]] == [[], [0, 1]]
    assert len(rows[2:2]) == 0
    np.testing.assert_array_equal(Corpus(joined).lengths, [3, 0, 2, 5])


@pytest.mark.parametrize("tagging", [False, True])
@pytest.mark.parametrize("size", [None, 70_000])
def test_pack_comes_back_the_same(tagging: bool, size: int | None, tmp_path: Path) -> None:
    splits = splits_of(tagging)
    if size:  # more words than 16 bits can number
        splits["unlabelled"] = [Example(" ".join(f"w{at}" for at in range(size)))] * 2
    encoded = cache.encode_splits(splits, TextSettings(), quiet=True)
    write_pack(tmp_path / "little.pack", encoded, TextSettings(), quiet=True)
    found = read_pack(tmp_path / "little.pack", TextSettings())
    assert found.classes == encoded.classes
    assert found.tagging == tagging
    check(found, encoded.vocabulary, encoded.splits)


BROKEN = [  # parts of a pack, others of the same length, and what is said
    (b'"tagging": false', b'"tagging": 12345', "tagging that is neither"),
    (b'["bad", "good"]', b'["bad", "bad" ]', "classes that are not different"),
    (b'["train", ', b'["trein", ', "splits"),
    (b'"lowercase": false', b'"lowercase":   NaN', "text settings"),
    (b'"words": [', b'"words": {', "delimiter"),
    (b'"<pad>"', b'"<pat>"', "begin with <pad>"),
]


def test_broken_packs_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "little.pack"
    write_pack(path, cache.encode_splits(splits_of(False), TextSettings(), quiet=True), TextSettings(), quiet=True)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="complete packed corpus"):
        read_pack(path, TextSettings())
    path.write_bytes(lzma.compress(b"something else"))
    with pytest.raises(DataError, match="another kind of file"):
        read_pack(path, TextSettings())
    for part, other, said in BROKEN:
        assert part in lzma.decompress(whole)
        path.write_bytes(lzma.compress(lzma.decompress(whole).replace(part, other)))
        with pytest.raises(DataError, match=rf"little\.pack: expected a complete packed corpus; got: .*{said}"):
            read_pack(path, TextSettings())
    path.write_bytes(lzma.compress(lzma.decompress(whole) + b"more"))
    with pytest.raises(DataError, match="more in it than its header says"):
        read_pack(path, TextSettings())
    path.write_bytes(lzma.compress(lzma.decompress(whole)[:16] + b"\xff" * 8 + lzma.decompress(whole)[24:]))
    with pytest.raises(DataError, match="bytes early"):  # and no memory is taken for a header of that size
        read_pack(path, TextSettings())
    with pytest.raises(DataError, match=r"nothing\.pack: expected a corpus packed by `wordward data pack`"):
        read_pack(tmp_path / "nothing.pack", TextSettings())


def test_a_pack_broken_off_leaves_nothing(tmp_path: Path) -> None:
    encoded = cache.encode_splits(splits_of(False), TextSettings(), quiet=True)
    (tmp_path / "taken.pack").mkdir()
    with pytest.raises(DataError, match=r"taken\.pack: expected a file that can be written; got: Is a directory"):
        write_pack(tmp_path / "taken.pack", encoded, TextSettings(), quiet=True)
    assert [path.name for path in tmp_path.iterdir()] == ["taken.pack"]


def test_a_limit_keeps_every_label_and_the_same_texts_everywhere() -> None:
    examples = [*reviews(300), Example("a word on rye", "rye"), Example("a word on tin", "tin")]
    splits = {"train": examples, "dev": reviews(9, 1), "test": [], "unlabelled": []}
    encoded = cache.encode_splits(splits, TextSettings(min_documents=1))
    some, chosen = encoded.splits["train"].sample(20), sample(examples, 20, labels=label_names)
    assert [encoded.classes[at] for at in some.labels or ()] == [example.label for example in chosen]
    assert {example.label for example in chosen} == {"good", "bad", "rye", "tin"}
    assert sample(examples, 302, labels=label_names) == examples


def test_a_limit_keeps_every_tag() -> None:
    rows = [np.array([0, 1]) if at % 2 else np.array([0]) for at in range(100)]
    rows[37] = np.array([0, 2])
    kept = Corpus(Rows.of(rows), Rows.of(rows)).sample(10)
    assert {int(tag) for row in kept.labels or () for tag in np.atleast_1d(row)} == {0, 1, 2}


def test_a_pack_is_refused_with_other_text_settings(tmp_path: Path) -> None:
    path, drop = tmp_path / "little.pack", TextSettings(unknown="drop")
    write_pack(path, cache.encode_splits(splits_of(False), drop, quiet=True), drop, quiet=True)
    assert read_pack(path, drop).classes == ("bad", "good")
    with pytest.raises(DataError, match=r"little\.pack: .* packed with, `unknown='drop'`; got `unknown='unk'`: give"):
        open_corpus(str(path), TextSettings())
    asked = TextSettings(tokenizer="authors", lowercase=True, max_length=20, unknown="drop")
    said = (
        "packed with, `tokenizer='words'` `lowercase=False` `max_length=None`; got `tokenizer='authors'` "
        "`lowercase=True` `max_length=20`: give `tokenizer='words'` `lowercase=False` `max_length=None`, or write it "
        "again by `wordward data pack` with `tokenizer='authors'` `lowercase=True` `max_length=20` `unknown='drop'`"
    )
    with pytest.raises(DataError, match=re.escape(said)):
        read_pack(path, asked)
