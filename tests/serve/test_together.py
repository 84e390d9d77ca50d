"""Questions that wait are answered together, each as it would be alone."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import httpx
import pytest
from serving import serving
from untrained import a_run

from wordward.perturbation.recipes import RECIPES
from wordward.runs.run import Run
from wordward.serve.limits import Limits
from wordward.serve.queue import TOGETHER, WorkQueue
from wordward.serve.schemas import Asked, AskedExplain
from wordward.serve.service import Service
from wordward.support.errors import WordwardError

TEXTS = ("the cast was good", "the ending was dull and the cast was good", "good", "dull ending")


class Here:
    """A request whose user is still there."""

    async def is_disconnected(self) -> bool:
        return False


def test_what_waits_is_answered_together() -> None:
    sizes, go = [], threading.Event()

    def answer_all(asked: Sequence[int]) -> list[int]:
        assert go.wait(20)
        sizes.append(len(asked))
        return [2 * one for one in asked]

    async def all_at_once() -> list[int]:
        queue: Any = WorkQueue(100)
        tasks = [asyncio.create_task(queue.answer(Here(), answer_all, number)) for number in range(70)]
        await asyncio.sleep(0.05)
        go.set()
        return await asyncio.gather(*tasks)

    assert asyncio.run(all_at_once()) == [2 * number for number in range(70)]
    assert sizes == [TOGETHER, TOGETHER, 70 - 2 * TOGETHER]


def test_an_error_reaches_those_it_concerns() -> None:
    def answer_all(asked: Sequence[int]) -> list[int | Exception]:
        if 5 in asked:
            raise RuntimeError("five")
        return [ValueError("odd") if one % 2 else one for one in asked]

    async def asked(*numbers: int) -> list[Any]:
        queue: Any = WorkQueue(100)
        return await asyncio.gather(*(queue.answer(Here(), answer_all, n) for n in numbers), return_exceptions=True)

    assert [type(each) for each in asyncio.run(asked(1, 2, 4))] == [ValueError, int, int]
    assert [type(each) for each in asyncio.run(asked(5, 6))] == [RuntimeError, RuntimeError]


@pytest.mark.parametrize("task", ["classify", "tag"])
def test_predictions_are_those_of_each_alone(task: str) -> None:
    service = Service([run := a_run(task=task, k=3)], Limits())
    found = service.predict_all([Asked(text=text) for text in TEXTS])
    for text, prediction in zip(TEXTS, found, strict=True):
        (alone,) = run.predict([text])
        assert not isinstance(prediction, Exception)
        assert (prediction.text, prediction.label) == (alone.text, alone.label)
        if task == "classify":
            assert prediction.probabilities == pytest.approx(alone.probabilities, abs=1e-6)


@pytest.mark.parametrize("method", RECIPES)
def test_explanations_are_those_of_each_alone(method: str) -> None:
    service = Service([a_run(k=3)], Limits())
    questions = [AskedExplain(text=text, method=method, top=2) for text in TEXTS]
    for question, found in zip(questions, service.explain_all(questions), strict=True):
        (alone,) = service.explain(question)
        assert not isinstance(found, Exception)
        assert [place.word for place in found.places] == [place.word for place in alone.places]
        for one, other in zip(found.places, alone.places, strict=True):
            assert [pull.strength for pull in one.pulls] == pytest.approx(
                [pull.strength for pull in other.pulls], abs=1e-4
            )


def test_one_that_cannot_be_answered_keeps_none_from_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[int] = []
    predict = Run.predict
    monkeypatch.setattr(Run, "predict", lambda self, texts: (passes.append(len(texts)), predict(self, texts))[1])
    service = Service([a_run(k=3)], Limits())
    good, other = [Asked(text=text) for text in TEXTS], Asked(text="good", run="another")
    found = service.predict_all([*good, other])
    assert [isinstance(each, WordwardError) for each in found] == [False] * 4 + [True]
    assert passes == [4]
    passes.clear()
    found = service.predict_all([*good, Asked(text="?!")])
    assert [isinstance(each, WordwardError) for each in found] == [False] * 4 + [True]
    assert passes == [1] * 4


def test_sixty_four_people_are_served() -> None:
    async def asked(address: str) -> list[int]:
        limits = httpx.Limits(max_connections=64)
        async with httpx.AsyncClient(base_url=address, timeout=60, limits=limits) as client:
            questions = [
                client.post(f"/api/{what}", json={"text": f"{text} good" * (1 + number % 3)})
                for number in range(16)
                for text in TEXTS
                for what in ("predict", "explain")
            ]
            return [answer.status_code for answer in await asyncio.gather(*questions)]

    with serving(a_run(k=3)) as address:
        assert asyncio.run(asked(address)) == [200] * 128
