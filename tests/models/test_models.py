"""The models compute the paper's equations, worked here gate by gate."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wordward.config.settings import ModelSettings
from wordward.models import LSTM, NONE, AdaptiveSoftmax, Classifier, LanguageModel, Tagger, aligned
from wordward.text.vocabulary import PAD

SETTINGS = ModelSettings(dim=3, hidden=4, head=5)
pytestmark = pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")  # torch, on a CPU without bfloat16


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def shaken(model: nn.Module) -> nn.Module:
    """In double precision, eval mode, with no parameter at a special value."""
    model.double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def lstm_by_hand(lstm: nn.LSTM, vectors: list[Tensor]) -> list[Tensor]:
    """h^(t) for each t, one gate and one unit after the other."""
    parts = dict(lstm.named_parameters())
    w, u = parts["weight_ih_l0"].detach(), parts["weight_hh_l0"].detach()
    bias = (parts["bias_ih_l0"] + parts["bias_hh_l0"]).detach()
    n = lstm.hidden_size
    h, c, states = [0.0] * n, [0.0] * n, []
    for x in vectors:
        z = [
            float(sum(w[row] * x)) + sum(float(u[row, j]) * h[j] for j in range(n)) + float(bias[row])
            for row in range(4 * n)
        ]
        i, f, o = ([1 / (1 + math.exp(-z[gate * n + j])) for j in range(n)] for gate in (0, 1, 3))
        g = [math.tanh(z[2 * n + j]) for j in range(n)]
        c = [f[j] * c[j] + i[j] * g[j] for j in range(n)]
        h = [o[j] * math.tanh(c[j]) for j in range(n)]
        states.append(torch.tensor(h, dtype=torch.float64))
    return states


def head_by_hand(head: nn.Module, state: Tensor) -> Tensor:
    """Linear, ReLU, Linear."""
    first, last = (layer for layer in head.children() if isinstance(layer, nn.Linear))
    return last.weight @ (first.weight @ state + first.bias).clamp(min=0) + last.bias


def test_the_classifier_is_an_lstm_and_a_feed_forward_net_on_its_last_state():
    model = shaken(Classifier(9, 2, SETTINGS))
    assert isinstance(model, Classifier)
    text = [3, 7, 1, 3]
    vectors = [model.words.table.weight[word].detach() for word in text]
    expected = head_by_hand(model.head, lstm_by_hand(model.lstm, vectors)[-1])
    torch.testing.assert_close(model(torch.tensor([text]))[0], expected)


def test_the_tagger_reads_both_ways():
    model = shaken(Tagger(9, 3, SETTINGS))
    assert isinstance(model, Tagger)
    text = [3, 7, 1, 3, 5]
    vectors = [model.words.table.weight[word].detach() for word in text]
    ahead = lstm_by_hand(model.lstm, vectors)
    back = lstm_by_hand(model.backward_lstm, vectors[::-1])[::-1]
    logits = model(torch.tensor([text]))[0]
    assert logits.shape == (5, 3)
    for t in range(5):
        torch.testing.assert_close(logits[t], head_by_hand(model.head, torch.cat([ahead[t], back[t]])))


@pytest.mark.parametrize("kind", [Classifier, Tagger])
@pytest.mark.parametrize("told", [False, True])
def test_a_text_alone_and_in_a_padded_batch_are_the_same(kind: type[Classifier | Tagger], told: bool):
    model = shaken(kind(9, 2, SETTINGS))
    texts = [[3, 7, 1, 3], [2], [5, 5, 6]]
    ids = torch.full((3, 6), PAD)
    for row, text in enumerate(texts):
        ids[row, : len(text)] = torch.tensor(text)
    together = model(ids, ids != PAD) if told else model(ids)
    for row, text in enumerate(texts):
        alone = model(torch.tensor([text]))[0]
        here = together[row] if kind is Classifier else together[row, : len(text)]
        torch.testing.assert_close(here, alone)


@pytest.mark.parametrize("kind", [Classifier, Tagger])
def test_the_mask_is_believed_over_the_padding_word(kind: type[Classifier | Tagger]):
    model = shaken(kind(9, 2, SETTINGS))
    ids = torch.tensor([[3, 4, 5, 6]])
    mask = torch.tensor([[True, True, False, False]])
    short = model(ids[:, :2])
    torch.testing.assert_close(model(ids, mask)[:, : short.shape[1]], short)


@pytest.mark.parametrize("kind", [Classifier, Tagger])
def test_a_text_without_words_gives_numbers(kind: type[Classifier | Tagger]):
    assert kind(9, 2, SETTINGS)(torch.zeros(2, 3, dtype=torch.long)).isfinite().all()


@pytest.mark.parametrize("kind", [Classifier, Tagger])
def test_dropout_is_on_the_words_and_in_the_head(kind: type[Classifier | Tagger]):
    settings = ModelSettings(dim=3, hidden=4, head=5, word_dropout=0.25, head_dropout=0.75)
    model = kind(9, 2, settings)
    dropouts = {name: m.p for name, m in model.named_modules() if isinstance(m, nn.Dropout)}
    assert dropouts == {"words.dropout": 0.25, "head.2": 0.75}
    ids = torch.tensor([[3, 4, 5]])
    assert len({tuple(model(ids).flatten().tolist()) for _ in range(20)}) > 2
    vectors = model.words(ids)
    table = model.words.table(ids)
    assert ((vectors == 0) | torch.isclose(vectors, table / 0.75)).all()


@pytest.mark.parametrize("size", [6, 2_050, 10_050])
def test_the_language_model_scores_each_next_word_by_its_log_probability(size: int):
    model = LanguageModel(size, ModelSettings(dim=3, hidden=16)).eval()
    ids, targets = torch.randint(size, (2, 5)), torch.randint(size, (2, 5))
    targets[0] = torch.tensor([0, 1, size - 1, size - 2, size // 2])
    with torch.no_grad():
        losses, _ = model(ids, targets)
        for row in range(2):
            vectors = [model.words.table.weight[word].double() for word in ids[row]]
            states = torch.stack(lstm_by_hand(model.lstm, vectors)).float()
            table = model.softmax.log_prob(states)
            torch.testing.assert_close(table.exp().sum(-1), torch.ones(5))
            expected = torch.stack([-table[t, targets[row, t]] for t in range(5)])
            torch.testing.assert_close(losses[row], expected, atol=1e-5, rtol=1e-5)


def test_the_language_model_goes_on_from_its_state():
    model = LanguageModel(9, ModelSettings(dim=3, hidden=8)).eval()
    ids, targets = torch.randint(9, (2, 6)), torch.randint(9, (2, 6))
    whole, _ = model(ids, targets)
    first, state = model(ids[:, :4], targets[:, :4])
    rest, _ = model(ids[:, 4:], targets[:, 4:], state)
    torch.testing.assert_close(torch.cat([first, rest], 1), whole)


def test_the_language_model_starts_small_and_drops_words_and_states():
    model = LanguageModel(2_050, ModelSettings(dim=3, hidden=16, word_dropout=0.5))
    for parameter in model.parameters():
        assert 0.05 < float(parameter.detach().abs().max()) <= 0.1
    ids = torch.randint(2_050, (2, 6))
    assert isinstance(model.words.dropout, nn.Dropout)
    for still, dropped in ((model.words.dropout, model.dropout), (model.dropout, model.words.dropout)):
        still.p, dropped.p = 0.0, 0.5
        assert not torch.equal(model(ids, ids)[0], model(ids, ids)[0])


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("outputs", [1, 7, 8, 21])
def test_a_product_of_aligned_size_is_the_layers(outputs: int, bias: bool) -> None:
    layer = torch.nn.Linear(5, outputs, bias=bias).double()
    states, weights = torch.randn(6, 5, dtype=torch.float64), torch.randn(6, outputs, dtype=torch.float64)
    found = []
    for scores in (layer(states), aligned(layer, states)):
        (scores * weights).sum().backward()
        found.append((scores.detach(), [p.grad.clone() for p in layer.parameters()]))  # type: ignore[union-attr]
        layer.zero_grad()
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=1e-12)
    assert aligned(layer, states).stride(0) % 8 == 0  # of the whole product


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("size", "cutoffs", "head"),
    [(6, [2, 5], 4), (9, [6, 8], 8), (2_050, [50, 2_000], 52), (10_050, [50, 2_000], 52), (2_050, [55], 56)],
)
def test_the_adaptive_softmax_has_the_loss_and_gradients_of_pytorchs(
    size: int, cutoffs: list[int], head: int, bias: bool
):
    """Also where groups are filled up, to a room that is larger than there are targets."""
    model = AdaptiveSoftmax(16, size, cutoffs, div_value=2.0, head_bias=bias).double()
    assert len(model.head.weight) == head
    states = torch.randn(40, 16, dtype=torch.float64, requires_grad=True)
    targets = torch.cat([torch.randint(size, (36,)), torch.tensor([0, 1, size - 1, size - 2])])
    inputs = [states, *model.parameters()]
    theirs = -model(states, targets).output
    exact = model.groups(targets)
    filled = [[F.pad(rows, (0, more), value=NONE) for rows in exact] for more in (3, 90)]
    for groups in (None, exact, *filled):
        ours = model.loss(states, targets, groups)
        torch.testing.assert_close(ours, theirs)
        torch.testing.assert_close(
            torch.autograd.grad(ours.sum(), inputs),
            torch.autograd.grad(theirs.sum(), inputs, retain_graph=True),
        )


def test_the_language_model_runs_under_autocast_and_loses_in_single_precision():
    model = LanguageModel(9, ModelSettings(dim=3, hidden=8)).eval()
    model.lstm = Recurrent()  # type: ignore[assignment]
    ids = torch.randint(9, (2, 6))
    plain, _ = model(ids, ids)
    with torch.autocast("cpu", torch.bfloat16):
        mixed, _ = model(ids, ids)
    assert mixed.dtype == torch.float32
    torch.testing.assert_close(mixed, plain, atol=0.05, rtol=0.05)


def test_the_adaptive_softmax_of_a_half_precision_model_loses_in_single_precision():
    model = AdaptiveSoftmax(16, 50, [10, 30]).bfloat16()
    states, targets = torch.randn(40, 16).bfloat16(), torch.randint(50, (40,))
    half = model.loss(states, targets)
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, model.float().loss(states.float(), targets), rtol=0, atol=0.05)


class Recurrent(nn.Module):
    """Stands for an LSTM, of which bfloat16 on a CPU has none everywhere."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 8)

    def forward(self, vectors: Tensor, state: None) -> tuple[Tensor, None]:
        return self.linear(vectors), state


