"""Parts of names are told by their capitals."""

import re

import pytest

from wordward.explain.names import in_names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Chuck Norris is my favorite", "Chuck Norris"),
        ("we saw the Wall Street film twice", "Wall Street"),
        ("Great Sony camera for the price", "Sony"),  # the first word of a sentence has a capital in any case
        ("I like it. Great Sony camera for the price", "Sony"),
        ("My Manager broke an arm", ""),
        ("the Wolf and the Lamb are both here", ""),  # one capital may be a matter of taste
        ("it was made in Paris, London and New York", "New York"),
        ("The Dullest Camera Ever Made", ""),  # a heading
        ("it shows HTML Mail as text", ""),  # an abbreviation is no name
    ],
)
def test_capitals_beside_each_other_are_a_name(text: str, names: str) -> None:
    spans = [match.span() for match in re.finditer(r"\w+", text)]
    found = [text[start:end] for (start, end), part in zip(spans, in_names(text, spans), strict=True) if part]
    assert found == names.split()
