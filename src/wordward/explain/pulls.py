"""Which words a batch of texts is pulled toward: a perturbation of it, read as words."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from wordward.explain.labels import Labels
from wordward.perturbation.adversary import Adversary, Found, Loss
from wordward.perturbation.objective import IGNORE, kl
from wordward.perturbation.recipes import Method
from wordward.perturbation.space import BLOCK
from wordward.perturbation.tap import gradient_at
from wordward.runs.reading import Reading
from wordward.runs.run import Run, adversary_of
from wordward.text.corpus import Batch
from wordward.text.vocabulary import SPECIALS

TEXTS, TOKENS = 32, 1 << 16  # explained at a time, at most


class BatchPulls(NamedTuple):
    """What the model says of each text and the words that pull its tokens, strongest first."""

    logits: Tensor
    words: Tensor  # (batch, time, top) ids
    strengths: Tensor  # (batch, time, top)
    cosines: Tensor  # (batch, time, top)


class TextPulls(NamedTuple):
    """The same of one text, on the CPU: a list for each of its words, or longer where the batch was padded."""

    number: int  # of the text among those asked about
    probabilities: np.ndarray  # (classes,), a tagger's (words, classes)
    words: list[list[int]]  # (words, top) ids
    strengths: list[list[float]]  # (words, top)
    cosines: list[list[float]]  # (words, top)


class PullFinder(Protocol):
    """Finds what pulls the words of texts, in any order; those of similar length are read together."""

    def __call__(
        self, texts: Sequence[Reading], labels: Sequence[Labels], *, focus: int | None
    ) -> Iterator[TextPulls]: ...


def adversary_for(
    run: Run, method: Method, *, focus: int | None = None, loss: Loss | None = None
) -> Adversary:
    """A method on a run's model; `focus`: the one token whose tag counts, `loss`: instead of the method's own."""
    # The table does not change, so nearest words need no second search; a GPU searches those of a batch quickly,
    # but would search those of all words at once if they were to be kept.
    refresh = "batch" if run.device.type == "cuda" else "epoch"
    method = replace(method, settings=replace(method.settings, refresh=refresh))
    if run.of_pieces:
        return Adversary(
            run.model, method, candidates=torch.from_numpy(run.vocabulary.candidates()), loss=loss
        )
    if loss is None and focus is not None and method.recipe.objective == "kl":
        loss = lambda logits, clean: kl(logits[:, focus], clean[:, focus])  # noqa: E731
    return adversary_of(method, run.model, run.vocabulary, run.config.training.min_candidate_count, loss=loss)


def find_pulls(
    adversary: Adversary,
    forward: Callable[[], Tensor],
    batch: Batch,
    *,
    top: int,
    focus: int | None,
    seed: int,
    allowed: Tensor | None = None,
) -> BatchPulls:
    """The `top` words that pull each token hardest; a label IGNORE stands for the predicted one.

    `allowed`: ids of the words that a free perturbation is compared with, by default all but our special tokens.
    """
    noise = noise_for(adversary, batch, seed)
    # Like calling the adversary, but without the perturbed pass, which explanations do not need.
    if adversary.method.recipe.objective == "kl":
        gradient, logits = kl_gradient(adversary, forward, batch, noise)
    else:
        gradient, logits = _label_gradient(adversary, forward, batch, focus)
    found = adversary.perturb(batch.ids, gradient, batch.mask, noise=noise)
    if found.candidates is not None:
        return BatchPulls(logits.detach(), *_toward_words(adversary, found, batch, top))
    if allowed is None:
        allowed = torch.arange(len(SPECIALS), adversary.tap.size, device=batch.ids.device)
    return BatchPulls(logits.detach(), *_anywhere(adversary, found, batch, top, allowed))


def kl_gradient(
    adversary: Adversary, forward: Callable[[], Tensor], batch: Batch, noise: Tensor | None
) -> tuple[Tensor | None, Tensor]:
    """The gradient of KL at the vectors, where the method follows it, and the logits of the texts themselves."""
    with torch.no_grad():
        clean = adversary.tap.run(forward)
    if not adversary.method.recipe.follows_gradient:
        return None, clean.logits
    with torch.enable_grad():
        return adversary.kl_gradient(forward, clean, batch.mask, noise), clean.logits


def _label_gradient(
    adversary: Adversary, forward: Callable[[], Tensor], batch: Batch, focus: int | None
) -> tuple[Tensor | None, Tensor]:
    """As `kl_gradient`, of the label loss."""
    guided = adversary.method.recipe.follows_gradient
    with torch.enable_grad():
        clean = adversary.tap.run(forward, watch=guided)
        if not guided:
            return None, clean.logits
        assert batch.labels is not None
        labels = torch.where(batch.labels == IGNORE, clean.logits.argmax(-1), batch.labels)
        if focus is not None:
            others = torch.arange(labels.shape[1], device=labels.device) != focus
            labels = labels.masked_fill(others, IGNORE)
        return gradient_at(adversary.loss(clean.logits, labels, batch.mask), clean.shift), clean.logits


def noise_for(adversary: Adversary, batch: Batch, seed: int) -> Tensor | None:
    """Random noise for each text: the same alone and in any batch, on any device."""
    recipe = adversary.method.recipe
    free = recipe.space == "free"
    if recipe.follows_gradient and not (free and recipe.objective == "kl"):
        return None
    candidates = adversary.space(batch.ids).candidates
    width = adversary.tap.dim if candidates is None else candidates.shape[-1]
    noise = torch.zeros(*batch.ids.shape, width)
    for row, real in enumerate(batch.mask.cpu()):
        drawn = torch.randn(int(real.sum()), width, generator=torch.Generator().manual_seed(seed))
        noise[row, real] = drawn
    return noise.to(batch.ids.device)


def _toward_words(
    adversary: Adversary, found: Found, batch: Batch, top: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The candidates of the largest alpha."""
    assert found.candidates is not None
    r = found.perturbation
    length = r.norm(dim=-1, keepdim=True)
    along = adversary.space(batch.ids).strengths(r)  # (batch, time, k)
    cosines = torch.where(length > 0, along / length, 0.0)
    strengths, best = found.strengths.topk(min(top, found.strengths.shape[-1]), dim=-1)
    return found.candidates.gather(-1, best), strengths, cosines.gather(-1, best)


