"""Example sentences of a report: their strongest pull, put into the text, changes the prediction."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wordward.datasets import Example, sample
from wordward.explain.explainer import explain
from wordward.explain.explanation import Explanation, Place
from wordward.explain.swaps import apply
from wordward.runs.prediction import Prediction
from wordward.runs.run import Run

SHORT = range(5, 15)  # words of a sentence that is quickly read
POOL = 500  # sentences to choose from, at most


@dataclass(frozen=True)
class Telling:
    """A sentence explained, and how the prediction changes when its strongest pull is put into the text."""

    explanation: Explanation
    place: Place  # of the strongest pull
    text: str  # with that pull put in
    label: str  # the true one; a tagger's of the word in focus
    before: float  # its probability, as `Run.predict` gives it for the sentence
    after: float  # and for the text
    predicted_before: str
    predicted_after: str

    @property
    def toward(self) -> str:
        """The word that was put in."""
        return self.place.pulls[0].toward

    @property
    def right(self) -> bool:
        """Whether the model gets the sentence right."""
        return self.predicted_before == self.label

    @property
    def changes(self) -> bool:
        """Whether the prediction is another one after."""
        return self.predicted_before != self.predicted_after


def telling(run: Run, examples: Sequence[Example], *, count: int, seed: int = 0) -> list[Telling]:
    """Short sentences that the model gets right, those first that their strongest pull hurts most."""
    right = [candidate for candidate in tell(run, _pool(examples, count, seed)) if candidate.right]
    chosen: dict[tuple[str, str], Telling] = {}
    for candidate in sorted(right, key=lambda candidate: candidate.after - candidate.before):
        swap = candidate.place.word.lower(), candidate.toward.lower()
        chosen.setdefault(swap, candidate)  # none twice
    return list(chosen.values())[:count]


def _pool(examples: Sequence[Example], count: int, seed: int) -> list[Example]:
    """Some short sentences; where there are few, the shortest texts."""
    short = [example for example in examples if len(example.text.split()) in SHORT]
    if len(short) < count:
        return sorted(examples, key=lambda example: len(example.text.split()))[: POOL // 5]
    return sample(short, POOL, seed=seed)


def tell(run: Run, examples: Sequence[Example]) -> list[Telling]:
    """What the model says of each example, and of its text with the strongest pull put in."""
    if run.tagging:
        explained = _tags(run, examples)
    else:
        labelled = [example for example in examples if example.label is not None]
        explained = zip((str(example.label) for example in labelled), explain(run, labelled), strict=True)
    with_place = [(label, explanation, explanation.strongest) for label, explanation in explained]
    pulled = [(label, explanation, place) for label, explanation, place in with_place if place is not None]
    texts = [
        apply(explanation.text, [(place, place.pulls[0].toward)], lowercase=run.text.lowercase)
        for _, explanation, place in pulled
    ]
    predictions = run.predict([explanation.text for _, explanation, _ in pulled] + texts)
    return [
        Telling(explanation, place, text, label, *_before_and_after(explanation.focus, label, before, after))
        for (label, explanation, place), text, before, after in zip(
            pulled, texts, predictions[: len(texts)], predictions[len(texts) :], strict=True
        )
        if explanation.focus is None or len(before.labels) == len(after.labels)  # a word may hold a blank
    ]


def _tags(run: Run, examples: Sequence[Example]) -> list[tuple[str, Explanation]]:
    """Sentences, each explained for one word whose tag the model gets right: an error, or any uncommon tag."""
    plain = [
        Example(" ".join(example.tokens or example.text.split()), tags=example.tags)
        for example in examples
        if example.tags
    ]
    plain = [example for example in plain if len(example.text.split()) == len(example.tags or ())]
    wanted = _wanted(run, [tag for example in plain for tag in example.tags or ()])
    by_focus: dict[int, list[Example]] = {}
    for example, predicted in zip(plain, run.predict(plain), strict=True):
        pairs = zip(example.tags or (), predicted.labels, strict=True)
        right = [at for at, (tag, label) in enumerate(pairs) if tag == label and tag in wanted]
        if right:
            by_focus.setdefault(right[0], []).append(example)
    return [
        ((example.tags or ())[focus], explanation)
        for focus, of_focus in by_focus.items()
        for example, explanation in zip(of_focus, explain(run, of_focus, focus=focus), strict=True)
    ]


def _wanted(run: Run, tags: Iterable[str]) -> set[str]:
    """The run's positive tag, or if it has none all tags but the most common one."""
    if run.positive is not None:
        return {run.labels[run.positive]}
    return set(run.labels) - {tag for tag, _ in Counter(tags).most_common(1)}


def _before_and_after(
    focus: int | None, label: str, before: Prediction, after: Prediction
) -> tuple[float, float, str, str]:
    """The probability of the label before and after the swap, and the label predicted before and after."""
    first, last = (each if focus is None else each.tokens[focus] for each in (before, after))
    return first.probabilities[label], last.probabilities[label], str(first.label), str(last.label)
