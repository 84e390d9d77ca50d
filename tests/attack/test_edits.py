"""Kinds of edits: each keeps the rule that lets a person read on, can be undone, and costs what is said."""

import random
from typing import Any

import pytest

from wordward.attack.attacked import Change, distance
from wordward.attack.edit_search import original
from wordward.attack.edit_words import ALIKE, APPENDED, BESIDE, INSERTED, INVISIBLE, OMITTED
from wordward.attack.edits import (
    SPELLINGS,
    Edit,
    Span,
    appending,
    deletion,
    edited,
    goes_with,
    insertions,
    left_out,
    not_made,
    punctuations,
    uncapitalised,
    words_in,
)
from wordward.attack.negations import NEGATIONS
from wordward.config.attack import EDITS, AttackSettings
from wordward.support.errors import SettingError

WORDS = "was warm funny lovely clumsy moving don't it's a café SCRIPT Ending straße friends tell letter".split()
KNOWN = frozenset({"from", "hi", "story", "move"})
TEXT = "The cast wasn't really warm, it's a well-made film! But the music is not the best; I left."


@pytest.mark.parametrize("kind", SPELLINGS)
def test_a_word_is_another_string_that_reads_the_same(kind: str) -> None:
    made = [(word, new) for word in WORDS for new in SPELLINGS[kind](word, KNOWN)]
    assert len(made) >= 5
    for word, new in made:
        assert new != word
        assert new not in KNOWN
        if kind in ("space", "invisible"):
            assert "".join(new.split(" ") if kind == "space" else [c for c in new if c not in INVISIBLE]) == word
        if kind == "homoglyph":
            assert "".join({v: k for k, v in ALIKE.items()}.get(c, c) for c in new) == word
        if kind == "case":
            assert (new.lower(), len(word) >= 4) == (word, True)


def test_typos_keep_both_ends_and_are_one_slip() -> None:
    for word in WORDS:
        slips = list(SPELLINGS["typo"](word, KNOWN))
        assert len(slips) == len(set(slips))
        for new in slips:
            assert (new[0], new[-1], len(word) >= 4, word.isalpha()) == (word[0], word[-1], True, True)
            assert distance(word, new) == 1
            assert len(word) > 4 or len(new) == 5  # of four letters one is doubled, no more
    lovely = set(SPELLINGS["typo"]("lovely", KNOWN))
    assert {"loevly", "lovvely", "loely", "lovwly"} <= lovely
    assert "from" not in set(SPELLINGS["typo"]("forrm", KNOWN)) | set(SPELLINGS["typo"]("froom", KNOWN))


def test_no_blank_makes_two_words_of_one() -> None:
    assert "hi story" not in set(SPELLINGS["space"]("history", KNOWN))
    assert "hist ory" in set(SPELLINGS["space"]("history", KNOWN))
    assert not any(new.startswith("the ") for new in SPELLINGS["space"]("therapist", KNOWN))
    assert "f u n n y" in set(SPELLINGS["space"]("funny", KNOWN))


@pytest.mark.parametrize("clause", ["这部电影不好看", "とてもつまらない映画", "这部film不好看"])
def test_no_slips_where_a_letter_may_be_a_word(clause: str) -> None:
    (span,) = words_in(clause)
    assert [*SPELLINGS["typo"](span.word, KNOWN), *SPELLINGS["space"](span.word, KNOWN)] == []
    assert "`typo` and `space`" in not_made(("swap", "typo", "space"), [clause])
    assert "`space` are" in not_made(("space",), [clause])
    assert not_made(("swap", "case"), [clause]) == not_made(("typo",), [TEXT]) == ""


def test_what_may_be_left_out() -> None:
    def left(text: str) -> list[str]:
        found = [deletion(text, span) for span in words_in(text)]
        return [edited(text, [edit]) for edit in found if edit is not None]

    assert left("the film was really warm") == ["film was really warm", "the film was warm"]
    assert left("not the only one, not really funny") == []
    assert left("nobody was warm") == []
    assert OMITTED.isdisjoint(NEGATIONS)


