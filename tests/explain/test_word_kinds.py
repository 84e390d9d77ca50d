"""Which words may stand in each other's place."""

import re

import pytest
import torch

from wordward.explain.word_kinds import Fitting, case, in_one_piece_each, inflection

WORDS = [
    *"""
    good bad Bad This That this that is was aren't t m can't couldn't the of work works worked working player play
    fast faster fastest slower slow slowest quickly badly cable cables phone phones Phones love hate hated
    happy happily quick 5 12 , quality useful film GREAT POOR and but isn't yay wow
""".split()
]
FITS = Fitting(WORDS, frozenset(word.lower() for word in WORDS))


def fits(word: str, other: str) -> bool:
    return bool(FITS(*(torch.tensor(WORDS.index(each)) for each in (word, other))))


def in_one_piece(text: str, start: int, end: int) -> bool:
    """Whether the characters of a word are all of it: not "can" in "can't", or "ve" in "I've"."""
    after, before = text[end : end + 2], text[max(0, start - 2) : start]
    joined = (after[:1] in ("'", "’") and after[1:].isalpha()) or (before[-1:] in ("'", "’") and before[:1].isalpha())
    return not joined


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("good", "bad"),
        ("This", "That"),
        ("is", "was"),
        ("is", "isn't"),
        ("can't", "couldn't"),
        ("faster", "slower"),
        ("quickly", "badly"),
        ("cables", "phones"),
        ("love", "hate"),
        ("worked", "hated"),
        ("and", "but"),
        ("5", "12"),
        ("GREAT", "POOR"),
        ("yay", "wow"),
    ],
)
def test_words_of_one_kind_fit(word: str, other: str) -> None:
    assert fits(word, other)
    assert fits(other, word)


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("this", "That"),  # a capital in mid-sentence
        ("This", "this"),  # the same word
        ("work", "works"),
        ("worked", "working"),
        ("is", "t"),  # pieces of contractions
        ("is", "m"),
        ("is", "aren't"),
        ("the", "of"),
        ("good", "the"),
        ("good", "5"),
        (",", "good"),
        ("quality", "useful"),  # a noun and an adjective
        ("cables", "Phones"),
        ("faster", "slow"),
        ("hate", "hated"),
        ("of", "but"),
        ("yay", "film"),  # an interjection
        ("wow", "quick"),
    ],
)
def test_other_words_do_not(word: str, other: str) -> None:
    assert not fits(word, other)
    assert not fits(other, word)


def test_names_that_begin_alike_are_forms_of_one() -> None:
    words = ("Poland", "Polish", "Norway", "polite", "poor")
    names, others = (Fitting(words, set(words), names=given) for given in (True, False))
    first, rest = torch.tensor([0, 0, 3]), torch.tensor([1, 2, 4])
    assert names(first, rest).tolist() == [False, True, True]
    assert others(first, rest).tolist() == [True, True, True]


def test_an_ending_needs_a_word_that_it_is_put_to() -> None:
    known = {"work", "love", "stop", "try", "box", "fast", "fastest", "use", "the", "simple"}
    found = {word: inflection(word, known) for word in ("works", "loved", "stopped", "tries", "boxes", "faster")}
    assert found == {"works": "s", "loved": "ed", "stopped": "ed", "tries": "s", "boxes": "s", "faster": "er"}
    assert [inflection(word, known) for word in ("using", "simply", "bought")] == ["ing", "ly", "ed"]
    assert not any(inflection(word, known) for word in ("bed", "glass", "thing", "player", "speed", "family", "bus"))
    assert [inflection(word, known) for word in ("simplifies", "recharges", "gadgets")] == ["s"] * 3  # long enough
    assert not any(inflection(word, known) for word in ("christmas", "physics", "famous", "analysis", "kudos"))


def test_cases() -> None:
    assert [case(word) for word in ("this", "This", "THIS", "iPod", "I", "5")] == [0, 1, 2, 3, 3, 0]


def test_a_piece_of_a_contraction_is_not_a_word() -> None:
    text = "I can't say 'fine' of the boys' game"
    places = {word: text.index(word) for word in ("can", "say", "fine", "boys", "game")}
    whole = {word: in_one_piece(text, at, at + len(word)) for word, at in places.items()}
    assert whole == {"can": False, "say": True, "fine": True, "boys": True, "game": True}
    assert not in_one_piece("we've", 3, 5)


def test_pieces_of_contractions_in_a_whole_text() -> None:
    text = "'I can't say 'fine' of the boys' game, it’s y'all's 'n' x'"
    spans = [match.span() for match in re.finditer(r"\w+", text)]
    assert in_one_piece_each(text, spans).tolist() == [in_one_piece(text, *span) for span in spans]
    assert in_one_piece_each("no such mark", [(0, 2)]).tolist() == [True]


def test_accounts_and_symbols_of_pages_are_not_words() -> None:
    text = "@friend say &lt;fine&gt; &amp; by mail to me@home, you & we; a &c"
    spans = [match.span() for match in re.finditer(r"\w+", text)]
    kept = [
        text[start:end] for (start, end), whole in zip(spans, in_one_piece_each(text, spans), strict=True) if whole
    ]
    assert kept == "say fine by mail to me you we a c".split()
