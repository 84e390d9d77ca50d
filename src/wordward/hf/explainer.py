"""Which words of a text a Hugging Face model is pulled toward: a model and its tokenizer, as a run in memory."""

from collections.abc import Sequence
from typing import Any

from torch import nn

from wordward.datasets import Example
from wordward.explain import explainer
from wordward.explain.explainer import Explanations
from wordward.hf.settings import AdversarialSettings
from wordward.runs.external import in_memory, with_positive
from wordward.runs.external_run import ExternalRun
from wordward.support.errors import SettingError

Text = str | Sequence[str]  # as it is, or as the words of a tagger


def explain(
    model: nn.Module,
    tokenizer: Any,
    texts: Sequence[Text],
    *,
    labels: Sequence[Any] | None = None,
    settings: AdversarialSettings | None = None,
    top: int = 3,
    positive: str | None = None,
) -> Explanations:
    """For each text the words that pull each of its words, where a label's loss rises most.

    Args:
        model: A sequence or token classifier of transformers whose `config.id2label` names its labels.
        tokenizer: Its tokenizer, a fast one.
        texts: Strings; for a tagger, lists of words.
        labels: A text's label by name, for a tagger a list of them; None where the model's own prediction counts.
        settings: Its `method` is one method, such as iadvt; what the method and the candidates are like.
        top: How many pulling words each word gets, the strongest first.
        positive: For a model that gives several labels at once: the one whose yes or no is explained.

    Returns:
        An `Explanation` for each text, in the same order.

    Examples:
        >>> (found,) = wordward.hf.explain(model, tokenizer, ["the film was warm"], labels=["bad"])
        >>> found.label, [place.word for place in found.places]
        ('bad', ['the', 'film', 'was', 'warm'])
    """
    settings = settings or AdversarialSettings()
    tagging = given_as_words(texts)
    if not texts:
        return Explanations()
    run = with_positive(open_model(model, tokenizer, settings, tagging=tagging), positive)
    return explainer.explain(run, examples_of(run, texts, labels), method=settings.method, top=top)


def given_as_words(texts: Sequence[Text]) -> bool:
    """Whether texts are lists of words, as a tagger's are; a single string, or some of each, are refused."""
    if isinstance(texts, str):
        raise SettingError("texts", "texts must be a list of them, but one came: give [text]")
    kinds = {isinstance(text, str) for text in texts}
    if len(kinds) > 1:
        raise SettingError("texts", "texts must be lists of words for a tagger, and strings for a classifier")
    return kinds == {False}


def examples_of(run: ExternalRun, texts: Sequence[Text], labels: Sequence[Any] | None) -> list[Example]:
    """Texts with their labels, where these are given."""
    given = [None] * len(texts) if labels is None else labels
    return [_example(run, text, label) for text, label in zip(texts, given, strict=True)]


def _example(run: ExternalRun, text: Text, label: Any) -> Example:
    """A text with its label; a tagger's without words that its tokenizer makes nothing of, as the model reads it."""
    if isinstance(text, str):
        return Example(text, label)
    kept = [at for at, has_pieces in enumerate(run.reader.have_pieces(text)) if has_pieces]
    tokens = tuple(text[at] for at in kept)
    return Example(" ".join(tokens), tokens=tokens, tags=None if label is None else tuple(label[at] for at in kept))


def open_model(model: nn.Module, tokenizer: Any, settings: AdversarialSettings, *, tagging: bool) -> ExternalRun:
    """A model and its tokenizer as a run that is in no folder."""
    return in_memory(
        model,
        tokenizer,
        tagging=tagging,
        perturbation=settings,
        embedding=settings.embedding,
        site=settings.site,
        whole_words=settings.whole_words,
    )
