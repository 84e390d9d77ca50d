"""`same_dropout`: the passes over a batch drop the same numbers, and chance goes on as after one of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from derivation import PAD, TEXTS, labels_for, make, noise_for, padded
from hf_tiny import bert, trainer, word_pieces
from stepping import a_step
from torch import Tensor, nn

import wordward
from wordward.models import Classifier, Tagger
from wordward.support.random_state import drawn_on, replayed, state_of

METHODS = ["random", "advt", "iadvt", "vat", "ivat", "pgd", "freelb", "smart", "random-kl"]


@contextmanager
def dropped(model: nn.Module) -> Iterator[dict[nn.Module, list[Tensor]]]:
    """Where each dropout of a model gave zero for another number, pass after pass."""
    seen: dict[nn.Module, list[Tensor]] = {}

    def look(module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        seen.setdefault(module, []).append((output == 0) & (args[0] != 0))

    layers = [module for module in model.modules() if isinstance(module, nn.Dropout)]
    hooks = [module.register_forward_hook(look) for module in layers]
    yield seen
    for hook in hooks:
        hook.remove()


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("kind", ["classifier", "tagger"])
@pytest.mark.parametrize("name", METHODS)
def test_the_passes_over_a_batch_drop_the_same(name: str, kind: str, same: bool):
    model, ids = make(kind).train(), padded(TEXTS)
    adv = wordward.adversary(model, name, k=3, same_dropout=same)
    with dropped(model) as seen:
        adv(lambda: model(ids), labels_for(kind), mask=ids != PAD)
    words = seen[model.words.dropout]
    assert len(words) > 1
    assert bool(words[0].any())
    assert all(torch.equal(each, words[0]) for each in words[1:]) == same


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("name", ["advt", "iadvt", "ivat", "freelb"])
def test_so_do_those_of_a_hugging_face_trainer(name: str, same: bool, tmp_path: Path):
    tokenizer = word_pieces()
    model = bert("sequence", len(tokenizer), dropout=0.5)
    made = trainer(tmp_path, method=name, model=model, tokenizer=tokenizer, settings={"same_dropout": same})
    with dropped(model) as seen:
        made.train()
    first = seen[model.bert.embeddings.dropout]
    first = first[1:] if name == "ivat" else first  # the label loss has a pass of its own
    assert len(first) > 1
    assert all(torch.equal(each, first[0]) for each in first[1:]) == same


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("kind", [Classifier, Tagger])
@pytest.mark.parametrize("name", METHODS)
def test_so_do_those_of_a_training_step(name: str, kind: type[Classifier] | type[Tagger], same: bool):
    stepper, labelled, unlabelled = a_step(name, kind, same_dropout=same)
    with dropped(stepper.model) as seen:
        stepper(labelled, unlabelled if stepper.virtual else None)
    words = seen[stepper.model.words.dropout]  # type: ignore[index,union-attr]
    words = words[1:] if stepper.virtual else words  # the label loss is that of another batch
    assert len(words) > 1
    assert all(torch.equal(each, words[0]) for each in words[1:]) == same


@pytest.mark.parametrize("name", ["advt", "vat"])
def test_r_raises_the_very_loss_it_was_found_for(name: str):
    """eq:adv_approx and eq:vat_approx once more, with one mask: each pass starts from the same seed."""
    model, ids, labels = make("classifier").train(), padded(TEXTS), labels_for("classifier")
    mask, noise = ids != PAD, noise_for("vat", 3)

    def logits(shift: Tensor) -> Tensor:
        torch.manual_seed(3)
        hook = model.words.dropout.register_forward_hook(lambda *args: args[-1] + shift)
        with hook:
            return model(ids)

    def loss(shift: Tensor) -> Tensor:
        if name == "advt":
            return F.cross_entropy(logits(shift), labels)
        clean = logits(torch.zeros(1, dtype=torch.float64)).detach().softmax(-1)
        return (clean * (clean.log() - logits(shift).log_softmax(-1))).sum(-1).mean()

    start = noise * mask[..., None]
    start = torch.zeros_like(start) if name == "advt" else start / start.norm(dim=2, keepdim=True).clamp(1e-9)
    start = start.requires_grad_()
    gradient = torch.autograd.grad(loss(start), start)[0] * mask[..., None]
    r = 2 * gradient / gradient.flatten(1).norm(dim=1)[:, None, None]
    adv = wordward.adversary(model, name, epsilon=2.0, site="words.dropout", same_dropout=True)
    torch.manual_seed(3)
    outcome = adv(lambda: model(ids), labels, mask=mask, noise=noise)
    torch.testing.assert_close(outcome.perturbation, r)
    torch.testing.assert_close(outcome.loss, loss(r))


@pytest.mark.parametrize("name", ["advt", "iadvt", "ivat"])
def test_chance_goes_on_as_after_one_pass(name: str):
    model, ids = make("classifier").train(), padded(TEXTS)
    torch.manual_seed(4)
    model(ids)
    after = torch.get_rng_state()
    torch.manual_seed(4)
    wordward.adversary(model, name, k=3, same_dropout=True)(lambda: model(ids), labels_for("classifier"))
    assert torch.equal(torch.get_rng_state(), after)


def test_chance_goes_on_though_a_pass_fails():
    model, ids, calls = make("classifier").train(), padded(TEXTS), []

    def forward() -> Tensor:
        calls.append(model(ids))
        if len(calls) == 2:
            raise ValueError("our own")
        return calls[-1]

    torch.manual_seed(4)
    model(ids)
    after = torch.get_rng_state()
    torch.manual_seed(4)
    with pytest.raises(ValueError, match="our own"):
        wordward.advt(model, same_dropout=True)(forward, labels_for("classifier"))
    assert torch.equal(torch.get_rng_state(), after)


def test_chance_is_put_back_on_every_device_of_the_model(monkeypatch: pytest.MonkeyPatch):
    places = {0: 3, 1: 5}  # of the generators of two GPUs
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: torch.tensor(places[device.index]))
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device: places.update({device.index: int(state)}))
    before = state_of([torch.device("cuda", 0), torch.device("cuda", 1)])
    places.update({0: 4, 1: 7})
    with replayed(before):
        assert places == {0: 3, 1: 5}
        places.update({0: 4, 1: 7})
    assert places == {0: 4, 1: 7}


def test_a_model_draws_on_each_device_that_it_is_spread_over():
    model = make("classifier")
    model.register_parameter("elsewhere", nn.Parameter(torch.empty(1, device="meta")))
    assert drawn_on(model) == {torch.device("cpu"), torch.device("meta")}


def test_every_pass_begins_with_chance_set(monkeypatch: pytest.MonkeyPatch):
    """cuDNN's recurrent layers draw a seed after that, so a first pass without it would not be like the others."""
    model, ids, events = make("classifier").train(), padded(TEXTS), []
    put = torch.set_rng_state
    monkeypatch.setattr(torch, "set_rng_state", lambda state: [events.append("set"), put(state)])

    def forward() -> Tensor:
        events.append("pass")
        return model(ids)

    wordward.advt(model, same_dropout=True)(forward, labels_for("classifier"))
    assert events == ["set", "pass", "set", "pass", "set"]
