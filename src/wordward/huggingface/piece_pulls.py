"""Which words pull those of a run whose Hugging Face model reads word pieces."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wordward.example_labels import Labels
from wordward.explain import TEXTS, TOKENS, Pointed
from wordward.method import Adversary
from wordward.objective import IGNORE, kl, label_loss
from wordward.predict import Run
from wordward.reading import Pieces, Reading
from wordward.recipes import Method
from wordward.tap import evaluating
from wordward.text import small_batches
from wordward.word_pulls import adversary_for, point


class Counted:
    """A method's loss; of tags, those at `mask` (batch, time) count, as in training those of first pieces do."""

    def __init__(self, method: Method) -> None:
        self.function = kl if method.recipe.objective == "kl" else label_loss
        self.mask: Tensor | None = None

    def __call__(self, logits: Tensor, target: Tensor) -> Tensor:
        return self.function(logits, target, self.mask)


def pointings_of(run: Run, method: Method, *, top: int) -> Callable[..., Iterator[Pointed]]:
    """What points at words for some texts after others; the nearest words that were searched stay."""
    counted = Counted(method)
    adversary = adversary_for(run, method, loss=counted if run.tagging else None)
    return partial(_pointings, run, adversary, counted, top=top)


def _pointings(
    run: Run,
    adversary: Adversary,
    counted: Counted,
    texts: Sequence[Reading],
    given: Sequence[Labels],
    *,
    top: int,
    focus: int | None,
) -> Iterator[Pointed]:
    """What a run's model says of each text, and what pulls its words: each as its strongest piece is pulled."""
    rows = [run.row(text) for text in texts]
    labels = [_numbers(run, *each) for each in zip(rows, given, strict=True)]
    corpus, allowed = run.corpus([ids for ids, _ in rows], labels), run.ordinary()
    with evaluating(run.model):
        for index in small_batches(corpus.lengths, TEXTS, TOKENS):
            batch = corpus.batch(index, run.device)
            forward = partial(run.model, batch.ids, batch.mask)
            batch = batch._replace(mask=run.perturbed(batch))
            pieces: list[Any] = [rows[at][1] for at in index]
            counted.mask = torch.zeros_like(batch.mask)
            for row, each in enumerate(pieces):
                counted.mask[row, each.first if focus is None else each.first[focus]] = True
            seed = run.config.training.seed
            found = point(adversary, forward, batch, top=top, focus=None, seed=seed, allowed=allowed)
            chances = found.logits.float().softmax(-1).cpu().numpy()
            for row, (at, each) in enumerate(zip(index.tolist(), pieces, strict=True)):
                strongest = _strongest(each, found.strengths[row, :, 0].cpu().numpy())
                words, strengths, cosines = (values[row].cpu()[strongest].tolist() for values in found[1:])
                said = chances[row] if chances.ndim == 2 else chances[row, each.first]
                yield at, said, words, strengths, cosines


def _numbers(run: Run, row: tuple[np.ndarray, Pieces | None], names: Labels) -> Any:
    """Numbers of the labels given, a tagger's at the first pieces; IGNORE where the prediction is to count."""
    ids, pieces = row
    numbers = [IGNORE if name is None else run.labels.index(name) for name in names or [None]]
    if not run.tagging:
        return numbers[0]
    found = np.full(len(ids), IGNORE, dtype=np.int64)
    if names is not None and pieces is not None:
        found[pieces.first] = numbers
    return found


def _strongest(pieces: Pieces, strengths: np.ndarray) -> list[int]:
    """Of each word the piece that is pulled hardest."""
    there = [np.flatnonzero(pieces.word == number) for number in range(len(pieces.first))]
    return [int(some[strengths[some].argmax()]) for some in there]
