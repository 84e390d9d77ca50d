"""Training: every method learns, runs go on as if never stopped, bad input is refused with nothing lost."""

import errno
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from reviews import reviews, tagged, write_conll, write_csv
from safetensors import SafetensorError
from small_training import SMALL, config, lines, weights

from wordward.config.settings import (
    DataSettings,
    MethodSettings,
    PretrainConfig,
    TextSettings,
    TrainConfig,
)
from wordward.config.toml import from_toml, to_toml
from wordward.datasets import DataError, Example, MissingError
from wordward.explain.explainer import explain
from wordward.explain.swaps import apply
from wordward.models import Classifier
from wordward.perturbation.recipes import RECIPES
from wordward.runs import checkpoint, claiming, run_folder
from wordward.runs.opening import load_run
from wordward.runs.scoring import probabilities
from wordward.support import files
from wordward.support.device import attention, pick_device
from wordward.text.cache import encode_splits
from wordward.text.corpus import Batch
from wordward.text.pack import write_pack
from wordward.train.building import adversaries, build
from wordward.train.data import prepare
from wordward.train.pretraining import pretrain
from wordward.train.step import Stepper
from wordward.train.sweep import train_sweep
from wordward.train.training import DivergedError, Trainer, train


@pytest.fixture
def more_reviews(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "more.csv", reviews(240))


@pytest.fixture
def more_tagged(tmp_path: Path) -> Path:
    return write_conll(tmp_path / "more.conll", tagged(160))


@pytest.mark.parametrize("method", ["baseline", *RECIPES, "iadvt+ivat"])
def test_each_method_learns_to_classify(method: str, more_reviews: Path, tmp_path: Path) -> None:
    result = train(config(more_reviews, method, epochs=3), tmp_path / "run", quiet=True)
    assert result["dev"]["error"] < 0.1
    run = load_run(tmp_path / "run", device="cpu")
    fresh = reviews(100, seed=9)
    assert run.evaluate(fresh).scores["error"].value < 0.1


@pytest.mark.parametrize("method", ["baseline", "advt", "vat", "iadvt", "ivat"])
def test_each_method_learns_to_tag(method: str, more_tagged: Path, tmp_path: Path) -> None:
    result = train(config(more_tagged, method, epochs=4), tmp_path / "run", quiet=True)
    assert result["criterion"] == "f0.5"
    assert result["dev"]["f0.5"] > 0.95
    run = load_run(tmp_path / "run", device="cpu")
    assert run.config.training.positive == "i"
    measured = run.evaluate(tagged(60, seed=5)).scores
    assert measured["f0.5"].value > 0.95
    tokens = run.predict(["the film are lovely"])[0].tokens
    assert [token.label for token in tokens] == ["c", "c", "i", "c"]


def test_reloaded_run_predicts_the_same(csv_file: Path, tmp_path: Path) -> None:
    train(config(csv_file), tmp_path / "run", quiet=True)
    first, second = (load_run(tmp_path / "run", device="cpu").predict(["the film was dull"]) for _ in range(2))
    assert first == second
    assert first[0].label == "bad"
    assert sum(first[0].probabilities.values()) == pytest.approx(1, abs=1e-5)


def last(folder: Path) -> dict[str, torch.Tensor]:
    """Weights, optimiser, random states and average of the last checkpoint."""
    found = checkpoint.load_checkpoint(folder)
    assert found is not None
    return found[0]


