"""What an explanation says: which word of a text is pulled toward which words, how strongly."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from wordward.support.errors import DataError

FORMAT = 1  # of the JSON; increased when readers of the previous one would break


@dataclass(frozen=True)
class Pull:
    """A word that a token is pulled toward."""

    toward: str
    strength: float  # how far r goes along the direction toward the word: alpha_k (eq:advR), or |r| cos
    relative: float  # strength over the sentence's largest, 0 to 1
    cosine: float  # between the token's perturbation and the direction toward the word


def pulls_of(found: Iterable[tuple[str, float, float]], *, word: str, largest: float) -> tuple[Pull, ...]:
    """What pulls a word, from words with strength and cosine: not those it is pushed away from, nor the word itself.

    `largest`: the sentence's largest strength. Numbers have six digits, as many as single precision holds.
    """
    return tuple(
        Pull(toward, float(f"{strength:.6g}"), round(strength / largest, 6), round(cosine, 6))
        for toward, strength, cosine in found
        if strength > 0 and toward != word
    )


@dataclass(frozen=True)
class Place:
    """One word of a text and what pulls it."""

    position: int  # among the words that the model reads
    word: str  # as it stands in the text
    start: int  # its characters in the text
    end: int
    known: bool  # False: the model reads it as <unk>
    pulls: tuple[Pull, ...]  # strongest first; none where no word pulls
    label: str | None = None  # a tagger's tag for it
    probability: float | None = None  # of that tag

    @property
    def pull(self) -> Pull | None:
        """The strongest pull; None if no word pulls."""
        return self.pulls[0] if self.pulls else None


@dataclass(frozen=True)
class Explanation:
    """A text, the model's prediction, and the words that would change it."""

    text: str
    task: Literal["classify", "tag"]
    method: str
    label: str | None  # whose loss the perturbation raises; None where all tags count, or for KL
    given: bool  # whether that label was given, not predicted
    predicted: str | None  # a classifier's label
    probabilities: Mapping[str, float]  # a classifier's, empty for a tagger
    places: tuple[Place, ...]
    focus: int | None = None  # a tagger's position whose loss alone is raised; None: all
    unread: int = 0  # words after the longest length, which the model does not read
    model: str = ""  # the run's name

    @property
    def strongest(self) -> Place | None:
        """The place of the largest pull in the text."""
        pulled = [place for place in self.places if place.pulls]
        return max(pulled, key=lambda place: place.pulls[0].strength, default=None)


def to_json(explanation: Explanation) -> dict[str, Any]:
    """A record for `json.dumps`; docs/explain.md says what each field means."""
    fields = {
        name: getattr(explanation, name) for name in Explanation.__dataclass_fields__ if name != "places"
    }
    places = [  # not with `asdict`, which takes longer than explaining
        vars(place) | {"pulls": [dict(vars(pull)) for pull in place.pulls]} for place in explanation.places
    ]
    return {"format": FORMAT, **fields, "probabilities": dict(explanation.probabilities), "places": places}


def from_json(record: Mapping[str, Any]) -> Explanation:
    """The explanation that `to_json` wrote."""
    if not isinstance(record, Mapping) or record.get("format") != FORMAT:
        actual = record.get("format") if isinstance(record, Mapping) else type(record).__name__
        raise DataError(
            f"expected an explanation of format {FORMAT}, as `wordward explain` writes in JSON; got {actual}"
        )
    fields = {name: value for name, value in record.items() if name not in ("format", "number")}
    try:
        fields["places"] = tuple(
            Place(**place | {"pulls": tuple(Pull(**pull) for pull in place["pulls"])})
            for place in fields["places"]
        )
        return Explanation(**fields)
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"expected the fields of an explanation of format {FORMAT}; got others: {error}"
        ) from None
