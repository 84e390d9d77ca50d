"""Fine-tuning a Hugging Face model into a run folder, with any method."""

import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from wordward.config.settings import TrainConfig
from wordward.datasets import DataError, Example, sample
from wordward.datasets.example import check_labels, label_names
from wordward.perturbation.adversary import Adversary
from wordward.perturbation.recipes import parse_methods
from wordward.perturbation.tap import Tap
from wordward.runs import checkpoint, run_folder
from wordward.runs.hub import (
    check_folder,
    known_labels,
    load_model,
    load_tokenizer,
    longest,
    transformers_quietly,
)
from wordward.runs.input_table import model_at_hand
from wordward.runs.label_cells import with_names
from wordward.runs.model_card import write_card
from wordward.runs.pieces import PieceReader, separator_of
from wordward.support.console import say
from wordward.support.device import pick_device
from wordward.support.distributed import ALONE, Team
from wordward.support.errors import SettingError
from wordward.text.chosen import (
    Given,
    labelled_examples,
    read_as,
    split_examples,
    unlabelled_texts,
)
from wordward.text.corpus import Corpus
from wordward.text.tokenizers import split_words
from wordward.text.vocabulary import Vocabulary
from wordward.text.word_pieces import candidate_ids, check_size
from wordward.train.data import Data, settle
from wordward.train.doubts import say_doubts
from wordward.train.halves import say_unreached
from wordward.train.lora import add_lora
from wordward.train.record import say_compared
from wordward.train.yardstick import yardstick_of


class Start:
    """What fine-tuning starts from: texts, tokenizer and model, and settings that they can be used with."""

    def __init__(self, config: TrainConfig, given: Given | None = None, *, quiet: bool = True) -> None:
        source = model_at_hand(str(config.transformer))
        self.device = pick_device(config.training.device)
        _check(config, source, self.device)
        if not Path(source).is_dir():
            say(f"looking for {source} in the cache and on the Hugging Face hub", quiet=quiet)
        self.examples, classes = _examples(config, given, quiet=quiet)
        self.tagging = self.examples["train"][0].tags is not None
        own = () if config.finetuning.new_labels else known_labels(source, tagging=self.tagging)
        self.examples, self.classes = _settled_labels(self.examples, classes, own, source, quiet=quiet)
        apart = config.data.corpus or config.data.dev or (given is not None and "dev" in given)
        self.may_know_dev = bool(own) and not apart
        self.tokenizer = load_tokenizer(source, tagging=self.tagging)
        torch.manual_seed(config.training.seed)  # a new head starts at random
        self.model = load_model(source, tagging=self.tagging, labels=self.classes, whole=bool(own))
        self.model.config.pad_token_id = self.tokenizer.pad_token_id
        if config.finetuning.gradient_checkpointing and not self.model.supports_gradient_checkpointing:
            raise SettingError(
                "gradient_checkpointing",
                f"{type(self.model).__name__} cannot compute its layers again: leave that off",
            )
        self.paired = config.data.pair_column is not None
        if self.paired and self.tagging:
            raise SettingError("pair_column", "`pair_column` is for texts that get one label, but these have tags")
        self.separator = separator_of(self.tokenizer, self.model) if self.paired else None
        self.most, least = longest(self.model, self.tokenizer), self.tokenizer.num_special_tokens_to_add(self.paired)
        wanted = config.text.max_length or self.most
        if not least < wanted <= self.most:
            raise SettingError(
                "max_length",
                f"max_length must be more than {least} (the special tokens) and at most {self.most} (what {source} "
                f"can read), but is {wanted}",
            )
        self.config = replace(config, text=replace(config.text, max_length=wanted))
        self._check_methods()
        if config.finetuning.lora:
            add_lora(self.model, config.finetuning.lora)

    def _check_methods(self) -> None:
        """Refuse methods that cannot be used on the model before an old run is replaced."""
        methods = parse_methods(self.config.method, self.config.perturbation)
        check_size(self.tokenizer, Tap(self.model).size)
        toward_words = any(method.recipe.space == "words" for method in methods)
        self.candidates = candidate_ids(self.tokenizer) if toward_words else None
        for method in methods:
            Adversary(self.model, method, candidates=self.candidates)

    def encode(self, *, quiet: bool) -> Data:
        """The texts as pieces; settles what the config leaves open."""
        reader = PieceReader(self.tokenizer, self.tagging, self.most, paired=self.paired)
        most = self.config.text.max_length
        encoded = {
            name: reader.encode(
                examples, None if name == "unlabelled" else self.classes, most=most, source=name, quiet=quiet
            )
            for name, examples in self.examples.items()
        }
        words = [split_words(example.text, "words", True) for example in self.examples["train"]]
        vocabulary = Vocabulary.build(words, min_documents=1)
        self._rows = [vocabulary.encode(of_text, eos=False) for of_text in words]
        parts = encoded["train"], encoded["dev"], encoded.get("unlabelled")
        self.config, self.data = settle(self.config, Data(vocabulary, self.classes, *parts, tagging=self.tagging))
        return self.data

    def in_words(self) -> Data:
        """The texts as words in the place of pieces, for the yardstick to count."""
        texts = {name: [self._words(example) for example in self.examples[name]] for name in ("train", "dev")}
        vocabulary = Vocabulary.build(texts["train"], min_documents=1)

        def corpus(name: str, labels: Any) -> Corpus:
            rows = [np.array(vocabulary.encode(words, eos=False), dtype=np.int32) for words in texts[name]]
            if self.tagging:  # a sentence may have been cut
                rows = [row[: len(tags)] for row, tags in zip(rows, labels, strict=True)]
            return Corpus(rows, labels)

        train, dev = corpus("train", self.data.train.labels), corpus("dev", self.data.dev.labels)
        return replace(self.data, vocabulary=vocabulary, train=train, dev=dev, unlabelled=None)

    def _words(self, example: Example) -> list[str]:
        if not self.tagging:
            return split_words(example.text, "words", True)
        return list(example.tokens if example.tokens is not None else example.text.split())

    def write(self, folder: Path) -> None:
        """What the run is, before it starts."""
        data = self.data
        run_folder.save_settings(folder, self.config, data.vocabulary, data.classes)
        if not data.tagging:
            corpus = Corpus(self._rows, data.train.labels)  # type: ignore[arg-type]
            counts = corpus.class_counts(len(data.vocabulary), len(data.classes))
            checkpoint.save_class_counts(folder, torch.from_numpy(counts), data.vocabulary)

    def describe(self) -> str:
        """What is about to be learnt from what, in one line."""
        sizes = [(parameter.numel(), parameter.requires_grad) for parameter in self.model.parameters()]
        trained = sum(size for size, learns in sizes if learns)
        few = f", {trained / 1e6:,.2f} M of them trained" if self.config.finetuning.lora else ""
        weights = f"{sum(size for size, _ in sizes) / 1e6:,.1f} M weights{few}"
        return (
            f"{self.config.method} on {self.device}: {self.config.transformer} ({weights}), "
            f"{self.data.describe()}, up to {self.config.text.max_length} word pieces a text"
        )


