"""Only words that fit the place pull, and those first that the training texts speak for."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from reviews import reviews, write_csv
from untrained import MODEL

from wordward.config.settings import MethodSettings, ModelSettings, TextSettings, TrainConfig, TrainingSettings
from wordward.datasets import Example
from wordward.explain import candidates
from wordward.explain.candidates import CLOSE, FAR, FittingWords, fit_words
from wordward.explain.explainer import explain
from wordward.explain.swaps import apply
from wordward.models import Classifier, Tagger
from wordward.perturbation.nearest import nearest
from wordward.runs.evidence import evidence_of
from wordward.runs.opening import load_run
from wordward.runs.run import Run
from wordward.runs.word_run import WordRun
from wordward.support.errors import SettingError
from wordward.text.vocabulary import SPECIALS, Vocabulary
from wordward.train.training import train

WORDS = "the The this This is was good Good bad Bad works failed worked t film films story stories and but".split()


def a_run(k: int = 3, words: Sequence[str] = WORDS) -> Run:
    """A run in whose vocabulary words differ in case, kind and inflection."""
    vocabulary = Vocabulary((*SPECIALS, *words), np.array([0, 0, 3, *range(40, 40 - len(words), -1)]))
    config = TrainConfig(task="classify", model=MODEL, perturbation=MethodSettings(epsilon=1.0, k=k))
    model = Classifier(len(vocabulary), 2, MODEL).eval()
    return WordRun(Path("nowhere"), config, vocabulary, ("bad", "good"), model, torch.device("cpu"))


@pytest.mark.parametrize("many", [1, 500])
def test_candidates_are_the_nearest_words_that_fit(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "MANY", many)
    run = a_run()
    adversary = run.adversary("iadvt")
    assert fit_words(run, adversary)
    ids = torch.arange(len(run.vocabulary)).unsqueeze(0)
    found, searched = adversary.directions.search(ids), adversary.directions.given
    assert found is not None
    assert isinstance(searched, FittingWords)
    fits = searched.fits
    allowed = torch.arange(len(SPECIALS), len(run.vocabulary))
    table = run.table()
    every = nearest(ids[0], table, len(WORDS) - 1, allowed=allowed, metric="cosine")
    for word, near, few in zip(ids[0], every, found[0], strict=True):
        close = torch.cosine_similarity(table[word].unsqueeze(0), table[near])
        fit = fits(word.expand_as(near), near) & ((close >= CLOSE * close[0]) | (many > len(WORDS)))
        wanted = near[fit].tolist()[:3]
        assert few.tolist() == wanted + [int(word)] * (3 - len(wanted))


def test_words_that_fit_are_those_of_each_adversary(monkeypatch: pytest.MonkeyPatch) -> None:
    run = a_run()
    adversary = run.adversary("iadvt")
    assert fit_words(run, adversary)
    ids = torch.arange(len(run.vocabulary)).unsqueeze(0)

    def found() -> list[Any]:
        words = adversary.directions.search(ids)
        assert words is not None
        return words.tolist()

    usual = found()
    adversary = run.adversary("iadvt")
    assert found() != usual  # any words
    assert fit_words(run, adversary)
    for _ in range(2):
        assert found() == usual
        adversary.directions.refresh()
    monkeypatch.setattr(candidates, "COPIED", 1)
    assert fit_words(run, run.adversary("iadvt")) is None


def test_words_that_differ_in_what_they_speak_for_come_first_the_more_the_closer() -> None:
    words = "good bad great nice fine poor big small old new".split()
    run = a_run(len(words) - 1, words)
    adversary = run.adversary("iadvt")
    assert fit_words(run, adversary)
    fit, table, own = adversary.directions.given, run.table(), len(SPECIALS)
    assert isinstance(fit, candidates.FittingWords)
    drawn = torch.Generator().manual_seed(0)
    evidence, doubt = 3 * torch.rand(len(run.vocabulary), 3, generator=drawn), torch.zeros(len(run.vocabulary))
    evidence[own + 1] = torch.nan  # "bad" is rare
    doubt[own + 2] = 9.0  # what "great" speaks for is not sure
    fit.speaking = candidates.Speaking(evidence, doubt, torch.tensor([], dtype=torch.long))
    others = torch.arange(own + 1, len(run.vocabulary))
    close = torch.cosine_similarity(table[own].unsqueeze(0), table[others])
    other = evidence[others] - evidence[own]
    apart = (other.amax(-1) - other.amin(-1)) * close.clamp(min=FAR)  # a word that is not near counts little
    apart[1] = 0.0
    chosen = others[apart > 0]
    expected = chosen[apart[apart > 0].argsort(descending=True)].tolist()
    found = fit.of(torch.tensor([[own]]), run.table())[0, 0].tolist()
    assert found[: len(expected)] == expected
    assert len(expected) == len(others) - 2
    assert set(found[len(expected) :]) == set(others.tolist()) - set(expected)  # the rest


def test_words_that_tell_most_may_pull_though_others_are_nearer(monkeypatch: pytest.MonkeyPatch) -> None:
    words = "good bad great nice fine poor big small old new".split()
    run = a_run(2, words)
    adversary, own = run.adversary("iadvt"), len(SPECIALS)
    assert fit_words(run, adversary)
    fit = adversary.directions.given
    assert isinstance(fit, candidates.FittingWords)
    monkeypatch.setattr(candidates, "MANY", 5)
    monkeypatch.setattr(fit.fits, "among", 2)
    monkeypatch.setattr(candidates, "WIDELY", -9.0)
    near = nearest(torch.tensor([own]), run.table(), 9, allowed=fit.allowed, metric="cosine")[0].tolist()
    close = torch.cosine_similarity(run.table()[own].unsqueeze(0), run.table()[near])
    far = near[next(at for at in range(2, 9) if close[at] > 0)]
    evidence, nothing = torch.zeros(len(run.vocabulary), 2), torch.zeros(len(run.vocabulary))
    evidence[far, 1] = 1.0
    fit.speaking = candidates.Speaking(evidence, nothing, torch.tensor([own, near[0], far]))
    found = fit.of(torch.tensor([[own]]), run.table())[0, 0].tolist()
    assert found == [far, near[0]]  # near[0] once, and never the word itself


@pytest.mark.parametrize("forms", [True, False])
def test_forms_of_the_same_word_do_not_explain_it(forms: bool) -> None:
    words = "music musician library librarian number story".split()
    vocabulary = Vocabulary((*SPECIALS, *words), np.array([0, 0, 3, *[40] * len(words)]))
    run = replace(a_run(k=5), vocabulary=vocabulary, model=Classifier(len(vocabulary), 2, MODEL).eval())
    adversary = run.adversary("iadvt")
    assert fit_words(run, adversary, forms=forms)
    found = adversary.directions.search(torch.tensor([[vocabulary["music"], vocabulary["library"]]]))
    assert found is not None
    music, library = ({vocabulary.word(at) for at in of_word} for of_word in found[0].tolist())
    assert ("musician" in music, "librarian" in library) == (forms, forms)
    assert {"library", "story"} <= music
    explained = explain(run, ["the library music"])[0]
    assert not {("music", "musician"), ("library", "librarian")} & {
        (place.word, pull.toward) for place in explained.places for pull in place.pulls
    }


@pytest.mark.parametrize(("tags", "fit"), [(("B-PER", "I-PER", "O"), True), (("c", "i"), False)])
def test_of_taggers_those_of_names_have_fitting_words(tags: tuple[str, ...], fit: bool) -> None:
    vocabulary = a_run().vocabulary
    config = TrainConfig(task="tag", model=MODEL, perturbation=MethodSettings(epsilon=1.0, k=3))
    model = Tagger(len(vocabulary), len(tags), MODEL).eval()
    run = WordRun(Path("nowhere"), config, vocabulary, tags, model, torch.device("cpu"))
    assert (fit_words(run, run.adversary("iadvt")) is not None) == fit


def test_a_word_that_none_fits_has_no_pull() -> None:
    run = a_run()
    (found,) = explain(run, ["This film is good and t"], top=9)
    pulls = {place.word: {pull.toward for pull in place.pulls} for place in found.places}
    assert pulls["t"] == set()
    assert pulls["This"] <= {"The"}
    assert pulls["is"] <= {"was"}
    assert pulls["good"] <= {"bad", "works"}  # "works" of no "work" that is known may be anything
    assert pulls["film"] <= {"story", "works"}
    assert pulls["and"] <= {"but"}
    free = explain(run, ["This film is good and t"], top=9, words="any")[0]
    assert any(pull.toward not in pulls[place.word] for place in free.places for pull in place.pulls)
    with pytest.raises(SettingError, match="words must be"):
        explain(run, ["good"], words="some")


def test_strengths_stay_those_of_the_model() -> None:
    """Ratios between the strengths of two candidates do not depend on which others there are."""
    run = a_run(k=12)
    some, every = (
        explain(run, ["the film was good but This works"], top=20, words=words)[0] for words in ("fitting", "any")
    )
    shared = [
        (one.strength, other.strength)
        for place, free in zip(some.places, every.places, strict=True)
        for one in place.pulls
        for other in free.pulls
        if one.toward == other.toward
    ]
    assert len(shared) > 2
    ratios = [one / other for one, other in shared]
    assert ratios == pytest.approx([ratios[0]] * len(ratios), rel=1e-4)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("candidates")
    write_csv(folder / "reviews.csv", reviews(240))
    config = TrainConfig(
        method="baseline",
        model=ModelSettings(dim=12, hidden=12, head=6, word_dropout=0.1, head_dropout=0.0),
        perturbation=MethodSettings(epsilon=1.0, k=8),
        training=TrainingSettings(epochs=5, learning_rate=0.02, device="cpu"),
    )
    train(replace(config, data=replace(config.data, train=str(folder / "reviews.csv"))), folder / "run", quiet=True)
    return load_run(folder / "run", device="cpu")


def test_pulls_go_toward_words_that_speak_less_for_the_label(trained: Run) -> None:
    trained = replace(trained, config=replace(trained.config, perturbation=MethodSettings(epsilon=1.0, k=20)))
    evidence = evidence_of(trained)
    assert evidence is not None
    shown = 0
    for found in explain(trained, [Example(example.text, example.label) for example in reviews(20, seed=5)], top=8):
        label = trained.labels.index(found.label or "")
        for place in found.places:
            for pull in place.pulls:
                lost = [
                    float(evidence.evidence[trained.vocabulary[word], label]) for word in (place.word, pull.toward)
                ]
                assert lost[0] > lost[1]
                shown += 1
    assert shown > 20
    free = explain(trained, [reviews(20, seed=5)[0]], top=8, words="any")[0]
    assert sum(len(place.pulls) for place in free.places) > 0


def test_nothing_pulls_the_parts_of_a_name(trained: Run) -> None:
    trained = replace(trained, config=replace(trained.config, text=TextSettings(lowercase=True)))
    text = reviews(1, seed=5)[0].text.lower()
    (found,) = explain(trained, [text])
    at = next(at for at, place in enumerate(found.places) if at and place.pulls)
    pulled = found.places[at]
    assert explain(trained, [f"{text[: pulled.start]}{pulled.word.title()}{text[pulled.end :]}"])[0].places[at].pulls
    (found,) = explain(trained, [f"{text[: pulled.start]}{pulled.word.title()} Jones{text[pulled.end :]}"])
    assert not found.places[at].pulls


def test_i_says_nothing_of_the_case_of_the_word_that_replaces_it() -> None:
    run = a_run()
    text = "I know that I can, and We can"
    places = explain(run, [text], words="any")[0].places
    assert [place.word for place in places][:4] == ["I", "know", "that", "I"]
    assert apply(text, [(places[0], "we"), (places[3], "we")], lowercase=True) == "We know that we can, and We can"
    assert apply(text, [(places[6], "i")], lowercase=True) == "I know that I can, and I can"


def test_no_crude_word_is_put_into_a_text_but_one_may_go() -> None:
    words = "shitty lovely clumsy charming".split()
    run = a_run(words=words)
    adversary = run.adversary("iadvt")
    assert fit_words(run, adversary)
    found = adversary.directions.search(torch.tensor([[run.vocabulary[word] for word in words]]))
    assert found is not None
    crude, lovely, *_ = ({run.vocabulary.word(at) for at in of_word} for of_word in found[0].tolist())
    assert {"lovely", "clumsy"} <= crude
    assert "shitty" not in lovely


def test_single_characters_have_no_kinds_so_any_may_pull() -> None:
    """As in Chinese, which is read character by character."""
    run = a_run(words=list("这本小说写得很好我喜欢电影难看"))
    assert fit_words(run, run.adversary("iadvt")) is None
    (found,) = run.explain(["这 本 很 好"])
    assert any(place.pulls for place in found.places)


@pytest.mark.parametrize("english", [True, False])
def test_in_few_english_texts_a_rare_word_pulls_only_if_it_is_one(english: bool) -> None:
    common = "the of and to for" if english else "der die und zu von"
    rare = {"flac": 4, "playlist": 3, "damnhotels": 1, "gav": 2, "acc": 3, "ig": 2, "bad": 1, "heaven": 1}
    words = dict.fromkeys(common.split(), 50) | rare
    counts = np.array([0, 0, 3, *words.values()])
    run = replace(a_run(), vocabulary=Vocabulary((*SPECIALS, *words), counts))
    run = replace(run, model=Classifier(len(run.vocabulary), 2, MODEL).eval())
    near = fit_words(run, run.adversary("iadvt"))
    assert near is not None
    found = {run.vocabulary.word(at) for at in near.allowed.tolist()}
    assert found & set(rare) == ({"flac", "bad", "heaven"} if english else set(rare))
