"""The benchmarks measure what they say."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from any_model import word_vectors
from reviews import reviews, tagged, write_conll, write_csv

from benchmarks import __main__ as entry
from benchmarks import reading, reading_well, scale, steps, threads, yardsticks, yardsticks_page, yours, yours_page
from benchmarks.timing import Figure, ratio
from wordward.config.settings import DataSettings, MethodSettings, ModelSettings, TrainConfig, TrainingSettings
from wordward.support.errors import DataError
from wordward.train.training import train

ROOT = Path(__file__).parents[2]
CPU = torch.device("cpu")
TINY = replace(steps.SMALL, words=60, model=ModelSettings(dim=4, hidden=5, head=3), batch=4, length=6, repeats=2)


def test_a_ratio_is_taken_repeat_by_repeat() -> None:
    found = ratio("group", "name", [2.0, 6.0, 4.0], [1.0, 2.0, 4.0])  # 2, 3, 1
    assert (found.value, found.low, found.high) == (2.0, 1.0, 3.0)


def test_every_method_is_measured() -> None:
    figures = {figure.name: figure for figure in steps.measure(TINY, CPU)}
    assert {"advt", "iadvt", "vat", "ivat", "iadvt, three lines"} < set(figures)
    assert all(figure.value > 0 for figure in figures.values())


def test_the_language_model_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "REPEATS", 1)
    speed, ratio = reading.language_model(torch.device("cpu"))
    assert speed.value > 0
    assert 0.5 < ratio.value < 5


def test_threads_are_measured_quiet_and_busy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(threads, "SMALL", TINY)
    printed = ""
    for work in threads.WORKS:
        threads.print_times(work)
        printed = capsys.readouterr().out
        assert len(printed.split()) == threads.REPEATS

    def started(command: list[str], *, env: dict[str, str], **rest: object) -> subprocess.CompletedProcess[str]:
        assert {name: value for name, value in env.items() if name.startswith("OMP_")} in threads.WAYS.values()
        return subprocess.CompletedProcess(command, 0, printed)

    monkeypatch.setattr(subprocess, "run", started)
    monkeypatch.setattr(threads, "cores", lambda: 1)
    figures = list(threads.threads(CPU))
    quiet_and_busy = ["one thread, quiet", "one thread, beside 1 busy processes"]
    assert [figure.name for figure in figures[::3]] == quiet_and_busy * 2
    chosen = [figure.name for figure in figures if figure.note]
    assert chosen[::2] == ["one thread, quiet", "default threads, passive, quiet"]
    assert all(0 < figure.low <= figure.value <= figure.high for figure in figures)
    assert list(threads.threads(torch.device("cuda"))) == []


def test_the_command_prints_a_table_and_keeps_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(entry.PARTS, "neighbours", lambda device: iter([Figure("g", "n", 1234.5, 1, 2, "x")]))
    records = tmp_path / "figures.json"
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--only", "neighbours", "--json", str(records)])
    entry.main()
    assert "| n | 1,234 x | 1.00 to 2.00 |  |  |" in capsys.readouterr().out
    assert json.loads(records.read_text())["figures"][0]["value"] == 1234.5
    assert "| n | 1,234 x | 1.00 to 2.00 |  |  |" in entry.page(tmp_path)


def test_the_page_agrees_with_the_kept_figures() -> None:
    assert (ROOT / "docs" / "benchmarks.md").read_text() == entry.page(ROOT / "benchmarks" / "results")


def test_the_table_of_scale_agrees_with_the_kept_figures() -> None:
    assert scale.page() in (ROOT / "docs" / "scale.md").read_text()


def test_what_reads_well_is_measured_by_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts, labelled = (write_csv(tmp_path / f"{name}.csv", reviews(120, seed=at)) for at, name in enumerate("ab"))
    (tmp_path / "big.txt").write_text("".join(f"{example.text}\n" for example in reviews(300, seed=9)))
    config = TrainConfig(
        method="baseline",
        data=DataSettings(train=str(texts)),
        model=ModelSettings(dim=12, hidden=12, head=6, word_dropout=0.1, head_dropout=0.0),
        perturbation=MethodSettings(k=5),
        training=TrainingSettings(epochs=6, learning_rate=0.02, device="cpu"),
    )
    train(config, tmp_path / "run", quiet=True)
    given = [str(tmp_path / "run"), str(labelled), "--labelled", str(labelled), "--texts", str(tmp_path / "big.txt")]
    reading_well.main([*given, "--limit", "30", "--show"])
    *shown, last = capsys.readouterr().out.splitlines()
    measured = json.loads(last)
    assert measured["texts"] == 30
    assert (
        measured["sensible"]["value"]
        == sum(line[0] == "+" for line in shown if " -> " in line and "[" not in line) / 30
    )
    assert measured["flipped"] == sum("[" in line for line in shown)
    reading_well.main([*given[:4], "--limit", "30", "--show"])
    *pulls, last = capsys.readouterr().out.splitlines()
    assert json.loads(last) == measured | {"fluent": None, "flipped": 0}
    assert pulls == [line for line in shown if "[" not in line]


@pytest.mark.parametrize(
    ("text", "word", "toward", "right"),
    [
        ("This is it", "is", "was", True),
        ("This is it", "This", "that", False),
        ("that is it", "is", "t", False),
        ("it is a dull film", "dull", "odd", False),
        ("it can't be", "can", "could", False),
        ("an odd film", "odd", "dull", False),
    ],
)
def test_grammar_is_kept(text: str, word: str, toward: str, right: bool) -> None:
    start = text.index(word)
    after = text[:start] + toward + text[start + len(word) :]
    assert reading_well.grammatical(text, after, word, toward, start) == right


def a_row(
    row: str, seed: int, error: float, held: float | None = None, chosen: str = "convolution"
) -> dict[str, Any]:
    more = {} if row == "linear" else {"chosen": chosen}
    more |= {} if held is None else {"accuracy_under_attack": held}
    return {
        "set": "imdb",
        "size": 200,
        "row": row,
        "seed": seed,
        "error": error,
        "tested": 100,
        "machine": "a",
    } | more


def test_yours_shows_means_over_seeds_and_leaves_out_what_was_not_run() -> None:
    records = [a_row("linear", 1, 0.3), a_row("iadvt", 1, 0.2, 0.5), a_row("iadvt", 2, 0.3, 0.7)]
    shown = yours_page.table(records, lambda name: True).splitlines()[-1]
    assert shown == "| imdb* | 200 | 30.0 |  |  | 25.0 (60) |  |  | 1 |"


def test_yours_compares_rows_over_the_seeds_that_both_have() -> None:
    records = [a_row("baseline", 1, 0.2, 0.6), a_row("baseline", 2, 0.9, 0.1), a_row("iadvt", 1, 0.25, 0.65)]
    (found,) = yours_page.compared(records, "iadvt", "baseline")
    assert (found.error, found.other_error, found.held) == (0.25, 0.2, pytest.approx(0.05))
    assert found.clearly_worse  # the standard error of 20 % on 100 texts is 4 %
    assert not found._replace(error=0.23).clearly_worse
    text = "\n".join(yours_page.summary(records))
    assert "**iadvt** against baseline: 1.25 of its error" in text
    assert "higher in 1 (imdb 200), in 1 of them by more than a standard error; under attack +5.0 points" in text


def test_yours_has_a_table_for_each_model_with_the_linear_model_in_it() -> None:
    records = [a_row("linear", 1, 0.3), a_row("baseline", 1, 0.2), a_row("baseline", 1, 0.1, chosen="transformer")]
    page = yours_page.page(records, lambda name: False)
    assert page.index("| imdb | 200 | 30.0 | 10.0 |") < page.index("| imdb | 200 | 30.0 | 20.0 |")
    assert "Bi-LSTM" not in page


def test_the_page_of_yours_is_that_of_its_records(capsys: pytest.CaptureFixture[str]) -> None:
    yours.main(["--page"])
    assert (yours.RESULTS.parents[2] / "docs" / "yours.md").read_text(encoding="utf-8") == capsys.readouterr().out


def test_yours_scores_the_linear_model_on_texts_it_has_not_seen() -> None:
    assert yours.linear_error(reviews(80), reviews(40, seed=1), ("bad", "good")) < 0.05
    assert yours.linear_error(tagged(60), tagged(30, seed=1), ("c", "i")) < 0.2


def test_yours_reads_a_set_from_an_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = yours.Source("notes_of_our_own/names", package="notes-of-our-own==1.0")
    monkeypatch.setitem(yours.SETS, "names", source)
    with pytest.raises(DataError, match="pip install --no-deps notes-of-our-own"):
        yours.texts_of("names")
    place = tmp_path / "notes_of_our_own" / "names"
    place.mkdir(parents=True)
    (place.parent / "__init__.py").write_text("raise RuntimeError('never run')")
    write_conll(place / "train.txt", tagged(30))
    write_conll(place / "test.txt", tagged(10, seed=1))
    monkeypatch.syspath_prepend(str(tmp_path))
    kept, test = yours.texts_of("names")
    assert [example.tokens for example in test] == [example.tokens for example in tagged(10, seed=1)]
    assert kept
    assert not {example.tokens for example in kept} & {example.tokens for example in test}


def test_the_picture_of_yours_is_drawn_from_its_records(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    records = [a_row("linear", 1, 0.4), a_row("baseline", 1, 0.2), a_row("iadvt", 1, 0.1, chosen="transformer")]
    path = tmp_path / "records.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    for name in ("one.svg", "two.svg"):
        yours.main(["--records", str(path), "--figure", str(tmp_path / name)])
    drawn = (tmp_path / "one.svg").read_text()
    assert drawn == (tmp_path / "two.svg").read_text()
    for said in ("imdb 200", "a convolution, from a Transformer", "fine-tuned", "baseline", "iadvt"):
        assert said in drawn


def test_yardsticks_of_defences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Rows are recorded once, augmentation is train's own, the page has means over seeds and what is gained."""
    texts, settings = reviews(700), yardsticks.YardstickSettings
    splits = SimpleNamespace(train=texts[:120], dev=texts[120:150], test=texts[150:])
    monkeypatch.setattr(yardsticks, "load", lambda name: splits)
    vectors = {"vectors": str(word_vectors(tmp_path / "vectors.txt")), "similarity_model": "none"}
    monkeypatch.setattr(yardsticks, "YardstickSettings", lambda *args, **more: settings(*args, **more | vectors))
    learnt: list[TrainConfig] = []
    real = yardsticks.train
    monkeypatch.setattr(
        yardsticks, "train", lambda config, out, **more: (learnt.append(config), real(config, out, **more))[1]
    )
    records = tmp_path / "records.jsonl"
    asked = ["--set", "rotten_tomatoes", "--model", "convolution", "--row", "freelb++", "augmentation", "--seed", "1"]
    asked += ["--attack", "textbugger", "--attacked", "20", "--size", "100", "--epochs", "1", "--device", "cpu"]
    asked += ["--records", str(records)]
    yardsticks.main(asked)
    yardsticks.main(asked)
    rows = [json.loads(line) for line in records.read_text().splitlines()]
    assert [row["row"] for row in rows] == ["freelb++", "augmentation"]
    assert [(config.method, config.training.augment) for config in learnt] == [("freelb", None), ("baseline", 10)]
    assert [attack["calibrated"] for attack in rows[0]["attacks"]] == [False, True]
    held = rows[0]["attacks"][0]
    assert len(held["kept"]) == 20
    assert held["kept"].count("k") / 20 == held["accuracy"]
    two = [rows[0] | {"seed": seed, "clean": clean} for seed, clean in ((1, 0.5), (2, 0.7))]
    assert "60.0 ± 14.1" in yardsticks.table(two)
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- defences -->\nold\n<!-- end of defences -->\nafter\n")
    yardsticks.main(["--records", str(records), "--page", str(page)])
    assert page.read_text().startswith("before\n<!-- defences -->\nGenerated by")
    assert page.read_text().endswith("<!-- end of defences -->\nafter\n")
    assert "old" not in page.read_text()
    yardsticks.main(["--records", str(records), "--table"])
    assert "TextBugger-style, calibrated %" in capsys.readouterr().out


