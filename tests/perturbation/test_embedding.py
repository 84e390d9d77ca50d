"""The table is read as the model reads it, and left as it was."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import wordward
from wordward.perturbation.tap import Tap

IDS = torch.tensor([[1, 2, 3], [4, 4, 0]])
LABELS = torch.tensor([0, 1])


class Mean(nn.Module):
    """A classifier by the mean vector, all of whose vectors are too long for `max_norm`."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words = nn.Embedding(9, 4, _weight=2 + torch.randn(9, 4), **options)
        self.out = nn.Linear(4, 2)

    def forward(self, ids: Tensor) -> Tensor:
        return self.out(torch.tanh(self.words(ids)).mean(1))


class TestShortened:
    """Tables whose vectors are cut to a longest length whenever they are read, in place."""

    @pytest.mark.parametrize("norm", [1.0, 2.0])
    @pytest.mark.parametrize("name", ["iadvt", "ivat"])
    @pytest.mark.parametrize("k", [3, None])
    def test_only_words_of_the_texts_are_written(self, name: str, norm: float, k: int | None):
        model, alone = (Mean(max_norm=1.0, norm_type=norm) for _ in range(2))
        adv = wordward.adversary(model, name, epsilon=1.0, k=k)
        adv(lambda: model(IDS), LABELS)
        alone(IDS)
        assert torch.equal(model.words.weight, alone.words.weight)
        assert model.words.max_norm == 1.0
        assert not model.words._forward_hooks

    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
    def test_words_are_as_the_model_reads_them(self, dtype: torch.dtype):
        model, seen = Mean(max_norm=1.5).to(dtype), []
        model.words.register_forward_hook(lambda *given: seen.append(given[-1].detach()))
        before = model.words.weight.detach().clone()
        read = Tap(model).words(IDS)
        assert torch.equal(model.words.weight, before)
        assert torch.equal(seen[0].to(read.dtype), read)  # a hook of the user's sees them so, too
        torch.testing.assert_close(read.to(dtype), model.words(IDS).detach())
        assert not torch.equal(model.words.weight, before)

    def test_it_is_put_back_after_an_error(self):
        model = Mean(max_norm=1.0)
        with pytest.raises(IndexError):
            Tap(model).words(torch.tensor([99]))
        assert model.words.max_norm == 1.0
        assert not model.words._forward_hooks


@pytest.mark.parametrize("name", ["iadvt", "ivat-best"])
def test_a_table_that_has_grown_since_is_refused(name: str):
    model = Mean()
    adv = wordward.adversary(model, name, k=2)
    adv(lambda: model(IDS), LABELS)
    model.words.weight = nn.Parameter(torch.randn(12, 4))
    with pytest.raises(ValueError, match="had 9 words when the adversary was made, and has 12 now: make a new one"):
        adv(lambda: model(IDS), LABELS)


def test_several_copies_of_a_model_are_refused():
    wrapped = nn.DataParallel(Mean())
    assert wordward.advt(wrapped)(lambda: wrapped(IDS), LABELS).loss.isfinite()  # one copy, where no GPU is
    wrapped.device_ids = [0]
    assert wordward.advt(wrapped).tap.size == 9  # nor on one GPU
    wrapped.device_ids = [0, 1]
    with pytest.raises(ValueError, match=r"nn.DataParallel splits a batch .*use Distributed"):
        wordward.advt(wrapped)


def test_inside_data_parallel_a_model_says_itself():
    class Two(Mean):
        def __init__(self) -> None:
            super().__init__()
            self.positions = nn.Embedding(9, 4)

        def get_input_embeddings(self) -> nn.Module:
            return self.words

    wrapped = nn.DataParallel(Two())
    assert Tap(wrapped).embedding is wrapped.module.words


def test_an_adversary_says_what_it_found():
    model = Mean()
    said = repr(wordward.iadvt(model, k=3))
    assert said.startswith("<iadvt: embedding='words' (9 x 4), epsilon=")
    assert said.endswith("240 words), k=3>")
    assert repr(wordward.vat(model, site="out", epsilon=2.5)) == (
        "<vat: embedding='words' (9 x 4), site='out', epsilon=2.5>"
    )
