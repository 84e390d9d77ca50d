"""The queue before the model: one computation at a time, and questions that wait are answered together."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request

TOGETHER = 32  # questions that are answered in one pass, at most
T = TypeVar("T")
Asked = TypeVar("Asked")


@dataclass(eq=False)
class _Waiting:
    """A question in the queue."""

    answer_all: Callable[[Sequence[Any]], Sequence[Any]]
    asked: Any
    request: Request
    answer: asyncio.Future[Any]


class WorkQueue:
    """One computation at a time, with a limited number in the queue."""

    def __init__(self, most: int) -> None:
        self._most, self._now = most, 0
        self._waiting: deque[_Waiting] = deque()
        self._worker: asyncio.Task[None] | None = None

    async def run(self, request: Request, work: Callable[[], T]) -> T:
        """What `work` gives, computed in a thread when it is this request's turn."""
        return await self.answer(request, lambda _: [work()], None)

    async def answer(
        self, request: Request, answer_all: Callable[[Sequence[Asked]], Sequence[T | Exception]], asked: Asked
    ) -> T:
        """The answer to what is asked, when it is this request's turn; an error among the answers is raised.

        What waits for the same `answer_all` is given to it together.
        """
        if self._now >= self._most:
            raise HTTPException(503, "too many requests are waiting: try again soon", {"Retry-After": "1"})
        self._now += 1
        try:
            one = _Waiting(answer_all, asked, request, asyncio.get_running_loop().create_future())
            self._waiting.append(one)
            if self._worker is None:
                self._worker = asyncio.create_task(self._work())
            return await one.answer
        finally:
            self._now -= 1

    async def _work(self) -> None:
        """Answer until nobody waits."""
        try:
            while self._waiting:
                together = await self._next()
                if not together:
                    continue
                try:
                    answers = await run_in_threadpool(together[0].answer_all, [one.asked for one in together])
                except Exception as error:
                    answers = [error] * len(together)
                for one, answer in zip(together, answers, strict=True):
                    _give(one, answer)
        finally:
            self._worker = None

    async def _next(self) -> list[_Waiting]:
        """The first in the queue and those that are answered with it, but for those whose user has gone."""
        answer_all = self._waiting[0].answer_all
        chosen = [one for one in self._waiting if one.answer_all == answer_all][:TOGETHER]
        self._waiting = deque(one for one in self._waiting if one not in chosen)
        together = []
        for one in chosen:
            if await one.request.is_disconnected():  # the user typed on: nobody would see the answer
                _give(one, HTTPException(408, "the request was given up"))
            else:
                together.append(one)
        return together


def _give(one: _Waiting, answer: Any) -> None:
    if one.answer.done():  # given up
        return
    if isinstance(answer, Exception):
        one.answer.set_exception(answer)
    else:
        one.answer.set_result(answer)
