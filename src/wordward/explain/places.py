"""The words of an explained text with what pulls each, as a reader is shown them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wordward.explain.confirming import Answer
from wordward.explain.explanation import Place, pulls_of
from wordward.explain.filtering import Sensible
from wordward.explain.names import in_names
from wordward.explain.pulls import TextPulls, WordPulls
from wordward.explain.whole_words import by_themselves
from wordward.runs.prediction import named
from wordward.runs.reading import Reading


@dataclass(frozen=True)
class PlaceMaker:
    """Makes the places of explanations when they are asked for; of a model it holds the word vectors at most."""

    vocabulary: Any
    labels: tuple[str, ...]
    tagging: bool
    top: int  # pulls shown of each word
    fitting: bool  # whether only fitting words pull
    pieces: bool  # whether words of several pieces are pulled as wholes
    sensible: Sensible | None
    names: bool = False  # whether parts of English names are left as they are

    def __call__(
        self,
        text: Reading,
        found: TextPulls,
        label: str | None,
        telling: Callable[[], Sequence[Answer]] | None = None,
    ) -> tuple[Place, ...]:
        """The places of one text, whose label is the one given or predicted.

        `telling` gives the pulls that tell the model most, the first of all of them; stronger ones are not shown.
        """
        pulls, word = found.of_words(text.row), self.vocabulary.word
        answers = () if telling is None else telling()
        kept = self._kept(text, pulls, label, answers).tolist()
        said = {answer.position: self._said(answer) for answer in answers if kept[answer.position][answer.column]}
        largest = max(
            (
                strength
                for strengths, stay in zip(pulls.strengths, kept, strict=True)
                for strength, stays in zip(strengths, stay, strict=True)
                if stays
            ),
            default=0.0,
        )
        places = []
        for at, (token, known) in enumerate(zip(text.tokens, text.known, strict=True)):
            shown: tuple[Any, ...] = ()
            if any(kept[at]):
                each = zip(pulls.words[at], pulls.strengths[at], pulls.cosines[at], kept[at], strict=True)
                pulling = [(word(number), strength, cosine) for number, strength, cosine, stays in each if stays]
                shown = pulls_of(pulling, word=token.text, largest=largest, most=self.top)
            if shown and at in said:
                shown = (replace(shown[0], **said[at]), *shown[1:])
            tag = self._tag(found, at) if self.tagging else (None, None)
            written = text.text[token.start : token.end]
            places.append(Place(at, written, token.start, token.end, known, shown, *tag))
        return tuple(places)

    def _said(self, answer: Answer) -> dict[str, Any]:
        """What the model says with the word of a pull put in."""
        return {"probability": round(answer.probability, 6), "prediction": self.labels[answer.predicted]}

    def _tag(self, found: TextPulls, at: int) -> tuple[str, float]:
        label, by_name = named(self.labels, found.probabilities[at])
        return label, by_name[label]

    def whole(self, text: Reading) -> np.ndarray:
        """Which words may be pulled, (words,) bool: where only fitting words pull, what is a word by itself."""
        if not self.fitting:
            return np.ones(len(text.spans), dtype=bool)
        alone = by_themselves(text, wholes=self.pieces)
        return alone & ~in_names(text.text, text.spans) if self.names else alone

    def _kept(self, text: Reading, pulls: WordPulls, label: str | None, answers: Sequence[Answer]) -> Tensor:
        """Which pulls are shown, (words, top) bool.

        If it is known which words speak for a label, only those that are sensible; or all pulls, if none is. Of these
        none that is stronger than the one that tells the model most.
        """
        if not pulls.words:
            return torch.zeros(0, 0, dtype=torch.bool)
        alone = torch.from_numpy(self.whole(text)).unsqueeze(-1)
        own = torch.from_numpy(text.row.ids[text.row.first]).long()
        toward, strengths = torch.tensor(pulls.words), torch.tensor(pulls.strengths)
        fit = alone & (toward != own.unsqueeze(-1))  # a word that no other fits is filled up with itself
        if self.sensible is None or label is None:
            return fit
        shown = self.sensible.of(text.row, self.labels.index(label)).shown(toward, fit & (strengths > 0))
        for answer in answers:
            shown[answer.position, : answer.column] = False
        if answers:
            first = answers[0].position, answers[0].column
            shown &= strengths < strengths[first]
            shown[first] = True
        return shown
