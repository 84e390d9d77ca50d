"""A convolution beside what words, and pairs of neighbours, speak for."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wordward.config.model import ModelSettings
from wordward.models.words import Dropout, Words
from wordward.text.vocabulary import PAD, UNK

WIDTHS = (1, 2, 3)  # words of the phrases that a convolution reads
ROWS = 8  # of a table of pairs, for each word
FACTOR = 1_000_003  # spreads the pairs over the rows
NO_PAIR = -1
LOWERED = 0.5  # how much of what phrases have learnt from few texts they say of others


def repeat_weights(ids: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """What each of the n occurrences of a word, or a pair, has in a text of 1 + log n, and of its square."""
    ordered, places = ids.sort(1)
    first = F.pad((ordered[:, 1:] != ordered[:, :-1]).long(), (1, 0))
    number = torch.empty_like(ids).scatter(1, places, first.cumsum(1))  # of the word, in the order of its text's ids
    ones = torch.ones_like(ids, dtype=dtype)
    often = torch.zeros_like(ones).scatter_add(1, number, ones).gather(1, number)
    together = 1 + often.log()
    return together / often, together.square() / often


class Pairs(nn.Module):
    """What pairs of neighbouring words speak for: a table where each pair has one row, and a row at most one pair."""

    known: Tensor
    evidence: Tensor
    idf: Tensor

    def __init__(self, size: int, classes: int) -> None:
        super().__init__()
        self.size = size
        self.register_buffer("known", torch.full((ROWS * size,), NO_PAIR))  # the pair in each row
        self.register_buffer("evidence", torch.zeros(ROWS * size, classes))
        self.register_buffer("idf", torch.zeros(ROWS * size))

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """(batch, time) -> what a text's pairs add to each class's score, (batch, classes), and their length^2."""
        first, second = ids[:, :-1], ids[:, 1:]
        rows, pairs = rows_of(first, second, self.size), first * self.size + second
        found, (weights, squares) = (self.known[rows] == pairs).to(self.idf), repeat_weights(pairs, self.idf.dtype)
        evidence = (self.evidence[rows] * (found * weights).unsqueeze(-1)).sum(1)
        return evidence, (self.idf[rows].square() * found * squares).sum(1, keepdim=True)

    @torch.no_grad()
    def set_evidence(self, known: Tensor, evidence: Tensor, idf: Tensor) -> None:
        """Take over so many pairs, each as first * size + second; those that a row has no place for left out."""
        rows = rows_of(known // self.size, known % self.size, self.size)
        self.known[rows], self.evidence[rows], self.idf[rows] = known, evidence, idf


def rows_of(first: Tensor, second: Tensor, size: int) -> Tensor:
    """The row of each pair of ids."""
    return (first * FACTOR + second) % (ROWS * size)


class Convolution(nn.Module):
    """Text classifier: the strongest phrase of each kind, beside what each word speaks for.

    A word's vector ends with its evidence, a number for each class: what it adds to that class's score in a linear
    model on words, in units of `scale`; n occurrences in a text share 1 + log n times that. As part of the vector it
    is perturbed like all of it, but training leaves it as it is, and learns how much to trust it. While `hiding`,
    training hides the evidence of half of the texts, so that the phrases learn to do without; else they learn what it
    leaves to be told, and say `voice` of that in the end. Pairs of neighbours speak, too, if `pairs` is set.
    """

    idf: Tensor
    scale: Tensor
    voice: Tensor

    def __init__(self, size: int, classes: int, settings: ModelSettings) -> None:
        super().__init__()
        self.dim = settings.dim
        self.words = Words(size, settings.dim + classes, settings.word_dropout)
        self.pairs = Pairs(size, classes) if settings.pairs else None
        self.phrases = nn.Linear(settings.dim, sum(WIDTHS) * settings.hidden, bias=False)
        self.thresholds = nn.Parameter(torch.zeros(len(WIDTHS), settings.hidden))
        self.dropout = Dropout(settings.head_dropout)
        self.head = nn.Linear(len(WIDTHS) * settings.hidden, classes)
        self.hiding = True
        self.trust = nn.Parameter(torch.ones(()))
        self.prior = nn.Parameter(torch.zeros(classes))
        self.register_buffer("idf", torch.zeros(size))
        self.register_buffer("scale", torch.ones(()))
        self.register_buffer("voice", torch.ones(()))  # of phrases, outside training
        with torch.no_grad():
            self.words.table.weight[:, self.dim :] = 0
            self.words.table.weight[UNK] = 0
        self.words.table.weight.register_post_accumulate_grad_hook(self._without_evidence)

    def _without_evidence(self, table: Tensor) -> None:
        assert table.grad is not None
        table.grad[:, self.dim :] = 0

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """(batch, time) -> logits (batch, classes)."""
        mask = ids != PAD if mask is None else mask
        vectors, evidence = self.words(ids).mul(mask.unsqueeze(-1)).split([self.dim, self.head.out_features], -1)
        strongest = torch.cat(self._strongest(vectors, mask), -1)
        told = self.head(self.dropout(strongest)) * (1.0 if self.training else self.voice)
        return told + self.trust * self._spoken(ids, mask, evidence)

    def _strongest(self, vectors: Tensor, mask: Tensor) -> list[Tensor]:
        """How strong the strongest phrase of each kind is, (batch, hidden) for each width.

        A convolution, but as one product: several times as fast on a CPU as `nn.Conv1d`.
        """
        parts = iter(self.phrases(vectors).chunk(sum(WIDTHS), -1))  # of a phrase's first word, second word, ...
        found = []
        for width, threshold in zip(WIDTHS, self.thresholds, strict=True):
            phrase = next(parts) + threshold
            for later in range(1, width):
                phrase = phrase + F.pad(next(parts)[:, later:], (0, 0, 0, min(later, mask.shape[1])))
            found.append(F.relu(phrase).masked_fill(~mask.unsqueeze(-1), 0.0).amax(1))
        return found

    def _spoken(self, ids: Tensor, mask: Tensor, evidence: Tensor) -> Tensor:
        """What a linear model on counts of words, and of pairs, says, (batch, classes)."""
        weights, squares = repeat_weights(ids, self.idf.dtype)
        spoken = self.scale * (evidence * weights.unsqueeze(-1)).sum(1)
        squared = (self.idf[ids].square() * mask * squares).sum(1, keepdim=True)
        if self.pairs is not None:
            more, length = self.pairs(ids)
            spoken, squared = spoken + more, squared + length
        spoken = spoken / squared.sqrt().clamp(min=1.0) + self.prior
        if self.training and self.hiding:
            spoken = spoken * (torch.rand(len(spoken), 1, device=spoken.device) < 0.5)
        return spoken

    def quieten_phrases(self) -> None:
        """Let phrases say nothing at first, so that what they say is what they have learnt, and of other texts less.

        The evidence knows the texts to learn from, and leaves phrases little of these but chance.
        """
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        self.voice.fill_(LOWERED)

    @torch.no_grad()
    def set_evidence(self, evidence: Tensor, idf: Tensor, prior: Tensor, counts: Tensor) -> None:
        """Take over a linear model: what each word adds to each class's score, and the scores of an empty text."""
        weights = (counts / counts.sum()).unsqueeze(-1)
        self.scale.copy_((weights * evidence.square()).sum(0).mean().sqrt().clamp(min=1e-3))
        self.words.table.weight[:, self.dim :] = evidence / self.scale
        self.idf.copy_(idf)
        self.prior.copy_(prior)
