"""Which words of a text a Hugging Face model is pulled toward: a model and its tokenizer, as a run in memory."""

from collections.abc import Sequence
from typing import Any

from torch import nn

from wordward.explain import explainer
from wordward.explain.explainer import Explanations
from wordward.hf.settings import AdversarialSettings
from wordward.hf.texts import Text, examples_of, given_as_words
from wordward.runs.external import in_memory
from wordward.runs.external_run import ExternalRun
from wordward.runs.opening import with_positive


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
        texts: Strings; for a tagger, lists of words; or `wordward.Example`s, with their labels.
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
    tagging = given_as_words(model, texts)
    if not texts:
        return Explanations()
    run = with_positive(open_model(model, tokenizer, settings, tagging=tagging), positive)
    found = explainer.explain(run, examples_of(run, texts, labels), method=settings.method, top=top)
    for each in found:
        _ = each.places  # found now, since the model may be trained further
    return found


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
