"""Losses, labels, masks and candidates of a user's own: those that can be used are, others get a clear error."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from derivation import CLASS_LABELS, PAD, TEXTS, Everywhere, labels_for, make, padded
from torch import Tensor, nn

import wordward


@pytest.mark.parametrize("name", ["advt", "ivat"])
def test_a_mask_of_padding_is_refused(name: str):
    """It would move nothing but padding; one that leaves out all tokens is fine where it marks nothing."""
    model, ids, labels = Everywhere(False, PAD), padded(TEXTS), labels_for("classifier")
    adv = wordward.adversary(model, name, k=3)
    assert not adv(lambda: model(ids), labels, mask=torch.zeros_like(ids)).perturbation.any()
    for mask in (ids == PAD, (ids == PAD).long()):
        with pytest.raises(ValueError, match=r"True only at padding \(id 0\), .*key_padding_mask: pass ~mask"):
            adv(lambda: model(ids), labels, mask=mask)
    empty = torch.full((3, 2), PAD)  # texts without a word that padding is not the name of
    assert adv(lambda: model(empty), labels, mask=empty == PAD).loss.isfinite()
    for mask in (ids != PAD, ids > 4):
        assert adv(lambda: model(ids), labels, mask=mask).perturbation.any()


def test_lists_and_arrays_are_told_what_to_be():
    model, ids, labels = make("classifier"), padded(TEXTS), labels_for("classifier")
    adv = wordward.advt(model)
    with pytest.raises(TypeError, match=r"labels must be a tensor, but are list: pass torch.tensor\(labels\)"):
        adv(lambda: model(ids), CLASS_LABELS)
    for mask in ((ids != PAD).tolist(), (ids != PAD).numpy()):
        with pytest.raises(TypeError, match=r"mask must be a tensor, but is (list|ndarray): pass torch.tensor"):
            adv(lambda: model(ids), labels, mask=mask)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="got 0 labels for 3 texts"):
        adv(lambda: model(ids), torch.tensor(1))
    assert wordward.vat(model)(lambda: model(ids), CLASS_LABELS).loss.isfinite()


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8])
def test_labels_are_whole_numbers_of_any_size(dtype: torch.dtype):
    for kind in ("classifier", "tagger"):
        model, ids, labels = make(kind), padded(TEXTS), labels_for(kind)
        small, usual = (wordward.advt(model)(lambda: model(ids), each) for each in (labels.to(dtype), labels))  # noqa: B023
        assert torch.equal(small.loss, usual.loss)


def test_one_logit_has_no_entropy():
    """Whatever the loss: numbers of other texts would be taken for classes."""
    model, ids = Everywhere(False), padded(TEXTS)
    for shape in ((3,), (3, 1)):
        adv = wordward.adversary(model, "entropy", loss=nn.functional.mse_loss)
        with pytest.raises(ValueError, match="entropy needs two or more classes"):
            adv(lambda shape=shape: model(ids)[:, 0].view(shape))


@pytest.mark.parametrize("value", [0.0, math.nan, math.inf])
def test_a_table_that_no_epsilon_follows_from(value: float):
    """It would be 0, and move nothing, or no number."""
    model = Everywhere(False)
    nn.init.constant_(model.words.weight, value)
    for name in ("advt", "ivat"):
        with pytest.raises(ValueError, match="after the weights are loaded, or give epsilon"):
            wordward.adversary(model, name, k=3)
        assert wordward.adversary(model, name, k=3, epsilon=2.0).epsilon == 2.0
    wordward.adversary(model, "entropy")  # moves nothing anyway


def test_a_model_that_is_not_there_yet_has_no_epsilon():
    with torch.device("meta"):
        model = Everywhere(False)
    with pytest.raises(ValueError, match="after the weights are loaded, or give epsilon"):
        wordward.iadvt(model, k=3)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (
            nn.CrossEntropyLoss,
            r"a function of \(logits, labels\), but is the class CrossEntropyLoss: pass an instance",
        ),
        ("cross_entropy", "but is 'cross_entropy'"),
        (lambda logits, labels: 0.5, "the loss must be a tensor computed from the logits, but is float"),
    ],
)
def test_a_loss_that_is_none(loss: Any, message: str):
    model, ids = make("classifier"), padded(TEXTS)
    with pytest.raises(TypeError, match=message):
        wordward.advt(model, loss=loss)(lambda: model(ids), labels_for("classifier"))


def test_a_loss_without_a_gradient():
    model, ids = make("classifier"), padded(TEXTS)
    for name in ("advt", "vat"):
        adv = wordward.adversary(model, name, loss=lambda logits, _: logits.detach().sum())
        with pytest.raises(RuntimeError, match="or your own loss"):
            adv(lambda: model(ids), labels_for("classifier"))


def test_a_function_in_the_place_of_the_model():
    with pytest.raises(TypeError, match=r"expected a model \(torch.nn.Module\), but got function"):
        wordward.advt(lambda ids: ids)  # type: ignore[arg-type]


def test_nested_ids_are_refused():
    model = Everywhere(False)
    texts = torch.nested.nested_tensor([torch.tensor(text) for text in TEXTS], layout=torch.jagged)

    def forward() -> Tensor:
        return model.out(torch.nested.to_padded_tensor(model.words(texts), 0.0).mean(1))

    with pytest.raises(ValueError, match="but the embedding read a nested tensor: let it read padded texts"):
        wordward.iadvt(model, k=3)(forward, labels_for("classifier"))


@pytest.mark.parametrize("kind", [list, tuple, set, dict.fromkeys, range, np.array, torch.tensor])
def test_candidates_come_in_any_collection(kind: Any):
    given = range(4, 9) if kind is range else kind([8, 4, 5, 6, 7, 8])
    adv = wordward.iadvt(make("classifier"), k=None, candidates=given)
    candidates = adv.space(torch.tensor([[3]])).candidates
    assert candidates is not None
    assert candidates.tolist() == [[[4, 5, 6, 7, 8]]]
    if isinstance(given, dict):
        values = wordward.iadvt(make("classifier"), k=None, candidates=dict(enumerate([4, 5])).values())
        assert values.space(torch.tensor([[3]])).candidates.tolist() == [[[4, 5]]]  # type: ignore[union-attr]
