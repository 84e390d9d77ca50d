"""Nearest words are searched anew exactly when they should be."""

import math
from typing import Any

import pytest
import torch
from derivation import (
    METHODS,
    PAD,
    SIZE,
    TEXTS,
    WORDS,
    labels_for,
    make,
    neighbours,
    padded,
)
from torch import nn

import wordward
from wordward.perturbation.space import AllWords


def searched(refresh: Any, calls: int, *, told: tuple[int, ...] = ()) -> list[int]:
    """The calls at which nearest words were searched anew, seen by a table that changes before each."""
    model, ids = make("classifier"), padded(TEXTS)
    adv = wordward.iadvt(model, k=3, refresh=refresh)
    seen, known = [], None
    for call in range(calls):
        nn.init.normal_(model.words.table.weight)
        if call in told:
            adv.refresh()
        out = adv(lambda: model(ids), labels_for("classifier"))
        assert out.candidates is not None
        here = out.candidates[ids != PAD].tolist()
        table = model.words.table.weight.detach()
        now = [neighbours(word, table, 3, list(range(1, SIZE))) for text in TEXTS for word in text]
        if here == now:
            seen.append(call)
            known = now
        else:
            assert here == known, "neither the nearest words of now nor those of the last search"
    return seen


@pytest.mark.parametrize(
    ("refresh", "told", "expected"),
    [
        ("batch", (), [0, 1, 2, 3, 4, 5]),
        (1, (), [0, 1, 2, 3, 4, 5]),
        (3, (), [0, 3]),
        (3, (2,), [0, 2, 5]),
        ("epoch", (), [0]),
        ("epoch", (4,), [0, 4]),
        ("auto", (), [0]),  # every 100 steps
    ],
)
def test_nearest_words_are_searched_when_they_should_be(refresh: Any, told: tuple[int, ...], expected: list[int]):
    assert searched(refresh, 6, told=told) == expected


def test_on_a_cpu_nearest_words_are_searched_every_hundred_steps():
    adv = wordward.iadvt(make("classifier"), k=3)
    first, searches = adv.space(torch.tensor([[3]])).candidates, []
    for step in range(201):
        adv.tick()
        if adv.directions.nearest is None:
            searches.append(step)
        adv.space(torch.tensor([[3]]))
    assert first is not None
    assert searches == [0, 100, 200]


def test_the_directions_follow_the_table_even_where_the_candidates_are_kept():
    model, ids = make("classifier"), torch.tensor([[3]])
    adv = wordward.adversary(model, "iadvt-rand", epsilon=1.0, k=3, refresh="epoch")
    adv(lambda: model(ids), torch.tensor([0]))
    nn.init.normal_(model.words.table.weight)
    out = adv(lambda: model(ids), torch.tensor([0]))
    assert out.candidates is not None
    table = model.words.table.weight.detach()
    toward = table[out.candidates[0, 0, out.strengths[0, 0].argmax()]] - table[3]
    torch.testing.assert_close(out.perturbation[0, 0], toward / toward.norm())


