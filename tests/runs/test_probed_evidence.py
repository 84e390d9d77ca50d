"""What words speak for to a model whose training texts are not known."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from any_model import fine_tuned
from hf_tiny import bert, byte_pieces, saved
from reviews import reviews

import wordward
from wordward.explain.explainer import Explainer
from wordward.runs import probed_evidence
from wordward.runs.external_run import ExternalRun
from wordward.runs.external_words import count_words
from wordward.runs.probed_evidence import VARIANCE, evidence_alone, read_alone
from wordward.runs.run import Run
from wordward.runs.scoring import log_odds
from wordward.support.errors import RunError


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ExternalRun:
    opened = wordward.open_model(fine_tuned(tmp_path_factory.mktemp("hub") / "sentiment"), device="cpu")
    assert isinstance(opened, ExternalRun)
    return opened


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


def test_log_odds_are_against_all_other_labels() -> None:
    logits = torch.tensor([[2.0, 0.0, 1.0], [0.0, 3.0, 0.0], [1.0, 1.0, 1.0]])
    p = logits.double().softmax(-1)
    torch.testing.assert_close(log_odds(logits), (p / (1 - p)).log())
    torch.testing.assert_close(log_odds(logits[1]), log_odds(logits)[1])


def test_words_are_read_again_when_weights_have_changed_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Run] = []
    monkeypatch.setattr(probed_evidence, "read_alone", read.append)
    tokenizer = byte_pieces()
    names = {"id2label": {0: "bad", 1: "good"}, "label2id": {"bad": 0, "good": 1}}
    model = bert("sequence", len(tokenizer), **names)
    for asked in range(2):
        for _ in range(2):  # a run of its own, as `wordward.hf.explain` makes one for each call
            opened: Any = wordward.open_model((model, tokenizer), device="cpu")
            assert opened.evidence_alone is None
        assert len(read) == asked + 1
        weight = next(model.parameters())
        weight.grad = torch.ones_like(weight)
        torch.optim.AdamW([weight], lr=1.0, fused=True).step()  # which no counter of the tensor tells of


def test_words_are_read_once_for_all_labels_of_several(run: ExternalRun, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Run] = []
    monkeypatch.setattr(probed_evidence, "read_alone", lambda run: (read.append(run), read_alone(run))[1])
    model: Any = transformers.AutoModelForSequenceClassification.from_pretrained(run.folder)
    model.config.problem_type = "multi_label_classification"
    several: Any = wordward.open_model((model, run.tokenizer), device="cpu")
    for label in ("good", "bad", "good"):
        found = several.deciding(label).evidence_alone
        assert found.evidence.shape == (len(run.vocabulary) + 1, 2)  # no and yes
        known = torch.isfinite(found.variance).all(-1).nonzero().flatten()
        said = [each.probabilities[label] for each in several.predict([run.vocabulary.words[at] for at in known])]
        odds = np.log(said) - np.log1p(-np.array(said))
        odds = odds - np.sort(odds)[(len(odds) - 1) // 2]
        yes = found.evidence[known, 1].numpy()
        np.testing.assert_allclose(yes / np.abs(yes).max(), odds / np.abs(odds).max(), atol=1e-3)
    assert len(read) == 1


def test_words_that_were_counted_are_not_read(run: ExternalRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wordward.runs.external_run.remembered", lambda *_: pytest.fail("read"))
    assert replace(run, counted=count_words(reviews(20), run.labels)).evidence_alone is None


def test_a_tagger_a_model_of_pairs_and_one_that_says_nothing_have_none(run: ExternalRun, tmp_path: Path) -> None:
    names = {"id2label": {0: "c", 1: "i"}, "label2id": {"c": 0, "i": 1}}
    assert read_alone(wordward.open_model(saved(tmp_path / "tagger", "token", **names), device="cpu")) is None
    paired = replace(run, config=replace(run.config, data=replace(run.config.data, pair_column="second")))
    assert read_alone(paired) is None
    model: Any = transformers.AutoModelForSequenceClassification.from_pretrained(run.folder)
    torch.nn.init.zeros_(model.classifier.weight)
    silent: Any = wordward.open_model((model, run.tokenizer), device="cpu")
    assert read_alone(silent) is not None
    assert silent.evidence_alone is None


def test_pieces_that_are_written_with_the_blank_before_them_are_read_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probed_evidence, "LEAST", 0.0)
    tokenizer = byte_pieces()
    names = {"id2label": {0: "bad", 1: "good"}, "label2id": {"bad": 0, "good": 1}}
    opened = wordward.open_model((bert("sequence", len(tokenizer), **names), tokenizer), device="cpu")
    found = evidence_alone(opened, read_alone(opened))
    assert found is not None
    read = [opened.vocabulary.words[int(at)] for at in torch.isfinite(found.variance).all(-1).nonzero()]
    assert {"the", "film", "warm"} <= set(read)


def test_a_text_is_explained_by_what_its_own_words_speak_for(run: ExternalRun) -> None:
    explainer = Explainer(run)
    assert explainer.sensible is not None
    (text,) = run.read_all(run.examples(["the script was dull"]))
    own = text.row.numbers[text.row.first].tolist()
    assert own == [run.vocabulary.words.index(word) for word in ("the", "script", "was", "dull")]
    (found,) = explainer(["the script was dull"])
    assert found.strongest is not None
    assert found.strongest.word == "dull"
    (without,) = Explainer(run, words="any")(["the script was dull"])
    assert [place.word for place in without.places if place.pulls] != ["dull"]
    assert [place.word for place in found.places if place.pulls] == ["dull"]


def test_places_are_refused_where_the_model_has_changed_since_its_texts_were_explained(run: ExternalRun) -> None:
    model: Any = transformers.AutoModelForSequenceClassification.from_pretrained(run.folder)
    opened: Any = wordward.open_model((model, run.tokenizer), device="cpu")
    texts = ["the script was dull", "a warm film"]
    early, late = opened.explain(texts), opened.explain(texts)
    (seen, _), places = early, early[0].places
    with torch.no_grad():
        model.classifier.weight.neg_()
    with pytest.raises(RunError, match="weights have changed since: explain them again"):
        _ = late[0].places
    assert (seen.places, len(early[1].places)) == (places, 3)  # all texts were asked about together, before
    with torch.no_grad():
        model.classifier.weight.neg_()
    assert late[0].places == places
