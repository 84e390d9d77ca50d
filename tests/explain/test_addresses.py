"""Addresses, paths and hashes in a text: their parts are not words that may be pulled or swapped."""

import random
import re
import time

import pytest

from wordward.explain.addresses import _ADDRESS, addresses
from wordward.explain.word_kinds import in_one_piece_each

MORE = ["for", "more", "see"]


@pytest.mark.parametrize(
    "address",
    [
        "https://example.org/issues/3131?page=two#last",
        "github.com/our-team/tool/commit/35a5842c0e",
        "www.example.net",
        "example.co.uk",
        "Shop.Example.COM",
        "first.last+news@mail.example.org",
        "/usr/share/doc/tool",
        "~/notes/today",
        "../other/place",
        "src/main/start.py",
        "C:\\Programs\\Tool\\run.exe",
        "35a5842c0e",
        "deadbee5",
        "git+ssh://example.org/tool",
    ],
)
def test_no_word_of_an_address_is_a_word_by_itself(address: str) -> None:
    for text in (f"see {address} for more", f"(see {address}) for more", f"for more see {address}"):
        spans = [match.span() for match in re.finditer(r"\w+", text)]
        whole = in_one_piece_each(text, spans)
        assert sorted(text[start:end] for (start, end), one in zip(spans, whole, strict=True) if one) == MORE


def test_an_address_ends_where_chinese_goes_on() -> None:
    assert addresses("见https://example.org/a。更多") == [(1, 22)]


@pytest.mark.parametrize(
    "text",
    [
        "a comedy/drama and/or his/her 9/10, 4.5/5",
        "the film was good.The rest...was e.g. not; U.S./China",
        "effaced, defaced, 1234567 facades",
        "either / or, a/c @home a@b and C: no",
        "la fin.de lui, it /is/ so, livre/G.Hugo",
        "24/7 fun /s wow.so good.it is",
    ],
)
def test_ordinary_words_are_in_no_address(text: str) -> None:
    assert addresses(text) == []


def test_they_are_those_of_the_whole_text() -> None:
    rng = random.Random(0)
    parts = [
        *"ab f12./@\\:w-~\n\té１",
        " ",
        " ",
        "www.",
        "http://",
        "c:\\",
        "abcdef12",
        "src/main.py",
        "x.it",
        ".com",
    ]
    for _ in range(3000):
        text = "".join(rng.choices(parts, k=rng.randrange(1, 30)))
        assert addresses(text) == [found.span() for found in _ADDRESS.finditer(text)]


def test_ordinary_words_are_not_searched() -> None:
    text = "a warm and funny film about an old man who reads slowly. " * 400
    taken: list[list[float]] = [[], []]
    for _ in range(3):
        for of, search in zip(taken, (addresses, lambda text: list(_ADDRESS.finditer(text))), strict=True):
            started = time.process_time()
            assert search(text) == []
            of.append(time.process_time() - started)
    assert min(taken[0]) < min(taken[1]) / 2


def test_long_texts_take_no_longer_than_they_are() -> None:
    started = time.monotonic()
    for text in (
        "a" * 100_000,
        "a." * 50_000,
        "a/" * 50_000,
        "a@" * 50_000,
        "-" * 100_000,
        "://" * 30_000,
        "/." * 50_000,
    ):
        addresses(text)
    assert time.monotonic() - started < 10
