"""The scikit-learn estimator: scikit-learn's own checks, the same run as `wordward train`, input and errors."""

import csv
import pickle
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from reviews import reviews
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.validation import check_is_fitted, validate_data

from wordward.cli.main import main
from wordward.config.settings import (
    DataSettings,
    ModelSettings,
    TextSettings,
    TrainConfig,
    TrainingSettings,
)
from wordward.perturbation.settings import MethodSettings
from wordward.runs import checkpoint, run_folder
from wordward.runs.opening import load_run
from wordward.sklearn import TextClassifier
from wordward.sklearn.parameters import config_of
from wordward.train import choosing
from wordward.train.training import DivergedError, train

SMALL: Any = {"dim": 8, "hidden": 8, "head": 4, "epochs": 2, "batch_size": 16, "learning_rate": 0.02}
LOUD: Any = {"error_score": "raise"}
PLAIN: Any = {"word_dropout": 0.0, "head_dropout": 0.0}
TEXTS = [example.text for example in reviews(60)]
LABELS = [str(example.label) for example in reviews(60)]
ELSEWHERE = {
    "train",
    "corpus",
    "dev",
    "test",
    "unlabelled",
    "limit",
    "text_column",
    "label_column",
    "tag_column",
}
ELSEWHERE |= {"format", "skip_empty", "pair_column", "average", "positive"}  # of files, of taggers
ELSEWHERE |= {"checkpoint_steps", "report_to"}  # of long runs
SIZES = {"dim", "hidden"}