@pytest.mark.parametrize("kind", [Classifier, Tagger])
def test_a_fresh_table_has_unit_deviation_so_that_epsilon_means_what_the_paper_says(
    kind: type[Classifier | Tagger],
):
    table = kind(2_000, 2, SETTINGS).words.table
    assert float(table.weight.detach().std()) == pytest.approx(1.0, abs=0.05)
    assert table.padding_idx == PAD
    assert not table.weight[PAD].any()


@pytest.mark.parametrize("kind", [Classifier, Tagger])
def test_lstms_start_orthogonal_and_remembering(kind: type[Classifier | Tagger]):
    lstms = [module for module in kind(9, 2, SETTINGS).modules() if isinstance(module, nn.LSTM)]
    assert len(lstms) == (1 if kind is Classifier else 2)
    for lstm in lstms:
        parts = dict(lstm.named_parameters())
        bias = (parts["bias_ih_l0"] + parts["bias_hh_l0"]).chunk(4)
        assert [gate.tolist() for gate in bias] == [[0.0] * 4, [1.0] * 4, [0.0] * 4, [0.0] * 4]
        for gate in parts["weight_hh_l0"].chunk(4):
            torch.testing.assert_close(gate @ gate.T, torch.eye(4))
        for gate in parts["weight_ih_l0"].chunk(4):
            torch.testing.assert_close(gate.T @ gate, torch.eye(3))


@pytest.mark.parametrize("steps", [1, 3, 7, 8])
def test_an_lstm_in_pieces_of_time_is_the_whole(steps: int):
    torch.manual_seed(3)
    lstm = LSTM(4, 5, batch_first=True).double()
    vectors = torch.randn(2, 7, 4, dtype=torch.float64, requires_grad=True)
    state = (torch.randn(1, 2, 5, dtype=torch.float64), torch.randn(1, 2, 5, dtype=torch.float64))
    weights = torch.randn(2, 7, 5, dtype=torch.float64)

    def passed(states: Tensor, after: tuple[Tensor, Tensor]) -> list[Tensor]:
        loss = (weights * states).sum() + after[1].square().sum()
        return [states, *after, *torch.autograd.grad(loss, [vectors, *lstm.parameters()])]

    whole, pieces = passed(*lstm(vectors, state)), passed(*lstm.in_pieces(vectors, steps, state))
    for one, other in zip(whole, pieces, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
