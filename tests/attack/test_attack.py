"""Adversarial texts: the search against brute force, limits that hold, flips verified from the text itself."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from reviews import BLAME, PRAISE, reviews, write_csv
from torch import nn

from wordward.attack import attacker
from wordward.attack.attacked import Attacked
from wordward.attack.attacker import attack, cases_of
from wordward.attack.beam import Search
from wordward.attack.cases import Case, Replacement, State, Target
from wordward.attack.goal_choice import goal_of
from wordward.attack.guide import Guide, gains
from wordward.attack.half_precision import SearchModel
from wordward.attack.stopwords import STOP_WORDS
from wordward.config.attack import AttackSettings
from wordward.config.settings import (
    MethodSettings,
    ModelSettings,
    TextSettings,
    TrainConfig,
    TrainingSettings,
)
from wordward.datasets import DataError, Example
from wordward.explain.explainer import explain
from wordward.explain.swaps import apply
from wordward.models import Classifier
from wordward.perturbation.ascent import Ascender
from wordward.runs.opening import load_run
from wordward.runs.run import Run
from wordward.runs.word_run import WordRun
from wordward.support.device import searching
from wordward.text.corpus import Corpus
from wordward.text.vocabulary import EOS, SPECIALS, Vocabulary
from wordward.train.training import train

SENTENCE = "the cast was good and the ending was dull , they said".split()
MODEL = ModelSettings(dim=6, hidden=5, head=4)


def untrained(*, k: int | None = None, seed: int = 0, **text: Any) -> Run:
    """A run in double precision whose model has learnt nothing yet."""
    vocabulary = Vocabulary.build([SENTENCE] * 3)
    settings = TrainConfig(
        task="classify",
        text=TextSettings(**text),
        model=MODEL,
        perturbation=MethodSettings(epsilon=1.0, k=k),
        training=TrainingSettings(min_candidate_count=1),
    )
    torch.manual_seed(seed)
    model = Classifier(len(vocabulary), 2, MODEL).double().eval()
    return WordRun(Path("nowhere"), settings, vocabulary, ("bad", "good"), model, torch.device("cpu"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A classifier that tells praise from blame."""
    folder = tmp_path_factory.mktemp("attack")
    write_csv(folder / "reviews.csv", reviews(240))
    config = TrainConfig(
        method="iadvt",
        model=ModelSettings(dim=12, hidden=12, head=6, word_dropout=0.1, head_dropout=0.0),
        perturbation=MethodSettings(epsilon=1.0, k=5),
        training=TrainingSettings(epochs=6, learning_rate=0.02, device="cpu"),
    )
    train(
        replace(config, data=replace(config.data, train=str(folder / "reviews.csv"))),
        folder / "run",
        quiet=True,
    )
    return load_run(folder / "run", device="cpu")


TEXTS = reviews(24, seed=5)


def test_gains_are_the_slopes_of_the_loss_toward_each_word() -> None:
    """Against central differences in double precision, for every word and every candidate."""
    for k in (None, 4):
        run = untrained(k=k)
        guide = Guide(SearchModel(run), AttackSettings(rank="gain"), None)
        row = run.encode([Example("the ending was good")], labelled=False).rows[0]
        batch = Corpus([row], [1]).batch(np.array([0]), run.device)
        found, (gradient, _) = guide.perturb(batch), guide.gradient(batch)
        assert found.candidates is not None
        assert gradient is not None
        got = gains(guide.adversary, batch.ids, found.candidates, gradient)
        table, step = run.model.words.table.weight.detach(), 1e-5

        def loss(shift: torch.Tensor, run: Run = run, row: np.ndarray = row) -> float:
            vectors = run.model.words.table(torch.tensor(row)[None].long()) + shift
            states, _ = run.model.lstm(vectors)
            logits = run.model.head(states[:, -1])
            return float(nn.functional.cross_entropy(logits, torch.tensor([1])).detach())

        for at in range(len(row)):
            for number, word in enumerate(found.candidates[0, at].tolist()):
                shift = torch.zeros(1, len(row), MODEL.dim, dtype=torch.float64)
                shift[0, at] = step * (table[word] - table[row[at]])
                slope = (loss(shift) - loss(-shift)) / (2 * step)
                assert float(got[0, at, number]) == pytest.approx(slope, abs=1e-8)


