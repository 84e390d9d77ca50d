"""The model that every run is measured against: scikit-learn's logistic regression, and the most frequent tag."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_training import config, weights

from wordward.config.settings import TrainConfig
from wordward.runs import run_folder
from wordward.runs.yardstick_scores import compared, remedies
from wordward.support.distributed import Team
from wordward.text.corpus import Corpus
from wordward.text.ragged import Rows
from wordward.text.vocabulary import EOS, PAD, UNK, Vocabulary
from wordward.train.data import Data, prepare
from wordward.train.sweep import train_sweep
from wordward.train.training import train
from wordward.train.yardstick import (
    fit_linear,
    frequent_tags,
    linear_probabilities,
    measured,
    tag_probabilities,
    yardstick_of,
)

WORDS = 400


def texts(count: int, classes: int, *, seed: int) -> Corpus:
    """Texts whose words depend on their class; some are empty, words repeat, and the first class is the largest."""
    rng = np.random.default_rng([seed, 1])
    labels = rng.choice(classes, count, p=np.geomspace(8, 1, classes) / np.geomspace(8, 1, classes).sum())
    often = 1 / np.arange(1, WORDS - 2)
    tilt = np.random.default_rng(0).normal(0, 0.7, (classes, WORDS - 3))
    rows = []
    for label in labels:
        shares = often * np.exp(tilt[label])
        own = rng.choice(WORDS - 3, rng.integers(0, 50), p=shares / shares.sum()) + 3
        rows.append(np.array([*own, *own[:2], *[UNK] * rng.integers(0, 3), EOS], dtype=np.int32))
    rows[0] = np.array([EOS], dtype=np.int32)
    return Corpus(rows, labels)


def random_state() -> str:
    return str(np.random.get_state(legacy=False))


def words_of(corpus: Corpus) -> list[list[str]]:
    return [[f"w{number:04d}" for number in row if number > EOS] for row in corpus.rows]


@pytest.mark.parametrize("classes", [2, 6])
def test_it_is_scikit_learns_logistic_regression_on_tf_idf(classes: int) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    vectorizer = pytest.importorskip("sklearn.feature_extraction.text").TfidfVectorizer(
        sublinear_tf=True, analyzer=lambda words: words
    )
    train, test = texts(600, classes, seed=0), texts(1000, classes, seed=1)
    theirs = linear_model.LogisticRegression(C=10, tol=1e-8, max_iter=5000)
    theirs.fit(vectorizer.fit_transform(words_of(train)), train.labels)
    expected = theirs.predict_proba(vectorizer.transform(words_of(test)))

    ours = fit_linear(train, WORDS, classes)
    found = np.stack(linear_probabilities(ours, test))
    assert (found.argmax(1) == expected.argmax(1)).mean() >= 0.99
    assert np.abs(found - expected).max() < 0.01
    used = np.array([int(word[1:]) for word in vectorizer.get_feature_names_out()])
    np.testing.assert_allclose(ours.idf[used], vectorizer.idf_, rtol=1e-5)
    coefficients = (ours.evidence[used] / ours.idf[used, None]).T
    if classes == 2:
        np.testing.assert_allclose(coefficients[0], -coefficients[1])
        coefficients = coefficients[1:] - coefficients[:1]
    assert np.linalg.norm(coefficients - theirs.coef_) < 0.01 * np.linalg.norm(theirs.coef_)


def test_special_ids_and_words_of_no_training_text_count_for_nothing() -> None:
    train = Corpus([np.array([3, 4, UNK, EOS]), np.array([3, 5, EOS]), np.array([EOS])], [0, 1, 1])
    linear = fit_linear(train, words=8, classes=2)
    assert linear.evidence.dtype == linear.idf.dtype == linear.bias.dtype == np.float32
    assert linear.evidence.shape == (8, 2)
    assert linear.idf.shape == (8,)
    assert linear.bias.shape == (2,)
    nothing = [PAD, UNK, EOS, 6, 7]
    assert not linear.idf[nothing].any()
    assert not linear.evidence[nothing].any()
    assert linear.idf[[3, 4, 5]].all()
    plain, more = linear_probabilities(linear, Corpus([np.array([4]), np.array([UNK, 4, 6, 7, EOS])]))
    np.testing.assert_array_equal(plain, more)
    assert plain.argmax() == 0
    assert plain[0] > 0.5


def test_one_occurrence_adds_its_evidence_before_the_text_is_normalised() -> None:
    linear = fit_linear(texts(200, 3, seed=0), WORDS, 3)
    (found,) = linear_probabilities(linear, Corpus([np.array([10, 20, 20])]))
    weights = np.array([1, 1 + np.log(2)])
    length = np.linalg.norm(weights * linear.idf[[10, 20]])
    scores = weights @ linear.evidence[[10, 20]] / length + linear.bias
    np.testing.assert_allclose(found, np.exp(scores) / np.exp(scores).sum(), rtol=1e-5)


def test_a_class_without_texts_is_never_predicted_and_every_number_is_finite() -> None:
    train = texts(200, 3, seed=0)
    linear = fit_linear(train, WORDS, classes=4)
    assert all(np.isfinite(each).all() for each in linear)
    found = np.stack(linear_probabilities(linear, train))
    assert found.shape == (200, 4)
    assert 3 not in found.argmax(1)


def test_texts_without_known_words_are_predicted_by_the_shares_of_the_classes() -> None:
    train = Corpus([np.array([EOS])] * 4, [1, 1, 1, 0])
    (found,) = linear_probabilities(fit_linear(train, words=3, classes=2), Corpus([np.array([UNK, EOS])]))
    np.testing.assert_allclose(found, [0.25, 0.75], atol=0.01)


def test_rows_of_any_kind_give_the_same_model_twice_and_leave_torch_as_it_was() -> None:
    train = texts(300, 2, seed=0)
    before, drawn, threads = torch.random.get_rng_state(), random_state(), torch.get_num_threads()
    first = fit_linear(train, WORDS, 2)
    again = fit_linear(Corpus(Rows.of(train.rows), train.labels), WORDS, 2)
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert random_state() == drawn
    assert torch.get_num_threads() == threads
    assert torch.is_grad_enabled()


def test_texts_are_counted_alike_in_one_part_and_in_many(monkeypatch: pytest.MonkeyPatch) -> None:
    train = texts(50, 2, seed=0)
    whole = fit_linear(train, WORDS, 2)
    monkeypatch.setattr("wordward.train.linear.COUNTED", 60)
    parts = fit_linear(train, WORDS, 2)
    np.testing.assert_array_equal(whole.evidence, parts.evidence)


def test_it_takes_seconds() -> None:
    ids = np.random.default_rng(0).geometric(1 / 3000, (5000, 120)).clip(max=20_000 - 4) + 3
    train = Corpus(list(ids), (ids == 3).any(1).astype(int))
    started = time.process_time()
    fit_linear(train, 20_000, 2)
    assert time.process_time() - started < 6  # about 1.5 on one core


def test_each_word_has_its_most_frequent_tag_and_unknown_words_that_of_all() -> None:
    sentences = [np.array([3, 4, UNK]), np.array([3, 4, 4]), np.array([3, 5])]
    tags = [np.array([0, 1, 2]), np.array([0, 2, 1]), np.array([2, 0])]
    found = frequent_tags(Corpus(sentences, tags), words=7, classes=3)
    assert found.tolist() == [0, 0, 0, 0, 1, 0, 0]
    short, empty = tag_probabilities(found, Corpus([np.array([4, UNK]), np.zeros(0, np.int32)]), 3)
    np.testing.assert_array_equal(short, [[0, 1, 0], [1, 0, 0]])
    assert empty.shape == (0, 3)


@pytest.mark.parametrize("tagging", [False, True])
def test_scores_are_those_of_the_run(tagging: bool) -> None:
    words = Vocabulary.build([["warm", "dull", "film"]], min_documents=1)
    warm, dull, film = (words[word] for word in ("warm", "dull", "film"))
    rows = [np.array([warm, film]), np.array([dull, film])] * 3
    labels: Any = [np.array([0, 1]), np.array([1, 1])] * 3 if tagging else [0, 1] * 3
    wrong = [*labels[:5], labels[0]]
    positive = 1 if tagging else None
    data = Data(words, ("a", "b"), Corpus(rows, labels), Corpus(rows, wrong), None, tagging, positive)
    found = measured(data)
    assert found["error"].value == pytest.approx(1 / 12 if tagging else 1 / 6)
    assert set(found) == {"error", "macro_f1", *(("precision", "recall", "f0.5") if tagging else ())}


def said(text: str) -> str:
    """A message in one line."""
    return " ".join(text.split())


@pytest.mark.parametrize(("kind", "name"), [("csv_file", "linear model on"), ("conll_file", "most frequent tag of")])
def test_a_run_keeps_its_yardstick_and_says_how_it_stands(
    kind: str, name: str, tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = config(request.getfixturevalue(kind), "baseline", epochs=1, learning_rate=1e-6)
    result = train(settings, tmp_path / "run")
    entry = result["yardstick"]
    settled, data = prepare(settings, quiet=True)
    assert entry["dev"] == {at: interval.value for at, interval in measured(data).items()}
    assert entry["dev"].keys() == result["dev"].keys()
    assert entry["name"].startswith(name)
    assert entry["seconds"] < 10
    assert run_folder.load_result(tmp_path / "run") == result
    line, shown = compared(result, settled), said(capsys.readouterr().err)
    assert "worse than the yardstick's" in line  # a step of 1e-6 teaches nothing, and the words tell all
    assert shown.endswith(said(line))


def test_a_run_without_it_is_compared_with_nothing(csv_file: Path, tmp_path: Path) -> None:
    settings = config(csv_file, "baseline", epochs=1)
    result = train(settings, tmp_path / "run", quiet=True)
    assert compared(result, settings)
    assert not compared(result | {"yardstick": None}, settings)
    assert not compared({name: value for name, value in result.items() if name != "yardstick"}, settings)
    assert not compared(result | {"dev": None}, settings)


@pytest.mark.parametrize(
    ("criterion", "ours", "stands"),
    [
        ("error", 0.13, "worse than"),
        ("error", 0.11, "not clearly different from"),
        ("error", 0.09, "not clearly different from"),
        ("error", 0.07, "better than"),
        ("f0.5", 0.07, "worse than"),
        ("f0.5", 0.13, "better than"),
    ],
)
def test_a_difference_counts_beyond_its_standard_error(criterion: str, ours: float, stands: str) -> None:
    # 95 % of 0.1 +- 0.0196: a standard error of 0.01, and of the difference of two such 0.0141
    entry = {"name": "that", "dev": {criterion: 0.1}, "intervals": {criterion: [0.0804, 0.1196]}, "seconds": 1.0}
    result = {"criterion": criterion, "dev": {criterion: ours}, "yardstick": entry}
    line = compared(result, TrainConfig())
    assert line.startswith(f"dev {criterion} {ours:.4f}, {stands} the yardstick's 0.1000 (that)")
    assert ("more `epochs`" in line) == (stands == "worse than")


def test_the_advice_leaves_out_what_was_given() -> None:
    assert "`vectors`" in remedies(TrainConfig())
    assert "`transformer`" in remedies(TrainConfig())
    assert "`vectors`" not in remedies(TrainConfig(vectors="vectors.txt"))
    assert "`vectors`" not in remedies(TrainConfig(pretrained="runs/lm"))
    assert "Hugging Face" not in remedies(TrainConfig(transformer="folder"))


def test_the_trials_of_a_sweep_fit_it_once(csv_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = []
    monkeypatch.setattr("wordward.train.yardstick._LAST", {})
    monkeypatch.setattr(
        "wordward.train.yardstick.fit_linear", lambda *given: fitted.append(given) or fit_linear(*given)
    )
    train_sweep(config(csv_file, epochs=1), ["epsilon=0.5,1,2"], tmp_path / "sweep", quiet=True)
    assert len(fitted) == 1
    kept = [run_folder.load_result(tmp_path / "sweep" / name) or {} for name in (".", "epsilon=0.5", "epsilon=2")]
    assert kept[0]["yardstick"] == kept[1]["yardstick"] == kept[2]["yardstick"]
    yardstick_of(prepare(config(csv_file, seed=1), quiet=True)[1])  # holds out other texts
    assert len(fitted) == 2


def test_other_processes_leave_it_to_the_first(
    csv_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Second(Team):
        @property
        def first(self) -> bool:
            return False

    def refuse(*given: Any, **options: Any) -> None:
        raise AssertionError

    monkeypatch.setattr("wordward.train.training.team", lambda device: Second())
    monkeypatch.setattr("wordward.train.training.yardstick_of", refuse)
    assert train(config(csv_file, epochs=1), tmp_path / "run", quiet=True) == {}


def test_weights_are_those_of_a_run_without_it(
    csv_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config(csv_file, "iadvt", epochs=1)
    monkeypatch.setattr("wordward.train.yardstick._LAST", {})
    train(settings, tmp_path / "with", quiet=True)
    monkeypatch.setattr("wordward.train.training.yardstick_of", lambda data, quiet: None)
    train(settings, tmp_path / "without", quiet=True)
    ours, plain = weights(tmp_path / "with"), weights(tmp_path / "without")
    assert all(torch.equal(ours[name], plain[name]) for name in plain)


def test_tags_that_mark_entities_are_scored_by_their_names() -> None:
    words = Vocabulary.build([["anna", "bert", "sings"]], min_documents=1)
    rows = [np.array([words["anna"], words["bert"], words["sings"]])]
    named = Corpus(rows, [np.array([0, 1, 2])])
    spans = Data(words, ("B-PER", "I-PER", "O"), named, named, None, True)
    plain = Data(words, ("first", "last", "other"), named, named, None, True)
    assert yardstick_of(plain)["dev"].keys() == {"error", "macro_f1"}
    assert yardstick_of(spans)["dev"]["entity_f1"] == 1  # the same numbers, and other names
