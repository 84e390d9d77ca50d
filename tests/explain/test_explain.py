"""What a perturbation points at, in texts that a run explains."""

import pickle
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from untrained import a_run

from wordward.datasets import DataError, Example
from wordward.explain import explainer
from wordward.explain.directions import pointed_at
from wordward.explain.explainer import Explainer, explain
from wordward.explain.explanation import Explanation, Place, from_json, to_json
from wordward.explain.pulls import _strongest
from wordward.models import Tagger
from wordward.perturbation.recipes import RECIPES
from wordward.runs.reading import Row
from wordward.runs.run import Run
from wordward.text.vocabulary import SPECIALS

TEXTS = ("the cast was good", "dull and good , the ending was dull", "zyx the cast", "was")


def gradient(run: Run, words: Sequence[str], labels: Tensor, focus: int | None = None) -> tuple[Tensor, Tensor]:
    """The loss's gradient at a text's vectors, and the vectors, by hand."""
    model = run.model
    ids = torch.tensor([[run.vocabulary[word] for word in words] + ([] if run.tagging else [2])])
    vectors = model.words.table(ids).detach().requires_grad_()
    states, _ = model.lstm(vectors)
    if isinstance(model, Tagger):
        back, _ = model.backward_lstm(vectors.flip(1))
        loss = F.cross_entropy(model.head(torch.cat([states, back.flip(1)], -1))[0], labels, reduction="none")
        loss = loss.sum() if focus is None else loss[focus]
    else:
        loss = F.cross_entropy(model.head(states[:, -1]), labels)
    return torch.autograd.grad(loss, vectors)[0][0], vectors[0].detach()


def alphas(run: Run, words: Sequence[str], labels: Tensor, focus: int | None = None) -> Tensor:
    """eq:update_alpha_new by hand: a word's pull toward every word of the vocabulary, (time, words)."""
    g, here = gradient(run, words, labels, focus)
    units = F.normalize(run.model.words.table.weight[len(SPECIALS) :].detach() - here.unsqueeze(1), dim=-1)
    ascent = (units * g.unsqueeze(1)).sum(-1)
    return (2.0 * ascent / ascent.norm())[: len(words)]


def pulls_of(explanation: Explanation) -> list[dict[str, float]]:
    return [{pull.toward: pull.strength for pull in place.pulls} for place in explanation.places]


def positive(run: Run, strengths: Tensor) -> list[dict[str, Any]]:
    """The pulls that strengths toward every word of the vocabulary stand for."""
    words = run.vocabulary.words[len(SPECIALS) :]
    return [
        {word: pytest.approx(float(value), rel=1e-4) for word, value in zip(words, row, strict=True) if value > 1e-7}
        for row in strengths
    ]


@pytest.mark.parametrize("label", ["bad", "good", None])
def test_strengths_are_those_of_the_equation(label: str | None) -> None:
    run = a_run()
    (found,) = explain(run, [Example("the cast was good", label)], top=99)
    assert found.given == (label is not None)
    assert found.label == (label or found.predicted)
    wanted = alphas(run, "the cast was good".split(), torch.tensor([run.labels.index(found.label or "")]))
    assert pulls_of(found) == positive(run, wanted)
    assert any(len(pulls) < len(run.vocabulary) - 4 for pulls in pulls_of(found))  # some words push
    strongest = max(float(row.max()) for row in wanted)
    for place in found.places:
        assert [pull.strength for pull in place.pulls] == sorted((p.strength for p in place.pulls), reverse=True)
        for pull in place.pulls:
            assert pull.relative == pytest.approx(pull.strength / strongest, rel=1e-4)
    assert found.strongest is not None
    assert found.strongest.pulls[0].relative == 1.0


def test_the_other_label_pulls_where_this_one_pushes() -> None:
    run = a_run()
    bad, good = (explain(run, [Example("the cast was good", label)], top=99)[0] for label in run.labels)
    for one, other in zip(pulls_of(bad), pulls_of(good), strict=True):
        assert not one.keys() & other.keys()
        assert len(one) + len(other) == len(run.vocabulary) - len(SPECIALS) - 1  # but the word itself


