"""Words of several pieces are pulled as wholes, toward words that fit the place of the whole word."""

from dataclasses import replace
from functools import partial
from itertools import chain, product
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hf_tiny import bert, sentence_pieces, word_pieces

from wordward.attack.attacker import attack, cases_of
from wordward.attack.cases import State
from wordward.attack.goal import Labels as LabelGoal
from wordward.attack.guide import Guide
from wordward.attack.half_precision import SearchModel
from wordward.config.attack import AttackSettings
from wordward.datasets import Example
from wordward.explain.explainer import Explainer
from wordward.explain.kin import Ridge
from wordward.explain.labels import Labels
from wordward.explain.pulls import gradient_of
from wordward.explain.whole_words import Whole, WholeWords, whole_pulls, with_wholes
from wordward.explain.word_kinds import Fitting
from wordward.hf.explainer import open_model
from wordward.hf.trainer import AdversarialSettings
from wordward.perturbation.objective import label_loss
from wordward.runs.run import Run

TEXT = "the film was empty and warm"  # all are one piece each but for "empty", which is five


@pytest.fixture(scope="module")
def run() -> Run:
    tokenizer = word_pieces()
    torch.manual_seed(0)
    model = bert("sequence", len(tokenizer), id2label={0: "bad", 1: "good"}).double().eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    return open_model(model, tokenizer, AdversarialSettings(k=4), tagging=False)


def test_a_strength_is_the_slope_of_the_loss_if_all_pieces_move_alike(run: Run) -> None:
    """By differences of the loss, for a word of several pieces and one of a single piece in the same text."""
    adversary, tap = run.adversary("iadvt"), run.adversary("iadvt").tap
    row = run.read(Example(TEXT)).row
    batch = run.corpus([row.ids], [1]).batch(np.array([0]), run.device)
    (pieces,) = np.nonzero(row.word == 3)
    assert len(pieces) == 5
    candidates = torch.tensor([run.vocabulary.words.index(word) for word in ("dull", "cold", "story", "well")])
    gradient, _ = gradient_of(adversary, lambda: run.model(batch.ids, batch.mask), batch, None)
    assert gradient is not None
    found = adversary.perturb(batch.ids, gradient, batch.mask)
    _, (words, strengths, cosines) = whole_pulls(
        adversary, batch.ids, gradient, found, [(0, Whole(3, pieces, candidates))]
    )

    def slope(places: np.ndarray, candidate: int) -> float:
        """Of the loss along a direction of length 1 that moves the pieces from their middle toward a word."""
        direction = F.normalize(tap.table()[candidate] - tap.words(batch.ids)[0, places].mean(0), dim=0)
        step = torch.zeros(*batch.ids.shape, tap.dim, dtype=torch.float64)
        step[0, places] = 1e-5 * direction / len(places) ** 0.5
        ends = (tap.run(lambda: run.model(batch.ids, batch.mask), sign * step).logits.detach() for sign in (1, -1))
        up, down = (float(label_loss(logits, torch.tensor([1]))) for logits in ends)
        return (up - down) / 2e-5

    single = row.first[5:6]  # "warm"
    assert found.candidates is not None
    scale = float(found.strengths[0, single[0], 0]) / slope(single, int(found.candidates[0, single[0], 0]))
    slopes = {int(word): scale * slope(pieces, int(word)) for word in candidates}
    assert words[0].tolist() == sorted(slopes, key=lambda word: -slopes[word])
    torch.testing.assert_close(
        strengths[0], strengths.new_tensor(sorted(slopes.values(), reverse=True)), rtol=1e-5, atol=1e-9
    )
    units = F.normalize(tap.table()[words[0]] - tap.words(batch.ids)[0, pieces].mean(0), dim=-1)
    r = (strengths[0].unsqueeze(-1) * units).sum(0)
    torch.testing.assert_close(cosines[0], units @ F.normalize(r, dim=0))


def pulls(run: Run, texts: list[str], method: str = "iadvt") -> list[list[list[tuple[str, float]]]]:
    """Of each word of each text what pulls it, whatever is shown of it."""
    explainer, readings = Explainer(run, method, forms=True), run.read_all(run.examples(texts))
    labels: list[Labels] = [["good"]] * len(texts)
    found: list[list[list[tuple[str, float]]]] = [[] for _ in texts]
    for of_text in explainer.pulls(readings, labels, top=4):
        row = readings[of_text.number].row
        towards, strengths, _ = of_text.of_words(row)
        found[of_text.number] = [
            [(run.vocabulary.word(to), strength) for to, strength in zip(*each, strict=True) if to != own]
            for own, *each in zip(row.ids[row.first].tolist(), towards, strengths, strict=True)
        ]
    return found