def test_whether_a_word_may_be_left_out_is_told_by_its_neighbours_alone() -> None:
    class CountedWords(str):
        read = 0

        def __getitem__(self, place: Any) -> str:
            found = super().__getitem__(place)
            CountedWords.read += len(found)
            return found

    clause = "It was really good, not just a very 'nice' film (quite a don't-miss one)… "
    text = CountedWords(clause * 50)
    found = [deletion(text, span) for span in words_in(text)]
    assert CountedWords.read < 2 * len(text)
    one = [edit for span in words_in(clause * 3) if (edit := deletion(clause * 3, span)) is not None]
    assert [clause[edit.start : edit.end] for edit in one[:2]] == [" really", " a"]
    assert sum(edit is not None for edit in found) == 50 * len(one) // 3


def test_where_words_are_put_in() -> None:
    text = "a warm film. It is bright ; we left"
    assert [edited(text, [edit]) for edit in insertions(text, "today")] == [
        "a warm film. It is bright ; we left today",
        "a warm film today. It is bright ; we left",
        "a warm film. It is bright today ; we left",
        "today, a warm film. It is bright ; we left",
    ]
    assert next(insertions("a film", "you know")).new == ", you know"
    assert (
        edited("A film.", [appending("A film.", "thanks"), appending("A film.", "hello")]) == "A film. Thanks. Hello."
    )
    assert edited("a film ", [appending("a film ", "thanks")]) == "a film thanks "
    assert not goes_with(appending(text, "thanks"), [appending(text, "thanks")])
    assert not goes_with(Edit("insert", 11, 11, " now"), [Edit("insert", 11, 11, " today")])
    assert goes_with(Edit("insert", 11, 11, " now"), [Edit("typo", 7, 11, "fiilm")])
    harmless = {part for word in INSERTED + APPENDED for part in word.split()}
    assert harmless.isdisjoint(NEGATIONS)


def test_an_abbreviation_ends_no_sentence() -> None:
    text = "Mr. Hill's talk was cold. We left."
    assert [edit.start for edit in insertions(text, "today")] == [24, 33]
    assert {edit.start for edit in punctuations(text)} == {8, 33}
    assert [span.word for span in words_in(text) if uncapitalised(text, span)] == ["Mr", "We"]


def test_marks_change_and_words_stay() -> None:
    made = [edited(TEXT, [edit]) for edit in punctuations(TEXT)]
    assert len(made) == len(set(made)) >= 8
    for text in made:
        assert [c for c in text if c.isalpha()] == [c for c in TEXT if c.isalpha()]
    assert {TEXT[:-1], TEXT.replace("well-made", "well made"), TEXT.replace("it's", "it’s")} <= set(made)
    assert list(punctuations("it cost 1,000.5 at 3.15")) == [Edit("punctuation", 23, 23, ".")]


def test_only_the_first_word_of_a_sentence_loses_its_capital() -> None:
    spans = words_in("The film by Frank ended. Nobody left.")
    small = [span.word for span in spans if uncapitalised("The film by Frank ended. Nobody left.", span) is not None]
    assert small == ["The", "Nobody"]


def test_words_of_an_edited_text_are_found_in_the_first() -> None:
    rng, pool = random.Random(1), all_edits(TEXT)
    for _ in range(100):
        made: list[Edit] = []
        for edit in rng.sample(pool, 8):
            if goes_with(edit, made):
                made.append(edit)
        text = edited(TEXT, made)
        places = [(span, original(made, span.start, span.end)) for span in words_in(text)]
        assert all(TEXT[where[0] : where[1]] == span.word for span, where in places if where is not None)
        found = {where for _, where in places if where is not None}
        touched = [(edit.start, edit.end) for edit in made]
        for span in words_in(TEXT):
            if all(end < span.start or start > span.end for start, end in touched):
                assert (span.start, span.end) in found


