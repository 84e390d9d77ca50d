"""Runs under TextAttack: what it is told of them, and its attacks on them, without a download."""

import os
import re
import runpy
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from reviews import reviews

from wordward.attack.stopwords import STOP_WORDS
from wordward.attack.textattack import Wrapped, dataset, deep_word_bug, offline, probabilities
from wordward.config.settings import (
    MethodSettings,
    ModelSettings,
    TextSettings,
    TrainConfig,
    TrainingSettings,
)
from wordward.datasets import DataError, Example
from wordward.models import Classifier, Tagger
from wordward.runs.opening import load_run, open_model
from wordward.runs.run import Run
from wordward.runs.word_run import WordRun
from wordward.text.vocabulary import Vocabulary
from wordward.train.training import train

ROOT = Path(__file__).parents[2]
SENTENCE = "the cast was good and the ending was dull , they said".split()
MODEL = ModelSettings(dim=6, hidden=5, head=4)
needs_textattack = pytest.mark.skipif(
    not find_spec("textattack"), reason="TextAttack is not installed: docs/textattack.md"
)
# its dependencies warn of each other's versions
ours_alone = pytest.mark.filterwarnings("ignore")


def untrained(*, tagging: bool = False) -> Run:
    """A run with three labels, not in the order of the alphabet, whose model has learnt nothing yet."""
    vocabulary = Vocabulary.build([SENTENCE] * 3)
    torch.manual_seed(3)
    model = (Tagger if tagging else Classifier)(len(vocabulary), 3, MODEL).eval()
    settings = TrainConfig(task="tag" if tagging else "classify", text=TextSettings(), model=MODEL)
    return WordRun(Path("nowhere"), settings, vocabulary, ("so-so", "bad", "good"), model, torch.device("cpu"))


TEXTS = ["The cast was good", "dull", "the ending was dull , they said", "Qwrt zzz!"]


def test_probabilities_are_those_of_predict_in_the_order_of_the_labels() -> None:
    run = untrained()
    found = probabilities(run, TEXTS)
    said = [record.probabilities for record in run.predict(TEXTS)]
    expected = [[each[label] for label in ("so-so", "bad", "good")] for each in said]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.abs(np.diff(found, axis=1)).min() > 1e-3  # else any order would do


def test_probabilities_sum_to_one_closely_enough_for_textattack() -> None:
    found = probabilities(untrained(), [" ".join(SENTENCE[:at]) for at in range(1, 12)])
    assert found.dtype == np.float64
    assert np.abs(found.sum(1) - 1).max() < 1e-12


def test_texts_are_read_many_at_a_time() -> None:
    run = untrained()
    sizes: list[int] = []
    hook = run.model.register_forward_hook(lambda _, given, __: sizes.append(len(given[0])))
    found = probabilities(run, TEXTS * 20)
    hook.remove()
    assert sum(sizes) == 80
    assert len(sizes) == 3
    np.testing.assert_allclose(found, np.tile(probabilities(run, TEXTS), (20, 1)), atol=1e-6)


def test_a_text_without_words_gets_an_even_share_for_each_label() -> None:
    run = untrained()
    found = probabilities(run, ["", TEXTS[0], "  \n"])
    np.testing.assert_allclose(found[[0, 2]], 1 / 3)
    np.testing.assert_allclose(found[1], probabilities(run, TEXTS[:1])[0], atol=1e-6)
    np.testing.assert_allclose(probabilities(run, [""]), [[1 / 3] * 3])
    assert probabilities(run, []).shape == (0, 3)


