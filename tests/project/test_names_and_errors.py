"""Names and settings that exist work; others get a clear error."""

import math
import sys
from subprocess import run
from typing import Any

import pytest
import torch
from derivation import (
    CLASS_LABELS,
    CLASSES,
    DIM,
    LABELLED,
    PAD,
    SIZE,
    TEXTS,
    WORDS,
    labels_for,
    make,
    padded,
)
from torch import Tensor, nn

import wordward
from wordward.perturbation.api import Options
from wordward.perturbation.recipes import parse_methods
from wordward.perturbation.settings import MethodSettings


def test_the_defaults_are_the_papers():
    assert MethodSettings() == MethodSettings(
        epsilon=None,
        regularizer_weight=1.0,
        k=10,
        xi=1.0,
        power_iterations=1,
        metric="cosine",
        refresh="auto",
        normalization="paper",
        average="sentences",
    )


def test_the_four_methods_have_functions_of_their_own():
    model = make("classifier")
    for name in ("advt", "vat", "iadvt", "ivat"):
        adv = getattr(wordward, name)(model, k=3, epsilon=0.1)
        assert adv.method.name == name
        assert adv.method.settings == MethodSettings(k=3, epsilon=0.1)


def test_all_public_names_are_listed_before_they_are_used():
    beside = run([sys.executable, "-c", "import wordward; print(*dir(wordward))"], capture_output=True, text=True)
    assert {*wordward.__all__} <= {*beside.stdout.split()}


def test_sums_of_methods():
    settings = MethodSettings(epsilon=1.0)
    assert parse_methods("baseline") == ()
    one = parse_methods("iAdvT", settings)
    two = parse_methods("iadvt + ivat", settings)
    assert [method.name for method in two] == ["iadvt", "ivat"]
    assert two[0] == one[0]
    assert all(method.settings is settings for method in two)
    assert parse_methods("vat")[0].settings == MethodSettings()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("iadv", r"unknown method 'iadv'; choose from baseline, random, .*, or a sum such as iadvt\+ivat"),
        ("advt+", r"several with \+ between them; got 'advt\+'"),
        ("", "expected the name of a method, .* got ''"),
        ("advt+advt", "names a method twice"),
        ("baseline+advt", "baseline"),
    ],
)
def test_names_that_are_none(names: str, message: str):
    with pytest.raises(ValueError, match=message):
        parse_methods(names)


