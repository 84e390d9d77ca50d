"""Models compared under attack, and methods compared as guides."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from reviews import reviews, tagged
from rich.cells import cell_len

from wordward.attack import robustness_tables
from wordward.attack.attacked import Attacked, Change
from wordward.attack.attacker import attack
from wordward.attack.robustness import Robustness, compare_guides, compare_models, holds, largest_cosines
from wordward.attack.robustness_tables import aligned, guides_cells, guides_json, models_cells, models_json, plot
from wordward.cli.main import main
from wordward.config.attack import AttackSettings
from wordward.config.settings import (
    MethodSettings,
    ModelSettings,
    TextSettings,
    TrainConfig,
    TrainingSettings,
)
from wordward.datasets import DataError, Example
from wordward.models import Classifier, Tagger
from wordward.runs.metrics import Interval, mean, share
from wordward.runs.run import Run
from wordward.runs.word_run import WordRun
from wordward.support.errors import SettingError
from wordward.text.tokens import words_of
from wordward.text.vocabulary import SPECIALS, Vocabulary

MODEL = ModelSettings(dim=6, hidden=5, head=4)
TEXTS = reviews(16, seed=2)


def a_run(*, seed: int = 0, task: str = "classify", name: str = "nowhere") -> Run:
    """A run in double precision whose model has learnt nothing."""
    kind, labels, texts = Classifier, ("bad", "good"), reviews(40)
    if task == "tag":
        kind, labels, texts = Tagger, ("c", "i"), tagged(40)
    vocabulary = Vocabulary.build([words_of(example, TextSettings()) for example in texts])
    config = TrainConfig(
        task=task,  # type: ignore[arg-type]
        model=MODEL,
        perturbation=MethodSettings(epsilon=1.0, k=5),
        training=TrainingSettings(positive="i" if task == "tag" else None),
    )
    torch.manual_seed(seed)
    model = kind(len(vocabulary), 2, MODEL).double().eval()
    return WordRun(Path(name), config, vocabulary, labels, model, torch.device("cpu"))


def test_nothing_to_compare_is_said() -> None:
    with pytest.raises(SettingError, match="expected one model or more to compare; got none"):
        compare_models([], TEXTS, AttackSettings())
    with pytest.raises(DataError, match="expected labelled texts to attack; there are none"):
        compare_models([a_run()], [], AttackSettings())


def test_what_holds_under_so_many_swaps() -> None:
    swaps = tuple(Change(at, "a", "b", at, at + 1, "kept") for at in range(2))
    flipped = Attacked("a a", "b b", "x", outcome="flipped", changes=swaps)
    assert [holds(flipped, n) for n in (0, 1, 2, 8)] == [True, True, False, False]
    assert holds(replace(flipped, outcome="kept"), 8)
    assert not any(holds(replace(flipped, outcome=outcome), 0) for outcome in ("wrong", "unreadable"))


def test_accuracy_under_n_swaps_is_that_of_an_attack_with_n_swaps() -> None:
    runs = [a_run(seed=seed, name=f"run{seed}") for seed in (5, 9)]  # those that swaps fool
    examples = [*TEXTS, Example("", "good")]
    settings = AttackSettings(max_share=0.9, words="any")
    rows = compare_models(runs, examples, settings, swaps=(4, 0, 1), quiet=True)
    assert [row.model for row in rows] == ["run5", "run9"]
    for run, row in zip(runs, rows, strict=True):
        assert list(row.accuracy) == [0, 1, 4]
        said = [predicted.label for predicted in run.predict([example.text for example in examples])]
        right = sum(one == example.label for one, example in zip(said, examples, strict=True))
        assert row.accuracy[0] == share(right, 17)  # the text without words counts as wrong
        for most in (1, 4):
            results = attack(run, examples, replace(settings, max_swaps=most))
            assert row.accuracy[most].value == sum(each.outcome == "kept" for each in results) / 17
    one, other = ([each.value for each in row.accuracy.values()] for row in rows)
    assert one[0] > one[1] > one[2]
    assert other[0] > other[2]


def test_taggers_are_compared_by_the_sentences_whose_errors_they_flag() -> None:
    run = a_run(task="tag")
    examples = tagged(30, seed=4)
    (row,) = compare_models([run], examples, AttackSettings(), swaps=(0, 2), quiet=True)
    wrong = [example for example in examples if "i" in (example.tags or ())]
    flagged = 0
    for example in wrong:
        said = run.predict([example.text])[0].tokens
        flagged += any(token.label == "i" == tag for token, tag in zip(said, example.tags or (), strict=True))
    assert row.accuracy[0].value == flagged / len(wrong)
    with pytest.raises(DataError, match="expected sentences with errors"):
        compare_models([run], [e for e in examples if e not in wrong], AttackSettings(), quiet=True)


def test_models_need_true_labels_and_swaps() -> None:
    with pytest.raises(DataError, match="expected true labels"):
        compare_models([a_run()], [Example("the film was warm")], AttackSettings())
    for swaps in ((), (0,), (-1, 2)):
        with pytest.raises(ValueError, match="expected numbers of swaps"):
            compare_models([a_run()], TEXTS, AttackSettings(), swaps=swaps)


@pytest.mark.parametrize("method", ["advt", "iadvt", "vat"])
def test_the_largest_cosine_as_by_brute_force(method: str) -> None:
    """r by the adversary's own call, one text at a time; every word of the vocabulary tried for every word."""
    from wordward.explain.pulls import noise_for

    run = a_run()
    texts = [example.text for example in TEXTS[:5]]
    found = largest_cosines(run, [Example(text) for text in texts], AttackSettings(method=method))
    adversary, table = run.adversary(method), run.model.words.table.weight.detach()
    for text, value in zip(texts, found, strict=True):
        corpus = run.encode([Example(text, run.predict([text])[0].label)], labelled=True)
        batch = corpus.batch(np.array([0]), run.device)
        noise = noise_for(adversary, batch, 0)
        outcome = adversary(lambda: run.model(batch.ids), batch.labels, mask=batch.mask, noise=noise)  # noqa: B023
        largest = []
        for at, here in enumerate(batch.ids[0, :-1].tolist()):
            cosines = [
                torch.cosine_similarity(outcome.perturbation[0, at], table[word] - table[here], dim=0)
                for word in range(len(SPECIALS), len(run.vocabulary))
                if word != here
            ]
            largest.append(float(max(cosines)))
        assert value == pytest.approx(sum(largest) / len(largest), abs=1e-9)


