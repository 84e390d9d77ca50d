"""The words of an explained text with what pulls each, as a reader is shown them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from wordward.explain.explanation import Place, pulls_of
from wordward.explain.pulls import TextPulls, WordPulls
from wordward.explain.sensible import Sensible
from wordward.explain.word_kinds import in_one_piece_each, like_names
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
    sensible: Sensible | None

    def __call__(self, text: Reading, found: TextPulls, label: str | None) -> tuple[Place, ...]:
        """The places of one text, whose label is the one given or predicted."""
        pulls, word = found.of_words(text.row), self.vocabulary.word
        kept = self._kept(text, pulls, label)
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
            tag = self._tag(found, at) if self.tagging else (None, None)
            written = text.text[token.start : token.end]
            places.append(Place(at, written, token.start, token.end, known, shown, *tag))
        return tuple(places)

    def _tag(self, found: TextPulls, at: int) -> tuple[str, float]:
        label, by_name = named(self.labels, found.probabilities[at])
        return label, by_name[label]

    def _kept(self, text: Reading, pulls: WordPulls, label: str | None) -> Sequence[Sequence[bool]]:
        """Which pulls are shown, (words, top): where only fitting words pull, none on what is no word by itself.

        That is a piece of a contraction, or a word of several pieces, each of which has neighbours of its own.
        If the run's training texts tell which words speak for a label, only those that are sensible; or all pulls, if
        none is.
        """
        whole = [True] * len(text.spans)
        if self.fitting:
            whole = (text.row.single & in_one_piece_each(text.text, text.spans)).tolist()
        own = text.row.ids[text.row.first]
        all_of_them = [  # a word that no other fits is filled up with itself
            [alone and toward != itself for toward in of_word]
            for alone, itself, of_word in zip(whole, own.tolist(), pulls.words, strict=True)
        ]
        if self.sensible is None or label is None or not pulls.words:
            return all_of_them
        names = like_names(text.text, text.spans)
        toward, strengths, alone, words, ids, names = (
            torch.as_tensor(values)  # few numbers, which a GPU would take longer for
            for values in (pulls.words, pulls.strengths, whole, text.row.numbers[text.row.first], own, names)
        )
        shown = self.sensible(
            self.labels.index(label), words.long(), ids.long(), toward, strengths * alone.unsqueeze(-1), names
        )
        return all_of_them if shown is None else (shown & alone.unsqueeze(-1)).tolist()
