"""Directions are a matrix and its transpose, of unit vectors."""

import math

import pytest
import torch
from counting import Largest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import wordward
from wordward.perturbation import space as space_module
from wordward.perturbation.choice import nearness
from wordward.perturbation.distance import distances
from wordward.perturbation.nearest import nearest
from wordward.perturbation.space import HELD, AllWords, Free, Neighbors, QuickNeighbors, Space

KINDS = ("free", "neighbors", "dropped", "quick", "all")


def make(kind: str, *, batch: int, time: int, dim: int, size: int, k: int, seed: int) -> tuple[Space, Tensor]:
    """A space of some kind over a random table, two of whose words coincide; the table too."""
    torch.manual_seed(seed)
    table = torch.randn(size, dim, dtype=torch.float64)
    table[1] = table[0]
    ids = torch.randint(size, (batch, time))
    if kind == "free":
        return Free(), table
    if kind == "all":
        return AllWords(ids, torch.randperm(size)[:k].sort().values, table.__getitem__), table
    candidates = torch.randint(size, (batch, time, k))
    if kind == "quick":
        return QuickNeighbors(ids, candidates, table.__getitem__), table
    return Neighbors(ids, candidates, table.__getitem__, dropout=0.5 if kind == "dropped" else 0.0), table


shapes = given(
    batch=st.integers(1, 3),
    time=st.integers(1, 4),
    dim=st.integers(1, 6),
    size=st.integers(2, 9),
    k=st.integers(1, 9),
    seed=st.integers(0, 1000),
)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@shapes
def test_the_two_products_are_each_others_transpose(kind: str, **shape: int):
    """<D a, v> = <a, D^T v>."""
    space, table = make(kind, **shape)
    v = torch.randn(shape["batch"], shape["time"], table.shape[1], dtype=torch.float64)
    a = torch.randn_like(space.strengths(v))
    torch.testing.assert_close((space.vectors(a) * v).sum(), (a * space.strengths(v)).sum())


@pytest.mark.parametrize("kind", ["neighbors", "dropped"])
@pytest.mark.parametrize("at_once", [1, 3, 7, 100])
def test_several_directions_at_once_give_the_same(at_once: int, kind: str, monkeypatch: pytest.MonkeyPatch):
    """As on a GPU, here on the CPU: 7 directions, some at a time."""
    space, _ = make(kind, batch=2, time=3, dim=5, size=9, k=7, seed=0)
    v, a = torch.randn(2, 3, 5, dtype=torch.float64), torch.randn(2, 3, 7, dtype=torch.float64)
    expected = space.strengths(v), space.vectors(a)
    monkeypatch.setitem(HELD, "cpu", at_once * 2 * 3 * 5)
    space, _ = make(kind, batch=2, time=3, dim=5, size=9, k=7, seed=0)
    with Largest() as largest:
        torch.testing.assert_close((space.strengths(v), space.vectors(a)), expected)
    assert largest.numel == max(min(at_once, 7) * 2 * 3 * 5, 2 * 3 * 7)


@settings(max_examples=25)
@shapes
def test_quick_neighbors_are_neighbors(**shape: int):
    """The same directions, read and measured once each; float32 models get float32."""
    torch.manual_seed(shape["seed"])
    table = torch.randn(shape["size"], shape["dim"])
    table[1] = table[0]
    ids = torch.randint(shape["size"], (shape["batch"], shape["time"]))
    candidates = torch.randint(shape["size"], (*ids.shape, shape["k"]))
    v, a, reads = torch.randn(*ids.shape, shape["dim"]), torch.randn(candidates.shape), []

    def words(of: Tensor) -> Tensor:
        reads.extend(of.flatten().tolist())
        return table[of]

    quick, other = QuickNeighbors(ids, candidates, words), Neighbors(ids, candidates, table.__getitem__)
    torch.testing.assert_close(quick.strengths(v), other.strengths(v))
    torch.testing.assert_close(quick.vectors(a), other.vectors(a))
    assert sorted(reads) == sorted({*ids.flatten().tolist(), *candidates.flatten().tolist()})
    assert quick.candidates is candidates
    assert quick.possible is None


def test_the_gradient_of_strengths_passes_through_quick_neighbors():
    """That of `Neighbors`, also where the caller wants none of the products in between."""
    torch.manual_seed(0)
    table, ids, candidates = torch.randn(9, 5), torch.randint(9, (2, 3)), torch.randint(9, (2, 3, 4))
    found = []
    for kind in (QuickNeighbors, Neighbors):
        a = torch.ones(2, 3, 4, requires_grad=True)
        space = kind(ids, candidates, table.__getitem__)
        (gradient,) = torch.autograd.grad(space.vectors(a).square().sum(), a)
        with torch.no_grad():
            found += [gradient, space.strengths(torch.ones(2, 3, 5))]
        assert not found[-1].requires_grad
    torch.testing.assert_close(found[:2], found[2:])