@pytest.mark.parametrize(
    ("name", "message"), [("iadvt+ivat", "expected one method, but got"), ("baseline", "only the label loss")]
)
def test_an_adversary_is_of_one_method(name: str, message: str):
    with pytest.raises(ValueError, match=message):
        wordward.adversary(make("classifier"), name)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"candidates": torch.tensor([], dtype=torch.long)}, "there are no words to point to"),
        ({"epsilon": -1.0}, "epsilon must be greater than 0, but is -1.0"),
        ({"epsilon": 0.0}, "epsilon must be greater than 0, but is 0.0"),
        ({"epsilon": math.nan}, "epsilon must be greater than 0, but is nan"),
        ({"epsilon": -math.inf}, "epsilon must be greater than 0, but is -inf"),
        ({"epsilon": "5"}, "epsilon must be greater than 0, but is '5'"),
        ({"k": 5.0}, "k must be a whole number, but is 5.0"),
        ({"power_iterations": 1.5}, "power_iterations must be a whole number"),
        ({"ascent_steps": 2.0}, "ascent_steps must be a whole number"),
        ({"regularizer_weight": "1"}, "regularizer_weight must be 0 or more, but is '1'"),
        (
            {"candidates": ["good", "bad"]},
            "candidates must be whole numbers, the ids of words, but hold 'good'",
        ),
        ({"xi": 0.0}, "xi must be greater than 0"),
        ({"k": 0}, "k must be greater than 0"),
        ({"power_iterations": 0}, "power_iterations must be greater than 0"),
        ({"regularizer_weight": -0.1}, "regularizer_weight must be 0 or more, but is -0.1"),
        ({"refresh": "never"}, "refresh must be auto, batch, epoch or a number of steps, but is 'never'"),
        ({"refresh": 0}, "refresh must be"),
        ({"metric": "manhattan"}, "metric must be cosine or euclidean, but is 'manhattan'"),
        ({"normalization": "author"}, "normalization must be paper or authors, but is 'author'"),
        ({"same_dropout": "no"}, "same_dropout must be True or False, but is 'no'"),
        ({"direction_dropout": 1.0}, "direction_dropout must be 0 or more and less than 1, but is 1.0"),
        ({"direction_dropout": -0.1}, "direction_dropout must be 0 or more and less than 1, but is -0.1"),
        ({"direction_dropout": "half"}, "direction_dropout must be 0 or more and less than 1, but is 'half'"),
        (
            {"direction_dropout": 0.5, "k": None},
            "`direction_dropout` needs directions to the `k` nearest words, but it is 0.5 and k is None, all words: "
            "set `k`, or leave `direction_dropout` at 0",
        ),
        ({"first_step": "gaussian"}, "first_step must be alike or random, but is 'gaussian'"),
        ({"average": "token"}, "average must be sentences or tokens, but is 'token'"),
        (
            {"k": 12},
            "k must be less than the 12 words that may be pointed to, but is 12; `k=None` takes them all",
        ),
        ({"candidates": torch.tensor([3, 13])}, "candidates must be ids from 0 to 12, but go from 3 to 13"),
        ({"candidates": torch.tensor([-1, 3])}, "candidates must be ids from 0 to 12, but go from -1 to 3"),
        ({"candidates": torch.tensor([0]), "k": None}, "there are no words to point to"),
        ({"candidates": torch.tensor([1.0, 2.0]), "k": 1}, "candidates must be .*ids"),
        ({"candidates": torch.ones(13, dtype=torch.bool), "k": 1}, "candidates must be .*ids"),
    ],
)
def test_settings_that_no_method_can_use(setting: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        wordward.iadvt(make("classifier"), **setting)


def test_largest_k_and_smallest_weight():
    model, ids = make("classifier"), padded(TEXTS)
    adv = wordward.iadvt(model, k=11, regularizer_weight=0.0)
    out = adv(lambda: model(ids), labels_for("classifier"))
    assert out.loss.item() == 0.0
    assert out.candidates is not None
    assert all(
        sorted([*row.tolist(), int(word)]) == list(range(1, SIZE))
        for row, word in zip(out.candidates[ids != PAD], ids[ids != PAD], strict=True)
    )


def test_a_misspelt_setting_is_named():
    with pytest.raises(TypeError, match="epsilom"):
        wordward.advt(make("classifier"), epsilom=1.0)  # type: ignore[call-arg]


def test_the_help_of_iadvt_names_every_option():
    assert all(f"`{option}`" in (wordward.iadvt.__doc__ or "") for option in Options.__annotations__)


@pytest.mark.parametrize("name", ["advt", "iadvt", "vat", "freelb"])
def test_logits_without_a_gradient(name: str):
    model, ids = make("classifier"), padded(TEXTS)
    with pytest.raises(RuntimeError, match="the logits have no gradient"):
        wordward.adversary(model, name, k=3)(lambda: model(ids).detach(), torch.tensor(CLASS_LABELS))


def test_a_mask_in_the_place_of_labels():
    model, ids = make("classifier"), padded(TEXTS)
    with pytest.raises(ValueError, match="these look like a mask: pass `mask=`"):
        wordward.vat(model)(lambda: model(ids), ids != 0)


@pytest.mark.parametrize("name", LABELLED)
def test_missing_labels(name: str):
    model, ids = make("classifier"), padded(TEXTS)
    with pytest.raises(ValueError, match=f"{name} increases the label loss, so it needs `labels`"):
        wordward.adversary(model, name, k=3)(lambda: model(ids))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (torch.zeros(2, dtype=torch.long), r"got 2 labels for 3 texts.*\(batch, time\), here \(3, 6\)"),
        (torch.zeros(3, 6, dtype=torch.long), r"whole numbers of shape \(3,\) for logits of shape \(3, 3\)"),
        (torch.zeros(3), r"are torch.float32 of shape \(3,\).*your own function as `loss=`"),
    ],
)
def test_labels_of_the_wrong_shape(labels: Tensor, message: str):
    model, ids = make("classifier"), padded(TEXTS)
    with pytest.raises(ValueError, match=message):
        wordward.advt(model)(lambda: model(ids), labels)


@pytest.mark.parametrize("name", ["advt", "vat"])
def test_logits_of_neither_texts_nor_tokens(name: str):
    """Such as those of the two ends of an answer, over the tokens."""
    model, ids = make("tagger"), padded(TEXTS)
    ends = torch.zeros(3, 2, dtype=torch.long)
    said = r"per text, or for each of its 6 tokens, but are of shape \(3, 2, 6\): .* `loss=`"
    with pytest.raises(ValueError, match=said):
        wordward.adversary(model, name)(lambda: model(ids)[..., :2].transpose(1, 2), ends)


def test_vectors_that_nothing_comes_of():
    model, ids = make("classifier"), padded(TEXTS)

    def forward() -> Tensor:
        return model.head(model.lstm(model.words(ids).detach())[0][:, -1])

    with pytest.raises(RuntimeError, match=r"does not depend on the embedding's vectors.*nothing detaches them"):
        wordward.advt(model)(forward, labels_for("classifier"))


