"""The tap finds the embedding, adds exactly the shift, sees the true gradient, and leaves nothing behind."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import wordward
from wordward.perturbation.modes import evaluating
from wordward.perturbation.tap import Tap, gradient_at, logits_of

IDS = torch.tensor([[1, 2, 3], [4, 4, 0]])
LABELS = torch.tensor([0, 1])


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[None]:
    """A group of one process."""
    dist.init_process_group("gloo", init_method=(tmp_path / "group").as_uri(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


class Net(nn.Module):
    """A small classifier whose parts the tests rearrange."""

    def __init__(self, size: int = 6, dim: int = 4) -> None:
        super().__init__()
        self.words = nn.Embedding(size, dim)
        self.dropout = nn.Dropout(0.5)
        self.hidden = nn.Linear(dim, 5)
        self.out = nn.Linear(5, 2)
        self.double()

    def after(self, vectors: Tensor) -> Tensor:
        """From vectors to logits."""
        return self.out(torch.tanh(self.hidden(vectors)).mean(1).square())

    def forward(self, ids: Tensor) -> Tensor:
        return self.after(self.dropout(self.words(ids)))


def hooks(model: nn.Module) -> dict[str, list[Any]]:
    """Every hook on every module."""
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return {
        f"{name}.{kind}": list(getattr(module, kind).values())
        for name, module in model.named_modules()
        for kind in kinds
    }


def gradient(model: nn.Module, call: Callable[[], Tensor], **options: Any) -> Tensor:
    """The gradient of a loss at the tap's zero shift."""
    run = Tap(model, **options).run(call, watch=True)
    assert run.shift is not None
    assert not run.shift.any()
    return torch.autograd.grad(run.logits.square().sum(), run.shift)[0]


class Hugging(Net):
    """Says which of its embeddings reads words, as a Hugging Face model does."""

    def __init__(self) -> None:
        super().__init__()
        self.positions = nn.Embedding(9, 4)

    def get_input_embeddings(self) -> nn.Module:
        return self.words


class TestFinding:
    def test_the_only_embedding(self):
        model = Net()
        tap = Tap(model)
        assert tap.embedding is model.words
        assert tap.site is model.words
        assert (tap.size, tap.dim, tap.dtype, tap.device.type) == (6, 4, torch.float64, "cpu")

    @pytest.mark.parametrize(
        ("held", "computed"),
        [(torch.float32, torch.float32), (torch.bfloat16, torch.float32), (torch.float64, torch.float64)],
    )
    def test_perturbations_are_computed_at_least_in_single_precision(self, held: torch.dtype, computed: torch.dtype):
        tap = Tap(Net().to(held))
        assert tap.dtype == computed
        assert tap.table().dtype == computed

    def test_none(self):
        with pytest.raises(ValueError, match=r"Sequential has no nn.Embedding: .*`embedding=`"):
            Tap(nn.Sequential(nn.Linear(2, 2)))

    def test_two_are_named_in_the_error(self):
        model = Net()
        model.positions = nn.Embedding(9, 4)
        with pytest.raises(ValueError, match=r"2 embeddings \(words, positions\).*embedding='words'"):
            Tap(model)
        assert Tap(model, embedding="positions").embedding is model.positions
        assert Tap(model, embedding=model.words).embedding is model.words

    def test_by_dotted_name(self):
        model = nn.ModuleDict({"inner": Net()})
        tap = Tap(model, embedding="inner.words", site="inner.dropout")
        assert tap.embedding is model["inner"].words
        assert tap.site is model["inner"].dropout

    def test_an_unknown_name_lists_the_known(self):
        with pytest.raises(ValueError, match=r"no module 'wrods'; it has words, dropout, hidden, out"):
            Tap(Net(), embedding="wrods")

    def test_a_hugging_face_model_says_itself(self):
        model = Hugging()
        assert Tap(model).embedding is model.words

    def test_a_model_that_does_not_say_though_its_class_could(self):
        class Silent(Net):
            def get_input_embeddings(self) -> nn.Module:
                raise NotImplementedError  # as a transformers.PreTrainedModel where nobody wrote it

        model = Silent()
        assert Tap(model).embedding is model.words

    def test_in_ddp_a_hugging_face_model_says_itself(self, alone: None):
        model = Hugging()
        assert Tap(nn.parallel.DistributedDataParallel(model)).embedding is model.words

    def test_of_a_shared_table_the_encoder_has_the_reader(self):
        """T5 and BART name the table, but a module of the encoder's own runs, or one of both parts'."""

        class Part(nn.Module):
            def __init__(self, words: nn.Embedding) -> None:
                super().__init__()
                self.positions, self.words = nn.Embedding(9, 4), words

        class Both(nn.Module):
            def __init__(self, decoder: nn.Embedding, encoder: nn.Embedding) -> None:
                super().__init__()
                self.shared = nn.Embedding(6, 4)
                self.decoder, self.encoder = Part(decoder), Part(encoder)
                self.encoder_out = nn.Linear(4, 2)
                decoder.weight = encoder.weight = self.shared.weight

            def get_input_embeddings(self) -> nn.Module:
                return self.shared

        own, other = nn.Embedding(6, 4), nn.Embedding(6, 4)
        assert Tap(Both(other, own)).embedding is own
        assert Tap(Both(own, own)).embedding is own
        apart = Both(other, own)
        own.weight = nn.Parameter(torch.randn(6, 4))  # no longer the table that is named
        assert Tap(apart).embedding is apart.shared

    def test_a_module_without_a_table_is_refused(self):
        with pytest.raises(ValueError, match=r"a table `weight` \(words, dim\), but Dropout has none"):
            Tap(Net(), embedding="dropout")
        with pytest.raises(ValueError, match="LayerNorm"):
            Tap(Net(), embedding=nn.LayerNorm(4))

    def test_a_bag_of_words_is_refused(self):
        model = nn.Sequential(nn.EmbeddingBag(6, 4, mode="mean"), nn.Linear(4, 2))
        for named in (None, "0", model[0]):
            with pytest.raises(ValueError, match=r"EmbeddingBag gives a whole text one vector.*use nn.Embedding"):
                Tap(model, embedding=named)


