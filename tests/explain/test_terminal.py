"""An explanation's faces: terminal, HTML, figure, JSON, a notebook's.

Golden files show what people read. After a change that is meant:
WORDWARD_GOLDEN=1 python -m pytest tests/explain/test_terminal.py, then look at the difference of tests/golden.
"""

import io
import json
import os
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from explained import ONE, OTHER, PLACES, TAGGED, a_place, evil, long, printed
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from wordward.explain.explanation import FORMAT, Explanation, Place, Pull, from_json, to_json
from wordward.explain.html import html_fragment
from wordward.explain.terminal import terminal
from wordward.explain.wording import (
    effect,
    excerpt,
    headings,
    likeliest,
    lines_of,
    marked,
    part_of,
    percent,
    question,
    title,
    two_digits,
)

GOLDEN = Path(__file__).parents[1] / "golden"
FACES = {
    "explanation.txt": lambda: printed(ONE),
    "explanations.txt": lambda: printed(ONE, OTHER),
    "tags.txt": lambda: printed(TAGGED),
    "explanation.json": lambda: json.dumps(to_json(ONE), indent=1, ensure_ascii=False) + "\n",
    "explanation.html": lambda: html_fragment([ONE]) + "\n",
    "explanations.html": lambda: html_fragment([ONE, OTHER]) + "\n",
    "tags.html": lambda: html_fragment([TAGGED]) + "\n",
}


@pytest.mark.parametrize("name", FACES)
def test_golden(name: str) -> None:
    drawn = FACES[name]()
    if os.environ.get("WORDWARD_GOLDEN"):
        (GOLDEN / name).write_text(drawn, encoding="utf-8")
    assert drawn == (GOLDEN / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("probability", "prediction", "said"),
    [
        (0.25, "bad", "good → bad: good 93.8 % → 25.0 %, so bad"),
        (0.75, "good", "good → bad: good 93.8 % → 75.0 %"),
        (0.9376, "good", "good stays at 93.8 % with the strongest pulls, one at a time"),
        (0.99, "good", "good does not fall below 93.8 % with the strongest pulls, one at a time"),
        (0.9374, "good", "good falls to 93.7 % at most with the strongest pulls, one at a time"),
        (None, None, ""),
    ],
)
def test_what_the_model_says_with_the_strongest_word_put_in(
    probability: float | None, prediction: str | None, said: str
) -> None:
    pull = replace(PLACES[3].pulls[0], probability=probability, prediction=prediction)
    explanation = replace(ONE, places=(*PLACES[:3], replace(PLACES[3], pulls=(pull,)), *PLACES[4:]))
    assert effect(explanation) == said
    assert said in printed(explanation)
    assert bool(marked(explanation)) == ("one at a time" not in said)  # what changes nothing is not marked
    assert ("ww-effect" in html_fragment([explanation])) == bool(said)


# JSON

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
shares = st.floats(0, 1, allow_subnormal=False)
pulls = st.builds(Pull, words, st.floats(0, 100), shares, st.floats(-1, 1))
places = st.builds(
    Place,
    position=st.integers(0, 99),
    word=words,
    start=st.integers(0, 99),
    end=st.integers(0, 99),
    known=st.booleans(),
    pulls=st.lists(pulls, max_size=3).map(tuple),
    label=st.none() | words,
    probability=st.none() | shares,
)
explanations = st.builds(
    Explanation,
    text=words,
    task=st.sampled_from(["classify", "tag"]),
    method=words,
    label=st.none() | words,
    given=st.booleans(),
    predicted=st.none() | words,
    probabilities=st.dictionaries(words, shares, max_size=3),
    places=st.lists(places, max_size=4).map(tuple),
    focus=st.none() | st.integers(0, 9),
    unread=st.integers(0, 9),
    model=words,
)


@given(explanations)
def test_json_there_and_back(explanation: Explanation) -> None:
    assert from_json(json.loads(json.dumps(to_json(explanation)))) == explanation


@pytest.mark.parametrize("record", [{}, {"format": FORMAT + 1}, [], "text", None])
def test_json_of_another_format_is_refused(record: Any) -> None:
    with pytest.raises(ValueError, match="expected an explanation of format 1"):
        from_json(record)


def test_json_of_other_fields_is_refused() -> None:
    record = to_json(ONE)
    for wrong in (
        {**record, "mood": 1},
        {k: v for k, v in record.items() if k != "text"},
        {**record, "places": 3},
    ):
        with pytest.raises(ValueError, match="expected the fields of an explanation"):
            from_json(wrong)


# Terminal


def test_a_terminal_is_not_steered_by_a_text() -> None:
    file = io.StringIO()
    terminal([evil()], Console(file=file, force_terminal=True, width=200, color_system="truecolor"))
    assert "\x1b[31m" not in file.getvalue().replace("\x1b[1m", "")
    assert not {"\x00", "\u202e", "\u2066"} & set(file.getvalue())
    assert "\x1b[" in file.getvalue()  # but colours of our own


