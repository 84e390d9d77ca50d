"""What a perturbation points at: swaps of our runs and of a reader's own model, put into the text."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import wordward
from wordward.config import MethodSettings, ModelSettings, TextSettings, TrainConfig, TrainingSettings
from wordward.datasets import Example
from wordward.explain import Names, Swap, apply, explain, swaps
from wordward.models import Classifier, Tagger
from wordward.predict import Run
from wordward.text import SPECIALS, Vocabulary

SENTENCE = "the cast was good and the ending was dull".split()
MODEL = ModelSettings(dim=6, hidden=5, head=4)


def a_run(*, task: str = "classify", **text: Any) -> Run:
    """A run whose model has learnt nothing yet."""
    vocabulary = Vocabulary.build([SENTENCE] * 3)
    kind, labels = (Tagger, ("c", "i")) if task == "tag" else (Classifier, ("bad", "good"))
    settings = TrainConfig(
        task=task,  # type: ignore[arg-type]
        text=TextSettings(**text),
        model=MODEL,
        perturbation=MethodSettings(epsilon=1.0, k=None),
        training=TrainingSettings(min_candidate_count=1),
    )
    model = kind(len(vocabulary), len(labels), MODEL).eval()
    return Run(Path("nowhere"), settings, vocabulary, labels, model, torch.device("cpu"))


def strongest(run: Run, example: Example, method: str = "iadvt") -> dict[str, Swap]:
    (found,) = explain(run, [example], method=method)
    return {swap.word: swap for swap in found}


@pytest.mark.parametrize("unknown", ["unk", "drop"])
def test_the_swap_goes_to_the_word_it_was_found_at(unknown: str) -> None:
    run = a_run(unknown=unknown, lowercase=True)
    text = "Zyx wvu: the CAST,  qqq was dull!"
    found = strongest(run, Example(text, "bad"))
    assert found["cast"].position == (3 if unknown == "unk" else 1)
    for word, written in {"cast": "CAST", "was": "was", "dull": "dull"}.items():
        swap = found[word]._replace(toward="good")
        assert apply(run, text, swap) == text.replace(written, "good")


def test_an_unknown_word_may_be_swapped_but_a_known_one_is_not_taken_for_it() -> None:
    run = a_run()
    swap = Swap(1, "<unk>", "good", 1.0, 1.0)
    assert apply(run, "the zyx was dull", swap) == "the good was dull"
    with pytest.raises(ValueError, match="expected '<unk>' at word 2 of the text; there stands 'cast'"):
        apply(run, "the cast was dull", swap)


def test_a_swap_of_another_text_is_refused() -> None:
    run = a_run(max_length=3)
    for position in (-1, 3, 99):  # the model read three words only
        with pytest.raises(ValueError, match="the text ends before"):
            apply(run, "the cast was good", Swap(position, "good", "dull", 1.0, 1.0))
    with pytest.raises(ValueError, match="no word pulls 'cast'"):
        apply(run, "the cast was good", Swap(1, "cast", None, 0.0, 0.0))


def test_a_tagger_reads_words_at_blanks() -> None:
    run = a_run(task="tag", unknown="drop", max_length=2)
    text = "well , the cast 's good"
    example = Example(text, tokens=tuple(text.split()), tags=("c",) * 6)
    for given, method in ((example, "iadvt"), (Example(text), "ivat")):
        swap = strongest(run, given, method)["good"]._replace(toward="dull")
        assert swap.position == 5
        assert apply(run, text, swap) == "well , the cast 's dull"


@pytest.mark.parametrize("task", ["classify", "tag"])
def test_a_text_without_words_has_no_swaps(task: str) -> None:
    run = a_run(task=task, unknown="drop")
    texts = [Example(""), Example("the cast was good"), Example("  ")]
    first, second, third = explain(run, texts, method="ivat")
    assert first == third == []
    assert [swap.word for swap in second] == ["the", "cast", "was", "good"]
    assert explain(run, [], method="ivat") == []
    if task == "classify":
        assert explain(run, [Example("zyx wvu", "bad")]) == [[]]  # all words left out


@pytest.mark.parametrize("method", ["baseline", "iadvt+ivat", "advt", "vat"])
def test_explaining_takes_one_method_toward_words(method: str) -> None:
    with pytest.raises(ValueError, match=r"one method that points toward words \(iadvt, ivat.*got '"):
        explain(a_run(), [Example("the cast was good", "good")], method=method)


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


def test_words_that_are_missing_or_not_pointed_to() -> None:
    for few in (WORDS[:5], dict(enumerate(WORDS[:5]))):
        with pytest.raises(ValueError, match=r"there is none for id .* among 5 words"):
            swaps(own_outcome(wordward.iadvt), few)
    with pytest.raises(ValueError, match="points anywhere"):
        swaps(own_outcome(wordward.advt), WORDS)


def test_a_run_is_left_as_it_was() -> None:
    run = a_run()
    before = {name: tensor.clone() for name, tensor in run.model.state_dict().items()}
    explain(run, [Example("the cast was good", "good")])
    assert all(torch.equal(before[name], tensor) for name, tensor in run.model.state_dict().items())
    assert all(parameter.grad is None for parameter in run.model.parameters())