class TestShift:
    def test_a_zero_shift_changes_nothing(self):
        model = Net().eval()
        for run in (
            Tap(model).run(lambda: model(IDS)),
            Tap(model).run(lambda: model(IDS), watch=True),
            Tap(model).run(lambda: model(IDS), torch.zeros(2, 3, 4)),
        ):
            assert torch.equal(run.logits, model(IDS))
            assert torch.equal(run.ids, IDS)

    def test_the_shift_is_added_to_the_vectors(self):
        model = Net().eval()
        shift = torch.randn(2, 3, 4).double()
        run = Tap(model).run(lambda: model(IDS), shift)
        torch.testing.assert_close(run.logits, model.after(model.words.weight[IDS] + shift))
        assert run.shift is not None
        assert not run.shift.requires_grad  # nobody watches, so nobody pays

    def test_the_gradient_is_that_of_finite_differences(self):
        model, step = Net().eval(), 1e-5
        found = gradient(model, lambda: model(IDS))

        def loss(shift: Tensor) -> float:
            return float(model.after(model.words.weight.detach()[IDS] + shift).detach().square().sum())

        for index in torch.cartesian_prod(torch.arange(2), torch.arange(3), torch.arange(4)):
            nudge = torch.zeros(2, 3, 4, dtype=torch.float64)
            nudge[tuple(index)] = step
            slope = (loss(nudge) - loss(-nudge)) / (2 * step)
            assert float(found[tuple(index)]) == pytest.approx(slope, abs=1e-8)

    def test_the_gradient_can_be_taken_away_from_zero(self):
        model = Net().eval()
        shift = torch.randn(2, 3, 4).double()
        run = Tap(model).run(lambda: model(IDS), shift, watch=True)
        assert run.shift is not None
        assert torch.equal(run.shift, shift)
        assert not shift.requires_grad
        here = (model.words.weight.detach()[IDS] + shift).requires_grad_()
        expected = torch.autograd.grad(model.after(here).sum(), here)[0]
        torch.testing.assert_close(torch.autograd.grad(run.logits.sum(), run.shift)[0], expected)

    def test_a_recurrent_layer_in_eval_mode_is_left_as_it_was(self):
        lstm = nn.LSTM(4, 5, num_layers=2, dropout=0.5, batch_first=True)
        model = nn.Sequential(nn.Embedding(6, 4), lstm).eval()
        during = []

        def forward(*, fail: bool = False) -> Tensor:
            during.append((lstm.training, lstm.dropout))
            if fail:
                raise ValueError("our own")
            return model(IDS)[0]

        run = Tap(model).run(forward, watch=True)
        assert during == [(True, 0.0)]  # cuDNN's runs backward only in training
        assert torch.equal(run.logits, model(IDS)[0])
        with pytest.raises(ValueError, match="our own"):
            Tap(model).run(lambda: forward(fail=True))
        assert (lstm.training, lstm.dropout) == (False, 0.5)

    def test_a_recurrent_layer_in_training_keeps_its_dropout(self):
        lstm = nn.LSTM(4, 5, num_layers=2, dropout=0.5, batch_first=True)
        model = nn.Sequential(nn.Embedding(6, 4), lstm)
        torch.manual_seed(0)
        run = Tap(model).run(lambda: model(IDS)[0])
        torch.manual_seed(0)
        assert torch.equal(run.logits, model(IDS)[0])
        assert (lstm.training, lstm.dropout) == (True, 0.5)

    def test_the_shift_itself_gets_no_gradient(self):
        model = Net().eval()
        shift = torch.randn(2, 3, 4).double().requires_grad_()
        Tap(model).run(lambda: model(IDS), shift).logits.sum().backward()
        assert shift.grad is None

    def test_a_shift_of_another_shape_is_refused(self):
        model = Net()
        with pytest.raises(ValueError, match=r"shift is \(2, 3, 1\), the vectors are \(2, 3, 4\)"):
            Tap(model).run(lambda: model(IDS), torch.zeros(2, 3, 1))

    def test_after_dropout_the_shift_is_not_dropped(self):
        model = Net().train()
        shift = torch.randn(2, 3, 4).double()
        tap = Tap(model, site="dropout")
        torch.manual_seed(1)
        moved = tap.run(lambda: model(IDS), shift).logits
        torch.manual_seed(1)
        expected = model.after(model.dropout(model.words(IDS)) + shift)
        torch.testing.assert_close(moved, expected)
        before = gradient(model, lambda: model(IDS))
        after = gradient(model, lambda: model(IDS), site="dropout")
        assert (before == 0).any()
        assert (after != 0).all()

    def test_an_embedding_called_by_keyword(self):
        class Keyword(Net):
            def forward(self, ids: Tensor) -> Tensor:
                return self.after(self.words(input=ids))

        model = Keyword()
        assert torch.equal(Tap(model).run(lambda: model(IDS), torch.zeros(2, 3, 4)).ids, IDS)

    def test_directions_live_in_the_space_of_a_scaled_embedding(self):
        class Scaled(nn.Embedding):
            def forward(self, input: Tensor) -> Tensor:
                return super().forward(input) * math.sqrt(self.embedding_dim)

        model = Net()
        model.words = Scaled(6, 4).double()
        adv = wordward.iadvt(model, epsilon=1.0, k=None)
        torch.testing.assert_close(adv.tap.table(), 2 * model.words.weight.detach())
        torch.testing.assert_close(adv.tap.words(IDS), 2 * model.words.weight.detach()[IDS])
        assert not adv.tap.table().requires_grad
        default = wordward.advt(model).epsilon
        rows = (2 * model.words.weight.detach()).tolist()
        farthest = sorted(max(math.dist(row, other) for other in rows) for row in rows)  # of six words, no tenth
        assert default == pytest.approx(0.25 * farthest[2])

    def test_directions_are_without_the_dropout_inside_an_embedding(self):
        class Dropping(nn.Embedding):
            def forward(self, input: Tensor) -> Tensor:
                return nn.functional.dropout(super().forward(input), 0.5, self.training)

        model = Net()
        model.words = Dropping(6, 4).double()
        adv = wordward.iadvt(model, epsilon=1.0, k=None)
        state = torch.get_rng_state()
        assert torch.equal(adv.tap.table(), model.words.weight.detach())
        assert torch.equal(torch.get_rng_state(), state)
        assert model.words.training


