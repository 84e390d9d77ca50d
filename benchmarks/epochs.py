"""An epoch over as many reviews as IMDB has to train on, at the paper's sizes: told from a part of its steps."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from benchmarks.steps import PAPER, stepper
from benchmarks.timing import Figure, seconds
from benchmarks.words import draw, lengths
from wordward.text.corpus import Corpus, Stream
from wordward.text.vocabulary import SPECIALS

REVIEWS = 21_246  # IMDB's training texts, dev taken off
UNLABELLED_BATCH = 96
STEPS = 40
TARGETS = {"baseline": "under 6", "iadvt": "under 12", "ivat": "under 30"}


def epochs(device: torch.device) -> Iterator[Figure]:
    """Seconds of an epoch; nothing on a CPU, where it takes hours."""
    if device.type != "cuda":
        return
    size = replace(PAPER, words=87_008)
    labelled, unlabelled = _reviews(REVIEWS, size.words, seed=0), _reviews(REVIEWS, size.words, seed=1)
    for method in ("baseline", "advt", "iadvt", "vat", "ivat"):
        step = stepper(size, method, device)
        texts = Stream(labelled, size.batch, seed=(0,))
        more = Stream(unlabelled, UNLABELLED_BATCH, seed=(1,))

        def steps() -> None:
            for _ in range(STEPS):
                step(texts.next(device), more.next(device) if step.virtual else None)  # noqa: B023

        steps()
        taken = sorted(seconds(steps, device, times=1) * len(texts) / STEPS for _ in range(3))
        note = f"with {UNLABELLED_BATCH} unlabelled texts a step" if step.virtual else ""
        target = TARGETS.get(method, "")
        yield Figure("an epoch of 21,246 reviews, batch 32", method, taken[1], taken[0], taken[-1], "s", note, target)


def _reviews(count: int, words: int, *, seed: int) -> Corpus:
    """Texts as long as reviews are, with labels."""
    sizes = lengths(count, seed=seed)
    ids = (len(SPECIALS) + draw(words - len(SPECIALS), int(sizes.sum()), seed=seed)).astype(np.int32)
    return Corpus(np.split(ids, np.cumsum(sizes)[:-1]), [0, 1] * (count // 2))
