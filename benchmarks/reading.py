"""Reading: the language model, the search for nearest words, batches by length, the encoded cache."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.timing import Figure, rate, ratio, side_by_side
from benchmarks.words import draw, lengths
from wordward.config.settings import ModelSettings, PretrainConfig, TextSettings
from wordward.datasets import Example
from wordward.models import Classifier
from wordward.perturbation.nearest import nearest
from wordward.text import cache
from wordward.text.batches import length_batches
from wordward.text.corpus import Corpus, Stream
from wordward.text.vocabulary import SPECIALS, Vocabulary
from wordward.train.pretrainer import Pretrainer

REPEATS = 5


def language_model(device: torch.device) -> Iterator[Figure]:
    """Our step over the bare LSTM and adaptive softmax with the same words, without an update."""
    gpu = device.type == "cuda"
    words, streams, window = (87_008, 256, 100) if gpu else (20_000, 16, 50)
    sizes = ModelSettings() if gpu else ModelSettings(dim=128, hidden=256)
    names = (f"word{number}" for number in range(words - len(SPECIALS)))
    vocabulary = Vocabulary((*SPECIALS, *names), np.ones(words))
    text = len(SPECIALS) + draw(words - len(SPECIALS), streams * (window * 4 + 1)).astype(np.int32)
    config = PretrainConfig(epochs=1, streams=streams, window=window, device=device.type, model=sizes)
    ours = Pretrainer(config, vocabulary, [text], [text[:1000]])
    ids, targets = next(ours.train_reader.windows(None))
    ours.model.train()

    def bare() -> None:
        with ours.updater.autocast():
            states, _ = ours.model.lstm(ours.model.words.table(ids.to(device)))
            loss = ours.model.softmax.loss(states.flatten(0, 1), targets.flatten().to(device)).mean()
        loss.backward()

    taken = side_by_side({"ours": lambda: ours.step(ids, targets, None), "bare": bare}, device, repeats=REPEATS)
    group = "language model"
    target = "3,000,000 on an H200" if gpu else ""
    yield rate(group, "words a second", ids.numel(), taken["ours"], "words/s", target=target)
    note = "dropout, clipping and Adam included in ours"
    yield ratio(group, "a step over the bare LSTM and adaptive softmax", taken["ours"], taken["bare"], note=note)


def neighbours(device: torch.device) -> Iterator[Figure]:
    """The k nearest of every word, over the bare matrix product of the same size."""
    words, dim = (87_008, 256) if device.type == "cuda" else (8_000, 256)
    table, every = torch.randn(words, dim, device=device), torch.arange(words, device=device)
    block = max(1, (1 << 25) // words)

    def product() -> None:
        for some in table.split(block):
            torch.mm(some, table.T)

    def search() -> None:
        nearest(every, table, 10, allowed=every, metric="cosine")

    taken = side_by_side({"ours": search, "product": product}, device, repeats=REPEATS)
    note = f"{words:,} words of {dim} numbers, the 10 nearest of each by cosine"
    yield ratio("nearest words", "search over the matrix product", taken["ours"], taken["product"], note=note)


def _texts(count: int, seed: int = 0) -> list[Example]:
    """Texts whose lengths vary as much as those of reviews do."""
    sizes = lengths(count, seed=seed)
    words = np.array([f"word{rank}" for rank in range(30_000)])[draw(30_000, int(sizes.sum()), seed=seed)]
    ends = np.cumsum(sizes)
    return [
        Example(" ".join(words[end - length : end]), "ab"[at % 2])
        for at, (end, length) in enumerate(zip(ends, sizes, strict=True))
    ]


def batches(device: torch.device) -> Iterator[Figure]:
    """How much of the batches is padding, and what that costs, with and without sorting by length."""
    sizes = ModelSettings() if device.type == "cuda" else ModelSettings(dim=64, hidden=64)
    encoded = cache.encode_splits(_splits(_texts(2_000)), TextSettings(), quiet=True)
    corpus = encoded.splits["train"]
    sizes_of = corpus.lengths
    rng = np.random.default_rng(0)
    shuffled = [rng.permutation(len(sizes_of))[at : at + 32] for at in range(0, len(sizes_of), 32)]
    orders = {"sorted": length_batches(sizes_of, 32, rng=rng), "shuffled": shuffled}
    for name, order in orders.items():
        held = sum(len(some) * sizes_of[some].max() for some in order)
        share = 1 - sum(sizes_of[some].sum() for some in order) / held
        yield Figure("batches of 32 texts", f"padding, {name}", share, share, share, "of the tokens")
    model = Classifier(len(encoded.vocabulary), 2, sizes).to(device)

    def read(order: list[np.ndarray]) -> Callable[[], None]:
        def work() -> None:
            for some in order[:16]:
                batch = corpus.batch(some, device)
                assert batch.labels is not None
                F.cross_entropy(model(batch.ids, batch.mask), batch.labels).backward()

        return work

    taken = side_by_side({name: read(order) for name, order in orders.items()}, device, repeats=3, times=1)
    words = {name: sum(sizes_of[some].sum() for some in order[:16]) for name, order in orders.items()}
    each = {name: [one / words[name] for one in taken[name]] for name in orders}
    yield ratio("batches of 32 texts", "words a second, sorted over shuffled", each["shuffled"], each["sorted"])


def _splits(texts: list[Example]) -> cache.Splits:
    return {"train": texts, "dev": texts[:50], "test": texts[:50], "unlabelled": []}


def loading(device: torch.device) -> Iterator[Figure]:
    """Opening the encoded cache and reading all of it, against encoding the texts again."""
    texts = _texts(4_000, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "kept"
        cache.save(kept, cache.encode_splits(_splits(texts), TextSettings(), quiet=True))

        def open_all() -> None:
            stream = Stream(Corpus(cache.load(kept).splits["train"].rows), 32, seed=(0,))
            for _ in range(len(stream)):
                stream.next(torch.device("cpu"))

        works = {
            "again": lambda: cache.encode_splits(_splits(texts), TextSettings(), quiet=True),
            "kept": open_all,
        }
        taken = side_by_side(works, device, repeats=3, times=1)
    note = "4,000 texts, one process"
    yield ratio("loading", "encoding texts again over reading the cache", taken["again"], taken["kept"], note=note)