def test_they_are_found_batch_by_batch_while_a_gradient_may_still_be_computed(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def noted(name: str, work: Any) -> Any:
        def wrapped(*args: Any, **more: Any) -> Any:
            done.append(name)
            return work(*args, **more)

        return wrapped

    monkeypatch.setattr("wordward.explain.pulls.TEXTS", 1)
    monkeypatch.setattr("wordward.explain.pulls.gradient_of", noted("gradient", gradient_of))
    monkeypatch.setattr(WholeWords, "__call__", noted("words", WholeWords.__call__))
    together = pulls(run, [TEXT, "our music was empty, moving and tired"])
    assert done == ["gradient", "words"] * 2
    assert together[0] == pulls(run, [TEXT])[0]


@pytest.mark.parametrize("method", ["iadvt", "ivat"])
def test_only_words_that_fit_the_whole_word_pull_it(run: Run, method: str) -> None:
    found = pulls(run, [TEXT, "our music was empty, moving and tired"], method)
    (empty, other), (moving, tired) = (found[0][3], found[1][3]), (found[1][5], found[1][7])
    assert empty
    assert other
    adjectives = {"warm", "funny", "bright", "lovely", "dull", "cold", "clumsy", "bland"}
    things = {"film", "story", "ending", "script", "cast", "music", "well"}  # by their form these may be either
    assert {word for word, _ in (*empty, *other)} <= adjectives | things
    assert [word for word, _ in moving] == ["ending"]  # the only other word in -ing
    assert {word for word, _ in tired} <= {"said"}  # and of the past there is one


def test_words_alone_are_pulled_as_in_a_batch(run: Run) -> None:
    texts = [TEXT, "empty", "their tired script was dull and empty and the cast was cold", "warm"]
    together = pulls(run, texts)
    for text, found in zip(texts, together, strict=True):
        (alone,) = pulls(run, [text])
        assert [[word for word, _ in of] for of in alone] == [[word for word, _ in of] for of in found]
        for (_, one), (_, other) in zip(chain(*alone), chain(*found), strict=True):
            assert one == pytest.approx(other, rel=1e-5)


def test_methods_that_move_one_word_or_by_chance_pull_no_whole_word(run: Run) -> None:
    text = run.read(Example(TEXT))
    assert Explainer(run).places.whole(text).tolist() == [True] * 6
    for method in ("iadvt-best", "iadvt-rand"):
        assert Explainer(run, method).places.whole(text).tolist() == [True] * 3 + [False] + [True] * 2


def test_more_words_fit_as_they_would_in_the_vocabulary() -> None:
    known, more = (
        ("love", "loves", "walked", "walks", "Good", "bad", "the", "this"),
        ("loved", "Bad", "a", "walking", "talked"),
    )
    real = frozenset(word.lower() for word in (*known, *more))
    fits, whole = Fitting(known, real), Fitting((*known, *more), real)
    joined = fits.joined(fits.of_others(more))
    for word, other in product(range(len(known) + len(more)), range(len(known))):
        pair = torch.tensor([word]), torch.tensor([other])
        assert joined(*pair) == whole(*pair)


def test_kin_foretell_words_of_several_pieces(run: Run) -> None:
    """A word that no table has speaks for what the words do that the middle of its pieces is near."""
    rule = Explainer(run).sensible
    assert rule is not None
    reading = run.read(Example(TEXT))
    sense = rule.of(reading.row, 1)
    (pieces,) = np.nonzero(reading.row.word == 3)
    middle = run.table()[torch.from_numpy(reading.row.ids[pieces])].float().mean(0)
    torch.testing.assert_close(sense.vectors[3].float(), middle)
    warm = run.vocabulary.words.index("warm")
    torch.testing.assert_close(sense.speaks[5], rule.both[warm])
    torch.testing.assert_close(sense.speaks[3], rule._kin.of(middle.unsqueeze(0))[0].to(sense.speaks))
    assert sense.speaks[3].abs().max() > 0
    assert not sense.beyond[3].any()  # it is all from kin


def test_a_regression_foretells_what_it_was_not_given() -> None:
    vectors = torch.randn(40, 5, generator=torch.Generator().manual_seed(2))
    values, variance = vectors[:, :2] * 2, torch.full((40,), 0.01)
    variance[30:] = torch.inf
    ridge = Ridge(vectors, values, variance)
    torch.testing.assert_close(ridge(vectors[30:]).float(), ridge.fitted[30:])
    without = Ridge(vectors[:30], values[:30], variance[:30])
    torch.testing.assert_close(without(vectors[30:]), ridge(vectors[30:]))


@pytest.mark.parametrize("rank", ["gain", "strength"])
def test_attacks_swap_words_of_several_pieces_for_words_that_fit(run: Run, rank: Any) -> None:
    """If swaps are ranked by what they gain; a perturbation's own strengths are those of pieces."""
    guide = Guide(SearchModel(run), AttackSettings(rank=rank), None)
    texts = [TEXT, "our music was empty, moving and tired"]
    readings = run.read_all(run.examples(texts))
    whole = rank == "gain"
    assert guide.open(readings[0]).tolist() == [True] * 3 + [whole] + [True] * 2
    predictions = run.predict_readings(readings)
    cases = list(
        cases_of(run.examples(texts), readings, predictions, guide.settings, LabelGoal(run, None), guide).values()
    )
    proposed, *_ = guide([State(case.row) for case in cases], cases)
    swaps = [
        (case.reading.written(position), run.vocabulary.word(word))
        for case, of_text in zip(cases, proposed, strict=True)
        for position, word in of_text
    ]
    assert any(word == "empty" for word, _ in swaps) == whole
    of_moving = {toward for word, toward in swaps if word == "moving"}
    assert of_moving <= {"ending"}
    for found in attack(run, run.examples(texts), guide.settings):
        for change in found.changes:
            assert not change.word.endswith("ing") or change.toward.endswith("ing")


def test_a_gain_is_the_rise_in_loss_if_all_pieces_move_there(run: Run) -> None:
    """By differences of the loss; the gains of other words, and where they may go, stay as they were."""
    adversary = run.adversary("iadvt")
    row = run.read(Example(TEXT)).row
    batch = run.corpus([row.ids], [1]).batch(np.array([0]), run.device)
    (pieces,) = np.nonzero(row.word == 3)
    toward = torch.tensor([run.vocabulary.words.index(word) for word in ("dull", "cold", "story", "well")])
    gradient, _ = gradient_of(adversary, lambda: run.model(batch.ids, batch.mask), batch, None)
    assert gradient is not None
    given = torch.zeros(*batch.ids.shape, 4, dtype=torch.long), torch.ones(*batch.ids.shape, 4), batch.mask
    words = [(0, Whole(3, pieces, toward))]
    candidates, gains, open = with_wholes(
        adversary, batch.ids, gradient, words, given[0], given[1].double(), given[2]
    )
    for number, word in enumerate(toward):
        move = adversary.tap.words(word) - adversary.tap.words(batch.ids[0, pieces]).mean(0)
        step = torch.zeros(*batch.ids.shape, adversary.tap.dim, dtype=torch.float64)
        step[0, pieces] = 1e-5 * move
        forward = partial(run.model, batch.ids, batch.mask)
        ends = [adversary.tap.run(forward, sign * step).logits.detach() for sign in (1, -1)]
        up, down = (float(label_loss(logits, torch.tensor([1]))) for logits in ends)
        assert float(gains[0, pieces[0], number]) == pytest.approx((up - down) / 2e-5, rel=1e-5)
    assert candidates[0, pieces[0]].tolist() == toward.tolist()
    others = np.setdiff1d(np.arange(len(row.ids)), pieces)
    assert (gains[0, others] == 1).all()
    assert not candidates[0, others].any()
    assert not open[0, pieces[1:]].any()
    assert open[0, [*others, pieces[0]]].tolist() == batch.mask[0, [*others, pieces[0]]].tolist()
    assert not given[0].any()  # what was given is left alone
    assert given[2].all()


def test_one_word_that_fits_has_the_whole_direction(run: Run) -> None:
    """What fills up the candidates has no part in it."""
    readings = run.read_all(run.examples(["our music was tired"]))
    labels: list[Labels] = [["good"]]
    (found,) = Explainer(run, forms=True).pulls(readings, labels, top=4)
    towards, strengths, cosines = found.of_words(readings[0].row)
    said = [at for at, word in enumerate(towards[3]) if run.vocabulary.word(word) == "said"]
    assert len(said) == 1
    assert abs(cosines[3][said[0]]) == pytest.approx(1.0)
    assert [strength for at, strength in enumerate(strengths[3]) if at not in said] == [0.0] * 3


def test_in_a_text_that_is_cut_words_of_several_pieces_stay(run: Run) -> None:
    """One piece in their place would let the model read further than it did."""
    long = run.read(Example(" ".join(["the film was empty"] * 30)))
    assert long.unread
    for open in (Explainer(run).places.whole(long), Guide(SearchModel(run), AttackSettings(), None).open(long)):
        assert (open == long.row.single).all()
    assert not long.row.single.all()


def test_words_are_spelt_as_the_run_reads_them() -> None:
    """The first piece of a word need not tell: it may be blank, or a part of a character."""
    tokenizer = sentence_pieces()
    model = bert("sequence", len(tokenizer), id2label={0: "bad", 1: "good"}).eval()
    other = open_model(model, tokenizer, AdversarialSettings(k=2), tagging=False)
    text = other.read(Example("Camera film was Empty"))
    assert not other.text.lowercase
    found = WholeWords(other, None, None)._words(text)  # type: ignore[arg-type]
    assert {"Camera", "Empty"} <= {word for _, _, (word, _) in found} <= {"Camera", "film", "was", "Empty"}


def test_strengths_that_are_normalised_word_by_word_leave_out_whole_words(run: Run) -> None:
    config = replace(run.config, perturbation=replace(run.config.perturbation, normalization="authors"))
    explainer = Explainer(replace(run, config=config))
    assert explainer.places.whole(run.read(Example(TEXT))).tolist() == [True] * 3 + [False] + [True] * 2
