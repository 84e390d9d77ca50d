"""Refuse what an AdversarialTrainer cannot train with: methods, arguments, labels, texts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor

from wordward.perturbation.objective import IGNORE
from wordward.support.errors import SettingError

REGRESSION, SEVERAL = "regression", "multi_label_classification"


def refuse_methods(trainer: Any) -> None:
    """Refuse methods that cannot be trained with the model, the loss and the texts."""
    virtual = [method.name for method in trainer.methods if not method.recipe.needs_labels]
    if trainer.methods:
        refuse_arguments(trainer)
    if any(m.recipe.needs_labels and callable(m.recipe.objective) for m in trainer.methods):
        raise SettingError(
            "method",
            "an AdversarialTrainer raises the loss that it trains on: give the method objective='label_loss', "
            "and the Trainer your function as compute_loss_func=",
        )
    if virtual:
        refuse_divergence(trainer.model, virtual[0])
        refuse_plain_texts(trainer.unlabelled_dataset)
    elif trainer.unlabelled_dataset is not None:
        raise SettingError(
            "unlabelled_dataset",
            f"unlabelled_dataset= is for methods without labels, but method is {trainer.adversarial.method!r}: "
            "take vat or ivat, or a sum such as iadvt+ivat",
        )


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
