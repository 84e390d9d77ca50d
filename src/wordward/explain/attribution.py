"""How much each word of a text counts by gradients of the model: their norms, and Captum's integrated gradients."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from wordward.explain.explainer import Explainer
from wordward.explain.pulls import gradient_of
from wordward.perturbation.modes import evaluating
from wordward.runs.reading import Row
from wordward.runs.run import Run
from wordward.text.batches import small_batches

STEPS = 50  # of the path that gradients are integrated along
TEXTS, TOKENS = 16, 1 << 13  # at a time, at most


def _batches(run: Run, rows: Sequence[Row], labels: Sequence[int]) -> Iterator[tuple[list[int], Any]]:
    corpus = run.corpus([row.ids for row in rows], list(labels))
    for index in small_batches(corpus.lengths, TEXTS, TOKENS):
        yield index.tolist(), corpus.batch(index, run.device)


def _of_words(row: Row, of_ids: np.ndarray) -> dict[int, float]:
    """Values of ids, (time,), summed over the pieces of each word."""
    real = row.word >= 0
    sums = np.bincount(row.word[real], of_ids[: len(row.ids)][real], minlength=len(row.first))
    return dict(enumerate(sums.tolist()))


def gradients(explainer: Explainer, rows: Sequence[Row], labels: Sequence[int]) -> list[dict[int, float]]:
    """Of each word the squared norm of the gradient of the label's loss at its vectors."""
    run, adversary = explainer.run, explainer.run.adversary("iadvt")
    found: list[dict[int, float]] = [{} for _ in rows]
    with evaluating(run.model):
        for index, batch in _batches(run, rows, labels):
            forward = partial(run.model, batch.ids, batch.mask)
            gradient, _ = gradient_of(adversary, forward, batch._replace(mask=run.perturbed(batch)), None)
            assert gradient is not None
            squares = gradient.float().square().sum(-1).cpu().numpy()  # (batch, time)
            for at, number in enumerate(index):
                found[number] = _of_words(rows[number], squares[at])
    return found


def attributions(
    explainer: Explainer,
    rows: Sequence[Row],
    labels: Sequence[int],
    advance: Callable[[float], None] | None = None,
) -> list[dict[int, float]]:
    """Of each word what it gives the label's logit by integrated gradients, from a text of padding.

    `advance` is told how many texts more are done.
    """
    from captum.attr import LayerIntegratedGradients

    run, tap = explainer.run, explainer.adversary.tap
    integrated = LayerIntegratedGradients(run.model, tap.embedding)
    found: list[dict[int, float]] = [{} for _ in rows]
    with evaluating(run.model), torch.backends.cudnn.flags(enabled=False):  # which has no gradient of an LSTM at rest
        for index, batch in _batches(run, rows, labels):
            blank = torch.where(run.perturbed(batch), tap.padding or 0, batch.ids)
            given = integrated.attribute(
                batch.ids,
                blank,
                target=batch.labels,
                additional_forward_args=(batch.mask,),
                n_steps=STEPS,
                internal_batch_size=TEXTS * 4,
            )
            sums = torch.as_tensor(given).float().sum(-1).detach().cpu().numpy()  # (batch, time)
            for at, number in enumerate(index):
                found[number] = _of_words(rows[number], sums[at])
            if advance is not None:
                advance(len(index))
    return found
