"""Every family of Hugging Face models: the tap sees and moves the vectors that the model really reads."""

from typing import Any

import pytest
import torch
import transformers
from hf_tiny import CLASSES, CONFIGS, EOS, IDS, MASK, PAD, SIZE, TASKS, family, labels_for, logits
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import wordward
from wordward.perturbation.objective import label_loss
from wordward.perturbation.tap import Tap

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # DeBERTa-v2 uses it
MODELS = [(name, task) for name in CONFIGS for task in TASKS]
SINGLE = ("t5", "modernbert", "llama", "qwen2", "gemma")  # whose code casts some of its sums to single precision
BART = {"layers": 1, "attention_heads": 2, "ffn_dim": 12}
METHODS = ("advt", "iadvt", "vat", "ivat")
every = pytest.mark.parametrize(("name", "task"), MODELS)


def hooks(model: nn.Module) -> dict[str, int]:
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return {f"{at}.{kind}": len(getattr(each, kind)) for at, each in model.named_modules() for kind in kinds}


def adversary(model: nn.Module, method: str, **options: Any) -> wordward.Adversary:
    return wordward.adversary(model, method, k=4, candidates=range(4, 40), average="tokens", **options)


def noise(width: int) -> Tensor:
    return torch.randn(*IDS.shape, width, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@every
def test_no_shift_no_change(name: str, task: str):
    """The road of the ids, also with padding, which `inputs_embeds` is not (GPT-2 differs, T5 refuses)."""
    model = family(name, task)
    tap, plain = Tap(model), logits(model)
    for run in (
        tap.run(lambda: logits(model)),
        tap.run(lambda: logits(model), watch=True),
        tap.run(lambda: logits(model), torch.zeros(*IDS.shape, tap.dim)),
    ):
        assert torch.equal(run.logits, plain)
        assert torch.equal(run.ids, IDS)
    moved = tap.run(lambda: logits(model), 0.1 * noise(tap.dim)).logits
    assert (moved - plain).abs().amax(-1).max() > 1e-4


@every
def test_a_shift_is_another_vector_in_the_table(name: str, task: str):
    model = family(name, task)
    if name == "t5" and task == "sequence":
        pytest.skip("the decoder reads the same table, whose text is not shifted")
    tap = Tap(model)
    shift = torch.zeros(*IDS.shape, tap.dim, dtype=torch.float64)
    shift[0, 2] = noise(tap.dim)[0, 2]
    moved = tap.run(lambda: logits(model), shift).logits
    row: Any = tap.embedding.weight[IDS[0, 2]]  # type: ignore[index]
    with torch.no_grad():
        row += shift[0, 2] * row / tap.words(IDS[0, 2])  # Gemma's embedding multiplies its rows
    near: Any = {"rtol": 1e-4, "atol": 1e-4} if name in SINGLE else {}
    torch.testing.assert_close(moved, logits(model), **near)


@every
def test_the_gradient_is_that_of_finite_differences(name: str, task: str):
    model = family(name, task)
    tap, labels = Tap(model), labels_for(task)

    def loss(shift: Tensor) -> float:
        return float(label_loss(tap.run(lambda: logits(model), shift).logits.detach(), labels))

    run = tap.run(lambda: logits(model), watch=True)
    assert run.shift is not None
    (gradient,) = torch.autograd.grad(label_loss(run.logits, labels), run.shift)
    for at, direction in enumerate(noise(tap.dim * 4).split(tap.dim, dim=-1)):
        if at == 0:  # one token alone
            direction = direction * (torch.arange(IDS.shape[1]) == 1).view(-1, 1)
        size, near = (1e-3, 1e-2) if name in SINGLE else (1e-5, 1e-5)
        slope = (loss(size * direction) - loss(-size * direction)) / (2 * size)
        assert float((gradient * direction).sum()) == pytest.approx(slope, rel=near, abs=near / 100)
    assert float(gradient[0].norm()) > 1e-6


@every
@pytest.mark.parametrize("method", METHODS)
def test_a_small_step_raises_the_loss(name: str, task: str, method: str):
    model, labels = family(name, task), labels_for(task)
    adv = adversary(model, method, epsilon=1e-3, xi=1e-3)
    out = adv(lambda: logits(model), labels, mask=MASK)
    chance = adversary(model, "random" if method.endswith("advt") else "random-kl", epsilon=1e-3)
    before = float(label_loss(out.clean.detach(), labels, average="tokens")) if method.endswith("advt") else 0.0
    by_chance = float(chance(lambda: logits(model), labels, mask=MASK).loss.detach()) - before
    assert float(out.loss.detach()) - before > max(0.0, by_chance)
    lengths = out.strengths.flatten(1).norm(dim=1)
    torch.testing.assert_close(lengths, torch.full_like(lengths, 1e-3))


@every
@pytest.mark.parametrize("method", METHODS)
def test_alone_as_in_a_padded_batch(name: str, task: str, method: str):
    model, labels = family(name, task), labels_for(task)
    adv = adversary(model, method, epsilon=0.5)
    chance = noise(adv.tap.dim) if method == "vat" else None
    together = adv(lambda: logits(model), labels, mask=MASK, noise=chance)
    for row, length in enumerate(MASK.sum(1).tolist()):
        some, real = IDS[row : row + 1, :length], MASK[row : row + 1, :length]
        given = labels[row : row + 1] if labels.dim() == 1 else labels[row : row + 1, :length]
        own = chance[row : row + 1, :length] if chance is not None else None
        alone = adv(lambda some=some, real=real: logits(model, some, real), given, mask=real, noise=own)
        near: Any = {"rtol": 1e-4, "atol": 1e-4} if name in SINGLE else {}
        torch.testing.assert_close(together.perturbation[row, :length], alone.perturbation[0], **near)
        assert not together.perturbation[row, length:].any()
        read = slice(None) if labels.dim() == 1 else slice(length)
        torch.testing.assert_close(together.perturbed[row][read], alone.perturbed[0][read], **near)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["gpt2", "llama", "qwen2", "gemma"])