def test_guides_on_the_same_texts() -> None:
    run = a_run()
    rows = compare_guides(run, TEXTS, ["advt", "iadvt"], AttackSettings(rescore=1), quiet=True)
    assert [row.method for row in rows] == ["advt", "iadvt"]
    for row in rows:
        flipped = [each.flipped for each in attack(run, TEXTS, AttackSettings(method=row.method, rescore=1))]
        assert row.summary.flipped == sum(flipped)
        assert row.cosine is not None
        assert -1 <= row.cosine.low <= row.cosine.value <= row.cosine.high <= 1
    table = aligned(*guides_cells(rows))
    assert table.count("\n| ") == 2
    assert len({len(line) for line in table.split("\n")}) == 1
    assert f"| {rows[0].cosine.value:.3f} (" in table  # type: ignore[union-attr]
    assert json.loads(json.dumps(guides_json(rows)))[1]["guide"] == "iadvt"
    wrong = [Example(e.text, "bad" if run.predict([e.text])[0].label == "good" else "good") for e in TEXTS]
    (nothing,) = compare_guides(run, wrong, ["iadvt"], AttackSettings(), quiet=True)
    assert (nothing.cosine, nothing.nearness, nothing.summary.success) == (None, None, None)
    cells = [cell.strip() for cell in aligned(*guides_cells([nothing])).split("\n")[-1].split("|")]
    assert cells[1:7] == ["iadvt", *"–––––"]


