"""Which words a batch of texts is pulled toward: a perturbation of it, read as words."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from wordward.explain.directions import anywhere
from wordward.explain.labels import Labels, numbered
from wordward.explain.whole_words import Pieces, Whole, WholeWords, whole_pulls
from wordward.perturbation.adversary import Adversary
from wordward.perturbation.checks import checked_mask
from wordward.perturbation.modes import evaluating
from wordward.perturbation.objective import IGNORE
from wordward.perturbation.outcome import Found
from wordward.perturbation.tap import gradient_at
from wordward.runs.reading import Reading, Row
from wordward.runs.run import Run
from wordward.support.device import at_once, searching
from wordward.text.batches import small_batches
from wordward.text.corpus import Batch

TEXTS = 32  # explained at a time, at most


class BatchPulls(NamedTuple):
    """The logits of a batch of texts, and the words that pull each token, strongest first."""

    logits: Tensor
    words: Tensor  # (batch, time, top) ids
    strengths: Tensor  # (batch, time, top)
    cosines: Tensor  # (batch, time, top)


class WordPulls(NamedTuple):
    """The words that pull each word of one text, strongest first."""

    words: list[list[int]]  # (words, top) ids
    strengths: list[list[float]]  # (words, top)
    cosines: list[list[float]]  # (words, top)


class TextPulls(NamedTuple):
    """The probabilities of one text, and the words that pull each of its pieces, on the CPU."""

    number: int  # of the text among those asked about
    probabilities: np.ndarray  # (classes,), a tagger's (words, classes)
    words: np.ndarray  # (time, top) ids
    strengths: np.ndarray  # (time, top)
    cosines: np.ndarray  # (time, top)
    logits: np.ndarray  # (classes,), a tagger's (words, classes)

    def of_words(self, row: Row) -> WordPulls:
        """What pulls each word: what pulls its strongest piece."""
        strongest = _strongest(row, self.strengths[:, 0])
        return WordPulls(*(values[strongest].tolist() for values in self[2:5]))


def text_pulls(
    run: Run,
    adversary: Adversary,
    texts: Sequence[Reading],
    labels: Sequence[Labels],
    *,
    top: int,
    focus: int | None,
    wholes: WholeWords | None = None,
) -> Iterator[TextPulls]:
    """What a run's model says of each text, and what pulls its pieces.

    `wholes`: finds the words of texts that are pulled as wholes; what pulls one stands at its first piece.

    The texts come in any order, since those of similar length are read together.
    """
    numbers = [numbered(run, text, names) for text, names in zip(texts, labels, strict=True)]
    corpus, allowed = run.corpus([text.ids for text in texts], numbers), run.ordinary()
    with evaluating(run.model):
        for index in small_batches(corpus.lengths, at_once(TEXTS, run.device), run.tokens_at_once):
            batch = corpus.batch(index, run.device)
            rows = [texts[at].row for at in index] if run.tagging else []
            forward = partial(run.model, batch.ids, batch.mask)
            batch = batch._replace(mask=run.perturbed(batch))
            counted = _counted(batch.mask, rows, focus) if run.tagging else None
            seed = run.config.training.seed
            of_batch = partial(_wholes_of, wholes, [texts[at] for at in index]) if wholes else tuple
            pulls = find_pulls(
                adversary, forward, batch, counted, top=top, seed=seed, allowed=allowed, wholes=of_batch
            )
            logits = pulls.logits.float()
            found, logits = logits.softmax(-1).cpu().numpy(), logits.cpu().numpy()
            of_pieces = [values.cpu().numpy() for values in pulls[1:]]
            for at, number in enumerate(index.tolist()):
                words, strengths, cosines = (values[at, : len(texts[number].ids)] for values in of_pieces)
                kept = rows[at].first if run.tagging else slice(None)
                yield TextPulls(number, found[at][kept], words, strengths, cosines, logits[at][kept])


def _wholes_of(wholes: WholeWords, texts: Sequence[Reading]) -> list[tuple[int, Whole]]:
    """The words of some texts that are pulled as wholes, each with the number of its text."""
    return [(at, whole) for at, of_text in enumerate(wholes(texts)) for whole in of_text]


def _counted(mask: Tensor, rows: Sequence[Row], focus: int | None) -> Tensor:
    """Where a tag's loss counts, (batch, time): at the first piece of each word, or of the one in focus."""
    counted = torch.zeros_like(mask)
    for at, row in enumerate(rows):
        counted[at, row.first if focus is None else row.first[focus]] = True
    return counted


def _strongest(row: Row, strengths: np.ndarray) -> list[int]:
    """For each word the index of its piece with the strongest pull, the first of equals."""
    order = np.lexsort((-strengths[: len(row.word)], row.word))  # word by word, the strongest first
    words = row.word[order]
    _, begins = np.unique(words, return_index=True)
    return order[begins[words[begins] >= 0]].tolist()


