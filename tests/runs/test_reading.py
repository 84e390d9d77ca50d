"""The words of a text as a run reads them, and others put in their places."""

from itertools import pairwise

import pytest
from untrained import a_run

from wordward.datasets import Example
from wordward.explain.explainer import explain
from wordward.explain.explanation import Place
from wordward.explain.swaps import apply
from wordward.runs import word_run

ODD = (
    Example("Zyx: the CAST,  qqq was  dull!"),
    Example("the cast  the end", tokens=("the", "cast", "the", "end")),
    Example("It isn't the İstanbul cast\u0085was 🎬 good", tokens=None),
    Example("other words", tokens=("the", "good cast", "was")),
    Example(""),
)


@pytest.mark.parametrize("task", ["classify", "tag"])
@pytest.mark.parametrize("unknown", ["unk", "drop"])
@pytest.mark.parametrize("tokenizer", ["words", "authors", "punctuation", "whitespace"])
@pytest.mark.parametrize("max_length", [None, 3])
def test_words_are_read_as_the_model_reads_them(
    task: str, unknown: str, tokenizer: str, max_length: int | None
) -> None:
    settings = {"task": task, "unknown": unknown, "tokenizer": tokenizer, "lowercase": True}
    run, unlimited = (a_run(max_length=most, **settings) for most in (max_length, None))
    for example in ODD[: 4 if task == "tag" else 5]:  # a tagger's corpus holds no empty sentence
        text = run.read(example)
        (row,) = run.encode([example], labelled=False).rows
        ids = [run.vocabulary[token.text] for token in text.tokens]
        assert [*ids, *([] if run.tagging else [2])] == row.tolist()
        assert all(text.text[token.start : token.end].lower() == token.text for token in text.tokens)
        assert [text.word(at) for at in range(len(text.tokens))] == [token.text for token in text.tokens]
        assert all(one.end <= two.start for one, two in pairwise(text.tokens))
        assert len(text.tokens) + text.unread == len(unlimited.read(example).tokens)


@pytest.mark.parametrize("unknown", ["unk", "drop"])
def test_many_texts_are_read_as_alone_without_looking_for_the_places_of_their_words(
    unknown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, texts = a_run(unknown=unknown), ["the cast was good", "", "🎬 !", "qqq zzz", "zzz the"]
    readings = [run.read(Example(text)) for text in texts]
    words = {False: [reading.words for reading in readings], True: [len(reading.spans) for reading in readings]}
    assert words[True][3] == (2 if unknown == "unk" else 0)
    monkeypatch.setattr(word_run, "word_spans", pytest.fail)
    for known, counts in words.items():
        wanted = [each.ids.tolist() if count else None for each, count in zip(readings, counts, strict=True)]
        assert [None if row is None else row.tolist() for row in run.rows_of(texts, known=known)] == wanted


def test_what_is_not_read_is_counted() -> None:
    (found,) = explain(a_run(max_length=3), [Example("the cast was good and dull", "good")])
    assert [place.word for place in found.places] == ["the", "cast", "was"]
    assert found.unread == 3


def place_of(text: str, word: str, at: int = 0) -> Place:
    start = text.index(word, at)
    return Place(0, word, start, start + len(word), True, ())


@pytest.mark.parametrize("unknown", ["unk", "drop"])
def test_words_are_put_in_where_they_were_found(unknown: str) -> None:
    run = a_run(unknown=unknown, lowercase=True)
    text = "Zyx wvu: the CAST,  qqq was Dull!"
    (found,) = explain(run, [Example(text, "bad")])
    at = {place.word: place for place in found.places}
    assert at["CAST"].position == (3 if unknown == "unk" else 1)
    assert apply(text, [], lowercase=True) == text
    assert apply(text, [(at["CAST"], "ending")], lowercase=True) == "Zyx wvu: the ENDING,  qqq was Dull!"
    changes = [(at["the"], "was"), (at["Dull"], "good"), (at["CAST"], "and")]
    for order in (changes, changes[::-1]):
        assert apply(text, order, lowercase=True) == "Zyx wvu: was AND,  qqq was Good!"
    assert run.read(Example(apply(text, changes, lowercase=True))).tokens[-1].text == "good"


def test_case_is_kept_as_far_as_the_run_still_reads_the_word() -> None:
    for written, word, wanted in (
        ("Better", "worse", "Worse"),
        ("BETTER", "worse", "WORSE"),
        ("better", "worse", "worse"),
        ("bEtter", "worse", "worse"),
        ("A", "the", "The"),
        ("BETTER", "straße", "straße"),  # STRASSE is another word
        ("Better", "ﬁne", "ﬁne"),
        ("Better", "9th", "9th"),
    ):
        text = f"a {written}!"
        assert apply(text, [(place_of(text, written, 2), word)], lowercase=True) == f"a {wanted}!"
        assert apply(text, [(place_of(text, written, 2), word)]) == f"a {word}!"


def test_a_place_of_another_text_is_refused() -> None:
    run, text = a_run(), "the cast was good"
    place = place_of(text, "cast")
    with pytest.raises(ValueError, match="expected 'cast' at characters 4-8; found 'film'"):
        apply("the film was good", [(place, "ending")], lowercase=run.text.lowercase)
    with pytest.raises(ValueError, match="each place once"):
        apply(text, [(place, "cast"), (place, "ending")], lowercase=run.text.lowercase)
    with pytest.raises(ValueError, match="each place once"):
        apply(text, [(place, "cast"), (place_of(text, "the cast"), "ending")], lowercase=run.text.lowercase)
