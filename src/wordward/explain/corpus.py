"""Explanations of many texts, by one or several methods, in one or several processes."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from wordward.datasets import Example
from wordward.explain.explainer import Explainer
from wordward.explain.explanation import Explanation
from wordward.explain.labels import check_focus, check_known_labels
from wordward.runs.opening import opener
from wordward.runs.run import Run
from wordward.support.errors import SettingError
from wordward.support.workers import spread
from wordward.text.batches import chunks

TEXTS = 128  # explained side by side, texts of similar length together


class FocusedExample(NamedTuple):
    """A text, and the position of its word whose tag counts."""

    example: Example
    focus: int | None


@dataclass(frozen=True)
class ExplainSettings:
    """The settings of an explanation, the same for each text."""

    methods: tuple[str, ...] = ("iadvt",)
    top: int = 3  # words to name for each word
    focus: str | None = None  # a tagger's word whose tag counts, itself or its position
    words: str = "fitting"  # which words may pull: fitting or any
    word_space: str = "auto"  # whose vectors say which are nearest


def explain_all(
    run: Run, examples: Sequence[Example], settings: ExplainSettings, *, done: int = 0, jobs: int = 1
) -> Generator[list[Explanation], None, None]:
    """For each text, in order, its explanations, one per method; invalid settings raise an error immediately.

    `done`: how many of the texts to leave out, since they were explained before. Those beside the next one are read
    again with it: texts in a batch decide each other's last digits, so all are as if none had been left out.
    `jobs`: processes to use, each of which loads the run; more than one need a guarded main module.
    """
    work = Work(run, settings)
    if any(explainer.adversary.method.recipe.needs_labels for explainer in work.explainers):
        for example in examples:
            names = example.tags if run.tagging and example.tags else [example.label]
            check_known_labels(run, names, example.line)
    focused = _with_focus(run, examples, settings.focus)
    before = done % TEXTS if done < len(focused) else 0
    parts = list(chunks(focused[done - before :], TEXTS))
    explained_parts = spread(work, partial(_work, opener(run), settings), parts, jobs=jobs)
    return (explanations for at, part in enumerate(explained_parts) for explanations in part[0 if at else before :])


class Work:
    """Explains texts by each method of some settings."""

    def __init__(self, run: Run, settings: ExplainSettings) -> None:
        how = {"top": settings.top, "words": settings.words, "word_space": settings.word_space}
        self.explainers = [Explainer(run, method, **how) for method in settings.methods]

    def __call__(self, texts: Sequence[FocusedExample]) -> list[list[Explanation]]:
        """The explanations of some texts, those with their focus at the same position together."""
        by_text: list[list[Explanation]] = [[] for _ in texts]
        for focus in dict.fromkeys(text.focus for text in texts):
            numbers = [number for number, text in enumerate(texts) if text.focus == focus]
            for explainer in self.explainers:
                explanations = explainer([texts[number].example for number in numbers], focus=focus)
                for number, explanation in zip(numbers, explanations, strict=True):
                    by_text[number].append(explanation)
        return by_text


def _work(opened: Callable[[], Run], settings: ExplainSettings) -> Work:
    return Work(opened(), settings)


def _with_focus(run: Run, examples: Sequence[Example], focus: str | None) -> list[FocusedExample]:
    """Each text with the position of its focus, where there is to be one."""
    if focus is None:
        return [FocusedExample(example, None) for example in examples]
    if not run.tagging:
        raise SettingError("focus", "focus is for taggers: this run gives one label to the whole text")
    wanted, focused = focus.lower() if run.text.lowercase else focus, []
    for number, example in enumerate(examples, start=1):
        text = run.read(example)
        words = [token.text for token in text.tokens]
        if not wanted.isdecimal() and wanted not in words:
            possible = ", ".join(words[:20]) + (", ..." if len(words) > 20 else "") or "no words"
            raise SettingError("focus", f"expected `focus` to be a word of text {number} ({possible}); got {focus!r}")
        at = int(wanted) if wanted.isdecimal() else words.index(wanted)
        check_focus(text, at, number)
        focused.append(FocusedExample(example, at))
    return focused