def find_pulls(
    adversary: Adversary,
    forward: Callable[[], Tensor],
    batch: Batch,
    counted: Tensor | None = None,
    *,
    top: int,
    seed: int,
    allowed: Tensor,
    wholes: Callable[[], Sequence[tuple[int, Whole]]] = tuple,
) -> BatchPulls:
    """The `top` words that pull each token hardest; a label IGNORE stands for the predicted one.

    `counted` (batch, time): where a tagger's loss counts. `allowed`: ids of the words that a free perturbation is
    compared with. `wholes`: finds the words that are pulled as wholes, each with the number of its text.
    """
    noise = noise_for(adversary, batch, seed)
    gradient, logits = gradient_of(adversary, forward, batch, noise, counted)
    words = wholes()  # while a GPU still computes the gradient
    found = adversary.perturb(batch.ids, gradient, batch.mask, noise=noise)
    if found.candidates is not None:
        pulls = BatchPulls(logits.detach(), *_toward_words(adversary, found, batch, top))
        if words:
            assert gradient is not None
            _put(pulls, *whole_pulls(adversary, batch.ids, gradient, found, words))
        return pulls
    pulled = anywhere(adversary, batch.ids, found.perturbation, batch.mask, allowed=allowed, top=top)
    return BatchPulls(logits.detach(), *pulled)


def _put(pulls: BatchPulls, pieces: Pieces, found: tuple[Tensor, Tensor, Tensor]) -> None:
    """Put what pulls words of several pieces at the first piece of each, so that no other piece is pulled."""
    pulls.strengths[pieces.all] = -torch.inf
    for into, values in zip(pulls[1:], found, strict=True):
        into[pieces.first] = values[:, : into.shape[-1]]


def gradient_of(
    adversary: Adversary,
    forward: Callable[[], Tensor],
    batch: Batch,
    noise: Tensor | None,
    counted: Tensor | None = None,
) -> tuple[Tensor | None, Tensor]:
    """The gradient at the vectors of what the method raises (None for one that draws), and the texts' logits.

    Like calling the adversary, but without the perturbed pass. A label IGNORE stands for the predicted one.
    """
    recipe = adversary.method.recipe
    if not (recipe.needs_labels and recipe.follows_gradient):
        with torch.no_grad():
            clean = adversary.tap.run(forward)
        checked_mask(batch.mask, clean.ids)
        if not recipe.follows_gradient:
            return None, clean.logits
        with torch.enable_grad():
            return adversary.kl_gradient(forward, clean, batch.mask, noise, counted=counted), clean.logits
    with torch.enable_grad():
        clean = adversary.tap.run(forward, watch=True)
        checked_mask(batch.mask, clean.ids)
        with searching(batch.mask.device):  # what a word is pulled by needs no more digits; the logits have them all
            gradient = gradient_at(raised(adversary, clean.logits, batch, counted), clean.shift)
        return gradient, clean.logits


def raised(adversary: Adversary, logits: Tensor, batch: Batch, counted: Tensor | None) -> Tensor:
    """The loss that a method with labels raises; a label IGNORE stands for the predicted one."""
    assert batch.labels is not None
    labels = torch.where(batch.labels == IGNORE, logits.argmax(-1), batch.labels)
    return adversary.loss(logits, labels, batch.mask if counted is None else counted)


def noise_for(adversary: Adversary, batch: Batch, seed: int) -> Tensor | None:
    """Random noise for each text: the same alone and in any batch, on any device."""
    recipe = adversary.method.recipe
    free = recipe.space == "free"
    if recipe.follows_gradient and (recipe.needs_labels or not free):
        return None
    candidates = adversary.space(batch.ids).candidates
    width = adversary.tap.dim if candidates is None else candidates.shape[-1]
    noise = torch.zeros(*batch.ids.shape, width)
    for row, real in enumerate(batch.mask.cpu()):
        drawn = torch.randn(int(real.sum()), width, generator=torch.Generator().manual_seed(seed))
        noise[row, real] = drawn
    return noise.to(batch.ids.device)


def _toward_words(adversary: Adversary, found: Found, batch: Batch, top: int) -> tuple[Tensor, Tensor, Tensor]:
    """For a perturbation toward words: the candidates with the largest alpha."""
    assert found.candidates is not None
    r = found.perturbation
    length = r.norm(dim=-1, keepdim=True)
    along = adversary.space(batch.ids).strengths(r)  # (batch, time, k)
    cosines = torch.where(length > 0, along / length, 0.0)
    strengths, best = found.strengths.topk(min(top, found.strengths.shape[-1]), dim=-1)
    return found.candidates.gather(-1, best), strengths, cosines.gather(-1, best)