def test_swaps_are_proposed_in_the_order_of_their_gain() -> None:
    run = untrained()
    settings = AttackSettings(rescore=50)
    goal = goal_of(run, settings)
    example = Example("the cast was dull")
    target = goal.target(example, run.predict([example.text])[0])
    assert target is not None
    row = run.encode([example], labelled=False).rows[0]
    guide = Guide(SearchModel(run), settings, None)
    batch = Corpus([row], [target.lose]).batch(np.array([0]), run.device)  # type: ignore[list-item]
    found, (gradient, _) = guide.perturb(batch), guide.gradient(batch)
    assert found.candidates is not None
    assert gradient is not None
    table = run.model.words.table.weight.detach()
    wanted = {
        (at, word): float(gradient[0, at] @ (table[word] - table[row[at]]))
        for at in range(4)
        for word in range(len(SPECIALS), len(run.vocabulary))
        if word != row[at] and run.vocabulary.word(word) != ","  # "words" does not read a comma
    }
    order = [swap for swap, gain in sorted(wanted.items(), key=lambda item: -item[1]) if gain > 0]
    case = case_of(run, example.text, settings)
    ((swaps,), (margin,), (spent,)) = guide([State(case.row)], [case])
    assert (swaps, spent) == (order, 1)
    probabilities = run.predict([example.text])[0].probabilities.values()
    assert margin == pytest.approx(abs(np.diff(np.log(list(probabilities)))[0]), abs=1e-4)


