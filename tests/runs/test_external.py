"""Models that wordward did not train, as runs."""

import json
import pickle
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from any_model import Guard, fine_tuned, good
from hf_tiny import bert, saved, word_pieces
from reviews import reviews, tagged, write_conll, write_csv

import wordward
from wordward.cli.main import main
from wordward.runs import text_function
from wordward.runs.opening import opener
from wordward.support.errors import DataError, RunError, SettingError

TEXTS = ["The film was warm,  and funny!", "the script was dull", "this cast was bland , said our friend of mine"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fine_tuned(tmp_path_factory.mktemp("hub") / "sentiment")


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = {"id2label": {0: "c", 1: "i"}, "label2id": {"c": 0, "i": 1}}
    return saved(tmp_path_factory.mktemp("tagger"), "token", **names)


def loaded(folder: Path) -> tuple[Any, Any]:
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    return model, transformers.AutoTokenizer.from_pretrained(folder)


class TestAFolder:
    def test_predicts_as_transformers_do(self, folder: Path):
        model, tokenizer = loaded(folder)
        run = wordward.open_model(folder, device="cpu")
        assert run.labels == ("bad", "good")
        for text, found in zip(TEXTS, run.predict(TEXTS), strict=True):
            expected = model.eval()(**tokenizer(text, return_tensors="pt")).logits.softmax(-1)[0].detach()
            assert list(found.probabilities.values()) == pytest.approx(expected.tolist(), abs=1e-5)

    def test_is_explained_attacked_and_scored(self, folder: Path):
        run = wordward.open_model(folder, device="cpu")
        assert run.evaluate(reviews(40)).scores["error"].value < 0.2
        assert run.explain(TEXTS[:1])[0].predicted == "good"
        (found,) = run.attack(["the film was warm and funny"], wordward.attack.AttackSettings(words="any"))
        assert found.sense in ("unknown", "kept")
        assert run.predict([found.adversarial])[0].label == found.after

    def test_sense_cannot_be_asked_for(self, folder: Path):
        run = wordward.open_model(folder, device="cpu")
        with pytest.raises(RunError, match=r"was not trained by wordward, .* `sense='any'`"):
            run.attack(TEXTS, wordward.attack.AttackSettings(sense="kept"))

    def test_a_pair_and_a_pipeline_are_the_same_model(self, folder: Path):
        model, tokenizer = loaded(folder)
        expected = wordward.open_model(folder, device="cpu").predict(TEXTS)
        pipeline = SimpleNamespace(model=model, tokenizer=tokenizer)
        for given in ((model, tokenizer), pipeline):
            assert wordward.open_model(given, device="cpu").predict(TEXTS) == expected

    def test_a_model_stays_in_its_mode_and_is_asked_in_eval_mode(self, folder: Path):
        model, tokenizer = loaded(folder)
        for part in model.modules():
            if isinstance(part, torch.nn.Dropout):
                part.p = 0.5
        settings = wordward.attack.AttackSettings(words="any", edits=("swap", "typo"))

        def found(run: Any) -> list[Any]:
            explained = [(each.predicted, each.places) for each in run.explain(TEXTS)]
            return [run.predict(TEXTS), run.attack(TEXTS, settings), explained, run.logits(run.rows_of(TEXTS))]

        runs = []
        for training in (False, True):
            runs.append(found(wordward.open_model((model.train(training), tokenizer), device="cpu")))
            assert all(part.training == training for part in model.modules())
        assert runs[0][:3] == runs[1][:3]
        np.testing.assert_array_equal(runs[0][3], runs[1][3])

    def test_opens_again_in_another_process(self, folder: Path):
        run = wordward.open_model(folder, device="cpu")
        assert opener(run)().predict(TEXTS) == run.predict(TEXTS)
        with pytest.raises(SettingError, match="leave `jobs` out"):
            opener(wordward.open_model(loaded(folder), device="cpu"))()

    def test_hf_attack(self, folder: Path):
        model, tokenizer = loaded(folder)
        settings = wordward.attack.AttackSettings(words="any")
        found = wordward.hf.attack(model, tokenizer, TEXTS, labels=["good", "bad", "good"], settings=settings)
        run = wordward.open_model(folder, device="cpu")
        assert found == run.attack(
            [wordward.Example(text, label) for text, label in zip(TEXTS, ("good", "bad", "good"), strict=True)],
            settings,
        )
        assert found[2].outcome == "wrong"
        assert wordward.hf.attack(model, tokenizer, []) == []

    def test_a_tagger(self, tagger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        run = wordward.open_model(tagger, device="cpu", positive="i")
        assert run.tagging
        assert set(run.predict(["the film are warm"])[0].labels) <= {"c", "i"}
        assert [each.outcome for each in run.attack(tagged(6))]
        data = write_conll(tmp_path / "tags.conll", tagged(10))
        assert main(["evaluate", str(tagger), str(data), "--positive", "i", "--device", "cpu"]) == 0
        assert "f0.5" in capsys.readouterr().out
        assert wordward.open_model(tagger, positive="I").config.training.positive == "i"
        with pytest.raises(
            SettingError, match=r"expected a tag that .* knows for `positive`; got 'x': give one of c, i"
        ):
            wordward.open_model(tagger, positive="x")


class TestRefused:
    @pytest.mark.parametrize(
        ("kind", "changes", "said"),
        [
            (
                "base",
                {},
                r"expected a model for sequence or token classification; the architecture of .* is BertModel",
            ),
            ("sequence", {"num_labels": 1}, "one label among several"),
            ("sequence", {"problem_type": "regression"}, "this model is for regression"),
        ],
    )
    def test_no_choice_of_one_label(self, kind: str, changes: dict[str, Any], said: str, tmp_path: Path):
        tokenizer = word_pieces()
        model = bert("sequence", len(tokenizer), **changes)
        (model.bert if kind == "base" else model).save_pretrained(tmp_path)
        tokenizer.save_pretrained(tmp_path)
        with pytest.raises((RunError, SettingError), match=said):
            wordward.open_model(tmp_path, device="cpu")

    def test_a_name_that_two_labels_have(self, folder: Path):
        model, tokenizer = loaded(folder)
        model.config.id2label = {0: "x", 1: "x"}
        with pytest.raises(SettingError, match="a name of its own, but names them x, x"):
            wordward.open_model((model, tokenizer), device="cpu")
        with pytest.raises(SettingError, match="a name of its own for each label; got x, x"):
            wordward.open_model(Guard(), labels=["x", "x"])

    def test_half_of_a_character(self, folder: Path):
        for run in (wordward.open_model(folder, device="cpu"), wordward.open_model(Guard())):
            with pytest.raises(DataError, match=r"texts, line 2: expected whole characters; got .* in 'a \\ud83d'"):
                run.predict(["good", "a \ud83d"])
            with pytest.raises(DataError, match=r"^line 7: expected whole characters"):
                run.evaluate([wordward.Example("\ud83d", "good", line=7)])

    def test_weights_that_lack_the_head(self, tmp_path: Path):
        tokenizer = word_pieces()
        bert("sequence", len(tokenizer)).bert.save_pretrained(tmp_path)
        tokenizer.save_pretrained(tmp_path)
        config = json.loads((tmp_path / "config.json").read_text())
        (tmp_path / "config.json").write_text(
            json.dumps(config | {"architectures": ["BertForSequenceClassification"]})
        )
        with pytest.raises(RunError, match=r"lack classifier.bias, classifier.weight, .* drawn at random"):
            wordward.open_model(tmp_path, device="cpu")

    def test_weights_that_may_hold_code(self, folder: Path, tmp_path: Path):
        place = shutil.copytree(folder, tmp_path / "bin")
        torch.save(loaded(folder)[0].state_dict(), place / "pytorch_model.bin")
        (place / "model.safetensors").unlink()
        with pytest.raises(RunError, match="no weights in safetensors"):
            wordward.open_model(place, device="cpu")

    def test_code_of_a_folder_is_never_run(self, folder: Path, tmp_path: Path):
        place = shutil.copytree(folder, tmp_path / "code")
        config = json.loads((place / "config.json").read_text()) | {"model_type": "strange"}
        config["auto_map"] = {"AutoConfig": "mine.Config", "AutoModelForSequenceClassification": "mine.Model"}
        (place / "config.json").write_text(json.dumps(config))
        (place / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
        with pytest.raises(RunError, match="never run here"):
            wordward.open_model(place, device="cpu")
        assert not (tmp_path / "ran").exists()

    def test_files_and_names(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        (tmp_path / "model.joblib").write_bytes(pickle.dumps(1))
        (tmp_path / "mine.py").write_text("number = 3\n")
        (tmp_path / "broken.py").write_text("raise ValueError('cake')\n")
        (tmp_path / "empty").mkdir()
        said = {
            "model.joblib": "is a pickle, which may run any code",
            "mine.py": "give mine:NAME",
            "mine:number": "is int; expected",
            "mine:none": "mine has no none",
            "nowhere:none": "there is no Python module nowhere",
            "broken:none": "broken cannot be imported: ValueError: cake",
            "none.pkl": "is not a run folder: there is no such folder here. Expected a run folder, ",
            "a warm film": "is not a run folder: there is no such folder here. Expected a run folder, ",
            "empty": "is not a run folder: it holds no config.toml",
            str(
                tmp_path / "none"
            ): "is not a run folder: there is no such folder here; in .* there are no run folders",
        }
        for name, message in said.items():
            with pytest.raises(RunError, match=message):
                wordward.open_model(name)
        with pytest.raises(SettingError, match="without its tokenizer"):
            wordward.open_model(torch.nn.Linear(2, 2))
        given: Any
        for given, said in ((None, "None"), (3, "int"), ([], "list")):
            with pytest.raises(RunError, match=f"^the model is {said}; expected .*model, tokenizer.* or the folder"):
                wordward.open_model(given)


class TestAFunction:
    def test_reads_each_text_as_it_is(self):
        guard = Guard()
        texts = [" two  blanks\tand a tab ", "Ärger 🙂 mit Umlaut!", "电影 很好", "a<br />b", "🙂"]
        run = wordward.open_model(guard)
        for text, found in zip(texts, run.predict(texts), strict=True):
            assert found.probabilities["good"] == pytest.approx(good(text), abs=1e-5)
        assert set(texts) <= set(guard.asked)
        assert run.predict([" "])[0].problem is not None
        assert run.predict(["🙂"])[0].warning is None

    def test_strings_are_forgotten_where_there_are_too_many(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(text_function, "STRINGS", 20)
        run: Any = wordward.open_model(Guard())
        examples = reviews(30)
        expected = [good(each.text) for each in examples]
        corpus = run.encode(examples, labelled=True)
        assert run.evaluate_corpus(corpus).scores["error"].value == 0.0  # the strings of a corpus stay
        for _ in range(3):
            size = len(run.vocabulary)
            found = [each.probabilities["good"] for each in run.predict([each.text for each in examples])]
            assert found == pytest.approx(expected, abs=1e-5)
            assert len(run.vocabulary) > size  # no id comes again
        assert len(run.vocabulary._strings) < 100
        with pytest.raises(RunError, match="read it again"):
            run.probabilities(corpus)

    def test_whatever_way_probabilities_are_given(self):
        ways: dict[str, Any] = {
            "array": lambda texts: np.array([[1 - good(text), good(text)] for text in texts]),
            "tensor": lambda texts: torch.tensor([[1 - good(text), good(text)] for text in texts]),
            "one": lambda texts: [good(text) for text in texts],
            "dicts": lambda texts: [{"bad": 1 - good(text), "good": good(text)} for text in texts],
            "other order": lambda texts: [{"good": good(text), "bad": 1 - good(text)} for text in texts],
            "scores": lambda texts: [
                [{"label": "good", "score": good(text)}, {"label": "bad", "score": 1 - good(text)}] for text in texts
            ],
        }
        for name, way in ways.items():
            run = wordward.open_model(way, labels=["bad", "good"])
            found = [each.probabilities["good"] for each in run.predict(TEXTS)]
            assert found == pytest.approx([good(text) for text in TEXTS], abs=1e-5), name
        assert wordward.open_model(ways["array"]).labels == ("0", "1")
        assert wordward.open_model(ways["other order"]).labels == ("good", "bad")
        estimator = SimpleNamespace(predict_proba=ways["array"], classes_=np.array(["bad", "good"]))
        assert wordward.open_model(estimator).predict(TEXTS)[1].label == "bad"

    @pytest.mark.parametrize(
        ("gives", "said"),
        [
            (lambda texts: [[2.0, -1.0]] * len(texts), "apply a softmax to logits"),
            (lambda texts: [[0.9, 0.8]] * len(texts), "adding up to 1"),
            (lambda texts: [[float("nan"), 1.0]] * len(texts), "must give probabilities"),
            (lambda texts: [[1.0]] * len(texts), "two labels or more"),
            (lambda texts: [[0.5, 0.5]], "gave 1 for 2"),
            (lambda texts: ["good"] * len(texts), "two labels or more"),
            (lambda texts: None, "must give probabilities for each text, but gave None"),
            (lambda texts: texts[5], r"failed on 1 text '.*': IndexError"),
        ],
    )
    def test_what_is_no_probability_is_refused(self, gives: Any, said: str):
        with pytest.raises(RunError, match=said):
            wordward.open_model(gives).predict(["one", "two"])

    def test_is_scored_but_not_explained(self):
        run = wordward.open_model(Guard())
        assert run.evaluate(reviews(30)).scores["error"].value == 0
        told = r"no word vectors and no gradients.*augment, check and report take the"
        with pytest.raises(SettingError, match=told):
            run.explain(TEXTS)


class TestCommands:
    def test_labels_as_numbers_or_in_another_case(
        self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ):
        names = {"numbers": {"bad": "0", "good": "1"}, "case": {"bad": "BAD", "good": "Good"}}
        names["pandas"] = {"bad": "0.0", "good": "1.0"}  # of a column with a label missing
        said = []
        for given in ({"bad": "bad", "good": "good"}, *names.values()):
            texts = [wordward.Example(each.text, given[str(each.label)]) for each in reviews(20)]
            data = write_csv(tmp_path / "test.csv", texts)
            assert main(["evaluate", str(folder), str(data), "--device", "cpu"]) == 0
            said.append(capsys.readouterr().out)
        assert len(set(said)) == 1

    def test_texts_longer_than_the_model_reads_are_told(
        self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ):
        texts = reviews(20)
        told = []
        for given in (texts, [*texts, wordward.Example("the film was warm " * 500, "good")]):
            data = write_csv(tmp_path / "test.csv", given)
            assert main(["evaluate", str(folder), str(data), "--device", "cpu"]) == 0
            told.append(re.findall(r"(.*) cut to the \d+ word pieces", capsys.readouterr().err))
        assert told == [[], ["1 of 21 texts"]]

    def test_modules_of_the_current_folder(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
        (tmp_path / "opened_by_name.py").write_text(
            "import transformers as t\n\n\ndef pair():\n"
            f"    return (t.AutoModelForSequenceClassification.from_pretrained({str(folder)!r}),\n"
            f"            t.AutoTokenizer.from_pretrained({str(folder)!r}))\n\n\n"
            "def guard(texts):\n    return [{'bad': 0.25, 'good': 0.75} for _ in texts]\n"
        )
        assert main(["predict", "opened_by_name:guard", "a text"]) == 0
        assert json.loads(capsys.readouterr().out)["probabilities"] == {"bad": 0.25, "good": 0.75}
        assert main(["predict", "opened_by_name:pair", TEXTS[0], "--device", "cpu"]) == 0
        assert json.loads(capsys.readouterr().out)["label"] == "good"
        for command in (
            ["explain", "opened_by_name:guard", "a text"],
            ["serve", "opened_by_name:guard", "--port", "0"],
        ):
            assert main(command) == 1
            assert "no gradients" in capsys.readouterr().err

    def test_a_report(self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        data, out = write_csv(tmp_path / "test.csv", reviews(12)), tmp_path / "report.html"
        assert main(["report", str(folder), "--out", str(out), "--device", "cpu", "--quiet"]) == 1
        assert "give --test" in capsys.readouterr().err
        given = ["--test", str(data), "--attack", "4", "--device", "cpu", "--quiet"]
        assert main(["report", str(folder), *given, "--out", str(out)]) == 0
        assert "It was not trained by wordward" in out.read_text(encoding="utf-8")

    def test_a_report_of_a_function(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "guarding.py").write_text("from any_model import Guard\n\nguard = Guard()\n")
        data, out = write_csv(tmp_path / "test.csv", reviews(12)), tmp_path / "report.html"
        given = ["--test", str(data), "--attack", "0", "--device", "cpu", "--quiet"]
        assert main(["report", "guarding:guard", *given, "--out", str(out)]) == 0
        assert "guarding:guard" in out.read_text(encoding="utf-8")
