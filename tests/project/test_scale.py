"""Texts and vocabularies that are large: read from disk as they come, searched in blocks, with the same results."""

import lzma
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from counting import Largest
from hypothesis import given, settings
from hypothesis import strategies as st
from reviews import reviews, tagged
from torch import Tensor

from benchmarks import scale
from wordward.config.settings import DataSettings, PretrainConfig, TextSettings, TrainConfig
from wordward.datasets import DataError
from wordward.perturbation.nearest import BLOCK, nearest
from wordward.support.distributed import Team
from wordward.text import corpus, on_disk
from wordward.text.corpus import Corpus, encode, evaluation_batches
from wordward.text.on_disk import Texts, are_large, store
from wordward.text.ragged import Chosen, Joined, Rows
from wordward.text.tokens import words_of
from wordward.text.vocabulary import Vocabulary
from wordward.text.windows import READ_AHEAD, Reader
from wordward.train.data import prepare
from wordward.train.pretraining import _texts


def some_rows(lengths: list[int]) -> list[np.ndarray]:
    ids = np.arange(sum(lengths), dtype=np.int32)
    return np.split(ids, np.cumsum(lengths)[:-1])


def plain_windows(
    rows: list[np.ndarray], streams: int, window: int, rng: np.random.Generator | None
) -> list[tuple[Tensor, Tensor]]:
    """All texts in one array, cut into streams: what the reader gives without ever holding it."""
    order = np.arange(len(rows)) if rng is None else rng.permutation(len(rows))
    text = np.concatenate([rows[at] for at in order])
    streams = min(streams, max(1, len(text) // 2))
    length = len(text) // streams
    lanes = torch.from_numpy(text[: streams * length].astype(np.int64)).view(streams, length)
    starts = range(0, length - 1, window)
    ends = [min(start + window, length - 1) for start in starts]
    return [(lanes[:, a:b], lanes[:, a + 1 : b + 1]) for a, b in zip(starts, ends, strict=True)]


@settings(max_examples=60)
@given(
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=40).filter(lambda some: sum(some) > 1),
    streams=st.integers(1, 6),
    window=st.integers(1, 4),
    seed=st.none() | st.integers(0, 100),
)
def test_windows_read_as_they_come_are_those_of_the_whole_text(
    lengths: list[int], streams: int, window: int, seed: int | None
) -> None:
    check_windows(lengths, streams, window, seed)


def check_windows(lengths: list[int], streams: int, window: int, seed: int | None) -> None:
    rows = some_rows(lengths)
    chance = [None if seed is None else np.random.default_rng(seed) for _ in range(4)]
    whole = plain_windows(rows, streams, window, chance[0])
    reader = Reader(rows, streams, window)
    found = list(reader.windows(chance[1]))
    assert len(found) == len(whole) == len(reader)
    for ours, theirs in zip(found, whole, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    parts = [Reader(rows, streams, window, team=Team(rank, 2)) for rank in (0, 1)]
    halves = zip(*(part.windows(each) for part, each in zip(parts, chance[2:], strict=True)), strict=True)
    for (first, second), (ids, _) in zip(halves, whole, strict=True):
        ours = [half[0] for half, part in zip((first, second), parts, strict=True) if part.share]
        assert torch.equal(torch.cat(ours), ids)


def test_the_reader_goes_on_where_what_it_read_ahead_ends() -> None:
    assert len(Reader(some_rows([7] * 100), 2, 5)) > 2 * READ_AHEAD
    check_windows([7] * 100, 2, 5, seed=3)


def test_rows_may_be_chosen_joined_and_counted_without_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = some_rows([3, 0, 5, 2])
    rows = Rows.of(lists)
    joined = Joined(rows, lists)
    chosen = Chosen(joined, np.array([6, 2, 0]))
    assert [row.tolist() for row in chosen] == [lists[2].tolist(), lists[2].tolist(), lists[0].tolist()]
    assert np.shares_memory(chosen[1], rows.flat)
    assert Corpus(chosen).lengths.tolist() == [5, 5, 3]
    monkeypatch.setattr(corpus, "COUNTED", 3)
    assert Corpus(rows).word_counts(12).tolist() == [1] * 10 + [0, 0]
    assert Corpus(joined).word_counts(12).tolist() == [2] * 10 + [0, 0]


some_lengths = st.lists(st.integers(0, 60), max_size=120)


@given(some_lengths, st.integers(1, 9))
def test_a_cpu_scores_texts_in_order_of_length_and_as_many_at_once_as_asked(
    lengths: list[int], batch_size: int
) -> None:
    batches = list(evaluation_batches(np.array(lengths, dtype=np.int64), batch_size, torch.device("cpu")))
    taken = [int(at) for batch in batches for at in batch]
    assert taken == sorted(range(len(lengths)), key=lengths.__getitem__)
    assert [len(batch) for batch in batches[:-1]] == [batch_size] * (len(batches) - 1)
    assert all(1 <= len(batch) <= batch_size for batch in batches)


@given(some_lengths, st.integers(1, 9), st.integers(1, 400))
def test_a_gpu_scores_as_many_texts_at_once_as_there_is_room_for(
    lengths: list[int], batch_size: int, room: int
) -> None:
    """Named, not used; a batch of the size asked for may be larger than the room by itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "AT_ONCE", room)
        sizes = np.array(lengths, dtype=np.int64)
        batches = list(evaluation_batches(sizes, batch_size, torch.device("cuda")))
    taken = [int(at) for batch in batches for at in batch]
    assert taken == sorted(range(len(lengths)), key=lengths.__getitem__)
    for batch in batches:
        assert len(batch) > 0
        assert len(batch) * sizes[batch].max() <= room or len(batch) <= batch_size
    for batch, after in pairwise(batches):  # the next texts had no room any more
        more = after[:batch_size]
        assert (len(batch) + len(more)) * sizes[more].max() > room


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file that counts as large, and a cache of its own."""
    monkeypatch.setenv("WORDWARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(on_disk, "LARGE", 1000)
    path = tmp_path / "many.txt"
    path.write_text("".join(f"{example.text}\n" for example in reviews(90, seed=4)))
    return path


def test_stored_texts_are_those_held_in_memory(
    large: Path, csv_file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = TrainConfig(method="ivat", data=DataSettings(train=str(csv_file), unlabelled=str(large)))
    _, streamed = prepare(config)
    monkeypatch.setattr(on_disk, "LARGE", 10**9)
    _, held = prepare(config)
    assert streamed.vocabulary.words == held.vocabulary.words
    assert (streamed.vocabulary.counts == held.vocabulary.counts).all()
    assert streamed.unlabelled is not None
    assert held.unlabelled is not None
    assert isinstance(streamed.unlabelled.rows, Rows)
    assert isinstance(streamed.unlabelled.rows.flat, np.memmap)
    ours, theirs = ([row.tolist() for row in data.unlabelled.rows] for data in (streamed, held))  # type: ignore[union-attr]
    assert ours == theirs
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_a_language_model_reads_large_files_from_disk(large: Path) -> None:
    _, rows, held_out = _texts(PretrainConfig(texts=(str(large),), held_out_share=0.1), quiet=True)
    assert (len(rows), len(held_out)) == (81, 9)
    assert isinstance(rows, Chosen)
    _, few, _ = _texts(PretrainConfig(texts=(str(large),), held_out_share=0.1, limit=20), quiet=True)
    assert len(few) == 18


def test_stored_texts_change_with_the_file_the_words_and_the_settings(large: Path, tmp_path: Path) -> None:
    texts, plain = Texts([large]), TextSettings()
    documents = [words_of(example, plain) for example in texts]
    vocabulary = Vocabulary.build(documents)
    first = store(texts, vocabulary, plain)
    again = store(texts, vocabulary, plain)
    assert np.array_equal(first.flat, again.flat)
    whole = encode(list(texts), vocabulary, plain)
    assert [row.tolist() for row in first] == [row.tolist() for row in whole.rows]
    store(texts, Vocabulary.build(documents, max_size=5), plain)
    assert max(store(texts, vocabulary, TextSettings(max_length=3)).lengths) == 4  # <eos> comes after
    large.write_text(large.read_text() + "one more film\n")
    assert len(store(texts, vocabulary, plain)) == len(first) + 1
    assert len(list((tmp_path / "cache").glob("texts-*"))) == 4


def test_a_compressed_file_counts_as_the_text_it_holds(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = large.with_name("many.txt.xz")
    packed.write_bytes(lzma.compress(large.read_bytes()))
    size = packed.stat().st_size
    monkeypatch.setattr(on_disk, "LARGE", 2 * size)
    assert are_large([packed])
    assert are_large([packed.parent])
    plain = packed.rename(large.with_name("other.txt"))
    assert not are_large([plain])


def test_a_full_disk_is_named_and_leaves_nothing(
    large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left")

    vocabulary = Vocabulary.build([("film", "warm")] * 2)
    monkeypatch.setattr(np, "save", full)
    with pytest.raises(DataError, match=r"no space left: free some space, .* WORDWARD_CACHE"):
        store(Texts([large]), vocabulary, TextSettings())
    assert not list((tmp_path / "cache").iterdir())


def test_stored_texts_cut_short_are_named(large: Path, tmp_path: Path) -> None:
    vocabulary = Vocabulary.build([("film", "warm")] * 2)
    store(Texts([large]), vocabulary, TextSettings(), quiet=True)
    (ids,) = (tmp_path / "cache").glob("*/ids.int32")
    whole = ids.read_bytes()
    ids.unlink()  # what is mapped must not be cut
    ids.write_bytes(whole[:-4])
    with pytest.raises(DataError, match=r"texts-\w+: expected encoded texts .*: delete this cache folder"):
        store(Texts([large]), vocabulary, TextSettings(), quiet=True)


def test_a_sentence_without_tokens_is_refused_and_leaves_nothing(large: Path, tmp_path: Path) -> None:
    vocabulary = Vocabulary.build([example.tokens or () for example in tagged(9)])
    large.write_text("the film is warm\n...\n")
    with pytest.raises(DataError, match=r"many\.txt, line 2: expected a sentence; it has no tokens"):
        store(Texts([large]), vocabulary, TextSettings(), tagging=True)
    assert not list((tmp_path / "cache").iterdir())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
def test_texts_larger_than_memory(tmp_path: Path) -> None:
    """In a process that may take 16 MiB more: the texts take 17, and 4 GB of ids are mapped."""
    script = Path(__file__).parents[1] / "support" / "limited.py"
    place = {"WORDWARD_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, script, tmp_path],
        env=os.environ | place,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = dict(line.split(": ") for line in done.stdout.splitlines())
    assert int(said.pop("words read")) > 0
    assert said == {"texts": "100000", "a batch": "32 1000", "windows": "40", "words": "20000000"}
    assert len(list((tmp_path / "cache").iterdir())) == 1  # the language model and the classifier read the same


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_neighbours_among_a_million_words_stay_within_the_budget(metric: Any) -> None:
    """All similarities would be 40 million numbers, the vectors 4 million; no tensor holds more than `block`."""
    table = torch.randn(1_000_000, 4, generator=torch.Generator().manual_seed(0))
    ids, allowed = torch.randint(1_000_000, (40,)), torch.arange(3, 1_000_000)
    block = 1 << 21
    with Largest() as seen:
        found = nearest(ids, table, 10, allowed=allowed, metric=metric, block=block)
    assert seen.numel <= block
    for word, near in zip(ids[:4].tolist(), found[:4].tolist(), strict=True):
        far = table.double() - table[word].double()
        closeness = -far.square().sum(-1)
        if metric == "cosine":
            closeness = torch.cosine_similarity(table.double(), table[word : word + 1].double())
        closeness[[0, 1, 2, word]] = -torch.inf
        torch.testing.assert_close(closeness[near], closeness.topk(10).values, rtol=0, atol=1e-5)


def test_long_vectors_stay_within_the_budget_too() -> None:
    table = torch.randn(9_000, 600, generator=torch.Generator().manual_seed(0))
    allowed, block = torch.arange(9_000), 1 << 20
    with Largest() as seen:
        found = nearest(allowed[:50], table, 10, allowed=allowed, metric="cosine", block=block)
    assert seen.numel <= block
    assert torch.equal(found, nearest(allowed[:50], table, 10, allowed=allowed, metric="cosine"))


def test_the_budget_is_what_it_says() -> None:
    assert BLOCK * 4 == 128 * 2**20  # bytes in single precision


def test_the_table_of_the_benchmark_names_each_group_once() -> None:
    works: scale.Works = {"1": lambda: None, "2": lambda: sum(range(100_000))}
    lines = scale.table(list(scale.over_the_first("time of", works | {"3": works["2"]}, repeats=2, unit="words")))
    assert [line.split(" | ")[:2] for line in lines.splitlines()[2:]] == [
        ["| time of", "2 words"],
        ["| ", "3 words"],
    ]
    assert scale._mapped(5).lengths.min() >= 5