def test_no_candidate_that_pulls_no_pull() -> None:
    run = a_run(k=1)
    found = explain(run, [Example(text, "good") for text in TEXTS], words="any")
    places = [place for explanation in found for place in explanation.places]
    assert {len(place.pulls) for place in places} == {0, 1}
    assert all(pull.strength > 0 for place in places for pull in place.pulls)


def test_cosine_is_between_perturbation_and_direction() -> None:
    run = a_run()
    (found,) = explain(run, [Example("the cast was good", "good")], top=99)
    alpha = alphas(run, "the cast was good".split(), torch.tensor([1]))
    table = run.model.words.table.weight.detach()
    for place, row in zip(found.places, alpha, strict=True):
        directions = F.normalize(table[len(SPECIALS) :] - table[run.vocabulary[place.word]], dim=-1)
        cosines = F.cosine_similarity((row.unsqueeze(-1) * directions).sum(0, keepdim=True), directions)
        for pull in place.pulls:
            at = run.vocabulary[pull.toward] - len(SPECIALS)
            assert pull.cosine == pytest.approx(float(cosines[at]), abs=1e-5)


def brute_force(vectors: Tensor, ids: Tensor, table: Tensor, allowed: Tensor) -> Tensor:
    """cos(r, w_k - w) one by one."""
    found = torch.zeros(len(ids), len(allowed), dtype=torch.float64)
    for row, (r, at) in enumerate(zip(vectors.double(), ids, strict=True)):
        for column, k in enumerate(allowed):
            d = table[k].double() - table[at].double()
            if d.norm() > 0 and r.norm() > 0:
                found[row, column] = r @ d / r.norm() / d.norm()
    return found


@pytest.mark.parametrize("block", [1, 100, 1 << 20])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_the_whole_vocabulary_is_searched_as_by_brute_force(block: int, offset: float) -> None:
    table = torch.randn(40, 8, dtype=torch.float64) + offset
    table[7] = table[5]  # two words of one vector
    table[9] = table[6] + 1e-3 * torch.randn(8, dtype=torch.float64)  # and two that are very near
    ids, allowed = torch.randint(0, 40, (12,)), torch.arange(3, 40)
    ids[0], ids[1], ids[2] = 5, 6, 9
    vectors = torch.randn(12, 8)
    vectors[4] = 0
    cosines, words = pointed_at(vectors, ids, table, allowed=allowed, top=4, block=block)
    wanted = brute_force(vectors, ids, table, allowed)
    torch.testing.assert_close(cosines, wanted.topk(4).values, atol=1e-7, rtol=1e-5)
    torch.testing.assert_close(wanted.gather(1, words - 3), cosines, atol=1e-7, rtol=1e-5)
    assert pointed_at(vectors[:0], ids[:0], table, allowed=allowed, top=99)[1].shape == (0, 37)


@pytest.mark.parametrize("method", ["advt", "vat", "random", "random-kl"])
def test_free_methods_name_words_of_the_whole_vocabulary(method: str) -> None:
    run = a_run(k=2, min_count=6)  # candidates are for the methods toward words
    (found,) = explain(run, [Example("the cast zyx good", "good")], method=method, top=99)
    named = {pull.toward for place in found.places for pull in place.pulls}
    assert {"ending", "and"} <= named
    assert not named & {*SPECIALS}
    for place in found.places:
        assert place.word not in {pull.toward for pull in place.pulls}
        cosines = [pull.cosine for pull in place.pulls]
        assert cosines == sorted(cosines, reverse=True)
        assert all(pull.cosine > 0 < pull.strength for pull in place.pulls)


