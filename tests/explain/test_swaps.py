"""Swaps of a reader's own model."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

import wordward
from wordward.explain.explanation import Place
from wordward.explain.swaps import Names, keeps_articles, swaps
from wordward.text.vocabulary import SPECIALS, Vocabulary


class Mine(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(30, 8, padding_idx=0)
        self.lstm = nn.LSTM(8, 6, batch_first=True)
        self.out = nn.Linear(6, 2)

    def forward(self, ids: Tensor) -> Tensor:
        states, _ = self.lstm(self.embedding(ids))
        return self.out(states[:, -1])


WORDS = ["<pad>", *(f"word{number}" for number in range(1, 30))]
KINDS: dict[str, Names] = {
    "list": WORDS,
    "tuple": tuple(WORDS),
    "dict": dict(enumerate(WORDS)),
    "function": lambda number: WORDS[number],
}


def own_outcome(method: Callable[..., wordward.Adversary]) -> wordward.Outcome:
    model, ids = Mine(), torch.tensor([[2, 5, 7, 0], [1, 3, 2, 9]])  # 2 is a word here, not <eos>
    return method(model, epsilon=1.0, k=4)(lambda: model(ids), torch.tensor([0, 1]), mask=ids != 0)


@pytest.mark.parametrize("kind", list(KINDS))
def test_swaps_of_a_model_of_ones_own(kind: str) -> None:
    outcome = own_outcome(wordward.iadvt)
    first, second = (swaps(outcome, KINDS[kind], row=row) for row in (0, 1))
    assert [swap.word for swap in first] == ["word2", "word5", "word7"]
    assert [swap.word for swap in second] == ["word1", "word3", "word2", "word9"]
    assert any(swap.toward for swap in first)
    assert {swap.toward for swap in first} <= {*WORDS[1:], None}
    ours = Vocabulary((*SPECIALS, *WORDS[3:]), torch.ones(30).numpy())
    assert [swap.word for swap in swaps(outcome, ours)] == ["word5", "word7"]  # our <eos> is no word


def test_a_word_that_nothing_pulls_is_swapped_for_none() -> None:
    outcome = own_outcome(wordward.iadvt)
    strengths = torch.tensor([[-3.0, -1.0, -2.0, -4.0], [0.0, -1.0, 0.0, 0.0], [0.1, 0.4, -9.0, 0.2], [9.0] * 4])
    found = swaps(replace(outcome, strengths=torch.stack([strengths, -strengths])), WORDS)
    assert outcome.candidates is not None
    pulled = WORDS[outcome.candidates[0, 2, 1]]  # by the largest strength, not the longest; padding's do not count
    assert [(swap.toward, swap.relative) for swap in found] == [(None, 0.0), (None, 0.0), (pulled, 1.0)]
    assert [swap.strength for swap in found] == pytest.approx([-1.0, 0.0, 0.4])


def test_words_that_are_missing_or_not_pointed_to() -> None:
    for few in (WORDS[:5], dict(enumerate(WORDS[:5]))):
        with pytest.raises(ValueError, match=r"there is none for id .* among 5 words"):
            swaps(own_outcome(wordward.iadvt), few)
    with pytest.raises(ValueError, match="does not point toward words: use one of iadvt, ivat"):
        swaps(own_outcome(wordward.advt), WORDS)


@pytest.mark.parametrize(
    ("text", "word", "new", "kept"),
    [
        ("It was a dull film", "dull", "awful", False),
        ("It was a dull film", "dull", "bright", True),
        ("It was an awful film", "awful", "dull", False),
        ("An awful film", "awful", "odd", True),
        ("It was a dull film", "dull", "honest", True),  # either
        ("It was the dull film", "dull", "awful", True),
        ("A banana dull", "dull", "awful", True),  # no article before it
        ("It was the awful film", "the", "a", False),
        ("It was the dull film", "the", "a", True),
        ("It was the dull film", "the", "an", False),
        ("dull", "dull", "awful", True),
    ],
)
def test_articles_stand_where_they_should(text: str, word: str, new: str, kept: bool) -> None:
    start = text.index(word)
    assert keeps_articles(text, Place(0, word, start, start + len(word), True, ()), new) == kept
