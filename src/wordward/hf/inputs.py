"""What an AdversarialTrainer is given, checked: its arguments, its labels, its unlabelled texts."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, islice
from math import ceil
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset
from torch.utils.data.distributed import DistributedSampler

from wordward.perturbation.objective import IGNORE
from wordward.support.errors import SettingError

REGRESSION, SEVERAL = "regression", "multi_label_classification"


def refuse_arguments(trainer: Any) -> None:
    """Refuse ways to train in which a perturbation cannot be added or followed back."""
    args = trainer.args
    if trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled:
        raise SettingError(
            "args",
            "FSDP and DeepSpeed split the embedding's table over processes, where nearest words cannot be "
            "searched: use plain DDP, with neither fsdp nor deepspeed in the arguments",
        )
    if args.n_gpu > 1:
        raise SettingError(
            "args",
            f"one process with {args.n_gpu} GPUs splits each batch over copies of the model, which cannot be "
            "perturbed: start one process a GPU (torchrun), or show it one GPU (CUDA_VISIBLE_DEVICES=0)",
        )
    if getattr(args, "ddp_static_graph", None):  # which older versions do not know
        raise SettingError(
            "ddp_static_graph",
            "ddp_static_graph=True takes the search for a perturbation for the backward pass and does not exchange "
            "gradients: leave it off",
        )
    if args.torch_compile:
        raise SettingError(
            "torch_compile", "torch_compile=True leaves out the hook that adds the perturbation: leave it off"
        )
    if args.neftune_noise_alpha is not None:
        raise SettingError(
            "neftune_noise_alpha",
            "neftune_noise_alpha adds noise where the perturbation is added, so that no word has a vector of its "
            "own: leave it off, or take method='random' in its place",
        )
    if args.gradient_checkpointing:
        checkpointing = dict(args.gradient_checkpointing_kwargs or {})
        if checkpointing.get("use_reentrant"):
            raise SettingError(
                "gradient_checkpointing_kwargs",
                "reentrant checkpoints give no gradient at the vectors: "
                "gradient_checkpointing_kwargs={'use_reentrant': False}",
            )
        args.gradient_checkpointing_kwargs = {**checkpointing, "use_reentrant": False}


def refuse_divergence(model: Any, method: str) -> None:
    """Refuse KL for a model whose logits are numbers to be foretold, not labels."""
    config = getattr(model, "config", None)
    kind, labels = getattr(config, "problem_type", None), getattr(config, "num_labels", None)
    if kind == REGRESSION or (labels == 1 and kind != SEVERAL):
        raise SettingError(
            "method",
            f"{method} compares the probabilities of labels, but this model is for regression: take advt or "
            "iadvt, which raise the model's own loss",
        )


def refuse_unclear_labels(model: Any, inputs: Any) -> None:
    """Refuse KL where neither the model nor a pass of its own says what its fractional labels are."""
    config, labels = getattr(model, "config", None), inputs.get("labels")
    fractions = isinstance(labels, Tensor) and labels.is_floating_point()
    if fractions and config is not None and getattr(config, "problem_type", None) is None:
        raise SettingError(
            "problem_type",
            "labels are fractions, and a loss of your own does not say what KL is to compare: set "
            "model.config.problem_type to 'multi_label_classification' where each is a label's own yes or no, or to "
            "'single_label_classification' where they are the probabilities of one label among several",
        )


def refuse_plain_texts(dataset: Any) -> None:
    """Refuse unlabelled texts that no tokenizer has read."""
    if isinstance(dataset, Sequence) and len(dataset) and isinstance(dataset[0], str):
        raise SettingError(
            "unlabelled_dataset",
            "unlabelled_dataset holds plain texts, but the model reads ids: pass "
            "[tokenizer(text, truncation=True) for text in texts]",
        )


def special_ids_of(model: Any) -> list[int]:
    """Ids of tokens that stand for no text, as far as a model's config names them; says if some may be missing."""
    config = getattr(model, "config", None)
    named = {role: getattr(config, f"{role}_token_id", None) for role in ("pad", "bos", "eos", "cls", "sep")}
    known = {role: number for role, number in named.items() if isinstance(number, int)}
    if not known.keys() & {"bos", "cls"} or not known.keys() & {"eos", "sep"}:
        ids = ", ".join(map(str, sorted(known.values())))
        warnings.warn(
            f"no tokenizer was given, so every token{f' but the id {ids}' if ids else ''} is perturbed like a word, "
            "[CLS] and [SEP] too: pass processing_class=tokenizer (or a collator that has one), or name their ids in "
            "model.config (bos_token_id, eos_token_id)",
            stacklevel=4,
        )
    return sorted(set(known.values()))


