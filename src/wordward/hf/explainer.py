"""Which words of a text a Hugging Face model is pulled toward: a model and its tokenizer, as a run in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from wordward.config.settings import TrainConfig, TrainingSettings
from wordward.datasets import Example
from wordward.explain import explainer
from wordward.explain.explainer import Explanations
from wordward.hf.inputs import NO_KL
from wordward.hf.settings import AdversarialSettings
from wordward.perturbation.adversary import Adversary
from wordward.perturbation.recipes import Method
from wordward.perturbation.tap import Tap
from wordward.runs.pieces import LogitsModel, PieceVocabulary
from wordward.runs.transformer import TransformerRun
from wordward.support.errors import SettingError
from wordward.text.word_pieces import check_size

Text = str | Sequence[str]  # as it is, or as the words of a tagger


def explain(
    model: nn.Module,
    tokenizer: Any,
    texts: Sequence[Text],
    *,
    labels: Sequence[Any] | None = None,
    settings: AdversarialSettings | None = None,
    top: int = 3,
) -> Explanations:
    """For each text the words that pull each of its words, where a label's loss rises most.

    Args:
        model: A sequence or token classifier of transformers whose `config.id2label` names its labels.
        tokenizer: Its tokenizer, a fast one.
        texts: Strings; for a tagger, lists of words.
        labels: A text's label by name, for a tagger a list of them; None where the model's own prediction counts.
        settings: Its `method` is one method, such as iadvt; what the method and the candidates are like.
        top: How many pulling words each word gets, the strongest first.

    Returns:
        An `Explanation` for each text, in the same order.

    Examples:
        >>> (found,) = wordward.hf.explain(model, tokenizer, ["the film was warm"], labels=["bad"])
        >>> found.label, [place.word for place in found.places]
        ('bad', ['the', 'film', 'was', 'warm'])
    """
    if isinstance(texts, str):
        raise SettingError("texts", "texts must be a list of them, but one came: give [text]")
    if not texts:
        return Explanations()
    kinds = {isinstance(text, str) for text in texts}
    if len(kinds) > 1:
        raise SettingError("texts", "texts must be lists of words for a tagger, and strings for a classifier")
    settings = settings or AdversarialSettings()
    run = open_model(model, tokenizer, settings, tagging=not kinds.pop())
    given = [None] * len(texts) if labels is None else labels
    examples = [_example(run, text, label) for text, label in zip(texts, given, strict=True)]
    return explainer.explain(run, examples, method=settings.method, top=top)


def _example(run: "ModelInMemory", text: Text, label: Any) -> Example:
    """A text with its label; a tagger's without words that its tokenizer makes nothing of, as the model reads it."""
    if isinstance(text, str):
        return Example(text, label)
    kept = [at for at, has_pieces in enumerate(run.reader.have_pieces(text)) if has_pieces]
    tokens = tuple(text[at] for at in kept)
    return Example(" ".join(tokens), tokens=tokens, tags=None if label is None else tuple(label[at] for at in kept))


def open_model(model: nn.Module, tokenizer: Any, settings: AdversarialSettings, *, tagging: bool) -> "ModelInMemory":
    """A model and its tokenizer as a run that is in no folder."""
    labels = _names(model)
    table = Tap(model, embedding=settings.embedding)
    check_size(tokenizer, table.size)
    config = TrainConfig(
        task="tag" if tagging else "classify",
        transformer=type(model).__name__,
        perturbation=settings,
        training=TrainingSettings(seed=0),
    )
    return ModelInMemory(
        Path(type(model).__name__),
        config,
        PieceVocabulary(tokenizer, table.size, whole_words=settings.whole_words),
        labels,
        CheckedLogits(model, len(labels), tagging=tagging),
        table.device,
    )


def _names(model: nn.Module) -> tuple[str, ...]:
    """The labels that a model names."""
    config: Any = getattr(model, "config", None)
    named = getattr(config, "id2label", None)
    if not named:
        raise SettingError("model", "the model must name its labels: set model.config.id2label = {0: ..., 1: ...}")
    if len(named) < 2 or getattr(config, "problem_type", None) in NO_KL:
        raise SettingError(
            "model",
            "an explanation is of one label among several, but this model is for regression or for several labels at "
            "once: use wordward.iadvt with your own `loss=`, and wordward.explain.swaps",
        )
    return tuple(str(named[at]) for at in sorted(named))


class CheckedLogits(LogitsModel):
    """A model whose logits are of the labels that it names, for a text, or for each piece where texts are words."""

    def __init__(self, model: nn.Module, labels: int, *, tagging: bool) -> None:
        super().__init__(model)
        self.labels, self.tagging = labels, tagging

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """(batch, classes), or (batch, time, classes)."""
        logits = super().forward(ids, mask)
        if logits.shape[-1] != self.labels:
            raise SettingError(
                "model",
                f"the model must give a logit for each of its {self.labels} labels, but gave {logits.shape[-1]}: "
                "take one for sequence or token classification",
            )
        if (logits.dim() > 2) != self.tagging:
            raise SettingError("texts", "texts must be lists of words for a tagger, and strings for a classifier")
        return logits


@dataclass(frozen=True)
class ModelInMemory(TransformerRun):
    """A Transformer that no run folder holds; its texts of training, and so their words, are not known."""

    def _learnt(self, word: str) -> int:
        return 0

    def _adversary(self, method: Method) -> Adversary:
        settings = self.config.perturbation
        assert isinstance(settings, AdversarialSettings)
        found = Tap(self.model.model, embedding=settings.embedding, site=settings.site)
        return Adversary(
            self.model,
            method,
            embedding=found.embedding,
            site=found.site,
            candidates=torch.from_numpy(self.vocabulary.candidates()),
        )