def test_a_decoder_reads_texts_padded_on_the_left(name: str, method: str):
    model = family(name, "sequence")
    adv = adversary(model, method, epsilon=0.5)
    ids, mask = IDS.clone(), MASK.clone()
    ids[1], mask[1] = IDS[1].roll(3), MASK[1].roll(3)
    places = (mask.cumsum(1) - 1).clamp(min=0)  # as generate() numbers them; GPT-2's are in a table
    chance = noise(adv.tap.dim) if method == "vat" else None
    left = adv(
        lambda: model(input_ids=ids, attention_mask=mask, position_ids=places).logits,
        CLASSES,
        mask=mask,
        noise=chance,
    )
    own = chance[1:, 3:] if chance is not None else None
    alone = adv(lambda: logits(model, ids[1:, 3:], mask[1:, 3:]), CLASSES[1:], mask=mask[1:, 3:], noise=own)
    near: Any = {"rtol": 1e-4, "atol": 1e-4} if name in SINGLE else {}
    torch.testing.assert_close(left.perturbation[1, 3:], alone.perturbation[0], **near)
    torch.testing.assert_close(left.perturbed[1], alone.perturbed[0], **near)
    assert not left.perturbation[1, :3].any()


@every
def test_nothing_is_left_behind(name: str, task: str):
    model = family(name, task).train()
    before, state = hooks(model), {at: value.clone() for at, value in model.state_dict().items()}
    for method in METHODS:
        adversary(model, method)(lambda: logits(model), labels_for(task), mask=MASK)

        def fails(values: Tensor, target: Tensor) -> Tensor:
            raise KeyError("theirs")

        with pytest.raises(KeyError, match="theirs"):
            adversary(model, method, loss=fails)(lambda: logits(model), labels_for(task), mask=MASK)
    assert hooks(model) == before
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(module.training for module in model.modules())
    assert all(torch.equal(value, state[at]) for at, value in model.state_dict().items())