def test_without_the_package_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "textattack", None)
    monkeypatch.setitem(sys.modules, "nltk", None)
    hint = r"pip install 'wordward\[textattack\]'$"
    with pytest.raises(RuntimeError, match=f"needs textattack, .*{hint}"):
        Wrapped(untrained())
    with pytest.raises(RuntimeError, match=f"needs textattack, .*{hint}"):
        dataset(untrained(), [Example("good", "good")])
    with pytest.raises(RuntimeError, match=f"needs nltk, .*{hint}"):
        offline(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_what_it_cannot_attack_is_refused() -> None:
    with pytest.raises(ValueError, match="got a tagger"):
        Wrapped(untrained(tagging=True))
    with pytest.raises(ValueError, match="got a tagger"):
        dataset(untrained(tagging=True), [])
    topics = SimpleNamespace(predict_proba=lambda texts: [[0.9, 0.9] for _ in texts], several_labels=True)
    with pytest.raises(ValueError, match="several at once: open it with `positive`"):
        Wrapped(open_model(topics))
    with pytest.raises(DataError, match=r"line 7: expected a label that the model knows .* got 'fine'"):
        dataset(untrained(), [Example("good", "fine", line=7)])
    with pytest.raises(DataError, match="line 7: expected a label; there is none"):
        dataset(untrained(), [Example("good", line=7)])
    with pytest.raises(DataError, match="line 8: expected a text with words"):
        dataset(untrained(), [Example("good", "good", line=7), Example(" ", "bad", line=8)])


@pytest.fixture(scope="module")
def calls() -> list[Any]:
    """Where TextAttack tried to connect to."""
    return []


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory, calls: list[Any]) -> Iterator[ModuleType]:
    """TextAttack, imported and used without a network."""
    kept = dict(os.environ)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(socket.socket, "connect", lambda _, address: calls.append(address))
        patch.setattr(socket, "getaddrinfo", lambda *address, **_: calls.append(address))
        offline(tmp_path_factory.mktemp("textattack"))
        import textattack  # type: ignore[import-not-found]

        yield textattack
    os.environ.clear()
    os.environ.update(kept)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A classifier that tells praise from blame."""
    folder = tmp_path_factory.mktemp("runs") / "demo"
    folder.mkdir()
    lines = [f"{example.text.replace(',', ';')},{example.label}" for example in reviews(240)]
    (folder / "test.csv").write_text("\n".join(["text,label", *lines]))
    config = TrainConfig(
        method="iadvt",
        model=ModelSettings(dim=12, hidden=12, head=6, word_dropout=0.1, head_dropout=0.0),
        perturbation=MethodSettings(epsilon=1.0, k=5),
        training=TrainingSettings(epochs=6, learning_rate=0.02, device="cpu"),
    )
    config = replace(config, data=replace(config.data, train=str(folder / "test.csv")))
    train(config, folder / "ivat", quiet=True)
    return load_run(folder / "ivat", device="cpu")


@needs_textattack
@ours_alone
def test_textattack_sees_our_probabilities_as_they_are(package: ModuleType) -> None:
    run = untrained()
    wrapped = Wrapped(run)
    assert isinstance(wrapped, package.models.wrappers.ModelWrapper)
    goal = package.goal_functions.UntargetedClassification(wrapped)
    goal.init_attack_example(package.shared.AttackedText(TEXTS[0]), 1)
    results, _ = goal.get_results([package.shared.AttackedText(text) for text in TEXTS])
    expected = probabilities(run, TEXTS)
    np.testing.assert_allclose(np.stack([result.raw_output for result in results]), expected, atol=1e-6)
    np.testing.assert_allclose([result.score for result in results], 1 - expected[:, 1], atol=1e-6)


@needs_textattack
@ours_alone
def test_examples_become_a_dataset_with_the_runs_numbers(package: ModuleType) -> None:
    given = dataset(untrained(), [Example("a good cast", "good"), Example("a dull ending", "so-so")])
    assert isinstance(given, package.datasets.Dataset)
    assert [(dict(text), number) for text, number in given[:2]] == [
        ({"text": "a good cast"}, 2),
        ({"text": "a dull ending"}, 0),
    ]
    assert given.label_names == ["so-so", "bad", "good"]


def attacked(package: ModuleType, run: Run, examples: list[Example]) -> list[Any]:
    """What DeepWordBug makes of examples."""
    settings = package.AttackArgs(num_examples=len(examples), random_seed=0, disable_stdout=True, silent=True)
    attack = deep_word_bug(Wrapped(run))
    return package.Attacker(attack, dataset(run, examples), settings).attack_dataset()


@needs_textattack
@ours_alone
def test_its_attack_fools_a_run_and_downloads_nothing(package: ModuleType, calls: list[Any], run: Run) -> None:
    examples = [replace(each, text=each.text.capitalize()) for each in reviews(24, seed=5)]
    results = attacked(package, run, examples)
    again = attacked(package, run, examples)
    assert not calls
    texts = [each.perturbed_result.attacked_text.text for each in results]
    assert texts == [each.perturbed_result.attacked_text.text for each in again]
    kinds = [type(each).__name__ for each in results]
    assert 0 < kinds.count("SuccessfulAttackResult") < 24
    for kind, record, example in zip(kinds, run.predict(texts), examples, strict=True):
        assert (record.label == example.label) == (kind == "FailedAttackResult")
        pairs = list(zip(example.text.split(), record.text.split(), strict=True))
        assert all(one == other for one, other in pairs if one.lower() in STOP_WORDS)
        assert any(one != other for one, other in pairs) or kind != "SuccessfulAttackResult"


@needs_textattack
@ours_alone
def test_its_attack_leaves_stop_words_as_they_are_written(package: ModuleType, run: Run) -> None:
    text = package.shared.AttackedText("The film WAS dull")
    found = {each.text for each in deep_word_bug(Wrapped(run)).get_transformations(text, text)}
    assert len(found) > 2
    for made in found:
        assert re.fullmatch(r"The (\w+ WAS dull|film WAS \w+)", made)


@needs_textattack
@ours_alone
@pytest.mark.parametrize("more", [[], ["--unknown"]])
def test_the_cross_check_prints_a_row_a_run(
    more: list[str],
    package: ModuleType,
    run: Run,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert package
    script = ROOT / "examples" / "textattack_cross_check.py"
    monkeypatch.setattr(
        sys,
        "argv",
        [str(script), str(run.folder.parent / "test.csv"), str(run.folder), "--limit", "12", *more],
    )
    runpy.run_path(str(script), run_name="__main__")
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    assert lines[0].startswith("| run | accuracy | under attack |")
    assert re.match(rf"\| {re.escape(str(run.folder))} \| [\d.]+ % \[", lines[2])
    clean, under = (float(cell.split()[0]) for cell in lines[2].split("|")[2:4])
    assert under < clean <= 100
    assert not more or "| 100.0 % |" in lines[2]  # of the words changed are unknown


@needs_textattack
@ours_alone
def test_the_page_of_the_docs_runs(
    package: ModuleType, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert package
    (block,) = re.findall(r"```py\n(.*?)```", (ROOT / "docs" / "textattack.md").read_text(), re.DOTALL)
    (tmp_path / "runs").symlink_to(run.folder.parent.parent)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(block, "docs/textattack.md", "exec"), names)
    assert len(names["results"]) == 20


@needs_textattack
def test_without_stop_words_it_says_how_to_do_without(tmp_path: Path) -> None:
    """In a process of its own, since TextAttack is imported once."""
    code = (
        "from wordward import textattack_model\n"
        "try: textattack_model._textattack()\n"
        "except RuntimeError as error: print(error)"
    )
    marked = tmp_path / "cache"  # as after a first import without a network
    marked.mkdir()
    (marked / "post_install_check_3").touch()
    lost = {"TA_CACHE_DIR": str(marked), "HOME": str(tmp_path), "NLTK_DATA": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **lost},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("wordward.attack.textattack.offline(FOLDER) before it is imported")
