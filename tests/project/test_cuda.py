"""The same on a GPU: methods, mixed precision, explanations in eval mode."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from reviews import reviews

from wordward.config.settings import (
    DataSettings,
    MethodSettings,
    ModelSettings,
    PretrainConfig,
    TrainConfig,
    TrainingSettings,
    filled,
)
from wordward.explain.explainer import explain
from wordward.models import Classifier, LanguageModel, Tagger
from wordward.perturbation.api import adversary
from wordward.perturbation.nearest import GROUP, nearest
from wordward.perturbation.recipes import RECIPES, parse_methods
from wordward.perturbation.space import HELD, Neighbors
from wordward.perturbation.tap import Tap, gradient_at
from wordward.runs.opening import load_run
from wordward.runs.scoring import probabilities
from wordward.runs.word_run import adversary_of
from wordward.text.corpus import AT_ONCE, Corpus, Stream, evaluation_batches
from wordward.text.vocabulary import SPECIALS, Vocabulary
from wordward.train.graphed import GraphedWindow
from wordward.train.pretrainer import Pretrainer
from wordward.train.pretraining import pretrain
from wordward.train.step import Stepper
from wordward.train.training import train
from wordward.train.updater import Updater

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
SIZES = ModelSettings(dim=12, hidden=16, head=8, word_dropout=0.0, head_dropout=0.0)


@pytest.mark.parametrize("kind", [Classifier, Tagger])
@pytest.mark.parametrize("name", RECIPES)
def test_perturbations_equal_those_of_the_cpu(name: str, kind: type[Classifier] | type[Tagger]) -> None:
    torch.manual_seed(0)
    model = kind(40, 3, SIZES).double()
    ids = torch.randint(3, 40, (5, 7))
    ids[1, 4:] = 0
    labels = torch.randint(0, 3, (5, 7) if kind is Tagger else (5,))
    width = {"free": 12, "words": 4}[str(RECIPES[name].space)]
    if name == "ivat":
        width = 12
    noise = torch.randn(5, 7, width, dtype=torch.float64)
    made = adversary(model, name, epsilon=2.0, k=4, refresh="batch")
    found = []
    for device in ("cpu", "cuda"):  # the same adversary follows its model to another device
        model.to(device)
        here = ids.to(device)
        outcome = made(lambda here=here: model(here), labels.to(device), mask=here != 0, noise=noise.to(device))
        found.append((outcome.perturbation.cpu(), outcome.loss.detach().cpu()))
    torch.testing.assert_close(found[0], found[1])


@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize("method", ["baseline", "iadvt", "vat", "iadvt+ivat"])
def test_every_precision_learns(method: str, precision: str, csv_file: Path, tmp_path: Path) -> None:
    config = TrainConfig(
        method=method,
        data=DataSettings(train=str(csv_file)),
        model=replace(SIZES, word_dropout=0.1),
        perturbation=MethodSettings(epsilon=1.0, k=3),
        training=TrainingSettings(epochs=5, learning_rate=0.02, device="cuda", precision=precision),  # type: ignore[arg-type]
    )
    assert train(config, tmp_path / "run", quiet=True)["dev"]["error"] < 0.1
    run = load_run(tmp_path / "run", device="cuda")
    (found,) = explain(run, reviews(1, seed=2))
    assert found.strongest is not None
    assert found.strongest.pulls[0].relative == 1.0
    there, here = (
        load_run(tmp_path / "run", device=name).predict(["the film was dull"])[0] for name in ("cuda", "cpu")
    )
    assert there.probabilities["bad"] == pytest.approx(here.probabilities["bad"], abs=1e-3)


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("name", ["advt", "vat"])
def test_the_passes_over_a_batch_drop_the_same(name: str, same: bool) -> None:
    model = Classifier(40, 3, replace(SIZES, word_dropout=0.5)).cuda()
    ids, labels = torch.randint(3, 40, (5, 7)).cuda(), torch.randint(0, 3, (5,)).cuda()
    dropped: list[torch.Tensor] = []
    model.words.dropout.register_forward_hook(lambda *args: dropped.append(args[-1] == 0))
    made = adversary(model, name, epsilon=2.0, same_dropout=same)
    with torch.autocast("cuda", dtype=torch.float16):
        made(lambda: model(ids), labels)
    assert len(dropped) == {"advt": 2, "vat": 3}[name]
    assert all(torch.equal(each, dropped[0]) for each in dropped[1:]) == same


def test_directions_lose_the_same_numbers_in_both_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many are computed at once: <D a, v> = <a, D^T v>, and the same again from the same seed."""
    table = torch.randn(40, 12, dtype=torch.float64, device="cuda")
    ids, candidates = torch.randint(40, (5, 7)).cuda(), torch.randint(40, (5, 7, 4)).cuda()
    v, a = torch.randn(5, 7, 12).double().cuda(), torch.randn(5, 7, 4).double().cuda()
    found = []
    for at_once in (1, 3, 4):
        monkeypatch.setitem(HELD, "cuda", at_once * 5 * 7 * 12)
        torch.manual_seed(1)
        space = Neighbors(ids, candidates, table.__getitem__, dropout=0.5)
        torch.testing.assert_close((space.vectors(a) * v).sum(), (a * space.strengths(v)).sum())
        found.append(space.vectors(a))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
    assert not torch.equal(found[0], Neighbors(ids, candidates, table.__getitem__).vectors(a))


