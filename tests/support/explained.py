"""Explanations with values by hand, of sentences of our own."""

import io
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console

from wordward.explain.explanation import Explanation, Place, Pull
from wordward.explain.terminal import terminal

EVIL = "</style><script>alert('x')</script> \"><img src=x onerror=alert(1)> &amp; {{7*7}} \x00\x1b[31m \u202e\u2066"
TEXT = "Our “cast” was good, & the Zyxel ending <br> moved me."
PULLS: dict[str, list[tuple[str, float, float]]] = {
    "Our": [("their", 0.5, 0.41)],
    "cast": [("crew", 1.25, -0.2), ("script", 0.75, 0.125)],
    "was": [],
    "good": [("bad", 5.0, 0.75), ("dull", 2.5, 0.5), ("warm", 0.0125, 0.25)],
    "the": [("this", 0.01, 0.9)],
    "Zyxel": [("“odd”", 1.0, 0.3)],
    "ending": [("opening", 3.0, 0.6)],
    "moved": [],
    "me": [("<us>", 2.0, 0.1)],
}


def a_place(position: int, text: str, word: str, pulls: Sequence[tuple[str, float, float]], most: float) -> Place:
    start = text.index(word)
    named = tuple(Pull(toward, strength, strength / most, cosine) for toward, strength, cosine in pulls)
    return Place(position, word, start, start + len(word), word != "Zyxel", named)


PLACES = tuple(a_place(at, TEXT, word, pulls, 5.0) for at, (word, pulls) in enumerate(PULLS.items()))
ASKED = replace(PLACES[3].pulls[0], probability=0.25, prediction="bad")  # what the model says with "bad" put in
OPENING = replace(PLACES[6].pulls[0], probability=0.5, prediction="bad")
PLACES = (*PLACES[:3], replace(PLACES[3], pulls=(ASKED, *PLACES[3].pulls[1:])), *PLACES[4:])
PLACES = (*PLACES[:6], replace(PLACES[6], pulls=(OPENING,)), *PLACES[7:])
ONE = Explanation(
    text=TEXT,
    task="classify",
    method="iadvt",
    label="good",
    given=True,
    predicted="good",
    probabilities={"bad": 0.0625, "good": 0.9375},
    places=PLACES,
    unread=2,
    model="mine",
)
FREE = {word: [("eighth", 4.0 - at / 4, 0.2)] for at, word in enumerate(PULLS)}
OTHER = replace(
    ONE,
    method="advt",
    places=tuple(a_place(at, TEXT, word, pulls, 4.0) for at, (word, pulls) in enumerate(FREE.items())),
)
TAGGED = Explanation(
    text="the film are funny",
    task="tag",
    method="iadvt",
    label="i",
    given=False,
    predicted=None,
    probabilities={},
    places=(
        Place(0, "the", 0, 3, True, (Pull("this", 0.5, 0.25, 0.1),), "c", 0.9995),
        Place(1, "film", 4, 8, True, (), "c", 0.75),
        Place(2, "are", 9, 12, True, (Pull("is", 2.0, 1.0, 0.5),), "i", 0.875),
        Place(3, "funny", 13, 18, True, (Pull("warm", 1.0, 0.5, 0.5),), "c", 1.0),
    ),
    focus=2,
    model="tagger",
)
EMPTY = replace(ONE, text=" ", places=(), predicted=None, probabilities={}, label=None, unread=0)


def printed(*explanations: Explanation, width: int = 80) -> str:
    file = io.StringIO()
    terminal(explanations, Console(file=file, width=width, highlight=False))
    return "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())


def evil() -> Explanation:
    """Everything that a text, a vocabulary or a label can hold is against us."""
    named = tuple(Pull(EVIL, 2.0 / at, 1.0 / at, 0.5) for at in (1, 2, 3))
    place = Place(0, EVIL, 0, len(EVIL), False, named, EVIL, 0.5)
    return Explanation(EVIL, "classify", EVIL, EVIL, True, EVIL, {EVIL: 0.5, "b": 0.5}, (place,), model=EVIL)


def long(words: int, strongest: int) -> Explanation:
    text = " ".join(f"w{at}" for at in range(words))
    found = []
    for at, word in enumerate(text.split()):
        relative = 1.0 if at == strongest else 0.1
        start = text.index(f"w{at}")
        found.append(Place(at, word, start, start + len(word), True, (Pull("x", relative, relative, 0.5),)))
    return replace(ONE, text=text, places=tuple(found), unread=0)
