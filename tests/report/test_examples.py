"""Sentences whose strongest pull, put into the text, moves the prediction."""

from itertools import pairwise

import pytest
from reviews import reviews, tagged
from serving import small_run

from wordward.datasets import Example
from wordward.explain.explainer import explain
from wordward.report.examples import POOL, SHORT, _pool, tell, telling
from wordward.runs.run import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return small_run(tmp_path_factory.mktemp("classifier"))


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return small_run(tmp_path_factory.mktemp("tagger"), tagging=True)


def test_what_is_told_is_what_predict_says(run: Run) -> None:
    examples = [*reviews(30, seed=4), Example("", "good"), Example("no label at all")]
    found = tell(run, examples)
    assert 0 < len(found) <= 30
    for each in found:
        before, after = run.predict([each.explanation.text, each.text])
        # To the sixth digit, since a processor may round otherwise in a batch of another size.
        assert each.before == pytest.approx(before.probabilities[each.label], abs=2e-6)
        assert each.after == pytest.approx(after.probabilities[each.label], abs=2e-6)
        assert (each.predicted_before, each.predicted_after) == (before.label, after.label)
        words = zip(each.explanation.text.split(), each.text.split(), strict=True)
        assert [(old, new) for old, new in words if old != new] == [(each.place.word, each.toward)]
        strengths = [place.pulls[0].strength for place in each.explanation.places if place.pulls]
        assert each.place.pulls[0].strength == max(strengths)


def test_the_most_telling_come_first_and_no_swap_twice(run: Run) -> None:
    examples = [*reviews(80, seed=5), Example("the film was warm and funny", "bad")]  # the last is wrong
    found = telling(run, examples, count=6)
    assert len(found) == 6
    assert all(each.right for each in found)
    drops = [each.before - each.after for each in found]
    assert all(one >= other for one, other in pairwise(drops))
    every = [each for each in tell(run, examples) if each.right]
    assert drops[0] == max(each.before - each.after for each in every)
    swaps = [(each.place.word, each.toward) for each in found]
    assert len(set(swaps)) == len(swaps)
    assert telling(run, examples, count=2) == found[:2]
    wrong = [each for each in tell(run, examples) if not each.right]
    assert wrong
    assert all(each.right for each in telling(run, examples, count=99))


def test_a_tagger_is_told_by_a_flag_that_is_right(tagger: Run) -> None:
    missed = ("the", "film", "is", "warm"), ("c", "c", "i", "c")  # which the model does not flag
    sentences = [*tagged(60, seed=6), Example("the film is warm", tokens=missed[0], tags=missed[1])]
    assert tagger.predict(["the film is warm"])[0].tokens[2].label == "c"
    found = tell(tagger, sentences)
    true = {example.text: example.tags for example in sentences}
    said = {r.text: [t.label for t in r.tokens] for r in tagger.predict(list(true))}
    flagged = [text for text in true if any(a == b == "i" for a, b in zip(true[text] or (), said[text], strict=True))]
    assert {each.explanation.text for each in found} == set(flagged)
    for each in found:
        focus = each.explanation.focus
        assert focus is not None
        assert each.label == (true[each.explanation.text] or ())[focus] == "i"
        before, after = tagger.predict([each.explanation.text, each.text])
        assert each.before == pytest.approx(before.tokens[focus].probabilities["i"], abs=2e-6)
        assert each.after == pytest.approx(after.tokens[focus].probabilities["i"], abs=2e-6)
        assert each.changes == (after.tokens[focus].label != "i")


def test_the_explanation_is_of_the_true_label(run: Run) -> None:
    example = Example("the film was warm and funny", "bad")
    (told,) = tell(run, [example])
    assert told.label == "bad"
    assert told.explanation == explain(run, [example])[0]


def test_short_sentences_are_drawn_where_there_are_enough() -> None:
    long = [Example("word " * 50, "good")] * 40
    short = [Example(f"a short sentence of {at} words", "good") for at in range(700)]
    drawn = _pool([*long, *short], 4, seed=1)
    assert len(drawn) == POOL
    assert all(len(example.text.split()) in SHORT for example in drawn)
    assert drawn == _pool([*long, *short], 4, seed=1) != _pool([*long, *short], 4, seed=2)
    assert _pool([*long, *short[:3]], 4, seed=1)[:3] == short[:3]
    assert _pool([], 4, seed=1) == []
