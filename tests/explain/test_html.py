"""An explanation as HTML: nothing in it becomes markup, nothing comes from elsewhere."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import jinja2
import pytest
from explained import EMPTY, EVIL, ONE, OTHER, PLACES, TAGGED, TEXT, evil, printed

import wordward
from wordward.explain.explainer import Explanations
from wordward.explain.explanation import Explanation, Place, Pull
from wordward.explain.html import STYLE, html_fragment, page, render

ALLOWED = set("section p b span table thead tbody tr th td div bdi ruby rt rp details summary small i".split())


class Reader(HTMLParser):
    """The elements and the text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("shown", [[evil()], [evil(), replace(evil(), model="b", method="c")]])
def test_nothing_in_a_text_becomes_markup(shown: list[Explanation]) -> None:
    read = Reader(html_fragment(shown))
    assert {tag for tag, _ in read.elements} <= ALLOWED
    assert {name for _, attributes in read.elements for name in attributes} <= {
        "class",
        "dir",
        "scope",
        "tabindex",
        "title",
    }
    assert read.text.count("<script>alert('x')</script>") > 5
    assert not {"\x1b", "\x00", "\u202e", "\u2066"} & set(read.text)
    whole = page(EVIL, html_fragment(shown))
    assert whole.count("<script") == 0
    assert whole.count("</style") == 1


def test_no_template_switches_escaping_off() -> None:
    templates = list(Path(wordward.__file__).parent.glob("*/templates/*.j2"))
    assert len(templates) > 5
    for template in templates:
        assert not re.search(r"\|\s*safe|autoescape|Markup", template.read_text()), template


def test_a_value_that_a_template_lacks_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError, match="'title' is undefined"):
        render("explain/templates/page.html.j2", body="")
    assert "&lt;p&gt;" in render("explain/templates/page.html.j2", title="", body="<p>")


def test_a_page_needs_nothing_from_elsewhere() -> None:
    whole = page("Which words pull", html_fragment([ONE, OTHER]))
    tags = {tag for tag, _ in Reader(whole).elements}
    assert tags <= ALLOWED | set("html head meta title style body main h1".split())
    assert not re.search(r"https?:|//|url\(|@import|src=|href=", whole)
    assert "default-src 'none'" in whole
    assert "prefers-color-scheme: dark" in whole
    assert "@media print" in whole
    assert STYLE in whole


def test_every_class_has_a_style() -> None:
    used = set(re.findall(r'class="([^"]*)"', html_fragment([ONE]) + html_fragment([TAGGED, TAGGED])))
    for name in {each for names in used for each in names.split()} - {"ww-classify"}:
        assert f".{name} " in STYLE or f".{name}::" in STYLE, name


def test_all_words_that_pull_are_there_unfolded_and_on_focus() -> None:
    html = html_fragment([ONE])
    bar, unfolded = html.split('<details class="ww-all">')
    for part in (bar, unfolded):
        assert "dull" in part
        assert "0.50" in part
    assert len(re.findall(r'tabindex="0"', bar)) == sum(bool(place.pulls) for place in PLACES)


def test_right_to_left_texts_find_their_own_direction() -> None:
    text = "הסרט טוב"
    shown = replace(ONE, text=text, places=(Place(0, "הסרט", 0, 4, True, (Pull("רע", 1.0, 1.0, 1.0),)),))
    html = html_fragment([shown])
    assert '<p class="ww-text" dir="auto">' in html
    assert "<bdi>הסרט</bdi>" in html
    assert "<bdi>רע</bdi>" in html


def test_the_running_text_is_the_text() -> None:
    html = html_fragment([replace(ONE, unread=0)])
    paragraph = re.search(r'<p class="ww-text".*?</p>', html, re.DOTALL)
    assert paragraph is not None
    bare = re.sub(r"<rp>.*?</rp>|<rt>.*?</rt>", "", paragraph[0])
    assert Reader(bare).text == TEXT
    assert re.findall(r"<rt><bdi>(.*?)</bdi></rt>", paragraph[0]) == ["bad", "opening"]


def test_a_notebook_shows_it() -> None:
    shown = Explanations([ONE])._repr_html_()
    assert html_fragment([ONE]) in shown
    assert STYLE in shown
    assert "<h1" not in shown  # the page around it is the notebook's own


def test_empty_texts_show_that_they_are() -> None:
    assert "no words to read" in html_fragment([EMPTY])
    assert "(model mine)" in printed(EMPTY)
    assert "no words to read" in printed(EMPTY)
    assert "an empty text" in printed(replace(EMPTY, text=""))


@pytest.mark.parametrize("word", ["x" * 90, "映画" * 20])
def test_a_word_longer_than_a_line_can_be_broken(word: str) -> None:
    place = Place(0, word, 0, len(word), True, (Pull("dull", 1.0, 1.0, 0.5),))
    drawn = html_fragment([replace(ONE, text=word, places=(place,))])
    assert "<ruby>" not in drawn  # which would stay on one line
    assert "<ruby>" in html_fragment([ONE])
