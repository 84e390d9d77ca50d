"""Whether pulls point at what matters: how often swaps of the word they choose flip a prediction, beside others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from wordward.datasets import DataError
from wordward.explain.attribution import attributions, gradients
from wordward.explain.explainer import Explainer
from wordward.explain.explanation import Place
from wordward.explain.labels import Labels
from wordward.explain.pulls import WordPulls
from wordward.explain.swaps import apply
from wordward.runs.inputs import Text
from wordward.runs.metrics import Interval, intervals_to_json, mean, share
from wordward.runs.reading import Reading
from wordward.runs.run import Run
from wordward.support.console import progress
from wordward.support.errors import SettingError

CHOICES = {
    "shown": "the word that explain shows first",
    "pull": "the strongest pull",
    "gradient": "the largest gradient",
    "captum": "Captum's integrated gradients",
    "random": "a word at random",
}
DRAWS = 5  # words of a text that are drawn at random; their mean counts


@dataclass(frozen=True)
class Faithfulness:
    """How often the word that each choice names can be swapped so that the prediction changes.

    Args:
        method: Whose pulls were taken.
        texts: On how many texts, predicted right where their labels are given, with two words to choose from or more.
        flips: By choice, one of `CHOICES`: the share of texts that one of the candidate words in that place flips.
        ahead: By other choice: by how much the share of the strongest pull is larger, over the same texts.
        skipped: By choice: why it was left out.

    Examples:
        >>> found = wordward.explain.faithfulness(run, ["the film was warm and funny", "the film was dull and cold"])
        >>> found.texts, sorted(found.ahead)
        (2, ['captum', 'gradient', 'random', 'shown'])
    """

    method: str
    texts: int
    flips: dict[str, Interval]
    ahead: dict[str, Interval]
    skipped: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Everything for `json.dumps`."""
        return {
            "method": self.method,
            "texts": self.texts,
            "flips": intervals_to_json(self.flips),
            "ahead": intervals_to_json(self.ahead),
            "skipped": self.skipped,
        }


class _Choosable(NamedTuple):
    """A text with the words that may be put in each place, and how strongly each place is pulled."""

    reading: Reading
    label: int
    candidates: dict[int, list[int]]  # by the position of a word: ids
    pulls: dict[int, float]


def faithfulness(
    run: Run,
    texts: Sequence[Text],
    *,
    method: str = "iadvt",
    word_space: str = "auto",
    seed: int = 0,
    quiet: bool = True,
) -> Faithfulness:
    """Whether the word that an explanation names flips the prediction more often than a word chosen in another way.

    Each choice names one word of a text: the one that `explain` shows first, which is one of strong pull that the
    model was asked about (left out where it is not asked); the strongest pull itself; the largest norm of the
    gradient at its vector; the largest attribution of Captum's LayerIntegratedGradients; or chance. Then the same is
    done for all: every word that fits in that place, other forms of the same word too, is put there, and the text is
    predicted again as plain text; it flips if one of them changes the label.

    Args:
        run: A classifier with gradients, as `wordward.load_run` or `wordward.open_model` opens it.
        texts: Strings, or `Example`s; where their labels are given only those predicted right count.
        method: Whose pulls are taken.
        word_space: As in `explain`.
        seed: Of the words that are drawn at random.
        quiet: Show no progress.

    Returns:
        A `Faithfulness`: `flips` by choice and `ahead`, each with a 95 % interval; `skipped` where Captum is missing.

    Examples:
        >>> found = wordward.explain.faithfulness(run, ["the film was warm and funny", "the film was dull and cold"])
        >>> 0 <= found.flips["shown"].value <= 1
        True
    """
    if run.tagging:
        raise SettingError("run", "faithfulness is measured for classifiers; this model gives each word a tag")
    explainer = Explainer(run, method, word_space=word_space, forms=True)
    shown = None if explainer.sensible is None else Explainer(run, method, word_space=word_space)
    chosen = _choosable([explainer] if shown is None else [explainer, shown], texts)
    if not chosen:
        raise DataError("expected texts with two words or more that others may stand for; there are none")
    with progress(quiet=quiet) as bars:
        bar = bars.add_task("what pulls tell", total=2 * len(chosen), unit="texts")
        places, skipped = _named(explainer, chosen, seed, partial(bars.advance, bar))
        if shown is None:
            skipped["shown"] = f"the model is not asked about the pulls of {explainer.adversary.method.name}"
        else:
            places["shown"] = _shown(shown, chosen)
        bars.update(bar, completed=len(chosen))
        flips = []
        for number, one in enumerate(chosen):
            flips.append(_flips(run, one, {at for of_choice in places.values() for at in of_choice[number]}))
            bars.advance(bar)
    found = {
        name: np.array(
            [np.mean([flips[number][at] for at in of_text]) for number, of_text in enumerate(places[name])]
        )
        for name in CHOICES
        if name in places
    }
    return Faithfulness(
        explainer.adversary.method.name,
        len(chosen),
        {n: mean(each) if n == "random" else share(int(each.sum()), len(chosen)) for n, each in found.items()},
        {name: mean(found["pull"] - each) for name, each in found.items() if name != "pull"},
        skipped,
    )


