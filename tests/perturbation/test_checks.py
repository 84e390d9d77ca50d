"""Losses, labels, masks and candidates of a user's own: those that can be used are, others get a clear error."""

import math
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from derivation import CLASS_LABELS, PAD, TEXTS, Everywhere, labels_for, make, noise_for, padded
from torch import Tensor, nn

import wordward
from wordward.perturbation.checks import check_divergence, check_first, marks_tokens, refuse_positions
from wordward.perturbation.objective import kl


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


def test_where_there_is_no_padding_no_mask_marks_it():
    model, ids = Everywhere(False), padded(TEXTS)
    out = wordward.advt(model)(lambda: model(ids), labels_for("classifier"), mask=torch.zeros_like(ids))
    assert not out.perturbation.any()


@pytest.mark.parametrize("kind", [torch.bool, torch.int64])
def test_a_mask_in_the_place_of_labels_is_not_overlooked(kind: torch.dtype):
    """Transformers' masks are whole numbers; labels of a text, or of its tokens, may be given and are not needed."""
    ids = padded(TEXTS)
    for tags in (False, True):
        model = Everywhere(tags)
        vat, labels = wordward.vat(model), ids if tags else labels_for("classifier")
        expected = vat(lambda model=model: model(ids), mask=ids != PAD, noise=noise_for("vat", 1)).loss
        out = vat(lambda model=model: model(ids), labels, mask=ids != PAD, noise=noise_for("vat", 1))
        assert torch.equal(out.loss, expected)
        vat(lambda model=model: model(ids), labels)
        if kind == torch.bool or not tags:
            with pytest.raises(ValueError, match="vat needs no labels; these look like a mask: pass `mask=`"):
                vat(lambda model=model: model(ids), (ids != PAD).to(kind))


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
        adv = wordward.adversary(model, name, loss=lambda logits, _: 0 * logits.detach().sum())
        with pytest.raises(RuntimeError, match="or your own loss"):
            adv(lambda: model(ids), labels_for("classifier"))


def test_a_divergence_may_be_more_than_0_if_it_is_least_between_equal_logits():
    """As cross-entropy with the clean probabilities, whose gradient is that of KL."""

    def soft(logits: torch.Tensor, clean: torch.Tensor) -> torch.Tensor:
        return -(clean.softmax(-1) * logits.log_softmax(-1)).sum(-1).mean()

    model, ids = make("classifier"), padded(TEXTS)
    assert float(wordward.adversary(model, "vat", loss=soft)(lambda: model(ids)).loss.detach()) > 0.1


@pytest.mark.parametrize("name", ["vat", "ivat", "entropy"])
def test_a_label_loss_is_no_divergence(name: str):
    """It would be measured against the clean logits as if these were the labels' probabilities."""
    model, ids = make("classifier"), padded(TEXTS)
    adv = wordward.adversary(model, name, k=3, loss=nn.functional.cross_entropy)
    for _ in range(2):  # a second try is refused as the first
        with pytest.raises(ValueError, match=r"a divergence of \(logits, clean logits\).*: give one.* advt or iadvt"):
            adv(lambda: model(ids))


def no_number(logits: Tensor, clean: Tensor) -> Tensor:
    return ((logits - clean) / (logits - clean)).sum()


def test_a_divergence_without_a_value_between_equal_logits():
    model, ids = make("classifier"), padded(TEXTS)
    with pytest.raises(ValueError, match="got one that is nan there"):
        wordward.vat(model, loss=no_number)(lambda: model(ids))


def both_ways(logits: Tensor, clean: Tensor) -> Tensor:
    return kl(logits, clean) + kl(clean, logits)


def of_torch(logits: Tensor, clean: Tensor) -> Tensor:
    return nn.functional.kl_div(logits.log_softmax(-1), clean.softmax(-1), reduction="sum")


@pytest.mark.parametrize("loss", [both_ways, of_torch, nn.functional.mse_loss])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_divergences_of_all_kinds_are_taken(loss: Any, dtype: torch.dtype):
    """In half precision, too, in which rounding alone is far from 0 for many texts."""
    check_divergence(loss, (3 * torch.randn(4096, 20)).to(dtype))
    model, ids = make("classifier"), padded(TEXTS)
    assert wordward.vat(model, loss=loss)(lambda: model(ids)).loss > 0


def test_logits_that_are_no_numbers_say_nothing_of_a_divergence():
    check_divergence(both_ways, torch.tensor([[math.nan, 1.0], [0.0, 2.0]]))


@pytest.mark.parametrize("none", [[], (), set(), np.array([]), torch.tensor([])])
def test_no_candidates_are_named_as_such(none: Any):
    with pytest.raises(ValueError, match="no words to point to: `candidates` is empty"):
        wordward.iadvt(make("classifier"), k=3, candidates=none)


