"""What words speak for to a model whose training texts are not known."""

from pathlib import Path

import numpy as np
import pytest
import torch
from any_model import fine_tuned
from hf_tiny import saved

import wordward
from wordward.runs.alone import VARIANCE, read_alone, standardised
from wordward.runs.run import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return wordward.open_model(fine_tuned(tmp_path_factory.mktemp("hub") / "sentiment"), device="cpu")


def test_words_read_alone_speak_for_what_the_model_says_of_them(run: Run) -> None:
    found = run.evidence_alone
    assert found is not None
    warm, dull = (run.vocabulary.words.index(word) for word in ("warm", "dull"))
    assert found.evidence[warm, 1] - found.evidence[dull, 1] > 0.5
    read = torch.isfinite(found.variance).all(-1)
    assert (found.variance[read] == VARIANCE).all()
    assert len(found.evidence) == len(run.vocabulary) + 1  # and a row for every other word
    assert not read[-1]
    words = [run.vocabulary.words[int(at)] for at in read.nonzero()]
    assert all(word.isalpha() for word in words)
    odds = [np.log(each.probabilities["good"] / each.probabilities["bad"]) for each in run.predict(words)]
    both = np.stack([-np.array(odds), odds], 1)
    both = both - np.sort(both, 0)[(len(both) - 1) // 2]
    np.testing.assert_allclose(found.evidence[read].numpy(), both / both.std(ddof=1), atol=1e-3)


def test_it_is_read_once_and_not_where_words_were_counted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run.evidence_alone is run.evidence_alone
    monkeypatch.setattr("wordward.runs.external_run.read_alone", lambda run: pytest.fail("read"))
    assert run.evidence_alone is not None


def test_log_odds_are_against_all_other_labels() -> None:
    logits = torch.tensor([[2.0, 0.0, 1.0], [0.0, 3.0, 0.0], [1.0, 1.0, 1.0]])
    p = logits.double().softmax(-1)
    odds = (p / (1 - p)).log()
    odds = odds - odds.median(0).values
    torch.testing.assert_close(standardised(logits), odds / odds.std())
    assert standardised(torch.zeros(3, 2)).abs().max() == 0


def test_a_tagger_reads_no_word_alone(tmp_path: Path) -> None:
    names = {"id2label": {0: "c", 1: "i"}, "label2id": {"c": 0, "i": 1}}
    tagger = wordward.open_model(saved(tmp_path / "tagger", "token", **names), device="cpu")
    assert read_alone(tagger) is None


def test_pulls_go_to_words_of_another_label(run: Run) -> None:
    found = run.explain(["the film was warm and funny", "the script was dull"])
    evidence = run.evidence_alone
    assert evidence is not None
    for each in found:
        assert each.strongest is not None
        assert each.strongest.pull is not None
        label = run.labels.index(each.predicted or "")
        own, toward = (run.vocabulary.words.index(word) for word in (each.strongest.word, each.strongest.pull.toward))
        assert evidence.evidence[toward, label] < evidence.evidence[own, label]
