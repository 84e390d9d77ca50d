"""What a training step costs: passes and allocations, counted."""

import pytest
import torch
from counting import Largest
from stepping import BATCH, DIM, HIDDEN, TIME, WORDS, Kind, a_step, passes

from wordward.choice import deviation
from wordward.models import Classifier, Tagger


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
def test_passes_of_a_step(method: str, forwards: int, backwards: int, kind: Kind) -> None:
    through, back, _ = passes(*a_step(method, kind))
    assert (through, back) == (forwards, backwards)


@pytest.mark.parametrize("method", ["advt", "iadvt", "ivat", "iadvt-best"])
def test_no_tensor_of_a_step_is_larger_than_the_table_or_the_strengths(method: str) -> None:
    """A (batch, time, k, dim) tensor would be."""
    k = 50
    stepper, labelled, unlabelled = a_step(method, Classifier, k=k)
    extra = unlabelled if stepper.virtual else None
    stepper(labelled, extra)  # searches for nearest words
    with Largest() as largest:
        stepper(labelled, extra)
    assert largest.numel <= max(WORDS * max(DIM, k), BATCH * TIME * max(k, 4 * HIDDEN, DIM))
    assert largest.numel < BATCH * TIME * k * DIM


@pytest.mark.parametrize("given", [None, 2.0])
@pytest.mark.parametrize("kind", [Classifier, Tagger])
def test_a_taggers_default_epsilon_goes_with_the_length_of_each_sentence(
    kind: Kind, given: float | None
) -> None:
    stepper, labelled, _ = a_step("advt", kind, epsilon=given)
    (adversary,) = stepper.supervised
    stepper.model.eval()
    outcome = adversary(
        lambda: stepper.model(labelled.ids, labelled.mask), labelled.labels, mask=labelled.mask
    )
    lengths = labelled.mask.sum(1)
    wanted = torch.full((BATCH,), given or 5.0)
    if given is None and kind is Tagger:
        wanted = 5 * deviation(adversary.tap.table()) * (lengths / 240).sqrt()
    torch.testing.assert_close(outcome.perturbation.flatten(1).norm(dim=1), wanted)