@pytest.mark.parametrize("name", METHODS)
def test_the_default_epsilon_is_a_part_of_the_distance_to_the_tenth_nearest_word(name: str):
    model = make("classifier")
    with torch.no_grad():
        model.words.table.weight.mul_(3.0).add_(7.0)
    rows = model.words.table.weight.detach().tolist()
    tenth = sorted(sorted(math.dist(row, other) for other in rows)[10] for row in rows)
    part = 0.75 if name in WORDS else 0.25
    middle = tenth[(len(tenth) - 1) // 2]
    assert wordward.adversary(model, name, k=3).epsilon == pytest.approx(part * middle)
    assert wordward.adversary(model, name, k=3, epsilon=0.5).epsilon == 0.5
    with torch.no_grad():
        model.words.table.weight.mul_(1e-3)
    assert wordward.adversary(model, name, k=3).epsilon == pytest.approx(part * middle * 1e-3)


@pytest.mark.parametrize("name", [*METHODS, "pgd", "freelb", "iadvt-one"])
def test_the_default_epsilon_grows_with_the_root_of_a_texts_length(name: str):
    """Strengths of a text of 240 words are epsilon long, of 60 words half of that; a given epsilon is that of all."""
    model = make("classifier")
    ids = torch.randint(3, len(model.words.table.weight), (3, 240), generator=torch.Generator().manual_seed(0))
    ids[1, 60:] = ids[2, 15:] = 0
    for epsilon, expected in ((None, [1.0, 0.5, 0.25]), (2.0, [1.0, 1.0, 1.0])):
        adv = wordward.adversary(model, name, k=3, epsilon=epsilon)
        found = adv(lambda: model(ids), torch.tensor([0, 1, 0])).strengths.flatten(1).norm(dim=1)
        assert ((found / adv.epsilon) <= torch.tensor(expected) * (1 + 1e-6)).all()
        if name != "freelb":  # whose last step stays inside the ball where the slope turns
            torch.testing.assert_close(found / adv.epsilon, torch.tensor(expected, dtype=found.dtype))


@pytest.mark.parametrize("name", WORDS)
def test_so_does_that_of_the_authors_lengths(name: str):
    """Theirs is the length of r itself."""
    model = make("classifier")
    ids = torch.randint(3, len(model.words.table.weight), (3, 240), generator=torch.Generator().manual_seed(0))
    ids[1, 60:] = ids[2, 15:] = 0
    adv = wordward.adversary(model, name, k=3, normalization="authors")
    found = adv(lambda: model(ids), torch.tensor([0, 1, 0])).perturbation.flatten(1).norm(dim=1)
    torch.testing.assert_close(found / adv.epsilon, torch.tensor([1.0, 0.5, 0.25], dtype=found.dtype))


def test_what_moves_nothing_has_no_epsilon():
    adv = wordward.adversary(make("classifier"), "entropy")
    assert (adv.epsilon, adv.step_size) == (0.0, 0.0)
    assert repr(adv).endswith(", epsilon=0>")


@pytest.mark.parametrize(("numbers", "refresh", "expected"), [
    (SIZE * 5, "auto", True), (SIZE * 5 - 1, "auto", False), (SIZE * 5, "epoch", True), (SIZE * 5, 2, True),
    (SIZE * 5, 1, False), (SIZE * 5, "batch", False),
])  # fmt: skip
def test_a_gpu_searches_for_all_words_together_where_that_is_quick(
    numbers: int, refresh: Any, expected: bool, monkeypatch: pytest.MonkeyPatch
):
    """A table of few numbers, and not anew for each batch."""
    monkeypatch.setattr("wordward.perturbation.directions.AT_ONCE", numbers)
    monkeypatch.setattr("wordward.perturbation.directions.USUAL_DIM", 1)
    assert wordward.iadvt(make("classifier"), k=3, refresh=refresh).directions.quickly_searched is expected
    monkeypatch.setattr("wordward.perturbation.directions.USUAL_DIM", 2)
    assert wordward.iadvt(make("classifier"), k=3).directions.quickly_searched


def test_on_a_cpu_a_new_word_is_searched_for_when_it_comes():
    model = make("classifier")
    adv = wordward.iadvt(model, k=3, refresh="epoch")
    adv.space(torch.tensor([[3]]))
    nn.init.normal_(model.words.table.weight)
    table, others = model.words.table.weight.detach(), list(range(4, SIZE))
    with torch.no_grad():
        table *= torch.rand(SIZE, 1).exp()  # also of other lengths than before
    found = adv.space(torch.tensor([others])).candidates
    assert found is not None
    assert found[0].tolist() == [neighbours(word, table, 3, list(range(1, SIZE))) for word in others]


def test_euclidean_neighbours_on_request():
    model = make("classifier")
    out = wordward.iadvt(model, k=4, metric="euclidean")(lambda: model(torch.tensor([[3]])), torch.tensor([0]))
    table = model.words.table.weight.detach()
    others = [word for word in range(1, SIZE) if word != 3]
    assert out.candidates is not None
    assert (
        out.candidates[0, 0].tolist() == sorted(others, key=lambda word: float((table[word] - table[3]).norm()))[:4]
    )


@pytest.mark.parametrize("name", [name for name in wordward.RECIPES if "iva" in name or "iadv" in name])
def test_directions_toward_all_words_are_made_once_a_call(name: str, monkeypatch: pytest.MonkeyPatch):
    """Those of iVAT's first small step serve r, too."""
    model, ids, made = make("classifier"), padded(TEXTS), []

    class CountedWords(AllWords):
        def __init__(self, *given: Any) -> None:
            made.append(None)
            super().__init__(*given)

    monkeypatch.setattr("wordward.perturbation.directions.AllWords", CountedWords)
    adv = wordward.adversary(model, name, k=None, ascent_steps=2)
    adv(lambda: model(ids), labels_for("classifier"))
    assert len(made) == 1
