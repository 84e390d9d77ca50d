"""What is read again after a swap: what stands around it, which tells what the whole text would."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hf_tiny import byte_pieces, saved
from untrained import a_run

from wordward.attack.attacker import attack_texts
from wordward.attack.cases import Case, Replacement, State, Target
from wordward.attack.ngrams import NGrams, around, split
from wordward.attack.retokenizing import swapped_rows, text_with
from wordward.attack.search import survivors
from wordward.config.attack import AttackSettings
from wordward.datasets import Example
from wordward.runs.opening import open_model
from wordward.runs.run import Run

MARKS = ("{}", "{}", "{},", "({})", "{}'s", "x{}", "{}-y", "<{}", "<br />{}", "{}<br", "/>{}", "İ{}", "{}  ")


def a_text(words: list[str], rng: random.Random) -> str:
    return " ".join(rng.choice(MARKS).format(rng.choice((word, word.title()))) for word in rng.choices(words, k=9))


def a_case(run: Run, text: str) -> Case:
    reading = run.read(Example(text))
    return Case(reading, Target(0), np.ones(len(reading.spans), dtype=bool), 2)


def counting(run: Run, name: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts each call of a run's method got from now on."""
    method, counts = getattr(type(run), name), []

    def counted(self: Run, texts: Any, *rest: Any, **more: Any) -> Any:
        counts.append(len(texts))
        return method(self, texts, *rest, **more)

    monkeypatch.setattr(type(run), name, counted)
    return counts


def check(run: Run, words: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Swaps, and second swaps, are read as in the whole text; how many were tried, and read in the whole text."""
    tried, rng = 0, random.Random(0)
    asked = counting(run, "swapped_rows", monkeypatch)
    new = [run.vocabulary[word] for word in words[:4]]
    for text in (a_text(words, rng) for _ in range(12)):
        case = a_case(run, text)
        state = State(case.row)
        for _ in range(2):
            gone = {swap.position for swap in state.made}
            free = [at for at in range(len(case.reading.spans)) if at not in gone]
            made = [(*state.made, Replacement(at, word)) for at in free for word in new]
            found = swapped_rows(run, [case] * len(made), [state] * len(made), made)
            wanted = [run.swapped(state.row, *swaps[-1], text_with(run, case, swaps)) for swaps in made]
            for row, other in zip(found, wanted, strict=True):
                assert (row is None) == (other is None)
                assert row is None or all(map(np.array_equal, row, other or ()))
            rows = [(row, swaps) for row, swaps in zip(found, made, strict=True) if row is not None]
            state, tried = State(*rows[rng.randrange(len(rows))]), tried + len(made)
    return tried, sum(asked)


@pytest.mark.parametrize("settings", [{}, {"tokenizer": "punctuation"}, {"unknown": "drop"}, {"max_length": 5}])
def test_of_words(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    run = a_run(lowercase=True, **settings)
    tried, asked = check(run, ["good", "dull", "cast", "the", "was", "br", "zyx"], monkeypatch)
    assert 0 < asked < tried  # some are known by what is around them, not all


def test_a_swap_between_blanks_needs_no_whole_text(monkeypatch: pytest.MonkeyPatch) -> None:
    run = a_run(lowercase=True)
    case, asked = a_case(run, "The cast, was good and (dull)"), counting(run, "swapped_rows", monkeypatch)
    made = [(Replacement(at, run.vocabulary["ending"]),) for at in range(6)]
    rows = swapped_rows(run, [case] * 6, [State(case.row)] * 6, made)
    assert all(row is not None for row in rows)
    assert asked == []


def test_no_more_swaps_are_looked_at_than_are_read() -> None:
    run = a_run(lowercase=True)
    case, new = a_case(run, "the cast was good and dull"), run.vocabulary["ending"]
    swaps = iter([Replacement(at, new) for at in range(6)])
    ((first, second),) = survivors(run, [case], [State(case.row)], [swaps], 2)
    assert (first.made, second.made) == ((Replacement(0, new),), (Replacement(1, new),))
    assert next(swaps) == Replacement(2, new)


def test_of_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = open_model(str(saved(tmp_path / "bert")), device="cpu")
    tried, asked = check(run, ["film", "was", "is", "well", "moving", "said", "br"], monkeypatch)
    assert 0 < asked < tried


def test_pieces_that_hold_blanks_are_read_in_the_whole_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = open_model(str(saved(tmp_path / "bert")), device="cpu")
    other = byte_pieces()
    monkeypatch.setattr(type(run), "tokenizer", property(lambda _: other))
    assert run.ids_alone(["film"]) is None


@pytest.mark.parametrize(
    "use", [Run.predict, lambda run, texts: run.explain(texts), lambda run, texts: run.explain(texts, method="advt")]
)
def test_a_tokenizer_is_called_once_for_many_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: Callable[[Run, list[str]], Any]
) -> None:
    run = open_model(str(saved(tmp_path / "bert")), device="cpu")
    use(run, ["the film was warm"])  # once what a run finds out about its tokenizer is known
    calls = calls_of(run, monkeypatch)
    use(run, ["the film was warm", "a dull film , said the cast", "well"] * 5)
    assert calls == [15]


def test_an_attack_reads_whole_texts_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = open_model(str(saved(tmp_path / "bert")), device="cpu")
    texts = ["the film was warm and the script is moving", "a dull film , said the cast", "well is well"] * 3
    settings = AttackSettings(max_swaps=2, words="any")
    attack_texts(run, texts[:1], settings)
    calls, rows = calls_of(run, monkeypatch), counting(run, "swapped_rows", monkeypatch)
    found = attack_texts(run, texts, settings)
    assert sum(map(len, [each.changes for each in found])) > 3
    whole = [count for count in calls if count <= len(texts)]
    assert whole[0] == len(texts)  # before the attack
    assert len(calls) <= 2 + 2 * 2  # and after it; in each of two rounds what is around swaps, and what that leaves
    assert sum(rows) < sum(calls) / 2


def calls_of(run: Run, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts each call of a run's tokenizer got from now on."""
    kind, counts = type(run.vocabulary.tokenizer), []
    call = kind.__call__

    def counted(self: Any, texts: Any, *rest: Any, **more: Any) -> Any:
        counts.append(len(texts))
        return call(self, texts, *rest, **more)

    monkeypatch.setattr(kind, "__call__", counted)
    return counts


def test_counts_of_words_look_around_a_swap_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(0)
    words = "the a film was dull , . it's don't great <br /> good-bye ! can’t word other".split(" ")
    texts = [rng.choices(words, k=rng.randint(1, 80)) for _ in range(60)]
    model, pairs = NGrams([split(" ".join(text)) for text in texts]), [("", "a"), ("a", ""), ("a", "a")]
    for text in texts:
        for new in ("new", "was", "two words", "", "<br", "/>"):
            at = rng.randrange(len(text))
            pairs.append((" ".join(text), " ".join([*text[:at], new, *text[at + 1 :]])))
    near = model(pairs)
    lengths = [len(one) for one, _ in (around(*pair) for pair in pairs)]
    assert sum(lengths) < sum(len(one) for one, _ in pairs) / 2
    monkeypatch.setattr("wordward.attack.ngrams.around", lambda *pair: pair)
    assert near == model(pairs)
