"""What a training step costs: passes and allocations, counted."""

from itertools import pairwise
from typing import Any

import pytest
import torch
from counting import Largest
from stepping import BATCH, DIM, HIDDEN, TIME, WORDS, Kind, a_step, passes
from torch import Tensor, nn

from wordward.models import Classifier, Tagger
from wordward.perturbation import space
from wordward.perturbation.choice import nearness
from wordward.perturbation.objective import IGNORE
from wordward.train.step import Stepper


@pytest.mark.parametrize("kind", [Classifier, Tagger])
@pytest.mark.parametrize(
    ("method", "forwards", "backwards"),
    [
        ("baseline", 1, 1),
        ("random", 2, 2),
        ("advt", 2, 2),  # the clean pass's backward gives the weights' gradients and the vectors'
        ("iadvt", 2, 2),
        ("iadvt-rand", 2, 2),
        ("iadvt-best", 2, 2),
        ("advt-one", 2, 2),
        ("iadvt-one", 2, 2),
        ("random-kl", 3, 2),
        ("ivat-rand", 3, 2),  # chance needs no probe
        ("vat", 4, 3),
        ("ivat", 4, 3),
        ("ivat-best", 4, 3),
        ("vat-one", 4, 3),
        ("ivat-one", 4, 3),
        ("smart", 4, 3),
        ("freelb", 4, 4),  # the clean pass, and three steps of which each counts
        ("pgd", 5, 5),  # three steps from a random start, and the loss at their end
        ("iadvt+ivat", 5, 4),
    ],
)
def test_passes_of_a_step(method: str, forwards: int, backwards: int, kind: Kind) -> None:
    through, back, _ = passes(*a_step(method, kind))
    assert (through, back) == (forwards, backwards)


@pytest.mark.parametrize("method", ["advt", "iadvt", "ivat", "iadvt-best"])
def test_no_tensor_of_a_step_is_larger_than_the_table_or_the_strengths(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A (batch, time, k, dim) tensor would be."""
    monkeypatch.setattr(space, "BLOCK", WORDS * DIM)
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
def test_the_default_epsilon_goes_with_the_length_of_each_text(kind: Kind, given: float | None) -> None:
    stepper, labelled, _ = a_step("advt", kind, epsilon=given)
    (adversary,) = stepper.supervised
    stepper.model.eval()
    outcome = adversary(lambda: stepper.model(labelled.ids, labelled.mask), labelled.labels, mask=labelled.mask)
    lengths = labelled.mask.sum(1)
    wanted = torch.full((BATCH,), given or 5.0)
    if given is None:
        wanted = 0.25 * nearness(adversary.tap.table()) * (lengths / 240).sqrt()
    torch.testing.assert_close(outcome.perturbation.flatten(1).norm(dim=1), wanted)


def with_room_for(most: int, stepper: Stepper, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A GPU that holds so many ids at once; the ids of each pass that it was asked for."""
    forward, asked = stepper.model.forward, []

    def limited(ids: Tensor, mask: Tensor) -> Tensor:
        asked.append(ids.numel())
        logits = forward(ids, mask)
        if ids.numel() > most:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return logits

    monkeypatch.setattr(stepper.model, "forward", limited)
    return asked


def in_full(stepper: Stepper) -> Stepper:
    """Without chance and in double precision."""
    for module in stepper.model.double().modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return stepper


def ones(*size: Any, generator: Any = None, **settings: Any) -> Tensor:
    return torch.ones(*size, **settings)


@pytest.mark.parametrize("average", ["sentences", "tokens"])
@pytest.mark.parametrize("kind", [Classifier, Tagger])
@pytest.mark.parametrize("method", ["baseline", "advt", "iadvt", "freelb", "vat", "iadvt+ivat"])
def test_a_batch_that_memory_does_not_hold_is_read_in_parts_that_add_up_to_it(
    method: str, kind: Kind, average: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch, "randn", ones)
    taken = []
    for most in (10_000, 2 * TIME):
        stepper, labelled, unlabelled = a_step(method, kind, average=average)
        in_full(stepper).average = average if kind is Tagger else "sentences"
        asked = with_room_for(most, stepper, monkeypatch)
        loss = stepper(labelled, unlabelled if stepper.virtual else None)
        taken.append([loss, *(weight.grad for weight in stepper.model.parameters())])
        assert sum(size > most for size in asked) <= 2
        again = len(asked)
        stepper(labelled, unlabelled if stepper.virtual else None)
        assert all(size <= most for size in asked[again:])  # what did not fit is not tried again
    assert "did not fit in memory" in capsys.readouterr().err
    for whole, parts in zip(*taken, strict=True):
        torch.testing.assert_close(parts, whole, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("method", ["iadvt", "ivat"])
def test_parts_of_a_batch_are_one_step_toward_the_next_search(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stepper, labelled, unlabelled = a_step(method, Classifier, refresh=3)
    (directions,) = [each.directions for each in (*stepper.supervised, *stepper.virtual)]
    with_room_for(2 * TIME, stepper, monkeypatch)
    searches = []
    for _ in range(7):
        stepper(labelled, unlabelled if stepper.virtual else None)
        searches.append(directions.nearest)
    assert [after is not before for before, after in pairwise(searches)] == [False, False, True] * 2


@pytest.mark.parametrize("kind", [Classifier, Tagger])
@pytest.mark.parametrize("method", ["iadvt", "vat"])
def test_short_texts_are_not_padded_to_one_that_is_very_long(
    method: str, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which costs a multiple of what the long one takes alone, and learns the same."""
    monkeypatch.setattr(torch, "randn", ones)
    monkeypatch.setattr("wordward.train.step.FILLED", 0.5)
    taken, read = [], []
    for wide in (10_000, BATCH * TIME - 1):
        monkeypatch.setattr("wordward.train.step.WIDE", wide)
        stepper, *batches = a_step(method, kind)
        asked = with_room_for(10_000, in_full(stepper), monkeypatch)
        for batch in batches:
            batch.mask[1:, 1:] = False
            batch.ids[1:, 1:] = 0
            if batch.labels is not None and batch.labels.dim() == 2:
                batch.labels[1:, 1:] = IGNORE
        loss = stepper(batches[0], batches[1] if stepper.virtual else None)
        taken.append([loss, *(weight.grad for weight in stepper.model.parameters())])
        read.append(sum(asked))
    whole, apart = read
    assert apart == whole // BATCH + whole // (BATCH * TIME) * (BATCH - 1)
    for one, other in zip(*taken, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-9, atol=1e-12)


def test_a_text_that_alone_is_too_long_for_memory_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    stepper, labelled, _ = a_step("advt", Classifier)
    asked = with_room_for(TIME - 1, stepper, monkeypatch)
    with pytest.raises(torch.OutOfMemoryError):
        stepper(labelled)
    assert min(asked) <= TIME
