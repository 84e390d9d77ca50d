"""Answers of the runs that are served."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from wordward.attack.attacked import Attacked
from wordward.attack.attacker import attack
from wordward.config.attack import AttackSettings
from wordward.datasets import Example
from wordward.explain.explainer import explain
from wordward.explain.explanation import Explanation, Place
from wordward.explain.html import html_fragment, page
from wordward.explain.swaps import apply
from wordward.perturbation.recipes import RECIPES
from wordward.runs.prediction import Prediction
from wordward.runs.reading import no_words
from wordward.runs.run import Run
from wordward.serve import schemas
from wordward.serve.limits import Limits
from wordward.support.errors import RunError, SettingError
from wordward.support.version import __version__

FIRST = ("iadvt", "ivat", "advt", "vat")  # the paper's own, before its ablations


class Service:
    """The runs that are served, by name."""

    def __init__(self, runs: Sequence[Run], limits: Limits) -> None:
        names = _names([run.folder for run in runs])
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
        count = run.read(Example(text)).words
        if count > words:
            raise SettingError(
                "text",
                f"the text has {count:,} words; at most {words:,} are accepted here: cut it, or use the command line",
            )
        if not count:
            raise SettingError("text", no_words(text))
        return name, run

    def predict(self, asked: schemas.Asked) -> Prediction:
        """The prediction of a run for a text."""
        _, run = self._run(asked)
        return run.predict([asked.text])[0]

    def explain(self, asked: schemas.AskedExplain) -> Explanation:
        """A text explained."""
        name, run = self._run(asked)
        example = Example(asked.text, asked.label)
        (explanation,) = explain(run, [example], method=asked.method, top=asked.top, focus=asked.focus)
        return replace(explanation, model=name)

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
        explanations = [
            self.explain(
                schemas.AskedExplain(
                    text=asked.text, run=view.run, method=view.method, label=asked.label, focus=asked.focus
                )
            )
            for view in asked.views
        ]
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
                    trained_with=run.config.method,
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
            limits=schemas.Allowed(
                characters=self.limits.characters, words=self.limits.words, attacked=self.limits.attacked
            ),
            examples=list(examples),
        )

    def attack(self, asked: schemas.AskedAttack) -> schemas.Attack:
        """Swaps that change the prediction, and what each of them does."""
        _, run = self._run(asked, words=self.limits.attacked)
        settings = AttackSettings(method=asked.method, max_swaps=asked.max_swaps)
        (attacked,) = attack(run, [Example(asked.text, None if run.tagging else asked.label)], settings)
        return schemas.Attack(
            task="tag" if run.tagging else "classify",
            text=attacked.text,
            adversarial=attacked.adversarial,
            outcome=attacked.outcome,
            label=attacked.label,
            before=attacked.before,
            after=attacked.after,
            probability_before=attacked.probability_before,
            probability_after=attacked.probability_after,
            passes=attacked.passes,
            steps=_steps(run, attacked),
        )


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
        steps.append(
            schemas.Step(
                word=change.word,
                toward=change.toward,
                start=start,
                sense=change.sense,
                label=str(of_word.label),
                probability=of_word.probabilities[str(of_word.label)],
            )
        )
    return steps


def _names(folders: Sequence[Path]) -> list[str]:
    """The last names of the folders, with as many of those before as it takes to tell them apart."""
    parts = [folder.resolve().parts for folder in folders]
    for count in range(1, max(map(len, parts)) + 1):
        names = ["/".join(of_folder[-count:]) for of_folder in parts]
        if len(set(names)) == len(names):
            return names
    raise RunError(f"expected different runs; got {', '.join(map(str, folders))}: name each once")
