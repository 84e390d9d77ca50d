"""Faithfulness: which word each choice names, and how often swaps of it flip the prediction."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from any_model import Guard, fine_tuned
from reported import METHOD, SMALL
from reviews import BLAME, PRAISE, reviews, tagged, write_conll, write_csv

import wordward
from wordward.cli.main import main
from wordward.datasets import Example
from wordward.explain import faithfulness as measured
from wordward.explain.attribution import attributions, gradients
from wordward.explain.explainer import Explainer
from wordward.explain.faithfulness import CHOICES, _choosable, _flips
from wordward.runs.run import Run
from wordward.support.errors import DataError, SettingError

TEXTS = reviews(20, seed=7)


@pytest.fixture(scope="module", params=["lstm", "convolution", "folder"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "folder":
        return wordward.open_model(str(fine_tuned(folder / "sentiment")), device="cpu")
    train = str(write_csv(folder / "train.csv", reviews(200)))
    small = [*METHOD, *SMALL, "--kind", request.param]
    assert main(["train", "--out", str(folder / "run"), "--method", "baseline", "--train", train, *small]) == 0
    return wordward.load_run(folder / "run", device="cpu")


def test_every_choice_has_the_same_candidates_and_its_numbers(run: Run):
    found = measured(run, TEXTS)
    assert list(found.flips) == list(CHOICES)
    assert not found.skipped
    assert list(found.ahead) == ["shown", "gradient", "captum", "random"]
    for name, ahead in found.ahead.items():
        assert ahead.value == pytest.approx(found.flips["pull"].value - found.flips[name].value)
        assert ahead.low <= ahead.value <= ahead.high
    assert measured(run, TEXTS) == found
    assert json.loads(json.dumps(found.to_json()))["flips"]["pull"]["value"] == found.flips["pull"].value


def test_a_flip_that_explain_shows_counts(run: Run):
    """The word put in is among the candidates of its place, so that what is shown to flip a text flips it here."""
    right = [each for each in TEXTS if run.predict([each])[0].label == each.label]
    flipping = 0
    for explained in run.explain([each.text for each in right]):
        place = explained.strongest
        if place is not None and place.pull is not None and place.pull.prediction not in (None, explained.predicted):
            flipping += 1
    found = measured(run, TEXTS)
    assert found.flips["shown"].value * found.texts >= flipping - (len(right) - found.texts)
    assert measured(run, TEXTS, method="advt").skipped["shown"] == "the model is not asked about the pulls of advt"


def test_only_texts_predicted_right_count(run: Run):
    right = [each for each in TEXTS if run.predict([each])[0].label == each.label]
    assert measured(run, TEXTS).texts <= len(right)
    swap = {"good": "bad", "bad": "good"}
    with pytest.raises(DataError, match="two words or more"):
        measured(run, [replace(each, label=swap[str(each.label)]) for each in right])


def test_gradients_are_those_of_the_loss(run: Run):
    explainer = Explainer(run)
    (one,) = _choosable([explainer], ["the film was warm and lovely"])
    (norms,) = gradients(explainer, [one.reading.row], [one.label])
    table = explainer.adversary.tap.embedding
    kept: list[torch.Tensor] = []

    def keep(_: Any, __: Any, out: torch.Tensor) -> torch.Tensor:
        kept.append(out)
        out.retain_grad()
        return out

    hook = table.register_forward_hook(keep)
    ids = torch.from_numpy(one.reading.row.ids.astype(np.int64))[None]
    with torch.enable_grad():
        logits = run.model.eval()(ids, torch.ones_like(ids, dtype=torch.bool))
        torch.nn.functional.cross_entropy(logits, torch.tensor([one.label])).backward()
    hook.remove()
    assert kept[0].grad is not None
    squares = kept[0].grad[0].square().sum(-1)
    for at, first in enumerate(one.reading.row.first):
        assert norms[at] == pytest.approx(float(squares[first]), rel=1e-4)
    run.model.zero_grad()


def test_attributions_add_up_to_the_difference(run: Run):
    """Integrated gradients of all ids are what the label's logit gains over a text of padding."""
    explainer = Explainer(run)
    (one,) = _choosable([explainer], ["the film was warm and lovely"])
    (given,) = attributions(explainer, [one.reading.row], [one.label])
    row = one.reading.row
    ids = torch.from_numpy(row.ids.astype(np.int64))[None]
    blank = torch.where(torch.from_numpy(row.word >= 0)[None], explainer.adversary.tap.padding or 0, ids)
    mask = torch.ones_like(ids, dtype=torch.bool)
    with torch.no_grad():
        gain = (run.model(ids, mask) - run.model(blank, mask))[0, one.label]
    assert sum(given.values()) == pytest.approx(float(gain), abs=0.1 * abs(float(gain)) + 0.02)


def test_a_flip_is_another_label_of_the_text_as_a_whole(run: Run):
    explainer = Explainer(run)
    for one in _choosable([explainer], TEXTS[:6]):
        for at, flips in _flips(run, one, set(one.candidates)).items():
            token = one.reading.tokens[at]
            start, end = token.start, token.end
            text = one.reading.text
            made = [text[:start] + run.vocabulary.word(word) + text[end:] for word in one.candidates[at]]
            labels = {each.label for each in run.predict(made)}
            assert flips == (labels != {run.labels[one.label]})


def test_the_word_that_matters_is_found(run: Run):
    """Words of praise and blame decide: where one may be swapped, the strongest pull mostly names it."""
    explainer, hits = Explainer(run), []
    for one in _choosable([explainer], TEXTS):
        telling = {at for at in one.candidates if one.reading.tokens[at].text in PRAISE + BLAME}
        if telling:
            hits.append(max(one.candidates, key=lambda place: one.pulls[place]) in telling)
    assert sum(hits) > 0.65 * len(hits) > 5


def test_without_captum(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys.modules["wordward.explain.faithfulness"], "find_spec", lambda name: None)
    found = measured(run, TEXTS)
    assert "captum" not in found.flips
    assert "pip install 'wordward[captum]'" in found.skipped["captum"]


def test_what_cannot_be_measured_is_refused(tmp_path: Path):
    with pytest.raises(SettingError, match="no gradients"):
        measured(wordward.open_model(Guard()), TEXTS)
    tags = str(write_conll(tmp_path / "tags.conll", tagged(40)))
    assert (
        main(["train", "--out", str(tmp_path / "run"), "--train", tags, "--kind", "lstm", "--epochs", "1", *SMALL])
        == 0
    )
    with pytest.raises(SettingError, match="for classifiers"):
        measured(wordward.load_run(tmp_path / "run", device="cpu"), [Example("the film is warm")])
