"""The published protocol on several models: accuracy as they stand and under each attack, raw and calibrated."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from wordward.attack.greedy import Outcome, greedy, together
from wordward.attack.similarity import Similarity
from wordward.attack.standard import candidates_of
from wordward.config.yardsticks import YardstickSettings
from wordward.datasets import DataError, Example
from wordward.runs.metrics import Interval, mean, share
from wordward.runs.run import Run
from wordward.support.console import progress
from wordward.support.errors import SettingError
from wordward.support.memo import Memo

REMEMBERED = 1 << 18  # texts whose logits are kept
ENOUGH = 50  # texts to fit a temperature on


@dataclass(frozen=True)
class Yardstick:
    """One model under one attack.

    Args:
        model: Its folder or name.
        method: That it was trained with.
        attack: The attack's name.
        temperature: By which the model's logits were divided before the attack saw probabilities; 1: not.
        calibrated: Whether the temperature was fitted on held-out texts.
        clean: Accuracy on the texts as they are.
        under_attack: Accuracy on the texts that the attack makes of them.
        success: Share of the texts predicted right that the attack flips; None where none is.
        changed: Mean share of words changed in flipped texts, with its interval; None where none is.
        queries: Mean number of texts that the model was asked for, for each that it predicts right.
        seconds: That the attack took; texts and sentences read before are remembered, so the first one pays for all.
        outcomes: What became of each text.

    Examples:
        >>> from wordward.attack import YardstickSettings, yardsticks
        >>> settings = YardstickSettings(("textbugger",), similarity_model="none", vectors="vectors.txt")
        >>> (found,) = yardsticks([run], [wordward.Example("the film was dull", "bad")], settings)
        >>> found.attack, found.clean.value
        ('textbugger', 1.0)
    """

    model: str
    method: str
    attack: str
    temperature: float
    calibrated: bool
    clean: Interval
    under_attack: Interval
    success: Interval | None
    changed: Interval | None
    queries: float
    seconds: float
    outcomes: tuple[Outcome, ...]

    def as_dict(self) -> dict[str, Any]:
        """For JSON, without the texts."""
        values = {name: value for name, value in vars(self).items() if name != "outcomes"}
        return {name: value._asdict() if isinstance(value, Interval) else value for name, value in values.items()}

    def texts(self) -> Iterator[dict[str, Any]]:
        """A record for each text."""
        for number, outcome in enumerate(self.outcomes):
            told = {"model": self.model, "attack": self.attack, "temperature": self.temperature, "number": number}
            yield told | asdict(outcome)


class Asked:
    """A model that is asked for probabilities of texts; a text is read once."""

    def __init__(self, run: Run) -> None:
        if run.tagging or run.several_labels:
            raise SettingError(
                "model", f"{run.folder} gives a text several labels: yardsticks are for one label a text"
            )
        run.forget()
        self.run, self.temperature = run, 1.0
        self._logits = Memo(self._read, REMEMBERED)

    def logits(self, texts: Sequence[str]) -> np.ndarray:
        """(texts, classes); nan for one that cannot be read."""
        return np.stack(self._logits(texts))

    def _read(self, texts: list[str]) -> list[np.ndarray]:
        rows = self.run.rows_of(texts)
        found = iter(self.run.logits([row for row in rows if row is not None]))
        unreadable = np.full(len(self.run.labels), np.nan, np.float32)
        return [unreadable if row is None else next(found) for row in rows]

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Probabilities in single precision, as attacks see them: a confident model's are 1 whatever is changed."""
        return softmax(self.logits(texts) / np.float32(self.temperature))


def softmax(logits: np.ndarray) -> np.ndarray:
    """(texts, classes), in the precision of the logits."""
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def fitted_temperature(logits: np.ndarray, labels: np.ndarray) -> float:
    """The number that logits (texts, classes) are divided by for the labels to be likeliest, from 0.05 to 100."""
    filled = ~np.isnan(logits).any(1)
    given, wanted = torch.tensor(logits[filled], dtype=torch.float64), torch.tensor(labels[filled])
    low, high = np.log(0.05), np.log(100.0)
    for _ in range(4):  # the loss has one minimum
        tried = np.linspace(low, high, 41)
        best = int(np.argmin([F.cross_entropy(given / np.exp(each), wanted) for each in tried]))
        low, high = tried[max(0, best - 1)], tried[min(40, best + 1)]
    return float(np.exp((low + high) / 2))


