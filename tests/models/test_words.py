"""Word vectors, rows kept apart in training among them, and the dropout after them."""

import pytest
import torch

from wordward.config.settings import ModelSettings
from wordward.models import Convolution
from wordward.models.words import Dropout, Words


def test_rows_kept_apart_are_put_back_and_no_other_parameter_is_made() -> None:
    words = Words(9, 4, 0.0)
    before, parameter = words.table.weight.detach().clone(), words.table.weight
    words.keep_apart(6)
    assert words.table.weight is parameter
    assert torch.equal(words.table.weight, before[:6])
    assert words.state_dict()["table.weight"].shape == (6, 4)
    with torch.no_grad():
        words.table.weight[3] = 5.0
    with words.whole():
        assert torch.equal(words(torch.tensor([[3, 8]]))[0], torch.stack([torch.full((4,), 5.0), before[8]]))
        assert words.state_dict()["table.weight"].shape == (9, 4)
    assert words.table.weight is parameter
    with pytest.raises(KeyboardInterrupt), words.whole():
        raise KeyboardInterrupt
    assert words.table.weight is parameter
    assert "apart" not in words.state_dict()


def test_with_nothing_apart_the_table_stays_as_it_is() -> None:
    words = Words(9, 4, 0.0)
    parameter = words.table.weight
    with words.whole():
        assert words.table.weight is parameter


def test_evidence_in_the_rows_that_are_left_is_still_not_trained() -> None:
    torch.manual_seed(0)
    model = Convolution(9, 2, ModelSettings(kind="convolution", dim=4, hidden=3, word_dropout=0.0))
    with torch.no_grad():
        model.words.table.weight[3:, 4:] = 1.0
    model.words.keep_apart(6)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    before = model.words.table.weight.detach().clone()
    model(torch.tensor([[3, 4, 5]])).square().sum().backward()
    optimizer.step()
    after = model.words.table.weight.detach()
    assert not torch.equal(after[3:, :4], before[3:, :4])
    assert torch.equal(after[:, 4:], before[:, 4:])


@pytest.mark.parametrize("p", [0.1, 0.5, 0.75])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_dropout_drops_as_often_as_it_says_and_keeps_the_mean(p: float, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    values = torch.full((401, 3, 257), 2.0, dtype=dtype, requires_grad=True)  # its size is no multiple of four
    dropped = Dropout(p)(values)
    assert dropped.dtype == dtype
    assert (dropped == 0).double().mean().item() == pytest.approx(p, abs=4 * (p * (1 - p) / values.numel()) ** 0.5)
    assert set(dropped.unique().tolist()) == {0.0, torch.tensor(2 / (1 - p), dtype=dtype).item()}
    dropped.sum().backward()
    assert values.grad is not None
    assert torch.equal(values.grad * 2, dropped)


def test_dropout_drops_each_number_whatever_its_neighbours() -> None:
    torch.manual_seed(0)
    kept = Dropout(0.5)(torch.ones(100_000, 8)).ne(0).double()
    assert (torch.corrcoef(kept.T) - torch.eye(8)).abs().max() < 0.02


def test_dropout_is_drawn_anew_by_the_seed_and_none_where_nothing_is_trained_or_dropped() -> None:
    values, dropout = torch.randn(5, 7), Dropout(0.5)
    torch.manual_seed(1)
    first, second = dropout(values), dropout(values)
    torch.manual_seed(1)
    assert torch.equal(dropout(values), first)
    assert not torch.equal(first, second)
    assert torch.equal(dropout.eval()(values), values)
    assert torch.equal(Dropout(0.0)(values), values)
    assert torch.equal(Dropout(1.0)(values), torch.zeros(5, 7))
    assert dropout.train()(torch.ones(0, 3)).shape == (0, 3)