@pytest.mark.parametrize("kind", ["neighbors", "quick", "all"])
@settings(max_examples=25)
@shapes
def test_directions_are_unit_vectors_or_zero(kind: str, **shape: int):
    """d_k = (w_k - w) / |w_k - w|, and zero where the two words are the same or coincide (eq:adv_direction)."""
    torch.manual_seed(shape["seed"])
    table = torch.randn(shape["size"], shape["dim"], dtype=torch.float64)
    table[1] = table[0]
    ids = torch.randint(shape["size"], (shape["batch"], shape["time"]))
    if kind == "all":
        space: Space = AllWords(ids, torch.arange(shape["size"]), table.__getitem__)
    else:
        candidates = torch.randint(shape["size"], (*ids.shape, shape["k"]))
        space = (QuickNeighbors if kind == "quick" else Neighbors)(ids, candidates, table.__getitem__)
    assert space.candidates is not None
    for k in range(space.candidates.shape[-1]):
        only = torch.zeros(space.candidates.shape, dtype=torch.float64)
        only[..., k] = 1
        unit = space.vectors(only)
        for b in range(len(ids)):
            for t in range(ids.shape[1]):
                difference = table[space.candidates[b, t, k]] - table[ids[b, t]]
                length = math.sqrt(sum(float(x) ** 2 for x in difference))
                expected = difference / length if length else torch.zeros_like(difference)
                torch.testing.assert_close(unit[b, t], expected)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_directions_do_not_depend_on_the_scale_of_the_table(scale: float):
    table = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    ids, candidates = torch.tensor([[0, 1]]), torch.tensor([[[2, 3], [4, 5]]])
    one = torch.tensor([1.0, 0.0]).expand(1, 2, 2)
    for kind in (Neighbors, QuickNeighbors):
        unit = kind(ids, candidates, (table * scale).__getitem__).vectors(one)
        torch.testing.assert_close(unit.norm(dim=-1), torch.ones(1, 2))
        torch.testing.assert_close(unit, kind(ids, candidates, table.__getitem__).vectors(one))


@pytest.mark.parametrize("kind", ["neighbors", "quick", "all"])
def test_directions_to_a_very_near_word_keep_their_length(kind: str):
    """|a|^2 + |b|^2 - 2ab would not, in single precision."""
    table = 10 + torch.randn(30, 16, generator=torch.Generator().manual_seed(0))
    table[1] = table[0] + 0.003
    ids = torch.tensor([[0]])
    one = torch.zeros(1, 1, 30).index_fill(-1, torch.tensor([1]), 1.0)
    if kind == "all":
        space: Space = AllWords(ids, torch.arange(30), table.__getitem__)
    else:
        of = QuickNeighbors if kind == "quick" else Neighbors
        space = of(ids, torch.arange(30).expand(1, 1, 30), table.__getitem__)
    torch.testing.assert_close(space.vectors(one).norm(), torch.tensor(1.0), atol=1e-2, rtol=0)
    assert not space.vectors(one.roll(-1, -1)).any()  # the word itself


def test_toward_words_that_coincide_a_gradient_has_no_strength():
    """Not even one of rounding, which would be made as long as any other."""
    table = torch.randn(64).expand(9, 64)
    ids = torch.tensor([[0, 3]])
    every = AllWords(ids, torch.arange(9), table.__getitem__)
    assert not every.strengths(torch.randn(1, 2, 64)).any()
    some = QuickNeighbors(ids, torch.arange(9).expand(1, 2, 9), table.clone().__getitem__)
    assert not some.strengths(torch.randn(1, 2, 64)).any()
    assert not some.vectors(torch.randn(1, 2, 9)).any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("block", [None, 1, 40, 100])
def test_distances_are_those_of_a_loop(block: int | None, dtype: torch.dtype):
    """Also far from the origin, between words that nearly coincide, and 0 between those that do."""
    table = 100 + torch.randn(30, 16, generator=torch.Generator().manual_seed(0)).to(dtype)
    table[1], table[2], table[3] = table[0], table[0] + 1e-3, table[4] * (1 + torch.finfo(dtype).eps)
    found = distances(table[:9], table, block=block)
    expected = [[math.dist(one.tolist(), two.tolist()) for two in table] for one in table[:9]]
    rounding = torch.finfo(dtype).eps * 16
    torch.testing.assert_close(found, torch.tensor(expected, dtype=dtype), rtol=rounding, atol=0)
    assert found.dtype == dtype
    assert found[0, 1] == found[5, 5] == 0 < found[4, 3]


