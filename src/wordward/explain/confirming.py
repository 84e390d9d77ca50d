"""Confirm pulls with the model: it reads the text again with each word put in."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from threading import Lock
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from wordward.explain.filtering import Sensible, TextSense
from wordward.explain.pulls import TextPulls
from wordward.runs.fingerprint import fingerprint
from wordward.runs.reading import Reading
from wordward.runs.run import Run
from wordward.runs.scoring import log_odds
from wordward.support.errors import RunError

ASKED, EACH = 8, 3  # of a text's pulls, the most promising; of one word
LEAST = 0.01  # what counts of a pull that no evidence speaks for


class Question(NamedTuple):
    """A text with what pulls its words."""

    text: Reading
    found: TextPulls
    label: int
    whole: Callable[[Reading], np.ndarray]  # (words,) which of its words may be pulled


class AskedPull(NamedTuple):
    """One pull, to be asked about."""

    position: int  # of the word
    column: int  # of the pull among the word's
    toward: int
    near: float  # how near the two words are


class Answer(NamedTuple):
    """The pull of a word that tells most, and what the model says with its word put in."""

    position: int  # of the word that is pulled
    column: int  # of the pull among the word's
    probability: float  # of the label
    predicted: int


class Telling:
    """The pulls that tell most of several texts, found for all of them at once when one is first asked for.

    Until then it holds the model: to ask at once would take those who never look at places three times as long.
    """

    def __init__(self, run: Run, sensible: Sensible, questions: Sequence[Question], weights: bytes) -> None:
        """`weights`: the fingerprint of those that the texts were explained with."""
        self._asked, self._weights, self._lock = (run, sensible, questions), weights, Lock()
        self._found: list[list[Answer]] | None = None

    def __call__(self, number: int) -> list[Answer]:
        """As `telling_pulls` of one of the texts."""
        with self._lock:
            if self._found is None:
                if fingerprint(self._asked[0].model) != self._weights:
                    raise RunError(
                        "expected the model as it explained these texts, which is now to be asked about their pulls; "
                        "its weights have changed since: explain them again, and look at their places before you "
                        "train on"
                    )
                self._found = telling_pulls(*self._asked)
                del self._asked
            return self._found[number]


def telling_pulls(run: Run, sensible: Sensible, questions: Sequence[Question]) -> list[list[Answer]]:
    """For each text the pulls that tell, of each word the one that tells most; the most telling word first.

    The odds of the label must fall with the word put in, unless they fall with none; most telling is the largest
    product of that fall, in log-odds, of how much more the new word speaks for the label that gains, and of how near
    it is. Asked are the ASKED that promise most: the same product with the strength of a pull for the fall.
    """
    senses = [sensible.of(question.text.row, question.label) for question in questions]
    asked = [list(islice(_promising(*each), ASKED)) for each in zip(questions, senses, strict=True)]
    rows = [
        question.text.row.swapped(swap.position, swap.toward).ids
        for question, swaps in zip(questions, asked, strict=True)
        for swap in swaps
    ]
    answers = iter(_read(run, rows).split([len(swaps) for swaps in asked]))
    return [_telling(*each) for each in zip(questions, senses, asked, answers, strict=True)]


def _promising(question: Question, sense: TextSense) -> Iterator[AskedPull]:
    """The pulls of a text that are shown, those that promise most first, not more than EACH of a word."""
    row, pulls = question.text.row, question.found.of_words(question.text.row)
    if not pulls.words:
        return
    toward, strengths = torch.tensor(pulls.words), torch.tensor(pulls.strengths)
    fit = (toward != torch.from_numpy(row.ids[row.first]).unsqueeze(-1)) & (strengths > 0)
    may = sense.shown(toward, fit & torch.from_numpy(question.whole(question.text)).unsqueeze(-1))
    near = sense.nearness(toward)
    promise = strengths * sense.promised(toward).clamp(min=LEAST) * near
    taken = [0] * len(toward)
    order = promise.masked_fill(~may, 0.0).flatten().argsort(descending=True, stable=True)
    for at in order[: int(may.sum())].tolist():
        position, column = divmod(at, toward.shape[1])
        taken[position] += 1
        if taken[position] <= EACH:
            yield AskedPull(position, column, int(toward[position, column]), float(near[position, column]))


def _read(run: Run, rows: Sequence[np.ndarray]) -> Tensor:
    """The logits of texts, (texts, classes), on the CPU."""
    found = run.logits(rows) if rows else []
    return torch.from_numpy(np.array(found, dtype=np.float32).reshape(len(rows), len(run.labels)))


def _telling(question: Question, sense: TextSense, swaps: Sequence[AskedPull], logits: Tensor) -> list[Answer]:
    """The swaps that tell, of each word the most telling; or the one that does most, if none lowers the odds.

    `logits`: of the text with each, (swaps, classes).
    """
    if not swaps:
        return []
    before, label = torch.from_numpy(question.found.logits), question.label
    fall = log_odds(before)[label] - log_odds(logits)[:, label]
    log_p = logits.double().log_softmax(-1)
    gains = log_p - before.double().log_softmax(-1)
    gains[:, label] = -torch.inf
    positions, _, toward, near = map(torch.tensor, zip(*swaps, strict=True))
    contrast = sense.contrast(gains.argmax(-1), positions, toward).clamp(min=LEAST)
    telling = fall * contrast * near
    found: dict[int, Answer] = {}
    for at in telling.argsort(descending=True, stable=True).tolist():
        swap = swaps[at]
        if telling[at] > 0 or not found:
            answer = Answer(swap.position, swap.column, float(log_p[at, label].exp()), int(logits[at].argmax()))
            found.setdefault(swap.position, answer)
    return list(found.values())
