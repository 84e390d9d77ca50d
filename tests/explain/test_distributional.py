"""Which words fit which where texts are not English: those that stand alike in the texts of the run."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from foreign_runs import ENGLISH, FRENCH, a_run

from wordward.explain import distributional as module
from wordward.explain import other_languages
from wordward.explain.candidates import FittingWords, fit_words
from wordward.explain.distributional import Alike, alike, counted_by_model, of_grammar, own_space
from wordward.explain.filtering import sensible
from wordward.explain.kin import vectors_of
from wordward.explain.word_classes import fitting_of
from wordward.runs.checkpoint import load_capitals
from wordward.runs.evidence import evidence_of
from wordward.runs.opening import load_run
from wordward.runs.run import Run
from wordward.text.vocabulary import SPECIALS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("alike")


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    return a_run(folder, FRENCH, kind="convolution")


def test_words_that_stand_alike_fit_each_other_and_no_others(run: Run) -> None:
    fits = fitting_of(run)
    assert isinstance(fits, Alike)
    superb, dull, the, name = (run.vocabulary[word] for word in ("superbe", "ennuyeux", "le", "dans"))
    words, others = torch.tensor([superb, superb, superb]), torch.tensor([dull, the, name])
    assert fits(words, others).tolist() == [True, False, False]
    strange = fits.vectors.clone()
    strange[dull] = -strange[superb]
    fits = Alike(run, strange)
    assert not bool(fits(words[:1], others[:1]))


def test_a_noun_of_german_fits_no_other_word(tmp_path: Path) -> None:
    run = a_run(tmp_path, FRENCH.replace("film", "Film"), kind="convolution")
    written = load_capitals(run.folder, run.vocabulary)
    film, superb, dull = (run.vocabulary[word] for word in ("film", "superbe", "ennuyeux"))
    assert float(written[film]) > 0.9
    assert float(written[[superb, dull]].max()) < 0.1
    fits = Alike(run, torch.ones(len(run.vocabulary), 2))  # all stand alike
    words, others = torch.tensor([superb, superb]), torch.tensor([dull, film])
    fits.kinds[[film, superb, dull]] = 1
    assert fits(words, others).tolist() == [True, False]
    fits.capitals = torch.zeros(len(run.vocabulary))  # as an older run
    assert fits(words, others).tolist() == [True, True]


def test_numbers_fit_numbers_and_pieces_of_words_fit_none() -> None:
    kinds = [module._kind(word) for word in ("1984", "film", "vice-roi", "l", "qu", "a1", "!")]
    assert kinds[0] not in (0, kinds[1])
    assert kinds[1] == kinds[2] != 0
    assert kinds[3:] == [0] * 4


def test_words_that_stand_like_short_common_ones_are_of_grammar() -> None:
    torch.manual_seed(0)
    one, other = torch.eye(8)[0], torch.eye(8)[1]
    vectors = torch.cat([one + 0.1 * torch.randn(9, 8), other + 0.1 * torch.randn(9, 8)])
    short = torch.zeros(18, dtype=torch.bool)
    short[:6] = short[9] = True  # of the others one is short, which is no more of grammar than they are
    vectors = torch.nn.functional.normalize(vectors, dim=-1)
    assert of_grammar(vectors, short).tolist() == [True] * 9 + [False] * 9


def test_the_words_of_an_explanation_are_near_by_the_runs_own_vectors(run: Run) -> None:
    adversary = run.adversary("iadvt")
    near = fit_words(run, adversary)
    assert isinstance(near, FittingWords)
    assert near.space is not None
    assert torch.equal(near.space.table, vectors_of(run, None))
    assert near.space.table.shape[1] == run.config.model.dim  # without what words speak for
    assert not bool(near.space.known[: len(SPECIALS)].any())
    fits = alike(run)
    assert fits is not None
    assert torch.equal(own_space(run, fits).known, near.space.known)


def test_what_words_speak_for_is_what_the_linear_part_says(run: Run) -> None:
    evidence = evidence_of(run)
    assert evidence is not None
    told = counted_by_model(run, evidence)
    assert told is not None
    for label, word in enumerate(("ennuyeux", "superbe")):
        assert told[run.vocabulary[word]].argmax() == label
        assert told[run.vocabulary[word], label] > 1
    torch.testing.assert_close(told.sum(-1), torch.zeros(len(told)), atol=1e-4, rtol=0)
    rule = sensible(run, own_space(run, fitting_of(run)))  # type: ignore[arg-type]
    assert rule is not None
    torch.testing.assert_close(rule._kin.evidence[: len(told)], told)


def test_a_text_in_french_is_explained_by_a_word_that_stands_alike(run: Run) -> None:
    (found,) = run.explain(["le film qu il est dans une superbe"])
    place = found.strongest
    assert place is not None
    assert place.pull is not None
    assert (place.word, place.pull.toward) == ("superbe", "ennuyeux")


def test_english_texts_are_explained_so_where_no_vectors_are_at_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_languages, "installed_model", lambda: tmp_path)
    run = a_run(tmp_path, ENGLISH)
    assert alike(run) is None
    monkeypatch.setattr(other_languages, "installed_model", lambda: None)
    again = load_run(run.folder, device="cpu")
    assert isinstance(alike(again), Alike)
    from_vectors = replace(again, config=replace(again.config, vectors="vectors.txt"))
    assert other_languages.contexts_of(from_vectors) is None
    monkeypatch.setattr(other_languages, "ENOUGH", len(run.vocabulary))
    assert other_languages.contexts_of(again) is None


def test_a_run_without_a_linear_part_has_none(tmp_path: Path) -> None:
    lstm = a_run(tmp_path, FRENCH)
    evidence = evidence_of(lstm)
    assert evidence is not None
    assert counted_by_model(lstm, evidence) is None
    assert sensible(lstm, None) is not None