def test_tags_of_the_wrong_shape():
    model, ids = make("tagger"), padded(TEXTS)
    with pytest.raises(ValueError, match=r"whole numbers of shape \(3, 6\)"):
        wordward.advt(model)(lambda: model(ids), labels_for("tagger")[:, :4])


@pytest.mark.parametrize("name", ["advt", "vat", "random", "random-kl"])
def test_time_first_ids_are_refused(name: str):
    """Lengths over a 'sentence' would be over one column of the batch."""
    model, ids = make("classifier"), padded(TEXTS)
    with pytest.raises(ValueError, match=r"ids are read as \(batch, time\), here \(6, 3\)"):
        wordward.adversary(model, name)(
            lambda: model.head(model.lstm(model.words(ids.T).transpose(0, 1))[0][:, -1]),
            labels_for("classifier"),
        )


@pytest.mark.parametrize("name", ["random", "vat", "iadvt-rand"])
def test_noise_and_masks_of_the_wrong_shape(name: str):
    model, ids = make("classifier"), padded(TEXTS)
    adv = wordward.adversary(model, name, k=3)
    last = 3 if name in WORDS else DIM
    with pytest.raises(ValueError, match=rf"noise must be \(3, 6, {last}\), but is \(3, 6, 9\)"):
        adv(lambda: model(ids), labels_for("classifier"), noise=torch.zeros(3, 6, 9))
    masks = {
        (3, 5): "pads texts itself",
        (6, 3): "transpose its vectors",
        (3,): "for each id",
        (2, 6): "for each",
    }
    for shape, hint in masks.items():
        said = rf"mask must be \(3, 6\) like the ids, but is \({', '.join(map(str, shape))},?\): .*{hint}"
        with pytest.raises(ValueError, match=said):
            adv(lambda: model(ids), labels_for("classifier"), mask=torch.ones(shape))


def test_a_mask_that_is_added_to_scores_is_refused():
    """It is 0 where a token is: padding would be moved, and nothing else."""
    model, ids = make("classifier"), padded(TEXTS)
    adv = wordward.advt(model)
    added = torch.zeros(ids.shape).masked_fill(ids == 0, -torch.inf)
    with pytest.raises(ValueError, match="negative numbers, like a mask that is added to attention scores"):
        adv(lambda: model(ids), labels_for("classifier"), mask=added)
    numbers = adv(lambda: model(ids), labels_for("classifier"), mask=(ids != 0).float())
    assert torch.equal(numbers.mask, ids != 0)


def test_a_loss_that_is_not_one_number():
    model, ids = make("classifier"), padded(TEXTS)
    loss = nn.CrossEntropyLoss(reduction="none")
    for name in ("advt", "random"):
        with pytest.raises(ValueError, match=r"the loss must be one number for the batch, but has shape \(3,\)"):
            wordward.adversary(model, name, loss=loss)(lambda: model(ids), labels_for("classifier"))


@pytest.mark.parametrize("name", ["advt", "vat", "ivat", "random", "random-kl"])
@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_one_logit_is_no_two_classes(name: str, shape: tuple[int, ...]):
    """To a softmax it is always certain, so that KL would be zero without a word."""
    model, ids = make("classifier"), padded(TEXTS)
    labels = torch.zeros(3, dtype=torch.long)
    with pytest.raises(ValueError, match=r"of two or more classes, but are of shape \(3,.*stack.*`loss=`"):
        wordward.adversary(model, name, k=3)(lambda: model(ids)[:, 0].view(shape), labels)
    with_loss = wordward.adversary(model, name, k=3, loss=lambda one, other: (one - other).square().mean())
    assert with_loss(lambda: model(ids)[:, 0], labels).loss.isfinite()


@pytest.mark.parametrize("name", ["iadvt", "ivat"])
def test_site_outside_the_tables_space_is_refused(name: str) -> None:
    """Directions toward words mean nothing after a projection to another size."""
    table, wider, out = nn.Embedding(SIZE, DIM), nn.Linear(DIM, DIM + 2), nn.Linear(DIM + 2, CLASSES)
    model = nn.Sequential(table, wider, out)
    made = wordward.adversary(model, name, site=wider, k=3)
    with pytest.raises((ValueError, RuntimeError), match=r"site=|vectors are"):
        made(lambda: model(padded(TEXTS)).mean(1), torch.tensor(CLASS_LABELS))


def test_logits_in_the_place_of_the_closure_are_told():
    model, ids = make("classifier"), padded(TEXTS)
    with pytest.raises(TypeError, match=r"expected a closure .*, but got Tensor: pass `lambda: model\(ids\)`"):
        wordward.advt(model)(model(ids), labels_for("classifier"))  # type: ignore[arg-type]
