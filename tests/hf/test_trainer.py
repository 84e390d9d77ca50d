"""AdversarialTrainer: the loss is the three lines' own, however the Trainer trains, and evaluation stays."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import hf_ddp
import pytest
import torch
import torch.nn.functional as F
import transformers
from beside import in_two
from hf_tiny import CONFIGS, RANDOM, arguments, bert, gradients, rows, trainer, word_pieces
from reviews import reviews
from safetensors.torch import load_file
from torch import Tensor, nn

import wordward
from wordward.hf.trainer import AdversarialSettings, AdversarialTrainer
from wordward.perturbation.objective import kl, label_loss
from wordward.perturbation.space import QuickNeighbors
from wordward.text.word_pieces import candidate_ids

METHODS = list(wordward.RECIPES)
TASKS = ("sequence", "token")


def batch(made: AdversarialTrainer) -> Any:
    """All training texts, padded."""
    texts: Any = made.train_dataset
    return made.data_collator(texts)


def words(inputs: Any) -> Tensor:
    """Where words stand: neither [CLS] nor [SEP] nor padding, whose ids come first but for [UNK]."""
    return (inputs["input_ids"] > 4) | (inputs["input_ids"] == 1)


def by_hand(made: AdversarialTrainer, method: str, inputs: Any, **options: Any) -> tuple[Tensor, Tensor]:
    """The label loss and a method's, by the three lines."""
    model, labels = made.model, inputs["labels"]
    assert isinstance(model, nn.Module)
    bare = {name: value for name, value in inputs.items() if name != "labels"}
    adv = wordward.adversary(
        model,
        method,
        k=5,
        candidates=candidate_ids(made.processing_class),
        average="tokens",
        loss=(lambda a, b: kl(a, b, labels != -100 if labels.dim() > 1 else None, average="tokens"))
        if wordward.RECIPES[method].objective == "kl"
        else (lambda a, b: label_loss(a, b, average="tokens")),
        **options,
    )
    out = adv(lambda: model(**bare), labels, mask=words(inputs))
    return label_loss(model(**bare).logits, labels, average="tokens"), out.loss


class TestLoss:
    @pytest.mark.parametrize("task", TASKS)
    @pytest.mark.parametrize("method", METHODS)
    def test_it_is_that_of_the_three_lines(self, tmp_path: Path, task: str, method: str):
        made = trainer(tmp_path, task, method)
        assert made.model is not None
        inputs = batch(made)
        made.model.train()
        torch.manual_seed(3)
        total, outputs = made.compute_loss(made.model, inputs, return_outputs=True)
        torch.manual_seed(3)
        label, added = by_hand(made, method, inputs)
        torch.testing.assert_close(total, label + added)
        assert float(added.detach()) > 0
        assert "labels" in inputs  # the batch is the caller's
        bare = {name: value for name, value in inputs.items() if name != "labels"}
        torch.testing.assert_close(outputs.logits, made.model(**bare).logits)  # of the clean text

    def test_a_sum_adds_up_and_the_weight_counts(self, tmp_path: Path):
        made = trainer(tmp_path, method="iadvt+ivat", settings={"regularizer_weight": 0.5, "epsilon": 2.0})
        assert made.model is not None
        made.model.train()
        inputs = batch(made)
        label, one = by_hand(made, "iadvt", inputs, epsilon=2.0)
        _, two = by_hand(made, "ivat", inputs, epsilon=2.0)
        torch.testing.assert_close(made.compute_loss(made.model, inputs), label + 0.5 * (one + two))
        assert [adversary.epsilon for adversary in made.adversaries] == [2.0, 2.0]

    def test_epsilon_goes_with_the_distance_between_near_words(self, tmp_path: Path):
        made = trainer(tmp_path, method="iadvt+vat")
        table = made.model.get_input_embeddings().weight.detach()  # type: ignore[union-attr]
        near = float(torch.cdist(table, table).sort().values[:, 10].median())
        assert [each.epsilon for each in made.adversaries] == pytest.approx([0.75 * near, 0.25 * near])

    @pytest.mark.parametrize("task", TASKS)
    def test_label_smoothing_is_in_both_passes(self, tmp_path: Path, task: str):
        plain, smooth = (
            trainer(tmp_path, task, settings={"epsilon": 1e-9}, label_smoothing_factor=by) for by in (0.0, 0.2)
        )
        inputs = batch(plain)
        found = [float(each.compute_loss(each.model.train(), inputs).detach()) for each in (plain, smooth)]  # type: ignore[union-attr]
        logits = plain.model(**{k: v for k, v in inputs.items() if k != "labels"}).logits.detach()  # type: ignore[misc]
        gold = inputs["labels"]
        own = F.cross_entropy(logits.flatten(0, -2), gold.flatten(), label_smoothing=0.2)
        assert found[0] == pytest.approx(2 * float(label_loss(logits, gold, average="tokens")), rel=1e-5)
        assert found[1] == pytest.approx(2 * float(own), rel=1e-5)

    @pytest.mark.parametrize("method", ["iadvt", "iadvt+ivat"])
    def test_a_loss_function_of_the_users_is_in_both_passes(self, tmp_path: Path, method: str):
        seen = []

        def loss(outputs: Any, labels: Tensor, num_items_in_batch: Any = None) -> Tensor:
            seen.append((outputs.logits.detach().clone(), int(num_items_in_batch)))
            return F.cross_entropy(outputs.logits, labels, reduction="sum") / num_items_in_batch

        made = trainer(
            tmp_path,
            method=method,
            given={"compute_loss_func": loss},
            per_device_train_batch_size=4,
            gradient_accumulation_steps=2,
        )
        halves = gradients(made)
        assert [count for _, count in seen] == [8] * 4
        assert not torch.allclose(seen[0][0], seen[1][0])  # clean, then perturbed
        whole = trainer(tmp_path, method=method)
        torch.testing.assert_close(halves, gradients(whole))
        ours, theirs = (each.state.log_history[0] for each in (made, whole))
        assert [ours[name] for name in ours if "loss" in name] == pytest.approx(
            [theirs[name] for name in theirs if "loss" in name], rel=1e-4
        )