def test_a_function_in_the_place_of_the_model():
    with pytest.raises(TypeError, match=r"expected a model \(torch.nn.Module\), but got function"):
        wordward.advt(lambda ids: ids)  # type: ignore[arg-type]


def test_nested_ids_are_refused():
    model = Everywhere(False)
    texts = torch.nested.nested_tensor([torch.tensor(text) for text in TEXTS], layout=torch.jagged)

    def forward() -> Tensor:
        return model.out(model.words(texts).values().mean(0).expand(len(TEXTS), -1))

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


class Placed(nn.Module):
    """Words and their positions, as most models read them."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.position_embeddings, self.out = nn.Embedding(9, 4), nn.Embedding(9, 4), nn.Linear(4, 3)
        self.alone = False

    def forward(self, ids: Tensor) -> Tensor:
        places = torch.arange(ids.shape[1]).expand(1 if self.alone else len(ids), -1)
        return self.out((self.words(ids) + self.position_embeddings(places)).mean(1))


IDS = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])


@pytest.mark.parametrize("name", ["advt", "ivat"])
def test_positions_are_not_words(name: str):
    model = Placed()
    with pytest.raises(ValueError, match=r"'position_embeddings' holds vectors of positions .* embedding='words'"):
        wordward.adversary(model, name, k=3, embedding="position_embeddings")
    for alone in (False, True):
        model.alone = alone
        adv = wordward.adversary(model, name, k=3, embedding="words")
        adv.tap.embedding = adv.tap.site = model.position_embeddings
        with pytest.raises(
            ValueError, match=r"the embedding read 0, 1, 2, \.\.\. in every text: these are positions"
        ):
            adv(lambda: model(IDS), torch.tensor([0, 1]))
    # The same text twice, or one text that happens to count, is a text.
    same = torch.tensor([[1, 2, 4, 3]] * 2)
    for ids, labels in ((same, [0, 1]), (IDS[:1], [0])):
        adv = wordward.adversary(model, name, k=3, embedding="words")
        assert adv(lambda ids=ids: model(ids), torch.tensor(labels)).loss.isfinite()


@pytest.mark.parametrize("name", ["decomposition", "postag", "opposite"])
def test_a_name_that_only_resembles_positions(name: str):
    model = Placed()
    setattr(model, name, model.words)
    del model.words
    assert wordward.advt(model, embedding=name).tap.size == 9


def test_labels_out_of_range_are_told():
    model, adv = Placed(), None
    for labels in ([1, 3], [-1, 0], [7, -100]):
        adv = wordward.advt(model, embedding="words")
        with pytest.raises(
            ValueError, match=r"labels must be from 0 to 2, .* 3 classes, but one is (3|-1|7): number"
        ):
            adv(lambda: model(IDS), torch.tensor(labels))
    good = wordward.advt(model, embedding="words")
    assert good(lambda: model(IDS), torch.tensor([2, -100])).loss.isfinite()
    with pytest.raises(ValueError, match="but one is 3"):  # on a CPU, in any batch
        good(lambda: model(IDS), torch.tensor([2, 3]))


def test_tags_at_padding_may_be_anything():
    model, ids, labels = make("tagger"), padded(TEXTS), labels_for("tagger").clone()
    labels[ids == PAD] = 99
    usual = wordward.advt(model)(lambda: model(ids), labels_for("tagger"), mask=ids != PAD)
    assert torch.equal(wordward.advt(model)(lambda: model(ids), labels, mask=ids != PAD).loss, usual.loss)
    labels[0, 0] = 99
    with pytest.raises(ValueError, match="but one is 99"):
        wordward.advt(model)(lambda: model(ids), labels, mask=ids != PAD)


OF_PROBABILITIES: dict[str, Any] = {
    "advt": lambda found, _: -found[:, 0].log().mean(),
    "vat": lambda found, clean: (clean * (clean / found).log()).sum(-1).mean(),
}


@pytest.mark.parametrize("name", ["advt", "vat"])
def test_probabilities_given_for_logits_are_warned_of_once(name: str):
    model = Placed()
    adv = wordward.adversary(model, name, embedding="words")
    with pytest.warns(UserWarning, match=r"gave probabilities \(each row sums to 1\) where logits are expected"):
        adv(lambda: model(IDS).softmax(-1), torch.tensor([0, 1]))
    adv(lambda: model(IDS).softmax(-1), torch.tensor([0, 1]))  # a second warning would be an error here
    own = wordward.adversary(model, name, embedding="words", loss=OF_PROBABILITIES[name])
    assert own(lambda: model(IDS).softmax(-1), torch.tensor([0, 1])).loss.isfinite()


SURE = torch.tensor([1.0, 0.0])
UNSURE = torch.tensor([0.25, 0.75])


@pytest.mark.parametrize(
    ("logits", "warned"),
    [
        (torch.stack([SURE, UNSURE]), True),
        (torch.stack([SURE, UNSURE, UNSURE, SURE]).view(2, 2, 2), True),  # of tokens
        (torch.stack([SURE, UNSURE]) * 1.0005, True),  # rounded
        (torch.stack([SURE, UNSURE]) * 1.5, False),
        (torch.stack([SURE, UNSURE]) * 0.99, False),
        (torch.stack([SURE, UNSURE - 0.1]), False),
        (torch.stack([SURE, torch.tensor([1.5, -0.5])]), False),
        (UNSURE.unsqueeze(0), False),  # chance, where there is but one
        (torch.ones(3, 1), False),
        (torch.ones(3), False),
    ],
)
def test_what_looks_like_probabilities(logits: Tensor, warned: bool):
    """Two rows or more, of two classes or more, none negative, each of which sums to 1 but for rounding."""
    mask = torch.ones(2, 2, dtype=torch.bool)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        check_first(logits, None, mask, own_loss=True)
        assert not told
        check_first(logits, None, mask, own_loss=False)
    assert bool(told) == warned


def test_the_warning_names_the_line_that_called():
    model = Placed()
    with pytest.warns(UserWarning, match="gave probabilities") as told:
        wordward.advt(model, embedding="words")(lambda: model(IDS).softmax(-1), torch.tensor([0, 1]))
    assert told[0].filename == __file__


@pytest.mark.parametrize("shape", [(2,), (2, 3)])
def test_labels_of_a_first_batch_are_looked_at_on_any_device(shape: tuple[int, ...]):
    """Elsewhere than on a CPU they are not, later: that would wait for the device."""
    logits, counted = torch.randn(*shape, 4), torch.ones(2, 3, dtype=torch.bool)
    counted[1, 2] = False
    labels = torch.full(shape, 3)
    check_first(logits, labels, counted, own_loss=False)
    check_first(logits, labels.double() + 9, counted, own_loss=False)  # no classes
    check_first(logits[..., :2], labels, counted, own_loss=True)
    for wrong in (4, -1):
        labels = torch.full(shape, 3)
        labels[-1] = wrong
        with pytest.raises(ValueError, match=f"labels must be from 0 to 3, .* but one is {wrong}"):
            check_first(logits, labels, counted, own_loss=False)
    labels = torch.full(shape, 3)
    labels.view(-1)[-1] = 9
    if len(shape) == 2:
        check_first(logits, labels, counted, own_loss=False)  # at a token that does not count
        check_first(logits, labels, counted[:, :2], own_loss=False)  # tokens of another kind are not looked at
    check_first(logits, labels[:1], counted, own_loss=False)  # nor labels of another shape, which are told later


@pytest.mark.parametrize(
    ("ids", "texts", "places"),
    [
        ([[0, 1, 2]] * 2, 2, True),
        ([[2, 3, 4]] * 3, 3, True),  # some count from 2
        ([[0, 1, 2]], 2, True),  # read once for all texts
        ([[0, 1, 2]], 1, False),
        ([[0, 1]] * 2, 2, False),
        ([[0, 2, 4]] * 2, 2, False),
        ([[0, 1, 2], [1, 2, 3]], 2, False),
        ([[0, 1, 2], [0, 1, 3]], 2, False),
        ([[3, 3, 3]] * 2, 2, False),
    ],
)
def test_ids_that_count_in_every_text_are_places(ids: list[list[int]], texts: int, places: bool):
    if not places:
        refuse_positions(torch.tensor(ids), texts)
        return
    with pytest.raises(ValueError, match=rf"read {', '.join(map(str, ids[0]))}, \.\.\. in every text"):
        refuse_positions(torch.tensor(ids), texts)


def test_a_mask_is_known_to_mark_tokens_once_it_marked_one():
    ids = torch.tensor([[3, 4, PAD]])
    assert marks_tokens(torch.tensor([[True, False, False]]), ids, PAD) is True
    assert marks_tokens(torch.tensor([[True, False, True]]), ids, PAD) is True
    assert marks_tokens(torch.zeros(1, 3, dtype=torch.bool), ids, PAD) is False
    assert marks_tokens(torch.ones(1, 3, dtype=torch.bool), torch.full((1, 3), PAD), PAD) is False


def test_candidates_are_ids_of_the_table():
    """Each end of the candidates is looked at, and one alone is enough."""
    model = make("classifier")
    for given in ([-1, 3, 4], [3, 4, 13], [-1], [13]):
        with pytest.raises(ValueError, match="candidates must be ids from 0 to 12"):
            wordward.iadvt(model, k=None, candidates=given)
    for given in ([12], [0, 12], [1]):
        assert wordward.iadvt(model, k=None, candidates=given).epsilon > 0