def test_unknown_words_are_marked_and_the_mark_is_said() -> None:
    lines = printed(ONE).splitlines()
    (row,) = (line for line in lines if "Zyxel*" in line)
    assert "“odd”" in row
    assert "  * not in the vocabulary" in lines
    assert "*" not in printed(replace(ONE, places=PLACES[:3]))
    unlike = replace(ONE, model="other", places=tuple(replace(place, known=True) for place in PLACES))
    assert "Zyxel*" in printed(unlike, ONE)  # one of two models does not know it


def test_lines_are_no_longer_than_what_they_hold() -> None:
    file = io.StringIO()
    terminal([ONE], Console(file=file, width=300))
    assert max(map(len, file.getvalue().splitlines())) < 100  # blanks up to the edge would wrap elsewhere


@pytest.mark.parametrize(("count", "named", "others"), [(2, 2, 0), (4, 4, 0), (5, 3, 2)])
def test_one_label_more_is_named_and_not_counted(count: int, named: int, others: int) -> None:
    many = replace(ONE, probabilities={f"label {number}": 1 / count for number in range(count)})
    assert likeliest(many) == ([(f"label {number}", 1 / count) for number in range(named)], others)


def _bold(*explanations: Explanation) -> set[str]:
    """What a terminal prints in bold of a table of explanations."""
    file = io.StringIO()
    terminal(explanations, Console(file=file, force_terminal=True, width=100, color_system="truecolor"))
    return {found.strip() for found in re.findall(r"\x1b\[1m([^\x1b]*)\x1b", file.getvalue())}


def test_only_what_is_marked_is_bold_in_the_table() -> None:
    pull = replace(
        PLACES[6].pulls[0], probability=0.9
    )  # more than half as strong as the strongest, but changes little
    doubted = replace(ONE, places=(*PLACES[:6], replace(PLACES[6], pulls=(pull,)), *PLACES[7:]))
    asked = replace(PLACES[3].pulls[0], probability=0.9375)  # of no word is the label less likely
    unmoved = replace(ONE, places=(*PLACES[:3], replace(PLACES[3], pulls=(asked,)), *PLACES[4:]))
    words = {"good", "ending", "→ bad", "→ opening", "1.00", "0.60"}
    for explanation, bold in ((ONE, words), (doubted, {"good", "→ bad", "1.00"}), (unmoved, set())):
        assert words & _bold(explanation) == bold
        above = re.findall(r"<rt><bdi>(.*?)</bdi>", html_fragment([explanation]))  # alike on a page
        assert {f"→ {word}" for word in above} == {word for word in bold if word.startswith("→")}
    assert words & _bold(doubted, replace(ONE, method="ivat")) == words  # of another method it is marked


def test_markup_of_rich_in_a_text_is_text() -> None:
    odd = replace(
        ONE,
        text="[bold]x[/bold]",
        unread=0,
        places=(Place(0, "[bold]", 0, 6, True, (Pull("[/]", 1.0, 1.0, 1.0),)),),
    )
    assert "[[bold] → [/]]x[/bold]" in printed(odd)


@pytest.mark.parametrize("width", [20, 40, 200])
def test_any_terminal_is_wide_enough(width: int) -> None:
    for explanations in ((ONE,), (ONE, OTHER), (TAGGED,)):
        assert max(map(len, printed(*explanations, width=width).splitlines())) <= width


@pytest.mark.parametrize("width", [34, 40, 50, 60])
def test_words_stay_whole_on_a_narrow_terminal(width: int) -> None:
    both, tags = printed(ONE, OTHER, width=width), printed(TAGGED, width=width)
    for lines, line in (
        (both, r"ending  → opening .*0\.60"),
        (both, r"me  .*→ eighth .*0\.50"),
        (tags, "are  i.*→ is"),
    ):
        assert re.search(line, lines), lines


# What all faces share


@pytest.mark.parametrize("strongest", [0, 3, 57, 95, 99])
def test_of_a_long_text_the_part_around_its_strongest_pull(strongest: int) -> None:
    lines = lines_of([long(100, strongest)])
    start, stop = excerpt(lines, 10)
    assert stop - start == 10
    assert start <= strongest < stop
    assert start == min(max(strongest - 5, 0), 90)
    part = part_of([long(100, strongest)], 10)
    counts = [int(number) for number in re.findall(r"(\d+) words?", part.note)]
    assert sum(counts) == 90
    assert excerpt(lines, 100) == excerpt(lines, 999) == (0, 100)
    assert part_of([long(100, strongest)], 100).note == ""


