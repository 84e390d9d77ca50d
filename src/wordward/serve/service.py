"""Answers of the runs that are served."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from wordward.attack.attacked import Attacked
from wordward.attack.attacker import attack
from wordward.config.attack import AttackSettings
from wordward.datasets import Example
from wordward.explain.explainer import explain
from wordward.explain.explanation import Explanation, Place
from wordward.explain.html import html_fragment, page
from wordward.explain.swaps import apply
from wordward.perturbation.recipes import RECIPES
from wordward.runs.opening import short_names
from wordward.runs.prediction import Prediction
from wordward.runs.run import Run
from wordward.serve import schemas
from wordward.serve.limits import Limits
from wordward.support.errors import SettingError
from wordward.support.version import __version__

Question = TypeVar("Question")
Answer = TypeVar("Answer")
FIRST = ("iadvt", "ivat", "advt", "vat")  # the paper's own, before its ablations


class Service:
    """The runs that are served, by name."""

    def __init__(self, runs: Sequence[Run], limits: Limits) -> None:
        names = short_names([run.folder for run in runs])
        self.runs, self.limits = dict(zip(names, runs, strict=True)), limits

    def _run(self, asked: schemas.Asked, *, words: int | None = None) -> tuple[str, Run]:
        """The run that is asked, with its name; a text too long for this place, or without words, is refused."""
        name = next(iter(self.runs)) if asked.run is None else asked.run
        if name not in self.runs:
            raise SettingError("run", f"expected a run among {', '.join(self.runs)}; got {name!r}")
        run, text, words = self.runs[name], asked.text, words or self.limits.words
        if len(text) > self.limits.characters:
            raise SettingError(
                "text",
                f"the text has {len(text):,} characters; at most {self.limits.characters:,} are accepted here: cut "
                "it, or use the command line",
            )
        reading = run.read(Example(text))
        count = reading.words
        if count > words:
            raise SettingError(
                "text",
                f"the text has {count:,} words; at most {words:,} are accepted here: cut it, or use the command line",
            )
        problem = run.problem(reading)
        if problem is not None and not reading.unread:  # a tagger explains what it can read of a long sentence
            raise SettingError("text", problem)
        return name, run

    def predict(self, *asked: schemas.Asked) -> list[Prediction]:
        """The prediction of one run for each text."""
        runs = [self._run(one)[1] for one in asked]
        return runs[0].predict([one.text for one in asked])

    def predict_all(self, asked: Sequence[schemas.Asked]) -> list[Prediction | Exception]:
        """The predictions for what waits, those of a run in one pass."""
        return _together(asked, self.predict, lambda one: one.run)

    def explain(self, *asked: schemas.AskedExplain) -> list[Explanation]:
        """Texts explained by one run, all in the same way."""
        named = [self._run(one) for one in asked]
        examples, first = [Example(one.text, one.label) for one in asked], asked[0]
        found = explain(named[0][1], examples, method=first.method, top=first.top, focus=first.focus)
        return [replace(each, model=named[0][0]) for each in found]

    def explain_all(self, asked: Sequence[schemas.AskedExplain]) -> list[Explanation | Exception]:
        """The explanations of what waits, those of a run that are asked for in the same way in one pass."""
        return _together(asked, self.explain, lambda one: (one.run, one.method, one.top, one.focus))

    def swap(self, asked: schemas.AskedSwap) -> schemas.Swapped:
        """A text with a word swapped."""
        _, run = self._run(asked)
        word = asked.text[asked.start : asked.end]
        if not word or asked.end > len(asked.text):
            raise SettingError("text", f"expected a word within the {len(asked.text):,} characters of the text")
        place = Place(0, word, asked.start, asked.end, True, ())
        text = apply(asked.text, [(place, asked.toward)], lowercase=run.text.lowercase)
        return schemas.Swapped(text=text, toward=text[asked.start : asked.end + len(text) - len(asked.text)])

    def page(self, asked: schemas.AskedPage) -> str:
        """Explanations as a page of its own."""
        rest = {"text": asked.text, "label": asked.label, "focus": asked.focus}
        questions = [schemas.AskedExplain(run=view.run, method=view.method, **rest) for view in asked.views]
        explanations = [explanation for question in questions for explanation in self.explain(question)]
        return page("wordward", html_fragment(explanations))

    def served(self, examples: Sequence[str]) -> schemas.Served:
        """The runs, methods, limits and examples that the page offers."""
        order = sorted(RECIPES, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
        return schemas.Served(
            version=__version__,
            runs=[
                schemas.RunInfo(
                    name=name,
                    task="tag" if run.tagging else "classify",
                    labels=list(run.labels),
                    positive=None if run.positive is None else run.labels[run.positive],
                    trained_with=run.config.method if run.trained_here else None,
                    words=len(run.vocabulary),
                )
                for name, run in self.runs.items()
            ],
            methods=[
                schemas.MethodInfo(
                    name=name,
                    title=name if name not in FIRST else f"{name} ({RECIPES[name].summary})",
                    points="free" if RECIPES[name].space == "free" else "words",
                    needs_label=RECIPES[name].needs_labels,
                    by_chance=not RECIPES[name].follows_gradient,
                )
                for name in order
            ],
            limits=schemas.Allowed(**vars(self.limits)),
            examples=list(examples),
        )

    def attack(self, asked: schemas.AskedAttack) -> schemas.Attack:
        """Swaps that change the prediction, and what each of them does."""
        _, run = self._run(asked, words=self.limits.attacked)
        if run.tagging and asked.label is not None:
            raise SettingError(
                "label",
                "label is for classifiers: this run is attacked for the tags that it predicts, so leave it out",
            )
        settings = AttackSettings(method=asked.method, max_swaps=asked.max_swaps)
        (attacked,) = attack(run, [Example(asked.text, asked.label)], settings)
        task = "tag" if run.tagging else "classify"
        return schemas.Attack(**vars(attacked), task=task, steps=_steps(run, attacked))


def _together(
    asked: Sequence[Question], answer: Callable[..., Sequence[Answer]], alike: Callable[[Question], Any]
) -> list[Answer | Exception]:
    """The answer to each question: those that are alike together, but each alone where one of them cannot be."""
    answers: list[Any] = [None] * len(asked)
    groups: dict[Any, list[int]] = {}
    for at, one in enumerate(asked):
        groups.setdefault(alike(one), []).append(at)
    for numbers in groups.values():
        try:
            found: Sequence[Any] = answer(*(asked[at] for at in numbers))
        except Exception as error:
            found = [error] if len(numbers) == 1 else [_alone(answer, asked[at]) for at in numbers]
        for at, one in zip(numbers, found, strict=True):
            answers[at] = one
    return answers


def _alone(answer: Callable[..., Sequence[Answer]], question: Any) -> Answer | Exception:
    try:
        return answer(question)[0]
    except Exception as error:
        return error


def _steps(run: Run, attacked: Attacked) -> list[schemas.Step]:
    """The swaps one by one, each with what the model says of the text so far."""
    texts, moved, text = [], 0, attacked.text
    places = []
    for change in attacked.changes:  # in the order of the text, so each moves those after it
        start, end = change.start + moved, change.end + moved
        text = text[:start] + change.toward + text[end:]
        moved += len(change.toward) - len(change.word)
        texts.append(text)
        places.append(start)
    assert text == attacked.adversarial
    steps = []
    for change, prediction, start in zip(attacked.changes, run.predict(texts), places, strict=True):
        of_word = prediction.tokens[change.position] if run.tagging else prediction
        label = str(of_word.label)
        now = {"start": start, "label": label, "probability": of_word.probabilities[label]}
        steps.append(schemas.Step(**vars(change) | now))
    return steps
