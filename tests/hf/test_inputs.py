"""What an AdversarialTrainer refuses, and what it says to pass instead; its settings."""

import copy
import importlib
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import transformers
from hf_tiny import arguments, bert, collator, rows, trainer, word_pieces
from torch import Tensor, nn

import wordward
from wordward.hf.checks import refuse_arguments
from wordward.hf.trainer import AdversarialSettings, AdversarialTrainer


class Plain(nn.Module):
    """A model of somebody's own, with as many embeddings as told."""

    def __init__(self, tables: int, *, runs: int = 0, size: int = 90) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(size, 4) for _ in range(tables))
        self.runs, self.out = runs, nn.Linear(4, 2)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
        table: Any = self.tables[self.runs] if len(self.tables) else None
        vectors = table(input_ids) if table else F.one_hot(input_ids % 4, 4).float()
        logits = self.out(vectors.mean(1).tanh())
        return (
            {"loss": F.cross_entropy(logits, labels), "logits": logits} if labels is not None else {"logits": logits}
        )


class TestBadInput:
    def test_a_model_of_ones_own(self, tmp_path: Path):
        tokenizer = word_pieces()
        made = trainer(tmp_path, model=Plain(1, size=len(tokenizer)), tokenizer=tokenizer)
        made.train()
        assert made.state.log_history[0]["iadvt_loss"] > 0

    def test_a_loss_of_ones_own_is_perturbed_or_refused(self, tmp_path: Path):
        class Weighted(transformers.Trainer):
            def compute_loss(
                self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
            ) -> Any:
                labels, weight = inputs.pop("labels"), torch.tensor([1.0, 3.0])
                outputs = model(**inputs)
                loss = F.cross_entropy(outputs.logits, labels, weight)
                return (loss, outputs) if return_outputs else loss

        class Above(AdversarialTrainer, Weighted):
            pass

        class Below(Weighted, AdversarialTrainer):
            pass

        tokenizer = word_pieces()
        model, data = bert("sequence", len(tokenizer)), rows(tokenizer, "sequence")

        def made(kind: type[AdversarialTrainer]) -> AdversarialTrainer:
            given: Any = {"train_dataset": data, "processing_class": tokenizer}
            return kind(copy.deepcopy(model), arguments(tmp_path), adversarial=AdversarialSettings(), **given)

        trained, plain = made(Above), Weighted(model, arguments(tmp_path))
        trained.train()
        inputs = plain._prepare_inputs(trained.data_collator(data))
        expected = float(plain.compute_loss(model, inputs).detach())
        assert trained.state.log_history[0]["label_loss"] == pytest.approx(expected, rel=1e-5)
        assert trained.state.log_history[0]["iadvt_loss"] > expected
        with pytest.raises(RuntimeError, match="Below does not call AdversarialTrainer's"):
            made(Below).train()

    def test_without_an_embedding(self, tmp_path: Path):
        with pytest.raises(ValueError, match=r"Plain has no nn.Embedding: .* `embedding=`"):
            trainer(tmp_path, model=Plain(0))

    def test_with_two(self, tmp_path: Path):
        tokenizer = word_pieces()
        model = Plain(2, size=len(tokenizer))
        with pytest.raises(ValueError, match=r"2 embeddings \(tables.0, tables.1\): .*embedding='tables.0'"):
            trainer(tmp_path, model=model, tokenizer=tokenizer)
        made = trainer(tmp_path, model=model, tokenizer=tokenizer, settings={"embedding": "tables.0"})
        made.train()
        assert made.adversaries[0].tap.embedding is model.tables[0]

    def test_with_one_that_never_runs(self, tmp_path: Path):
        tokenizer = word_pieces()
        model = Plain(2, runs=1, size=len(tokenizer))
        made = trainer(tmp_path, model=model, tokenizer=tokenizer, settings={"embedding": "tables.0"})
        with pytest.raises(RuntimeError, match=r"did not run .*pass the module that really runs as `embedding=`"):
            made.train()

    @pytest.mark.parametrize("rows_of_table", [80, 200])
    def test_a_tokenizer_of_another_model(self, tmp_path: Path, rows_of_table: int):
        tokenizer = word_pieces()
        size = len(tokenizer)
        with pytest.raises(
            ValueError,
            match=rf"tokenizer has {size} pieces, but .* {rows_of_table} rows: pass the .*resize_token",
        ):
            trainer(tmp_path, model=bert("sequence", rows_of_table), tokenizer=tokenizer)
        trainer(tmp_path, model=bert("sequence", size + 6), tokenizer=tokenizer)  # rounded up

    @pytest.mark.parametrize(("task", "wrong"), [("sequence", 7), ("token", -1)])
    def test_labels_out_of_range(self, tmp_path: Path, task: str, wrong: int):
        made = trainer(tmp_path, task)
        data: Any = made.train_dataset
        data[3]["labels"] = wrong if task == "sequence" else [wrong] * len(data[3]["input_ids"])
        with pytest.raises(
            ValueError, match=rf"labels must be from 0 to 1, .*has 2 .*or -100 .*but one is {wrong}: renumber"
        ):
            made.train()

    @pytest.mark.parametrize("kind", ["MaskedLM", "QuestionAnswering"])
    def test_heads_that_give_no_labels(self, tmp_path: Path, kind: str):
        """Labels of a language model are words, whatever its num_labels; answers have two tensors of logits."""
        tokenizer = word_pieces()
        model = getattr(transformers, f"BertFor{kind}")(bert("sequence", len(tokenizer)).config)
        texts: list[Any] = [dict(tokenizer("the film was warm and well said")) for _ in range(8)]
        given: dict[str, Any] = {"train_dataset": texts}
        if kind == "MaskedLM":
            given["data_collator"] = transformers.DataCollatorForLanguageModeling(tokenizer)
        for text in texts if kind == "QuestionAnswering" else ():
            text |= {"start_positions": 1, "end_positions": 2}
        made = trainer(tmp_path, model=model, tokenizer=tokenizer, given=given, learning_rate=0.01)
        made.train()
        assert made.state.log_history[0]["iadvt_loss"] > made.state.log_history[0]["label_loss"] > 0

    def test_a_multiple_choice(self, tmp_path: Path):
        """Labels are numbers of choices, and each choice is a text with a perturbation of its own."""
        tokenizer = word_pieces()
        model = transformers.BertForMultipleChoice(bert("sequence", len(tokenizer)).config)
        texts = [f"the film was {word}" for word in ("warm", "dull", "bland and cold", "well said")]
        choices = tokenizer(texts, padding=True)
        given = {
            "train_dataset": [{**choices, "labels": label} for label in (3, 0, 2)],
            "data_collator": transformers.default_data_collator,
        }
        made = trainer(tmp_path, model=model, tokenizer=tokenizer, given=given, settings={"epsilon": 0.5})
        inputs = made.data_collator(given["train_dataset"])
        real = (inputs["input_ids"] > 4).flatten(0, 1)
        adv, bare = made.adversaries[0], {name: inputs[name] for name in ("input_ids", "attention_mask")}
        clean = adv.tap.run(lambda: model(**bare), watch=True)
        assert clean.shift is not None
        loss = F.cross_entropy(clean.logits, inputs["labels"])
        found = adv.perturb(clean.ids, torch.autograd.grad(loss, clean.shift)[0], real)
        torch.testing.assert_close(found.strengths.flatten(1).norm(dim=1), torch.full((12,), 0.5))
        moved = adv.tap.run(lambda: model(**bare), found.perturbation).logits
        expected = loss + F.cross_entropy(moved, inputs["labels"])
        torch.testing.assert_close(made.compute_loss(model.train(), inputs), expected)

    def test_without_a_tokenizer(self, tmp_path: Path):
        given = {"processing_class": None, "data_collator": transformers.default_data_collator}
        with pytest.raises(ValueError, match=r"iadvt points to words, .*processing_class=tokenizer, .* candidates="):
            trainer(tmp_path, given=given)
        same = [{"input_ids": [2, 7 + at, 9, 3], "labels": at % 2} for at in range(4)]
        given |= {"candidates": range(5, 50), "train_dataset": same}
        with pytest.warns(
            UserWarning, match=r"every token but the id 0 is perturbed like a word, \[CLS\] and \[SEP\] too"
        ):
            made = trainer(tmp_path, given=given)
        made.train()
        assert made.state.log_history[0]["iadvt_loss"] > 0
        ends = bert("sequence", len(word_pieces()), bos_token_id=2, eos_token_id=3)
        assert trainer(tmp_path, given=given, model=ends)._ordinary(torch.tensor([2, 7, 3])).tolist() == [0, 1, 0]

    def test_batches_without_ids(self, tmp_path: Path):
        made = trainer(tmp_path)
        assert made.model is not None
        inputs = {"inputs_embeds": torch.zeros(1, 2, 16), "labels": torch.zeros(1, dtype=torch.long)}
        with pytest.raises(RuntimeError, match="the embedding did not run"):
            made.compute_loss(made.model.train(), inputs)
        with pytest.raises(ValueError, match=r"batches must hold input_ids .* but hold inputs_embeds, labels"):
            trainer(tmp_path, method="vat").compute_loss(made.model, inputs)

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"neftune_noise_alpha": 5.0}, "neftune_noise_alpha adds noise where"),
            ({"torch_compile": True}, "torch_compile=True leaves out the hook"),
            (
                {"gradient_checkpointing": True, "gradient_checkpointing_kwargs": {"use_reentrant": True}},
                "reentrant checkpoints give no gradient",
            ),
        ],
    )
    def test_ways_to_train_that_cannot_be(self, tmp_path: Path, changes: dict[str, Any], said: str):
        with pytest.raises(ValueError, match=said):
            trainer(tmp_path, **changes)

    def test_a_static_graph(self, tmp_path: Path):
        made = trainer(tmp_path)
        made.args.ddp_static_graph = True  # not given: older versions do not know it
        with pytest.raises(ValueError, match=r"ddp_static_graph=True .* does not exchange gradients"):
            refuse_arguments(made)

    @pytest.mark.parametrize("kind", ["is_fsdp_enabled", "is_deepspeed_enabled"])
    def test_tables_in_parts(self, kind: str):
        """Neither runs without a GPU: only what the check sees of them."""
        split = {"is_fsdp_enabled": False, "is_deepspeed_enabled": False} | {kind: True}
        with pytest.raises(ValueError, match=r"FSDP and DeepSpeed split .*: use plain DDP"):
            refuse_arguments(SimpleNamespace(args=None, **split))

    def test_several_gpus_in_one_process(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(transformers.TrainingArguments, "n_gpu", 2)
        with pytest.raises(ValueError, match=r"one process with 2 GPUs .* start one process a GPU"):
            trainer(tmp_path)

    @pytest.mark.parametrize("kind", ["regression", "multi_label_classification"])
    def test_a_divergence_of_no_classes(self, tmp_path: Path, kind: str):
        tokenizer = word_pieces()
        model = bert("sequence", len(tokenizer), problem_type=kind, num_labels=2)
        data = [{**each, "labels": [0.0, 1.0]} for each in rows(tokenizer, "sequence")]
        if kind == "regression":
            with pytest.raises(ValueError, match=f"vat compares .* but this model is for {kind}: take advt or iadvt"):
                trainer(tmp_path, method="advt+vat", model=model, tokenizer=tokenizer)
        made = trainer(tmp_path, model=model, tokenizer=tokenizer, given={"train_dataset": data})
        made.train()  # the model's own loss
        assert made.state.log_history[0]["iadvt_loss"] > made.state.log_history[0]["label_loss"]

    @pytest.mark.parametrize("said", [None, "multi_label_classification"])
    @pytest.mark.parametrize("method", ["vat", "ivat"])
    def test_several_labels_at_once_have_a_divergence_each(self, tmp_path: Path, method: str, said: str | None):
        """Transformers tell that a model is of that kind only in its first pass, where its config does not."""
        tokenizer = word_pieces()
        model = bert("sequence", len(tokenizer), problem_type=said, num_labels=3)
        data = [{**each, "labels": [0.0, 1.0, 1.0]} for each in rows(tokenizer, "sequence")]
        made = trainer(tmp_path, method=method, model=model, tokenizer=tokenizer, given={"train_dataset": data})
        inputs = made.data_collator(data)
        torch.manual_seed(3)
        total = made.compute_loss(model.train(), inputs)
        bare = {name: value for name, value in inputs.items() if name != "labels"}
        (adversary,) = made.adversaries
        torch.manual_seed(3)
        outcome = adversary(lambda: model(**bare), mask=(inputs["input_ids"] > 4) | (inputs["input_ids"] == 1))
        clean, moved = (
            torch.distributions.Bernoulli(logits=logits.detach().double())
            for logits in (outcome.clean, outcome.perturbed)
        )
        expected = float(torch.distributions.kl_divergence(clean, moved).mean())
        assert expected > 1e-6
        assert float((total - model(**inputs).loss).detach()) == pytest.approx(expected, rel=1e-2)
        assert float(outcome.loss.detach()) == pytest.approx(expected, rel=1e-2)

    def test_fractions_that_nothing_tells_the_kind_of(self, tmp_path: Path):
        tokenizer = word_pieces()
        data = [{**each, "labels": [0.25, 0.75]} for each in rows(tokenizer, "sequence")]

        def mine(outputs: Any, labels: Tensor, num_items_in_batch: Any = None) -> Tensor:
            return F.cross_entropy(outputs.logits, labels)

        model = bert("sequence", len(tokenizer))
        given = {"train_dataset": data, "compute_loss_func": mine}
        made = trainer(tmp_path, method="ivat", model=model, tokenizer=tokenizer, given=given)
        with pytest.raises(ValueError, match=r"set model.config.problem_type to 'multi_label_classification' where"):
            made.train()
        model.config.problem_type = "single_label_classification"
        made.train()

    @pytest.mark.parametrize("task", ["sequence", "token"])
    def test_a_table_that_is_rounded_up(self, tmp_path: Path, task: str):
        """Its rows beyond the tokenizer are nobody's words: they are never pointed to."""
        tokenizer = word_pieces()
        pieces, rounded = len(tokenizer), 128
        assert pieces < 0.9 * rounded
        made = trainer(tmp_path, task, model=bert(task, rounded), tokenizer=tokenizer, settings={"k": None})
        inputs = made.data_collator(made.train_dataset)  # type: ignore[arg-type]
        candidates = made.adversaries[0].space(inputs["input_ids"]).candidates
        assert candidates is not None
        assert int(candidates.max()) < pieces
        made.train()
        model = bert("sequence", rounded, id2label={0: "bad", 1: "good"})
        for method in ("iadvt", "advt"):
            settings = AdversarialSettings(method=method, k=None)
            (found,) = wordward.hf.explain(model, tokenizer, ["the film was warm"], settings=settings)
            assert all(pull.toward for place in found.places for pull in place.pulls)

    def test_explanations_are_of_the_model_as_it_was(self):
        tokenizer = word_pieces()
        model = bert("sequence", len(tokenizer), id2label={0: "bad", 1: "good"})
        (before,) = wordward.hf.explain(model, tokenizer, ["the film was warm"])
        (same,) = wordward.hf.explain(model, tokenizer, ["the film was warm"])
        with torch.no_grad():
            for weights in model.parameters():
                weights.mul_(-1)
        assert before == same

    def test_without_transformers(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setitem(sys.modules, "transformers", None)
        monkeypatch.delitem(sys.modules, "wordward.hf.trainer")
        with pytest.raises(ImportError, match=r"pip install 'wordward\[hf\]'"):
            importlib.import_module("wordward.hf.trainer")


class TestSettings:
    def test_a_command_line(self, tmp_path: Path):
        parser = transformers.HfArgumentParser([transformers.TrainingArguments, AdversarialSettings])  # type: ignore[arg-type]
        line = f"--output_dir {tmp_path} --method advt+ivat --epsilon 0.5 --refresh 20 --k 7 --no_whole_words"
        _, found = parser.parse_args_into_dataclasses(line.split())
        expected: Any = {"method": "advt+ivat", "epsilon": 0.5, "refresh": 20, "k": 7, "whole_words": False}
        assert found == AdversarialSettings(**expected)
        assert AdversarialSettings().k == wordward.MethodSettings().k == 10

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            ({"refresh": "soon"}, "refresh must be auto, batch, epoch or a number of steps"),
            ({"epsilon": -1.0}, "epsilon must be greater than 0"),
            ({"unlabelled_batch_size": 0}, "unlabelled_batch_size must be a whole number, 1 or more"),
        ],
    )
    def test_what_no_method_can_use(self, wrong: Any, said: str):
        with pytest.raises(ValueError, match=said):
            AdversarialSettings(**wrong)

    def test_an_unknown_method(self, tmp_path: Path):
        with pytest.raises(ValueError, match=r"unknown method 'fgsm'; choose from baseline, .*iadvt"):
            trainer(tmp_path, method="fgsm")


def test_collator_keeps_the_tokenizer(tmp_path: Path):
    tokenizer = word_pieces()
    made = trainer(tmp_path, given={"processing_class": None, "data_collator": collator(tokenizer, "sequence")})
    assert made.data_collator.tokenizer is not None
    made.save_model(str(tmp_path / "saved"))
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "saved").get_vocab() == tokenizer.get_vocab()
