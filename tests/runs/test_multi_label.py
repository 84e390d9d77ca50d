"""Models that give several labels at once: each a yes or no of its own, one of which is explained and attacked."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from any_model import marked, several_labels
from hf_tiny import bert, word_pieces
from reviews import BLAME, PRAISE, write_csv

import wordward
from wordward.cli.main import main
from wordward.datasets import DataError, Example
from wordward.runs.label_cells import check_counted, decided, labels_in, meant, numbers_read, with_names
from wordward.runs.opening import opener
from wordward.runs.scoring import several_evaluation
from wordward.support.errors import RunError, SettingError, SettingTypeError

LABELS = ("praise", "blame", "film")
TEXTS = ["the film was warm and funny", "the script was dull", "this cast was bland"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return several_labels(tmp_path_factory.mktemp("hub") / "several")


def loaded(folder: Path) -> tuple[Any, Any]:
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    return model, transformers.AutoTokenizer.from_pretrained(folder)


class TestCells:
    @pytest.mark.parametrize(
        ("cell", "expected"),
        [
            ("film", ["film"]),
            ("film|praise", ["praise", "film"]),
            ("film ; PRAISE", ["praise", "film"]),
            ("film, praise", ["praise", "film"]),
            ('["film", "blame"]', ["blame", "film"]),
            ("['film']", ["film"]),
            ("[2, 0]", ["praise", "film"]),
            ('["1"]', ["blame"]),
            ("[]", []),
            ("", []),
            ("None", []),
        ],
    )
    def test_the_ways_in_which_labels_are_written(self, cell: str, expected: list[str]):
        assert labels_in(Example("a text", cell), LABELS) == expected

    def test_a_label_may_hold_what_stands_between_others(self):
        known = ("war, peace", "war", "none")
        assert labels_in(Example("a text", "war, peace"), known) == ["war, peace"]
        assert labels_in(Example("a text", "war|war, peace"), known) == ["war, peace", "war"]
        assert labels_in(Example("a text", "none"), known) == ["none"]

    def test_a_number_that_is_a_name_is_no_place(self):
        assert labels_in(Example("a text", "[1]"), ("1", "0")) == ["1"]

    @pytest.mark.parametrize("cell", ["film|cake", "1", "[3]", "[film", "film praise", "[['film']]"])
    def test_others_are_refused(self, cell: str):
        with pytest.raises(DataError, match=r"line 7: expected labels that the model knows \(praise, blame, film\)"):
            labels_in(Example("a text", cell, line=7), LABELS, "texts.csv")


class TestScores:
    def test_they_are_those_of_scikit_learn(self):
        from sklearn.metrics import f1_score, precision_recall_fscore_support

        rng = np.random.default_rng(0)
        gold, found = rng.random((40, 3)) < 0.4, rng.random((40, 3)) < 0.5
        scored = several_evaluation(gold, found, LABELS, source="")
        assert scored.scores["error"].value == (gold != found).any(1).mean()
        for name in ("micro", "macro"):
            value, low, high = scored.scores[f"{name}_f1"]
            assert value == pytest.approx(f1_score(gold, found, average=name))
            assert low < value < high
        each = np.array(precision_recall_fscore_support(gold, found)).T  # (labels, 4)
        for of_label, (precision, recall, f1, support) in zip(scored.several.values(), each, strict=True):
            assert of_label == (support, of_label.predicted, *map(pytest.approx, (precision, recall, f1)))
        assert scored.confusion.sum() == gold.size


class TestAFolder:
    def test_predicts_as_transformers_do(self, folder: Path):
        model, tokenizer = loaded(folder)
        run = wordward.open_model(folder, device="cpu")
        assert run.labels == LABELS
        for text, found in zip(TEXTS, run.predict(TEXTS), strict=True):
            expected = model.eval()(**tokenizer(text, return_tensors="pt")).logits.sigmoid()[0].detach()
            assert list(found.probabilities.values()) == pytest.approx(expected.tolist(), abs=1e-5)
            assert found.several == tuple(np.array(LABELS)[expected.numpy() >= 0.5])
            assert found.label == "|".join(found.several or ())
        assert run.predict(TEXTS)[0].several == ("praise", "film")

    def test_is_scored_label_by_label(self, folder: Path):
        run = wordward.open_model(folder, device="cpu")
        scored = run.evaluate(marked(40))
        with pytest.raises(SettingTypeError, match="give true labels with the texts"):
            run.evaluate(TEXTS, [LABELS])  # type: ignore[arg-type]
        assert scored.scores["error"].value < 0.2
        assert scored.scores["micro_f1"].value > 0.9
        assert list(scored.several) == list(LABELS)
        right = run.predict([each.text for each in marked(40)])
        wrong = [each.label != (found.label or "[]") for each, found in zip(marked(40), right, strict=True)]
        assert scored.wrong.tolist() == wrong

    def test_one_label_is_a_run_of_its_own(self, folder: Path):
        several = wordward.open_model(folder, device="cpu")
        run = wordward.open_model(folder, device="cpu", positive="Blame")
        assert run.labels == ("not blame", "blame")
        for found, one in zip(several.predict(TEXTS), run.predict(TEXTS), strict=True):
            assert one.probabilities["blame"] == pytest.approx(found.probabilities["blame"], abs=1e-6)
            assert (one.label == "blame") == ("blame" in (found.several or ()))
        by_label = several.evaluate(marked(40)).several["blame"]
        scored = run.evaluate(marked(40)).scores
        assert (scored["precision"].value, scored["recall"].value) == (by_label.precision, by_label.recall)
        assert opener(run)().predict(TEXTS) == run.predict(TEXTS)

    def test_is_explained_by_the_gradient_of_that_label(self, folder: Path):
        """What pulls is what raises the loss of one logit's yes or no."""
        model, tokenizer = loaded(folder)
        run = wordward.open_model((model, tokenizer), device="cpu", positive="film")
        (found,) = run.explain([Example(TEXTS[0], "film|praise")], words="any")
        assert (found.label, found.given, found.predicted) == ("film", True, "film")
        batch = tokenizer(TEXTS[0], return_tensors="pt")

        def loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.softplus(-logits[:, 2]).mean()

        adv = wordward.iadvt(model.eval(), loss=loss, candidates=run.vocabulary.candidates())
        ids = batch["input_ids"]
        out = adv(lambda: model(**batch), torch.zeros(1), mask=ids > 4)
        strongest = out.strengths[0].amax(-1)[1:-1]
        shown = [place.pulls[0].strength if place.pulls else 0.0 for place in found.places]
        assert shown == pytest.approx(strongest.clamp(min=0).tolist(), abs=1e-4)

    def test_attacks_change_that_label_s_yes_or_no(self, folder: Path):
        run = wordward.open_model(folder, device="cpu", positive="blame")
        settings = wordward.attack.AttackSettings(words="any")
        found = run.attack(marked(24), settings)
        assert {each.outcome for each in found} >= {"flipped"}
        several = wordward.open_model(folder, device="cpu")
        for each in found:
            assert (each.label == "blame") == (each.before == "blame") or each.outcome == "wrong"
            if each.outcome == "flipped":
                names = [set(several.predict([text])[0].several or ()) for text in (each.text, each.adversarial)]
                assert ("blame" in names[0]) != ("blame" in names[1])
        model, tokenizer = loaded(folder)
        texts, labels = [each.text for each in marked(24)], [each.label for each in marked(24)]
        assert found == wordward.hf.attack(
            model, tokenizer, texts, labels=labels, settings=settings, positive="blame"
        )
        (explained,) = wordward.hf.explain(model, tokenizer, texts[:1], positive="blame")
        assert explained.predicted in run.labels

    def test_a_check_of_one_label(self, folder: Path):
        settings = wordward.attack.AttackSettings(sense="any")
        checks = [
            wordward.attack.check(
                run, marked(24), wordward.attack.CheckSettings(settings, target=target, budgets=(1, 2))
            )
            for run, target in (
                (wordward.open_model(folder, device="cpu"), "blame"),
                (wordward.open_model(folder, device="cpu", positive="blame"), "blame"),
            )
        ]
        assert checks[0].results == checks[1].results
        assert checks[0].false_positives is not None
        assert checks[0].accuracy[0].value > 0.9

    def test_which_label_must_be_said(self, folder: Path):
        said = r"gives several labels at once, .* expected `positive`, one of praise, blame, film; got"
        with pytest.raises(SettingError, match=f"{said} 'cake'"):
            wordward.open_model(folder, device="cpu", positive="cake")
        for use in ("attack", "explain"):
            with pytest.raises(SettingError, match=said):
                getattr(wordward.hf, use)(*loaded(folder), TEXTS)
        run = wordward.open_model(folder, device="cpu")
        for edits in (("swap",), ("typo",)):
            with pytest.raises(SettingError, match=said):
                run.attack(TEXTS, wordward.attack.AttackSettings(edits=edits))
        with pytest.raises(SettingError, match=said):
            wordward.attack.check(run, marked(24))

    def test_one_logit_that_is_a_yes_or_no(self, tmp_path: Path):
        tokenizer, names = word_pieces(), {"id2label": {0: "toxic"}, "label2id": {"toxic": 0}}
        model = bert("sequence", len(tokenizer), num_labels=1, problem_type="multi_label_classification", **names)
        run = wordward.open_model((model, tokenizer), device="cpu", positive="toxic")
        assert run.predict(TEXTS)[0].label in ("toxic", "not toxic")


