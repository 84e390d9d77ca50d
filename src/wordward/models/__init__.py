"""The paper's models: LSTM classifier, Bi-LSTM tagger, LSTM language model with adaptive softmax. A convolution."""

import platform
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wordward.config.model import ModelSettings
from wordward.models.convolution import Convolution
from wordward.models.spelling import WIDTH, Spelling
from wordward.models.words import Dropout, Words
from wordward.text.vocabulary import PAD

CUTOFFS = (2_000, 10_000)  # adaptive softmax clusters of the authors' code
ON_ARM = platform.machine().lower() in ("aarch64", "arm64")
# Limits of one call to cuDNN's LSTM. Gates (batch * time * 4 * hidden): with four times as many (96 texts of 5,500
# words) a call on an H200 hung or ended in an illegal memory access. Time steps: cuDNN accepts no more.
GATES, STEPS = 2**29, 2**16 - 1
NONE = -1  # pads a group of the adaptive softmax to a fixed size
ALIGNED = 8  # a GPU's product in half precision is twice as fast where its sizes are multiples of this


class Head(nn.Sequential):
    """FFNN: one hidden layer, from states to logits."""

    def __init__(self, states: int, hidden: int, dropout: float, classes: int) -> None:
        super().__init__(nn.Linear(states, hidden), nn.ReLU(), Dropout(dropout), nn.Linear(hidden, classes))


class Classifier(nn.Module):
    """Uni-LSTM text classifier: q = FFNN(h^(T))."""

    def __init__(self, size: int, classes: int, settings: ModelSettings) -> None:
        super().__init__()
        self.words = Words(size, settings.dim, settings.word_dropout, rescaled=settings.rescaled)
        self.lstm = _lstm(settings.dim, settings.hidden)
        self.head = Head(settings.hidden, settings.head, settings.head_dropout, classes)

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """(batch, time) -> logits (batch, classes)."""
        mask = ids != PAD if mask is None else mask
        states, _ = self.lstm(self.words(ids))
        last = (mask.sum(1) - 1).clamp(min=0).view(-1, 1, 1).expand(-1, 1, states.shape[-1])
        return self.head(states.gather(1, last).squeeze(1))


