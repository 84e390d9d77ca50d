"""Tables that a program holds in memory: of pandas and datasets, trained on, scored, explained, attacked, checked."""

from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas as pd
import pytest
from reviews import reviews, tagged

import wordward
from wordward.attack import AttackSettings
from wordward.config import DataSettings, ModelSettings, TrainConfig, TrainingSettings
from wordward.datasets import examples_of
from wordward.support.errors import ColumnError, DataError, SettingTypeError

ROWS = {"review": [each.text for each in reviews(60)], "stars": [each.label for each in reviews(60)]}
COLUMNS: Any = {"text_column": "review", "label_column": "stars"}
CLASSES = datasets.ClassLabel(names=["bad", "good"])


def table(kind: str) -> Any:
    if kind == "pandas":
        return pd.DataFrame(ROWS)
    numbers = [CLASSES.str2int(name) for name in ROWS["stars"]]
    features = datasets.Features({"review": datasets.Value("string"), "stars": CLASSES})
    return datasets.Dataset.from_dict(ROWS | {"stars": numbers}, features)


@pytest.mark.parametrize("kind", ["pandas", "datasets"])
def test_rows_are_texts_with_their_labels_by_name(kind: str) -> None:
    found = examples_of(table(kind), "train", **COLUMNS)
    assert [(each.text, each.label) for each in found] == list(zip(*ROWS.values(), strict=True))
    assert [each.line for each in found] == list(range(1, 61))


@pytest.mark.parametrize("kind", ["pandas", "datasets"])
def test_every_door_takes_a_table(kind: str, tmp_path: Path) -> None:
    given, config = (
        table(kind),
        TrainConfig(
            data=DataSettings(**COLUMNS),
            model=ModelSettings(dim=8, hidden=8, head=5),
            training=TrainingSettings(epochs=2, device="cpu"),
        ),
    )
    wordward.train.train(config, tmp_path / "table", train=given, quiet=True)
    wordward.train.train(config, tmp_path / "list", train=list(zip(*ROWS.values(), strict=True)), quiet=True)
    run, same = (wordward.load_run(tmp_path / name, device="cpu") for name in ("table", "list"))
    examples = reviews(60)
    assert run.evaluate(given).scores == same.evaluate(examples).scores
    assert run.predict(given) == same.predict([each.text for each in examples])
    assert [one.label for one in run.explain(given)] == [one.label for one in same.explain(examples)]
    settings = AttackSettings(words="any")
    assert run.attack(given, settings) == same.attack(examples, settings)
    assert (
        wordward.attack.check(run, given, wordward.attack.CheckSettings(settings)).accuracy
        == wordward.attack.check(same, examples, wordward.attack.CheckSettings(settings)).accuracy
    )


def test_lists_of_words_have_tags() -> None:
    sentences, names = tagged(10), ["c", "i"]
    words = [list(each.tokens or ()) for each in sentences]
    tags = [[names.index(tag) for tag in each.tags or ()] for each in sentences]
    sequence = datasets.List(datasets.ClassLabel(names=names))
    features = datasets.Features({"tokens": datasets.List(datasets.Value("string")), "ner": sequence})
    made = datasets.Dataset.from_dict({"tokens": words, "ner": tags}, features)
    found = examples_of(made, "train", text_column="tokens", label_column="ner")
    assert [(each.tokens, each.tags) for each in found] == [(each.tokens, each.tags) for each in sentences]
    frame = pd.DataFrame({"text": [np.array(each) for each in words], "label": [each.tags for each in sentences]})
    assert [each.tags for each in examples_of(frame, "train")] == [each.tags for each in sentences]


def test_without_labels() -> None:
    frame = pd.DataFrame({"text": ["a warm film", "a dull film"]})
    assert [each.label for each in examples_of(frame, "texts", labelled=False)] == [None, None]
    with pytest.raises(ColumnError, match="expected a column 'label'; found text: name it with `label_column`"):
        examples_of(frame, "train")


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_rows_that_lack_something_are_refused(missing: Any) -> None:
    with pytest.raises(DataError, match=r"train, line 2: expected a label; got .*: leave the row out"):
        examples_of(pd.DataFrame({"text": ["a film", "a cast"], "label": ["good", missing]}, dtype=object), "train")
    with pytest.raises(DataError, match=r"train, line 1: expected a text; got .*: leave the row out"):
        examples_of(pd.DataFrame({"text": [missing], "label": ["good"]}, dtype=object), "train")
    lacking = {"text": ["a film", missing, "a cast"], "label": ["good", "bad", missing]}
    (found,) = examples_of(pd.DataFrame(lacking, dtype=object), "train", skip_empty=True)
    assert (found.text, found.line) == ("a film", 1)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_a_missing_label_is_no_class(missing: Any) -> None:
    with pytest.raises(DataError, match=r"train, line 2: expected a label; got .*: leave the text out"):
        examples_of([("a film", "good"), ("a cast", missing)], "train")
    (found,) = examples_of([("a cast", missing)], "texts", labelled=False)
    assert found.label is None


@pytest.mark.parametrize("numbers", ["python", "numpy"])
def test_numbers_of_classes_are_names_and_minus_one_is_none(numbers: str) -> None:
    features = datasets.Features({"text": datasets.Value("string"), "label": CLASSES})
    rows = datasets.Dataset.from_dict({"text": ["a film", "a cast", "a plot"], "label": [1, 0, -1]}, features)
    rows = rows.with_format(None if numbers == "python" else numbers)
    assert [each.label for each in examples_of(rows, "texts", labelled=False)] == ["good", "bad", None]
    with pytest.raises(DataError, match=r"train, line 3: expected a label; got .*-1.*: leave the row out"):
        examples_of(rows, "train")


def test_columns_of_other_names_are_named_where_they_can_be() -> None:
    def guard(texts: list[str]) -> list[dict[str, float]]:
        return [{"bad": 0.4, "good": 0.6} for _ in texts]

    run, given = wordward.open_model(guard), table("pandas")
    with pytest.raises(ColumnError, match=r"found review, stars: name it with `text_column` of .*examples_of, and"):
        run.evaluate(given)
    assert run.evaluate(examples_of(given, "texts", **COLUMNS)).texts == 60


def test_splits_are_chosen() -> None:
    with pytest.raises(SettingTypeError, match="DatasetDict: choose one of its splits"):
        examples_of(datasets.DatasetDict({"train": table("datasets")}), "train")
