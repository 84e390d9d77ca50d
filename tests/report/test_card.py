"""The card of a check: it names where its texts are from, and shows texts, labels and names as they are."""

from collections.abc import Sequence
from dataclasses import replace
from html import unescape

import pytest
from any_model import Guard, good
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from reviews import reviews

import wordward
from wordward.attack.checking import check
from wordward.config.attack import AttackSettings
from wordward.config.check import CheckSettings
from wordward.report import card
from wordward.support.markdown import code, escaped

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
LIVE = "![x](https://evil.example/t.png) [click](http://evil.example) <b>b</b> &lt; "
LIVE += "$$x$$ \\(y\\) `z` *w* __v__ ~~u~~ #t www.evil.example a|b"
NASTY = st.text("\\`*_[]!|#<>$~&;()-+=:/.wa1 \"'", max_size=30).map(lambda text: " ".join(text.split()))


@pytest.mark.parametrize(("source", "told"), [("", "Texts: 8. An attack"), ("a.csv", "Texts: 8 of a.csv. An attack")])
def test_the_source_of_the_texts(source: str, told: str) -> None:
    found = check(
        wordward.open_model(Guard()), reviews(8), CheckSettings(AttackSettings(edits=("typo",))), source=source
    )
    assert told in card(found)


def test_texts_labels_and_names_are_shown_and_not_read() -> None:
    labels = ("*bad* |", "[good](http://evil.example)")

    def live(texts: Sequence[str]) -> list[list[float]]:
        return [[1 - good(text), good(text)] for text in texts]

    texts = [
        replace(each, text=f"{LIVE} {each.text}", label=labels[each.label == "good"], group="![g](g)")
        for each in reviews(8)
    ]
    settings = AttackSettings(edits=("typo",), rescore=100)
    found = check(
        wordward.open_model(live, labels=labels),
        texts,
        CheckSettings(settings, target=labels[0]),
        source="my_[x](y)_.csv",
    )
    assert found.flipped
    written = card(replace(found, model="a *model*"))
    page = MARKDOWN.render(written)
    assert not [tag for tag in ("<img", "<a ", "<b>", "<em>", "<s>") if tag in page]
    assert page.count("<code>") == 1  # the name of the command
    shown = unescape(page.replace("<strong>", "").replace("</strong>", ""))
    for text in (LIVE.rpartition(" ")[0], *labels, "![g](g)", "my_[x](y)_.csv", "Robustness of a *model*"):
        assert text in shown
    assert "p://" not in written  # an address is a link without brackets, too
    assert "s://" not in written
    assert "www." not in written
    assert not [each for each in ("$$", "\\\\(", "\\\\[") if each in written]  # math
    widths = {line.count("<td>") for line in page.split("<tr>")[1:] if "<td>" in line}
    assert widths <= {3, 4, 6}  # the cells of each table


@given(NASTY)
def test_an_escaped_text_is_shown_as_it_is(text: str) -> None:
    page = MARKDOWN.render(f"| head | more |\n|---|---|\n| x{escaped(text)} | y |\n\nx{escaped(text)}x\n")
    assert unescape(page).count(f"<td>x{text}</td>\n<td>y</td>") == 1
    assert unescape(page).endswith(f"<p>x{text}x</p>\n")


@given(NASTY.filter(bool))
def test_a_text_as_code_is_shown_as_it_is(text: str) -> None:
    assert unescape(MARKDOWN.render(f"x {code(text)} x")) == f"<p>x <code>{text}</code> x</p>\n"