def test_a_free_method_goes_as_far_as_its_perturbation_does() -> None:
    run = a_run()
    (found,) = explain(run, [Example("the cast was good", "good")], method="advt", top=99)
    g, here = gradient(run, "the cast was good".split(), torch.tensor([1]))
    r = 2.0 * g / g.norm()
    table = run.model.words.table.weight.detach()
    for place, vector, at in zip(found.places, r, here, strict=False):
        for pull in place.pulls:
            unit = F.normalize(table[run.vocabulary[pull.toward]] - at, dim=-1)
            assert pull.strength == pytest.approx(float(unit @ vector), rel=1e-4)
            assert pull.cosine == pytest.approx(float(unit @ vector / vector.norm()), rel=1e-4)


@pytest.mark.parametrize("task", ["classify", "tag"])
@pytest.mark.parametrize("method", RECIPES)
def test_alone_as_in_a_batch(method: str, task: str) -> None:
    run = a_run(task=task, k=3)
    examples = [Example(text) for text in TEXTS]
    together = explain(run, examples, method=method)
    for example, found in zip(examples, together, strict=True):
        (alone,) = explain(run, [example], method=method)
        assert [[p.toward for p in place.pulls] for place in alone.places] == [
            [p.toward for p in place.pulls] for place in found.places
        ]
        for one, other in zip(pulls_of(alone), pulls_of(found), strict=True):
            assert one == pytest.approx(other, rel=1e-3)
        assert replace(alone, places=(), probabilities={}) == replace(found, places=(), probabilities={})
    assert together == explain(run, examples, method=method)  # and the same each time


@pytest.mark.parametrize("method", ["iadvt", "ivat", "advt"])
@pytest.mark.parametrize("task", ["classify", "tag"])
def test_an_explanation_says_what_predict_says(task: str, method: str) -> None:
    run = a_run(task=task)
    for found, said in zip(
        explain(run, [Example(text) for text in TEXTS], method=method), run.predict(TEXTS), strict=True
    ):
        if task == "classify":
            assert found.predicted == said.label
            assert found.probabilities == pytest.approx(said.probabilities, abs=2e-6)
            assert found.label == (None if method == "ivat" else said.label)
        else:
            assert [place.word for place in found.places] == [token.token for token in said.tokens]
            for place, token in zip(found.places, said.tokens, strict=True):
                assert place.label == token.label
                assert place.probability == pytest.approx(token.probabilities[token.label], abs=2e-6)
            assert (found.label, found.predicted, found.probabilities) == (None, None, {})
        assert not found.given
        assert (found.method, found.model, found.task) == (method, "mine", task)


@pytest.mark.parametrize(
    ("method", "passes"), [("iadvt", 1), ("random", 1), ("ivat", 2), ("vat", 2), ("ivat-rand", 1)]
)
def test_no_pass_is_taken_that_explains_nothing(method: str, passes: int) -> None:
    """One over the text itself, for KL one over the text a small step away; none over the perturbed text."""
    run, seen = a_run(), []
    run.model.register_forward_hook(lambda *_: seen.append(1))
    explain(run, [Example("the cast was good")], method=method)
    assert len(seen) == passes


@pytest.mark.parametrize("method", ["iadvt", "ivat", "advt", "vat"])
def test_a_model_that_is_all_but_sure_still_says_what_would_move_it(method: str) -> None:
    run = a_run()
    with torch.no_grad():
        run.model.head[-1].bias.copy_(torch.tensor([25.0, 0.0]))  # type: ignore[union-attr]
    (found,) = explain(run, [Example("the cast was good")], method=method, top=99)
    assert found.probabilities == {"bad": 1.0, "good": 0.0}
    run.model.double()
    (exact,) = explain(run, [Example("the cast was good")], method=method, top=99)
    for one, other in zip(pulls_of(found), pulls_of(exact), strict=True):
        assert one == pytest.approx(other, rel=1e-3)
    assert max(map(len, pulls_of(found))) > 0


TAGGED = "well the cast was good".split()


@pytest.mark.parametrize("focus", [None, 0, 3])
def test_a_taggers_focus_raises_the_loss_of_one_token(focus: int | None) -> None:
    run = a_run(task="tag")
    example = Example(" ".join(TAGGED), tokens=tuple(TAGGED), tags=("c", "i", "c", "i", "c"))
    (found,) = explain(run, [example], top=99, focus=focus)
    assert pulls_of(found) == positive(run, alphas(run, TAGGED, torch.tensor([0, 1, 0, 1, 0]), focus))
    assert found.given
    assert found.focus == focus
    assert found.label == (None if focus is None else "ci"[focus == 3])


