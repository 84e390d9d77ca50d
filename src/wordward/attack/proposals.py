"""Which edits of a text are tried first: those of the words without which the prediction is nearest to changing."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice

import numpy as np

from wordward.attack.attacked import Sense
from wordward.attack.cases import Case, Target, protected
from wordward.attack.edit_words import APPENDED, INSERTED
from wordward.attack.edits import (
    HARMLESS,
    SPELLINGS,
    WORD,
    Edit,
    Span,
    appending,
    deletion,
    insertions,
    left_out,
    punctuations,
    uncapitalised,
    words_in,
)
from wordward.attack.goal import Goal, Tags
from wordward.attack.stopwords import STOP_WORDS
from wordward.config.attack import AttackSettings
from wordward.datasets import Example
from wordward.explain.english import CLOSED, fold
from wordward.runs.input_table import installed_model, plain_words
from wordward.runs.run import Run
from wordward.support.errors import RunError

VARIANTS = 8  # ways to write a word that are tried, of each kind


class Proposer:
    """Proposes edits of the kinds of the settings, the most promising first."""

    def __init__(self, run: Run, settings: AttackSettings, goal: Goal) -> None:
        self.run, self.goal, self.settings = run, goal, settings
        self.kept = protected(settings)
        self._judged: dict[tuple[int, str, bool], Sense] = {}

    @cached_property
    def known(self) -> frozenset[str]:
        """Words that a misspelt word must not be read as: the model's, its texts', those of a table at hand."""
        words = [self.run.vocabulary.word(int(number)) for number in self.run.vocabulary.candidates(1)]
        with suppress(RunError):  # a model whose training texts are not known
            words += self.run.learnt.words
        table = installed_model()
        words += [] if table is None else plain_words(table)
        return frozenset(map(str.lower, words)) | STOP_WORDS | CLOSED | set(INSERTED + APPENDED)

    def probes(self, case: Case) -> list[Edit]:
        """What the model reads to find out what matters: the text without each word, and with each harmless word.

        A tagger's sentence is edited at flagged words alone, which are few: none of them is tried.
        """
        if self.run.tagging:
            return []
        removed = [left_out(case.text, span.start, span.end) for span in self.words(case)]
        kinds = [kind for kind in HARMLESS if kind in self.settings.edits]
        words = dict.fromkeys(word for kind in kinds for word in HARMLESS[kind])
        return [*removed, *(appending(case.text, word) for word in words)]

    def words(self, case: Case) -> list[Span]:
        """The words that may be edited; a tagger's are whole tokens."""
        if self.run.tagging:
            spans = [Span(start, end, case.text[start:end]) for start, end in case.reading.spans]
            return [span for span, open in zip(spans, case.open, strict=True) if open and WORD.fullmatch(span.word)]
        end = case.reading.spans[-1][1]
        return [span for span in words_in(case.text) if span.end <= end and fold(span.word) not in self.kept]

    def __call__(self, case: Case, margins: Mapping[Edit, float]) -> dict[str, list[Edit]]:
        """The edits of each kind, best first; `margins`: of the probes that the model could read."""
        words = sorted(
            self.words(case), key=lambda span: margins.get(left_out(case.text, span.start, span.end), np.inf)
        )
        found: dict[str, Iterable[Edit]] = {}
        for kind in self.settings.edits:
            if kind in SPELLINGS:
                found[kind] = _mixed([self._spelt(case, kind, span) for span in words])
            elif kind in HARMLESS:
                found[kind] = self._added(case, kind, margins)
            elif kind == "punctuation":
                found[kind] = self._marked(case, words)
            elif kind == "delete":
                found[kind] = self._omitted(case, words)
        only_kept = self.settings.sense == "kept"
        return {kind: [e for e in edits if e.sense == "kept" or not only_kept] for kind, edits in found.items()}

    def _spelt(self, case: Case, kind: str, span: Span) -> list[Edit]:
        """A word written in other ways."""
        ways = [
            Edit(kind, span.start, span.end, new) for new in islice(SPELLINGS[kind](span.word, self.known), VARIANTS)
        ]
        if kind == "case" and (small := uncapitalised(case.text, span)) is not None:
            ways.append(small)
        if not isinstance(self.goal, Tags):
            return ways
        at = next(number for number, (start, _) in enumerate(case.reading.spans) if start == span.start)
        judged = [self.goal.respelt(case, at, edit.new) for edit in ways]
        return [edit._replace(sense=s, correct=c) for edit, (s, c) in zip(ways, judged, strict=True)]

    def _added(self, case: Case, kind: str, margins: Mapping[Edit, float]) -> list[Edit]:
        """Harmless words put in, first those that help most at the end of the text."""
        found = []
        for word in sorted(HARMLESS[kind], key=lambda word: margins.get(appending(case.text, word), np.inf)):
            edits = insertions(case.text, word) if kind == "insert" else [appending(case.text, word)]
            sense = self._sense(case.target, word, comes=True)
            found.append([edit._replace(sense=sense) for edit in edits])
        return _mixed(found)

    def _marked(self, case: Case, words: Sequence[Span]) -> list[Edit]:
        """Marks written in another way, in the order of the words that they follow; none inside words to keep."""
        kept = [span for span in words_in(case.text) if fold(span.word) in self.kept]
        inside = {at for span in kept for at in range(span.start + 1, span.end)}
        edits = [edit for edit in punctuations(case.text) if edit.start not in inside]
        rank = {span.end: at for at, span in enumerate(words)}
        return sorted(edits, key=lambda edit: rank.get(edit.start, len(rank)))

    def _omitted(self, case: Case, words: Sequence[Span]) -> list[Edit]:
        """Words left out."""
        return [
            edit._replace(sense=self._sense(case.target, span.word, comes=False))
            for span in words
            if (edit := deletion(case.text, span)) is not None
        ]

    def _sense(self, target: Target, words: str, *, comes: bool) -> Sense:
        """Whether a text keeps its label where harmless words come (`comes`) or go: it does, unless by the training
        texts one of them speaks for it or against it."""
        if self.goal.judge is None:
            return "kept"
        assert isinstance(target.lose, int)
        key = target.lose, fold(words), comes
        if key not in self._judged:
            reading, judge = self.run.read(Example(fold(words))), self.goal.judge
            known = [token.text in self.run.learnt for token in reading.tokens]  # of others the texts say nothing
            numbers = reading.row.numbers[reading.row.first][known].tolist()
            speaks = any(judge.speaks(target.lose, number, comes=comes) for number in numbers)
            self._judged[key] = "changed" if speaks else "kept"
        return self._judged[key]


def _mixed(lists: Sequence[Sequence[Edit]]) -> list[Edit]:
    """One list of a list of edits for each word, words and edits best first: the first edits of the first words
    come before their further ones, and before those of further words."""
    numbered = [(rank + way, rank, edit) for rank, edits in enumerate(lists) for way, edit in enumerate(edits)]
    return [edit for _, _, edit in sorted(numbered, key=lambda each: each[:2])]