@pytest.mark.parametrize(
    ("method", "averaging", "dropout"),
    [("iadvt", 0.0, 0.0), ("iadvt", 0.9, 0.5), ("iadvt+ivat", 0.0, 0.5), ("random-kl", 0.9, 0.0)],
)
def test_continued_run_equals_the_uninterrupted_one(
    method: str, averaging: float, dropout: float, csv_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where numbers of the directions are dropped."""
    settings = config(csv_file, method, checkpoint_steps=3, epochs=3, averaging=averaging)
    settings = replace(settings, perturbation=replace(settings.perturbation, direction_dropout=dropout))
    train(settings, tmp_path / "whole", quiet=True)
    step = Stepper.__call__
    for stop in (1, 6, 11):
        count, folder = 0, tmp_path / f"cut{stop}"

        def killed(self: Stepper, *batches: Batch, stop: int = stop) -> torch.Tensor:
            nonlocal count
            count += 1
            if count == stop:
                raise ZeroDivisionError("power cut")
            return step(self, *batches)

        monkeypatch.setattr(Stepper, "__call__", killed)
        with pytest.raises(ZeroDivisionError):
            train(settings, folder, quiet=True)
        torch.rand(17)  # whatever happened in between
        train(TrainConfig(), folder, resume=True, quiet=True)
        assert lines(folder) == lines(tmp_path / "whole")
        for read in (weights, last):
            whole, cut = read(tmp_path / "whole"), read(folder)
            assert all(torch.equal(whole[name], cut[name]) for name in whole)
        assert ("average.0" in last(folder)) == bool(averaging)


def test_same_seed_same_result_and_another_seed_another(csv_file: Path, tmp_path: Path) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        train(config(csv_file, "ivat", epochs=1, seed=seed), tmp_path / name, quiet=True)
    a, b, c = (weights(tmp_path / name)["head.0.weight"] for name in "abc")
    assert torch.equal(a, b)
    assert not torch.equal(a, c)


@pytest.mark.parametrize(("method", "forwards", "backwards"), [("baseline", 1, 1), ("advt", 2, 2), ("iadvt", 2, 2)])
def test_passes_of_a_fused_step(method: str, forwards: int, backwards: int, csv_file: Path) -> None:
    settled, data = prepare(config(csv_file, method))
    model = build(settled, data)
    stepper = Stepper(model, adversaries(settled, data, model), settled.training, torch.device("cpu"))
    seen = {"forward": 0, "backward": 0}
    model.register_forward_hook(lambda *_: seen.update(forward=seen["forward"] + 1))
    assert isinstance(model, Classifier)
    model.head[3].register_full_backward_hook(lambda *_: seen.update(backward=seen["backward"] + 1))
    stepper(data.train.batch(np.arange(8), torch.device("cpu")))
    assert seen == {"forward": forwards, "backward": backwards}


def test_fused_step_equals_the_three_lines(csv_file: Path) -> None:
    """One clean backward in the fused step gives the gradients that the open API gives."""
    settled, data = prepare(config(csv_file))
    settled = replace(settled, model=replace(SMALL, word_dropout=0.0))
    torch.manual_seed(0)
    model = build(settled, data)
    (adversary,) = adversaries(settled, data, model)
    batch = data.train.batch(np.arange(8), torch.device("cpu"))
    assert batch.labels is not None
    outcome = adversary(lambda: model(batch.ids, batch.mask), batch.labels, mask=batch.mask)
    loss = torch.nn.functional.cross_entropy(outcome.clean, batch.labels) + outcome.loss
    wanted = torch.autograd.grad(loss, list(model.parameters()))
    stepper = Stepper(model, [adversary], replace(settled.training, clip=1e9), torch.device("cpu"))
    total = stepper(batch)
    assert float(total) == pytest.approx(loss.item(), rel=1e-6)
    for parameter, gradient in zip(model.parameters(), wanted, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)


def test_learning_rate_decays_and_gradients_are_clipped(csv_file: Path) -> None:
    settled, data = prepare(config(csv_file, "baseline", decay=0.5, clip=1e-3))
    model = build(settled, data)
    stepper = Stepper(model, [], settled.training, torch.device("cpu"))
    rates = []
    for _ in range(3):
        stepper(data.train.batch(np.arange(8), torch.device("cpu")))
        rates.append(stepper.updater.optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([0.02, 0.01, 0.005])
    norm = torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm()
    assert float(norm) == pytest.approx(1e-3, rel=1e-3)


def test_unlabelled_texts_join_the_training_texts(csv_file: Path, tmp_path: Path) -> None:
    extra = tmp_path / "more.txt"
    extra.write_text("".join(f"{example.text}\n" for example in reviews(50, seed=4)))
    settings = config(csv_file, "ivat")
    settings = replace(settings, data=replace(settings.data, unlabelled=str(extra)))
    settled, data = prepare(settings)
    trainer = Trainer(settled, data, tmp_path, quiet=True)
    assert trainer.unlabelled is not None
    assert len(trainer.unlabelled.corpus.rows) == len(data.train.rows) + 50


def test_ctrl_c_keeps_the_best_model(csv_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = Stepper.__call__

    def interrupted(self: Stepper, *batches: Batch) -> torch.Tensor:
        if self.updater.steps == 10:
            raise KeyboardInterrupt
        return step(self, *batches)

    monkeypatch.setattr(Stepper, "__call__", interrupted)
    result = train(config(csv_file), tmp_path / "run", quiet=True)
    assert result["stopped"]
    assert result["best_epoch"] == 1
    assert load_run(tmp_path / "run", device="cpu").predict(["the film was dull"])[0].label in (
        "good",
        "bad",
    )


def average_each_step(patch: pytest.MonkeyPatch, decay: float) -> list[dict[str, torch.Tensor]]:
    """What the average should be after each step of a run, worked out in double precision."""
    step = Stepper.__call__
    means: list[dict[str, torch.Tensor]] = []

    def followed(self: Stepper, *batches: Batch) -> torch.Tensor:
        if not means:
            means.append({name: weight.double() for name, weight in self.model.state_dict().items()})
        loss = step(self, *batches)
        left = min(decay, (1 + len(means)) / (10 + len(means)))
        now = {name: weight.double() for name, weight in self.model.state_dict().items()}
        means.append({name: left * means[-1][name] + (1 - left) * now[name] for name in now})
        return loss

    patch.setattr(Stepper, "__call__", followed)
    return means


@pytest.mark.parametrize("kind", ["more_reviews", "more_tagged"])
def test_the_average_at_the_best_epoch_is_what_is_scored_and_kept(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored: list[dict[str, torch.Tensor]] = []

    def noted(model: torch.nn.Module, *rest: Any, **named: Any) -> list[np.ndarray]:
        scored.append({name: weight.clone() for name, weight in model.state_dict().items()})
        return probabilities(model, *rest, **named)

    settings = config(request.getfixturevalue(kind), epochs=6, averaging=0.9)
    means = average_each_step(monkeypatch, 0.9)
    monkeypatch.setattr("wordward.train.trainer.probabilities", noted)
    result = train(settings, tmp_path / "run", quiet=True)
    records = run_folder.read_metrics(tmp_path / "run")
    for seen, record in zip(scored, records, strict=True):
        for name, expected in means[record["steps"]].items():
            torch.testing.assert_close(seen[name].double(), expected, rtol=1e-5, atol=1e-6)
    best, kept = result["best_epoch"] - 1, weights(tmp_path / "run")
    assert 0 < best < len(records) - 1
    assert all(torch.equal(kept[name], scored[best][name]) for name in kept)
    _, data = prepare(settings)
    run = load_run(tmp_path / "run", device="cpu")
    measured = {name: interval.value for name, interval in run.evaluate_corpus(data.dev).scores.items()}
    assert measured == records[best]["dev"] == result["dev"]


def test_averaging_changes_what_is_scored_and_not_how_it_is_trained(csv_file: Path, tmp_path: Path) -> None:
    for name, averaging in (("plain", 0.0), ("averaged", 0.99)):
        train(config(csv_file, "iadvt+vat", epochs=3, averaging=averaging), tmp_path / name, quiet=True)
    plain, averaged = last(tmp_path / "plain"), last(tmp_path / "averaged")
    assert all(torch.equal(plain[name], averaged[name]) for name in plain)
    losses = [[line["loss"] for line in lines(tmp_path / name)] for name in ("plain", "averaged")]
    assert losses[0] == losses[1]
    assert lines(tmp_path / "plain") != lines(tmp_path / "averaged")


def test_ctrl_c_in_the_first_epoch_keeps_the_average(
    csv_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    means = average_each_step(monkeypatch, 0.9)
    step = Stepper.__call__

    def interrupted(self: Stepper, *batches: Batch) -> torch.Tensor:
        if self.updater.steps == 3:
            raise KeyboardInterrupt
        return step(self, *batches)

    monkeypatch.setattr(Stepper, "__call__", interrupted)
    assert train(config(csv_file, averaging=0.9), tmp_path / "run", quiet=True)["best_epoch"] == 0
    kept = weights(tmp_path / "run")
    for name, expected in means[3].items():
        torch.testing.assert_close(kept[name].double(), expected, rtol=1e-5, atol=1e-6)


def test_nan_stops_and_says_where(csv_file: Path, tmp_path: Path) -> None:
    settings = config(csv_file, "baseline", learning_rate=1e20, clip=1e20, epochs=3)
    with pytest.raises(DivergedError, match=r"not finite at step \d+"):
        train(settings, tmp_path / "run", quiet=True)


def test_early_stopping(csv_file: Path, tmp_path: Path) -> None:
    result = train(config(csv_file, epochs=30, patience=2), tmp_path / "run", quiet=True)
    assert result["epochs"] == result["best_epoch"] + 2


def test_run_folder_holds_what_it_promises(csv_file: Path, tmp_path: Path) -> None:
    train(config(csv_file, epochs=1), tmp_path / "run", quiet=True)
    names = {file.name for file in (tmp_path / "run").iterdir()}
    assert names >= {
        "config.toml",
        "metrics.jsonl",
        "model.safetensors",
        "vocabulary.txt",
        "labels.txt",
        "result.json",
    }
    (record,) = run_folder.read_metrics(tmp_path / "run")
    assert 0.9 < record["table_rms"] < 1.1


def test_sweep_tries_all_and_keeps_the_best(csv_file: Path, tmp_path: Path) -> None:
    record = train_sweep(config(csv_file, epochs=2), ["epsilon=0.5,2", "k=2,3"], tmp_path / "sweep", quiet=True)
    assert len(record["tried"]) == 4
    best = min(entry["dev"]["error"] for entry in record["tried"])
    chosen = next(entry for entry in record["tried"] if entry["choice"] == record["chosen"])
    assert chosen["dev"]["error"] == best
    kept = load_run(tmp_path / "sweep", device="cpu").config.perturbation
    assert kept.epsilon == float(record["chosen"]["epsilon"])
    assert kept.k == int(record["chosen"]["k"])


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ("epsilon", "written SETTING=A,B,C, but got 'epsilon'"),
        ("epsilom=1,2", "'epsilom' is not a setting to sweep"),
        ("=3", "'' is not a setting to sweep"),
        ("epsilon=", "written SETTING=A,B,C, but got 'epsilon='"),
    ],
)
def test_bad_sweep_is_refused(choice: str, message: str, csv_file: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        train_sweep(config(csv_file), [choice], tmp_path / "sweep", quiet=True)
    assert not (tmp_path / "sweep").exists()


def test_language_model_learns_and_starts_a_classifier(more_reviews: Path, tmp_path: Path) -> None:
    reading = PretrainConfig(
        texts=(str(more_reviews),), epochs=4, streams=8, window=10, learning_rate=0.02, model=SMALL, device="cpu"
    )
    result = pretrain(reading, tmp_path / "lm", quiet=True)
    records = run_folder.read_metrics(tmp_path / "lm")
    assert result["perplexity"] < 0.7 * records[0]["perplexity"]
    settings = replace(config(more_reviews), pretrained=str(tmp_path / "lm"))
    settled, data = prepare(settings)
    model = build(settled, data)
    counts = torch.tensor(data.vocabulary.counts).double()
    share = (counts / counts.sum()).unsqueeze(-1)
    table = model.words.table.weight.detach().double()
    mean = (share * table).sum(0)
    torch.testing.assert_close(mean, torch.zeros_like(mean), atol=1e-5, rtol=0)
    deviation = (share * (table - mean).square()).sum(0).sqrt()
    torch.testing.assert_close(deviation, torch.ones_like(deviation), atol=1e-4, rtol=0)
    settings = replace(settings, training=replace(settings.training, epochs=24, patience=24))
    assert train(settings, tmp_path / "run", quiet=True)["dev"]["error"] < 0.1


def test_pretraining_goes_on_as_if_never_stopped(
    csv_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wordward.train.pretrainer import Pretrainer

    reading = PretrainConfig(
        texts=(str(csv_file),), epochs=3, streams=8, window=10, schedule="linear", model=SMALL, device="cpu"
    )
    pretrain(reading, tmp_path / "whole", quiet=True)
    step = Pretrainer.step

    def killed(self: Pretrainer, *rest: object) -> object:
        if self.record.epoch == 1 and self.updater.steps % 7 == 3:
            raise ZeroDivisionError("power cut")
        return step(self, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Pretrainer, "step", killed)
        with pytest.raises(ZeroDivisionError):
            pretrain(reading, tmp_path / "cut", quiet=True)
    pretrain(PretrainConfig(), tmp_path / "cut", resume=True, quiet=True)
    whole, cut = weights(tmp_path / "whole"), weights(tmp_path / "cut")
    assert all(torch.equal(whole[name], cut[name]) for name in whole)


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("packed", [True, False])
def test_a_language_model_may_read_texts_as_they_are_given(
    packed: bool, shuffle: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every epoch, with those held out missing; by default the order is drawn anew."""
    from wordward.train.pretrainer import Pretrainer

    texts = [f"word{at} word{at}" for at in range(60)]
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    source: dict[str, Any] = {"texts": (str(tmp_path / "texts.txt"),)}
    if packed:
        splits = {"train": texts[:20], "dev": texts[:2], "test": texts[:2], "unlabelled": texts[20:]}
        examples = {
            name: [Example(text, "ab"[at % 2]) for at, text in enumerate(part)] for name, part in splits.items()
        }
        read = TextSettings(min_documents=1)
        write_pack(tmp_path / "little.pack", encode_splits(examples, read, quiet=True), read, quiet=True)
        source = {"corpus": str(tmp_path / "little.pack")}
    step, epochs = Pretrainer.step, ([], [])

    def watched(self: Pretrainer, ids: torch.Tensor, *rest: Any) -> object:
        words = [self.vocabulary.words[at] for at in ids[0].tolist()]
        epochs[self.record.epoch].extend(int(word[4:]) for word in words if word.startswith("word"))
        return step(self, ids, *rest)

    monkeypatch.setattr(Pretrainer, "step", watched)
    reading = PretrainConfig(
        **source,
        epochs=2,
        streams=1,
        shuffle=shuffle,
        text=TextSettings(min_documents=1),
        model=SMALL,
        device="cpu",
    )
    pretrain(reading, tmp_path / "lm", quiet=True)
    first, second = epochs
    assert len(set(first)) >= 58
    assert (first == sorted(first)) != shuffle
    assert (first == second) != shuffle


def test_explain_points_from_praise_to_blame(csv_file: Path, tmp_path: Path) -> None:
    """The strongest pull of a trained model is at a word that decides, and swapping it lowers the chance."""
    settings = replace(config(csv_file, "iadvt", epochs=6), perturbation=MethodSettings(epsilon=1.0, k=None))
    train(settings, tmp_path / "run", quiet=True)
    run = load_run(tmp_path / "run", device="cpu")
    (example, *_) = [e for e in reviews(20, seed=3) if e.label == "good"]
    (found,) = explain(run, [example])
    assert [place.word for place in found.places] == [word for word in example.text.split() if word != ","]
    place = found.strongest
    assert place is not None
    assert place.pulls[0].relative == 1.0
    before = run.predict([example.text])[0].probabilities["good"]
    text = apply(example.text, [(place, place.pulls[0].toward)], lowercase=run.text.lowercase)
    assert text == example.text.replace(place.word, place.pulls[0].toward, 1)
    assert run.predict([text])[0].probabilities["good"] < before


def test_config_goes_to_toml_and_back() -> None:
    settings = TrainConfig(
        method="iadvt+ivat",
        data=DataSettings(train='odd "name"\\ü.csv', unlabelled="more.txt"),
        text=TextSettings(lowercase=True, max_length=7),
        perturbation=MethodSettings(k=None, refresh="epoch"),
    )
    assert from_toml(TrainConfig, to_toml(settings)) == settings
    reading = PretrainConfig(texts=("a.txt", "b.csv"), minutes=1.5)
    assert from_toml(PretrainConfig, to_toml(reading)) == reading


def test_bad_settings_are_refused(csv_file: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError,
        match=r"unlabelled texts are used only by .*vat, .*smart, .*entropy, but the method is advt",
    ):
        TrainConfig(method="advt", data=DataSettings(unlabelled="x.txt"))
    with pytest.raises(ValueError, match="not both"):
        TrainConfig(pretrained="a", vectors="b")
    settings = replace(config(csv_file), perturbation=MethodSettings(k=500))
    with pytest.raises(ValueError, match="k must be less than"):
        train(settings, tmp_path / "run", quiet=True)
    with pytest.raises(ValueError, match="cannot be used here"):
        pick_device("warp-drive")
    conll = tmp_path / "x.conll"
    conll.write_text("a\tc\nb\ti\n\n" * 4)
    with pytest.raises(DataError, match="expected one of the tags c, i for `positive`; got"):
        prepare(config(conll, positive="z"))


def test_attention_on_a_gpu_is_not_planned_anew_for_each_length() -> None:
    with attention(torch.device("cuda")):
        assert not torch.backends.cuda.cudnn_sdp_enabled()
        assert torch.backends.cuda.flash_sdp_enabled()
    with attention(torch.device("cpu")):
        assert torch.backends.cuda.cudnn_sdp_enabled()


def test_existing_folder_is_not_overwritten(csv_file: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    for force in (False, True):
        with pytest.raises(run_folder.RunError, match="choose another `out`"):
            train(config(csv_file), tmp_path / "mine", force=force, quiet=True)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"
    train(config(csv_file, epochs=1), tmp_path / "run", quiet=True)
    with pytest.raises(run_folder.RunError, match="`force=True`"):
        train(config(csv_file, epochs=1), tmp_path / "run", quiet=True)
    train(config(csv_file, epochs=1), tmp_path / "run", force=True, quiet=True)


@pytest.mark.parametrize("way", ["resume", "force"])
@pytest.mark.parametrize("kind", ["train", "pretrain"])
def test_a_run_that_another_process_trains_is_left_alone(kind: str, way: str, csv_file: Path, tmp_path: Path) -> None:
    reading = PretrainConfig(texts=(str(csv_file),), epochs=1, streams=8, window=10, model=SMALL, device="cpu")
    folder, again = tmp_path / "run", dict[str, Any]({way: True})
    make = partial(train, config(csv_file, epochs=1), folder, quiet=True)
    if kind == "pretrain":
        make = partial(pretrain, reading, folder, quiet=True)
    make()
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    with claiming.held(folder), pytest.raises(run_folder.RunError, match="another process is training"):
        make(**again)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    make(**again)


def test_weights_of_another_vocabulary_are_refused(csv_file: Path, tmp_path: Path) -> None:
    train(config(csv_file, epochs=1), tmp_path / "run", quiet=True)
    vocabulary = tmp_path / "run" / "vocabulary.txt"
    vocabulary.write_text(vocabulary.read_text().replace("film", "opera"))
    with pytest.raises(run_folder.RunError, match="another vocabulary"):
        load_run(tmp_path / "run", device="cpu")
    with pytest.raises(run_folder.RunError, match="another vocabulary"):
        train(TrainConfig(), tmp_path / "run", resume=True, quiet=True)


def test_one_class_is_refused_with_its_file(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "one.csv", [replace(each, label="good") for each in reviews(20)])
    with pytest.raises(DataError, match=r"one\.csv: expected two classes or more; found \['good'\]"):
        train(config(path), tmp_path / "run", quiet=True)


@pytest.mark.parametrize("model", [None, "a-model"])
def test_one_class_is_refused_before_a_model_is_looked_for(
    model: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looked_for(*_: object, **__: object) -> None:
        raise AssertionError("a model was looked for")

    monkeypatch.setattr("wordward.train.training.choose", looked_for)
    monkeypatch.setattr("wordward.train.finetuning.start_of", looked_for)
    path = write_csv(tmp_path / "one.csv", [replace(each, label="good") for each in reviews(20)])
    settings = TrainConfig(data=DataSettings(train=str(path)), transformer=model)
    with pytest.raises(DataError, match=r"one\.csv: expected two classes or more; found \['good'\]"):
        train(settings, tmp_path / "run", quiet=True)


def test_a_full_disk_is_said_and_the_run_goes_on(
    csv_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: object, path: Path, __: object) -> None:
        path.write_bytes(b"half")
        raise SafetensorError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save_file", full)
        with pytest.raises(run_folder.RunError, match=r"cannot be written: No space left .* with `resume=True`"):
            train(config(csv_file, epochs=1), tmp_path / "run", quiet=True)
    assert not list((tmp_path / "run").glob("*.part"))
    assert train(config(csv_file, epochs=1), tmp_path / "run", resume=True, quiet=True)["best_epoch"] == 1


@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_that_cannot_be_written_is_noticed_before_texts_are_read(
    resume: bool, csv_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if resume:
        train(config(csv_file, epochs=1), tmp_path / "run", quiet=True)

    def full(dir: Path) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(files, "TemporaryFile", full)
    monkeypatch.setattr("wordward.train.training.prepare", None)
    with pytest.raises(run_folder.RunError, match=r"run cannot be written \(.*: Read-only .*choose another `out`"):
        train(config(csv_file, epochs=1), tmp_path / "run", resume=resume, quiet=True)
    assert (tmp_path / "run").exists() == resume


@pytest.mark.parametrize("setting", ["train", "dev", "unlabelled", "vectors"])
def test_a_file_that_is_nowhere(
    setting: str, csv_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORDWARD_DATA", str(tmp_path / "mine"))
    settings = config(csv_file, "ivat")
    if setting == "vectors":
        settings = replace(settings, vectors="none.csv")
    else:
        settings = replace(settings, data=replace(settings.data, **{setting: "none.csv"}))
    with pytest.raises(MissingError, match=r"^none\.csv: .* here or in the data folder, .*mine \(see"):
        train(settings, tmp_path / "run", quiet=True)


@pytest.mark.parametrize("unknown", ["unk", "drop"])
def test_words_that_are_left_out_are_not_called_known(
    unknown: str, csv_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = config(csv_file, epochs=1)
    train(replace(settings, text=replace(settings.text, unknown=unknown, max_vocabulary=5)), tmp_path / "run")
    said = capsys.readouterr().err
    assert ("8 words (others are left out)" in said) == (unknown == "drop")
    assert ("% of the words of the dev texts unknown)" in said) == (unknown == "unk")


def test_a_very_long_text_is_said_with_what_to_do(
    csv_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All texts of its batch are as long as it, which may take all memory there is."""
    train(config(csv_file, epochs=1), tmp_path / "run")
    assert "--max-length" not in capsys.readouterr().err
    monkeypatch.setattr("wordward.train.start_messages.LONG", 30)
    extra = tmp_path / "extra.txt"
    extra.write_text("the film was warm " * 20 + "\n")
    given = replace(config(csv_file, epochs=1), method="random-kl")
    train(replace(given, data=replace(given.data, unlabelled=str(extra))), tmp_path / "extra")
    assert "the longest text (line 1 of extra.txt) has 80 words" in capsys.readouterr().err
    with csv_file.open("a", encoding="utf-8") as file:
        file.write(f"{'the film was warm ' * 10},good\n" * 20)  # so that not all of them are held out
    train(config(csv_file, epochs=1), tmp_path / "long")
    said = re.search(r"the longest text \(line (\d+) of reviews.csv\) has 40 words", capsys.readouterr().err)
    assert said
    assert "the film was warm the film" in csv_file.read_text().splitlines()[int(said[1]) - 1]
    settings = config(csv_file, epochs=1)
    train(replace(settings, text=replace(settings.text, max_length=20)), tmp_path / "cut")
    assert "the longest text" not in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["ours", "Hugging Face"])
def test_a_folder_that_cannot_be_made(kind: str, csv_file: Path, tmp_path: Path) -> None:
    settings = config(csv_file)
    if kind == "Hugging Face":
        settings = TrainConfig(data=settings.data, transformer="nowhere")
    with pytest.raises(run_folder.RunError, match=r"cannot be written \(.*\.csv: Not a directory\)"):
        train(settings, csv_file / "deep" / "run", quiet=True)
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(run_folder.RunError, match=r"cannot be written \(.*link: No such file"):
        train(settings, tmp_path / "link", quiet=True)


def test_damaged_or_missing_weights_are_named(csv_file: Path, tmp_path: Path) -> None:
    train(config(csv_file, epochs=1), tmp_path / "run", quiet=True)
    (tmp_path / "run" / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(run_folder.RunError, match="damaged"):
        load_run(tmp_path / "run", device="cpu")
    (tmp_path / "run" / "model.safetensors").unlink()
    with pytest.raises(run_folder.RunError, match="holds no"):
        load_run(tmp_path / "run", device="cpu")
    with pytest.raises(run_folder.RunError, match="not a run folder"):
        load_run(tmp_path, device="cpu")
