"""What an explanation says: which word of a text is pulled toward which words, how strongly."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from wordward.support.errors import DataError

FORMAT = 1  # of the JSON; increased when readers of the previous one would break


@dataclass(frozen=True)
class Pull:
    """A word that a token is pulled toward.

    Args:
        toward: The word.
        strength: How far r goes along the direction toward the word: alpha_k (eq:advR), or |r| cos.
        relative: Strength over the sentence's largest, 0 to 1.
        cosine: Between the token's perturbation and the direction toward the word.
        probability: Of the label, with the word put in; known if the model was asked, as of the strongest.
        prediction: What the model predicts then.

    Examples:
        >>> (found,) = run.explain(["the film was warm and funny"])
        >>> found.strongest.pull.relative
        1.0
    """

    toward: str
    strength: float
    relative: float
    cosine: float
    probability: float | None = None
    prediction: str | None = None


def pulls_of(
    found: Iterable[tuple[str, float, float]], *, word: str, largest: float, most: int | None = None
) -> tuple[Pull, ...]:
    """What pulls a word, from words with strength and cosine: not those it is pushed away from, nor the word itself.

    `largest`: the sentence's largest strength. Numbers have six digits, as many as single precision holds. `most`:
    how many are taken, the first.
    """
    pulling = (each for each in found if each[1] > 0 and each[0] != word)
    return tuple(
        Pull(toward, float(f"{strength:.6g}"), round(strength / largest, 6), round(cosine, 6))
        for toward, strength, cosine in islice(pulling, most)
    )


@dataclass(frozen=True)
class Place:
    """One word of a text and what pulls it.

    Args:
        position: Its place among the words that the model reads.
        word: The word, as it stands in the text.
        start: Where it begins in the text, in characters.
        end: Where it ends.
        known: False: the model reads it as <unk>.
        pulls: Strongest first; none where no word pulls.
        label: A tagger's tag for it.
        probability: Of that tag.

    Examples:
        >>> (found,) = run.explain(["the film was warm and funny"], top=2, words="any")
        >>> found.places[3].word, len(found.places[3].pulls)
        ('warm', 2)
    """

    position: int
    word: str
    start: int
    end: int
    known: bool
    pulls: tuple[Pull, ...]
    label: str | None = None
    probability: float | None = None

    @property
    def pull(self) -> Pull | None:
        """The strongest pull; None if no word pulls."""
        return self.pulls[0] if self.pulls else None


@dataclass(frozen=True)
class Explanation:
    """A text, the model's prediction, and the words that would change it.

    Args:
        text: The text.
        task: "classify" or "tag".
        method: Whose perturbation was read as words.
        label: Whose loss the perturbation raises; None where all tags count, or for KL.
        given: Whether that label was given, not predicted.
        predicted: A classifier's label.
        probabilities: A classifier's, empty for a tagger.
        places: The words of the text.
        focus: A tagger's position whose loss alone is raised; None: all.
        unread: Words after the longest length, which the model does not read.
        model: The run's name.

    Examples:
        >>> (found,) = run.explain(["the film was warm and funny"])
        >>> found.predicted, found.given, len(found.places)
        ('good', False, 6)
    """

    text: str
    task: Literal["classify", "tag"]
    method: str
    label: str | None
    given: bool
    predicted: str | None
    probabilities: Mapping[str, float]
    places: tuple[Place, ...]
    focus: int | None = None
    unread: int = 0
    model: str = ""

    def with_places(self, find: Callable[[], tuple[Place, ...]], **changes: Any) -> "Explanation":
        """The same with other fields, and with places that are found when they are first asked for.

        A text has hundreds of them, and making them takes longer than all else.
        """
        new = object.__new__(Explanation)
        new.__dict__.update({**self.__dict__, **changes, "_find": find})
        del new.__dict__["places"]
        return new

    def __getattr__(self, name: str) -> Any:
        """The places, if they are not there yet; asked for what an explanation does not have."""
        if name == "places" and (find := self.__dict__.get("_find")) is not None:
            self.__dict__["places"] = find()
            self.__dict__.pop("_find", None)
        if name == "places" and name in self.__dict__:  # now, or since another thread has found them
            return self.__dict__[name]
        raise AttributeError(f"an explanation has no {name!r}")

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: the places too."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @property
    def strongest(self) -> Place | None:
        """The place of the largest pull in the text."""
        pulled = [place for place in self.places if place.pulls]
        return max(pulled, key=lambda place: place.pulls[0].strength, default=None)


def to_json(explanation: Explanation) -> dict[str, Any]:
    """A record for `json.dumps`; docs/explain.md says what each field means.

    Args:
        explanation: One text's.

    Returns:
        Its fields by name, and the format's version.

    Examples:
        >>> (found,) = run.explain(["the film was warm and funny"])
        >>> wordward.explain.to_json(found)["places"][3]["word"]
        'warm'
    """
    fields = {name: getattr(explanation, name) for name in Explanation.__dataclass_fields__ if name != "places"}
    places = [  # not with `asdict`, which takes longer than explaining
        vars(place) | {"pulls": [_pull_to_json(pull) for pull in place.pulls]} for place in explanation.places
    ]
    return {"format": FORMAT, **fields, "probabilities": dict(explanation.probabilities), "places": places}


def _pull_to_json(pull: Pull) -> dict[str, Any]:
    """A pull's fields; without what the model says with its word, if it was not asked."""
    asked = pull.probability is not None
    return {name: value for name, value in vars(pull).items() if asked or name not in ("probability", "prediction")}


def from_json(record: Mapping[str, Any]) -> Explanation:
    """The explanation that `to_json` wrote.

    Args:
        record: What it wrote, also after a way through JSON.

    Returns:
        The same explanation.

    Examples:
        >>> (found,) = run.explain(["the film was warm and funny"])
        >>> wordward.explain.from_json(wordward.explain.to_json(found)) == found
        True
    """
    if not isinstance(record, Mapping) or record.get("format") != FORMAT:
        actual = record.get("format") if isinstance(record, Mapping) else type(record).__name__
        raise DataError(
            f"expected an explanation of format {FORMAT}, as `wordward explain` writes in JSON; got {actual}"
        )
    fields = {name: value for name, value in record.items() if name not in ("format", "number")}
    try:
        fields["places"] = tuple(
            Place(**place | {"pulls": tuple(Pull(**pull) for pull in place["pulls"])}) for place in fields["places"]
        )
        return Explanation(**fields)
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"expected the fields of an explanation of format {FORMAT}; got others: {error}") from None
