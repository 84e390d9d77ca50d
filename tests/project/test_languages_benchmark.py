"""What benchmarks/languages.py takes from apt's lists, and what it prints of its records."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import languages
from benchmarks.languages import LANGUAGES, RESULTS, WORDS, letters_error, main, table, texts_of
from benchmarks.records import recorded
from wordward.datasets import Example
from wordward.support.errors import DataError

PACKAGES = """Package: warm
Section: net

Package: warm-doc
Source: warm (1.2)
Section: doc

Package: cold
Section: contrib/games
"""
TRANSLATIONS = f"""Package: warm
Description-md5: 0f
Description-de: heizt Netze
 Ein Dienst, der Netze heizt.
 .
 {"Wort " * 2 * WORDS}

Package: warm-doc
Description-md5: 1f
Description-de: Handbuch von warm

Package: cold
Description-md5: 2f
Description-de: ein kaltes Spiel

Package: gone
Description-md5: 3f
Description-de: ohne Paket
"""


@pytest.fixture
def lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists of our own in the place of apt's, of German alone."""

    def said(command: Sequence[str]) -> str:
        if "indextargets" not in command:
            return PACKAGES if command[-1] == "packages" else TRANSLATIONS
        if "Created-By: Packages" in command:
            return "packages\n"
        return "translations\n" if "Language: de" in command else ""

    monkeypatch.setattr(languages, "_said", said)


def test_a_text_is_the_beginning_of_a_source_packages_description(lists: None) -> None:
    first, second = texts_of("de")
    assert first.text.startswith("heizt Netze Ein Dienst, der Netze heizt. Wort Wort")
    assert len(first.text.split()) == WORDS
    assert (first.label, second.text, second.label) == ("net", "ein kaltes Spiel", "games")


def test_a_language_without_a_list_is_told(lists: None) -> None:
    with pytest.raises(DataError, match=r"no list of Translations fr: apt-get update -o Acquire::Languages="):
        texts_of("fr")


def test_where_apt_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(DataError, match="apt-get was not found"):
        texts_of("de")


def test_a_model_on_letters_reads_words_that_it_has_not_seen() -> None:
    pytest.importorskip("sklearn")
    learnt = [Example(text, text[:4]) for text in ("warmes", "warmer", "kaltes", "kalter")]
    assert letters_error(learnt, [Example("warmen", "warm"), Example("kalten", "kalt")]) == 0
    assert letters_error(learnt, [Example("warmen", "warm"), Example("warmem", "kalt")]) == 0.5


def test_the_table_is_that_of_the_records(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--table"])
    printed = capsys.readouterr().out
    assert printed.startswith("| language | linear model on words | on letters |")
    errors = {"words": 0.4, "letters": 0.3, "baseline": 0.2, "iadvt": 0.1}
    of_two = [
        {"language": language, "errors": {name: value + more for name, value in errors.items()}}
        for language, more in (("de", 0.0), ("de", 0.1), ("fr", 0.1))
    ]
    assert table(of_two).splitlines()[2:] == [
        "| de | 45.0% (40.0% to 50.0%) | 35.0% (30.0% to 40.0%) | 25.0% (20.0% to 30.0%) | 15.0% (10.0% to 20.0%) |",
        "| fr | 50.0% | 40.0% | 30.0% | 20.0% |",
        "| mean | 47.5% | 37.5% | 27.5% | 17.5% |",
    ]


def test_the_documentation_shows_the_records() -> None:
    page = (Path(__file__).parents[2] / "docs" / "default_model.md").read_text(encoding="utf-8")
    assert table(recorded(RESULTS)) in page
    assert {each["language"] for each in recorded(RESULTS)} == set(LANGUAGES)
