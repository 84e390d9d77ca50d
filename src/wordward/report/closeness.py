"""Which words are near each other in a run's table, before and after training."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from wordward.attack.sense import STRONGER, SURE, Judge, judge_of
from wordward.attack.stopwords import STOP_WORDS
from wordward.explain.english import fold
from wordward.perturbation.nearest import nearest
from wordward.runs.run import Run

MIN_COUNT = 5  # occurrences of a word to be shown, as in `wordward neighbors`
FEW = 50  # words below which all are shown
WITHIN, LIKE = 20, 0.25  # rank and cosine at which an opposite counts as near
HEADS = 3000  # most frequent words to look for opposites of
STEM = 4  # letters at which two words are taken for forms of one
Pair = tuple[int, int]  # ids of a word and of its opposite


@dataclass(frozen=True)
class Near:
    """A word near another."""

    word: str
    cosine: float
    against: bool  # whether it speaks against what the other word speaks for


@dataclass(frozen=True)
class Rank:
    """The rank of a word's opposite among its nearest words in one table of vectors."""

    rank: int  # 1: the nearest of all
    cosine: float
    nearest: tuple[Near, ...]

    @property
    def told(self) -> str:
        """The rank in words: its nearest word, its 2nd nearest word, its 11th."""
        ending = "th" if self.rank % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(self.rank % 10, "th")
        which = "" if self.rank == 1 else f"{self.rank:,}{ending} "
        return f"its {which}nearest word (cosine {self.cosine:.2f})".replace("-", "−")


@dataclass(frozen=True)
class Opposites:
    """A word and its opposite, and how near they are before training and after."""

    label: str | None  # that the word speaks for
    word: str
    other: str
    before: Rank | None  # None where what the run started from is not known
    after: Rank


def opposites(
    run: Run, before: Tensor | None, *, count: int, k: int = 8, swapped: Iterable[tuple[str, str]] = ()
) -> list[Opposites]:
    """Words with an opposite nearby, and its rank among their nearest words before and after training.

    Opposites are told by the classes of the training texts that words are in (see `wordward.attack.sense`); where a
    run kept no such counts, they are the words `swapped` for each other in adversarial texts, frequent ones first.
    """
    after = run.table().cpu()
    allowed = torch.from_numpy(run.vocabulary.candidates(MIN_COUNT))
    if len(allowed) < FEW:
        allowed = torch.from_numpy(run.vocabulary.candidates(1))
    judge = judge_of(run, device=torch.device("cpu"))
    if judge is None:
        pairs = _swapped(run, swapped, allowed)
    else:
        pairs = _opposite_pairs(run, judge, after if before is None else before, allowed)
    found = []
    for word, other in pairs[:count]:
        leans = None if judge is None else int(judge.evidence[word].argmax())
        against = _against(judge, word, other, len(run.vocabulary))
        rank = partial(_rank, run, word=word, other=other, allowed=allowed, k=k, against=against)
        label = None if leans is None else run.labels[leans]
        names = map(run.vocabulary.word, (word, other))
        found.append(Opposites(label, *names, before=None if before is None else rank(before), after=rank(after)))
    return found


def _opposite_pairs(run: Run, judge: Judge, table: Tensor, allowed: Tensor) -> list[Pair]:
    """Frequent words with a near word of opposite leaning, the plainest pairs first, no word twice."""
    plain = torch.tensor([fold(word) not in STOP_WORDS for word in run.vocabulary.words])
    heads = [int(word) for word in allowed if plain[word]][:HEADS]  # ids are in order of frequency
    if not heads or len(allowed) <= 1:
        return []
    words = torch.tensor(heads).unsqueeze(-1)  # (heads, 1)
    near = nearest(words[:, 0], table, min(WITHIN, len(allowed) - 1), allowed=allowed, metric="cosine")
    leaning = judge.evidence[words[:, 0]].argmax(-1, keepdim=True)  # the class that each speaks for
    apart = judge.evidence[words, leaning] - judge.evidence[near, leaning]  # (heads, near)
    sure = apart / (judge.variance[words, leaning] + judge.variance[near, leaning]).sqrt()  # standard errors
    cosine = F.cosine_similarity(table[words], table[near], dim=-1)
    good = plain[near] & _speaks_against(judge, near, leaning) & (apart >= 2 * STRONGER) & (cosine >= LIKE)
    score = sure.square() * cosine
    scored = [(float(score[h, n]), heads[h], int(near[h, n])) for h, n in good.nonzero().tolist()]
    used: set[int] = set()
    pairs = []
    for _, word, other in sorted(scored, reverse=True):
        names = [run.vocabulary.word(number) for number in (word, other)]
        if not {word, other} & used and names[0][:STEM] != names[1][:STEM]:
            pairs.append((word, other))
            used |= {word, other}
    return pairs


def _swapped(run: Run, swapped: Iterable[tuple[str, str]], allowed: Tensor) -> list[Pair]:
    """The pairs that are swapped most often, of words that may be shown."""
    known = set(allowed.tolist())
    read = [[run.vocabulary[fold(w) if run.text.lowercase else w] for w in pair] for pair in swapped]
    counted = Counter((word, other) for word, other in read if word != other and {word, other} <= known)
    first: dict[int, int] = {}  # the most frequent swap of each word
    for (word, other), _ in counted.most_common():
        first.setdefault(word, other)
    return list(first.items())


def _speaks_against(judge: Judge, words: Tensor, labels: Tensor) -> Tensor:
    """Whether words are half as frequent in the texts of a class as elsewhere, or less, and surely less frequent."""
    evidence = judge.evidence[words, labels]
    return (evidence <= -STRONGER) & (evidence + SURE * judge.variance[words, labels].sqrt() < 0)


def _against(judge: Judge | None, word: int, other: int, size: int) -> Tensor:
    """Which words (words,) speak against what a word speaks for; without counts, only its opposite."""
    every = torch.arange(size)
    if judge is None:
        return every == other
    return _speaks_against(judge, every, judge.evidence[word].argmax())


def _rank(run: Run, table: Tensor, *, word: int, other: int, allowed: Tensor, k: int, against: Tensor) -> Rank:
    """The rank of the other word among the nearest words of a word, and the `k` nearest of them."""
    others = allowed[allowed != word]
    cosines = F.cosine_similarity(table[word].unsqueeze(0), table[others])
    own = cosines[(others == other).nonzero().flatten()[0]]
    best = cosines.topk(min(k, len(others)))
    words: Sequence[int] = others[best.indices].tolist()
    near = tuple(
        Near(run.vocabulary.word(number), float(cosine), bool(against[number]))
        for number, cosine in zip(words, best.values, strict=True)
    )
    return Rank(1 + int((cosines > own).sum()), float(own), near)
