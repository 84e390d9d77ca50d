"""What the JSON API takes and gives."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from wordward.explain.explanation import Place
from wordward.runs.prediction import TokenPrediction


def _whole(text: str) -> str:
    """Refuse half a character, which JSON can write but no answer could hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("expected whole characters; there is a lone surrogate") from None
    return text


RunName = Annotated[str | None, Field(description="a name of GET /api/runs; the first run by default")]
Text = Annotated[str, AfterValidator(_whole), Field(description="of limited length (GET /api/runs says how long)")]
MethodName = Annotated[str, Field(description="a method of GET /api/runs", max_length=40)]
Label = Annotated[
    str | None,
    Field(description="the true label; the predicted one by default. For a tagger: the true tag of the focus"),
]
Focus = Annotated[int | None, Field(description="for a tagger: the position of the one word whose tag counts", ge=0)]


class Asked(BaseModel):
    """What every request holds."""

    model_config = ConfigDict(extra="forbid")

    text: Text
    run: RunName = None


class AskedExplain(Asked):
    """Which words pull each word of a text?"""

    method: MethodName = "iadvt"
    label: Label = None
    focus: Focus = None
    top: Annotated[int, Field(description="words to name for each word", ge=1, le=10)] = 3


class AskedSwap(Asked):
    """The text with one word put in the place of another."""

    start: Annotated[int, Field(description="first character of the word that goes", ge=0)]
    end: Annotated[int, Field(description="the character after its last", ge=1)]
    toward: Annotated[
        str, AfterValidator(_whole), Field(description="the word that comes", min_length=1, max_length=200)
    ]


class AskedAttack(Asked):
    """Which swaps change the prediction?"""

    method: MethodName = "iadvt"
    label: Annotated[
        str | None, Field(description="a classifier's true label; the predicted one by default. Refused for a tagger")
    ] = None
    max_swaps: Annotated[int, Field(description="words to swap at most", ge=1, le=16)] = 4


class View(BaseModel):
    """A run and a method to look at a text with."""

    model_config = ConfigDict(extra="forbid")

    run: RunName = None
    method: MethodName = "iadvt"


class AskedPage(BaseModel):
    """A page of its own with one explanation, or two side by side."""

    model_config = ConfigDict(extra="forbid")

    text: Text
    views: Annotated[list[View], Field(min_length=1, max_length=2)] = [View()]
    label: Label = None
    focus: Focus = None


class Problem(BaseModel):
    """Why there is no answer."""

    error: str


class RunInfo(BaseModel):
    """A run that is served."""

    name: str
    task: Literal["classify", "tag"]
    labels: list[str]
    positive: Annotated[str | None, Field(description="a tagger's tag that flags what it looks for")]
    trained_with: Annotated[str | None, Field(description="its method; null where wordward did not train it")]
    words: Annotated[int, Field(description="in its vocabulary")]


class MethodInfo(BaseModel):
    """A method that explains."""

    name: str
    title: str
    points: Literal["words", "free"]
    needs_label: Annotated[bool, Field(description="whether it raises a label's loss, so that the label counts")]
    by_chance: Annotated[bool, Field(description="whether its directions are drawn at random")]


class Allowed(BaseModel):
    """How long a text may be."""

    characters: int
    words: int
    attacked: Annotated[int, Field(description="words of a text to attack")]


class Served(BaseModel):
    """What is served."""

    version: str
    runs: list[RunInfo]
    methods: list[MethodInfo]
    limits: Allowed
    examples: list[str]


class Swapped(BaseModel):
    """The text after a swap."""

    text: str
    toward: Annotated[str, Field(description="the word that came, as it is written there")]


class Predicted(BaseModel):
    """What the model says of a text: a label, or for a tagger a tag for each token."""

    text: str
    label: str | None = None
    probabilities: dict[str, float] | None = None
    tokens: list[TokenPrediction] | None = None
    warning: str | None = None


class Explained(BaseModel):
    """An explanation, as `wordward explain` writes it in JSON."""

    format: Annotated[int, Field(description="of this JSON")]
    text: str
    task: Literal["classify", "tag"]
    method: str
    label: Annotated[str | None, Field(description="whose loss the perturbation raises; null: all tags', or KL")]
    given: Annotated[bool, Field(description="whether that label was given, not predicted")]
    predicted: Annotated[str | None, Field(description="a classifier's label")]
    probabilities: Annotated[dict[str, float], Field(description="a classifier's")]
    places: Annotated[list[Place], Field(description="the words of the text and what pulls each")]
    focus: Annotated[int | None, Field(description="a tagger's position whose loss alone is raised")]
    unread: Annotated[int, Field(description="words after the longest length, which the model does not read")]
    model: Annotated[str, Field(description="the run's name")]


class Step(BaseModel):
    """One swap of an attack, and what the model says after it and those before."""

    word: str
    toward: str
    start: Annotated[int, Field(description="where the new word stands in the adversarial text")]
    sense: Annotated[
        Literal["kept", "changed", "unknown"], Field(description="whether the true label is judged the same still")
    ]
    label: Annotated[str, Field(description="predicted; a tagger's for this word")]
    probability: float


class Attack(BaseModel):
    """An adversarial text, or the best that was found."""

    task: Literal["classify", "tag"]
    text: str
    adversarial: str
    outcome: Literal["flipped", "kept", "wrong", "unreadable"]
    label: str
    before: str
    after: str
    probability_before: float
    probability_after: Annotated[float, Field(description="of the label before")]
    passes: Annotated[int, Field(description="texts that the model read for it")]
    steps: list[Step]