@pytest.mark.parametrize("task", list(TASKS))
def test_what_t5_names_is_not_what_runs(task: str):
    model = family("t5", task)
    named = model.get_input_embeddings()
    assert Tap(model).embedding is model.get_encoder().embed_tokens
    with pytest.raises(RuntimeError, match=r"did not run.*pass the module that really runs as `embedding=`"):
        Tap(model, embedding=named).run(lambda: logits(model))


@pytest.mark.parametrize("name", ["bert", "gpt2", "t5", "modernbert"])
def test_checkpoints_of_layers_change_nothing(name: str):
    model = family(name, "sequence").train()
    torch.manual_seed(1)  # the same dropout
    plain = adversary(model, "iadvt")(lambda: logits(model), labels_for("sequence"), mask=MASK)
    plain.loss.backward()
    expected = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
    model.zero_grad()
    model.gradient_checkpointing_enable({"use_reentrant": False})  # with a hook on the embedding
    assert not Tap(model).table().requires_grad
    torch.manual_seed(1)
    out = adversary(model, "iadvt")(lambda: logits(model), labels_for("sequence"), mask=MASK)
    out.loss.backward()
    found = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    torch.testing.assert_close(out.perturbation, plain.perturbation)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpoint_around_the_embedding_is_refused(reentrant: bool):
    model = family("bert", "sequence")
    inner = model.bert.embeddings.forward
    hint = torch.ones((), requires_grad=True)  # a reentrant checkpoint wants an input with gradient

    def outer(input_ids: Tensor, **others: Any) -> Any:
        return checkpoint(lambda ids, _: inner(ids, **others), input_ids, hint, use_reentrant=reentrant)

    model.bert.embeddings.forward = outer
    with pytest.raises(RuntimeError, match="checkpoint the layers after it instead"):
        adversary(model, "iadvt")(lambda: logits(model), labels_for("sequence"), mask=MASK)


def wide(texts: int, length: int) -> Tensor:
    return torch.randint(5, SIZE, (texts, length), generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("length", [4, 6])
@pytest.mark.parametrize("method", METHODS)
def test_xlnet_is_refused_whatever_the_shape(length: int, method: str):
    """It reads (time, batch), which looks like (batch, time) where there are as many texts as words."""
    sizes: Any = {"vocab_size": SIZE, "d_model": 8, "n_layer": 1, "n_head": 2, "d_inner": 12, "num_labels": 3}
    config = transformers.XLNetConfig(**sizes)
    model, ids = transformers.XLNetForSequenceClassification(config).eval(), wide(4, length)
    with pytest.raises(RuntimeError, match=r"given ids \(batch, time\), .* read them as\s+\(time, batch\).*XLNet"):
        adversary(model, method)(lambda: model(ids), torch.tensor([0, 1, 2, 0]))


def test_ids_that_are_their_own_transpose_are_read_as_they_came():
    model, ids = family("bert", "sequence"), torch.tensor([[5, 9], [9, 7]])
    assert torch.equal(Tap(model).run(lambda: model(ids.clone())).ids, ids)


def test_the_decoder_of_bart_reads_the_text_unperturbed():
    """As docs/huggingface.md says: the encoder's vectors alone are moved."""
    sizes: Any = {f"{part}_{name}": size for part in ("encoder", "decoder") for name, size in BART.items()}
    config = transformers.BartConfig(vocab_size=SIZE, d_model=8, pad_token_id=PAD, eos_token_id=EOS, **sizes)
    model = transformers.BartForSequenceClassification(config).double().eval()
    tap, read = Tap(model), []
    assert tap.embedding is model.model.encoder.embed_tokens
    handle = model.model.decoder.embed_tokens.register_forward_hook(lambda module, args, out: read.append(out))
    moved, plain = tap.run(lambda: logits(model), noise(tap.dim)).logits, logits(model)
    handle.remove()
    assert torch.equal(*read)
    assert (moved - plain).abs().max() > 1e-6
