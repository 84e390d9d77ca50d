"""Texts and labels as `wordward.hf.explain` and `wordward.hf.attack` are given them."""

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

from torch import nn

from wordward.datasets import Example
from wordward.runs.external_run import ExternalRun
from wordward.runs.hub import HEADS
from wordward.support.errors import SettingError

Text = str | Sequence[str] | Example  # as it is, as the words of a tagger, or either with what is known of it


def given_as_words(model: nn.Module, texts: Sequence[Text]) -> bool:
    """Whether texts are lists of words, as a tagger's are; other texts than the model reads are refused."""
    if isinstance(texts, str | Example):
        raise SettingError("texts", "texts must be a list of them, but one came: give [text]")
    kinds = {_is_words(text) for text in texts}
    if len(kinds) > 1:
        raise SettingError("texts", "texts must be lists of words for a tagger, and strings for a classifier")
    words = kinds == {True}
    if texts and type(model).__name__.endswith(HEADS[not words]):
        kind = "classifier" if words else "tagger"
        hint = "Example(text, label)" if words else "Example(text, tokens=words, tags=tags)"
        raise SettingError(
            "texts",
            "texts must be lists of words for a tagger, and strings for a classifier; this model is a "
            f"{kind}, but one text is {texts[0]!r:.80}: give labels, if any, as `labels=` or in a wordward.{hint}",
        )
    return words


def examples_of(run: ExternalRun, texts: Sequence[Text], labels: Sequence[Any] | None) -> list[Example]:
    """Texts with their labels, where these are given."""
    if labels is None:
        return [_example(run, text, None) for text in texts]
    labels = labels.tolist() if hasattr(labels, "tolist") else labels  # type: ignore[union-attr]
    if isinstance(labels, str) or len(labels) != len(texts):
        came = f"one string, {labels!r:.40}" if isinstance(labels, str) else f"{len(labels)} of them"
        raise SettingError(
            "labels", f"expected a list of {len(texts)} labels, one for each text; got {came}: give one for each"
        )
    return [_example(run, text, label) for text, label in zip(texts, labels, strict=True)]


def _is_words(text: Text) -> bool:
    """Whether a text is given as its words."""
    return text.tokens is not None if isinstance(text, Example) else not isinstance(text, str)


def _example(run: ExternalRun, text: Text, label: Any) -> Example:
    """A text with its label; a tagger's without words that its tokenizer makes nothing of, as the model reads it."""
    if isinstance(text, Example):
        if label is not None and text.names != (None,):
            raise SettingError(
                "labels", "expected labels in the Examples or as `labels`; got both: leave `labels` out"
            )
        if text.tokens is None:
            return text if label is None else replace(text, label=_named(label))
        text, label = text.tokens, text.tags if label is None else label
    if isinstance(text, str):
        return Example(text, _named(label))
    _check_tags(text, label)
    kept = [at for at, has_pieces in enumerate(run.reader.have_pieces(text)) if has_pieces]
    tokens = tuple(text[at] for at in kept)
    tags = None if label is None else tuple(_named(label[at]) for at in kept)
    return Example(" ".join(tokens), tokens=tokens, tags=tags)


def _named(label: Any) -> Any:
    """A label as it is written; whole numbers stand for the model's labels in their order."""
    label = label.item() if hasattr(label, "item") else label
    if label is None or isinstance(label, str):
        return label
    if isinstance(label, Integral):
        return str(int(label))
    raise SettingError("labels", f"labels must be names or whole numbers, but one is {label!r:.60}")


def _check_tags(words: Sequence[str], tags: Any) -> None:
    """Refuse tags that are not one for each word."""
    if tags is not None and (isinstance(tags, str | Integral) or len(tags) != len(words)):
        raise SettingError(
            "labels", f"expected a list of {len(words)} tags, one for each word of a text; got {tags!r:.60}"
        )
