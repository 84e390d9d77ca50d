"""Adversarial texts against a Hugging Face model: a model and its tokenizer, as a run in memory."""

from collections.abc import Sequence
from typing import Any

from torch import nn

from wordward.attack import Attacked, AttackSettings, attack_texts
from wordward.hf.texts import Text, examples_of, given_as_words
from wordward.runs.external import in_memory
from wordward.runs.opening import with_positive


def attack(
    model: nn.Module,
    tokenizer: Any,
    texts: Sequence[Text],
    *,
    labels: Sequence[Any] | None = None,
    settings: AttackSettings | None = None,
    positive: str | None = None,
) -> list[Attacked]:
    """Words of each text swapped until the prediction changes, each change verified by the model.

    Args:
        model: A sequence or token classifier of transformers whose `config.id2label` names its labels.
        tokenizer: Its tokenizer, a fast one.
        texts: Strings; for a tagger, lists of words; or `wordward.Example`s, with their labels.
        labels: A text's true label by name, for a tagger a list of them; a text is attacked only where it is
            predicted. None: whatever is predicted is attacked.
        settings: Which method guides the search, how many words may be swapped, and which swaps are allowed.
        positive: For taggers: the tag that the model is to miss. For a model that gives several labels at once: the
            one whose yes or no is to change.

    Returns:
        An `Attacked` for each text, in the same order.

    Examples:
        >>> (found,) = wordward.hf.attack(model, tokenizer, ["the film was warm and funny"])
        >>> found.before == found.label, found.outcome in ("flipped", "kept")
        (True, True)
    """
    tagging = given_as_words(model, texts)
    if not texts:
        return []
    run = with_positive(in_memory(model, tokenizer, tagging=tagging), positive)
    return attack_texts(run, examples_of(run, texts, labels), settings)
