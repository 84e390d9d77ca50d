"""Nearest words of a run folder: the same as by hand, and clear words where there are none."""

from pathlib import Path

import pytest
import torch.nn.functional as F

from wordward.cli.main import main
from wordward.config.settings import ModelSettings, PretrainConfig, TrainConfig
from wordward.config.texts import TextSettings
from wordward.config.toml import to_toml
from wordward.models import Classifier
from wordward.runs import checkpoint, run_folder
from wordward.runs.neighbors import nearest_words
from wordward.runs.run_folder import RunError
from wordward.text.vocabulary import Vocabulary

WORDS = "good fine warm dull cold bland".split()
MODEL = ModelSettings(dim=6, hidden=5, head=4)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder, vocabulary = tmp_path / "run", Vocabulary.build([WORDS] * 7)
    folder.mkdir()
    run_folder.save_settings(folder, TrainConfig(model=MODEL), vocabulary, ("bad", "good"))
    checkpoint.save_weights(folder, Classifier(len(vocabulary), 2, MODEL), vocabulary)
    return folder


def test_nearest_words_are_those_of_the_table(run: Path) -> None:
    vocabulary = run_folder.load_vocabulary(run)
    table = checkpoint.load_tensors(run, vocabulary)["words.table.weight"]
    for word, found in nearest_words(run, ["good", "cold"], k=3):
        here = table[vocabulary[word]]
        near = {
            other: float(F.cosine_similarity(here, table[vocabulary[other]], dim=0))
            for other in WORDS
            if other != word
        }
        assert [other for other, _ in found] == sorted(near, key=lambda other: -near[other])[:3]
        assert [value for _, value in found] == pytest.approx([near[other] for other, _ in found])


def test_no_words_are_refused(run: Path) -> None:
    with pytest.raises(ValueError, match="expected words to look up; got none"):
        list(nearest_words(run, []))


def test_unknown_words_are_named_and_the_others_shown(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["neighbors", str(run), "goood", "cold", "xyz", "--k", "3"]) == 0
    out, err = capsys.readouterr()
    assert [line.partition(":")[0] for line in out.splitlines()] == ["cold"]
    assert "does not know 'goood' (did you mean 'good'?), 'xyz': is the case right?" in err


def test_nothing_but_unknown_words_is_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["neighbors", str(run), "Warm", "xyz", "--k", "3"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "does not know 'Warm' (did you mean 'warm'?), 'xyz'" in err


@pytest.mark.parametrize("kind", [TrainConfig, PretrainConfig])
def test_words_are_looked_up_as_the_run_reads_them(
    run: Path, kind: type[TrainConfig | PretrainConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    (run / run_folder.CONFIG).write_text(to_toml(kind(text=TextSettings(lowercase=True))))
    assert list(nearest_words(run, ["Good", "COLD"], k=3)) == list(nearest_words(run, ["good", "cold"], k=3))
    assert main(["neighbors", str(run), "Goood", "Cold", "--k", "3"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("cold: ")
    assert "does not know 'goood' (did you mean 'good'?)" in err
    assert "case right" not in err


def test_a_word_in_another_case_is_the_nearest(tmp_path: Path) -> None:
    vocabulary = Vocabulary.build([["took", "BOOK", *WORDS]] * 7)
    run_folder.save_settings(tmp_path, TrainConfig(model=MODEL), vocabulary, ("bad", "good"))
    checkpoint.save_weights(tmp_path, Classifier(len(vocabulary), 2, MODEL), vocabulary)
    with pytest.raises(ValueError, match=r"does not know 'book' \(did you mean 'BOOK'\?\): is the case right\?"):
        list(nearest_words(tmp_path, ["book"], k=3))


@pytest.mark.parametrize(("k", "min_count", "there"), [(3, 8, 0), (6, 5, 6)])
def test_too_few_frequent_words(k: int, min_count: int, there: int, run: Path) -> None:
    with pytest.raises(ValueError, match=rf"{min_count} times or more; .* has {there}: .* lower `min_count`"):
        list(nearest_words(run, ["good"], k=k, min_count=min_count))


def test_k_is_one_or_more(run: Path) -> None:
    with pytest.raises(ValueError, match="k must be 1 or more, but is 0"):
        list(nearest_words(run, ["good"], k=0))


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is not a run folder"):
        list(nearest_words(tmp_path / "nowhere", ["good"]))


@pytest.mark.parametrize("damage", ["missing", "damaged", "another vocabulary"])
def test_weights_that_cannot_be_used(damage: str, run: Path) -> None:
    weights = run / run_folder.WEIGHTS
    if damage == "missing":
        weights.unlink()
    elif damage == "damaged":
        weights.write_bytes(weights.read_bytes()[:100])
    else:
        Vocabulary.build([["other", *WORDS[:-1]]] * 7).save(run / run_folder.VOCABULARY)
    with pytest.raises(RunError, match={"missing": "holds no"}.get(damage, damage)):
        list(nearest_words(run, ["good"], k=3))
