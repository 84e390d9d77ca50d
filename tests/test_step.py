"""What a training step costs: passes and allocations, counted."""

from typing import Any

import numpy as np
import pytest
import torch
from counting import Count, Largest
from torch import Tensor

from wordward.config import ModelSettings, TrainingSettings
from wordward.corpus import Batch
from wordward.models import Classifier, Tagger
from wordward.prepare import adversary_of
from wordward.recipes import MethodSettings, parse_methods
from wordward.step import Stepper
from wordward.text import SPECIALS, Vocabulary

CPU = torch.device("cpu")
WORDS, BATCH, TIME, DIM, HIDDEN = 300, 4, 10, 8, 6


def a_step(method: str, kind: type[Classifier] | type[Tagger], k: int = 10) -> tuple[Stepper, Batch, Batch]:
    torch.manual_seed(0)
    model = kind(WORDS, 2, ModelSettings(dim=DIM, hidden=HIDDEN, head=3)).train()
    words = Vocabulary((*SPECIALS, *map(str, range(WORDS - len(SPECIALS)))), np.ones(WORDS))
    made = [adversary_of(each, model, words, 1) for each in parse_methods(method, MethodSettings(k=k))]
    ids = torch.randint(3, WORDS, (2, BATCH, TIME))
    mask = torch.ones_like(ids, dtype=torch.bool)
    labels = torch.zeros((BATCH, TIME) if kind is Tagger else (BATCH,), dtype=torch.long)
    stepper = Stepper(model, made, TrainingSettings(), CPU)
    return stepper, Batch(ids[0], mask[0], labels), Batch(ids[1], mask[1], None)


@pytest.mark.parametrize("kind", [Classifier, Tagger])
@pytest.mark.parametrize(
    ("method", "forwards", "backwards"),
    [
        ("baseline", 1, 1),
        ("random", 2, 2),
        ("advt", 2, 2),  # the clean pass's backward gives the weights' gradients and the vectors'
        ("iadvt", 2, 2),
        ("iadvt-best", 2, 2),
        ("random-kl", 3, 2),
        ("vat", 4, 3),
        ("ivat", 4, 3),
        ("iadvt+ivat", 5, 4),
    ],
)
def test_passes_of_a_step(
    method: str, forwards: int, backwards: int, kind: type[Classifier] | type[Tagger]
) -> None:
    stepper, labelled, unlabelled = a_step(method, kind)
    through, back = [0], [0]
    lstm: Any = stepper.model.lstm
    forward = lstm.forward

    def counted(vectors: Tensor, *rest: Any) -> Any:
        through[0] += 1
        return forward(Count.apply(vectors, back), *rest)

    lstm.forward = counted
    stepper(labelled, unlabelled if stepper.virtual else None)
    assert (through[0], back[0]) == (forwards, backwards)


@pytest.mark.parametrize("method", ["advt", "iadvt", "ivat", "iadvt-best"])
def test_no_tensor_of_a_step_is_larger_than_the_table_or_the_strengths(method: str) -> None:
    """A (batch, time, k, dim) tensor would be."""
    k = 100
    stepper, labelled, unlabelled = a_step(method, Classifier, k=k)
    extra = unlabelled if stepper.virtual else None
    stepper(labelled, extra)  # searches for nearest words
    with Largest() as largest:
        stepper(labelled, extra)
    assert largest.numel <= max(WORDS * max(DIM, k), BATCH * TIME * max(k, 4 * HIDDEN, DIM))
    assert largest.numel < BATCH * TIME * k * DIM
