"""What is in a corpus: counts, duplicates, lengths."""

import statistics
from collections import Counter
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations

from wordward.datasets.example import single_spaced
from wordward.datasets.published import CorpusInfo, Splits


@dataclass(frozen=True)
class Check:
    """What `wordward data check` finds."""

    counts: dict[str, tuple[int, int]]  # split: (found, in the paper)
    duplicates: dict[str, int]  # texts that occur earlier in their split
    shared: dict[tuple[str, str], int]  # distinct texts that occur in both splits
    empty: dict[str, int]

    @property
    def wrong(self) -> list[str]:
        """The labelled splits whose count is not the paper's."""
        return [name for name, (found, paper) in self.counts.items() if name != "unlabelled" and found != paper]


def check(splits: Splits, info: CorpusInfo) -> Check:
    """Counts compared with the paper's, duplicate texts (ignoring white space), and empty texts."""
    named = splits._asdict()
    digests = {
        name: [blake2b(single_spaced(example.text).encode(), digest_size=16).digest() for example in examples]
        for name, examples in named.items()
    }
    distinct = {name: set(values) for name, values in digests.items()}
    return Check(
        counts={name: (len(values), getattr(info.counts, name)) for name, values in digests.items()},
        duplicates={name: len(values) - len(distinct[name]) for name, values in digests.items()},
        shared={
            (one, other): len(distinct[one] & distinct[other])
            for one, other in combinations(named, 2)
            if distinct[one] and distinct[other]
        },
        empty={name: sum(not e.text.strip() for e in examples) for name, examples in named.items()},
    )


@dataclass(frozen=True)
class Lengths:
    """The number of texts in a split, and of words in them."""

    texts: int
    words: int
    mean: float
    median: float
    longest: int


@dataclass(frozen=True)
class Stats:
    """What `wordward data stats` finds."""

    lengths: dict[str, Lengths]
    vocabulary: int  # distinct words of the training and unlabelled texts
    vocabulary_of_two: int  # of these, those in two or more texts
    classes: dict[str, Counter[str]]  # texts (or tokens) in each class, by split


def stats(splits: Splits, *, tokenizer: str = "words") -> Stats:
    """Lengths in words, size of the vocabulary, classes."""
    from wordward.text.tokenizers import split_words

    lengths: dict[str, Lengths] = {}
    spread: Counter[str] = Counter()
    for name, examples in splits._asdict().items():
        sizes: list[int] = []
        for example in examples:
            words = split_words(example.text, tokenizer) if example.tokens is None else example.tokens
            sizes.append(len(words))
            if name in ("train", "unlabelled"):
                spread.update(set(words))
        if sizes:
            mean, median = statistics.fmean(sizes), statistics.median(sizes)
            lengths[name] = Lengths(len(sizes), sum(sizes), mean, median, max(sizes))
    return Stats(
        lengths,
        vocabulary=len(spread),
        vocabulary_of_two=sum(texts > 1 for texts in spread.values()),
        classes={
            name: Counter(label or "" for example in examples for label in example.names)
            for name, examples in splits._asdict().items()
            if name != "unlabelled"
        },
    )
