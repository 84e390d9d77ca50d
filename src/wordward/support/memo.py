"""A memo of answers, which are asked for in batches, so that nothing is computed twice."""

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

Question = TypeVar("Question", bound=Hashable)
Answer = TypeVar("Answer")


class Memo(Generic[Question, Answer]):
    """What `ask` answers to several questions, each asked once until there are more than `most`."""

    def __init__(self, ask: Callable[[list[Question]], Sequence[Answer]], most: int) -> None:
        self._ask, self._most = ask, most
        self._known: dict[Question, Answer] = {}

    def __call__(self, asked: Sequence[Question]) -> list[Answer]:
        """The answer to each, in order; those that are new are asked together."""
        if len(self._known) > self._most:
            self.forget()
        if new := [each for each in dict.fromkeys(asked) if each not in self._known]:
            self._known.update(zip(new, self._ask(new), strict=True))
        return [self._known[each] for each in asked]

    def forget(self) -> None:
        """Ask everything anew."""
        self._known.clear()
