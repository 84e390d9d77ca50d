"""The paper's equations derived a second time, sentence by sentence, in float64, on tiny models."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

import wordward
from wordward.config.settings import ModelSettings
from wordward.models import Classifier, Tagger

SIZE, DIM, CLASSES, PAD = 13, 5, 3, 0
TEXTS = [[3, 7, 11, 3], [5, 2], [9]]
CLASS_LABELS = [2, 0, 1]
TAG_LABELS = [[0, 2, 1, 1], [2, 0], [1]]
METHODS = [name for name, recipe in wordward.RECIPES.items() if recipe.reference is None]  # the paper's
WORDS = [name for name in METHODS if wordward.RECIPES[name].space == "words"]
LABELLED = [name for name in METHODS if wordward.RECIPES[name].objective == "label_loss"]
MODELS = ("classifier", "tagger")


def make(kind: str, *, seed: int = 0) -> Classifier | Tagger:
    """A tiny model in double precision, without dropout."""
    torch.manual_seed(seed)
    model = (Classifier if kind == "classifier" else Tagger)(
        SIZE, CLASSES, ModelSettings(dim=DIM, hidden=4, head=6, word_dropout=0.5, head_dropout=0.5)
    )
    return model.double().eval()


def padded(rows: list[list[int]], value: int = PAD, width: int = 6) -> Tensor:
    """(batch, time), at least two columns wider than the longest text."""
    return torch.tensor([row + [value] * (width - len(row)) for row in rows])


def labels_for(kind: str) -> Tensor:
    return torch.tensor(CLASS_LABELS) if kind == "classifier" else padded(TAG_LABELS)


def noise_for(name: str, k: int, width: int = 6, seed: int = 1) -> Tensor:
    """Chance, as a method takes it."""
    generator = torch.Generator().manual_seed(seed)
    last = DIM if wordward.RECIPES[name].space == "free" else k
    return torch.randn(len(TEXTS), width, last, generator=generator, dtype=torch.float64)


class Derived(NamedTuple):
    """What the paper says of one sentence."""

    r: Tensor  # (time, dim)
    alpha: Tensor
    candidates: list[list[int]] | None
    loss: Callable[[Tensor], Tensor]  # of a perturbation


def logits_at(model: Classifier | Tagger, vectors: Tensor) -> Tensor:
    """One sentence of vectors (time, dim), without padding and without the models' own forward."""
    ahead = model.lstm(vectors[None])[0][0]
    if isinstance(model, Classifier):
        return model.head(ahead[-1])
    back = model.backward_lstm(vectors.flip(0)[None])[0][0].flip(0)
    return model.head(torch.cat([ahead, back], -1))


def negative_log_likelihood(logits: Tensor, label: Any) -> Tensor:
    """-log p(Y | X), for tags the sum over tokens."""
    rows, labels = (logits[None], [label]) if logits.dim() == 1 else (logits, label)
    losses = [row.exp().sum().log() - row[y] for row, y in zip(rows, labels, strict=True) if y != -100]
    return torch.stack(losses).sum()


def divergence(clean: Tensor, moved: Tensor) -> Tensor:
    """KL(p_clean || p_moved), for tags the sum over tokens."""
    p, q = clean.softmax(-1), moved.softmax(-1)
    return sum((p * (p / q).log()).flatten())  # type: ignore[return-value]


def neighbours(word: int, table: Tensor, k: int | None, allowed: list[int]) -> list[int]:
    """The k words of largest cosine, nearest first; all allowed where k is None, itself included."""
    if k is None:
        return allowed

    def cosine(other: int) -> float:
        return float(table[word] @ table[other] / (table[word].norm() * table[other].norm()))

    return sorted((other for other in allowed if other != word), key=cosine, reverse=True)[:k]


