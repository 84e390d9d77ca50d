"""Models of texts that are not English: what the rules for English words leave alone there, and what is said."""

import random
from pathlib import Path

import pytest
import torch
from reviews import write_csv

from wordward.cli.main import main
from wordward.config.settings import DataSettings, ModelSettings, TextSettings, TrainConfig, TrainingSettings
from wordward.datasets import Example
from wordward.explain.foreign import by_rules_for_english
from wordward.explain.word_classes import fitting_of
from wordward.explain.word_kinds import kind
from wordward.runs.opening import load_run
from wordward.runs.run import Run
from wordward.train.training import train

SAID = "texts of this model are not English"
FRENCH, ENGLISH = "le film qu il est dans une", "the film of it is for and"
SYLLABLES = [a + b for a in "bdfglmprtv" for b in "aeiou"]


def a_run(folder: Path, grammar: str) -> Run:
    """A classifier of texts with these words and many others."""
    rng = random.Random(0)
    many = ["".join(rng.choices(SYLLABLES, k=3)) for _ in range(700)]
    texts = [
        Example(" ".join([*grammar.split(), "superbe" if at % 2 else "ennuyeux", *rng.sample(many, 30)]), str(at % 2))
        for at in range(120)
    ]
    config = TrainConfig(
        method="advt",
        data=DataSettings(train=str(write_csv(folder / "texts.csv", texts))),
        model=ModelSettings(dim=8, hidden=8, head=4, word_dropout=0.0, head_dropout=0.0),
        text=TextSettings(lowercase=True),
        training=TrainingSettings(epochs=1, device="cpu"),
    )
    train(config, folder / "run", quiet=True)
    return load_run(folder / "run", device="cpu")


@pytest.mark.parametrize(("grammar", "told"), [(FRENCH, True), (ENGLISH, False)])
def test_words_of_grammar_fit_none_where_texts_are_not_english(
    grammar: str, told: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = a_run(tmp_path, grammar)
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


def test_fragments_of_french_and_italian_words_fit_none() -> None:
    assert [kind(word, frozenset()) for word in "qu Qu jusqu st dell l s".split()] == [0] * 7
