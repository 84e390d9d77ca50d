"""What fine-tuning starts from: a Hugging Face model with its tokenizer, the texts, and these as pieces."""

from dataclasses import dataclass, replace
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
from wordward.runs.hub import known_labels, load_model, load_tokenizer, longest, multiple_of
from wordward.runs.hub_errors import check_folder
from wordward.runs.input_table import model_at_hand
from wordward.runs.label_cells import check_counted, numbers_read, with_names
from wordward.runs.pieces import PieceReader, separator_of
from wordward.support.console import say
from wordward.support.device import pick_device
from wordward.support.errors import SettingError
from wordward.text.corpus import Corpus
from wordward.text.loading import InMemory, labelled_examples, read_as, split_examples, unlabelled_texts
from wordward.text.tokenizers import split_words
from wordward.text.vocabulary import Vocabulary
from wordward.text.word_pieces import candidate_ids, check_size
from wordward.train.choosing import with_fine_tuning
from wordward.train.data import Data, settle
from wordward.train.evaluation_texts import check_test_texts
from wordward.train.label_warnings import warn_of_labels
from wordward.train.lora import add_lora


@dataclass(frozen=True)
class Start:
    """Texts, tokenizer and model, and settings that they can be used with."""

    config: TrainConfig
    device: torch.device
    examples: dict[str, list[Example]]  # by what they are for: train, dev, unlabelled
    classes: tuple[str, ...]
    tagging: bool
    may_know_dev: bool  # whether dev was held out of texts that the model may have learnt
    tokenizer: Any
    model: Any
    separator: int | None  # between the two texts of a pair
    most: int  # pieces that the model can read
    candidates: list[int] | None  # the words that r may point to


def start_of(config: TrainConfig, in_memory: InMemory | None = None, *, quiet: bool = True) -> Start:
    """Read texts and model, and refuse what cannot be used together."""
    source, device = model_at_hand(str(config.transformer)), pick_device(config.training.device)
    _check(config, source, device)
    if not Path(source).is_dir():
        say(f"looking for {source} in the cache and on the Hugging Face hub", quiet=quiet)
    examples, classes = _examples(config, in_memory, quiet=quiet)
    tagging = examples["train"][0].tags is not None
    own = () if config.finetuning.new_labels else known_labels(source, tagging=tagging)
    examples, classes = _settled_labels(examples, classes, own, source, quiet=quiet)
    apart = config.data.corpus or config.data.dev or (in_memory is not None and "dev" in in_memory)
    tokenizer = load_tokenizer(source, tagging=tagging)
    torch.manual_seed(config.training.seed)  # a new head starts at random
    model = load_model(source, tagging=tagging, labels=classes, whole=bool(own))
    model.config.pad_token_id = tokenizer.pad_token_id
    if config.finetuning.gradient_checkpointing and not model.supports_gradient_checkpointing:
        raise SettingError(
            "gradient_checkpointing", f"{type(model).__name__} cannot compute its layers again: leave that off"
        )
    paired = config.data.pair_column is not None
    if paired and tagging:
        raise SettingError("pair_column", "`pair_column` is for texts that get one label, but these have tags")
    if tagging:  # as the model's own label loss
        config = replace(config, perturbation=replace(config.perturbation, average="tokens"))
    most = longest(model, tokenizer)
    config = _with_length(config, source, tokenizer.num_special_tokens_to_add(paired), most)
    candidates = _candidates(config, tokenizer, model)
    width, texts = getattr(model.config, "hidden_size", None), len(examples["train"])
    config, chosen = with_fine_tuning(
        config, texts, len(classes), tagging=tagging, width=width, keeps_labels=bool(own)
    )
    if chosen:
        say(chosen, quiet=quiet)
    if config.finetuning.lora:
        add_lora(model, config.finetuning.lora)
    return Start(
        config,
        device,
        examples,
        classes,
        tagging,
        may_know_dev=bool(own) and not apart,
        tokenizer=tokenizer,
        model=model,
        separator=separator_of(tokenizer, model) if paired else None,
        most=most,
        candidates=candidates,
    )


def _with_length(config: TrainConfig, source: str, least: int, most: int) -> TrainConfig:
    """The settings with the number of pieces that are read of a text, what the model can read by default."""
    wanted = config.text.max_length or most
    if not least < wanted <= most:
        raise SettingError(
            "max_length",
            f"max_length must be more than {least} (the special tokens) and at most {most} (what {source} can read), "
            f"but is {wanted}",
        )
    return replace(config, text=replace(config.text, max_length=wanted))


def _candidates(config: TrainConfig, tokenizer: Any, model: Any) -> list[int] | None:
    """The words that r may point to, if it points to any; refuses methods that cannot be used on the model."""
    methods = parse_methods(config.method, config.perturbation)
    check_size(tokenizer, Tap(model).size)
    toward_words = any(method.recipe.space == "words" for method in methods)
    candidates = candidate_ids(tokenizer) if toward_words else None
    for method in methods:
        Adversary(model, method, candidates=candidates)
    return candidates


