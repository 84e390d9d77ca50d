"""What an attack gives back."""

from dataclasses import dataclass
from typing import Literal

Sense = Literal["kept", "changed", "unknown"]
Outcome = Literal["flipped", "kept", "wrong", "unreadable"]


@dataclass(frozen=True)
class Change:
    """One word put in another's place, or another edit: what stood at some characters of the text, and what does now.

    Args:
        position: Its place among the words that the model reads.
        word: The word, as it stands in the text; "" where something is put in.
        toward: The word in its place, as it stands in the adversarial text; "" where something is left out.
        start: Where the word begins in the text, in characters.
        end: Where it ends.
        sense: Whether the true label is judged to be the same still.
        correct: What a file of corrections puts there, "" for nothing.
        kind: Which of the kinds of `wordward.attack.EDITS` it is.

    Examples:
        >>> (found,) = run.attack(["the film was warm and funny"])
        >>> all(change.toward in found.adversarial for change in found.changes)
        True
    """

    position: int
    word: str
    toward: str
    start: int
    end: int
    sense: Sense
    correct: str | None = None
    kind: str = "swap"

    @property
    def cost(self) -> int:
        """Characters put in, left out, replaced or exchanged with their neighbour: the fewest that make the edit."""
        return distance(self.word, self.toward)


def distance(first: str, other: str) -> int:
    """The fewest characters to put in, leave out, replace or exchange with their neighbour to make one the other."""
    rows = [list(range(len(other) + 1))]
    for i, a in enumerate(first, start=1):
        row = [i]
        for j, b in enumerate(other, start=1):
            best = min(row[-1] + 1, rows[-1][j] + 1, rows[-1][j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and b == first[i - 2]:
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]


@dataclass(frozen=True)
class Attacked:
    """A text, the adversarial text made of it, and what the model says of both.

    Args:
        text: The text.
        adversarial: The best that was found, also where it does not flip the prediction.
        label: The true one where it is given, else what is predicted; a tagger's tags with blanks between.
        given: Whether the true one is.
        before: What is predicted for the text.
        after: What is predicted for the adversarial text.
        probability_before: Of the label `before`; a tagger's highest of a flagged token's tag.
        probability_after: Of the same label, in the adversarial text.
        changes: The swaps and other edits, in the order of the text.
        outcome: "wrong": not predicted right (a tagger flags no error), so not attacked.
        passes: Texts that the model read for it.
        tried: Of these, how many were the text with edits; 0 where none may be made.
        words: Words that the model reads.
        flagged: A tagger's positions under attack: flagged, and errors as far as known.
        left: Those of them still flagged.
        errors: True errors of a sentence, where its tags are given.
        alone: Kinds of edits one of which, by itself, was found to flip it; empty where words are swapped only.

    Examples:
        >>> (found,) = run.attack(["the film was warm and funny"])
        >>> found.flipped, found.share > 0
        (True, True)
    """

    text: str
    adversarial: str
    label: str
    given: bool = False
    before: str = ""
    after: str = ""
    probability_before: float = 0.0
    probability_after: float = 0.0
    changes: tuple[Change, ...] = ()
    outcome: Outcome = "kept"
    passes: int = 0
    tried: int = 0
    words: int = 0
    flagged: tuple[int, ...] = ()
    left: tuple[int, ...] = ()
    errors: int | None = None
    alone: tuple[str, ...] = ()

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
        """Share of the words that were swapped, or of edits to words."""
        return len(self.changes) / self.words if self.words else 0.0

    @property
    def cost(self) -> int:
        """Characters that were changed, over all edits."""
        return sum(change.cost for change in self.changes)
