"""Which words of a text a Hugging Face model is pulled toward, whole words for word pieces."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from wordward.explain.explanation import Explanation, Place, pulls_of
from wordward.explain.piece_pulls import MaskedLoss
from wordward.explain.pulls import TEXTS, BatchPulls, find_pulls
from wordward.hf.inputs import NO_KL, perturbed
from wordward.hf.settings import AdversarialSettings
from wordward.perturbation.adversary import Adversary
from wordward.perturbation.objective import IGNORE
from wordward.perturbation.recipes import RECIPES, at_text, parse_methods
from wordward.perturbation.tap import Tap, evaluating
from wordward.runs.pieces import logits_of
from wordward.support.errors import SettingError
from wordward.text.corpus import Batch
from wordward.text.word_pieces import (
    Word,
    candidate_ids,
    check_size,
    piece_texts,
    special_ids,
    unperturbed_ids,
    words_of,
)

Text = str | Sequence[str]  # as it is, or as the words of a tagger


def explain(
    model: nn.Module,
    tokenizer: Any,
    texts: Sequence[Text],
    *,
    labels: Sequence[Any] | None = None,
    settings: AdversarialSettings | None = None,
    top: int = 3,
) -> list[Explanation]:
    """For each text the words that pull each of its words, where a label's loss rises most.

    `labels`: a text's label by name, for a tagger (whose texts come as words) a list of them; None where the model's
    own prediction is to count. `settings.method`: one method, such as iadvt.
    """
    if isinstance(texts, str):
        raise SettingError("texts", "texts must be a list of them, but one came: give [text]")
    names = _names(model)
    explainer = _Explainer(model, tokenizer, settings or AdversarialSettings(), top)
    explanations = []
    for start in range(0, len(texts), TEXTS):
        part = texts[start : start + TEXTS]
        given = [None] * len(part) if labels is None else labels[start : start + TEXTS]
        explanations += explainer(part, given, names)
    return explanations


def _names(model: nn.Module) -> list[str]:
    config: Any = getattr(model, "config", None)
    named = getattr(config, "id2label", None)
    if not named:
        raise SettingError(
            "model", "the model must name its labels: set model.config.id2label = {0: ..., 1: ...}"
        )
    if len(named) < 2 or getattr(config, "problem_type", None) in NO_KL:
        raise SettingError(
            "model",
            "an explanation is of one label among several, but this model is for regression or for several labels at "
            "once: use wordward.iadvt with your own `loss=`, and wordward.explain.swaps",
        )
    return [str(named[at]) for at in sorted(named)]


def _checked(logits: Tensor, names: Sequence[str], *, tagging: bool) -> Tensor:
    """Logits that are of the labels, one for a text, or one for a word where texts are words."""
    if logits.shape[-1] != len(names):
        raise SettingError(
            "model",
            f"the model must give a logit for each of its {len(names)} labels, but gave {logits.shape[-1]}: take one "
            "for sequence or token classification",
        )
    if (logits.dim() > 2) != tagging:
        raise SettingError("texts", "texts must be lists of words for a tagger, and strings for a classifier")
    return logits


class _Explainer:
    """A method on a model, and what it takes to read texts."""

    def __init__(self, model: nn.Module, tokenizer: Any, settings: AdversarialSettings, top: int) -> None:
        methods = parse_methods(settings.method, replace(settings, refresh="epoch"))  # the table stays
        if len(methods) != 1:
            raise SettingError(
                "method", f"expected one method ({', '.join(RECIPES)}); got {settings.method!r}"
            )
        check_size(tokenizer, Tap(model, embedding=settings.embedding).size)
        self.model, self.tokenizer, self.top = model, tokenizer, top
        self._loss = MaskedLoss(methods[0])
        self.adversary = Adversary(
            model,
            at_text(methods[0]),
            embedding=settings.embedding,
            site=settings.site,
            candidates=candidate_ids(tokenizer, whole_words=settings.whole_words),
            loss=self._loss,
        )
        device = self.adversary.tap.device
        self._special = torch.tensor(unperturbed_ids(tokenizer), device=device)
        special = set(special_ids(tokenizer))
        self._allowed = torch.tensor([at for at in range(len(tokenizer)) if at not in special], device=device)

    def __call__(self, texts: Sequence[Text], given: Sequence[Any], names: list[str]) -> list[Explanation]:
        """The explanations of a batch of texts."""
        tagging = not isinstance(texts[0], str)
        encoding = self.tokenizer(
            [text if isinstance(text, str) else list(text) for text in texts],
            is_split_into_words=tagging,
            padding=True,
            truncation=True,
            return_tensors="pt",
        )
        words = [words_of(encoding, text, row=row) for row, text in enumerate(texts)]
        inputs = {name: value.to(self.adversary.tap.device) for name, value in encoding.items()}
        mask = perturbed(inputs, lambda ids: ~torch.isin(ids, self._special))
        labels = _labels(inputs["input_ids"], words, given, names, tagging=tagging)
        self._loss.mask = _first(mask, words) if tagging else None
        with evaluating(self.model):
            pulls = find_pulls(
                self.adversary,
                lambda: _checked(logits_of(self.model(**inputs)), names, tagging=tagging),
                Batch(inputs["input_ids"], mask, labels),
                top=self.top,
                focus=None,
                seed=0,
                allowed=self._allowed,
            )
        return [
            self._explained(
                text, words[row], given[row], names, row, inputs["input_ids"][row].tolist(), pulls
            )
            for row, text in enumerate(texts)
        ]

    def _explained(
        self,
        text: Text,
        words: Sequence[Word],
        given: Any,
        names: list[str],
        row: int,
        ids: list[int],
        pulls: BatchPulls,
    ) -> Explanation:
        """What the model says of one text."""
        chances = pulls.logits[row].double().softmax(-1)
        toward, strengths, cosines = (tensor[row].tolist() for tensor in pulls[1:])
        pulled = places(words, ids, self.tokenizer, toward=toward, strengths=strengths, cosines=cosines)
        counts = self.adversary.method.recipe.objective == "label_loss"
        joined = text if isinstance(text, str) else " ".join(text)
        known = Explanation(
            text=joined,
            task="classify" if isinstance(text, str) else "tag",
            method=self.adversary.method.name,
            label=given if counts and isinstance(text, str) else None,
            given=counts and given is not None,
            predicted=None,
            probabilities={},
            places=pulled,
            unread=len(joined[words[-1].end :].split()) if words else 0,
            model=type(self.model).__name__,
        )
        if chances.dim() > 1:
            return replace(known, places=tuple(map(_with_tag(chances, names), pulled, words)))
        named = {name: round(float(chance), 6) for name, chance in zip(names, chances, strict=True)}
        predicted = names[int(chances.argmax())]
        label = known.label or (predicted if counts else None)
        return replace(known, label=label, predicted=predicted, probabilities=named)


def _with_tag(chances: Tensor, names: list[str]) -> Any:
    """Give a place the tag of its word's first piece."""

    def tagged(place: Place, word: Word) -> Place:
        chance, best = chances[word.pieces[0]].max(-1)
        return replace(place, label=names[int(best)], probability=round(float(chance), 6))

    return tagged


