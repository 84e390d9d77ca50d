"""Word vectors: rows that are kept apart in training are there when a model is scored or saved."""

import pytest
import torch

from wordward.config.settings import ModelSettings
from wordward.models import Convolution
from wordward.models.words import Words


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
