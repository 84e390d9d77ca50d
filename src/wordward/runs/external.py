"""Opening a Hugging Face model that wordward did not train: of a folder, of the hub, or in memory."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from wordward.config.settings import TrainConfig, TrainingSettings
from wordward.perturbation.settings import MethodSettings
from wordward.perturbation.tap import Tap
from wordward.runs.external_run import CheckedLogits, ExternalRun, SeveralOfModel
from wordward.runs.hub import (
    HEADS,
    architectures,
    checked_config,
    load_tokenizer,
    pretrained,
    transformers_quietly,
)
from wordward.runs.hub_errors import check_folder, explained
from wordward.runs.piece_vocabulary import PieceVocabulary
from wordward.support.errors import RunError, SettingError
from wordward.text.word_pieces import check_size

REGRESSION, SEVERAL = "regression", "multi_label_classification"  # what a model's config may say of its labels


def in_memory(
    model: nn.Module,
    tokenizer: Any,
    *,
    tagging: bool,
    perturbation: MethodSettings | None = None,
    embedding: str | None = None,
    site: str | None = None,
    whole_words: bool = True,
    name: str = "",
) -> ExternalRun:
    """A model and its tokenizer as a run that is in no folder."""
    labels = _names(model)
    table = Tap(model, embedding=embedding)
    check_size(tokenizer, table.size)
    kind = SeveralOfModel if table.several_labels and not tagging else ExternalRun
    return kind(
        Path(name or type(model).__name__),
        _config(type(model).__name__, tagging=tagging, perturbation=perturbation),
        PieceVocabulary(tokenizer, table.size, whole_words=whole_words),
        labels,
        CheckedLogits(model, len(labels), tagging=tagging),
        table.device,
        embedding=embedding,
        site=site,
    )


def open_hub(source: str, device: torch.device) -> ExternalRun:
    """The model of a folder that `save_pretrained` wrote, or of that name on the hub, with its own labels."""
    check_folder(source)
    tagging, model = _load(source)
    tokenizer = load_tokenizer(source, tagging=tagging)
    return replace(in_memory(model.to(device).eval(), tokenizer, tagging=tagging, name=source), source=source)


def open_pair(model: nn.Module, tokenizer: Any, device: torch.device, *, name: str) -> ExternalRun:
    """A model that is in memory, with its tokenizer, which is moved to the device and called by this name."""
    if not getattr(tokenizer, "is_fast", False):
        raise SettingError(
            "tokenizer",
            "expected a model with a fast tokenizer of transformers, which tells where words are in a text; got "
            f"{type(tokenizer).__name__}: give (model, tokenizer), or a function from texts to probabilities",
        )
    head = _head([type(model).__name__])
    if head is None:
        raise SettingError("model", _no_head(type(model).__name__, type(model).__name__))
    model = model.to(device)  # in its own mode, and in eval mode while it is asked
    return in_memory(model, tokenizer, tagging=head, name=name)


def _load(source: str) -> tuple[bool, Any]:
    """Whether the model gives tags, and the model, whose every weight must be in its files."""
    with transformers_quietly() as transformers, explained(source, "model"):
        named = architectures(checked_config(source, transformers))
    tagging = _head(named)
    if tagging is None:
        raise RunError(_no_head(source, " and ".join(named) or "not named in its config.json"))
    model, told = pretrained(source, f"AutoModel{HEADS[tagging]}")
    if missing := sorted(told["missing_keys"]):
        raise RunError(
            f"the weights of {source} lack {', '.join(missing[:3])}, so what it would predict is drawn at random: "
            "give a model that was trained and saved as a whole"
        )
    return tagging, model.float()


def _head(architectures: Sequence[str]) -> bool | None:
    """Whether a model of these kinds gives tags; None if it is no classifier."""
    found = [gives_tags for name in architectures for gives_tags, end in HEADS.items() if name.endswith(end)]
    return found[0] if found else None


def _no_head(source: str, found: str) -> str:
    return (
        f"expected a model for sequence or token classification; the architecture of {source} is {found}: fine-tune "
        "it first (wordward train takes it as `transformer`), or give one that is"
    )


def _names(model: nn.Module) -> tuple[str, ...]:
    """The labels that a model names."""
    config: Any = getattr(model, "config", None)
    named = getattr(config, "id2label", None)
    if not named:
        raise SettingError("model", "the model must name its labels: set model.config.id2label = {0: ..., 1: ...}")
    kind = getattr(config, "problem_type", None)
    if kind == REGRESSION or (len(named) < 2 and kind != SEVERAL):
        raise SettingError(
            "model",
            "what is scored, explained and attacked is the choice of several labels at once, or of one label among "
            "several, but this model is for regression: give a function from texts to the probabilities of labels "
            f"(module:name); or, if its one logit is a label's yes or no, problem_type={SEVERAL!r} in its config",
        )
    names = tuple(str(named[at]) for at in sorted(named))
    if len(set(names)) < len(names):
        raise SettingError(
            "model",
            f"the model must give each label a name of its own, but names them {', '.join(names)}: mend "
            "model.config.id2label (in its config.json)",
        )
    return names


def _config(name: str, *, tagging: bool, perturbation: MethodSettings | None) -> TrainConfig:
    return TrainConfig(
        task="tag" if tagging else "classify",
        transformer=name,
        perturbation=perturbation or MethodSettings(),
        training=TrainingSettings(seed=0, criterion="error"),
    )
