"""Passes with and without gradient through PyTorch's own attention layers are the same function."""

import pytest
import torch
from torch import Tensor, nn

import wordward
from wordward.perturbation.tap import Tap

IDS = torch.tensor([[1, 2, 3, 4, 5], [6, 7, 0, 0, 0]])


class PooledOverPadding(nn.Module):
    """A transformer whose mean is over all positions, so that what stands at padding counts."""

    def __init__(self) -> None:
        super().__init__()
        self.tok = nn.Embedding(20, 8, padding_idx=0)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)
        self.out = nn.Linear(8, 3)

    def forward(self, ids: Tensor) -> Tensor:
        return self.out(self.encoder(self.tok(ids), src_key_padding_mask=ids == 0).mean(1))


@pytest.fixture
def model() -> PooledOverPadding:
    torch.manual_seed(0)
    return PooledOverPadding().eval()


@pytest.mark.parametrize("name", ["vat", "ivat"])
def test_nothing_diverges_where_nothing_moves(model: PooledOverPadding, name: str) -> None:
    out = wordward.adversary(model, name, embedding="tok", epsilon=1e-6, k=3)(lambda: model(IDS))
    assert out.loss.abs() < 1e-6
    torch.testing.assert_close(out.clean, out.perturbed)


@pytest.mark.parametrize("fast", [True, False])
def test_the_fast_path_is_as_before(model: PooledOverPadding, fast: bool) -> None:
    seen = []

    def fails() -> Tensor:
        seen.append(torch.backends.mha.get_fastpath_enabled())
        raise KeyError("theirs")

    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(fast)
    try:
        with pytest.raises(KeyError, match="theirs"):
            Tap(model).run(fails)
        assert torch.backends.mha.get_fastpath_enabled() is fast
    finally:
        torch.backends.mha.set_fastpath_enabled(before)
    assert seen == [False]


def test_models_that_have_no_such_layers_or_train_leave_it_alone(model: PooledOverPadding) -> None:
    seen = []
    plain = nn.Sequential(nn.Embedding(20, 4), nn.Flatten(), nn.Linear(20, 2)).eval()
    for each in (plain, model.train()):
        Tap(each).run(lambda each=each: seen.append(torch.backends.mha.get_fastpath_enabled()) or each(IDS))
    assert seen == [True, True]
