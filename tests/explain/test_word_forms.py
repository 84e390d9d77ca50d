"""Forms of one word, and numbers written otherwise, are no other word."""

import pytest

from wordward.explain.word_forms import beginning, same_word


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("service", "serve"),
        ("performance", "Performer"),
        ("library", "librarian"),
        ("analysis", "analyze"),
        ("multi", "multiple"),
        ("pipeline", "pipe"),
        ("viewers", "views"),
        ("stop", "stopper"),
        ("funny", "fun"),
        ("actor", "action"),
        ("1", "01"),
        ("schreiben", "Schreiber"),
        ("музыка", "музыкой"),
        ("names", "names"),
        ("humour", "humor"),
        ("humorous", "humour"),
        ("realised", "realized"),
        ("organisation", "organization"),
        ("analyse", "analyzing"),
        ("traveller", "traveler"),
        ("cancelled", "canceled"),
        ("travelled", "traveler"),
        ("labelling", "label"),
        ("coloured", "colors"),
        ("neighbour", "neighborhood"),
        ("fibre", "fiber"),
        ("cosy", "cozy"),
        ("Cosier", "cozier"),
        ("grey", "gray"),
        ("greyish", "grayish"),
    ],
)
def test_forms_of_one_word(word: str, other: str) -> None:
    assert same_word(word, other)
    assert same_word(other, word)
    assert beginning(word) == beginning(other)  # else they are not compared


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("careful", "careless"),
        ("hope", "hopeless"),
        ("terrible", "terrific"),
        ("grey", "green"),
        ("packet", "paint"),
        ("network", "system"),
        ("1", "10"),
        ("his", "this"),
        ("the", "their"),
        ("best", "worst"),
        ("hour", "horror"),
        ("court", "cortex"),
        ("noise", "nozzle"),
        ("gases", "gazes"),
        ("dose", "doze"),
        ("prey", "pray"),
        ("they", "gray"),
        ("dealer", "death"),
        ("failed", "faith"),
        ("falling", "false"),
        ("doubled", "doubt"),
        ("filling", "filth"),
        ("chilling", "child"),
        ("sterling", "stern"),
        ("smiling", "smith"),
        ("scour", "score"),
        ("detour", "deter"),
        ("resource", "resort"),
    ],
)
def test_other_words(word: str, other: str) -> None:
    assert not same_word(word, other)
    assert not same_word(other, word)