class CheckedCollator:
    """A collator whose labels must be the model's: on a GPU a wrong one only ends in a device-side assert."""

    def __init__(self, collator: Callable[[Sequence[Any]], Any], model: Any) -> None:
        self.collator = collator
        self.tokenizer = getattr(collator, "tokenizer", None)  # the Trainer saves it with the model
        config = getattr(model, "config", None)
        words = getattr(model, "get_output_embeddings", lambda: None)()  # of a language model: its labels
        one_of = words is None and getattr(config, "problem_type", None) not in (REGRESSION, SEVERAL)
        self.classes: int = getattr(config, "num_labels", 0) if one_of else 0  # fewer than 2: not checked

    def __call__(self, features: Sequence[Any]) -> Any:
        """The batch of some examples."""
        batch = self.collator(features)
        named = isinstance(batch, Mapping) or hasattr(batch, "get")
        labels, ids = (batch.get(name) if named else None for name in ("labels", "input_ids"))
        if isinstance(ids, Tensor) and ids.dim() > 2:  # (batch, choices, time): labels are numbers of choices
            return batch
        if self.classes > 1 and isinstance(labels, Tensor) and not labels.is_floating_point():
            wrong = labels[((labels < 0) & (labels != IGNORE)) | (labels >= self.classes)]
            if len(wrong):
                raise SettingError(
                    "labels",
                    f"labels must be from 0 to {self.classes - 1}, since the model has {self.classes} "
                    f"(num_labels), or {IGNORE} where none counts, but one is {int(wrong[0])}: "
                    "renumber the labels, or load the model with as many labels as there are",
                )
        return batch


def endless(trainer: Any, dataset: Any, batch_size: int) -> Iterator[Any]:
    """Batches of a data set in an order that differs from pass to pass, each process its own part."""
    args = trainer.args
    unchecked = trainer.data_collator.collator  # what stands for a label is no matter here
    collate = trainer._get_collator_with_removed_columns(unchecked, description="unlabelled")
    sampler = None
    if isinstance(dataset, IterableDataset):
        if args.world_size > 1:
            raise SettingError(
                "unlabelled_dataset",
                "a stream of unlabelled texts cannot be shared by several processes: pass one with a length",
            )
    elif not len(dataset):
        raise SettingError("unlabelled_dataset", "unlabelled_dataset has no texts: pass some, or leave it out")
    else:
        seed = args.seed if args.data_seed is None else args.data_seed
        sampler = DistributedSampler(
            dataset, num_replicas=args.world_size, rank=args.process_index, shuffle=True, seed=seed
        )
    loader = DataLoader(
        dataset,
        batch_size,
        sampler=sampler,
        collate_fn=collate,
        num_workers=args.dataloader_num_workers,
        pin_memory=args.dataloader_pin_memory and torch.cuda.is_available(),
        generator=torch.Generator(),  # of its own: one that is made anew later must not move chance elsewhere
    )
    first, skipped = 0, 0
    if sampler is not None:  # resumed training continues after the texts it has seen
        first, skipped = divmod(_seen(trainer), len(loader))
    for number in count(first):
        if sampler is not None:
            sampler.set_epoch(number)
        yield from islice(loader, skipped, None)
        skipped = 0


def _seen(trainer: Any) -> int:
    """Labelled batches of the updates so far; the last update of a pass over them may hold fewer than the others."""
    steps, batches_per_update = trainer.state.global_step, trainer.args.gradient_accumulation_steps
    try:
        a_pass = len(trainer.callback_handler.train_dataloader)
    except TypeError:  # a stream
        return steps * batches_per_update
    passes, updates = divmod(steps, ceil(a_pass / batches_per_update))
    return passes * a_pass + updates * batches_per_update


def perturbed(inputs: Any, ordinary: Callable[[Tensor], Tensor]) -> Tensor:
    """Where r may be, (batch, time): at the tokens that stand for text; `ordinary` says which ids do.

    Of a multiple choice (batch, choices, time) each choice is a text, as the model reads it.
    """
    if "input_ids" not in inputs:
        raise SettingError("input_ids", f"batches must hold input_ids to perturb, but hold {', '.join(inputs)}")
    ids, attended = inputs["input_ids"], inputs.get("attention_mask")
    mask = ordinary(ids)
    if attended is not None and attended.shape == ids.shape:
        mask = mask & attended.bool()
    return mask.flatten(0, -2)


def tagged(inputs: Any, ordinary: Callable[[Tensor], Tensor]) -> Tensor:
    """Where a tag's divergence counts, (batch, time): where its label does, else at all that is perturbed."""
    mask, labels = perturbed(inputs, ordinary), inputs.get("labels")
    return labels != IGNORE if labels is not None and labels.shape == mask.shape else mask


def label_count(batch: Any) -> Tensor:
    """How many labels of a batch count."""
    labels = batch.get("labels")
    return torch.zeros(()) if labels is None else labels.ne(IGNORE).sum()