class Tagger(nn.Module):
    """Bi-LSTM sequence labeller: q^(t) = FFNN(concat(h_f^(t), h_b^(t))); ours with spelling `beside` it."""

    def __init__(self, size: int, classes: int, settings: ModelSettings, beside: Spelling | None = None) -> None:
        super().__init__()
        self.words = Words(size, settings.dim, settings.word_dropout, rescaled=settings.rescaled)
        dim = settings.dim if beside is None else settings.dim + WIDTH
        self.lstm = _lstm(dim, settings.hidden)
        self.backward_lstm = _lstm(dim, settings.hidden)
        self.head = Head(2 * settings.hidden, settings.head, settings.head_dropout, classes)
        self.beside = beside

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """(batch, time) -> logits (batch, time, classes)."""
        mask = ids != PAD if mask is None else mask
        if self.beside is None:
            return self._read(self.words(ids), mask)
        ids = self.beside.hidden(ids)
        spelt, logits = self.beside(ids)
        return self._read(torch.cat([self.words(ids), spelt], -1), mask) + logits

    def _read(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """(batch, time, dim) -> logits (batch, time, classes)."""
        flip = _flip(mask)
        ahead, _ = self.lstm(vectors)
        back, _ = self.backward_lstm(_take(vectors, flip))
        return self.head(torch.cat([ahead, _take(back, flip)], -1))


class LanguageModel(nn.Module):
    """LSTM language model whose words and LSTM start a classifier."""

    def __init__(self, size: int, settings: ModelSettings) -> None:
        super().__init__()
        self.words = Words(size, settings.dim, settings.word_dropout)
        self.lstm = _lstm(settings.dim, settings.hidden)
        self.dropout = Dropout(settings.word_dropout)
        cutoffs = [cutoff for cutoff in CUTOFFS if cutoff < size - 1] or [size // 2]
        narrowing = min(4.0, settings.hidden ** (1 / len(cutoffs)))  # a tail needs at least one unit
        self.softmax = AdaptiveSoftmax(settings.hidden, size, cutoffs, div_value=narrowing)
        for parameter in (*self.words.parameters(), *self.lstm.parameters(), *self.softmax.parameters()):
            nn.init.uniform_(parameter, -0.1, 0.1)

    def forward(
        self,
        ids: Tensor,
        targets: Tensor,
        state: tuple[Tensor, Tensor] | None = None,
        groups: Sequence[Tensor] | None = None,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Negative log-likelihood of each target, (batch, time), and the next state."""
        states, after = self.lstm(self.words(ids), state)
        loss = self.softmax.loss(self.dropout(states).flatten(0, 1), targets.flatten(), groups)
        return loss.view(targets.shape), after


Model = Classifier | Convolution | Tagger


class AdaptiveSoftmax(nn.AdaptiveLogSoftmaxWithLoss):
    """PyTorch's adaptive softmax: the same weights and the same loss, also in mixed precision.

    Its targets are grouped by cluster in advance, which avoids synchronising with the device.
    """

    def groups(self, targets: Tensor) -> list[Tensor]:
        """Which targets (n,) lie in each tail; does not synchronise if the targets are still on the CPU."""
        return [((targets >= low) & (targets < high)).nonzero().flatten() for low, high in pairwise(self.cutoffs)]

    def loss(self, states: Tensor, targets: Tensor, groups: Sequence[Tensor] | None = None) -> Tensor:
        """-log p of each target (n,) given its state (n, hidden); a group may be padded with NONE."""
        groups = self.groups(targets) if groups is None else groups
        tail = torch.zeros_like(targets)  # 0: the head's own words
        for cutoff in self.cutoffs[:-1]:
            tail += targets >= cutoff
        first = torch.where(tail == 0, targets, self.shortlist_size - 1 + tail)
        scores = aligned(self.head, states) if states.is_cuda else self.head(states)
        loss = _surprise(scores, first)
        for rows, (low, high), inside in zip(groups, pairwise(self.cutoffs), self.tail, strict=True):
            filling = torch.arange(len(rows), device=rows.device) % len(targets)  # spread: one row would be slow
            at = torch.where(rows == NONE, filling, rows)
            inner = (targets[at] - low).clamp(0, high - low - 1)
            losses = _surprise(inside(states.index_select(0, at)), inner)
            loss = loss.index_add(0, at, losses.masked_fill(rows == NONE, 0.0))
        return loss


class LSTM(nn.LSTM):
    """PyTorch's LSTM, without the calls that its kernels handle badly or not at all."""

    def forward(self, vectors: Tensor, state: Any = None) -> Any:  # type: ignore[override]
        """As `nn.LSTM`: (batch, time, dim) -> (batch, time, hidden) and the state after it."""
        if vectors.is_cuda:
            steps = max(1, min(STEPS, GATES // (len(vectors) * 4 * self.hidden_size)))
            return self.in_pieces(vectors, steps, state)
        # Avoid oneDNN's kernels where they take about twice the time (ARM) or may be missing (fp16).
        half = torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.float16
        if not (ON_ARM or half):
            return super().forward(vectors, state)
        before = torch.backends.mkldnn.set_flags(False)
        try:
            return super().forward(vectors, state)
        finally:
            torch.backends.mkldnn.set_flags(before[0])

    def in_pieces(self, vectors: Tensor, steps: int, state: Any = None) -> Any:
        """The same with at most `steps` time steps per call, each call starting from the state the last one left."""
        if vectors.shape[1] <= steps:
            return super().forward(vectors, state)
        states = []
        for piece in vectors.split(steps, 1):
            after, state = super().forward(piece, state)
            states.append(after)
        return torch.cat(states, 1), state


def _lstm(dim: int, hidden: int) -> LSTM:
    """An LSTM that starts orthogonal and remembering: forget bias 1."""
    lstm = LSTM(dim, hidden, batch_first=True)
    for name, parameter in lstm.named_parameters():
        if "weight" in name:
            for gate in parameter.data.chunk(4):
                nn.init.orthogonal_(gate)
        else:
            nn.init.zeros_(parameter)
            if name == "bias_ih_l0":
                nn.init.ones_(parameter.data[hidden : 2 * hidden])
    return lstm


def _flip(mask: Tensor) -> Tensor:
    """Positions that turn each sentence around within its own length; padding stays. (batch, time)."""
    steps = torch.arange(mask.shape[1], device=mask.device)
    lengths = mask.sum(1, keepdim=True)
    return torch.where(steps < lengths, lengths - 1 - steps, steps)


def _take(values: Tensor, positions: Tensor) -> Tensor:
    """values[b, positions[b, t]], (batch, time, dim)."""
    return values.gather(1, positions.unsqueeze(-1).expand(-1, -1, values.shape[-1]))


def aligned(layer: nn.Linear, states: Tensor) -> Tensor:
    """The output of a layer, computed as a product of aligned size."""
    missing = -len(layer.weight) % ALIGNED
    weight = F.pad(layer.weight, (0, 0, 0, missing))
    bias = None if layer.bias is None else F.pad(layer.bias, (0, missing))
    return F.linear(states, weight, bias)[:, : len(layer.weight)]


def _surprise(scores: Tensor, targets: Tensor) -> Tensor:
    """-log p of each target (n,), in single precision at least."""
    kind = torch.promote_types(scores.dtype, torch.float32)
    return F.nll_loss(F.log_softmax(scores, -1, dtype=kind), targets, reduction="none")