@dataclass(frozen=True)
class Encoded:
    """A start whose texts are pieces, and settings that leave nothing open."""

    start: Start
    config: TrainConfig
    data: Data
    counted: list[np.ndarray]  # the labelled texts as words of the data's vocabulary

    def in_words(self) -> Data:
        """The texts as words in the place of pieces, for the yardstick to count."""
        examples, tagging = self.start.examples, self.start.tagging
        texts = {name: [_words(example, tagging=tagging) for example in examples[name]] for name in ("train", "dev")}
        vocabulary = Vocabulary.build(texts["train"], min_documents=1)

        def corpus(name: str, labels: Any) -> Corpus:
            rows = [_row(vocabulary, words) for words in texts[name]]
            if tagging:  # a sentence may have been cut
                rows = [row[: len(tags)] for row, tags in zip(rows, labels, strict=True)]
            return Corpus(rows, labels)

        train, dev = corpus("train", self.data.train.labels), corpus("dev", self.data.dev.labels)
        return replace(self.data, vocabulary=vocabulary, train=train, dev=dev, unlabelled=None)

    def write(self, folder: Path) -> None:
        """What the run is, before it starts."""
        data = self.data
        run_folder.save_settings(folder, self.config, data.vocabulary, data.classes)
        if not data.tagging:
            counts = Corpus(self.counted, data.train.labels).class_counts(len(data.vocabulary), len(data.classes))
            checkpoint.save_class_counts(folder, torch.from_numpy(counts), data.vocabulary)

    def describe(self) -> str:
        """What is about to be learnt from what, in one line."""
        sizes = [(parameter.numel(), parameter.requires_grad) for parameter in self.start.model.parameters()]
        trained = sum(size for size, learns in sizes if learns)
        few = f", {trained / 1e6:,.2f} M of them trained" if self.config.finetuning.lora else ""
        weights = f"{sum(size for size, _ in sizes) / 1e6:,.1f} M weights{few}"
        return (
            f"{self.config.method} on {self.start.device}: {self.config.transformer} ({weights}), "
            f"{self.data.describe()}, up to {self.config.text.max_length} word pieces a text"
        )


def encode(start: Start, *, quiet: bool) -> Encoded:
    """The texts as pieces; settles what the config leaves open."""
    check_test_texts(start.config, start.classes, tagging=start.tagging, quiet=quiet)
    paired = start.config.data.pair_column is not None  # with or without a separator of its own
    reader = PieceReader(start.tokenizer, start.tagging, start.most, multiple_of(start.model), paired)
    encoded = {
        name: reader.encode(
            examples,
            None if name == "unlabelled" else start.classes,
            most=start.config.text.max_length,
            source=_source(start.config, name),
            quiet=quiet,
        )
        for name, examples in start.examples.items()
    }
    unit = "sentences" if start.tagging else "texts"
    for name, corpus in encoded.items():
        corpus.say_cut({"train": f"{unit} to learn from"}.get(name, f"{name} {unit}"), quiet=quiet)
    words = [split_words(example.text, "words", True) for example in start.examples["train"]]
    vocabulary = Vocabulary.build(words, min_documents=1)
    parts = encoded["train"], encoded["dev"], encoded.get("unlabelled")
    config, data = settle(start.config, Data(vocabulary, start.classes, *parts, tagging=start.tagging))
    return Encoded(start, config, data, [_row(vocabulary, of_text) for of_text in words])


def _source(config: TrainConfig, name: str) -> str:
    """The file that texts are from, for errors, by what they are for; that itself where there is none."""
    data = config.data
    return {"train": data.train, "dev": data.dev or data.train, "unlabelled": data.unlabelled}[name] or name


def _row(vocabulary: Vocabulary, words: list[str]) -> np.ndarray:
    return np.array(vocabulary.encode(words, eos=False), dtype=np.int32)


def _words(example: Example, *, tagging: bool) -> list[str]:
    """A text as words that can be counted."""
    if not tagging:
        return split_words(example.text, "words", True)
    return list(example.tokens if example.tokens is not None else example.text.split())


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
    config: TrainConfig, in_memory: InMemory | None, *, quiet: bool
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
        labelled, held_out, classes = labelled_examples(config, in_memory, quiet=quiet)
        examples = {"train": labelled, "dev": held_out}
        warn_of_labels(labelled if data.dev else [*labelled, *held_out], quiet=quiet)
        extra = []
    if in_memory and "unlabelled" in in_memory:
        extra = sample(in_memory["unlabelled"], data.limit, labels=label_names, in_order=False)
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
        if read := numbers_read(own, examples["train"]):
            say(f"labels are numbers, read as those of {source}: {read}", quiet=quiet)
        return renamed, own
    unnamed = all(name == f"LABEL_{number}" for number, name in enumerate(own))
    if unnamed and len(own) == len(classes):
        named = ", ".join(f"{old} as {new}" for old, new in zip(own, classes, strict=True))
        say(f"the labels of {source} have no names; they are taken in alphabetical order, {named}", quiet=quiet)
        return examples, classes
    instead = ", or train for the labels of the texts instead with `new_labels=True`"
    check_counted(own, examples["train"], way=instead)
    strange = next(name for name in classes if with_names(own, [Example("", name)])[0].label not in own)
    raise DataError(
        f"expected labels of {source} ({', '.join(own)}), as names or numbers; got {strange!r}: rename the labels of "
        f"the texts, leave such texts out{instead}"
    )
