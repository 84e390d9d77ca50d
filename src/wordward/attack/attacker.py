"""Adversarial texts: words swapped, or edited otherwise, until a prediction changes; each text is predicted again."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from wordward.attack.attacked import Attacked, Change
from wordward.attack.beam import Search
from wordward.attack.cases import Case, SwapGuide, open_words, protected
from wordward.attack.edit_search import Editor, EditSearch
from wordward.attack.goal import Goal
from wordward.attack.goal_choice import goal_of
from wordward.attack.guard import Guard
from wordward.attack.guide import Guide
from wordward.attack.half_precision import SearchModel
from wordward.attack.queries import QueryGuide
from wordward.attack.retokenizing import text_with
from wordward.attack.search import search
from wordward.attack.sense import Judge
from wordward.attack.sense_texts import check_sense_from, with_sense_texts
from wordward.config.attack import EDITS, AttackSettings
from wordward.datasets import Example
from wordward.datasets.m2 import Corrections
from wordward.explain.swaps import written
from wordward.runs.inputs import Text, check_labels, check_no_labels
from wordward.runs.opening import opener
from wordward.runs.prediction import Prediction
from wordward.runs.reading import Reading
from wordward.runs.run import Run
from wordward.support.device import at_once
from wordward.support.workers import spread
from wordward.text.batches import chunks

CHUNK = 64  # texts that are searched side by side
QUERIED = 8  # of a model that is asked by queries, which takes longer: so progress is seen


def attack_texts(
    run: Run,
    texts: Sequence[Text],
    settings: AttackSettings | None = None,
    *,
    corrections: Corrections | None = None,
    guard: Guard | None = None,
    sense_from: Sequence[Text] = (),
    jobs: int = 1,
) -> list[Attacked]:
    """Words of each text swapped, or edited otherwise, until the prediction changes, each text verified by the model.

    A classifier's text is attacked where its label is predicted (or none is given); a tagger's sentence where it
    flags an error.

    Args:
        run: A trained model, as `wordward.load_run` opens it.
        texts: Strings, or `Example`s with their true labels.
        settings: Which kinds of edits may be made and how many, which method guides the search for swaps, and which
            swaps are allowed.
        corrections: For taggers of errors: what a flagged token should be, of `wordward.datasets.m2`.
        guard: From which probability a text is flagged, for a classifier that is used so: only flagged texts are
            attacked, until they are no longer.
        sense_from: Of a model that wordward did not train: texts with their labels, best its training texts, by
            whose words it is judged which edits keep the sense.
        jobs: Processes to use, each of which loads the run; more than one need a guarded main module.

    Returns:
        An `Attacked` for each text, in the same order: the adversarial text, its swaps and other edits, and the
        predictions before and after.

    Examples:
        >>> run = wordward.load_run("runs/mine")
        >>> (found,) = run.attack(["the film was warm and funny"])
        >>> found.before, found.after, len(found.changes) > 0
        ('good', 'bad', True)
    """
    return list(attack(run, texts, settings, corrections=corrections, guard=guard, sense_from=sense_from, jobs=jobs))


def attack(
    run: Run,
    texts: Sequence[Text],
    settings: AttackSettings | None = None,
    *,
    corrections: Corrections | None = None,
    guard: Guard | None = None,
    judge: Judge | None = None,
    sense_from: Sequence[Text] = (),
    jobs: int = 1,
) -> Generator[Attacked, None, None]:
    """As `attack_texts`, each text as soon as it is done, in order.

    Args:
        run: A trained model.
        texts: Strings, or `Example`s with their true labels.
        settings: How words to swap are looked for.
        corrections: For taggers of errors: what a flagged token should be.
        guard: From which probability a text is flagged, for a classifier that is used so.
        judge: The rule that tells which swaps keep the sense; by default from the run's own training texts.
        sense_from: Labelled texts whose words it counts, of a model that wordward did not train.
        jobs: Processes to use.

    Returns:
        A generator of `Attacked`; bad settings raise an error at once, not with the first text.

    Examples:
        >>> for found in wordward.attack.attack(run, ["the film was warm and funny"]):
        ...     print(found.outcome)
        flipped
    """
    settings = AttackSettings() if settings is None else settings
    check_no_labels("settings", settings, AttackSettings)
    if sense_from:
        check_sense_from(run)
        run = with_sense_texts(run, run.examples(sense_from))
    options = settings, corrections, guard, judge
    attacker = Attacker(run, *options)
    examples = run.examples(texts)
    check_labels(examples, tagging=run.tagging)
    plain = [attacker.goal.plain(example) for example in examples]
    parts = list(chunks(plain, side_by_side(run)))
    attacked_parts = spread(attacker, partial(_opened, opener(run), *options), parts, jobs=jobs)
    return (attacked for part in attacked_parts for attacked in part)


def side_by_side(run: Run) -> int:
    """How many texts are searched together."""
    return at_once(CHUNK, run.device) if run.has_gradients else QUERIED


class Edited(NamedTuple):
    """What a search made of a text; by default nothing."""

    text: str
    changes: tuple[Change, ...] = ()
    passes: int = 0  # texts that the model read for it
    tried: int = 0  # of them, the text with an edit
    alone: tuple[str, ...] = ()  # kinds of edits one of which flips it


class Attacker:
    """An attack on a run; nearest words found for one text are reused for the next."""

    def __init__(
        self,
        run: Run,
        settings: AttackSettings,
        corrections: Corrections | None,
        guard: Guard | None = None,
        judge: Judge | None = None,
    ) -> None:
        run.forget()
        self.run, self.goal, self.settings = run, goal_of(run, settings, corrections, guard, judge), settings
        self.scorer = SearchModel(run)
        self.guide = self._guide() if "swap" in settings.edits else None
        self.editor = None if settings.only_swaps else Editor(self.scorer, settings, self.goal, self.guide)

    def _guide(self) -> SwapGuide:
        """What proposes swaps: by gradients where the model has them, else by queries."""
        if not self.run.has_gradients:
            return QueryGuide(self.run, self.settings, self.goal.judge)
        return Guide(self.scorer, self.settings, self.goal.judge)

    def __call__(self, examples: Sequence[Example]) -> list[Attacked]:
        """Attack some texts, prepared by `goal.plain`, side by side: edit them, then predict each of them again."""
        run, goal = self.run, self.goal
        texts = run.read_all(examples)
        predictions = self.scorer.predictions(texts, goal.close)
        cases = cases_of(examples, texts, predictions, self.settings, goal, self.guide)
        made = dict(zip(cases, self._edited(list(cases.values())), strict=True))
        adversarial = {at: edits.text for at, edits in made.items() if edits.changes}
        changed = run.read_all(run.examples(list(adversarial.values())))
        after = dict(zip(adversarial, self.scorer.predictions(changed, goal.close), strict=True))
        results = []
        for at, (example, text, before) in enumerate(zip(examples, texts, predictions, strict=True)):
            edits = made.get(at, Edited(example.text))
            attacked = replace(
                goal.verdict(example, before, after.get(at, before)),
                adversarial=adversarial.get(at, example.text),
                changes=edits.changes,
                passes=(before.problem is None) + edits.passes + (at in adversarial),
                tried=edits.tried,
                words=len(text.spans),
                alone=edits.alone,
            )
            results.append(attacked)
        return results

    def _edited(self, cases: Sequence[Case]) -> list[Edited]:
        """The best that was found for each text: swaps alone by the paper's search, edits of any kind by another."""
        if self.editor is not None:
            return [_edited(one) for one in self.editor(cases)]
        assert self.guide is not None
        return [_swapped(self.run, self.goal, one) for one in search(self.scorer, cases, self.guide)]