def test_what_is_left_out_is_said() -> None:
    assert part_of([long(100, 50)], 98).note == "1 word before left out; 1 word after left out"
    assert part_of([replace(long(9, 5), unread=1200)], 9).note == "1,200 words at the end not read"
    unknown = replace(long(2, 1), places=tuple(replace(p, known=False) for p in long(2, 1).places))
    assert part_of([unknown], 9).note == "no word of this text is in the vocabulary"
    still = replace(long(2, 1), places=tuple(replace(p, pulls=()) for p in long(2, 1).places))
    assert part_of([still], 9).note == "nothing pulls: no word may come, or none that may lies where the loss rises"
    assert "60 words before" in printed(long(100, 99))
    assert "60 words before" in html_fragment([long(100, 99)])


def test_punctuation_that_nothing_pulls_has_no_line() -> None:
    text = "the film , warm !"
    pulls = {"film": [("play", 1.0, 0.5)], ",": [], "warm": [], "!": [("?", 0.5, 0.1)]}
    places = tuple(a_place(at, text, word, pulls[word], 1.0) for at, word in enumerate(pulls))
    found = replace(ONE, text=text, places=places)
    assert [line.word for line in lines_of([found])] == ["film", "warm", "!"]
    assert [line.word for line in lines_of([replace(found, task="tag")])] == [*pulls]
    assert [line.word for line in lines_of([replace(found, places=places[1:2])])] == [","]  # nothing else is read


def test_models_that_read_other_words_stand_side_by_side() -> None:
    some = replace(ONE, places=PLACES[::2], model="other")
    lines = lines_of([some, ONE])
    assert [line.word for line in lines] == [place.word for place in PLACES]
    assert [line.places[0] is None for line in lines] == [bool(at % 2) for at in range(len(PLACES))]
    assert "(not read)" in printed(some, ONE)
    assert "not read" in html_fragment([some, ONE])
    for pair in pairwise([ONE, replace(ONE, text="x"), TAGGED]):
        with pytest.raises(ValueError, match="of one text and one task"):
            lines_of(pair)
    with pytest.raises(ValueError, match="got none"):
        html_fragment([])


def test_what_tells_explanations_apart_heads_them() -> None:
    assert headings([ONE, OTHER]) == ["iAdvT", "AdvT"]
    assert headings([ONE, replace(ONE, model="theirs")]) == ["mine", "theirs"]
    assert headings([ONE, replace(OTHER, model="theirs")]) == ["mine, iAdvT", "theirs, AdvT"]
    assert [title(name) for name in ("ivat", "vat", "random", "random-kl", "iadvt-best", "new-one")] == [
        "iVAT",
        "VAT",
        "Random",
        "Random (KL)",
        "iAdvT-Best",
        "New-one",
    ]


@pytest.mark.parametrize(
    ("changed", "asked"),
    [
        ({}, "words that make good less likely (the given label)"),
        ({"predicted": "bad"}, "words that make good less likely (the given label; the model says bad)"),
        ({"given": False}, "words that make good less likely (the predicted label)"),
        ({"method": "ivat", "label": None, "given": False}, "words that would change the prediction"),
        ({"method": "random"}, "words in a direction drawn at random"),
    ],
)
def test_the_question_is_said(changed: dict[str, Any], asked: str) -> None:
    assert question(replace(ONE, **changed)) == asked
    assert asked in " ".join(printed(replace(ONE, **changed)).split())
    assert asked in html_fragment([replace(ONE, **changed)])


def test_the_question_of_a_tagger_is_said() -> None:
    assert question(TAGGED) == "words that make the tag of “are” less likely (as predicted: i)"
    everything = replace(TAGGED, focus=None, label=None, given=True)
    assert question(everything) == "words that make all tags less likely (as given)"
    assert question(replace(everything, method="vat")) == "words that would change all tags"
    assert question(replace(TAGGED, method="ivat")) == "words that would change the tag of “are”"


def test_percent_never_rounds_to_certainty() -> None:
    shown = [percent(share) for share in (0.0, 0.00001, 0.001, 0.5, 0.99949, 0.9999, 1.0)]
    assert shown == ["<0.1 %", "<0.1 %", "0.1 %", "50.0 %", ">99.9 %", ">99.9 %", ">99.9 %"]
    assert [two_digits(share) for share in (0.0, 1e-9, 0.006, 1.0)] == ["0.00", "<0.01", "0.01", "1.00"]


def test_the_strongest_pulls_are_marked() -> None:
    assert [place.word for place in marked(ONE)] == ["good", "ending"]
    for probability in (0.69, 0.71, None):  # with "opening" in place of "ending"; of the fall with "bad" half is 1.9
        pull = replace(PLACES[6].pulls[0], probability=probability)
        other = replace(ONE, places=(*PLACES[:6], replace(PLACES[6], pulls=(pull,)), *PLACES[7:]))
        assert [place.word for place in marked(other)] == ["good", "ending"][: 2 if probability == 0.69 else 1]
    assert [place.word for place in marked(OTHER)] == ["Our", "cast", "was"]  # three of many
    many = replace(ONE, probabilities={f"class {at}": 0.2 for at in range(5)})
    for shown in (printed(many), html_fragment([many])):
        assert "and 2 more" in shown
