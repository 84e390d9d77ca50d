"""What an attack is told to do, and what it gives back."""

from dataclasses import dataclass
from typing import Literal

from wordward.perturbation.recipes import parse_methods
from wordward.support.rules import COUNT, FACTOR, check, check_among

Sense = Literal["kept", "changed", "unknown"]
Outcome = Literal["flipped", "kept", "wrong", "unreadable"]


@dataclass(frozen=True)
class AttackSettings:
    """How words to swap are looked for; `rescore=1` is the paper's procedure."""

    method: str = "iadvt"
    """Whose perturbation guides the search: a method of `wordward methods`."""
    max_swaps: int = 4
    """Maximum number of words to swap in a text."""
    rescore: int = 8
    """How many swaps of each round, the best, the model reads before one is made; 1: the strongest is made unread."""
    rank: Literal["auto", "gain", "strength"] = "auto"
    """What makes a swap good before the model reads it: the rise in loss that the gradient promises (gain), or the
    perturbation's own strength, as in the paper; auto: strength where rescore is 1, else gain."""
    beam: int = 1
    """Number of texts kept from each round for further swaps."""
    max_share: float = 1.0
    """Maximum share of a text's words to swap."""
    keep: tuple[str, ...] = ()
    """Words that are never replaced."""
    keep_stop_words: bool = False
    """Never replace English stop words such as "of" and "this"."""
    sense: Literal["any", "kept"] = "any"
    """Which swaps may be made: any, or only those judged to leave the true label as it is."""

    def __post_init__(self) -> None:
        """Refuse what no attack can use."""
        check(self, COUNT, "max_swaps", "rescore", "beam")
        check(self, FACTOR, "max_share")
        check_among(self, "rank", ("auto", "gain", "strength"))
        check_among(self, "sense", ("any", "kept"))
        if len(parse_methods(self.method)) != 1:
            raise ValueError(f"method must be one that perturbs, e.g. iadvt, but is {self.method!r}")

    @property
    def by_strength(self) -> bool:
        """Whether swaps are ranked by the perturbation's own strengths."""
        return self.rank == "strength" or (self.rank == "auto" and self.rescore == 1)


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