def test_the_true_tag_of_the_focus_may_be_all_that_is_known() -> None:
    run = a_run(task="tag")
    text = " ".join(TAGGED)
    for number, tag in enumerate(run.labels):
        (found,) = explain(run, [Example(text, tag)], top=99, focus=2)
        assert pulls_of(found) == positive(run, alphas(run, TAGGED, torch.full((5,), number), 2))
        assert (found.label, found.given) == (tag, True)
    (predicted,) = explain(run, [Example(text)], top=99, focus=2)
    assert (predicted.label, predicted.given) == (predicted.places[2].label, False)
    with pytest.raises(DataError, match="a tagger labels each word, but got one label, 'c': give the focus"):
        explain(run, [Example(text, "c")])


def test_focus_counts_for_the_divergence_too() -> None:
    run = a_run(task="tag", k=3)
    text = " ".join(TAGGED)
    whole, first, last = (explain(run, [Example(text)], method="ivat", focus=focus)[0] for focus in (None, 0, 4))
    assert pulls_of(first) != pulls_of(whole) != pulls_of(last) != pulls_of(first)
    assert {each.label for each in (whole, first, last)} == {None}  # a divergence has no label
    (shorter,) = explain(run, [Example("well the cast")], method="ivat", focus=0)
    both = explain(run, [Example(text), Example("well the cast")], method="ivat", focus=0)
    for one, other in zip((first, shorter), both, strict=True):
        for here, there in zip(pulls_of(one), pulls_of(other), strict=True):
            assert here == pytest.approx(there, rel=1e-3)


def test_what_cannot_be_asked_is_refused() -> None:
    run, tagger = a_run(), a_run(task="tag")
    good = Example("the cast was good", "good")
    with pytest.raises(ValueError, match="focus is for taggers"):
        explain(run, [good], focus=0)
    for focus in (-1, 4, 99):
        with pytest.raises(ValueError, match=f"a word of text 1; got {focus}, but it has positions 0 to 3"):
            explain(tagger, [Example(good.text)], focus=focus)
    with pytest.raises(ValueError, match="a word of text 2; got 1, but it has positions 0 to 0"):
        explain(tagger, [Example("the cast"), Example("was")], focus=1)
    with pytest.raises(ValueError, match="text 1; got 0, but it has no words"):
        explain(tagger, [Example(" ")], focus=0)
    with pytest.raises(ValueError, match="top must be 1 or more, but is 0"):
        explain(run, [good], top=0)
    with pytest.raises(DataError, match=r"a label that the model knows \(bad, good\); got 'fine'"):
        explain(run, [Example("the cast", "fine")])
    with pytest.raises(DataError, match="a tag for each of 2 tokens; got 3"):
        explain(tagger, [Example("the cast", tags=("c", "c", "i"))])
    for method in ("baseline", "iadvt+ivat"):
        with pytest.raises(ValueError, match=r"expected one method \(random, .*; got '"):
            explain(run, [good], method=method)
    with pytest.raises(ValueError, match="unknown method 'mine'"):
        explain(run, [good], method="mine")


@pytest.mark.parametrize("method", ["iadvt", "ivat", "advt"])
@pytest.mark.parametrize("task", ["classify", "tag"])
def test_a_text_without_words_has_no_places(task: str, method: str) -> None:
    run = a_run(task=task, unknown="drop")
    texts = [Example(""), Example("the cast was good"), Example("  ")]
    first, second, third = explain(run, texts, method=method)
    for empty in (first, third):
        assert (empty.places, empty.predicted, empty.probabilities, empty.strongest) == ((), None, {}, None)
    assert [place.word for place in second.places] == ["the", "cast", "was", "good"]
    assert explain(run, [], method=method) == []
    if task == "classify":
        (dropped,) = explain(run, [Example("zyx wvu", "bad")], method=method)  # all words left out
        assert dropped.places == ()
        assert dropped.predicted == run.predict(["zyx wvu"])[0].label