def all_edits(text: str) -> list[Edit]:
    spelt = [
        Edit(kind, span.start, span.end, new)
        for kind, ways in SPELLINGS.items()
        for span in words_in(text)
        for new in ways(span.word, KNOWN)
    ]
    left = [edit for span in words_in(text) if (edit := deletion(text, span)) is not None]
    added = [edit for word in INSERTED for edit in insertions(text, word)] + [appending(text, w) for w in APPENDED]
    return [*spelt, *left, *added, *punctuations(text)]


def test_any_edits_that_go_together_can_be_undone_from_their_record() -> None:
    rng, pool = random.Random(0), all_edits(TEXT)
    assert {edit.kind for edit in pool} == set(EDITS) - {"swap"}
    for _ in range(300):
        made: list[Edit] = []
        for edit in rng.sample(pool, 12):
            if goes_with(edit, made):
                made.append(edit)
        order = sorted(made, key=lambda edit: (edit.start, edit.end))
        text, back, moved = edited(TEXT, made), "", 0
        for edit, after in zip(order, [*order[1:], None], strict=True):
            start = edit.start + moved
            assert text[start : start + len(edit.new)] == edit.new
            moved += len(edit.new) - (edit.end - edit.start)
            rest = len(text) if after is None else after.start + moved
            back += TEXT[edit.start : edit.end] + text[start + len(edit.new) : rest]
        back = text[: order[0].start] + back
        assert back == TEXT
        words = [Change(0, TEXT[e.start : e.end], e.new, e.start, e.end, "kept", kind=e.kind).cost for e in made]
        assert distance(TEXT, text) <= sum(words)  # of the whole text it can only be less


@pytest.mark.parametrize(
    ("first", "other", "cost"),
    [
        ("", "", 0),
        ("funny", "fnuny", 1),
        ("funny", "f u n n y", 4),
        ("", " today", 6),
        ("the ", "", 4),
        ("ab", "ba", 1),
    ],
)
def test_costs_by_hand(first: str, other: str, cost: int) -> None:
    assert distance(first, other) == distance(other, first) == cost


def test_keys_lie_beside_each_other() -> None:
    assert BESIDE["g"] == "fh"
    assert all(key in BESIDE[other] for key in BESIDE for other in BESIDE[key])


def test_kinds_are_named_with_blanks_or_commas() -> None:
    assert AttackSettings().edits == ("swap",)
    assert AttackSettings().only_swaps
    assert AttackSettings(edits=("typo,swap", "case")).edits == ("swap", "typo", "case")
    assert AttackSettings(edits=("all",)).edits == tuple(EDITS)
    for wrong in (("typos",), ()):
        with pytest.raises(SettingError, match="edits must be"):
            AttackSettings(edits=wrong)


def test_spans_are_words_as_people_see_them() -> None:
    assert words_in("It isn’t 3 o'clock_now") == [
        Span(0, 2, "It"),
        Span(3, 8, "isn’t"),
        Span(11, 18, "o'clock"),
        Span(19, 22, "now"),
    ]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("so very warm", ["very warm", "so warm", "so very"]),
        ("so\tvery\n warm", ["very\n warm", "so\n warm", "so\tvery\n"]),
        ("so\nvery warm", ["very warm", "so\nwarm", "so\nvery"]),
        (" so (very) ", [" (very) ", " so () "]),
        ("so ||| very, warm", ["||| very, warm", "so ||| , warm", "so ||| very,"]),
    ],
)
def test_a_word_left_out_takes_a_blank_along(text: str, left: list[str]) -> None:
    assert [edited(text, [left_out(text, span.start, span.end)]) for span in words_in(text)] == left
    assert deletion("(the) film", words_in("(the) film")[0]) is None  # no blank beside it