def _named(
    explainer: Explainer, chosen: Sequence[_Choosable], seed: int, advance: Callable[[float], None]
) -> tuple[dict[str, list[list[int]]], dict[str, str]]:
    """The words that each choice names in each text, by their positions; and which choices are left out, and why."""
    rows, labels = [one.reading.row for one in chosen], [one.label for one in chosen]
    scores = {"pull": [one.pulls for one in chosen], "gradient": gradients(explainer, rows, labels)}
    skipped = {}
    if find_spec("captum") is None:
        skipped["captum"] = "captum is not installed: pip install 'wordward[captum]'"
    else:
        scores["captum"] = attributions(explainer, rows, labels, advance)
    places = {
        name: [[max(one.candidates, key=lambda at: of_text[at])] for one, of_text in zip(chosen, values, strict=True)]
        for name, values in scores.items()
    }
    rng = np.random.default_rng(seed)
    places["random"] = [
        rng.choice(list(one.candidates), min(DRAWS, len(one.candidates)), replace=False).tolist() for one in chosen
    ]
    return places, skipped


def _shown(explainer: Explainer, chosen: Sequence[_Choosable]) -> list[list[int]]:
    """The word of each text whose pull is shown as its strongest, by position; the strongest pull where none is."""
    found = explainer([one.reading.text for one in chosen])
    shown = [None if each.strongest is None else each.strongest.position for each in found]
    return [
        [at if at in one.candidates else max(one.candidates, key=lambda at: one.pulls[at])]
        for one, at in zip(chosen, shown, strict=True)
    ]


def _choosable(explainers: Sequence[Explainer], texts: Sequence[Text]) -> list[_Choosable]:
    """The texts that are predicted right and in which two words or more may be swapped, for what any explainer finds.

    How strongly a place is pulled is what the first says that pulls it.
    """
    run = explainers[0].run
    examples = run.examples(texts)
    readings = run.read_all(examples)
    predicted = run.predict_readings(readings)
    right = [
        at
        for at, (example, one) in enumerate(zip(examples, predicted, strict=True))
        if one.problem is None and example.label in (None, one.label)
    ]
    names: list[Labels] = [[predicted[at].label] for at in right]
    chosen, writable = [readings[at] for at in right], run.writable()
    labels = [run.labels.index(str(predicted[at].label)) for at in right]
    found = [_Choosable(reading, label, {}, {}) for reading, label in zip(chosen, labels, strict=True)]
    for explainer in explainers:
        k = explainer.adversary.method.settings.k or explainer.top
        for pulls in explainer.pulls(chosen, names, top=k):
            reading, one = chosen[pulls.number], found[pulls.number]
            for at, of in _candidates(explainer, reading, pulls.of_words(reading.row), writable).items():
                one.candidates[at] = list(dict.fromkeys([*one.candidates.get(at, []), *(word for word, _ in of)]))
                one.pulls.setdefault(at, max(strength for _, strength in of))
    return [one for one in found if len(one.candidates) > 1]


def _candidates(
    explainer: Explainer, reading: Reading, pulls: WordPulls, writable: np.ndarray
) -> dict[int, list[tuple[int, float]]]:
    """By the position of a word that may be swapped: the words that may come, with their strengths."""
    own = reading.row.ids[reading.row.first].tolist()
    found = {}
    for at in np.flatnonzero(explainer.places.whole(reading)).tolist():
        of_word = zip(pulls.words[at], pulls.strengths[at], strict=True)
        may_come = [(word, strength) for word, strength in of_word if word != own[at] and writable[word]]
        if may_come:
            found[at] = may_come
    return found


def _flips(run: Run, one: _Choosable, positions: set[int]) -> dict[int, bool]:
    """Of some places whether one of the words that may come there changes the label."""
    reading, made = one.reading, []
    for at in sorted(positions):
        token = reading.tokens[at]
        place = Place(at, reading.written(at), token.start, token.end, reading.known[at], ())
        for word in one.candidates[at]:
            text = apply(reading.text, [(place, run.vocabulary.word(word))], lowercase=run.text.lowercase)
            if run.swapped(reading.row, at, word, text) is not None:
                made.append((at, text))
    predicted = run.predict([text for _, text in made]) if made else []
    changed = {at for (at, _), each in zip(made, predicted, strict=True) if each.label != run.labels[one.label]}
    return {at: at in changed for at in positions}
