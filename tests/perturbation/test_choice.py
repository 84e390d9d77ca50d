"""Strengths and lengths, each against its definition written out with loops."""

import math

import pytest
import torch

from wordward.perturbation.choice import SAMPLED, across, centred, nearness, sampled, scattered, unit, within

SHAPE = (3, 4, 5)


@pytest.fixture
def values() -> torch.Tensor:
    return torch.randn(SHAPE, dtype=torch.float64)


def test_centred_values_lose_the_mean_of_the_possible_ones(values: torch.Tensor) -> None:
    possible = torch.rand(SHAPE) < 0.6
    possible[0, 0], possible[0, 1] = False, torch.tensor([True, False, False, False, False])
    found = centred(values, possible)
    for text in range(3):
        for token in range(4):
            kept = [float(values[text, token, at]) for at in range(5) if possible[text, token, at]]
            mean = sum(kept) / len(kept) if kept else 0.0
            for at in range(5):
                wanted = float(values[text, token, at]) - mean if possible[text, token, at] else 0.0
                assert float(found[text, token, at]) == pytest.approx(wanted, abs=1e-12)
    narrow = possible[..., :1]  # of tokens, not of each of their values
    assert torch.equal(centred(values, narrow), centred(values, narrow.expand(SHAPE)))


def test_across_a_step_nothing_is_left_along_it(values: torch.Tensor) -> None:
    step = torch.randn(SHAPE, dtype=torch.float64)
    step[1, 2] = 0.0
    left = across(values, step)
    torch.testing.assert_close((left * step).sum(-1), torch.zeros(3, 4, dtype=torch.float64))
    parallel = values - left
    share = (values * step).sum(-1, keepdim=True) / (step * step).sum(-1, keepdim=True).clamp(min=1e-300)
    torch.testing.assert_close(parallel, share * step)
    assert torch.equal(left[1, 2], values[1, 2])


def test_within_a_ball_only_what_is_outside_moves(values: torch.Tensor) -> None:
    lengths = [float(values[text].norm()) for text in range(3)]
    radius = torch.tensor([lengths[0] * 2, lengths[1], lengths[2] / 2], dtype=torch.float64).view(-1, 1, 1)
    found = within(values, radius)
    assert torch.equal(found[:2], values[:2])
    torch.testing.assert_close(found[2], values[2] / 2)
    assert torch.equal(within(torch.zeros(SHAPE), 0.0), torch.zeros(SHAPE))
    torch.testing.assert_close(within(values, 0.5).flatten(1).norm(dim=1), torch.full((3,), 0.5, dtype=torch.float64))


def test_scattered_is_uniform_over_the_root_of_a_texts_numbers() -> None:
    noise, counts = torch.randn(4, 4, 5, dtype=torch.float64), (4, 2, 1, 0)
    found = scattered(noise, torch.arange(4) < torch.tensor(counts).unsqueeze(1))
    for text, tokens in enumerate(counts):
        for token in range(4):
            for at in range(5):
                uniform = math.erf(float(noise[text, token, at]) / math.sqrt(2))
                wanted = uniform / math.sqrt(5 * tokens) if token < tokens else 0.0
                assert float(found[text, token, at]) == pytest.approx(wanted, rel=1e-6, abs=0)


def test_unit_is_of_length_one_over_its_dimensions(values: torch.Tensor) -> None:
    for dims in ((2,), (1, 2)):
        torch.testing.assert_close(
            unit(values * 1e150, dims), values / values.square().sum(dims, keepdim=True).sqrt()
        )
    zero = values * torch.tensor([1.0, 0.0, torch.inf]).view(-1, 1, 1)
    assert torch.equal(unit(zero, (1, 2))[1:], torch.zeros(2, 4, 5, dtype=torch.float64))


@pytest.mark.parametrize("size", [1, 4, 11, 40, SAMPLED, SAMPLED + 1])
def test_nearness_is_the_median_distance_to_the_tenth_nearest(size: int) -> None:
    table = torch.randn(size, 3, dtype=torch.float64)
    words = table if size <= SAMPLED else table[::2]
    others = table.tolist()
    each = [sorted(math.dist(word, other) for other in others)[min(10, size - 1)] for word in words.tolist()]
    assert nearness(table) == pytest.approx(sorted(each)[(len(each) - 1) // 2], rel=1e-6, abs=1e-6)


def test_nearness_of_a_large_table_is_that_of_the_words_it_looks_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wordward.perturbation.choice.AMONG", 40)
    for size, wanted in ((39, 39), (40, 40), (41, 21), (81, 27)):
        table = torch.randn(size, 3, dtype=torch.float64)
        assert len(sampled(size)) == wanted
        assert sampled(size).tolist() == list(range(0, size, -(-size // 40)))
        assert nearness(table) == nearness(table[sampled(size)])