def _opened(opened: Callable[[], Run], *options: Any) -> Attacker:
    """An attacker of a run that is opened in another process."""
    return Attacker(opened(), *options)


def cases_of(
    examples: Sequence[Example],
    texts: Sequence[Reading],
    predictions: Sequence[Prediction],
    settings: AttackSettings,
    goal: Goal,
    guide: SwapGuide | None = None,
) -> dict[int, Case]:
    """The texts that can be attacked, by their number: each with the prediction to change, the words that may be
    swapped, and how many of them."""
    cases: dict[int, Case] = {}
    kept = protected(settings)
    for at, (example, text, predicted) in enumerate(zip(examples, texts, predictions, strict=True)):
        target = None if predicted.problem or not text.spans else goal.target(example, predicted)
        if target is None:
            continue
        most = min(settings.max_swaps, int(settings.max_share * len(text.spans) + 1e-9))
        open = open_words(text, target, kept) & (most > 0)
        cases[at] = Case(text, target, open if guide is None else open & guide.open(text), most)
    return cases


def _swapped(run: Run, goal: Goal, one: Search) -> Edited:
    """A text after the swaps that were found, and these in the order of their words."""
    case, best, changes = one.case, one.beam[0], []
    for swap in sorted(best.made):
        place = case.place(swap.position)
        sense, correct = goal.sense(case, swap)
        toward = written(case.text, place, run.vocabulary.word(swap.word), lowercase=run.text.lowercase)
        changes.append(Change(swap.position, place.word, toward, place.start, place.end, sense, correct))
    return Edited(text_with(run, case, best.made), tuple(changes), one.passes, one.tried)


def _edited(one: EditSearch) -> Edited:
    """A text after the edits that were found, and these in the order of the text."""
    case, changes = one.case, []
    for edit in sorted(one.beam[0].made, key=lambda edit: (edit.start, edit.end)):
        position = sum(end <= edit.start for _, end in case.reading.spans)
        word = case.text[edit.start : edit.end]
        changes.append(Change(position, word, edit.new, edit.start, edit.end, edit.sense, edit.correct, edit.kind))
    return Edited(one.text, tuple(changes), one.passes, one.tried, tuple(kind for kind in EDITS if kind in one.alone))
