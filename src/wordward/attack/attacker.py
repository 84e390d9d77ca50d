"""Adversarial texts: words swapped until a prediction changes, each verified by predicting the text again."""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from wordward.attack.attacked import Attacked, Change
from wordward.attack.goal import Goal, Labels, Tags
from wordward.attack.guide import Case, Guide, State, SwapGuide, Target
from wordward.attack.queries import QueryGuide
from wordward.attack.search import search, text_with
from wordward.attack.sense import judge_of
from wordward.attack.stopwords import STOP_WORDS, fold
from wordward.config.attack import AttackSettings
from wordward.datasets import Example
from wordward.datasets.m2 import Corrections
from wordward.explain.explanation import Place
from wordward.explain.swaps import apply
from wordward.explain.word_kinds import in_one_piece
from wordward.perturbation.objective import IGNORE
from wordward.runs.opening import opener
from wordward.runs.prediction import Prediction
from wordward.runs.reading import Reading
from wordward.runs.run import Run, Text, as_example
from wordward.support.errors import RunError, SettingError
from wordward.support.workers import spread

CHUNK = 64  # texts that are searched side by side
QUERIED = 8  # of a model that is asked by queries, which takes longer: so progress is seen


def attack_texts(
    run: Run,
    texts: Sequence[Text],
    settings: AttackSettings | None = None,
    *,
    corrections: Corrections | None = None,
    jobs: int = 1,
) -> list[Attacked]:
    """Words of each text swapped until the prediction changes, each change verified by the model.

    A classifier's text is attacked where its label is predicted (or none is given); a tagger's sentence where it
    flags an error.

    Args:
        run: A trained model, as `wordward.load_run` opens it.
        texts: Strings, or `Example`s with their true labels.
        settings: Which method guides the search, how many words may be swapped, and which swaps are allowed.
        corrections: For taggers of errors: what a flagged token should be, of `wordward.datasets.m2`.
        jobs: Processes to use, each of which loads the run; more than one need a guarded main module.

    Returns:
        An `Attacked` for each text, in the same order: the adversarial text, its swaps, and the predictions before
        and after.

    Examples:
        >>> run = wordward.load_run("runs/mine")
        >>> (found,) = run.attack(["the film was warm and funny"])
        >>> found.before, found.after, len(found.changes) > 0
        ('good', 'bad', True)
    """
    return list(attack(run, texts, settings, corrections=corrections, jobs=jobs))


def attack(
    run: Run,
    texts: Sequence[Text],
    settings: AttackSettings | None = None,
    *,
    corrections: Corrections | None = None,
    jobs: int = 1,
) -> Generator[Attacked, None, None]:
    """As `attack_texts`, each text as soon as it is done, in order.

    Args:
        run: A trained model.
        texts: Strings, or `Example`s with their true labels.
        settings: How words to swap are looked for.
        corrections: For taggers of errors: what a flagged token should be.
        jobs: Processes to use.

    Returns:
        A generator of `Attacked`; bad settings raise an error at once, not with the first text.

    Examples:
        >>> for found in wordward.attack.attack(run, ["the film was warm and funny"]):
        ...     print(found.outcome)
        flipped
    """
    settings = settings or AttackSettings()
    attacker = Attacker(run, settings, corrections)
    plain = [attacker.goal.plain(as_example(text)) for text in texts]
    size = CHUNK if run.has_gradients else QUERIED
    chunks = [plain[start : start + size] for start in range(0, len(plain), size)]
    attacked_chunks = spread(attacker, partial(_attacker, opener(run), settings, corrections), chunks, jobs=jobs)
    return (attacked for chunk in attacked_chunks for attacked in chunk)


class Attacker:
    """An attack on a run; nearest words found for one text are reused for the next."""

    def __init__(self, run: Run, settings: AttackSettings, corrections: Corrections | None) -> None:
        self.run, self.goal = run, goal_of(run, settings, corrections)
        self.guide = (
            Guide(run, settings, self.goal.judge) if run.has_gradients else QueryGuide(run, settings, self.goal.judge)
        )

    def __call__(self, examples: Sequence[Example]) -> list[Attacked]:
        """Attack some texts, prepared by `goal.plain`, side by side."""
        return list(_together(self.run, examples, self.guide, self.goal))


def _attacker(opened: Callable[[], Run], settings: AttackSettings, corrections: Corrections | None) -> Attacker:
    return Attacker(opened(), settings, corrections)