class OfNumbers(TextClassifier):
    """Rows of numbers read as sentences, since scikit-learn has no checks with texts."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = tags.input_tags.string = False
        tags.input_tags.two_d_array = True
        return tags

    def fit(self, X: Any, y: Any = None, *, unlabelled: Any = None) -> "OfNumbers":  # noqa: N803
        rows, labels = validate_data(self, X, y)
        super().fit(_said(rows), labels)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:  # noqa: N803
        check_is_fitted(self)
        return super().predict_proba(_said(validate_data(self, X, reset=False)))


def _said(rows: Any) -> list[str]:
    """Each number as a word: its column and its whole part, as in b_3 for 3.7 in the second column."""
    numbers = np.floor(rows).clip(-5, 5).astype(int) + 5
    return [" ".join(f"{chr(97 + at)}_{number}" for at, number in enumerate(row)) for row in numbers]


NUMBERS: Any = OfNumbers("baseline", min_documents=1, **{**SMALL, **PLAIN, "epochs": 4, "learning_rate": 0.08})

CHECKS: Any = list(estimator_checks_generator(NUMBERS))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("check", [check for _, check in CHECKS], ids=[check.func.__name__ for _, check in CHECKS])
def test_scikit_learns_own_checks(check: Any) -> None:
    check(clone(NUMBERS))


def test_it_says_that_it_reads_texts() -> None:
    tags = TextClassifier().__sklearn_tags__()
    assert tags.input_tags.string
    assert not tags.input_tags.two_d_array
    assert tags.target_tags.required
    assert tags.estimator_type == "classifier"


def test_every_setting_is_a_parameter_with_the_same_default_or_left_open() -> None:
    given = TextClassifier().get_params()
    for kind in (DataSettings, TextSettings, ModelSettings, MethodSettings, TrainingSettings):
        settings = {name: value for name, value in vars(kind()).items() if name not in ELSEWHERE | SIZES}
        settings.pop("seed", None)
        found = {name: given.get(name, "missing") for name in settings}
        assert {name: settings[name] if value is None else value for name, value in found.items()} == settings


@pytest.mark.parametrize(("method", "averaging"), [("iadvt", 0.0), ("ivat", 0.9)])
def test_the_model_is_the_one_that_wordward_train_makes(method: str, averaging: float, tmp_path: Path) -> None:
    more = [example.text for example in reviews(40, seed=1)] if method == "ivat" else None
    chosen = TextClassifier(method, averaging=averaging, random_state=3, **SMALL)
    found = chosen.fit(TEXTS, LABELS, unlabelled=more)
    for name, rows in (
        ("train.csv", zip(TEXTS, LABELS, strict=True)),
        ("more.csv", ((t, "") for t in more or ())),
    ):
        with (tmp_path / name).open("w", newline="") as file:
            csv.writer(file).writerows([("text", "label"), *rows])
    data = DataSettings(str(tmp_path / "train.csv"), unlabelled=str(tmp_path / "more.csv") if more else None)
    sizes = ModelSettings(dim=8, hidden=8, head=4)
    training = TrainingSettings(epochs=2, batch_size=16, learning_rate=0.02, averaging=averaging, seed=3)
    config = TrainConfig(method=method, data=data, model=sizes, training=training)
    train(config, tmp_path / "run", quiet=True)
    for name, weights in load_run(tmp_path / "run").model.state_dict().items():
        torch.testing.assert_close(found.run_.model.state_dict()[name], weights, rtol=0, atol=0)


def test_with_nothing_given_it_chooses_as_wordward_train_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(choosing, "installed_model", lambda: None)
    more = [example.text for example in reviews(40, seed=1)]
    found = TextClassifier("ivat", epochs=2, device="cpu", verbose=True).fit(TEXTS, LABELS, unlabelled=more)
    assert found.chosen_
    assert found.chosen_.startswith("chosen: a convolution beside a linear model, from word vectors computed from ")
    assert found.chosen_ in " ".join(capsys.readouterr().err.split())
    config = TrainConfig("ivat", training=TrainingSettings(epochs=2, device="cpu"))
    train(config, tmp_path / "run", train=list(zip(TEXTS, LABELS, strict=True)), unlabelled=more, quiet=True)
    made = load_run(tmp_path / "run")
    assert (found.run_.config.model, found.run_.config.training) == (made.config.model, made.config.training)
    assert made.config.training.self_training
    for name, weights in made.model.state_dict().items():
        torch.testing.assert_close(found.run_.model.state_dict()[name], weights, rtol=0, atol=0)
    assert found.predict_proba([*TEXTS[:2], ""]).shape == (3, 2)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ModelSettings()),
        ({"kind": "convolution"}, ModelSettings(kind="convolution")),
        ({"kind": "lstm"}, ModelSettings(kind="lstm", dim=64, hidden=128)),
        ({"hidden": 8}, ModelSettings(kind="lstm", dim=64, hidden=8)),
        ({"word_dropout": 0.1}, ModelSettings(kind="lstm", dim=64, hidden=128, word_dropout=0.1)),
        ({"dim": 256, "hidden": 1024}, ModelSettings(kind="lstm")),
        ({"head": 30}, ModelSettings(kind="lstm", dim=64, hidden=128)),
        ({"kind": "convolution", "dim": 8}, ModelSettings(kind="convolution", dim=8, hidden=128)),
        ({"pretrained": "runs/lm"}, ModelSettings(kind="lstm", dim=64, hidden=128)),
    ],
)
def test_what_is_given_of_a_model_keeps_its_meaning(given: dict[str, Any], expected: ModelSettings) -> None:
    assert config_of(TextClassifier(**given).get_params(deep=False), DataSettings("x")).model == expected


def test_what_is_given_with_its_default_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "installed_model", lambda: None)
    plain: Any = {"tokenizer": "words", "lowercase": False, "min_documents": 2, "decay": 0.9998, "gradual": False}
    found = TextClassifier("baseline", epochs=1, device="cpu", **plain).fit(TEXTS, LABELS)
    kept = found.run_.config
    assert kept.model.kind == "convolution"
    assert (kept.text.tokenizer, kept.text.lowercase, kept.text.min_documents) == ("words", False, 2)
    assert (kept.training.schedule, kept.training.decay, kept.training.gradual) == ("exponential", 0.9998, False)


def test_a_chosen_transformer_is_pickled_saved_and_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    small = pytest.importorskip("hf_tiny").saved(tmp_path / "tiny")
    monkeypatch.setattr(choosing, "installed_model", lambda: small)
    monkeypatch.setattr(choosing, "_known", lambda words, folder: 1.0)
    found = TextClassifier("iadvt", epochs=1, k=3, device="cpu").fit(TEXTS, LABELS)
    assert found.chosen_
    assert "Transformer" in found.chosen_
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.predict_proba([*TEXTS, ""]), found.predict_proba([*TEXTS, ""]))
    assert again.explain(TEXTS[:1])[0].strongest is not None
    run = load_run(again.save(tmp_path / "saved"))
    assert [record.label for record in run.predict(TEXTS)] == found.predict(TEXTS).tolist()


def copied(model: TextClassifier) -> Any:
    return clone(model)


def test_a_seed_gives_the_same_model_and_leaves_the_callers_chance_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    one = TextClassifier(**SMALL).fit(TEXTS, LABELS)
    assert torch.equal(torch.rand(3), expected)
    again = copied(one).fit(pd.Series(TEXTS, index=range(7, 67)), np.array(LABELS))
    np.testing.assert_array_equal(one.predict_proba(TEXTS), again.predict_proba(np.array(TEXTS)))
    other = copied(one).set_params(random_state=1).fit(TEXTS, LABELS)
    assert not np.allclose(one.predict_proba(TEXTS), other.predict_proba(TEXTS))
    drawn = [copied(one).set_params(random_state=np.random.RandomState(0)).fit(TEXTS, LABELS) for _ in range(2)]
    np.testing.assert_array_equal(*(each.predict_proba(TEXTS) for each in drawn))


@pytest.mark.parametrize("names", [(10, 9, 2), ("fair", "good", "bad"), (3.0, 1.0, 2.0)])
def test_labels_come_back_as_they_went_in(names: tuple[Any, ...]) -> None:
    said = dict(zip(names, ("warm lovely", "dull cold", "usual plain"), strict=True))
    texts = [f"{opening} was {words}" for words in said.values() for opening in "abcdefghijklmnop"]
    labels = np.repeat(names, 16)
    settings = {**SMALL, **PLAIN, "head": 16, "epochs": 15, "patience": 15, "dev_share": 0.3}
    found = TextClassifier("baseline", **settings).fit(texts, labels)
    assert found.classes_.tolist() == sorted(names)
    assert found.predict(texts).tolist() == labels.tolist()
    assert found.score(texts, labels) == 1.0
    probabilities = found.predict_proba(texts)
    assert (found.classes_[probabilities.argmax(1)] == labels).all()
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-15)


@pytest.mark.slow
def test_in_a_pipeline_a_grid_and_cross_validation() -> None:
    upper = [text.upper() for text in TEXTS]
    pipeline = make_pipeline(
        FunctionTransformer(lambda texts: [text.lower() for text in texts]), TextClassifier(**SMALL)
    )
    grid = {
        "textclassifier__method": np.array(["advt", "iadvt"]),
        "textclassifier__epsilon": np.array([0.5, 2.0]),
        "textclassifier__k": np.array([4]),
    }
    search = GridSearchCV(pipeline, grid, cv=2, scoring="neg_log_loss", **LOUD).fit(upper, LABELS)
    assert len({float(score) for score in search.cv_results_["mean_test_score"]}) == 4
    chosen = search.best_estimator_["textclassifier"]
    assert chosen.run_.config.method == search.best_params_["textclassifier__method"]
    assert chosen.run_.config.perturbation.epsilon == search.best_params_["textclassifier__epsilon"]
    assert set(search.predict(upper)) <= {"good", "bad"}
    assert len(cross_val_score(TextClassifier("baseline", **SMALL), pd.Series(TEXTS), pd.Series(LABELS), cv=3)) == 3
    calibrated = CalibratedClassifierCV(TextClassifier("baseline", **SMALL), cv=2).fit(TEXTS, LABELS)
    assert calibrated.predict_proba(TEXTS).shape == (60, 2)


def test_saved_it_is_an_ordinary_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = TextClassifier("iadvt+ivat", **SMALL).fit(TEXTS, LABELS, unlabelled=TEXTS[:20])
    run = load_run(found.save(tmp_path / "run"))
    records = run.predict(TEXTS)
    assert [record.label for record in records] == found.predict(TEXTS).tolist()
    assert len(run_folder.read_metrics(tmp_path / "run")) == 2
    assert run.config.data.train == run.config.data.unlabelled == "TextClassifier.fit"
    assert checkpoint.load_class_counts(tmp_path / "run", run.vocabulary) is not None
    assert main(["explain", str(tmp_path / "run"), TEXTS[0]]) == 0
    assert main(["attack", str(tmp_path / "run"), "--text", TEXTS[0]]) == 0
    assert "iAdvT" in capsys.readouterr().out
    with pytest.raises(run_folder.RunError, match="choose another `out`, or `force=True` to replace it"):
        found.save(tmp_path / "run")
    found.save(tmp_path / "run", force=True)
    assert load_run(tmp_path / "run").labels == ("bad", "good")


def test_pickled_it_holds_text_and_numbers_only() -> None:
    found = TextClassifier(**SMALL).fit(TEXTS, LABELS)
    stored = pickle.dumps(found)
    assert b"torch" not in stored.replace(b'"torch"', b"")  # but for the version in result.json
    np.testing.assert_array_equal(pickle.loads(stored).predict_proba(TEXTS), found.predict_proba(TEXTS))
    with pytest.raises(NotFittedError):
        pickle.loads(pickle.dumps(TextClassifier())).predict(TEXTS)


def test_explain_counts_the_label_that_was_given() -> None:
    found = TextClassifier(**SMALL).fit(TEXTS, [int(label == "good") for label in LABELS])
    alone, as_good = found.explain(TEXTS[:1])[0], found.explain(TEXTS[:1], [1])[0]
    assert alone.label == str(found.predict(TEXTS[:1])[0])
    assert not alone.given
    assert as_good.label == "1"
    assert as_good.given
    assert alone.strongest is not None
    with pytest.raises(ValueError, match=r"labels among \[0, 1\]; got \[9, 7\]"):
        found.explain(TEXTS[:4], [9, 7, 1, 9])


def test_an_empty_text_still_gets_a_prediction() -> None:
    found = TextClassifier("baseline", **SMALL).fit(TEXTS, LABELS)
    assert found.predict_proba(["", "never seen"]).shape == (2, 2)


@pytest.mark.parametrize(
    ("texts", "labels", "told"),
    [
        ("one text", ["a"], "expected X to be several texts; got one str"),
        ([], [], "one text or more; got none"),
        (["a b", None], ["x", "y"], r"X\[1\] is None \(NoneType\)"),
        (["a b", float("nan")], ["x", "y"], r"X\[1\] is nan \(float\)"),
        (np.array([["a", "b"]]), ["x"], r"one column of texts; got shape \(1, 2\)"),
        (pd.DataFrame({"text": ["a", "b"]}), ["x", "y"], r"one column of texts; got shape \(2, 1\)"),
        (["a b", "  "], ["x", "y"], r"X\[1\] is empty: leave it out"),
        (["a b", "c d"], ["x"], r"inconsistent numbers of samples: \[2, 1\]"),
        (["a b", "c d"], ["x", "x"], r"two classes or more; got one class, \['x'\]"),
        (["a b", "c d"], ["x", " x"], "classes that differ when written"),
        (["a b", "c d"], ["x", ""], "none of them empty"),
        (["a b", "c d"], [0.5, 1.5], "continuous"),
        (["a b", "c d"], [[0, 1], [1, 0]], "1d array"),
        (["a b", "c d"], ["x", None], r"a label for every text; y\[1\] is None"),
        (["a b", "c d", "e f"], ["x", "y", float("nan")], r"a label for every text; y\[2\] is nan"),
        (["a b", "c d", "e f"], pd.Series(["x", "y", np.nan]), r"a label for every text; y\[2\] is nan"),
        (["a b", "c d", "e f"], pd.array(["x", "y", pd.NA], dtype="string"), r"y\[2\] is <NA>"),
        (["a b", "c d"], np.array([1, "x"], dtype=object), "Unknown label type"),
        (["a b", "c d"], [1.0, float("nan")], "NaN"),
        (["a b", "c d"], None, "y to be passed"),
        (["a b", "a \ud800"], ["x", "y"], "X, line 2: expected whole characters"),
        (["a b", "a c"], ["x", "y"], "expected enough texts to hold some out"),
    ],
)
def test_input_that_cannot_be_learnt_from(texts: Any, labels: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        TextClassifier("baseline", min_documents=1, **SMALL).fit(texts, labels)


def test_refusals_name_parameters_and_not_flags(tmp_path: Path) -> None:
    (tmp_path / "words.vec").write_text("film 1 2 3\n")
    for wrong, told in (
        ({"min_documents": 99}, "lower `min_documents`$"),
        ({"method": "iadvt", "min_candidate_count": 999}, "give a lower `min_candidate_count`$"),
        ({"vectors": str(tmp_path / "words.vec")}, r"words\.vec, line 1: .*: set `dim`$"),
    ):
        with pytest.raises(ValueError, match=told):
            TextClassifier(**{**SMALL, **wrong}).fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match=r"too few of each class: give more \(or, in files, others as `dev`\)$"):
        TextClassifier(**SMALL).fit(["a warm film", "a dull film"], ["good", "bad"])


def test_settings_that_cannot_be_used() -> None:
    for wrong, told in (
        ({"method": "magic"}, "unknown method 'magic'"),
        ({"epsilon": -1}, "epsilon must be greater than 0"),
        ({"k": 500}, "k must be less than"),
        ({"averaging": 1.0}, "averaging must be 0 or more and less than 1"),
        ({"dev_share": 2}, "dev_share must be between 0 and 1"),
        ({"device": "warp-drive"}, "cannot be used here"),
    ):
        with pytest.raises(ValueError, match=told):
            TextClassifier(**{**SMALL, **wrong}).fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match=r"unlabelled texts are used only by random-kl, vat, .*, but the method is"):
        TextClassifier(**SMALL).fit(TEXTS, LABELS, unlabelled=TEXTS)
    with pytest.raises(ValueError, match=r"^unlabelled, line 1: expected whole characters"):
        TextClassifier("vat", **SMALL).fit(TEXTS, LABELS, unlabelled=["a \ud800"])
    with pytest.raises(ValueError, match=r"line 2: expected whole characters; got half of a surrogate pair"):
        TextClassifier("baseline", **SMALL).fit(TEXTS, LABELS).predict(["a film", "a \ud800"])
    with pytest.raises(DivergedError, match="lower `learning_rate` or `epsilon`"):
        TextClassifier("advt", **{**SMALL, "learning_rate": 1e30}).fit(TEXTS, LABELS)


@pytest.mark.parametrize("use", ["predict", "predict_proba", "explain", "save"])
def test_not_fitted(use: str, tmp_path: Path) -> None:
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(TextClassifier(), use)(tmp_path / "x" if use == "save" else TEXTS)
    assert not (tmp_path / "x").exists()


def test_without_scikit_learn_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "wordward.sklearn")
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'wordward\[sklearn\]'"):
        import_module("wordward.sklearn")
