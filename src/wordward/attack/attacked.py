"""What an attack gives back."""

from dataclasses import dataclass
from typing import Literal

Sense = Literal["kept", "changed", "unknown"]
Outcome = Literal["flipped", "kept", "wrong", "unreadable"]


@dataclass(frozen=True)
class Change:
    """One word put in another's place."""

    position: int  # among the words that the model reads
    word: str  # as it stands in the text
    toward: str  # as it stands in the adversarial text
    start: int  # the word's characters in the text
    end: int
    sense: Sense  # whether the true label is judged to be the same still
    correct: str | None = None  # what a file of corrections puts there, "" for nothing


@dataclass(frozen=True)
class Attacked:
    """A text, the adversarial text made of it, and what the model says of both."""

    text: str
    adversarial: str  # the best that was found, also where it does not flip the prediction
    label: str  # the true one where it is given, else what is predicted; a tagger's tags with blanks between
    given: bool = False  # whether the true one is
    before: str = ""  # what is predicted for the text
    after: str = ""  # what is predicted for the adversarial text
    probability_before: float = 0.0  # of the label `before`; a tagger's highest of a flagged token's tag
    probability_after: float = 0.0  # of the same label, in the adversarial text
    changes: tuple[Change, ...] = ()  # in the order of the text
    outcome: Outcome = "kept"  # wrong: not predicted right (a tagger flags no error), so not attacked
    passes: int = 0  # texts that the model read for it
    words: int = 0  # that the model reads
    flagged: tuple[int, ...] = ()  # a tagger's positions under attack: flagged, and errors as far as known
    left: tuple[int, ...] = ()  # those of them still flagged
    errors: int | None = None  # true errors of a sentence, where its tags are given

    @property
    def flipped(self) -> bool:
        """Whether the prediction changed."""
        return self.outcome == "flipped"

    @property
    def sense(self) -> Sense:
        """What is judged of the swaps together: one that changes the sense is enough, then one that is unknown."""
        kinds = {change.sense for change in self.changes}
        return "changed" if "changed" in kinds else "unknown" if "unknown" in kinds else "kept"

    @property
    def sense_kept(self) -> bool:
        """Whether every swap is judged to leave the true label as it is."""
        return bool(self.changes) and self.sense == "kept"

    @property
    def share(self) -> float:
        """Share of the words that were swapped."""
        return len(self.changes) / self.words if self.words else 0.0
