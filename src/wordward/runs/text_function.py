"""A function from texts to probabilities with the call of a model, and what it answers, checked."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wordward.support.errors import RunError
from wordward.support.memo import Memo
from wordward.text.vocabulary import SPECIALS

Probabilities = Callable[[list[str]], Any]  # an array (texts, classes), or for each text a dict from label to number
REMEMBERED = 1 << 17  # texts whose probabilities are kept
STRINGS = 1 << 20  # of which the ids are kept
SUM = 0.01  # how far probabilities may be from adding up to 1
LEAST = np.finfo(np.float32).tiny  # a probability, of which there is a logarithm


class Strings:
    """Words, and what stands between them, as ids, which strings get when they are first seen: no text is unknown."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._strings: dict[int, str] = {}
        self._next = len(SPECIALS)

    def __len__(self) -> int:
        return self._next

    def __contains__(self, word: object) -> bool:
        return True

    def __getitem__(self, word: str) -> int:
        number = self._numbers.setdefault(word, self._next)
        if number == self._next:
            self._strings[number] = word
            self._next += 1
        return number

    def candidates(self, min_count: int = 1) -> np.ndarray:
        """None: which of the strings are words that others may be replaced by is not known."""
        return np.zeros(0, dtype=np.int64)

    def word(self, number: int) -> str:
        """The string of an id."""
        if number not in self._strings:
            raise RunError("a text was read long ago, and its words are forgotten: read it again")
        return self._strings[number]

    def forget(self) -> None:
        """Start anew where there are too many; no id comes again, so that those of before are known as such."""
        if len(self._strings) > STRINGS:
            self._numbers.clear()
            self._strings.clear()


class TextFunction(nn.Module):
    """The function with the call of a model: ids and mask in, the logarithms of the probabilities out.

    Where it gives `several` labels at once, the logit of each label's yes; or with `which`, the logarithms of the
    probabilities of this label's no and yes.
    """

    def __init__(
        self,
        function: Probabilities,
        labels: tuple[str, ...],
        strings: Strings,
        name: str,
        *,
        several: bool = False,
        which: int | None = None,
    ) -> None:
        super().__init__()
        self.function, self.labels, self.strings, self.name = function, labels, strings, name
        self.several, self.which = several, which
        self._answers = Memo(self._answered, REMEMBERED)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """(batch, classes)."""
        rows = zip(ids.tolist(), mask.sum(1).tolist(), strict=True)
        yes = self.of(["".join(map(self.strings.word, row[:n])) for row, n in rows])
        if not self.several:
            return torch.from_numpy(np.log(yes))
        no = np.maximum(1 - yes, LEAST)
        if self.which is None:
            return torch.from_numpy(np.log(yes) - np.log(no))
        return torch.from_numpy(np.log(np.stack([no, yes], -1)[:, self.which]))

    def forget(self) -> None:
        """Ask for every text again, since the function may have learnt."""
        self._answers.forget()

    def of(self, texts: Sequence[str]) -> np.ndarray:
        """The probabilities of texts, (texts, classes), each above 0."""
        return np.stack(self._answers(texts))

    def _answered(self, texts: list[str]) -> list[np.ndarray]:
        """As `of`, from the function itself."""
        answers = ask(self.function, texts, self.labels, self.name, several=self.several)
        rows = [[found[label] for label in self.labels] if isinstance(found, dict) else found for found in answers]
        return [np.maximum(np.asarray(row, dtype=np.float32), LEAST) for row in rows]


def ask(
    function: Probabilities, texts: list[str], labels: Sequence[str], name: str, *, several: bool = False
) -> list[Any]:
    """What a function says of texts: for each a dict, or a row of numbers; anything but probabilities is refused."""
    try:
        answered = function(list(texts))
    except Exception as error:
        raise RunError(
            f"{name} failed on {len(texts):,} {'text' if len(texts) == 1 else 'texts, the first of which is'} "
            f"{texts[0][:60]!r}: {type(error).__name__}: {error}"
        ) from error
    answered = answered.detach().cpu().numpy() if isinstance(answered, Tensor) else answered
    try:
        answers = list(answered)
    except TypeError:
        raise RunError(f"{name} must give probabilities for each text, but gave {_shown(answered)}") from None
    if len(answers) != len(texts):
        raise RunError(f"{name} must give probabilities for each text, but gave {len(answers)} for {len(texts)}")
    return [_row(answer, labels, name, several) for answer in answers]


def _row(answer: Any, labels: Sequence[str], name: str, several: bool) -> Any:
    """One text's probabilities: a dict by label where the function names labels, else numbers."""
    if isinstance(answer, Sequence) and answer and all(isinstance(each, Mapping) for each in answer):
        answer = {each.get("label"): each.get("score") for each in answer}  # as a pipeline of transformers gives them
    by_name = isinstance(answer, Mapping)
    try:
        row = np.asarray(list(answer.values()) if by_name else answer, dtype=float)
    except (TypeError, ValueError):
        row = np.zeros(0)
    if row.ndim == 0 and not several:
        row = np.array([1 - row, row])  # the probability of the second of two labels
    least = "one label" if several else "two labels"
    wanted = f"the probabilities of {len(labels)} labels" if labels else f"the probabilities of {least} or more"
    if row.ndim != 1 or len(row) < (1 if several else 2) or (labels and len(row) != len(labels)):
        raise RunError(f"{name} must give {wanted} for each text; it gave {_shown(answer)}")
    if several and not ((row >= 0) & (row <= 1)).all():
        raise RunError(
            f"{name} must give probabilities from 0 to 1; it gave {_shown(answer)}: apply a sigmoid to logits"
        )
    if not several and (not np.isfinite(row).all() or row.min() < 0 or abs(row.sum() - 1) > SUM):
        raise RunError(
            f"{name} must give probabilities, 0 or more and adding up to 1 for each text; it gave {_shown(answer)}: "
            "apply a softmax to logits; or, if a text may have several labels at once, say so by an attribute of the "
            "function, `several_labels = True`"
        )
    if not by_name:
        return row
    named = {str(label): value for label, value in zip(answer, row, strict=True)}
    if labels and set(named) != set(labels):
        raise RunError(f"{name} must give each of the labels {', '.join(labels)}; it gave {', '.join(named)}")
    return named


def _shown(answer: Any) -> str:
    return repr(answer)[:80]
