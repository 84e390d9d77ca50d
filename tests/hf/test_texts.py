"""Texts and labels given to `wordward.hf.explain` and `wordward.hf.attack`: taken in every form, or refused."""

from typing import Any

import pytest
from hf_tiny import bert, word_pieces

import wordward
from wordward import Example
from wordward.support.errors import SettingError

NAMES: dict[str, Any] = {"id2label": {0: "bad", 1: "good"}, "label2id": {"bad": 0, "good": 1}}
TOKENIZER = word_pieces()
CALLS = {"explain": wordward.hf.explain, "attack": wordward.hf.attack}
WORDS = ("the", "film")


def call(name: str, task: str, texts: Any, **options: Any) -> list[Any]:
    model = bert(task, len(TOKENIZER), **NAMES).eval()
    more = {"positive": "bad"} if name == "attack" and task == "token" else {}
    return list(CALLS[name](model, TOKENIZER, texts, **options, **more))


@pytest.fixture(params=list(CALLS))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.parametrize(
    ("labels", "came"),
    [(["bad", "good"], "got 2 of them"), ("good", "got one string, 'good'"), ([], "got 0 of them")],
)
def test_one_label_for_each_text(name: str, labels: Any, came: str) -> None:
    with pytest.raises(SettingError, match=f"expected a list of 1 labels, one for each text; {came}"):
        call(name, "sequence", ["the film was warm"], labels=labels)


@pytest.mark.parametrize("label", ["good", "bad"])
def test_examples_bring_their_labels(name: str, label: str) -> None:
    (found,) = call(name, "sequence", [Example("the film was warm", label)])
    assert found.label == label
    assert [found] == call(name, "sequence", ["the film was warm"], labels=[label])
    assert [found] == call(name, "sequence", [Example("the film was warm")], labels=[label])


def test_labels_by_number(name: str) -> None:
    (found,) = call(name, "sequence", ["the film was warm"], labels=[1])
    assert found.label == "good"


def test_labels_are_given_once(name: str) -> None:
    with pytest.raises(SettingError, match="got both: leave `labels` out"):
        call(name, "sequence", [Example("the film was warm", "good")], labels=["good"])


def test_examples_of_a_tagger(name: str) -> None:
    tags = ("bad", "good")
    found = call(name, "token", [Example("the film", tokens=WORDS, tags=tags)])
    assert found == call(name, "token", [list(WORDS)], labels=[list(tags)])
    assert found == call(name, "token", [Example("the film", tokens=WORDS)], labels=[tags])


@pytest.mark.parametrize("tags", [["bad"], "bad", 1])
def test_one_tag_for_each_word(name: str, tags: Any) -> None:
    with pytest.raises(SettingError, match="expected a list of 2 tags, one for each word of a text; got"):
        call(name, "token", [list(WORDS)], labels=[tags])


def test_a_pair_is_no_text_of_a_classifier(name: str) -> None:
    with pytest.raises(SettingError, match=r"is a classifier, but .*labels=.*Example\(text, label\)"):
        call(name, "sequence", [("the film", "good")])


def test_strings_are_no_texts_of_a_tagger(name: str) -> None:
    with pytest.raises(SettingError, match="this model is a tagger, but one text is 'the film'"):
        call(name, "token", ["the film"])


@pytest.mark.parametrize("text", ["the film", Example("the film")])
def test_one_text_is_no_list(name: str, text: Any) -> None:
    with pytest.raises(SettingError, match=r"give \[text\]"):
        call(name, "sequence", text)
