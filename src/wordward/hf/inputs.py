"""What an AdversarialTrainer reads in batches: which ids stand for text, what counts, the unlabelled texts."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from math import ceil
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset
from torch.utils.data.distributed import DistributedSampler

from wordward.perturbation.objective import IGNORE
from wordward.perturbation.tap import Tap
from wordward.support.errors import SettingError
from wordward.text.word_pieces import candidate_ids, check_size, unperturbed_ids

Ordinary = Callable[[Tensor], Tensor]  # ids (batch, time) -> which of them stand for text


def piece_ids(trainer: Any, model: nn.Module, candidates: Any) -> tuple[Any, Tensor]:
    """Ids that may be pointed to, as given or else the tokenizer's words; and those that are not perturbed."""
    settings, special = trainer.adversarial, []
    toward_words = any(method.recipe.space == "words" for method in trainer.methods)
    tokenizer = trainer.processing_class or trainer.data_collator.tokenizer
    if trainer.methods and hasattr(tokenizer, "all_special_ids"):
        check_size(tokenizer, Tap(model, embedding=settings.embedding).size)
        special = unperturbed_ids(tokenizer)
        if toward_words and candidates is None:
            candidates = candidate_ids(tokenizer, whole_words=settings.whole_words)
    elif toward_words and candidates is None:
        raise SettingError(
            "processing_class",
            f"{settings.method} points to words, which a tokenizer knows: pass processing_class=tokenizer, or the "
            "ids that may be pointed to as candidates=",
        )
    elif trainer.methods:
        special = special_ids_of(model)
    return candidates, torch.tensor(special, dtype=torch.long)


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


def endless(trainer: Any, dataset: Any, batch_size: int) -> Iterator[Any]:
    """Batches of a data set in an order that differs from pass to pass, each process its own part."""
    args = trainer.args
    own = trainer.data_collator
    unchecked = getattr(own, "collator", own)  # what stands for a label is no matter here
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
        batch = None
        for batch in islice(loader, skipped, None):
            yield batch
        if batch is None:
            raise SettingError(
                "unlabelled_dataset",
                "unlabelled_dataset gave no texts when it was read from the start, as it is again when all have been "
                "seen: pass a data set whose iteration starts anew each time, or a list",
            )
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


def perturbed(inputs: Any, ordinary: Ordinary) -> Tensor:
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


def _labels(trainer: Any, batch: Any) -> Tensor | None:
    """The labels, where their logits are: a causal language model tells a token one place before it."""
    labels = batch.get("labels")
    if labels is None or not getattr(trainer, "_loss_shifts_labels", False):  # which older versions do not tell
        return labels
    return F.pad(labels[..., 1:], (0, 1), value=IGNORE)


def tagged(trainer: Any, inputs: Any) -> Tensor:
    """Where a tag's divergence counts, (batch, time): where its label does, else at all that is perturbed."""
    mask, labels = perturbed(inputs, trainer._ordinary), _labels(trainer, inputs)
    return labels != IGNORE if labels is not None and labels.shape == mask.shape else mask


def label_count(trainer: Any, batch: Any) -> Tensor:
    """How many labels of a batch count."""
    labels = _labels(trainer, batch)
    return torch.zeros(()) if labels is None else labels.ne(IGNORE).sum()


class Accumulated(NamedTuple):
    """What the batches of one update hold together; the mean over processes, where there are several."""

    steps: int
    labels: Tensor  # that count
    texts: Tensor  # that KL is taken over
    tokens: Tensor  # of those texts, that count


def accumulated(trainer: Any, batches: Sequence[Any], read: Sequence[Any]) -> Accumulated | None:
    """What the batches of an update hold, and those `read` for KL; None where the update has one of each."""
    steps, many = len(batches), trainer.args.world_size > 1
    if not batches or (steps == 1 and len(read) <= 1 and not many):
        return None
    labels = sum(label_count(trainer, batch) for batch in batches)
    masks = [tagged(trainer, batch) for batch in read]
    texts, tokens = sum(len(mask) for mask in masks), sum(mask.sum() for mask in masks)
    sizes = torch.stack([torch.as_tensor(size, device=trainer.args.device) for size in (labels, texts, tokens)])
    if many and trainer.args.average_tokens_across_devices:
        sizes: Any = trainer.accelerator.reduce(sizes.float(), reduction="mean")
    return Accumulated(steps, *sizes.unbind())