def derive(
    name: str,
    model: Classifier | Tagger,
    text: list[int],
    label: Any,
    noise: Tensor,  # (time, dim) or (time, k)
    *,
    epsilon: float,
    k: int | None = 3,
    xi: float = 1.0,
    iterations: int = 1,
    normalization: str = "paper",
    first_step: str = "alike",
    allowed: list[int] | None = None,
    factors: tuple[Tensor, Tensor]
    | None = None,  # of a word's numbers (time, dim), of its candidates' (time, k, dim)
) -> Derived:
    """eq:adv_approx to eq:update_alpha_new2 by explicit alpha, r(alpha) = sum_k alpha_k d_k and autograd."""
    recipe = wordward.RECIPES[name]
    table = model.words.table.weight.detach()
    vectors, time = model.words.table.weight[text], len(text)
    clean = logits_at(model, vectors).detach()

    def loss(r: Tensor) -> Tensor:
        moved = logits_at(model, vectors + r)
        if recipe.objective == "kl":
            return divergence(clean, moved)
        return negative_log_likelihood(moved, label)

    # D: the identity, or unit directions toward candidates
    candidates: list[list[int]] | None = None
    if recipe.space == "free":
        d = torch.eye(DIM, dtype=torch.float64).expand(time, DIM, DIM)
    else:
        words = list(range(1, SIZE)) if allowed is None else allowed
        candidates = [neighbours(word, table, k, words) for word in text]
        d = torch.zeros(time, len(candidates[0]), DIM, dtype=torch.float64)
        for t, word in enumerate(text):
            for j, other in enumerate(candidates[t]):
                of_word, of_other = (1, 1) if factors is None else (factors[0][t], factors[1][t, j])
                difference = table[other] * of_other - table[word] * of_word
                if difference.any():
                    d[t, j] = difference / difference.norm()

    def r_of(alpha: Tensor) -> Tensor:
        return torch.stack([sum(alpha[t, j] * d[t, j] for j in range(d.shape[1])) for t in range(time)])  # type: ignore[arg-type]

    # the point where the gradient is taken
    alpha = torch.zeros(d.shape[:2], dtype=torch.float64)
    if recipe.objective == "kl" and recipe.follows_gradient:
        for t in range(time):
            alpha[t] = noise[t] if candidates is None or first_step == "random" else 1.0
            alpha[t] *= xi / r_of(alpha)[t].norm()
    g = torch.zeros_like(alpha)
    kl_ascent = recipe.objective == "kl" and recipe.follows_gradient
    if normalization == "authors" and kl_ascent and candidates is not None:
        # the authors' code: equal strengths, at unit length, then a step of unit length, all differentiated
        able = torch.tensor([[float(other != word) for other in candidates[t]] for t, word in enumerate(text)])
        start = able.double().requires_grad_()
        step = r_of(able * start / (able * start).norm(dim=1, keepdim=True))
        (g,) = torch.autograd.grad(loss(xi * step / step.norm(dim=1, keepdim=True)), start)
        iterations = 0
    for _ in range(iterations if recipe.follows_gradient else 0):
        alpha.requires_grad_()
        (g,) = torch.autograd.grad(loss(r_of(alpha)), alpha)
        alpha = g * xi * math.sqrt(time) / r_of(g).norm()  # where a next iteration would start

    # which directions, how strongly
    chosen = torch.zeros_like(g)
    for t in range(time):
        others = [j for j in range(d.shape[1]) if candidates is None or candidates[t][j] != text[t]]
        if recipe.choice == "steepest":
            chosen[t] = g[t]
        elif recipe.choice == "at_random":
            chosen[t] = noise[t]
        elif recipe.choice == "best_one":
            best = max(others, key=lambda j: float(g[t, j]))
            chosen[t, best] = g[t, best]
        else:
            chosen[t, max(others, key=lambda j: float(noise[t, j]))] = 1.0

    # how long
    if normalization == "authors" and recipe.space == "words":
        alpha = torch.stack([chosen[t] / chosen[t].norm() for t in range(time)])
        alpha = epsilon * alpha / r_of(alpha).norm()
        return Derived(r_of(alpha), alpha, candidates, loss)
    alpha = epsilon * chosen / chosen.norm()
    return Derived(r_of(alpha), alpha, candidates, loss)


def check(out: wordward.Outcome, expected: list[Derived]) -> None:
    """An outcome against what was derived for each text."""
    for row, one in enumerate(expected):
        time = len(TEXTS[row])
        torch.testing.assert_close(out.perturbation[row, :time], one.r)
        torch.testing.assert_close(out.strengths[row, :time], one.alpha)
        assert not out.perturbation[row, time:].any()
        assert not out.strengths[row, time:].any()
        if one.candidates is None:
            assert out.candidates is None
        else:
            assert out.candidates is not None
            assert out.candidates[row, :time].tolist() == one.candidates


class Everywhere(nn.Module):
    """A model that reads every position, padding too, so that only the mask protects it."""

    def __init__(self, tags: bool, padding: int | None = None) -> None:
        super().__init__()
        self.words = nn.Embedding(SIZE, DIM, padding_idx=padding)
        self.out = nn.Linear(DIM, CLASSES)
        self.tags = tags
        self.double()

    def mix(self, vectors: Tensor) -> Tensor:
        mixed = torch.tanh(vectors)
        return mixed + mixed.mean(1, keepdim=True)

    def forward(self, ids: Tensor) -> Tensor:
        mixed = self.mix(self.words(ids))
        return self.out(mixed if self.tags else mixed.mean(1))
