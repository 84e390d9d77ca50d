"""Nearest words are those a loop finds, in blocks of any size; they are searched once and kept."""

import math

import pytest
import torch
from counting import Largest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import wordward
from wordward.perturbation.nearest import (
    GROUP,
    MANY,
    Metric,
    NearestWords,
    Table,
    _by_groups,
    check_enough,
    largest,
    nearest,
)
from wordward.perturbation.tap import Tap


def brute_force(word: int, table: Tensor, k: int, allowed: list[int], metric: Metric) -> list[int]:
    """The k allowed words nearest to a word, by a loop."""

    rows = table.tolist()

    def distance(other: int) -> float:
        a, b = rows[word], rows[other]
        if metric == "euclidean":
            return math.dist(a, b)
        return -sum(x * y for x, y in zip(a, b, strict=True)) / (math.hypot(*a) * math.hypot(*b))

    return sorted((other for other in allowed if other != word), key=distance)[:k]


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("block", [1, 50, 1 << 20])
@settings(max_examples=25)
@given(
    size=st.integers(3, 30),
    dim=st.integers(2, 8),
    share=st.floats(0.3, 1.0),
    k=st.integers(1, 6),
    seed=st.integers(0, 1000),
)
def test_nearest_words_are_those_of_brute_force(
    metric: Metric, block: int, size: int, dim: int, share: float, k: int, seed: int
):
    torch.manual_seed(seed)
    table = torch.randn(size, dim, dtype=torch.float64) * torch.rand(size, 1, dtype=torch.float64).exp()
    allowed = torch.randperm(size)[: max(2, int(share * size))].sort().values
    k = min(k, len(allowed) - 1)
    ids = torch.randint(size, (11,))
    found = nearest(ids, table, k, allowed=allowed, metric=metric, block=block)
    expected = [brute_force(int(word), table, k, allowed.tolist(), metric) for word in ids]
    assert found.tolist() == expected


@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("beside", [0, 1, 37, GROUP - 1])
@pytest.mark.parametrize("groups", [0, 1, 60])
def test_the_largest_by_groups_are_the_largest(k: int, beside: int, groups: int):
    """As on a GPU, here on the CPU; the rest that fills no group holds some of the largest too."""
    width = (k + groups) * GROUP + beside
    similarity = torch.stack([torch.randperm(width) for _ in range(20)]).double()  # no ties
    similarity[0] = torch.arange(width)
    similarity[1] = torch.arange(width).flip(0)
    similarity[:, 5] = -torch.inf  # a word itself
    values, columns = _by_groups(similarity, k)
    expected = similarity.topk(k, dim=-1)
    assert torch.equal(values, expected.values)
    assert torch.equal(columns, expected.indices)


class OnGpu(Tensor):
    """A tensor that says that it is on a GPU."""

    is_cuda = True


@pytest.mark.parametrize("k", [1, 3])
def test_the_largest_of_rows_of_any_width_on_a_gpu(k: int):
    """Whichever way they are searched: there are enough groups, or none are made."""
    for width in (k, GROUP - 1, k * GROUP - 30, k * GROUP, 8 * k * GROUP - 1, 8 * k * GROUP, 9 * k * GROUP + 1):
        similarity = torch.stack([torch.randperm(width) for _ in range(5)]).double()
        expected = similarity.topk(k, dim=-1)
        values, columns = largest(similarity.as_subclass(OnGpu), k)
        assert torch.equal(values, expected.values)
        assert torch.equal(columns, expected.indices)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_a_search_holds_no_more_than_a_block(metric: Metric):
    """Beside the table and what it gives: neither of similarities nor of vectors, on either side."""
    table, ids, every = torch.randn(300, 32), torch.arange(300).repeat(4), torch.arange(300)
    block, found = 64 * 32, len(ids) * 2
    with Largest() as plain:
        near = nearest(ids, table, 2, allowed=every, metric=metric, block=block)
    assert plain.numel <= max(block, found)
    with Largest() as few:
        assert torch.equal(nearest(ids[:100], table, 2, allowed=every, metric=metric, block=block), near[:100])
    assert few.numel <= block


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_nearest_words_of_a_tiny_table_are_those_of_brute_force(metric: Metric):
    """No number is added that its similarities would be lost in."""
    table = torch.randn(40, 4, generator=torch.Generator().manual_seed(0)) * 1e-9
    every = torch.arange(40)
    expected = [brute_force(word, table, 3, every.tolist(), metric) for word in range(40)]
    assert nearest(every, table, 3, allowed=every, metric=metric).tolist() == expected
    assert nearest(every, table, 3, allowed=every, metric=metric, block=99).tolist() == expected


def test_the_two_metrics_differ():
    table = torch.tensor([[1.0, 0.0], [10.0, 0.1], [0.0, 1.0]])
    allowed, word = torch.arange(3), torch.tensor([0])
    assert nearest(word, table, 1, allowed=allowed, metric="cosine").tolist() == [[1]]
    assert nearest(word, table, 1, allowed=allowed, metric="euclidean").tolist() == [[2]]


def test_a_word_that_coincides_with_another_has_it_as_neighbour_but_never_itself():
    table = torch.tensor([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [-1.0, 0.0]])
    for metric in ("cosine", "euclidean"):
        found = nearest(torch.arange(3), table, 2, allowed=torch.arange(4), metric=metric)
        assert [set(row) for row in found.tolist()] == [{1, 2}, {0, 2}, {0, 1}]


