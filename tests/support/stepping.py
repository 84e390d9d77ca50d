"""One training step of ours, ready to be taken, and how often it runs through the LSTM."""

from typing import Any

import numpy as np
import torch
from counting import Count
from torch import Tensor

from wordward.config.settings import MethodSettings, ModelSettings, TrainingSettings, filled
from wordward.models import Classifier, Tagger
from wordward.perturbation.recipes import parse_methods
from wordward.runs.word_run import adversary_of
from wordward.text.corpus import Batch
from wordward.text.vocabulary import SPECIALS, Vocabulary
from wordward.train.step import Stepper

WORDS, BATCH, TIME, DIM, HIDDEN = 60, 5, 7, 8, 6
Kind = type[Classifier] | type[Tagger]


def a_step(
    method: str, kind: Kind, *, precision: Any = "fp32", averaging: float = 0.0, **settings: Any
) -> tuple[Stepper, Batch, Batch]:
    """The step, a labelled and an unlabelled batch; each batch has a text that is shorter."""
    torch.manual_seed(0)
    model = kind(WORDS, 2, ModelSettings(dim=DIM, hidden=HIDDEN, head=8)).train()
    words = Vocabulary((*SPECIALS, *map(str, range(WORDS - len(SPECIALS)))), np.ones(WORDS))
    methods = parse_methods(method, MethodSettings(**settings))
    made = [adversary_of(each, model, words, 1) for each in methods]
    ids = torch.randint(3, WORDS, (2, BATCH, TIME))
    mask = torch.ones_like(ids, dtype=torch.bool)
    mask[:, 1, 4:] = False
    labels = torch.randint(2, (BATCH, TIME) if kind is Tagger else (BATCH,))
    training = filled(TrainingSettings(precision=precision, averaging=averaging))
    stepper = Stepper(model, made, training, torch.device("cpu"))
    return stepper, Batch(ids[0], mask[0], labels), Batch(ids[1], mask[1], None)


def passes(stepper: Stepper, labelled: Batch, unlabelled: Batch) -> tuple[int, int, Tensor]:
    """Forward and backward passes of a step that is taken, and its loss."""
    through, back = [0], [0]
    lstm: Any = stepper.model.lstm
    forward = lstm.forward

    def counted(vectors: Tensor, *rest: Any) -> Any:
        through[0] += 1
        return forward(Count.apply(vectors, back), *rest)

    lstm.forward = counted
    loss = stepper(labelled, unlabelled if stepper.virtual else None)
    return through[0], back[0], loss
