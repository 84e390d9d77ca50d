"""Columns in folds: every text tested once, by models that have read it neither with nor without its label."""

import json
from collections import Counter
from pathlib import Path

import pytest
from reviews import reviews

from experiments import folds, reproduce
from experiments.__main__ import main
from experiments.paired import one_by_one, pack_bits
from experiments.settings import Plan, fold_folder, reading_config, row_config
from experiments.tables import FOLDS, R52_FOLDS, ROTTEN_FOLDS
from wordward.datasets import Example

ROOT = Path(__file__).parents[2]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sentences of our own in the place of Rotten Tomatoes, and others without labels."""
    folder = tmp_path / "data" / "rotten_tomatoes"
    folder.mkdir(parents=True)
    for ending, label in (("pos", "good"), ("neg", "bad")):
        chosen = [f"{each.text} {n}" for n, each in enumerate(reviews(240, seed=2)) if each.label == label]
        (folder / f"rt-polarity.{ending}").write_text("\n".join(chosen) + "\n", encoding="utf-8")
    others = [f"{each.text} quietly {n}" for n, each in enumerate(reviews(200, seed=3))]
    others.append(f"{reviews(240, seed=2)[7].text}  7")  # which is among the labelled, but for a blank
    (folder / "unlabelled.txt").write_text("\n".join(others) + "\n", encoding="utf-8")
    monkeypatch.setenv("WORDWARD_DATA", str(folder.parent))
    return folder


def texts_in(path: Path) -> list[str]:
    """The texts of a file of JSON Lines."""
    return [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]


def test_each_text_is_tested_once_and_labels_are_dealt_evenly() -> None:
    examples = [Example(f"text {n}", "ab"[n % 3 == 0]) for n in range(100)]
    examples += [Example("the same  text", "a"), Example("the same text", "a"), Example("the only one", "c")]
    examples += [Example("text 1", "d"), Example("text 1 ", "d")]  # a label that only this text has
    found = folds.drawn(examples)
    assert [number for number, fold in enumerate(found) if fold == 0] == [1, 102, 103, 104]
    assert found[100] == found[101]
    assert set(found) == set(range(FOLDS + 1))
    for label in "ab":
        counts = Counter(fold for fold, each in zip(found[:100], examples, strict=False) if each.label == label)
        assert max(counts.values()) - min(counts[fold] for fold in range(1, FOLDS + 1)) <= 2
    assert found == folds.drawn(examples)


def test_no_model_has_read_what_it_is_tested_on(data: Path, tmp_path: Path) -> None:
    plan = Plan(ROOT / "experiments", tmp_path / "out", "cpu-small")
    folds.make(ROTTEN_FOLDS, plan)
    tested = []
    for fold in range(1, FOLDS + 1):
        config = row_config(ROTTEN_FOLDS, ROTTEN_FOLDS.rows[0], fold, plan)
        train, test = texts_in(Path(config.data.train)), texts_in(Path(str(config.data.test)))
        assert not {*train} & {*test}
        assert len(train) + len(test) == 240
        tested += test
    assert len(set(tested)) == len(tested) == 240
    reading = reading_config(ROTTEN_FOLDS, plan)
    assert reading is not None
    assert reading.corpus is None
    read = {" ".join(text.split()) for file in reading.texts for text in texts_in(Path(file))}
    assert len(read) == 200
    assert not read & {*tested}
    uses = {row.name: row_config(ROTTEN_FOLDS, row, 1, plan).data.unlabelled for row in ROTTEN_FOLDS.rows}
    assert {row for row, file in uses.items() if file} == {"vat", "ivat"}


def test_rows_are_run_by_fold(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = ("--preset", "cpu-small", "--device", "cpu", "--out", str(tmp_path / "out"), "--quiet")
    told = ("reproduce", "folds", "--rows", "baseline", "advt", "--seeds", "2", *place)
    assert main([*told, "--experiments", str(ROOT / "experiments")]) == 0
    shown, _, other = capsys.readouterr().out.partition("### Reuters")
    assert "not found" in other  # R52 is not here
    assert "| folds |" in shown
    line = next(line for line in shown.splitlines() if line.startswith("| AdvT"))
    assert "(folds) | 2 |" in line
    assert line.rstrip(" |").endswith(")")  # its gain, with an interval
    folder = fold_folder(ROTTEN_FOLDS, Plan(ROOT / "experiments", tmp_path / "out" / "cpu-small"))
    before = (folder / "1" / "test.jsonl").stat().st_mtime_ns
    assert main([*told, "--experiments", str(ROOT / "experiments")]) == 0  # which finds all runs done
    assert capsys.readouterr().out.partition("### Reuters")[0] == shown
    assert (folder / "1" / "test.jsonl").stat().st_mtime_ns == before


def test_more_seeds_than_folds_are_refused(data: Path, tmp_path: Path) -> None:
    plan = Plan(ROOT / "experiments", tmp_path / "out", "cpu-small", seeds=11, device="cpu", quiet=True)
    with pytest.raises(reproduce.TableError, match="rotten_tomatoes_folds has 10 folds, each run with its own seed"):
        reproduce.reproduce("folds", plan, rows=("baseline",), results_folder=tmp_path / "kept")


def test_without_texts_for_a_language_model_there_are_no_folds(data: Path, tmp_path: Path) -> None:
    (data / "unlabelled.txt").unlink()
    plan = Plan(ROOT / "experiments", tmp_path / "out", "cpu-small", device="cpu", quiet=True)
    with pytest.raises(reproduce.TableError, match="expected texts without labels of rotten_tomatoes"):
        reproduce.reproduce("folds", plan, rows=("baseline",), results_folder=tmp_path / "kept")
    assert not (fold_folder(ROTTEN_FOLDS, plan) / "1").exists()


def test_folds_are_compared_together() -> None:
    wrong = {("advt", 1): [1, 1, 0], ("iadvt", 1): [0, 0, 1], ("advt", 2): [1, 0], ("iadvt", 2): [0, 0]}
    records = [
        {"row": row, "seed": seed, "counted": len(bits), "wrong": pack_bits(map(bool, bits))}
        for (row, seed), bits in wrong.items()
    ]
    (line,) = one_by_one(records, together=True)
    assert line.startswith("- iadvt against advt, 2 folds: only iadvt wrong on 1, only advt on 3; McNemar p = ")
    assert len(one_by_one(records)) == 2


def test_a_column_in_folds_has_the_settings_of_the_column_it_divides() -> None:
    assert ROTTEN_FOLDS.settings == "rotten_tomatoes"
    assert (R52_FOLDS.settings, R52_FOLDS.runs) == ("r52", "folds")