def test_euclidean_distance_keeps_its_digits_far_from_the_origin():
    """|a|^2 + |b|^2 - 2ab does not, in single precision."""
    table = 100 + 0.1 * torch.randn(200, 32, generator=torch.Generator().manual_seed(0))
    found = nearest(torch.arange(20), table, 3, allowed=torch.arange(200), metric="euclidean")
    expected = [brute_force(word, table, 3, list(range(200)), "euclidean") for word in range(20)]
    assert found.tolist() == expected


def test_neighbours_are_searched_once_per_word_and_kept():
    old, new = torch.randn(10, 4, dtype=torch.float64), torch.randn(10, 4, dtype=torch.float64)
    search = NearestWords(10, 2, allowed=torch.arange(1, 10), metric="cosine")

    def row(word: int, table: Tensor) -> list[int]:
        return brute_force(word, table, 2, list(range(1, 10)), "cosine")

    first = search.of(torch.tensor([[3, 4], [4, 0]]), old)
    assert first.tolist() == [[row(3, old), row(4, old)], [row(4, old), row(0, old)]]
    later = search.of(torch.tensor([[4, 5]]), new)
    assert later.tolist() == [[row(4, old), row(5, new)]]

    def never(*_: object) -> Tensor:
        raise AssertionError("no word is new, so the table is not needed")

    assert search.of(torch.tensor([[5, 3]]), Table(10, 4, never, never)).tolist() == [[row(5, new), row(3, old)]]


def test_a_word_whose_nearest_is_the_first_of_the_table_is_known():
    """Its neighbour has id 0, which is no sign that it was not searched for."""
    table = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [-1.0, 0.5]])
    search = NearestWords(4, 1, allowed=torch.arange(4), metric="cosine")
    assert search.of(torch.tensor([[1]]), table).tolist() == [[[0]]]
    assert search.of(torch.tensor([[1]]), table.flip(0)).tolist() == [[[0]]]


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_the_table_is_not_copied_for_a_new_word(
    metric: Metric, few: bool, scaled: bool, monkeypatch: pytest.MonkeyPatch
):
    """Where vectors are looked up, it is read in place; of few candidates only these are read."""

    class Scaled(nn.Embedding):
        def forward(self, input: Tensor) -> Tensor:
            return 3 * super().forward(input)

    torch.manual_seed(0)
    size, allowed = 500, range(10, 30) if few else range(500)
    embedding = (Scaled if scaled else nn.Embedding)(size, 8)
    model = nn.Sequential(embedding, nn.Flatten(), nn.Linear(24, 2)).double()
    first, later = torch.tensor([[1, 2, 13], [4, 5, 6]]), torch.tensor([[1, 2, 17], [4, 5, 6]])
    table = (3 if scaled else 1) * embedding.weight.detach()
    adv, labels = wordward.iadvt(model, k=3, metric=metric, candidates=allowed), torch.tensor([0, 1])
    read: list[int] = []
    look_up = Tap.words
    monkeypatch.setattr(Tap, "words", lambda self, ids: read.append(ids.numel()) or look_up(self, ids))
    with Largest(views=False) as seen:
        for ids in (first, later):
            found = adv(lambda ids=ids: model(ids), labels)
            assert found.candidates is not None
            expected = [brute_force(word, table, 3, list(allowed), metric) for word in ids.flatten().tolist()]
            assert found.candidates.flatten(0, 1).tolist() == expected
    most = len(allowed) if few else size if scaled else 6 * (1 + 3)  # words, each with its candidates
    assert max(read) <= most
    if metric == "cosine" and not scaled:
        assert seen.numel < table.numel()


def test_few_words_are_searched_in_place_and_many_in_a_copy():
    """Whichever is quicker; the same words are found."""
    table = torch.randn(50, 20, generator=torch.Generator().manual_seed(0)).double()
    table = table * torch.arange(1, 51).unsqueeze(-1)
    every = torch.arange(50)
    expected = [brute_force(word, table, 4, every.tolist(), "cosine") for word in range(50)]
    assert MANY * 20 < 100
    assert nearest(every.repeat(2), table, 4, allowed=every, metric="cosine").tolist() == expected * 2
    with Largest(views=False) as seen:
        found = nearest(every[:5], table, 4, allowed=every, metric="cosine")
    assert found.tolist() == expected[:5]
    assert seen.numel < table.numel()


def test_neighbours_of_all_words_at_once():
    old, ids = torch.randn(10, 4, dtype=torch.float64), torch.tensor([[3, 4]])
    search = NearestWords(10, 2, allowed=torch.arange(1, 10), metric="cosine", at_once=True)
    lazy = NearestWords(10, 2, allowed=torch.arange(1, 10), metric="cosine")
    assert torch.equal(search.of(ids, old), lazy.of(ids, old))
    later = search.of(torch.arange(10).view(2, 5), torch.full((10, 4), torch.nan))
    assert torch.equal(later, lazy.of(torch.arange(10).view(2, 5), old))


def test_k_words_can_be_nearest_only_beside_the_word_itself() -> None:
    check_enough(torch.arange(4), 3)
    with pytest.raises(ValueError, match="k must be less than the 3 words"):
        check_enough(torch.arange(3), 3)
