"""A user's own classifier made harder to fool: its labels, head and tokenizer kept, by LoRA, by several processes."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from beside import started
from hf_tiny import bert, byte_pieces, saved, word_pieces
from launching import LAUNCHERS
from reviews import reviews, tagged, write_conll, write_csv
from safetensors.torch import load_file

from wordward.cli import main as cli
from wordward.config import DataSettings, FineTuningSettings, TrainConfig, TrainingSettings
from wordward.datasets import Example
from wordward.perturbation.recipes import MethodSettings
from wordward.runs.opening import load_run
from wordward.runs.run_folder import read_metrics
from wordward.support.errors import DataError, MissingExtraError, RunError, SettingError
from wordward.train import finetuner, finetuning_trainer
from wordward.train.finetuning_start import start_of
from wordward.train.training import train

OWN = ("positive", "mixed", "negative")
NAMES = {"good": "Positive", "bad": "2"}  # as our texts may give them: in another case, by number


def texts(count: int, seed: int = 0) -> list[Example]:
    return [replace(each, label=NAMES[str(each.label)]) for each in reviews(count, seed=seed)]


def named(labels: tuple[str, ...]) -> dict[str, Any]:
    return {"id2label": dict(enumerate(labels)), "label2id": {name: at for at, name in enumerate(labels)}}


def save(folder: Path, task: str, labels: tuple[str, ...], **changes: Any) -> Path:
    return saved(folder, task, num_labels=len(labels), **named(labels), **changes)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("theirs") / "model", "sequence", OWN)


def config_of(model: Path, method: str = "iadvt", **finetuning: Any) -> TrainConfig:
    return TrainConfig(
        method=method,
        transformer=str(model),
        perturbation=MethodSettings(epsilon=0.5, k=5),
        training=TrainingSettings(epochs=2, learning_rate=0.01, batch_size=16, device="cpu"),
        finetuning=FineTuningSettings(**finetuning),
    )


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


class TestLabels:
    def test_all_of_its_labels_in_its_order(self, theirs: Path, tmp_path: Path):
        """Those of the texts are some of them, by number and in another case; its head is where training starts."""
        config = config_of(theirs)
        config = replace(config, training=replace(config.training, learning_rate=1e-9))
        train(config, tmp_path / "run", train=texts(40), quiet=True)
        assert load_run(tmp_path / "run", device="cpu").labels == OWN
        before, after = weights(theirs), weights(tmp_path / "run" / "model")
        assert before.keys() == after.keys()
        torch.testing.assert_close(after, before, rtol=0, atol=1e-6)
        kept, own = (json.loads((folder / "config.json").read_text()) for folder in (tmp_path / "run/model", theirs))
        changed = {name for name in kept.keys() | own.keys() if kept.get(name) != own.get(name)}
        assert changed <= {"problem_type", "transformers_version"}

    def test_it_is_trained_no_longer_than_it_needs(
        self, theirs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ):
        """Few epochs and a low learning rate, however few the texts, unless it is to learn other labels."""
        config = replace(config_of(theirs), training=TrainingSettings(device="cpu"))
        start = start_of(config, {"train": texts(40)}, quiet=False)
        assert (start.config.training.epochs, start.config.training.learning_rate) == (3, 2e-5)
        assert "3 epochs, learning rate 2e-05 for a classifier that keeps its labels; " in capsys.readouterr().err
        anew = replace(config, finetuning=FineTuningSettings(new_labels=True))
        training = start_of(anew, {"train": texts(40)}).config.training
        assert (training.epochs, training.learning_rate) == (15, 1e-4)

    def test_texts_that_it_may_have_learnt_are_said_to_flatter_it(
        self, theirs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ):
        train(config_of(theirs), tmp_path / "run", train=texts(40))
        said = capsys.readouterr().err
        assert f"texts held out for dev flatter {theirs} if it has learnt them before" in said
        assert "the yardstick's" not in said
        train(config_of(theirs), tmp_path / "apart", train=texts(40), dev=texts(20, seed=3))
        said = capsys.readouterr().err
        assert "flatter" not in said
        assert "the yardstick's" in said

    def test_a_pipeline_gives_its_labels(self, theirs: Path, tmp_path: Path):
        train(config_of(theirs), tmp_path / "run", train=texts(80), quiet=True)
        run, said = load_run(tmp_path / "run", device="cpu"), [each.text for each in texts(8, seed=5)]
        made: Any = transformers.pipeline("text-classification", str(tmp_path / "run" / "model"), device="cpu")
        for found, record in zip(made(said), run.predict(said), strict=True):
            assert found["label"] == record.label
            assert found["score"] == pytest.approx(record.probabilities[str(record.label)], abs=1e-5)

    def test_a_tagger(self, tmp_path: Path):
        model = save(tmp_path / "model", "token", ("i", "x", "c"))
        write_conll(tmp_path / "train.conll", tagged(40))
        config = replace(config_of(model), data=DataSettings(train=str(tmp_path / "train.conll")))
        train(config, tmp_path / "run", quiet=True)
        assert load_run(tmp_path / "run", device="cpu").labels == ("i", "x", "c")
        made: Any = transformers.pipeline("token-classification", str(tmp_path / "run" / "model"), device="cpu")
        assert {each["entity"] for each in made("the film was warm")} <= {"i", "x", "c"}

    def test_others_are_refused_unless_asked_for(self, theirs: Path, tmp_path: Path):
        with pytest.raises(DataError, match=r"expected labels of .*positive, mixed, negative.*got 'bad'.*new_labels"):
            train(config_of(theirs), tmp_path / "run", train=reviews(40), quiet=True)
        assert not (tmp_path / "run").exists()
        train(config_of(theirs, new_labels=True), tmp_path / "run", train=reviews(40), quiet=True)
        assert load_run(tmp_path / "run", device="cpu").labels == ("bad", "good")

    def test_as_a_flag(self, theirs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        write_csv(tmp_path / "train.csv", reviews(40))
        given = ["--model", str(theirs), "--train", str(tmp_path / "train.csv"), "--out", str(tmp_path / "run")]
        assert cli.main(["train", *given]) == 1
        assert "instead with --new-labels" in capsys.readouterr().err

    def test_labels_without_names_take_those_of_the_texts(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        model = save(tmp_path / "model", "sequence", ("LABEL_0", "LABEL_1"))
        train(config_of(model), tmp_path / "run", train=reviews(40))
        assert "LABEL_0 as bad, LABEL_1 as good" in capsys.readouterr().err
        assert load_run(tmp_path / "run", device="cpu").labels == ("bad", "good")

    def test_numbers_are_told_as_what_they_are_read(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        model = save(tmp_path / "model", "sequence", ("bad", "good"))
        numbered = [replace(each, label=str(int(each.label == "good"))) for each in reviews(40)]
        train(config_of(model), tmp_path / "run", train=numbered)
        read = f"labels are numbers, read as those of {model}: 0 as bad, 1 as good"
        assert read in capsys.readouterr().err
        write_csv(tmp_path / "test.csv", numbered)
        assert cli.main(["evaluate", str(model), str(tmp_path / "test.csv")]) == 0
        assert read in capsys.readouterr().err

    def test_numbers_from_one_on_are_refused(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        model = save(tmp_path / "model", "sequence", ("bad", "good"))
        numbered = [replace(each, label=str(1 + int(each.label == "good"))) for each in reviews(40)]
        with pytest.raises(DataError, match=r"texts are 1, 2, those of the model 0, 1 .*or train .*new_labels"):
            train(config_of(model), tmp_path / "run", train=numbered, quiet=True)
        write_csv(tmp_path / "test.csv", numbered)
        assert cli.main(["evaluate", str(model), str(tmp_path / "test.csv")]) == 1
        line = 2 + next(at for at, each in enumerate(numbered) if each.label == "2")  # which the model has none of
        assert f"test.csv, line {line}: the labels of the texts are 1, 2" in capsys.readouterr().err

    def test_a_model_without_a_head_gets_one(self, tmp_path: Path):
        tokenizer = word_pieces()
        bert("sequence", len(tokenizer)).bert.save_pretrained(tmp_path / "base")
        tokenizer.save_pretrained(tmp_path / "base")
        train(config_of(tmp_path / "base"), tmp_path / "run", train=reviews(40), quiet=True)
        made: Any = transformers.pipeline("text-classification", str(tmp_path / "run" / "model"), device="cpu")
        assert made("the film was warm")[0]["label"] in ("bad", "good")
        assert made.model.config.architectures == ["BertForSequenceClassification"]

    def test_several_labels_at_once(self, tmp_path: Path):
        model = save(tmp_path / "model", "sequence", ("bad", "good"), problem_type="multi_label_classification")
        with pytest.raises(RunError, match=r"several labels at once.*new_labels"):
            train(config_of(model), tmp_path / "run", train=reviews(40), quiet=True)

    def test_a_missing_head_is_not_made_up(self, tmp_path: Path):
        from safetensors.torch import save_file

        model = save(tmp_path / "model", "sequence", ("bad", "good"))
        left = {name: value for name, value in weights(model).items() if not name.startswith("classifier")}
        save_file(left, model / "model.safetensors", {"format": "pt"})
        with pytest.raises(RunError, match=r"classifier\.bias is missing"):
            train(config_of(model), tmp_path / "run", train=reviews(40), quiet=True)

    def test_the_run_knows_the_same_forms_of_its_labels(self, theirs: Path, tmp_path: Path):
        train(config_of(theirs), tmp_path / "run", train=texts(40), quiet=True)
        write_csv(tmp_path / "test.csv", texts(10, seed=5))
        assert cli.main(["evaluate", str(tmp_path / "run"), str(tmp_path / "test.csv"), "--device", "cpu"]) == 0


class TestLora:
    @pytest.mark.parametrize("method", ["baseline", "iadvt", "vat"])
    def test_only_its_matrices_and_the_head_learn(self, theirs: Path, tmp_path: Path, method: str):
        train(config_of(theirs, method, lora=4), tmp_path / "run", train=texts(80), quiet=True)
        before, after = weights(theirs), weights(tmp_path / "run" / "model")
        assert before.keys() == after.keys()  # merged
        moved = {name for name in before if not torch.equal(before[name], after[name])}
        linear = {name for name, value in before.items() if name.endswith("weight") and value.dim() == 2}
        linear = {name for name in linear if "embeddings" not in name}
        assert moved == linear | {"classifier.bias"}
        for name in linear - {"classifier.weight"}:
            assert int(torch.linalg.matrix_rank(after[name] - before[name], rtol=1e-4)) <= 4

    def test_what_is_kept_is_what_was_scored(self, theirs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        scored: list[torch.Tensor] = []

        def dev(self: Any) -> Any:
            ids = torch.arange(5, 12).view(1, -1)
            with torch.no_grad():
                scored.append(self.model.eval()(input_ids=ids).logits)
            return before(self)

        before = finetuner.FineTuning._dev
        monkeypatch.setattr(finetuner.FineTuning, "_dev", dev)
        result = train(config_of(theirs, lora=4), tmp_path / "run", train=texts(80), quiet=True)
        kept = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "run" / "model")
        with torch.no_grad():
            logits = kept.eval()(input_ids=torch.arange(5, 12).view(1, -1)).logits
        torch.testing.assert_close(logits, scored[result["best_epoch"] - 1], atol=1e-5, rtol=1e-5)

    @pytest.mark.parametrize("steps", [None, 3])
    def test_resumed_as_if_never_stopped(
        self, theirs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int | None
    ):
        config = config_of(theirs, lora=4)
        config = replace(config, training=replace(config.training, checkpoint_steps=steps))
        train(config, tmp_path / "whole", train=texts(80), quiet=True)
        step = finetuning_trainer.RunTrainer.training_step

        def broken(self: Any, *args: Any, **options: Any) -> Any:
            if self.state.global_step == 7:
                raise ZeroDivisionError("power cut")
            return step(self, *args, **options)

        with monkeypatch.context() as patch:
            patch.setattr(finetuning_trainer.RunTrainer, "training_step", broken)
            with pytest.raises(ZeroDivisionError):
                train(config, tmp_path / "cut", train=texts(80), quiet=True)
        train(TrainConfig(), tmp_path / "cut", train=texts(80), resume=True, quiet=True)
        whole, cut = (weights(tmp_path / name / "model") for name in ("whole", "cut"))
        assert all(torch.equal(whole[name], cut[name]) for name in whole)

    def test_gpt2_has_its_layers_transposed(self, tmp_path: Path):
        tokenizer = byte_pieces()
        sizes: Any = {"n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 90, "vocab_size": len(tokenizer)}
        ends = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": 0, "bos_token_id": 0}
        config = transformers.GPT2Config(**sizes, **ends, **named(("bad", "good")))
        transformers.GPT2ForSequenceClassification(config).save_pretrained(tmp_path / "model")
        tokenizer.save_pretrained(tmp_path / "model")
        train(config_of(tmp_path / "model", lora=2), tmp_path / "run", train=reviews(40), quiet=True)
        before, after = weights(tmp_path / "model"), weights(tmp_path / "run" / "model")
        assert not torch.equal(*(each["transformer.h.0.attn.c_attn.weight"] for each in (before, after)))

    def test_without_peft(self, theirs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setitem(sys.modules, "peft", None)
        with pytest.raises(MissingExtraError, match=r"wordward\[lora\]"):
            train(config_of(theirs, lora=4), tmp_path / "run", train=texts(40), quiet=True)
        assert not (tmp_path / "run").exists()

    def test_refused_for_our_own_models(self):
        with pytest.raises(SettingError, match="`lora` is for a Hugging Face model"):
            TrainConfig(finetuning=FineTuningSettings(lora=4))


def test_checkpoints_of_layers_change_nothing_but_memory(theirs: Path, tmp_path: Path):
    for name, on in (("plain", False), ("again", True)):
        config = config_of(theirs, "iadvt+ivat", gradient_checkpointing=on)
        train(config, tmp_path / name, train=texts(80), quiet=True)
    plain, again = (weights(tmp_path / name / "model") for name in ("plain", "again"))
    torch.testing.assert_close(again, plain)


def test_in_bfloat16(theirs: Path, tmp_path: Path):
    losses = []
    for precision in ("fp32", "bf16"):
        config = config_of(theirs)
        config = replace(config, training=replace(config.training, precision=precision))
        train(config, tmp_path / precision, train=texts(80), quiet=True)
        losses.append(read_metrics(tmp_path / precision)[0]["loss"])
    assert losses[0] != losses[1]
    assert losses[1] == pytest.approx(losses[0], rel=0.02)
    assert {value.dtype for value in weights(tmp_path / "bf16" / "model").values()} == {torch.float32}


@pytest.mark.slow
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_two_processes_share_each_batch(theirs: Path, tmp_path: Path, launcher: str):
    """By the command line; what they write is what one process writes."""
    write_csv(tmp_path / "train.csv", texts(64))
    write_csv(tmp_path / "dev.csv", texts(16, seed=5))
    settings = "--epsilon 0.5 --k 5 --learning-rate 0.002 --epochs 2 --batch-size 16 --device cpu --quiet"
    given = ["--model", str(theirs), "--train", str(tmp_path / "train.csv"), "--dev", str(tmp_path / "dev.csv")]
    command = ["train", *given, *settings.split(), "--out"]
    both = started("launching", [launcher, "forked", *command, str(tmp_path / "two")], tmp_path / "said")
    assert cli.main([*command, str(tmp_path / "one")]) == 0
    both.join()
    said = (tmp_path / "said").read_text()
    assert both.exitcode == 0, said[-3000:]
    assert sorted(line for line in said.splitlines() if line.startswith("process")) == [
        "process 0 of 2",
        "process 1 of 2",
    ]
    one, two = (weights(tmp_path / name / "model") for name in ("one", "two"))
    for name in one:
        if not name.endswith("key.bias"):  # whose gradient is zero but for rounding
            torch.testing.assert_close(two[name], one[name], rtol=0, atol=2e-4)
    assert not torch.equal(one["classifier.weight"], weights(theirs)["classifier.weight"])
    lines = [(tmp_path / name / "metrics.jsonl").read_text().splitlines() for name in ("one", "two")]
    assert [json.loads(line)["dev"] for line in lines[0]] == [json.loads(line)["dev"] for line in lines[1]]


def test_a_batch_that_cannot_be_shared(theirs: Path, tmp_path: Path):
    from wordward.support.distributed import Team
    from wordward.train.finetuning import fine_tune

    with pytest.raises(SettingError, match="a multiple of the 3 processes"):
        fine_tune(config_of(theirs), tmp_path / "run", {"train": texts(40)}, team=Team(0, 3))


def test_checked_before_and_after(theirs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """The same texts, and the same texts to judge the sense by; both accuracies and the paired test are shown."""
    write_csv(tmp_path / "train.csv", texts(80))
    write_csv(tmp_path / "test.csv", texts(20, seed=5))
    train(config_of(theirs), tmp_path / "run", train=texts(80), quiet=True)
    how = [str(tmp_path / "test.csv"), "--sense-from", str(tmp_path / "train.csv"), "--words", "any", "--quiet"]
    how += ["--sense", "any", "--device", "cpu"]
    before = str(tmp_path / "before.json")
    assert cli.main(["check", str(theirs), *how, "--json", before]) == 0
    capsys.readouterr()
    card = tmp_path / "card.md"
    status = cli.main(["check", str(tmp_path / "run/model"), *how, "--against", before, "--card", str(card)])
    assert status in (0, 1)
    shown = capsys.readouterr().out
    record = json.loads(Path(before).read_text())
    right = sum(each["right"] for each in record["each"]) / len(record["each"])
    assert f"{right:.1%} before, " in shown
    assert " now; of 20 texts " in card.read_text()