def goal_of(run: Run, settings: AttackSettings, corrections: Corrections | None = None) -> Goal:
    """What an attack on a run is to change; raises an error for settings that do not fit the run."""
    run.method(settings.method)
    if run.tagging:
        if run.positive is None:
            raise SettingError(
                "positive",
                f"expected a tag for the attack to hide; {run.folder} was trained for none: give `positive` with one "
                f"of {', '.join(run.labels)}",
            )
        if settings.sense == "kept" and corrections is None:
            raise SettingError(
                "corrections",
                "`sense='kept'` needs `corrections` to judge a tagger's swaps by: give an M2 file",
            )
        return Tags(run, run.positive, corrections or {}, only_kept=settings.sense == "kept")
    if corrections is not None:
        raise SettingError("corrections", "corrections are for taggers: this run gives one label to the whole text")
    judge = judge_of(run)
    if settings.sense == "kept" and judge is None and not run.trained_here:
        raise RunError(
            f"{run.folder} was not trained by wordward, so there are no counts of its training texts to judge swaps "
            "by: attack with `sense='any'`"
        )
    if settings.sense == "kept" and judge is None:
        raise RunError(
            f"{run.folder} has no word counts to judge swaps by: train it again, or attack with `sense='any'`"
        )
    return Labels(run, judge)


def _together(run: Run, examples: Sequence[Example], guide: SwapGuide, goal: Goal) -> Iterator[Attacked]:
    """Attack some texts side by side: search for swaps, then predict each changed text again."""
    texts = [run.read(example) for example in examples]
    predictions = run.predict_readings(texts)
    cases = cases_of(run, examples, texts, predictions, guide.settings, goal, fitting=guide.fitting)
    searches = dict(zip(cases, search(run, list(cases.values()), guide), strict=True))
    adversarial = {
        at: text_with(run, one.case, best.swaps) for at, one in searches.items() if (best := one.beam[0]).swaps
    }
    after = dict(zip(adversarial, run.predict(list(adversarial.values())), strict=True))
    for at, (example, text, before) in enumerate(zip(examples, texts, predictions, strict=True)):
        attacked = goal.verdict(example, before, after.get(at, before))
        if at in adversarial:
            changes = _changes(run, goal, cases[at], searches[at].beam[0])
            attacked = replace(attacked, adversarial=adversarial[at], changes=changes)
        passes = searches[at].passes if at in searches else 0
        passes += (before.problem is None) + (at in adversarial)
        yield replace(attacked, passes=passes, words=len(text.tokens))


def cases_of(
    run: Run,
    examples: Sequence[Example],
    texts: Sequence[Reading],
    predictions: Sequence[Prediction],
    settings: AttackSettings,
    goal: Goal,
    *,
    fitting: bool = False,
) -> dict[int, Case]:
    """The texts that can be attacked, by their number; `fitting`: pieces of contractions are not swapped."""
    cases: dict[int, Case] = {}
    for at, (example, text, predicted) in enumerate(zip(examples, texts, predictions, strict=True)):
        target = None if predicted.problem or not text.tokens else goal.target(example, predicted)
        if target is not None:
            cases[at] = _case(text, settings, target, fitting=fitting)
    return cases


def _case(text: Reading, settings: AttackSettings, target: Target, *, fitting: bool = False) -> Case:
    """A text to attack: the prediction to change, which words may be swapped, and how many of them."""
    protected = {fold(word) for word in settings.keep} | (STOP_WORDS if settings.keep_stop_words else set())
    places = tuple(
        Place(at, text.written(at), token.start, token.end, text.known[at], ())
        for at, token in enumerate(text.tokens)
    )
    most = min(settings.max_swaps, int(settings.max_share * len(places) + 1e-9))
    open = np.array([most > 0 and fold(place.word) not in protected for place in places], dtype=bool)
    if fitting:
        open &= [in_one_piece(text.text, place.start, place.end) for place in places]
    if isinstance(target.lose, np.ndarray):
        open &= target.lose != IGNORE
    return Case(text.text, places, text.row, target, open, most)


def _changes(run: Run, goal: Goal, case: Case, state: State) -> tuple[Change, ...]:
    """The swaps of a text in the order of their words."""
    changes = []
    for swap in sorted(state.swaps):
        place = case.places[swap.position]
        sense, correct = goal.sense(case, swap)
        alone = replace(place, start=0, end=len(place.word))
        new = run.vocabulary.word(swap.word)
        toward = apply(place.word, [(alone, new)], lowercase=run.text.lowercase)  # as it is written there
        changes.append(Change(swap.position, place.word, toward, place.start, place.end, sense, correct))
    return tuple(changes)
