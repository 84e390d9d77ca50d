"""A run at work: every token gets a tag, scores with and without intervals, devices, texts without label."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from untrained import a_run

import wordward
from wordward.config.settings import ModelSettings, PretrainConfig, TextSettings, TrainConfig
from wordward.datasets import Example
from wordward.models import Classifier, Tagger
from wordward.perturbation import objective
from wordward.runs import run as predicting
from wordward.runs import scoring
from wordward.runs.run import Run
from wordward.runs.run_folder import RunError, load_config
from wordward.runs.scoring import probabilities, scores
from wordward.runs.word_run import WordRun
from wordward.support.device import pick_device
from wordward.text.corpus import Corpus
from wordward.text.vocabulary import Vocabulary

SENTENCE = "well the film are lovely and warm".split()
MODEL = ModelSettings(dim=6, hidden=5, head=4)


def a_tagger(max_length: int | None) -> Run:
    vocabulary = Vocabulary.build([SENTENCE] * 3)
    torch.manual_seed(0)
    model = Tagger(len(vocabulary), 2, MODEL).eval()
    settings = TrainConfig(task="tag", text=TextSettings(max_length=max_length), model=MODEL)
    return WordRun(Path("nowhere"), settings, vocabulary, ("c", "i"), model, torch.device("cpu"))


def test_a_tagger_tags_every_token_however_few_it_was_trained_on() -> None:
    short, whole = a_tagger(3), a_tagger(None)
    text = " ".join(SENTENCE)
    (record,) = short.predict([text])
    assert [token.token for token in record.tokens] == SENTENCE
    assert record == whole.predict([text])[0]


def test_a_tagger_is_scored_on_every_token() -> None:
    run = a_tagger(3)
    tags = ("c", "c", "c", "i", "i", "i", "i")
    corpus = run.encode([Example(" ".join(SENTENCE), tokens=tuple(SENTENCE), tags=tags)], labelled=True)
    assert corpus.labels is not None
    assert [len(row) for row in corpus.rows] == [len(each) for each in corpus.labels] == [7]  # type: ignore[arg-type]
    said = [token.label for token in run.predict([" ".join(SENTENCE)])[0].tokens]
    wrong = sum(one != other for one, other in zip(said, tags, strict=True)) / 7
    assert run.evaluate_corpus(corpus).scores["error"].value == pytest.approx(wrong)


def test_a_classifier_still_reads_only_so_many_words() -> None:
    vocabulary = Vocabulary.build([SENTENCE] * 3)
    settings = TrainConfig(task="classify", text=TextSettings(max_length=3), model=MODEL)
    model = Classifier(len(vocabulary), 2, MODEL).eval()
    run = WordRun(Path("nowhere"), settings, vocabulary, ("bad", "good"), model, torch.device("cpu"))
    assert len(run.encode([Example(" ".join(SENTENCE))], labelled=False).rows[0]) == 4  # with <eos>
    first, second = run.predict([" ".join(SENTENCE), " ".join(SENTENCE[:3])])
    assert first.probabilities == second.probabilities


@pytest.mark.parametrize("tagging", [False, True])
def test_scores_without_intervals_are_the_values_alone(tagging: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    shape = (4, 2) if tagging else (2,)
    found = [rng.random(shape) for _ in range(20)]
    labels = [rng.integers(0, 2, 4) for _ in found] if tagging else rng.integers(0, 2, 20)
    corpus = Corpus([np.zeros(4, np.int32)] * 20, labels)
    positive = 1 if tagging else None
    whole = scores(corpus, found, ("c", "i"), positive=positive)
    drawn = []

    def counted(measure: Any) -> Any:
        return lambda *of, resamples: drawn.append(resamples) or measure(*of, resamples=resamples)

    for name in ("macro_f1", "precision_recall_f"):
        monkeypatch.setattr(scoring, name, counted(getattr(scoring, name)))
    plain = scores(corpus, found, ("c", "i"), positive=positive, intervals=False)
    assert drawn == [1] * (2 if tagging else 1)
    assert plain == {name: (each.value,) * 3 for name, each in whole.items()}
    assert any(each.low < each.value < each.high for each in whole.values())


def test_a_model_is_in_training_again_even_after_an_error() -> None:
    class Broken(torch.nn.Module):
        def forward(self, *_: object) -> None:
            assert not self.training
            raise RuntimeError("out of memory")

    model = Broken().train()
    with pytest.raises(RuntimeError, match="out of memory"):
        probabilities(model, Corpus([np.array([3, 4])]), torch.device("cpu"))
    assert model.training


def test_devices_that_are_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert pick_device("auto").type == "cpu"
    for name in ("warp-drive", "CPU"):
        with pytest.raises(ValueError, match=r"cannot be used here \([^()]{,60}\): choose cpu$"):
            pick_device(name)

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("Found no driver. Please read https://where.to\nand more")

    monkeypatch.setattr(torch, "zeros", broken)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(ValueError, match=r"\(Found no driver\): choose cuda or cpu$"):
        pick_device("cuda:9")


def test_texts_without_label_have_no_loss() -> None:
    logits = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    nothing = objective.label_loss(logits, torch.full((3,), objective.IGNORE))
    (gradient,) = torch.autograd.grad(nothing, logits)
    assert float(nothing.detach()) == 0.0
    assert not gradient.any()
    some = torch.tensor([1, objective.IGNORE, 0])
    expected = torch.nn.functional.cross_entropy(logits[[0, 2]], some[[0, 2]])
    torch.testing.assert_close(objective.label_loss(logits, some), expected)


@pytest.mark.parametrize("method", ["advt", "iadvt"])
def test_a_batch_without_labels_is_left_where_it_is(method: str) -> None:
    model, ids = Classifier(9, 2, MODEL).eval(), torch.tensor([[3, 4, 5], [6, 7, 8]])
    out = wordward.adversary(model, method, k=3)(lambda: model(ids), torch.full((2,), objective.IGNORE))
    assert float(out.loss.detach()) == 0.0
    assert not out.perturbation.any()
    out.loss.backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_a_run_of_the_other_kind_is_named_and_a_damaged_one_is_not(tmp_path: Path) -> None:
    for text, kind, said in (
        ("streams = 4\n", TrainConfig, "is a language model of wordward pretrain"),
        ('method = "advt"\n', PretrainConfig, "not a language model of wordward pretrain"),
        ("nothing = 1\n", TrainConfig, "cannot be read"),
        ("nothing = 1\n", PretrainConfig, "cannot be read"),
    ):
        (tmp_path / "config.toml").write_text(text)
        with pytest.raises(RunError, match=said):
            load_config(tmp_path, kind)


def test_many_texts_are_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    run, texts = a_run(), [" ".join(["a"] * length) for length in (3, 1, 5, 2, 4)]
    together = run.predict(texts)
    monkeypatch.setattr(predicting, "AT_ONCE", 2)
    parts = run.predict(texts)
    assert [each.text for each in parts] == texts
    for one, other in zip(parts, together, strict=True):
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-6)


def test_a_run_is_shown_in_a_line() -> None:
    assert repr(a_run()) == "<classifier runs/mine on cpu: 2 labels (bad, good)>"
    assert repr(a_run(task="tag")).startswith("<tagger")