class TestTraining:
    def test_baseline_is_the_trainer(self, tmp_path: Path):
        tokenizer = word_pieces()
        ours = trainer(tmp_path, method="baseline", tokenizer=tokenizer, max_steps=3, optim="adamw_torch")
        theirs: Any = transformers.Trainer(
            bert("sequence", len(tokenizer)),
            arguments(tmp_path, max_steps=3, optim="adamw_torch"),
            train_dataset=rows(tokenizer, "sequence"),
            processing_class=tokenizer,
        )
        ours.train()
        theirs.train()
        assert all(
            torch.equal(a, b)
            for a, b in zip(ours.model.parameters(), theirs.model.parameters(), strict=True)  # type: ignore[union-attr]
        )

    @pytest.mark.parametrize("task", TASKS)
    @pytest.mark.parametrize("method", ["baseline", "iadvt+ivat", "advt"])
    def test_parts_of_a_batch_accumulate_to_the_whole(self, tmp_path: Path, task: str, method: str):
        """Also where parts differ in size and in tokens."""
        texts = rows(word_pieces(), task, 16)[8:] if method == "iadvt+ivat" else None
        whole, *parts = (
            trainer(
                tmp_path,
                task,
                method,
                given={"unlabelled_dataset": texts},
                per_device_train_batch_size=size,
                gradient_accumulation_steps=-(-8 // size),
            )
            for size in (8, 4, 3)
        )
        expected = gradients(whole)
        assert expected["classifier.weight"].abs().max() > 1e-4
        for made in parts:
            torch.testing.assert_close(gradients(made), expected)
            ours, theirs = (each.state.log_history[0] for each in (made, whole))
            for name in [key for key in theirs if key.endswith("loss")]:
                assert ours[name] == pytest.approx(theirs[name], rel=1e-4)

    @pytest.mark.parametrize("method", ["baseline", "iadvt+ivat"])
    def test_parts_of_a_language_model_accumulate_to_the_whole(self, tmp_path: Path, method: str):
        """A text's first token is read, but not foretold: it has no label that counts."""
        tokenizer = word_pieces()
        read = [tokenizer(each.text[: 12 + 9 * at]) for at, each in enumerate(reviews(8))]
        texts = [{name: each[name] for name in ("input_ids", "attention_mask")} for each in read]

        def update(size: int) -> dict[str, Tensor]:
            torch.manual_seed(0)
            sizes = CONFIGS["llama"] | {"vocab_size": len(tokenizer), "hidden_size": 16, "initializer_range": 0.3}
            config = transformers.AutoConfig.for_model("llama", **(sizes | {"max_position_embeddings": 64}))
            pad = transformers.DataCollatorForLanguageModeling(tokenizer, mlm=False)
            made = trainer(
                tmp_path,
                method=method,
                model=transformers.AutoModelForCausalLM.from_config(config),
                tokenizer=tokenizer,
                given={"train_dataset": texts, "data_collator": pad},
                settings={"epsilon": 1.0},
                per_device_train_batch_size=size,
                gradient_accumulation_steps=8 // size,
            )
            return gradients(made)

        torch.testing.assert_close(update(2), update(8))

    @pytest.mark.parametrize("method", ["baseline", "iadvt+ivat"])
    @pytest.mark.skipif(not hasattr(transformers.Trainer, "loss_is_scaled_for_ga"), reason="newer transformers ask")
    def test_a_loss_that_is_its_part_of_the_update_is_not_divided(self, tmp_path: Path, method: str):
        class Parts(transformers.Trainer):
            loss_is_scaled_for_ga = True

            def compute_loss(
                self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
            ) -> Any:
                labels = inputs.pop("labels")
                outputs = model(**inputs)
                loss = F.cross_entropy(outputs.logits, labels, reduction="sum") / 8
                return (loss, outputs) if return_outputs else loss

        class Ours(AdversarialTrainer, Parts):
            pass

        def update(size: int) -> dict[str, Tensor]:
            other = trainer(tmp_path, method=method)
            given = arguments(tmp_path, per_device_train_batch_size=size, gradient_accumulation_steps=-(-8 // size))
            texts: Any = other.train_dataset
            made = Ours(
                other.model, given, train_dataset=texts, processing_class=word_pieces(), adversarial=other.adversarial
            )
            return gradients(made)

        whole = update(8)
        assert whole["classifier.weight"].abs().max() > 1e-4
        torch.testing.assert_close(update(3), whole)

    def test_losses_are_logged_one_by_one(self, tmp_path: Path):
        made = trainer(tmp_path, method="iadvt+ivat", max_steps=4, logging_steps=2, learning_rate=0.01)
        made.train()
        logs = [each for each in made.state.log_history if "loss" in each]
        assert len(logs) == 2
        for each in logs:
            assert each["label_loss"] + each["iadvt_loss"] + each["ivat_loss"] == pytest.approx(each["loss"])
            assert each["iadvt_loss"] > each["label_loss"] > 0
            assert each["ivat_loss"] > 0

    @pytest.mark.parametrize("policy", ["2", "epoch", "batch"])
    def test_nearest_words_are_searched_anew(self, tmp_path: Path, policy: str):
        found = []

        class Look(transformers.TrainerCallback):
            def on_step_end(self, *args: Any, **others: Any) -> None:
                found.append(made.adversaries[0].directions.nearest)  # kept, so that no two have one address

        made = trainer(
            tmp_path,
            settings={"refresh": policy},
            given={"callbacks": [Look()]},
            max_steps=4,
            per_device_train_batch_size=4,  # an epoch is two steps
        )
        made.train()
        numbers = [[id(each) for each in found].index(id(each)) for each in found]
        assert numbers == {"2": [0, 0, 2, 2], "epoch": [0, 0, 2, 2], "batch": [0, 1, 2, 3]}[policy]

    @pytest.mark.parametrize("task", TASKS)
    def test_bfloat16(self, tmp_path: Path, task: str):
        half, full = (
            trainer(tmp_path, task, "iadvt+ivat", bf16=on, max_steps=4, learning_rate=0.02) for on in (True, False)
        )
        half.train()
        full.train()
        a, b = ([each for each in made.state.log_history if "loss" in each] for made in (half, full))
        for ours, theirs in zip(a, b, strict=True):
            assert ours["iadvt_loss"] == pytest.approx(theirs["iadvt_loss"], rel=0.05)
        assert a[0]["iadvt_loss"] != b[0]["iadvt_loss"]  # it was half
        assert a[-1]["label_loss"] < a[0]["label_loss"]

    def test_checkpoints_of_layers(self, tmp_path: Path):
        plain, thrifty = (trainer(tmp_path, method="iadvt+ivat", gradient_checkpointing=on) for on in (False, True))
        expected = gradients(plain)
        torch.testing.assert_close(gradients(thrifty), expected)
        assert thrifty.model.is_gradient_checkpointing  # type: ignore[union-attr]

    def test_evaluation_is_the_trainers(self, tmp_path: Path):
        tokenizer = word_pieces()
        model, texts = bert("sequence", len(tokenizer), dropout=0.1), rows(tokenizer, "sequence", 20)
        ours = trainer(tmp_path, model=model, tokenizer=tokenizer, label_smoothing_factor=0.1)
        theirs: Any = transformers.Trainer(
            model, arguments(tmp_path, label_smoothing_factor=0.1), processing_class=tokenizer
        )
        assert ours.evaluate(texts)["eval_loss"] == theirs.evaluate(texts)["eval_loss"]
        assert (ours.predict(texts).predictions == theirs.predict(texts).predictions).all()  # type: ignore[operator]
        with torch.no_grad():
            quiet = ours.compute_loss(model.train(), batch(ours))  # no gradient: nothing to perturb by
        assert not quiet.requires_grad
        still = ours.compute_loss(model.eval(), batch(ours))
        assert float(still.detach()) == pytest.approx(theirs.evaluate(ours.train_dataset)["eval_loss"])

    def test_it_learns_and_is_saved_for_plain_transformers(self, tmp_path: Path):
        tokenizer = word_pieces()
        made = trainer(
            tmp_path / "out",
            model=bert("sequence", len(tokenizer), dropout=0.1),
            tokenizer=tokenizer,
            given={"train_dataset": rows(tokenizer, "sequence", 60)},
            settings={"epsilon": 0.5},
            max_steps=80,
            learning_rate=0.005,  # at 0.01 the seed decides
            optim="adamw_torch",
            **RANDOM,
        )
        made.train()
        unseen = rows(tokenizer, "sequence", 90)[60:]
        said: Any = made.predict(unseen)
        assert (said.predictions.argmax(-1) == said.label_ids).mean() > 0.9
        made.save_model(str(tmp_path / "saved"))
        again = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "saved")
        read = transformers.AutoTokenizer.from_pretrained(tmp_path / "saved")
        text = read("the film was warm", return_tensors="pt")
        torch.testing.assert_close(again(**text).logits, made.model.eval()(**text).logits)  # type: ignore[union-attr]

    @staticmethod
    def _stopped_is_never_stopped(tmp_path: Path, at: int, model: Callable[[], Any], **options: Any) -> None:
        """Four steps, whole and taken up after step `at`, give the same weights."""

        def train(from_: str | None = None) -> dict[str, Tensor]:
            made = trainer(
                tmp_path,
                model=model(),
                max_steps=4,
                learning_rate=0.1,
                per_device_train_batch_size=1,
                save_strategy="steps",
                save_steps=at,
                **options,
            )
            made.train(resume_from_checkpoint=from_)
            return dict(made.model.named_parameters())  # type: ignore[union-attr]

        whole, again = train(), train(str(tmp_path / f"checkpoint-{at}"))
        torch.testing.assert_close(again, whole, rtol=0, atol=0)

    def test_taken_up_at_a_checkpoint_is_never_stopped(self, tmp_path: Path):
        """In the middle of an epoch, dropout on, before nearest words are due to be searched anew."""
        tokenizer = word_pieces()

        self._stopped_is_never_stopped(
            tmp_path,
            2,
            lambda: bert("sequence", len(tokenizer), dropout=0.1),
            method="iadvt+ivat",
            tokenizer=tokenizer,
        )

    def test_unlabelled_texts_go_on_after_passes_whose_last_update_is_smaller(self, tmp_path: Path):
        tokenizer = word_pieces()
        extra = [{**row, "labels": -1} for row in rows(tokenizer, "sequence", 9)]

        self._stopped_is_never_stopped(
            tmp_path,
            3,
            lambda: bert("sequence", len(tokenizer)),
            method="vat",
            tokenizer=tokenizer,
            given={"train_dataset": rows(tokenizer, "sequence", 3), "unlabelled_dataset": extra},
            gradient_accumulation_steps=2,
        )

    def test_epsilon_of_a_model_made_anew_is_that_of_the_table_training_starts_from(self, tmp_path: Path):
        tokenizer = word_pieces()

        def epsilon(from_: str | None = None) -> float:
            made = AdversarialTrainer(
                args=arguments(tmp_path, max_steps=2, learning_rate=0.1, save_strategy="steps", save_steps=1),
                model_init=lambda: bert("sequence", len(tokenizer)),
                train_dataset=rows(tokenizer, "sequence"),
                processing_class=tokenizer,
                adversarial=AdversarialSettings(k=5),
            )
            made.train(resume_from_checkpoint=from_)
            return made.adversaries[0].epsilon

        assert epsilon() == epsilon(str(tmp_path / "checkpoint-1"))

    def test_a_method_may_be_given_by_name(self, tmp_path: Path):
        tokenizer = word_pieces()
        made = AdversarialTrainer(
            bert("sequence", len(tokenizer)),
            arguments(tmp_path),
            train_dataset=rows(tokenizer, "sequence"),
            processing_class=tokenizer,
            adversarial="advt",
        )
        assert made.adversarial == AdversarialSettings(method="advt")

    def test_a_model_made_anew_is_tapped_anew(self, tmp_path: Path):
        tokenizer = word_pieces()
        made = AdversarialTrainer(
            args=arguments(tmp_path),
            model_init=lambda: bert("sequence", len(tokenizer)),
            train_dataset=rows(tokenizer, "sequence"),
            processing_class=tokenizer,
            adversarial=AdversarialSettings(k=5),
        )
        made.train()
        assert made.adversaries[0].tap.model is made.model
        assert made.state.log_history[0]["iadvt_loss"] > 0


class TestFollowedBackAtOnce:
    """Each loss is backpropagated when it is known; a class below that changes the loss gets it whole."""

    @pytest.mark.parametrize("method", ["advt", "iadvt+ivat", "vat", "freelb", "random", "entropy", "pgd+iadvt-best"])
    @pytest.mark.parametrize("parts", [1, 3])
    def test_the_gradient_is_that_of_the_sum(self, tmp_path: Path, method: str, parts: int):
        class Halved(AdversarialTrainer):
            def compute_loss(self, *args: Any, **options: Any) -> Any:
                return 0.5 * super().compute_loss(*args, **options)

        found = []
        for kind in (AdversarialTrainer, Halved):
            options: Any = {"per_device_train_batch_size": 6 // parts, "gradient_accumulation_steps": parts}
            made = trainer(tmp_path, "sequence", method, settings={"regularizer_weight": 0.7}, **options)
            made.__class__ = kind
            torch.manual_seed(5)
            found.append(gradients(made))
        for name, value in found[0].items():
            torch.testing.assert_close(value, 2 * found[1][name], rtol=1e-4, atol=1e-6)

    @pytest.mark.parametrize(("method", "most"), [("baseline", 1), ("advt", 2), ("iadvt", 2), ("vat", 3)])
    def test_each_pass_is_followed_back_once(
        self, tmp_path: Path, method: str, most: int, monkeypatch: pytest.MonkeyPatch
    ):
        runs: list[int] = []
        engine = torch.autograd.graph._engine_run_backward
        for module in (torch.autograd, torch.autograd.graph):
            if hasattr(module, "_engine_run_backward"):
                counted = lambda *args, **options: runs.append(1) or engine(*args, **options)  # noqa: E731
                monkeypatch.setattr(module, "_engine_run_backward", counted)
        along = QuickNeighbors._along

        def uncounted(self: QuickNeighbors, vectors: Tensor) -> Tensor:
            """A product of directions, which follows nothing of the model back."""
            before = len(runs)
            found = along(self, vectors)
            assert len(runs) == before + 1
            del runs[before:]
            return found

        monkeypatch.setattr(QuickNeighbors, "_along", uncounted)
        made = trainer(tmp_path, "sequence", method)
        made.train()
        assert len(runs) <= most + 1  # the Trainer's own, which has nothing left to follow but for the baseline


@pytest.mark.slow
def test_two_processes_make_the_update_of_one(tmp_path: Path):
    """Each with half of every batch, accumulated over two, unlabelled texts beside."""
    both = in_two(hf_ddp.work, tmp_path / "two")
    hf_ddp.update(tmp_path / "one")
    while not both.join():
        pass
    torch.testing.assert_close(load_file(tmp_path / "two"), load_file(tmp_path / "one"))


class TestUnlabelled:
    def test_the_divergence_is_that_of_the_unlabelled_texts(self, tmp_path: Path):
        tokenizer = word_pieces()
        texts = [dict(tokenizer(each)) for each in ("the film was warm", "that story was bland , said he")]
        given = {"unlabelled_dataset": [{**each, "labels": -1} for each in texts]}  # no label of the model's
        made = trainer(tmp_path, "sequence", "ivat", tokenizer=tokenizer, given=given)
        assert made.model is not None
        made.model.train()
        inputs = batch(made)
        label, _ = by_hand(made, "ivat", inputs)
        other = tokenizer.pad(texts, return_tensors="pt")
        _, added = by_hand(made, "ivat", {**other, "labels": torch.zeros(2, dtype=torch.long)})
        torch.testing.assert_close(made.compute_loss(made.model, inputs), label + added)

    def test_every_text_is_seen_once_a_pass_in_another_order(self, tmp_path: Path):
        tokenizer = word_pieces()
        texts = [{**tokenizer("warm " * at), "labels": at} for at in range(1, 7)]  # labels are no matter
        made, taken_up = (
            trainer(
                tmp_path,
                "sequence",
                "vat",
                tokenizer=tokenizer,
                given={"unlabelled_dataset": texts},
                settings={"unlabelled_batch_size": 4},
            )
            for _ in range(2)
        )

        def drawn(by: AdversarialTrainer) -> list[int]:
            """Lengths of the texts that the model reads last for a loss: the unlabelled, perturbed."""
            assert by.model is not None
            read = []
            with by.model.register_forward_pre_hook(
                lambda _, __, given: read.append(given["attention_mask"].sum(1).tolist()), with_kwargs=True
            ):
                by.compute_loss(by.model.train(), batch(by))
            return read[-1]

        lengths = [drawn(made) for _ in range(4)]
        assert [len(each) for each in lengths] == [4, 2, 4, 2]
        passes = [lengths[0] + lengths[1], lengths[2] + lengths[3]]
        assert sorted(passes[0]) == sorted(passes[1]) == list(range(3, 9))
        assert passes[0] != passes[1]
        taken_up.state.global_step = 3  # after three updates
        assert drawn(taken_up) == lengths[3]
        assert [len(drawn(taken_up)) for _ in range(2)] == [4, 2]

    def test_a_stream(self, tmp_path: Path):
        tokenizer = word_pieces()

        class Stream(torch.utils.data.IterableDataset):
            def __iter__(self) -> Any:
                return iter([tokenizer("the film was warm")] * 3)

        made = trainer(tmp_path, method="vat", given={"unlabelled_dataset": Stream()}, max_steps=3)
        made.train()
        assert made.state.log_history[-2]["vat_loss"] > 0

    @pytest.mark.parametrize("first", [0, 3])
    def test_a_stream_that_cannot_be_read_again_is_refused_when_it_ends(self, tmp_path: Path, first: int):
        once = iter([word_pieces()("the film was warm")] * first)

        class Once(torch.utils.data.IterableDataset):
            def __iter__(self) -> Any:
                return once

        made = trainer(tmp_path, method="vat", given={"unlabelled_dataset": Once()}, max_steps=3)
        with pytest.raises(ValueError, match="unlabelled_dataset gave no texts when it was read from the start"):
            made.train()
        assert made.state.global_step == bool(first)

    def test_it_wants_a_method_without_labels_and_texts(self, tmp_path: Path):
        with pytest.raises(ValueError, match=r"unlabelled_dataset= is for .* 'iadvt': take vat or ivat, or a sum"):
            trainer(tmp_path, given={"unlabelled_dataset": [1]})
        made = trainer(tmp_path, method="vat", given={"unlabelled_dataset": []})
        with pytest.raises(ValueError, match="unlabelled_dataset has no texts"):
            made.train()
        with pytest.raises(ValueError, match="unlabelled_dataset holds plain texts"):
            trainer(tmp_path, method="vat", given={"unlabelled_dataset": ["the film was warm"]})
