"""Methods of a researcher's own: functions in the places of names, by `adversary` and by name in training."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from derivation import PAD, TEXTS, labels_for, make, padded
from reviews import reviews, write_csv
from small_training import config, lines, weights
from torch import Tensor

import wordward
from wordward.perturbation.choice import CHOICES
from wordward.perturbation.objective import kl, label_loss
from wordward.perturbation.recipe import Recipe
from wordward.perturbation.recipes import RECIPES
from wordward.perturbation.space import Neighbors
from wordward.perturbation.tap import Tap
from wordward.train import train


def toward_the_next(ids: Tensor, tap: Tap) -> Neighbors:
    """From each word toward the two after it in the table."""
    return Neighbors(ids, torch.stack([(ids + 1) % tap.size, (ids + 2) % tap.size], -1), tap.words)


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("iadvt", {"objective": label_loss}),
        ("iadvt", {"choice": CHOICES["steepest"]}),
        ("iadvt-one", {"choice": CHOICES["one_word"]}),
        ("pgd", {"objective": label_loss, "choice": CHOICES["steepest"]}),
        ("ivat", {"objective": kl, "compares_with": "prediction"}),
        ("smart", {"objective": kl, "compares_with": "prediction"}),
    ],
)
def test_functions_in_the_places_of_their_names(name: str, own: dict[str, Any]) -> None:
    model, ids, labels = make("tagger"), padded(TEXTS), labels_for("tagger")
    outs = []
    for method in (name, replace(RECIPES[name], **own)):
        torch.manual_seed(0)
        outs.append(wordward.adversary(model, method, epsilon=2.0, k=3)(lambda: model(ids), labels))
    assert torch.equal(outs[0].perturbation, outs[1].perturbation)
    assert torch.equal(outs[0].loss, outs[1].loss)


@pytest.mark.parametrize("objective", ["label_loss", "kl"])
def test_a_space_of_ones_own(objective: Any) -> None:
    model, ids, labels = make("classifier"), padded(TEXTS), labels_for("classifier")
    recipe = Recipe(objective, toward_the_next, "best_one")
    out = wordward.adversary(model, recipe, epsilon=2.0)(lambda: model(ids), labels)
    mask, table = ids != PAD, model.words.table.weight.detach()
    directions = torch.nn.functional.normalize(table[(ids + 1) % len(table)] - table[ids], dim=-1)
    first = out.strengths[..., 0] != 0
    assert first.any()
    length = out.strengths[..., :1] * directions
    torch.testing.assert_close(out.perturbation[first & mask], length[first & mask])
    assert ((out.strengths != 0).sum(-1) == mask).all()  # one of the two words, at every token
    with pytest.raises(ValueError, match="has no default epsilon"):
        wordward.adversary(model, recipe)


def test_an_objective_is_given_where_losses_count() -> None:
    model, ids, labels, seen = make("tagger"), padded(TEXTS), labels_for("tagger"), []

    def objective(logits: Tensor, target: Tensor, counted: Tensor) -> Tensor:
        seen.append(counted)
        return label_loss(logits, target, counted)

    counted = ids == ids[:, :1]
    recipe = Recipe(objective, "free", "steepest")
    wordward.adversary(model, recipe)(lambda: model(ids), labels, counted=counted)
    assert seen
    assert all(torch.equal(each, counted) for each in seen)


def test_what_fits_no_recipe_is_refused() -> None:
    with pytest.raises(ValueError, match=r"choice must be steepest or .* or a function of your own, but is 'all'"):
        Recipe("kl", "free", "all")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="compares_with must be labels or prediction"):
        Recipe(kl, "free", "steepest", compares_with="text")  # type: ignore[arg-type]
    for name, told in (("start", "text or random"), ("counts", "last or every"), ("measure", "one_way or both_ways")):
        with pytest.raises(ValueError, match=f"{name} must be {told}.*, but is 'all'"):
            Recipe("kl", "free", "steepest", **{name: "all"})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="steps must be a whole number, 1 or more, but is 0"):
        Recipe("kl", "free", "steepest", steps=0)
    with pytest.raises(ValueError, match="measure='both_ways' is of a divergence"):
        Recipe("label_loss", "free", "steepest", measure="both_ways")
    model, ids = make("classifier"), padded(TEXTS)
    flat = Recipe("kl", "free", lambda values, possible, words: values.flatten(1))
    with pytest.raises(ValueError, match=r"a choice must return strengths of shape \(3, \d, \d\)"):
        wordward.adversary(model, flat)(lambda: model(ids))


@pytest.fixture
def mine() -> Iterator[str]:
    """iadvt under a name of our own."""
    RECIPES["mine"] = Recipe(label_loss, "words", CHOICES["steepest"], summary="mine")
    yield "mine"
    del RECIPES["mine"]


def test_a_registered_method_trains_by_its_name(mine: str, tmp_path: Path, capsys: Any) -> None:
    texts = write_csv(tmp_path / "texts.csv", reviews(40))
    for name in ("iadvt", mine):
        train(config(texts, name, epochs=2), tmp_path / name, quiet=True)
    theirs, ours = weights(tmp_path / "iadvt"), weights(tmp_path / mine)
    assert all(torch.equal(theirs[name], ours[name]) for name in theirs)
    assert lines(tmp_path / "iadvt") == lines(tmp_path / mine)
    from wordward.cli.main import main

    assert main(["methods"]) == 0
    assert "mine" in capsys.readouterr().out


def test_a_method_of_ones_own_is_named_by_its_summary() -> None:
    for summary, said in (("mine alone", "<mine alone: "), ("", "<your method: ")):
        recipe = Recipe(label_loss, "words", "steepest", summary=summary)
        assert repr(wordward.adversary(make("classifier"), recipe, k=3)).startswith(said)


def test_an_unknown_method_says_how_to_add_one() -> None:
    with pytest.raises(ValueError, match=r"wordward\.RECIPES"):
        wordward.adversary(make("classifier"), "theirs")