def _check(config: TrainConfig, source: str, device: torch.device) -> None:
    """Refuse what cannot be trained with before anything is read."""
    check_folder(source)
    if config.training.precision == "fp16" and device.type != "cuda":
        raise SettingError("precision", f"precision fp16 needs a GPU, but the device is {device}: take fp32 or bf16")
    if device.index:
        raise SettingError(
            "device",
            f"a Hugging Face model is trained on the first GPU there is, but the device is {device}: give "
            f"`device='cuda'` and set CUDA_VISIBLE_DEVICES={device.index}",
        )
    import wordward.hf.trainer  # noqa: F401 - refuses where transformers or accelerate is missing


def _examples(
    config: TrainConfig, given: Given | None, *, quiet: bool
) -> tuple[dict[str, list[Example]], tuple[str, ...]]:
    """The texts by what they are for, and the labels."""
    data, methods = config.data, parse_methods(config.method, config.perturbation)
    virtual = any(not method.recipe.needs_labels for method in methods)
    if data.corpus:
        whole = split_examples(replace(data, limit=None), "train")
        classes = check_labels(whole)  # a limit leaves out texts, but no label
        examples = {
            "train": sample(whole, data.limit, labels=label_names),
            "dev": split_examples(data, "dev"),
        }
        extra = split_examples(data, "unlabelled") if virtual else []
    else:
        labelled, held_out, classes = labelled_examples(config, given, quiet=quiet)
        examples = {"train": labelled, "dev": held_out}
        say_doubts(labelled if data.dev else [*labelled, *held_out], quiet=quiet)
        extra = []
    if given and "unlabelled" in given:
        extra = sample(given["unlabelled"], data.limit, labels=label_names, in_order=False)
    elif data.unlabelled:
        unlabelled_texts(data)  # refuses a column that is not there
        extra = [*extra, *read_as(data, data.unlabelled, labelled=False, quiet=quiet)]
    return examples | ({"unlabelled": extra} if extra else {}), classes