ROWS = [
    Robustness(f"run {at}", method, {0: Interval(0.9, 0.8, 0.95), 1: Interval(0.5, 0.4, 0.6)})
    for at, method in enumerate(("baseline", "iadvt"))
]


def test_tables_of_models() -> None:
    assert aligned(*models_cells(ROWS)).split("\n") == [
        "| model | method   | 0 swaps                | 1 swap                 |",
        "|-------|----------|------------------------|------------------------|",
        "| run 0 | baseline | 90.0% (80.0% to 95.0%) | 50.0% (40.0% to 60.0%) |",
        "| run 1 | iadvt    | 90.0% (80.0% to 95.0%) | 50.0% (40.0% to 60.0%) |",
    ]
    wide = aligned(*models_cells([replace(ROWS[0], model="模型|b"), ROWS[1]])).split("\n")  # two columns a character
    assert {cell_len(line) for line in wide} == {cell_len(wide[0])}
    assert "模型\\|b" in wide[2]
    assert json.loads(json.dumps(models_json(ROWS)))[0]["accuracy"]["1"] == {
        "value": 0.5,
        "low": 0.4,
        "high": 0.6,
    }


def test_plot_of_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="plots need wordward[figure]")
    plot(ROWS, tmp_path / "new" / "x.svg")
    assert "<svg" in (tmp_path / "new" / "x.svg").read_text()
    plot(ROWS, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match=r"ends in .png or .svg for the plot; got '.*x.pdf'"):
        plot(ROWS, tmp_path / "x.pdf")
    monkeypatch.setattr(robustness_tables, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install 'wordward\[figure\]'"):
        plot(ROWS, tmp_path / "x.png")


def test_shares_and_means() -> None:
    assert share(0, 10).low == 0.0 < share(0, 10).high < 0.3
    for part, whole in ((1, 0), (3, 2), (-1, 2)):
        with pytest.raises(ValueError, match="expected a part of a total of 1 or more"):
            share(part, whole)
    values = np.random.default_rng(1).normal(3, 1, 400)
    interval = mean(values)
    assert interval.value == pytest.approx(values.mean())
    assert interval.low < interval.value < interval.high
    assert interval.high - interval.low == pytest.approx(2 * 1.96 / 20, rel=0.15)
    assert mean([2.0, 2.0]) == (2.0, 2.0, 2.0)
    with pytest.raises(ValueError, match="got none"):
        mean([])


def test_comparisons_from_the_command_line(
    csv_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = "--dim 8 --hidden 8 --head 4 --epochs 2 --learning-rate 0.02 --epsilon 1 --k 3 --device cpu --quiet"
    runs = [str(tmp_path / name) for name in ("baseline", "iadvt")]
    for run in runs:
        train = ["train", "--train", str(csv_file), "--out", run, "--method", Path(run).name, *sizes.split()]
        assert main(train) == 0
    few = ["--limit", "20", "--device", "cpu"]
    assert main(["attack", str(csv_file), "--models", *runs, *few]) == 0
    shown = capsys.readouterr().out
    caption, _, *table = shown.splitlines()
    assert caption == "Accuracy on 20 texts by number of swaps, with its 95 % interval:"
    heads, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in table)
    assert heads == ["model", "method", "0 swaps", "1 swap", "2 swaps", "4 swaps", "8 swaps"]
    assert [row[:2] for row in rows] == [[run, Path(run).name] for run in runs]
    assert main(["attack", str(csv_file), "--models", *runs, *few, "--swaps", "1", "--json"]) == 0
    assert [list(row["accuracy"]) for row in json.loads(capsys.readouterr().out)] == [["1"], ["1"]]
    assert main(["attack", runs[1], str(csv_file), "--guides", "advt", "iadvt", *few]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Attacks on 20 texts by each guide, with 95 % intervals:\n\n| guide ")
    assert shown.count("\n| ") == 3
    assert main(["attack", runs[1], str(csv_file), "--guides", "advt", "baseline", *few]) == 1
    assert "method must be one that perturbs" in capsys.readouterr().err
