"""The card of a check names where its texts are from, where that is known."""

import pytest
from any_model import Guard
from reviews import reviews

import wordward
from wordward.attack.checking import check
from wordward.config.attack import AttackSettings
from wordward.report import card


@pytest.mark.parametrize(("source", "told"), [("", "Texts: 8. An attack"), ("a.csv", "Texts: 8 of a.csv. An attack")])
def test_the_source_of_the_texts(source: str, told: str) -> None:
    found = check(wordward.open_model(Guard()), reviews(8), AttackSettings(edits=("typo",)), source=source)
    assert told in card(found)