def _settled_labels(
    examples: dict[str, list[Example]], classes: tuple[str, ...], own: tuple[str, ...], source: str, *, quiet: bool
) -> tuple[dict[str, list[Example]], tuple[str, ...]]:
    """The texts and the labels to train for: the model's own where it has any, in its order, all of them."""
    if not own:
        return examples, classes
    renamed = {name: with_names(own, of_kind) for name, of_kind in examples.items()}
    if {label for example in renamed["train"] for label in example.names} <= set(own):
        return renamed, own
    unnamed = all(name == f"LABEL_{number}" for number, name in enumerate(own))
    if unnamed and len(own) == len(classes):
        named = ", ".join(f"{old} as {new}" for old, new in zip(own, classes, strict=True))
        say(f"the labels of {source} have no names; they are taken in alphabetical order, {named}", quiet=quiet)
        return examples, classes
    strange = next(name for name in classes if with_names(own, [Example("", name)])[0].label not in own)
    raise DataError(
        f"expected labels of {source} ({', '.join(own)}), as names or numbers; got {strange!r}: rename the labels of "
        "the texts, leave such texts out, or train for the labels of the texts instead with `new_labels=True`"
    )


def fine_tune(
    config: TrainConfig,
    folder: Path,
    given: Given | None = None,
    *,
    force: bool = False,
    resume: bool = False,
    quiet: bool = False,
    team: Team = ALONE,
) -> dict[str, Any]:
    """Fine-tune a model into a run folder; returns its result, as written to result.json."""
    if config.training.batch_size % team.size:
        raise SettingError(
            "batch_size",
            f"batch_size must be a multiple of the {team.size} processes, which share each batch, but is "
            f"{config.training.batch_size}",
        )
    if resume and (done := _finished(folder, config)):
        return done
    start = Start(config, given, quiet=quiet)
    from wordward.train.finetuner import FineTuning  # needs transformers, and says so less plainly

    start.encode(quiet=quiet)
    if not quiet:  # it compares dev with train
        say(start.describe())
    if start.may_know_dev:
        say(
            f"texts held out for dev flatter {config.transformer} if it has learnt them before: give others as `dev`",
            quiet=quiet,
        )
    yardstick = yardstick_of(start.in_words(), quiet=quiet) if team.first else None
    with run_folder.held(folder) if team.first else nullcontext(), transformers_quietly() as transformers:
        if resume and run_folder.begun(folder):
            run_folder.check_labels(folder, start.data.classes)
        if not resume and team.first:
            run_folder.create(folder, force=force)
        going = FineTuning(start, folder, resume=resume, quiet=quiet, team=team)
        going.record.yardstick = yardstick
        if team.first:
            start.write(folder)
        stopped = going.record.interrupted(going.fit, going.save_model)
        if going.trainer.before_second_half:
            say_unreached(start.config, start.data, stopped=stopped, quiet=quiet)
        if not team.first:
            return team.agree({})
        if not stopped:
            shutil.rmtree(folder / run_folder.TRAINER, ignore_errors=True)
        version = transformers.__version__
        result = run_folder.save_result(folder, going.result(stopped), start.device, transformers=version)
        write_card(folder, anew=True)
        if not start.may_know_dev:
            say_compared(result, start.config, quiet=quiet)
        return team.agree(result)


def _finished(folder: Path, config: TrainConfig) -> dict[str, Any] | None:
    """The result of a finished run; raises an error if more epochs are asked for."""
    result = run_folder.finished(folder)
    if result and (missing := [name for name in ("criterion", "dev", "best_epoch") if name not in result]):
        raise run_folder.RunError(
            f"{folder / run_folder.RESULT} cannot be read: expected {missing[0]}; there is none: delete it and run "
            "the same command again, which trains anew"
        )
    kept = run_folder.load_config(folder, TrainConfig).training
    if result and (config.training.epochs > kept.epochs or config.training.minutes != kept.minutes):
        early = result["epochs"] < kept.epochs
        why = f"after {result['epochs']} of {kept.epochs} epochs" if early else "its learning rate has fallen to zero"
        raise run_folder.RunError(
            f"{folder} is finished: {why}, and no checkpoint is left. Train again in another `out`, from "
            f"{folder / run_folder.TRANSFORMER} as `transformer` if you like"
        )
    return result
