"""Which words pull those of a run whose Hugging Face model reads word pieces."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wordward.explain.labels import Labels
from wordward.explain.pulls import TEXTS, TOKENS, PullFinder, TextPulls, adversary_for, find_pulls
from wordward.perturbation.adversary import Adversary
from wordward.perturbation.objective import IGNORE, kl, label_loss
from wordward.perturbation.recipes import Method
from wordward.perturbation.tap import evaluating
from wordward.runs.reading import Pieces, Reading, Row
from wordward.runs.run import Run
from wordward.text.vocabulary import small_batches


class MaskedLoss:
    """A method's loss; of tags, those at `mask` (batch, time) count, as in training those of first pieces do."""

    def __init__(self, method: Method) -> None:
        self.function = kl if method.recipe.objective == "kl" else label_loss
        self.mask: Tensor | None = None

    def __call__(self, logits: Tensor, target: Tensor) -> Tensor:
        return self.function(logits, target, self.mask)


def pull_finder(run: Run, method: Method, *, top: int) -> PullFinder:
    """What finds the pulls of some texts after others; the nearest words that were searched stay."""
    loss = MaskedLoss(method)
    adversary = adversary_for(run, method, loss=loss if run.tagging else None)
    return partial(_text_pulls, run, adversary, loss, top=top)


def _text_pulls(
    run: Run,
    adversary: Adversary,
    loss: MaskedLoss,
    texts: Sequence[Reading],
    labels: Sequence[Labels],
    *,
    top: int,
    focus: int | None,
) -> Iterator[TextPulls]:
    """What a run's model says of each text, and what pulls its words: each as its strongest piece is pulled."""
    rows = [run.row(text) for text in texts]
    numbers = [_label_numbers(run, row, names) for row, names in zip(rows, labels, strict=True)]
    corpus, allowed = run.corpus([row.ids for row in rows], numbers), run.ordinary()
    with evaluating(run.model):
        for index in small_batches(corpus.lengths, TEXTS, TOKENS):
            batch = corpus.batch(index, run.device)
            forward = partial(run.model, batch.ids, batch.mask)
            batch = batch._replace(mask=run.perturbed(batch))
            pieces: list[Any] = [rows[at].pieces for at in index]
            loss.mask = torch.zeros_like(batch.mask)
            for row, of_row in enumerate(pieces):
                loss.mask[row, of_row.first if focus is None else of_row.first[focus]] = True
            seed = run.config.training.seed
            pulls = find_pulls(adversary, forward, batch, top=top, focus=None, seed=seed, allowed=allowed)
            chances = pulls.logits.float().softmax(-1).cpu().numpy()
            for row, (number, of_row) in enumerate(zip(index.tolist(), pieces, strict=True)):
                strongest = _strongest(of_row, pulls.strengths[row, :, 0].cpu().numpy())
                words, strengths, cosines = (values[row].cpu()[strongest].tolist() for values in pulls[1:])
                of_text = chances[row] if chances.ndim == 2 else chances[row, of_row.first]
                yield TextPulls(number, of_text, words, strengths, cosines)


def _label_numbers(run: Run, row: Row, names: Labels) -> Any:
    """Numbers of the labels given, a tagger's at the first pieces; IGNORE where the prediction is to count."""
    ids, pieces = row
    numbers = [IGNORE if name is None else run.labels.index(name) for name in names or [None]]
    if not run.tagging:
        return numbers[0]
    at_pieces = np.full(len(ids), IGNORE, dtype=np.int64)
    if names is not None and pieces is not None:
        at_pieces[pieces.first] = numbers
    return at_pieces


def _strongest(pieces: Pieces, strengths: np.ndarray) -> list[int]:
    """Of each word the piece that is pulled hardest."""
    by_word = [np.flatnonzero(pieces.word == number) for number in range(len(pieces.first))]
    return [int(of_word[strengths[of_word].argmax()]) for of_word in by_word]
