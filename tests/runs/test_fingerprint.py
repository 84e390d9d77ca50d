"""Whether the weights of a model have changed."""

import pytest
import torch

from wordward.runs.fingerprint import KEPT, Kept, fingerprint


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_another_once_one_weight_has_changed_and_the_same_until_then(kind: torch.dtype) -> None:
    head = torch.nn.Linear(30, 2)
    model = torch.nn.Sequential(torch.nn.Embedding(5_000, 30), head).to(kind)
    before, threads = fingerprint(model), torch.get_num_threads()
    try:
        torch.set_num_threads(threads + 1)  # which add up in another order
        assert fingerprint(model) == before
    finally:
        torch.set_num_threads(threads)
    weight = next(model.parameters())
    weight.grad = torch.zeros_like(weight)
    weight.grad[7, 3] = 1
    torch.optim.AdamW([weight], lr=0.5, weight_decay=0.0, fused=True).step()  # which no counter tells of
    assert fingerprint(model) != before
    for part in (head.weight, head.bias):
        before = fingerprint(model)
        with torch.no_grad():
            part.neg_()
        assert fingerprint(model) != before
    before = fingerprint(model)
    with torch.no_grad():
        head.weight.copy_(head.weight.flip(0).clone())  # labels change places
    assert fingerprint(model) != before


def test_what_was_made_of_weights_is_kept_until_they_change_the_last_few_things_of_each() -> None:
    model, made = torch.nn.Linear(3, 2), []
    kept = Kept(model)

    def make() -> int:
        made.append(None)
        return len(made)

    assert [kept(name, make) for name in "abab"] == [1, 2, 1, 2]
    assert [kept(name, make) for name in range(KEPT)] == list(range(3, KEPT + 3))
    assert kept("a", make) == KEPT + 3  # it was dropped
    with torch.no_grad():
        model.bias.add_(1)
    assert [kept(name, make) for name in ("a", "a", KEPT - 1)] == [KEPT + 4, KEPT + 4, KEPT + 5]
