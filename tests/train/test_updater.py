"""Updates of weights: their average, their gradients' length, a loss that is no number."""

import math
from dataclasses import replace

import pytest
import torch
from stepping import a_step
from torch import Tensor, nn

from wordward.models import Classifier
from wordward.train.training import DivergedError
from wordward.train.updater import Updater


@pytest.mark.parametrize("decay", [0.5, 0.999])
def test_the_average_is_that_of_the_weights_after_each_step(decay: float) -> None:
    """Each step leaves it min(decay, (1 + n) / (10 + n)) of what it was: with 0.5 that is 0.5 from step 8 on."""
    model = nn.Linear(3, 2).double()
    updater = Updater(model, torch.device("cpu"), clip=5.0, precision="fp32", averaging=decay)
    expected = [value for weight in model.parameters() for value in weight.flatten().tolist()]
    for step in range(1, 15):
        updater.begin(0.1)
        updater.finish(updater.backward(model(torch.randn(4, 3, dtype=torch.float64)).square().mean()))
        left = min(decay, (1 + step) / (10 + step))
        values = [value for weight in model.parameters() for value in weight.flatten().tolist()]
        expected = [left * mean + (1 - left) * value for mean, value in zip(expected, values, strict=True)]
        with updater.averaged():
            found = [value for weight in model.parameters() for value in weight.flatten().tolist()]
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-15)
        assert found != pytest.approx(values, rel=1e-3)


def copies(model: nn.Module) -> list[Tensor]:
    return [weight.detach().clone() for weight in model.parameters()]


def same(some: list[Tensor], others: list[Tensor]) -> bool:
    return all(torch.equal(one, other) for one, other in zip(some, others, strict=True))


def test_the_model_has_its_own_weights_again_though_scoring_fails() -> None:
    stepper, labelled, _ = a_step("advt", Classifier, averaging=0.9)
    stepper(labelled)
    stepper(labelled)
    own = copies(stepper.model)
    with stepper.updater.averaged():
        means = copies(stepper.model)
    assert same(copies(stepper.model), own)
    assert not same(means, own)
    with pytest.raises(ZeroDivisionError), stepper.updater.averaged():
        raise ZeroDivisionError("scoring")
    assert same(copies(stepper.model), own)
    with stepper.updater.averaged():
        assert same(copies(stepper.model), means)


def test_without_averaging_a_model_is_scored_as_it_is() -> None:
    stepper, labelled, _ = a_step("advt", Classifier)
    stepper(labelled)
    own = copies(stepper.model)
    assert stepper.updater.average is None
    with stepper.updater.averaged():
        assert same(copies(stepper.model), own)


def test_the_first_step_whose_loss_is_no_number_is_the_one_that_is_named() -> None:
    updater = a_step("baseline", Classifier)[0].updater
    for loss in (1.0, torch.nan, 1.0, torch.inf):
        updater.begin(0.0)
        updater.finish(torch.tensor(loss))
        if loss == 1.0 and updater.steps == 1:
            updater.refuse_broken(lambda: pytest.fail("what is kept is a file's to say, and asked of no sound step"))
    with pytest.raises(DivergedError, match="not finite at step 2; nothing is kept"):
        updater.refuse_broken(lambda: "nothing is kept")


def test_gradients_are_those_of_one_step_alone() -> None:
    stepper, labelled, _ = a_step("advt", Classifier)
    stepper.model.eval()
    stepper.settings, stepper.updater.clip = replace(stepper.settings, learning_rate=1e-30), math.inf
    found = []
    for _ in range(2):
        stepper(labelled)
        found.append([p.grad.clone() for p in stepper.model.parameters() if p.grad is not None])
    torch.testing.assert_close(found[0], found[1])


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_gradients_are_clipped_at_their_own_length_whatever_their_scale(precision: str) -> None:
    stepper, labelled, _ = a_step("advt", Classifier, precision=precision)
    stepper.updater.clip = 0.001
    stepper(labelled)
    lengths = [parameter.grad.norm() for parameter in stepper.model.parameters() if parameter.grad is not None]
    assert float(torch.stack(lengths).norm()) == pytest.approx(0.001, rel=1e-3)