@pytest.mark.parametrize("name", ["advt", "vat"])
def test_so_do_those_of_a_model_whose_table_is_elsewhere(name: str) -> None:
    class Apart(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.out = torch.nn.Embedding(40, 12), torch.nn.Linear(12, 3, device="cuda")

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.out(torch.nn.functional.dropout(self.table(ids).cuda().mean(1))).cpu()

    model, ids, labels = Apart(), torch.randint(3, 40, (5, 7)), torch.randint(0, 3, (5,))
    found = adversary(model, name, epsilon=1e-6, same_dropout=True)(lambda: model(ids), labels)
    torch.testing.assert_close(found.perturbed, found.clean, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", ["advt", "vat"])
def test_so_do_those_between_layers_of_cudnn(name: str) -> None:
    class Layers(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.out = torch.nn.Embedding(40, 12), torch.nn.Linear(16, 3)
            self.rnn = torch.nn.GRU(12, 16, 2, batch_first=True, dropout=0.5)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.out(self.rnn(self.table(ids))[0].mean(1))

    model, labels = Layers().cuda(), torch.randint(0, 3, (5,)).cuda()
    ids = torch.randint(3, 40, (5, 7)).cuda()
    model(ids)  # a pass of its own, as that of the label loss beside VAT
    found = adversary(model, name, epsilon=1e-6, same_dropout=True)(lambda: model(ids), labels)
    torch.testing.assert_close(found.perturbed, found.clean, rtol=0, atol=1e-3)


@pytest.mark.parametrize("kind", [Classifier, Tagger])
def test_gradients_in_eval_mode_are_those_of_the_cpu_by_cudnn(kind: type[Classifier] | type[Tagger]) -> None:
    torch.manual_seed(0)
    model = kind(40, 3, replace(SIZES, word_dropout=0.5)).eval()
    ids, found, nodes = torch.randint(3, 40, (5, 7)), {}, set()
    for device in ("cpu", "cuda"):
        model.to(device)
        here = ids.to(device)
        run = Tap(model).run(lambda here=here: model(here), watch=True)
        walk = [run.logits.grad_fn]
        while walk:
            node = walk.pop()
            if node is not None and device == "cuda":
                nodes.add(node.name())
                walk += [following for following, _ in node.next_functions]
        found[device] = gradient_at(run.logits.square().sum(), run.shift).cpu()
    torch.testing.assert_close(found["cuda"], found["cpu"], rtol=1e-2, atol=1e-4)
    assert any("Cudnn" in name for name in nodes), nodes


@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
def test_language_model_on_the_gpu(precision: str, csv_file: Path, tmp_path: Path) -> None:
    reading = PretrainConfig(
        texts=(str(csv_file),),
        epochs=4,
        streams=8,
        window=10,
        learning_rate=0.02,
        precision=precision,  # type: ignore[arg-type]
        device="cuda",
        model=SIZES,
    )
    assert pretrain(reading, tmp_path / "lm", quiet=True)["perplexity"] < 10


@pytest.mark.parametrize(("precision", "close"), [("fp32", 1e-5), ("fp16", 3e-3)])
def test_a_graph_computes_what_its_pass_does(precision: str, close: float) -> None:
    """Also where a later window has more rare words than there was room for."""
    torch.backends.cuda.matmul.allow_tf32 = False
    models = [LanguageModel(2_500, SIZES).cuda() for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    updaters = [Updater(model, torch.device("cuda"), clip=5.0, precision=precision) for model in models]
    graphed, state, kept = GraphedWindow(models[1], updaters[1]), None, None
    text = torch.randint(1, 2_500, (5, 8, 21))
    text[0], text[3] = 1 + text[0] % 1_999, 2_000 + text[3] % 500
    rooms = set()
    for ids, targets in zip(text[..., :-1].contiguous(), text[..., 1:].contiguous(), strict=True):
        groups = models[0].softmax.groups(targets.flatten())
        assert graphed.fits(ids)
        for updater in updaters:
            updater.begin(0.01)
        with updaters[0].autocast():
            each, after = models[0](ids.cuda(), targets.cuda(), state, [rows.cuda() for rows in groups])
        loss = updaters[0].finish(updaters[0].backward(each.mean()))
        state = tuple(part.detach() for part in after)
        fast, kept = graphed(ids, targets, groups, kept)
        rooms.add(len(graphed._inputs[2]))
        torch.testing.assert_close(updaters[1].finish(fast), loss, rtol=close, atol=close)
    for one, other in zip(models[0].parameters(), models[1].parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=10 * close, atol=10 * close)
    assert len(rooms) > 1
    assert not graphed.fits(text[0, :, :-2])


def test_the_nearest_of_very_many_words_are_those_of_the_cpu() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    table = torch.randn(10 * 8 * GROUP + 37, 12)
    every, some = torch.arange(len(table)), torch.arange(5, 9_000, 31)
    here = nearest(some, table, 10, allowed=every, metric="cosine")
    there = nearest(some.cuda(), table.cuda(), 10, allowed=every.cuda(), metric="cosine")
    unit = torch.nn.functional.normalize(table, dim=-1)
    chosen = [(unit[some].unsqueeze(1) * unit[found.cpu()]).sum(-1) for found in (here, there)]
    torch.testing.assert_close(*chosen)
    assert (here == there.cpu()).float().mean() > 0.99  # but for words that are equally near


def test_a_gpu_scores_many_texts_at_once_as_it_does_few() -> None:
    rows = [np.arange(3, 3 + length % 37 + 1, dtype=np.int32) for length in range(150)]
    rows.append(np.full(AT_ONCE // 100, 5, dtype=np.int32))
    model = Classifier(45, 3, SIZES)
    sizes = [len(index) for index in evaluation_batches(Corpus(rows).lengths, 32, torch.device("cuda"))]
    assert sizes == [128, 23]
    here = probabilities(model, Corpus(rows), torch.device("cpu"))
    there = probabilities(model.cuda(), Corpus(rows), torch.device("cuda"))
    np.testing.assert_allclose(np.stack(there), np.stack(here), atol=1e-3)


@pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.mem_get_info()[0] < 60 << 30,
    reason="60 GiB of a GPU are not free",
)
def test_many_very_long_texts_at_once_are_read_as_each_alone() -> None:
    torch.manual_seed(1)
    model = Classifier(50, 2, ModelSettings(word_dropout=0.0, head_dropout=0.0)).cuda()
    ids = torch.randint(len(SPECIALS), 50, (96, 6200), device="cuda")

    def read(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The last text's first logit, and its gradient for the words."""
        with torch.autocast("cuda", torch.float16):
            logit = model(rows)[-1, 0].float()
        return logit.detach(), torch.autograd.grad(logit, model.words.table.weight)[0]

    for many, alone in zip(read(ids), read(ids[-1:]), strict=True):
        torch.testing.assert_close(many, alone, rtol=1e-2, atol=1e-3)


def test_a_batch_that_the_gpu_does_not_hold_is_read_in_parts() -> None:
    device = torch.device("cuda")
    model = Classifier(40, 2, ModelSettings()).to(device)
    (method,) = parse_methods("vat")
    words = Vocabulary((*SPECIALS, *map(str, range(37))), np.ones(40))
    stepper = Stepper(model, [adversary_of(method, model, words, 1)], filled(TrainingSettings(device="cuda")), device)
    few, many = (
        Corpus([np.full(2000, 5, np.int32)] * count, [0, 1] * (count // 2)).batch(np.arange(count), device)
        for count in (2, 128)
    )
    stepper(few, few)  # makes Adam's state
    torch.cuda.empty_cache()
    room = torch.cuda.memory_reserved() + (3 << 30)
    torch.cuda.set_per_process_memory_fraction(room / torch.cuda.get_device_properties(device).total_memory)
    try:
        stepper(few, many)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    stepper.updater.refuse_broken(str)
    assert few.ids.numel() <= stepper.fits < many.ids.numel()


@pytest.mark.parametrize("method", ["baseline", *RECIPES, "iadvt+ivat"])
@pytest.mark.parametrize("tagging", [False, True])
def test_a_step_never_waits_for_the_device(method: str, tagging: bool) -> None:
    device = torch.device("cuda")
    rows = [np.arange(3, 3 + length, dtype=np.int32) for length in (5, 9, 12, 7) * 4]
    labels = [np.zeros(len(row), np.int64) for row in rows] if tagging else [0, 1] * 8
    data = Corpus(rows, labels)
    model = (Tagger if tagging else Classifier)(40, 2, SIZES).to(device)
    settings = filled(TrainingSettings(precision="fp16", device="cuda", averaging=0.999))
    made = [
        adversary_of(each, model, Vocabulary((*SPECIALS, *map(str, range(37))), np.ones(40)), 1)
        for each in parse_methods(method)
    ]
    stepper = Stepper(model, made, settings, device)
    batches = Stream(data, 4, seed=(0,))
    stepper(batches.next(device), batches.next(device))  # searches for nearest words, makes Adam's state
    with _waiting_is_an_error():
        for _ in range(2):
            stepper(batches.next(device), batches.next(device))
    stepper.updater.refuse_broken(str)


def test_a_language_model_step_never_waits_for_the_device() -> None:
    text = np.random.default_rng(0).integers(3, 3_000, 8 * 61).astype(np.int32)
    words = Vocabulary((*SPECIALS, *map(str, range(2_997))), np.ones(3_000))
    reading = PretrainConfig(streams=8, window=10, device="cuda", model=SIZES)
    trainer = Pretrainer(reading, words, [text], [text])
    windows, state = trainer.train_reader.windows(None), None
    for _ in range(2):
        _, state = trainer.step(*next(windows), state)
    with _waiting_is_an_error():
        for ids, targets in windows:
            _, state = trainer.step(ids, targets, state)


@contextmanager
def _waiting_is_an_error() -> Iterator[None]:
    try:
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # "a prototype feature"
            torch.cuda.set_sync_debug_mode("error")
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")