def test_distances_hold_no_more_than_a_block_beside_what_they_give():
    """Not the difference of each two words, not even where all words coincide."""
    with Largest() as largest:
        assert not distances(torch.ones(50, 16), torch.ones(60, 16), block=960).any()
    assert largest.numel == 50 * 60
    with Largest(torch.float64) as largest:  # in which it is computed
        distances(torch.randn(50, 16), torch.randn(60, 16), block=960)
    assert largest.numel == 960


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("autocast", [False, True])
def test_every_precision_has_directions_also_between_words_that_coincide(dtype: torch.dtype, autocast: bool):
    torch.manual_seed(0)
    table, ids, candidates = torch.randn(9, 5), torch.randint(9, (2, 3)), torch.randint(9, (2, 3, 4))
    v, a, rough = torch.randn(2, 3, 5), torch.randn(2, 3, 4), 16 * torch.finfo(dtype).eps
    candidates[..., 0] = ids
    exact = Neighbors(ids, candidates, table.to(dtype).double().__getitem__)
    with torch.autocast("cpu", torch.bfloat16 if dtype != torch.float16 else dtype, enabled=autocast):
        for kind in (Neighbors, QuickNeighbors):
            space = kind(ids, candidates, table.to(dtype).__getitem__)
            for product, vector in (("strengths", v), ("vectors", a)):
                of = vector.to(dtype)
                found, expected = getattr(space, product)(of), getattr(exact, product)(of.double())
                torch.testing.assert_close(found, expected.to(dtype), rtol=rough, atol=4 * rough)


def test_autocast_changes_neither_directions_nor_neighbours():
    table, ids = (
        torch.randn(30, 16, generator=torch.Generator().manual_seed(0)),
        torch.tensor([[0, 4], [7, 7]]),
    )
    everything = torch.arange(30)

    def compute() -> list[Tensor]:
        near = nearest(everything, table, 5, allowed=everything, metric="cosine")
        found = [near]
        for space in (
            AllWords(ids, everything, table.__getitem__),
            Neighbors(ids, near[ids], table.__getitem__),
            QuickNeighbors(ids, near[ids], table.__getitem__),
        ):
            ascent = space.strengths(table[ids])
            found += [ascent, space.vectors(ascent)]
        return found

    expected = compute()
    with torch.autocast("cpu", torch.bfloat16):
        assert all(torch.equal(one, two) for one, two in zip(compute(), expected, strict=True))


def test_all_words_says_that_a_word_cannot_be_its_own_candidate():
    table = torch.randn(4, 3, dtype=torch.float64)
    space = AllWords(torch.tensor([[0, 3]]), torch.tensor([0, 2, 3]), table.__getitem__)
    assert space.candidates.tolist() == [[[0, 2, 3], [0, 2, 3]]]
    assert space.possible.tolist() == [[[False, True, True], [True, True, False]]]


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_the_directions_are_never_all_in_memory_at_once(dropout: float, monkeypatch: pytest.MonkeyPatch):
    batch, time, k, dim, size = 3, 4, 8, 16, 40
    table, ids = torch.randn(size, dim), torch.randint(size, (batch, time))
    candidates = torch.randint(size, (batch, time, k))
    with Largest() as few:
        space: Space = Neighbors(ids, candidates, table.__getitem__, dropout=dropout)
        space.vectors(space.strengths(torch.ones(batch, time, dim)))
    assert few.numel <= batch * time * max(k, dim)
    monkeypatch.setattr(space_module, "BLOCK", 8 * dim)
    with Largest() as measured:
        space = QuickNeighbors(ids, candidates, table.__getitem__)
        space.vectors(space.strengths(torch.ones(batch, time, dim)))
    assert measured.numel <= max(batch * time * max(k, dim), size * dim)
    with Largest() as every:
        space = AllWords(ids, torch.arange(size), table.__getitem__)
        space.vectors(space.strengths(torch.ones(batch, time, dim)))
    assert every.numel <= max(batch * time, size) * max(size, dim)


@pytest.mark.parametrize("size", [50, 8192, 8193, 20_000])
def test_the_default_epsilon_is_that_of_the_whole_table(size: int):
    model = nn.Sequential(nn.Embedding(size, 4), nn.Flatten(), nn.Linear(12, 2))
    adversary = wordward.iadvt(model, k=3)
    assert adversary.epsilon == 0.75 * nearness(adversary.tap.table())