def yardsticks(
    runs: Sequence[Run],
    examples: Sequence[Example] | Sequence[Sequence[Example]],
    settings: YardstickSettings | None = None,
    *,
    held_out: Sequence[Example] | Sequence[Sequence[Example]] = (),
    quiet: bool = True,
) -> list[Yardstick]:
    """Measure models under TextFooler-, TextBugger- and BERT-Attack-style attacks, as Li et al. 2021 do.

    Args:
        runs: Classifiers: what `wordward.open_model` gives; only their probabilities are used.
        examples: Labelled texts; or a list of them for each run, where their labels have other names.
        settings: Which attacks, and what they may do.
        held_out: Labelled texts, or a list for each run, on which a temperature is fitted for each model, which is
            then attacked a second time through calibrated probabilities (Raina et al. 2024); none: raw only.
        quiet: Show no progress.

    Returns:
        A `Yardstick` for each model, attack and temperature.

    Examples:
        >>> from wordward.attack import YardstickSettings, yardsticks
        >>> settings = YardstickSettings(("textbugger",), similarity_model="none", vectors="vectors.txt")
        >>> found = yardsticks([run], [wordward.Example("the film was dull", "bad")], settings)
        >>> found[0].clean.value
        1.0
    """
    settings = settings or YardstickSettings()
    models = [Asked(run) for run in runs]
    texts, apart = _for_each(runs, examples), _for_each(runs, held_out)
    labels = [_numbers(run, of_run) for run, of_run in zip(runs, texts, strict=True)]
    if not texts[0]:
        raise DataError("expected labelled texts to attack; there are none")
    device = runs[0].device
    compare = _same if settings.similarity_model == "none" else Similarity(settings.similarity_model, device)
    temperatures = [_temperatures(model, rest) for model, rest in zip(models, apart, strict=True)]
    found = []
    for name in settings.attacks:
        offered = list(candidates_of(name, settings, runs)([example.text for example in texts[0]]))
        for model, of_run, numbers, divisors in zip(models, texts, labels, temperatures, strict=True):
            for temperature in divisors:
                model.temperature, started = temperature or 1.0, time.monotonic()
                searches = (
                    greedy(example.text, number, words, settings)
                    for example, number, words in zip(of_run, numbers, offered, strict=True)
                )
                with progress(quiet=quiet) as bars:
                    title = f"{model.run.folder} {name}{' calibrated' if temperature else ''}"
                    bar = bars.add_task(title, total=len(of_run), unit="texts")
                    outcomes = tuple(bars.track(together(searches, model, compare), len(of_run), task_id=bar))
                found.append(_measured(model, name, temperature, outcomes, time.monotonic() - started))
    return found


def _same(pairs: Sequence[tuple[str, str]]) -> list[float]:
    return [1.0] * len(pairs)


def _for_each(runs: Sequence[Run], examples: Any) -> list[list[Example]]:
    """A list of examples for each run, of one list for all or of a list for each, which must hold the same texts."""
    each = [list(of_run) for of_run in examples] if examples and not isinstance(examples[0], Example) else None
    each = [list(examples)] * len(runs) if each is None else each
    if len(each) != len(runs) or any([x.text for x in one] != [x.text for x in each[0]] for one in each):
        raise DataError("expected the same texts for each model")
    return each


def _numbers(run: Run, examples: Sequence[Example]) -> np.ndarray:
    """The true labels in the order of the model's logits."""
    labels = [run.example(example).label for example in examples]
    for label, example in zip(labels, examples, strict=True):
        if label not in run.labels:
            raise DataError(
                f"expected a label of {run.folder}, one of {', '.join(run.labels)}; got {label!r}", line=example.line
            )
    return np.array([run.labels.index(str(label)) for label in labels], dtype=np.int64)


def _temperatures(model: Asked, held_out: Sequence[Example]) -> list[float | None]:
    """None for the model as it is, then the temperature fitted on held-out texts, where there are enough."""
    if len(held_out) < ENOUGH:
        return [None]
    logits = model.logits([example.text for example in held_out])
    return [None, fitted_temperature(logits, _numbers(model.run, held_out))]


def _measured(
    model: Asked, name: str, temperature: float | None, outcomes: tuple[Outcome, ...], seconds: float
) -> Yardstick:
    right = [outcome for outcome in outcomes if outcome.outcome != "wrong"]
    flipped = [outcome for outcome in right if outcome.outcome == "flipped"]
    return Yardstick(
        str(model.run.folder),
        model.run.config.method if model.run.trained_here else "",
        name,
        temperature or 1.0,
        temperature is not None,
        share(len(right), len(outcomes)),
        share(len(right) - len(flipped), len(outcomes)),
        share(len(flipped), len(right)) if right else None,
        mean([outcome.changed / outcome.words for outcome in flipped]) if flipped else None,
        float(np.mean([outcome.queries for outcome in right])) if right else 0.0,
        seconds,
        outcomes,
    )