def hooks(model: nn.Module) -> int:
    return sum(len(module._forward_hooks) for module in model.modules())


@pytest.mark.parametrize("method", ["iadvt", "ivat", "advt", "vat"])
@pytest.mark.parametrize("training", [True, False])
def test_a_run_is_left_as_it_was(method: str, training: bool) -> None:
    run = a_run()
    run.model.train(training)
    before = {name: tensor.clone() for name, tensor in run.model.state_dict().items()}
    with torch.no_grad():
        first = explain(run, [Example("the cast was good", "good")], method=method)
    assert first == explain(run, [Example("the cast was good", "good")], method=method)  # no dropout
    assert run.model.training == training
    assert hooks(run.model) == 0
    assert all(torch.equal(before[name], tensor) for name, tensor in run.model.state_dict().items())
    assert all(parameter.grad is None for parameter in run.model.parameters())


def test_a_run_is_left_as_it_was_after_an_error() -> None:
    run = a_run()
    run.model.train()

    def break_down(*_: Any) -> None:
        raise ZeroDivisionError

    handle = run.model.head.register_forward_pre_hook(break_down)
    with pytest.raises(ZeroDivisionError):
        explain(run, [Example("the cast was good", "good")])
    handle.remove()
    assert run.model.training
    assert hooks(run.model) == 0


def test_a_word_is_pulled_as_its_strongest_piece_is() -> None:
    """The first of equal ones; pieces of no word are left out."""
    word = np.array([-1, 0, 1, 1, 1, 2, 2, -1])
    row = Row(np.arange(8), word, np.array([1, 2, 5]), np.arange(8))
    strengths = np.array([9.0, -1.0, 0.5, 2.0, 2.0, 1.0, 0.0, 9.0, 0.0], dtype=np.float32)  # the last is padding
    assert _strongest(row, strengths) == [1, 3, 5]


def test_texts_are_explained_with_what_was_made_of_the_same_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Explainer] = []

    class CountedWords(Explainer):
        def __init__(self, *given: Any, **how: Any) -> None:
            super().__init__(*given, **how)
            made.append(self)

    monkeypatch.setattr(explainer, "Explainer", CountedWords)
    run = a_run(k=3)
    monkeypatch.setitem(RECIPES, "mine", RECIPES["iadvt"])
    asked: list[dict[str, Any]] = [{}, {"top": 1}, {"words": "any"}, {"method": "mine"}, {"method": "advt"}]
    for count, how in enumerate(asked, start=1):
        for _ in range(2):
            assert explain(run, TEXTS, **how) == Explainer(run, **how)(TEXTS)
        assert len(made) == count
    monkeypatch.setitem(RECIPES, "mine", RECIPES["iadvt-best"])  # another one by the same name
    assert [e.places for e in explain(run, TEXTS, method="mine")] == [
        e.places for e in explain(run, TEXTS, method="iadvt-best")
    ]
    count = len(made)
    assert count == len(asked) + 2
    with torch.no_grad():
        run.model.head[-1].weight.neg_()
        run.model.words.table.weight.mul_(torch.rand(len(run.vocabulary), 1))
    assert explain(run, TEXTS) == Explainer(run)(TEXTS)
    assert len(made) == count + 1


def test_places_are_made_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0

    def counted(*values: Any) -> Place:
        nonlocal made
        made += 1
        return Place(*values)

    monkeypatch.setattr("wordward.explain.places.Place", counted)
    first, second = explain(a_run(k=3), TEXTS[:2])
    assert made == 0
    assert [place.word for place in first.places] == TEXTS[0].split()
    assert first.places is first.places
    assert made == len(first.places)
    assert pickle.loads(pickle.dumps(second)) == second == from_json(to_json(second))
    assert replace(second, label="bad").places == second.places
    assert made == len(first.places) + len(second.places)
    with pytest.raises(AttributeError, match="no 'place'"):
        first.place  # noqa: B018