def _anywhere(
    adversary: Adversary, found: Found, batch: Batch, top: int, allowed: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The allowed words whose directions are closest to r, and how far r goes toward them."""
    r = found.perturbation[batch.mask]  # (n, dim)
    nearest_cosines, nearest = pointed_at(
        r, batch.ids[batch.mask], adversary.tap.table(), allowed=allowed, top=top
    )
    words = torch.zeros(*batch.ids.shape, nearest.shape[-1], dtype=nearest.dtype, device=nearest.device)
    cosines = torch.zeros_like(words, dtype=r.dtype)
    words[batch.mask], cosines[batch.mask] = nearest, nearest_cosines.to(r.dtype)
    return words, cosines * found.perturbation.norm(dim=-1, keepdim=True), cosines


@torch.no_grad()
def pointed_at(
    vectors: Tensor, ids: Tensor, table: Tensor, *, allowed: Tensor, top: int, block: int = BLOCK
) -> tuple[Tensor, Tensor]:
    """cos(r, w_k - w) and k of the `top` allowed words it is largest for: two (n, top), largest first.

    `vectors` (n, dim) are the perturbations of words `ids` (n,). The word itself, like any word with
    the same vector, has cosine 0.
    """
    wide = table.dtype if table.device.type == "mps" else torch.float64  # MPS has no double precision
    table = table.to(wide)
    targets = table[allowed]
    # |w_k - w|^2 as a sum of products loses digits near w: double precision and a common offset keep enough.
    middle = targets.mean(0)
    targets = targets - middle
    squares = targets.square().sum(-1)  # (allowed,)
    top = min(top, len(allowed))
    rounding = 64 * torch.finfo(wide).eps
    rows = max(1, block // len(allowed))  # never (n, allowed, dim), nor (n, allowed) for many n
    cosines, words = [], []
    for part, part_ids in zip(vectors.split(rows), ids.split(rows), strict=True):
        r, origins = part.to(wide), table[part_ids] - middle  # (rows, dim)
        own_squares = origins.square().sum(-1, keepdim=True)
        squared_distance = own_squares + squares - 2 * (origins @ targets.T)  # (rows, allowed)
        product = r @ targets.T - (r * origins).sum(-1, keepdim=True)
        length = r.norm(dim=-1, keepdim=True)
        undefined = (squared_distance <= rounding * (own_squares + squares)) | (length == 0)
        cosine = torch.where(undefined, 0.0, product / (squared_distance.clamp(min=0).sqrt() * length))
        best = cosine.topk(top, dim=-1)
        cosines.append(best.values)
        words.append(allowed[best.indices])
    return torch.cat(cosines), torch.cat(words)