def test_what_is_gained_over_freelb_is_paired() -> None:
    """By text: of four, ours keeps one more in each seed, at a quarter of the time."""

    def record(row: str, seed: int, kept: str, seconds: float) -> dict[str, Any]:
        attacks = [{"attack": "textbugger", "calibrated": False, "accuracy": kept.count("k") / 4, "kept": kept}]
        told = {"set": "imdb", "model": "lstm", "row": row, "seed": seed, "clean": 1.0, "training_seconds": seconds}
        return told | {"attacks": attacks, "machine": "a machine", "texts": 100}

    records = [record("freelb++", seed, "kfff", 40.0) for seed in (1, 2)]
    records += [record("iadvt", seed, "kkff", 10.0) for seed in (1, 2)] + [record("advt", 1, "ffff", 9.0)]
    gained = yardsticks_page.gains(records)
    assert "| imdb  | lstm  | iadvt" in gained
    assert "+25.0 (-7.1 to +57.1)" in gained
    assert gained.rstrip(" |").endswith("25%")
    assert yardsticks_page.gains(records[:2]) == ""
    lost = [*records, record("advt, three steps", 1, "kkkk", 8.0) | {"clean": 0.6}]
    assert yardsticks_page.gains(lost) == gained
    assert "1, 1 at chance" in yardsticks_page.rows(lost)
    lost[-1]["clean"] = 0.61
    assert "three steps" in yardsticks_page.gains(lost)


def test_a_corpus_in_the_order_of_its_labels_is_attacked_on_every_label(monkeypatch: pytest.MonkeyPatch) -> None:
    ordered = sorted(reviews(60), key=lambda example: str(example.label))
    monkeypatch.setattr(yours, "load", lambda name: SimpleNamespace(train=reviews(20, seed=1), test=ordered))
    _, test = yours.texts_of("imdb")
    assert len({example.label for example in test[:10]}) == 2
