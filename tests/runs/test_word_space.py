"""Which vectors say what words are near each other."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from any_model import bert_table
from untrained import a_run

from wordward.runs import input_table
from wordward.runs import word_space as module
from wordward.runs.run import Run
from wordward.runs.word_space import agreement, word_space
from wordward.support.errors import DataError, SettingError
from wordward.text.vocabulary import SPECIALS


def test_a_folder_gives_its_input_table(tmp_path: Path) -> None:
    run, table = a_run(), torch.randn(3, 5)
    space = word_space(run, str(bert_table(tmp_path / "bert", ["good", "zebra", "dull"], table)))
    assert space is not None
    words = run.vocabulary.words
    assert {words[at] for at in space.known.nonzero().flatten()} == {"good", "dull"}
    assert torch.equal(space.table[run.vocabulary["good"]], table[0])
    assert torch.equal(space.table[run.vocabulary["dull"]], table[2])


def test_a_file_gives_its_vectors(tmp_path: Path) -> None:
    run, file = a_run(), tmp_path / "vectors.txt"
    file.write_text("2 3\ngood 1 2 3\ndull 4 5 6\n")
    space = word_space(run, str(file))
    assert space is not None
    assert space.table[run.vocabulary["dull"]].tolist() == [4, 5, 6]
    assert int(space.known.sum()) == 2


def test_what_has_no_vectors_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="expected a folder"):
        word_space(a_run(), str(tmp_path / "empty"))
    (tmp_path / "vectors.txt").write_text("zebra 1 2 3\n")
    with pytest.raises(SettingError, match="no vector for any word"):
        word_space(a_run(), str(tmp_path / "vectors.txt"))


def of_many_words(table: torch.Tensor) -> Run:
    """A run that knows many words, with that table."""
    run = a_run()
    words = tuple(f"word{at}" for at in range(len(table) - len(SPECIALS)))
    vocabulary = type(run.vocabulary)((*SPECIALS, *words), np.arange(len(table), 0, -1))
    run.model.words.table = torch.nn.Embedding.from_pretrained(table)
    return replace(run, vocabulary=vocabulary)


def test_a_table_is_poor_where_it_agrees_too_rarely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = torch.randn(700, 4)
    like = of_many_words(good + 0.1 * torch.randn(700, 4))
    random = of_many_words(torch.randn(700, 16))
    folder = bert_table(tmp_path / "bert", list(like.vocabulary.words[len(SPECIALS) :]), good[len(SPECIALS) :])
    monkeypatch.setattr(module, "installed_model", lambda: folder)
    for run, low, high in ((like, 0.8, 1.0), (random, 0.0, 0.15)):
        space = word_space(run, str(folder))
        assert space is not None
        assert low <= agreement(run, space) <= high
    assert word_space(like) is None
    assert word_space(random) is not None
    assert word_space(random, "own") is None
    monkeypatch.setattr(module, "installed_model", lambda: None)
    assert word_space(random) is None  # nothing is at hand


def test_few_words_tell_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = bert_table(tmp_path / "bert", ["good", "dull"], torch.randn(2, 4))
    monkeypatch.setattr(module, "installed_model", lambda: folder)
    assert word_space(a_run()) is None


def test_the_model_of_the_package_has_its_own_name_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_table, "installed_model", lambda: tmp_path / "package")
    for name in ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"):
        assert input_table.model_at_hand(name) == str(tmp_path / "package")
    assert input_table.model_at_hand("bert-base-uncased") == "bert-base-uncased"
    monkeypatch.setattr(input_table, "installed_model", lambda: None)
    assert input_table.model_at_hand("all-MiniLM-L6-v2") == "sentence-transformers/all-MiniLM-L6-v2"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "all-MiniLM-L6-v2").mkdir()
    assert input_table.model_at_hand("all-MiniLM-L6-v2") == "all-MiniLM-L6-v2"
