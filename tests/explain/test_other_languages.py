"""Models of texts that are not English: what the rules for English words leave alone there, and what is said."""

from pathlib import Path

import pytest
import torch
from foreign_runs import ENGLISH, FRENCH, a_run

from wordward.cli.main import main
from wordward.explain import other_languages
from wordward.explain.other_languages import by_rules_for_english
from wordward.explain.word_classes import fitting_of
from wordward.explain.word_kinds import kind
from wordward.runs.checkpoint import load_contexts, save_class_counts
from wordward.runs.opening import load_run

SAID = "texts of this model are not English"


@pytest.mark.parametrize(("grammar", "told"), [(FRENCH, True), (ENGLISH, False)])
def test_words_of_grammar_fit_none_where_texts_are_not_english(
    grammar: str, told: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = a_run(tmp_path, grammar)
    assert by_rules_for_english(run) == ""  # by where words stand, where a run has kept that
    counts = run.class_counts()
    assert counts is not None
    save_class_counts(run.folder, counts, run.vocabulary)  # as an older run
    run = load_run(run.folder, device="cpu")
    kinds = fitting_of(run).kinds
    for word in ("superbe", "ennuyeux"):
        assert int(kinds[run.vocabulary[word]]) != 0
    assert (int(kinds[run.vocabulary["film"]]) == 0) == told  # short and common
    if told:
        assert not torch.any(kinds[[run.vocabulary[word] for word in grammar.split()]])
    assert (SAID in by_rules_for_english(run)) == told
    capsys.readouterr()
    for command in ("attack", "explain"):
        for words, times in (("fitting", int(told)), ("any", 0)):
            given = [str(run.folder), "--text", "superbe film", "--device", "cpu", "--words", words]
            assert main([command, *given]) == 0
            assert capsys.readouterr().err.count(SAID) == times


@pytest.mark.parametrize("grammar", [FRENCH, ENGLISH])
@pytest.mark.parametrize("vectors", [True, False])
def test_where_words_stand_is_kept_but_of_english_ones_with_vectors(
    grammar: str, vectors: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_languages, "installed_model", lambda: None)
    file = tmp_path / "vectors.txt"
    file.write_text("".join(f"{word}{' 0.5' * 32}\n" for word in ("superbe", "ennuyeux")), encoding="utf-8")
    run = a_run(tmp_path, grammar, vectors=str(file) if vectors else None)
    kept = not (vectors and grammar == ENGLISH)
    assert other_languages.reads_contexts(run.config, run.learnt) == kept
    for found in (load_contexts(run.folder, run.vocabulary), other_languages.contexts_of(run)):
        assert (found is not None) == kept
    assert run.class_counts() is not None


def test_fragments_of_french_and_italian_words_fit_none() -> None:
    assert [kind(word, frozenset()) for word in "qu Qu jusqu st dell l s".split()] == [0] * 7