class TestCommands:
    def test_predict_and_evaluate(self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        assert main(["predict", str(folder), TEXTS[0], "--device", "cpu"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["label"], found["labels"]) == ("praise|film", ["praise", "film"])
        data = write_csv(tmp_path / "test.csv", marked(40))
        assert main(["evaluate", str(folder), str(data), "--device", "cpu"]) == 0
        said = capsys.readouterr().out
        assert "micro_f1" in said
        assert "blame" in said
        assert main(["evaluate", str(folder), str(data), "--device", "cpu", "--json"]) == 0
        assert set(json.loads(capsys.readouterr().out)["classes"]) == set(LABELS)
        assert main(["evaluate", str(folder), str(data), "--device", "cpu", "--positive", "film"]) == 0
        assert "not film" in capsys.readouterr().out

    def test_explain_attack_and_check(self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        data, given = write_csv(tmp_path / "test.csv", marked(16)), ["--device", "cpu", "--positive", "blame"]
        assert main(["explain", str(folder), TEXTS[1], *given]) == 0
        assert main(["attack", str(folder), str(data), "--limit", "6", *given]) == 0
        found = tmp_path / "check.json"
        assert main(["check", str(folder), str(data), *given[:2], "--target", "blame", "--json", str(found)]) == 0
        assert json.loads(found.read_text(encoding="utf-8"))["target"] == "blame"
        capsys.readouterr()
        for command in (["explain", str(folder), TEXTS[1]], ["attack", str(folder), str(data)]):
            assert main([*command, "--device", "cpu"]) == 1
            assert "expected --positive, one of praise, blame, film; got none" in capsys.readouterr().err

    def test_a_column_of_zeros_and_ones(self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        """As files have that give each label a column of its own."""
        data, said = tmp_path / "wide.csv", []
        lines = [f'"{each.text}",{int("blame" in str(each.label))}' for each in marked(20)]
        data.write_text("\n".join(["text,blame", *lines]) + "\n", encoding="utf-8")
        flags = ["--device", "cpu", "--positive", "blame"]
        assert main(["evaluate", str(folder), str(data), "--label-column", "blame", *flags]) == 0
        said.append(capsys.readouterr().out.replace("wide.csv", "test.csv"))
        assert main(["evaluate", str(folder), str(write_csv(tmp_path / "test.csv", marked(20))), *flags]) == 0
        said.append(capsys.readouterr().out)
        assert said[0] == said[1]


def topics(texts: list[str]) -> list[dict[str, float]]:
    """What a service may say of texts: each label has a probability of its own."""
    return [
        {
            "praise": 0.9 if set(PRAISE) & set(words) else 0.2,
            "blame": 1.0 if set(BLAME) & set(words) else 0.0,
            "film": 0.7 if "film" in words else 0.1,
        }
        for words in (text.lower().replace(",", " ").split() for text in texts)
    ]


topics.several_labels = True  # type: ignore[attr-defined]


class TestAFunction:
    def test_predicts_what_it_says(self):
        run = wordward.open_model(topics)
        assert run.several_labels
        assert run.labels == LABELS
        for text, found in zip(TEXTS, run.predict(TEXTS), strict=True):
            assert found.probabilities == pytest.approx(topics([text])[0], abs=1e-6)
        assert run.predict(TEXTS)[0].several == ("praise", "film")
        scored = run.evaluate(marked(40))
        assert scored.scores["error"].value == 0.0
        assert list(scored.several) == list(LABELS)

    def test_one_label_is_a_run_of_its_own(self, monkeypatch: pytest.MonkeyPatch):
        run = wordward.open_model(topics, positive="blame")
        assert run.labels == ("not blame", "blame")
        found = run.predict(TEXTS)
        assert [each.label for each in found] == ["not blame", "blame", "blame"]
        assert found[1].probabilities == pytest.approx({"not blame": 0.0, "blame": 1.0}, abs=1e-6)
        assert run.evaluate(marked(40)).scores["error"].value == 0.0
        monkeypatch.syspath_prepend(str(Path(__file__).parent))
        named = wordward.open_model(f"{Path(__file__).stem}:topics", positive="blame")
        assert opener(named)().predict(TEXTS) == found  # as in another process

    def test_is_attacked_and_checked(self):
        run = wordward.open_model(topics, positive="blame")
        settings = wordward.attack.AttackSettings(edits=("typo",))
        texts = [Example("the script was clumsy", "blame|praise"), Example("the film was warm", '["praise", "film"]')]
        found = run.attack(texts, settings)
        assert [one.label for one in found] == ["blame", "not blame"]
        assert (found[0].outcome, found[0].after) == ("flipped", "not blame")
        several = wordward.open_model(topics)
        checked = wordward.attack.check(
            several, texts, wordward.attack.CheckSettings(settings, target="blame", budgets=(1,))
        )
        assert [checked.accuracy[number].value for number in (0, 1)] == [1.0, 0.5]
        assert checked.false_positives is not None
        assert checked.false_positives.value == 0.0

    def test_what_is_no_probability_or_no_label_is_refused(self):
        def logits(texts: list[str]) -> list[list[float]]:
            return [[2.5, -1.0] for _ in texts]

        logits.several_labels = True  # type: ignore[attr-defined]
        with pytest.raises(RunError, match=r"probabilities from 0 to 1; .* apply a sigmoid"):
            wordward.open_model(logits)
        with pytest.raises(RunError, match="`several_labels = True`"):
            wordward.open_model(lambda texts: topics(texts))
        with pytest.raises(SettingError, match="one of praise, blame, film; got 'cake'"):
            wordward.open_model(topics, positive="cake")

    def test_scikit_learn_says_it_by_itself(self):
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.multiclass import OneVsRestClassifier
        from sklearn.pipeline import make_pipeline

        texts = marked(60)
        counted = CountVectorizer().fit(each.text for each in texts)
        gold = [[name in str(each.label) for name in LABELS] for each in texts]
        inner = OneVsRestClassifier(LogisticRegression()).fit(counted.transform(each.text for each in texts), gold)

        class Guard:
            labels, multilabel_ = LABELS, inner.multilabel_

            def predict_proba(self, texts: list[str]) -> Any:
                return inner.predict_proba(counted.transform(texts))

        assert wordward.open_model(Guard()).predict(TEXTS)[0].several == ("praise", "film")
        pipeline = make_pipeline(counted, inner)
        assert wordward.open_model(pipeline, labels=LABELS).predict(TEXTS)[0].several == ("praise", "film")


def test_a_classifier_that_decides_without_probabilities_is_told_what_to_do():
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    texts = ["a warm film", "a dull film"] * 6
    given = texts, ["good", "bad"] * 6
    with pytest.raises(RunError, match=r"Pipeline, which decides without probabilities .* CalibratedClassifierCV"):
        wordward.open_model(make_pipeline(CountVectorizer(), LinearSVC()).fit(*given))
    wrapped = make_pipeline(CountVectorizer(), CalibratedClassifierCV(LinearSVC(), cv=2)).fit(*given)
    assert [each.label for each in wordward.open_model(wrapped).predict(texts[:2])] == ["good", "bad"]


class TestLists:
    def test_json_lines(self, tmp_path: Path, capsys: pytest.CaptureFixture[str], folder: Path):
        data, said = tmp_path / "test.jsonl", []
        lists = [[name for name in LABELS if name in str(each.label)] for each in marked(20)]
        pairs = list(zip(marked(20), lists, strict=True))
        data.write_text("".join(json.dumps({"text": e.text, "label": names}) + "\n" for e, names in pairs))
        csv = str(write_csv(tmp_path / "test.csv", marked(20)))
        for flags in ([], ["--positive", "blame"]):
            for file in (str(data), csv):
                assert main(["evaluate", str(folder), file, "--device", "cpu", *flags]) == 0
                said.append(capsys.readouterr().out.replace(file, "FILE"))
        assert said[0] == said[1]
        assert said[2] == said[3]
        examples = wordward.datasets.read(data, several_labels=True)
        assert [json.loads(str(example.label)) for example in examples] == lists
        assert wordward.open_model(topics).evaluate(examples).scores["error"].value == 0.0

    def test_a_function_that_has_learnt_is_scored_anew(self):
        learnt = [0.9]

        def function(texts: list[str]) -> list[list[float]]:
            return [learnt] * len(texts)

        function.several_labels = True  # type: ignore[attr-defined]
        run = wordward.open_model(function, labels=["praise"])
        text = [wordward.Example("a warm film", "praise")]
        assert run.evaluate(text).scores["error"].value == 0.0
        learnt[0] = 0.1
        assert run.evaluate(text).scores["error"].value == 1.0

    def test_a_list_is_no_label_to_train_with(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        data = tmp_path / "train.jsonl"
        data.write_text('{"text": "a warm film", "label": ["praise", "film"]}\n')
        assert main(["train", "--train", str(data), "--out", str(tmp_path / "run"), "--quiet"]) == 1
        assert "expected one label, a string or a number; got list" in capsys.readouterr().err
        data.write_text('{"text": "a warm film", "label": [["praise"]]}\n')
        with pytest.raises(DataError, match="line 1: expected one label, a string or a number; got list"):
            wordward.datasets.read(data, several_labels=True)

    def test_a_table_in_memory(self):
        pandas = pytest.importorskip("pandas")
        names = [[name for name in LABELS if name in str(each.label)] for each in marked(20)]
        for lists in (names, [np.array(of_text, dtype=object) for of_text in names]):
            table = pandas.DataFrame({"text": [each.text for each in marked(20)], "label": lists})
            run = wordward.open_model(topics)
            assert run.evaluate(run.examples(table)).scores["error"].value == 0.0


@pytest.mark.parametrize(
    ("labels", "given", "named"),
    [
        (
            ("bad", "good"),
            ("1", "1.0", " GOOD ", "Bad", "2.0", "fine"),
            ("good", "good", "good", "bad", "2.0", "fine"),
        ),
        (("very bad", "good"), ("Very  bad", "0.0"), ("very bad", "very bad")),
        (("1.0", "2.0"), ("1", "2.0", "0"), ("1.0", "2.0", "0")),  # names, not places
        (("1", "2"), ("1.0", "2", "0"), ("1", "2", "0")),
        (("Up", "up"), ("up", "UP", "1"), ("up", "UP", "up")),  # which of both is not known
        (("1 star", "2 stars"), ("1", "2", "0"), ("1 star", "2 stars", "0")),  # the numbers in their names
        (("top 5", "top 10", "rest"), ("1", "5"), ("top 10", "5")),  # not all names have one
    ],
)
def test_labels_as_a_model_names_them(
    labels: tuple[str, ...], given: tuple[str, ...], named: tuple[str, ...]
) -> None:
    assert tuple(each.label for each in with_names(labels, [Example("", name) for name in given])) == named
    (tags,) = with_names(labels, [Example("", tags=given)])
    assert tags.tags == named


@pytest.mark.parametrize(
    ("labels", "given", "own"),
    [
        (("bad", "good"), ("1", "2"), "are 1, 2, those of the model 0, 1 (0 is bad, 1 is good)"),
        (("LABEL_0", "LABEL_1", "LABEL_2"), ("3", "1"), "are 1, 3, those of the model 0, 1, 2 (0 is LABEL_0"),
        (("0", "1"), ("1.0", "2.0"), "are 1, 2, those of the model 0, 1:"),
        (("1 star", "2 stars"), ("0", "1"), "are 0, 1, those of the model 1, 2 (1 is 1 star, 2 is 2 stars)"),
    ],
)
def test_labels_counted_from_another_number_are_refused(
    labels: tuple[str, ...], given: tuple[str, ...], own: str
) -> None:
    with pytest.raises(DataError, match=re.escape(f"the labels of the texts {own}")):
        check_counted(labels, [Example("", name) for name in given])


@pytest.mark.parametrize(
    ("labels", "given"),
    [
        (("bad", "good"), ("0", "1")),
        (("bad", "good"), ("1", "fine")),
        (("1", "2"), ("1", "2")),
        (("a", "b"), ("7", "8")),
    ],
)
def test_labels_counted_alike_or_strange_in_another_way_are_not(
    labels: tuple[str, ...], given: tuple[str, ...]
) -> None:
    check_counted(labels, [Example("", name) for name in given])


def test_which_labels_numbers_are_read_as_is_told() -> None:
    texts = [Example("", label) for label in ("1", "0", "good", None)]
    assert numbers_read(("bad", "good"), texts) == "0 as bad, 1 as good"
    assert numbers_read(("LABEL_0", "LABEL_1"), texts) == numbers_read(("0", "1"), texts) == ""


def test_a_label_is_meant_in_another_case_where_only_one_can_be() -> None:
    assert meant("POSITIVE ", ("Positive", "Negative")) == "Positive"
    assert [meant(name, ("Up", "up")) for name in ("up", "UP")] == ["up", "UP"]
    assert meant("fine", ("Positive", "Negative")) == "fine"


def test_numbers_of_labels_as_pandas_writes_them_beside_a_missing_one() -> None:
    assert labels_in(Example("a film", "1.0"), ("0", "1")) == ["1"]
    assert decided(Example("a film", "1.0"), ("fun", "dull"), "not fun", "fun").label == "fun"
    assert decided(Example("a film", "0.0"), ("fun", "dull"), "not fun", "fun").label == "not fun"