@pytest.mark.parametrize("method", ["iadvt", "ivat"])
def test_an_attack_by_gain_does_not_reckon_how_far_r_goes(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = untrained()
    usual = replace(run.config.perturbation, epsilon=None, epsilon_factor=2.0, k=4)
    run, asked = replace(run, config=replace(run.config, perturbation=usual)), []
    reckoned = Ascender._usual_epsilon
    monkeypatch.setattr(Ascender, "_usual_epsilon", lambda self: (asked.append(self), reckoned(self))[1])
    by_gain = run.attack(["the ending was good"], AttackSettings(method=method))
    assert asked == []
    given = replace(run, config=replace(run.config, perturbation=replace(usual, epsilon=0.3, epsilon_factor=1.0)))
    assert by_gain == given.attack(["the ending was good"], AttackSettings(method=method))
    run.attack(["the ending was good"], AttackSettings(method=method, rank="strength"))
    assert asked


def words_in(run: Run, text: str) -> list[str]:
    return [token.text for token in run.read(Example(text)).tokens]


def case_of(run: Run, text: str, settings: AttackSettings) -> Case:
    example = Example(text)
    return cases_of([example], [run.read(example)], run.predict([text]), settings, goal_of(run, settings))[0]


def test_a_share_of_the_words_is_not_cut_by_rounding(run: Run) -> None:
    assert 0.29 * 100 < 29
    settings = AttackSettings(max_swaps=100, max_share=0.29)
    assert case_of(run, " ".join(["film"] * 100), settings).most == 29


def test_protected_words_are_gathered_once_for_many_texts(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("wordward.attack.cases.fold", lambda word: (asked.append(word), word)[1])
    run.attack(["the cast", "a film", "good"], AttackSettings(keep=("zebra",), max_swaps=1))
    assert asked.count("zebra") == 1


@pytest.mark.parametrize("method", ["iadvt", "advt", "ivat"])
def test_rescore_1_is_the_papers_loop(run: Run, method: str) -> None:
    """By hand: the strongest pull of the explanation goes in, the model predicts again, up to four times."""
    flipped = 0
    for attacked in attack(run, TEXTS[:10], AttackSettings(method=method, rescore=1)):
        text, label, swapped = attacked.text, attacked.before, set()
        while attacked.outcome != "wrong" and len(swapped) < 4 and run.predict([text])[0].label == label:
            (explained,) = explain(run, [Example(text, label)], method=method, top=1, words="any")
            free = [place for place in explained.places if place.pulls and place.position not in swapped]
            if not free:
                break
            strongest = max(free, key=lambda place: place.pulls[0].strength)
            swapped.add(strongest.position)
            text = apply(text, [(strongest, strongest.pulls[0].toward)], lowercase=run.text.lowercase)
        assert attacked.adversarial == text
        assert {change.position for change in attacked.changes} == swapped
        flipped += attacked.flipped
    assert flipped > 2 or method == "ivat"


def outcome(attacked: Attacked) -> tuple[Any, ...]:
    return attacked.adversarial, attacked.outcome, attacked.changes, attacked.passes, attacked.words


SETTINGS = [
    AttackSettings(),
    AttackSettings(rescore=1),
    AttackSettings(beam=3, max_swaps=3),
    AttackSettings(method="vat"),
    AttackSettings(method="ivat", rescore=3),
    AttackSettings(method="iadvt-rand"),
    AttackSettings(sense="kept"),
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: f"{settings.method}-{settings.rescore}")
def test_many_texts_as_each_alone(run: Run, settings: AttackSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wordward.attack.attacker.CHUNK", 7)
    examples = [*TEXTS[:9], Example(""), Example("the"), *TEXTS[9:14], Example("warm " * 40, "good")]
    together = list(attack(run, examples, settings))
    assert [each.text for each in together] == [example.text for example in examples]
    alone = [next(attack(run, [example], settings)) for example in examples]
    assert list(map(outcome, together)) == list(map(outcome, alone))
    assert list(map(outcome, together)) == list(map(outcome, attack(run, examples, settings)))


def test_every_flip_is_what_predict_says_of_the_text(run: Run) -> None:
    results = list(attack(run, TEXTS))
    assert sum(each.flipped for each in results) >= 10
    for each in results:
        before, after = run.predict([each.text, each.adversarial])
        assert each.flipped == (before.label == each.label != after.label)
        assert (each.before, each.after) == (before.label, after.label)
        assert each.probability_before == pytest.approx(before.probabilities[each.before], abs=2e-6)
        assert each.probability_after == pytest.approx(after.probabilities[each.before], abs=2e-6)
        words, swapped = words_in(run, each.text), words_in(run, each.adversarial)
        assert len(words) == each.words
        different = [at for at, (old, new) in enumerate(zip(words, swapped, strict=True)) if old != new]
        assert different == [change.position for change in each.changes]
        for change in each.changes:
            assert each.text[change.start : change.end] == change.word == words[change.position]
            assert swapped[change.position] == change.toward


def test_a_flip_that_the_text_does_not_show_is_none(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search is made to believe that every swap flips; the outcome is what the text is predicted as."""
    read = Run.logits
    monkeypatch.setattr(Run, "logits", lambda *given: [-logits for logits in read(*given)])
    results = [each for each in attack(run, TEXTS, AttackSettings(rescore=1)) if each.changes]
    assert {each.outcome for each in results} == {"flipped", "kept"}
    for each in results:
        assert each.flipped == (run.predict([each.adversarial])[0].label != each.before)


def test_swaps_are_tried_until_one_flips_and_no_further(run: Run) -> None:
    eager, one = (
        list(attack(run, TEXTS, AttackSettings(max_swaps=most, rescore=rescore)))
        for most, rescore in ((4, 20), (1, 20))
    )
    assert all(len(each.changes) <= 1 for each in one)
    for many, single in zip(eager, one, strict=True):
        if single.flipped:
            assert many.adversarial == single.adversarial
    assert sum(each.flipped for each in eager) > sum(each.flipped for each in one) > 0


@pytest.mark.parametrize("method", ["iadvt-rand", "ivat"])
def test_of_several_swaps_one_is_made_only_where_it_helps(method: str) -> None:
    """Guided by methods that know nothing of the label, unlike with a single one, which is made unread."""
    run = untrained()
    texts = [Example(" ".join(SENTENCE[start : start + 5])) for start in range(6)]
    read, unread = (
        list(attack(run, texts, AttackSettings(method=method, rescore=rescore, max_swaps=4))) for rescore in (2, 1)
    )
    assert all(each.probability_after < each.probability_before for each in read if each.changes)
    assert any(each.changes for each in read)
    assert any(each.probability_after > each.probability_before for each in unread)


def test_margins_by_hand() -> None:
    logits = np.array([[0.0, 2.0, -1.0], [3.0, 1.0, 0.0], [0.0, 0.5, 0.0], [0.0, 4.0, 1.0]])
    assert Target(1).margin(logits[0]) == 2.0
    assert Target(0).margin(logits[0]) == -2.0
    tags = np.array([1, -100, 1, -100])
    every, first = np.array([True, True, True, False]), np.array([False, True, False, False])
    assert Target(tags, watched=every).margin(logits) == 2.5  # both flags count, not the strongest alone
    assert Target(tags, watched=first).margin(logits) == -2.0


def test_a_beam_finds_no_fewer(run: Run) -> None:
    counts = [
        sum(each.flipped for each in attack(run, TEXTS, AttackSettings(rescore=2, beam=beam, max_swaps=3)))
        for beam in (1, 6)
    ]
    assert counts[0] <= counts[1]


def test_no_text_is_read_twice_in_a_round(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two texts of a beam lead to the same one by the same two swaps in another order."""
    read, rounds = Run.logits, []
    monkeypatch.setattr(Run, "logits", lambda run, rows: rounds.append(rows) or read(run, rows))
    for example in TEXTS[:6]:
        list(attack(run, [example], AttackSettings(rescore=6, beam=6, max_swaps=3)))
    assert max(map(len, rounds)) > 6
    for rows in rounds:
        assert len({row.tobytes() for row in rows}) == len(rows)


def test_protected_words_never_change(run: Run) -> None:
    kept = ("Warm", "was", *BLAME)
    free, bound, stopped = (
        [change for each in attack(run, TEXTS, settings) for change in each.changes]
        for settings in (
            AttackSettings(max_swaps=8, words="any"),
            AttackSettings(max_swaps=8, words="any", keep=kept),
            AttackSettings(max_swaps=8, words="any", keep_stop_words=True),
        )
    )
    named = {word.lower() for word in kept}
    assert {change.word for change in free} & named
    assert {change.word for change in bound}.isdisjoint(named)
    assert bound
    assert {change.word for change in free} & STOP_WORDS
    assert {change.word for change in stopped}.isdisjoint(STOP_WORDS)
    assert stopped
    for each in attack(run, TEXTS[:4], AttackSettings(keep=tuple(run.vocabulary.words[3:]))):
        assert (each.adversarial, each.changes, each.passes) == (each.text, (), 1)


@pytest.mark.parametrize("share", [0.01, 0.2, 0.4])
def test_no_larger_share_of_the_words_is_swapped(run: Run, share: float) -> None:
    results = list(attack(run, TEXTS, AttackSettings(max_swaps=9, max_share=share)))
    assert max(each.share for each in results) <= share
    assert any(each.changes for each in results) == (share > 0.1)


@pytest.mark.parametrize("tokenizer", ["words", "punctuation", "whitespace"])
@pytest.mark.parametrize("unknown", ["unk", "drop"])
def test_words_are_put_in_so_that_they_are_read_again(tokenizer: str, unknown: str) -> None:
    """Commas and words without blanks between: what would run together with its neighbour is never put in."""
    run = untrained(tokenizer=tokenizer, lowercase=True, unknown=unknown)
    texts = [
        "The CAST,was good,and zyx the Ending was dull,they said",
        "Good",
        "was was,,was",
        "GOOD <br/>dull",
    ]
    changed = 0
    for each in attack(run, [Example(text) for text in texts], AttackSettings(max_swaps=9, rescore=1)):
        before, after = (
            [word for word in words_in(run, text) if unknown == "unk" or word in run.vocabulary]
            for text in (each.text, each.adversarial)
        )
        towards = {change.position: change.toward.lower() for change in each.changes}
        assert after == [towards.get(at, word) for at, word in enumerate(before)]
        changed += len(each.changes)
        for change in each.changes:
            assert change.word[:1].isupper() == change.toward[:1].isupper() or not change.toward[:1].isalpha()
    assert changed > 8 or tokenizer == "whitespace"


@pytest.mark.parametrize("settings", SETTINGS[:6], ids=lambda settings: f"{settings.method}-{settings.rescore}")
def test_passes_are_the_texts_that_the_model_read(run: Run, settings: AttackSettings) -> None:
    read = 0

    def count(module: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        nonlocal read
        read += len(inputs[0])

    handle = run.model.register_forward_pre_hook(count)
    try:
        results = list(attack(run, [*TEXTS[:12], Example("")], settings))
    finally:
        handle.remove()
    assert read == sum(each.passes for each in results)
    assert results[-1].passes == 0


def test_a_wrong_prediction_is_left_alone(run: Run) -> None:
    wrong = [replace(example, label="bad" if example.label == "good" else "good") for example in TEXTS[:5]]
    for each in attack(run, wrong):
        assert (each.outcome, each.adversarial, each.changes, each.passes) == ("wrong", each.text, (), 1)
        assert each.label != each.before == each.after
    for each in attack(run, [Example(example.text) for example in TEXTS[:5]]):
        assert not each.given
        assert each.label == each.before
        assert each.outcome in ("flipped", "kept")


def test_odd_texts(run: Run) -> None:
    texts = ["", " \n", "zyx", "warm", "🙂 🙃", "سلام warm עולם", "was " * 4_000]
    results = list(attack(run, [Example(text) for text in texts], AttackSettings(max_swaps=1)))
    assert [each.outcome for each in results[:2]] == ["unreadable", "unreadable"]
    assert [each.words for each in results] == [0, 0, 1, 1, 0, 3, 4_000]
    assert results[4].outcome == "unreadable"
    for each in results[2:4]:
        assert each.flipped == (run.predict([each.adversarial])[0].label != each.before)


def test_the_model_is_left_as_it_was(run: Run) -> None:
    before = {name: tensor.clone() for name, tensor in run.model.state_dict().items()}
    list(attack(run, TEXTS[:4]))
    assert all(torch.equal(before[name], tensor) for name, tensor in run.model.state_dict().items())
    assert all(parameter.grad is None for parameter in run.model.parameters())
    assert not run.model.training
    assert not run.model.words.table._forward_hooks


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: AttackSettings(max_swaps=0), "max_swaps must be a whole number, 1 or more, but is 0"),
    (lambda: AttackSettings(rescore=-1), "rescore must be a whole number, 1 or more"),
    (lambda: AttackSettings(beam=0), "beam must be a whole number, 1 or more"),
    (lambda: AttackSettings(max_share=0.0), "max_share must be greater than 0 and at most 1"),
    (lambda: AttackSettings(max_share=1.5), "max_share must be greater than 0 and at most 1"),
    (lambda: AttackSettings(sense="changed"), "sense must be any or kept"),  # type: ignore[arg-type]
    (lambda: AttackSettings(rank="best"), "rank must be auto or gain or strength"),  # type: ignore[arg-type]
    (lambda: AttackSettings(method="baseline"), "method must be one that perturbs"),
    (lambda: AttackSettings(method="iadvt+ivat"), "method must be one that perturbs"),
    (lambda: AttackSettings(method="magic"), "unknown method 'magic'"),
]


@pytest.mark.parametrize(("make", "said"), REFUSED)
def test_settings_that_are_refused(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()


def test_what_a_run_cannot_be_attacked_with(run: Run) -> None:
    with pytest.raises(DataError, match=r"expected a label that the model knows \(bad, good\); got 'splendid'"):
        attack(run, [Example("the film was warm", "splendid")])
    with pytest.raises(ValueError, match="has no word counts to judge swaps by: train it again"):
        attack(untrained(), [], AttackSettings(sense="kept"))
    with pytest.raises(ValueError, match="corrections are for taggers"):
        attack(run, [], corrections={})
    assert list(attack(run, [])) == []


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: f"{settings.method}-{settings.rescore}")
def test_a_gpu_finds_the_same(run: Run, settings: AttackSettings) -> None:
    there = load_run(run.folder, device="cuda")
    here, found = (list(attack(each, TEXTS[:8], settings)) for each in (run, there))
    same = sum(a.adversarial == b.adversarial for a, b in zip(here, found, strict=True))
    assert same >= 7  # another order of sums may decide a near tie otherwise
    assert all(each.flipped == (there.predict([each.adversarial])[0].label != each.before) for each in found)


def test_praise_turns_to_blame(run: Run) -> None:
    """What is swapped is what decides: most flips put blame for praise, or the other way round."""
    first = [each.changes for each in attack(run, TEXTS, AttackSettings(rescore=20)) if each.flipped]
    deciding = [change for changes in first for change in changes if change.word in (*PRAISE, *BLAME)]
    assert len(deciding) > sum(map(len, first)) / 2
    assert all(EOS != run.vocabulary[change.toward] >= len(SPECIALS) for changes in first for change in changes)


def test_a_swap_is_told_as_it_is_written_in_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """A word that replaces "I" is a capital only where it begins a sentence."""
    vocabulary = Vocabulary.build([["i", "we", "know", "and", "said"]] * 3)
    run = replace(untrained(lowercase=True), vocabulary=vocabulary)
    case = Case(run.read(Example("I know and I said")), Target(0), np.ones(5, dtype=bool), 2)
    swaps = [Replacement(0, vocabulary["we"]), Replacement(3, vocabulary["we"])]
    monkeypatch.setattr(attacker, "text_with", lambda *_: "We know and we said")
    goal = SimpleNamespace(sense=lambda *_: ("kept", None))
    found = Search(case, [State(case.row, tuple(swaps))], passes=1)
    edited = attacker._swapped(run, cast(Any, goal), found)
    assert [change.toward for change in edited.changes] == ["We", "we"]


def test_a_search_ends_where_a_coarse_margin_leaves_no_doubt() -> None:
    case = cast(Case, SimpleNamespace(row=None, most=4))
    one = Search(case, [])
    row = cast(Any, SimpleNamespace(ids=np.array([5])))
    state = State(row, (Replacement(0, 5),), margin=-0.004)
    one.keep([state], 1, unsure=0.01)
    assert not one.over
    one.keep([replace(state, margin=0.7)], 1, unsure=0.01)
    assert one.beam == [state]  # which a worse swap does not replace
    one.keep([state], 1)
    assert one.over


def test_products_are_coarse_in_a_search_on_a_gpu_only() -> None:
    products: Any = torch.backends.cuda.matmul
    name = "fp32_precision" if hasattr(products, "fp32_precision") else "allow_tf32"
    before = getattr(products, name)
    for device, within in (("cpu", before), ("cuda", "tf32" if name == "fp32_precision" else True)):
        with searching(torch.device(device)):
            assert getattr(products, name) == within
        assert getattr(products, name) == before
        assert torch.get_float32_matmul_precision() == "highest"


@pytest.mark.skipif(not hasattr(torch.backends.cuda.matmul, "fp32_precision"), reason="needs torch 2.9")
def test_a_search_takes_no_offence_at_how_precision_was_set() -> None:
    products: Any = torch.backends.cuda.matmul
    before, products.fp32_precision = products.fp32_precision, "tf32"
    try:
        for device in ("cpu", "cuda"):
            with searching(torch.device(device)):
                pass
        assert products.fp32_precision == "tf32"
    finally:
        products.fp32_precision = before