class TestLeavesNothingBehind:
    def test_hooks_come_off_and_those_of_the_user_stay(self):
        model, calls = Net(), []
        model.words.register_forward_hook(lambda *_: calls.append("mine"))
        before = hooks(model)
        tap = Tap(model, site="dropout")
        assert hooks(model) == before
        tap.run(lambda: model(IDS), watch=True)
        assert hooks(model) == before
        assert calls == ["mine"]

    def test_what_a_user_hook_makes_of_the_vectors_is_what_is_shifted(self):
        model = Net().eval()

        def triple(module: nn.Module, args: Any, output: Any) -> Tensor:
            return 3 * output

        model.words.register_forward_hook(triple)
        shift = torch.randn(2, 3, 4).double()
        moved = Tap(model).run(lambda: model(IDS), shift).logits
        torch.testing.assert_close(moved, model.after(3 * model.words.weight[IDS] + shift))

    def test_after_an_error_in_the_forward_pass(self):
        model = Net()
        before = hooks(model)

        def fails() -> Tensor:
            model(IDS)
            raise KeyError("theirs")

        with pytest.raises(KeyError, match="theirs"):
            Tap(model, site="dropout").run(fails, watch=True)
        assert hooks(model) == before

    @pytest.mark.parametrize("name", list(wordward.RECIPES))
    def test_after_a_failing_loss(self, name: str):
        model = Net()
        before = hooks(model)

        def fails(logits: Tensor, target: Tensor) -> Tensor:
            raise KeyError("theirs")

        with pytest.raises(KeyError, match="theirs"):
            wordward.adversary(model, name, k=2, loss=fails)(lambda: model(IDS), LABELS)
        assert hooks(model) == before

    def test_state_and_mode_are_as_before(self):
        model = Net().train()
        state = {name: value.clone() for name, value in model.state_dict().items()}
        wordward.ivat(model, k=2)(lambda: model(IDS))
        assert model.training
        assert list(state) == list(model.state_dict())
        assert all(torch.equal(state[name], value) for name, value in model.state_dict().items())
        assert all(parameter.grad is None for parameter in model.parameters())