def _first(mask: Tensor, words: Sequence[Sequence[Word]]) -> Tensor:
    """The first piece of each word, (batch, time)."""
    first = torch.zeros_like(mask)
    for row, of_text in enumerate(words):
        first[row, [word.pieces[0] for word in of_text]] = True
    return first


def _labels(
    ids: Tensor, words: Sequence[Sequence[Word]], given: Sequence[Any], names: list[str], *, tagging: bool
) -> Tensor:
    """Numbers of the labels given; IGNORE where the prediction is to count."""

    def number(name: Any) -> int:
        if name is not None and name not in names:
            raise SettingError(
                "labels", f"expected a label that the model knows ({', '.join(names)}); got {name!r}"
            )
        return IGNORE if name is None else names.index(name)

    if not tagging:
        return torch.tensor([number(name) for name in given], device=ids.device)
    labels = torch.full_like(ids, IGNORE)
    for row, tags in enumerate(given):
        if tags is not None:
            for word in words[row]:
                labels[row, word.pieces[0]] = number(tags[word.number])
    return labels


def places(
    words: Sequence[Word],
    ids: Sequence[int],
    tokenizer: Any,
    *,
    toward: Sequence[Sequence[int]],
    strengths: Sequence[Sequence[float]],
    cosines: Sequence[Sequence[float]],
) -> tuple[Place, ...]:
    """What pulls each word; `toward`, `strengths` and `cosines` are each piece's, (time, top), strongest first.

    A word is pulled as its strongest piece is, toward the same words; one put in its place replaces all its pieces.
    """
    strongest = [max(word.pieces, key=lambda at: strengths[at][0]) for word in words]
    largest = max((strengths[at][0] for at in strongest), default=0.0)
    pulled = []
    for word, at in zip(words, strongest, strict=True):
        named = zip(piece_texts(tokenizer, toward[at]), strengths[at], cosines[at], strict=True)
        pulls = pulls_of(named, word=word.text, largest=largest)
        known = all(ids[piece] != tokenizer.unk_token_id for piece in word.pieces)
        pulled.append(Place(word.number, word.text, word.start, word.end, known, pulls))
    return tuple(pulled)