class Turned(Net):
    """Reads ids as its `reader` turns them."""

    def __init__(self, reader: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.reader = reader

    def forward(self, input_ids: Tensor) -> Tensor:  # type: ignore[override]
        return self.after(self.words(self.reader(input_ids)))


class TestTurned:
    """An embedding that reads (time, batch) would have r as long as a column of the batch."""

    @pytest.mark.parametrize("by_name", [False, True])
    @pytest.mark.parametrize("copied", [False, True])
    @pytest.mark.parametrize("time", [2, 3, 4])
    def test_ids_are_refused(self, time: int, copied: bool, by_name: bool):
        model = Turned(lambda ids: ids.T.contiguous() if copied else ids.T)
        ids = torch.arange(3 * time).view(3, time) % 6
        said = rf"was given ids \(batch, time\), \(3, {time}\), but its embedding read them as \(time, batch\)"
        with pytest.raises(RuntimeError, match=said):
            Tap(model).run(lambda: model(input_ids=ids) if by_name else model(ids))

    @pytest.mark.parametrize("reader", [lambda ids: ids, torch.clone, lambda ids: ids.flip(0), lambda ids: ids.int()])
    def test_ids_read_as_they_came_or_changed_otherwise_are_not(self, reader: Callable[[Tensor], Tensor]):
        model = Turned(reader)
        alike = torch.tensor([[1, 2, 3], [2, 1, 4], [3, 4, 1]])  # and the same when turned
        for ids in (alike, torch.arange(9).view(3, 3) % 6, torch.arange(6).view(2, 3)):
            assert torch.equal(Tap(model).run(lambda ids=ids: model(ids)).ids, reader(ids))

    def test_what_is_not_ids_is_not_compared(self):
        model = Net()
        assert torch.equal(Tap(model).run(lambda: model.after(model.words(IDS))).ids, IDS)  # the model is not called

        class Named(Net):
            def forward(self, *texts: list[int], ids: Tensor | None = None) -> Tensor:  # type: ignore[override]
                return self.after(self.words(torch.tensor(texts) if ids is None else ids))

        named = Named()
        assert torch.equal(Tap(named).run(lambda: named(*IDS.tolist())).ids, IDS)
        assert torch.equal(Tap(named).run(lambda: named(ids=IDS)).ids, IDS)


class TestWhatCannotBeTapped:
    def test_an_embedding_that_does_not_run(self):
        model = Net()
        model.other = nn.Embedding(6, 4)
        with pytest.raises(RuntimeError, match="the embedding did not run"):
            Tap(model, embedding="other").run(lambda: model(IDS))

    def test_a_site_that_does_not_run(self):
        model = Net()
        model.other = nn.Dropout(0.1)
        with pytest.raises(RuntimeError, match="the site did not run"):
            Tap(model, site="other").run(lambda: model(IDS), watch=True)
        with pytest.raises(RuntimeError, match="the site did not run"):
            Tap(model, site="other").run(lambda: model(IDS), torch.zeros(2, 3, 4))
        assert Tap(model, site="other").run(lambda: model(IDS)).shift is None  # nothing was to be added

    def test_an_embedding_that_runs_twice(self):
        model = Net()
        with pytest.raises(RuntimeError, match=r"the embedding ran twice.*side by side, torch.cat\(\[a, b\], 1\)"):
            Tap(model).run(lambda: model(IDS) + model(IDS))

    def test_two_texts_side_by_side_as_the_error_says(self):
        """Each pair is a row with one label, and its r has length epsilon over both texts."""
        model = Net().eval()
        both = torch.cat([IDS, IDS.flip(0)], 1)

        def forward() -> Tensor:
            one, other = model.words(both).split(3, 1)
            return model.after(one) - model.after(other)

        out = wordward.iadvt(model, epsilon=0.5, k=2)(forward, LABELS, mask=both != 0)
        torch.testing.assert_close(out.strengths.flatten(1).norm(dim=1), torch.full((2,), 0.5).double())
        assert out.perturbation[:, :3].any()
        assert out.perturbation[:, 3:].any()

    def test_a_site_that_runs_twice(self):
        """A dropout that serves several layers: the gradient would be that of the last."""

        class Shared(Net):
            def forward(self, ids: Tensor) -> Tensor:
                return self.after(self.dropout(torch.sin(self.dropout(self.words(ids)))))

        model = Shared()
        with pytest.raises(RuntimeError, match="the site ran twice"):
            Tap(model, site="dropout").run(lambda: model(IDS), watch=True)
        with pytest.raises(RuntimeError, match="the site ran twice"):
            Tap(model, site="dropout").run(lambda: model(IDS), torch.zeros(2, 3, 4))

    def test_a_site_that_gives_no_tensor(self):
        class Pair(Net):
            def __init__(self) -> None:
                super().__init__()
                self.lstm = nn.LSTM(4, 4, batch_first=True).double()

            def forward(self, ids: Tensor) -> Tensor:
                return self.after(self.lstm(self.words(ids))[0])

        model = Pair()
        with pytest.raises(TypeError, match="the site must give one tensor of vectors, but LSTM gave tuple"):
            Tap(model, site="lstm").run(lambda: model(IDS))

    def test_ids_that_are_not_batch_by_time(self):
        model = Net()
        said = r"ids must be \(batch, time\), but the embedding read \(3,\): .*pack or reshape its vectors"
        with pytest.raises(ValueError, match=said):
            Tap(model).run(lambda: model.after(model.words(IDS[0]).unsqueeze(0)))

    @pytest.mark.parametrize("name", ["advt", "ivat", "random", "iadvt-rand"])
    def test_inference_mode_is_refused_and_no_grad_is_not(self, name: str):
        model, labels = Net().eval(), torch.tensor([0, 1])
        adv = wordward.adversary(model, name, k=2)
        with torch.inference_mode(), pytest.raises(RuntimeError, match=r"torch.inference_mode: call it"):
            adv(lambda: model(IDS), labels)
        with torch.no_grad():
            assert adv(lambda: model(IDS), labels).loss.requires_grad
        assert not any(hooks(model).values())

    def test_an_embedding_that_is_called_with_vectors(self):
        class Projection(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.linear = nn.Linear(4, 2)

            def forward(self, x: Tensor) -> Tensor:
                return self.linear(x)

        model = Projection()
        with pytest.raises(TypeError, match="a tensor of ids, but was called with Tensor"):
            Tap(model, embedding="linear").run(lambda: model(torch.ones(2, 3, 4)))

    @pytest.mark.parametrize("wrap", [SimpleNamespace, dict])
    def test_a_closure_that_returns_what_holds_logits(self, wrap: Callable[..., Any]):
        model = Net().eval()
        run = Tap(model).run(lambda: wrap(logits=model(IDS), loss=None))
        assert torch.equal(run.logits, model(IDS))

    @pytest.mark.parametrize(
        ("wrap", "said"),
        [
            (lambda logits: (logits,), r"tuple: for example `lambda: model\(ids\)\[0\]`"),
            (lambda logits: {"scores": logits}, r"dict: for example `lambda: model\(ids\)\['scores'\]`"),
        ],
    )
    def test_a_closure_that_returns_something_else(self, wrap: Callable[[Tensor], Any], said: str):
        model = Net()
        with pytest.raises(TypeError, match=rf"must return logits \(a tensor\), but returned {said}"):
            Tap(model).run(lambda: wrap(model(IDS)))


def test_a_static_graph_is_refused(alone: None):
    """Its gradients are those of one process alone, silently."""
    model = nn.parallel.DistributedDataParallel(Net(), static_graph=True)
    with pytest.raises(ValueError, match="leave static_graph off"):
        Tap(model)


class Checkpointed(Net):
    """A model part of which is computed again in the backward pass."""

    def __init__(self, part: str, reentrant: bool) -> None:
        super().__init__()
        self.part, self.reentrant = part, reentrant

    def forward(self, ids: Tensor) -> Tensor:
        def again(function: Callable[[Tensor], Tensor], value: Tensor) -> Tensor:
            return checkpoint(function, value, use_reentrant=self.reentrant)  # type: ignore[return-value]

        if self.part == "embedding":
            return self.after(self.dropout(again(self.words, ids)))
        if self.part == "site":
            return self.after(again(self.dropout, self.words(ids)))
        return again(self.after, self.dropout(self.words(ids)))


@pytest.fixture(params=["now", "before 2.8"])
def torch_version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch as it is, and without what it has since 2.8 to tell a pass that will be computed again."""
    if request.param != "now":
        monkeypatch.setattr("wordward.perturbation.hooks._top_hooks", lambda: None)


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")  # torch, of ids
@pytest.mark.usefixtures("torch_version")
class TestCheckpoint:
    """torch.utils.checkpoint computes again after the hook is gone, so the shift would be lost silently."""

    @pytest.mark.parametrize("reentrant", [False, True])
    @pytest.mark.parametrize(("part", "site"), [("embedding", "words"), ("site", "dropout")])
    def test_around_the_embedding_or_the_site_is_refused(self, part: str, site: str, reentrant: bool):
        model = Checkpointed(part, reentrant)
        tap = Tap(model, site=site)
        asked: list[dict[str, Any]] = [{"watch": True}, {"shift": torch.zeros(2, 3, 4)}]
        for arguments in asked:
            with pytest.raises(RuntimeError, match=r"inside torch\.utils\.checkpoint"):
                tap.run(lambda: model(IDS), **arguments)
        assert not any(hooks(model).values())

    @pytest.mark.parametrize("reentrant", [False, True])
    def test_around_the_embedding_is_fine_where_no_gradient_is_asked_for(self, reentrant: bool):
        model = Checkpointed("embedding", reentrant).eval()
        if not reentrant:
            assert Tap(model).run(lambda: model(IDS)).logits.requires_grad
        with torch.no_grad():
            shift = torch.randn(2, 3, 4).double()
            moved = Tap(model).run(lambda: model(IDS), shift).logits
            torch.testing.assert_close(moved, model.after(model.words.weight[IDS] + shift))

    @pytest.mark.parametrize(
        ("part", "site", "reentrant"),
        [("later", "words", False), ("later", "words", True), ("embedding", "dropout", False)],
    )
    def test_away_from_the_site_gives_the_same_gradients(self, part: str, site: str, reentrant: bool):
        model = Checkpointed(part, reentrant).eval()
        plain = Net().eval()
        plain.load_state_dict(model.state_dict())
        shift = torch.randn(2, 3, 4).double()
        found = []
        for net in (model, plain):
            run = Tap(net, site=site).run(lambda net=net: net(IDS), shift, watch=True)
            run.logits.square().sum().backward()
            assert run.shift is not None
            found.append([run.shift.grad, *(parameter.grad for parameter in net.parameters())])
        torch.testing.assert_close(found[0], found[1])

    def test_a_user_of_other_saved_tensor_hooks_is_left_alone(self):
        model = Net().eval()
        with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
            found = gradient(model, lambda: model(IDS))
        torch.testing.assert_close(found, gradient(model, lambda: model(IDS)))


def test_a_gradient_too_small_for_half_precision_is_found() -> None:
    shift = torch.zeros(1, 2, 3, dtype=torch.float16, requires_grad=True)
    found = gradient_at(1e-8 * shift.float().sum(), shift)  # float16 has nothing below 6e-8
    torch.testing.assert_close(found, torch.full((1, 2, 3), 1e-8), rtol=1e-3, atol=0)


def test_after_evaluating_each_part_is_as_it_was() -> None:
    model = nn.Sequential(nn.Dropout(), nn.Dropout().eval())
    with evaluating(model):
        assert not any(part.training for part in model.modules())
    assert [part.training for part in model.modules()] == [True, True, False]


def test_a_gradient_is_that_of_the_loss_to_the_last_digit() -> None:
    """However it is kept from vanishing."""
    for dtype in (torch.float32, torch.float64):
        shift = torch.randn(2, 3, 4, dtype=dtype, requires_grad=True)
        loss = (shift.sin() * torch.randn(4, dtype=dtype)).sum() / 3
        (expected,) = torch.autograd.grad(loss, shift, retain_graph=True)
        assert torch.equal(gradient_at(loss, shift, retain_graph=True), expected)
        gradient_at(loss, shift)
        with pytest.raises(RuntimeError, match="second time"):  # its graph is not kept
            gradient_at(loss, shift)


def test_a_loss_of_other_weights_alone_has_no_direction() -> None:
    shift, weight = torch.zeros(1, 2, 3, requires_grad=True), torch.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="the loss does not depend on the embedding's vectors"):
        gradient_at(weight.sum(), shift)


def test_chance_is_noted_only_where_it_is_to_be_repeated() -> None:
    model = Net()
    assert Tap(model).run(lambda: model(IDS)).chance is None
    tap = Tap(model, same_dropout=True)
    first = tap.run(lambda: model(IDS))
    assert first.chance is not None
    assert torch.equal(tap.run(lambda: model(IDS), like=first).logits, first.logits)
    assert not torch.equal(tap.run(lambda: model(IDS)).logits, first.logits)


@pytest.mark.parametrize("kind", ["plain", "scaled", "hook", "pre-hook", "max_norm", "half"])
def test_rows_are_the_words_of_their_ids_and_not_copied_where_that_can_be(kind: str) -> None:
    class Scaled(nn.Embedding):
        def forward(self, input: Tensor) -> Tensor:
            return 3 * super().forward(input)

    model = Net()
    if kind == "scaled":
        model.words = Scaled(6, 4).double()
    elif kind == "max_norm":
        model.words.max_norm = 0.5
    elif kind == "half":
        model.half()
    elif kind == "hook":
        model.words.register_forward_hook(lambda *given: 2 * given[-1])  # type: ignore[operator]
    elif kind == "pre-hook":
        model.words.register_forward_pre_hook(lambda module, args: (5 - args[0],))
    tap = Tap(model)
    found = tap.rows(2, 5)
    assert torch.equal(found, tap.words(torch.arange(2, 5)))
    assert torch.equal(found, tap.table()[2:5])
    assert not found.requires_grad
    assert (found.data_ptr() == model.words.weight[2:5].data_ptr()) == (kind == "plain")


def test_an_embedding_that_gives_more_than_vectors_is_refused() -> None:
    class Pair(nn.Embedding):
        def forward(self, input: Tensor) -> Any:
            return super().forward(input), input

    model = Net()
    model.words = Pair(6, 4).double()
    with pytest.raises(TypeError, match="must give one tensor of vectors, but Pair gave tuple"):
        Tap(model).words(IDS)


def test_logits_are_found_in_what_models_return() -> None:
    logits, loss = torch.randn(2, 3), torch.tensor(0.5)
    held: list[Any] = [logits, (logits,), [loss, logits], (None, "x", logits), SimpleNamespace(logits=logits, loss=1)]
    held += [{"logits": logits}, {"logits": (loss, logits)}, SimpleNamespace(logits=(loss, logits))]
    for output in held:
        assert logits_of(output) is logits
    one_each = torch.randn(2)  # one number for each text
    assert logits_of((loss, one_each)) is one_each
    for output, said in (
        ((loss, None), r"returned tuple: for example `lambda: model\(ids\)\[0\]`"),
        ({"scores": 1}, r"returned dict: for example `lambda: model\(ids\)\['scores'\]`"),
        ({}, r"model\(ids\)\['logits'\]"),
        (None, "returned NoneType"),
    ):
        with pytest.raises(TypeError, match=said):
            logits_of(output)
    with pytest.raises(TypeError, match="returned tuple"):
        logits_of((logits,), tuples=False)
