"""The prediction of a run for a text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class TokenPrediction:
    """A tagger's label of one token."""

    token: str
    label: str
    probabilities: Mapping[str, float]  # by label


@dataclass(frozen=True)
class Prediction:
    """A classifier's label of a text, or a tagger's labels of its tokens.

    Attributes:
        text: The text as given.
        label: A classifier's likeliest label; None for a tagger, and where the text could not be read.
        probabilities: A classifier's probability of each label.
        tokens: A tagger's labels, one for each token.
        problem: Why the text could not be read; None where it was.
        several: Its labels where a model may give several at once, each of a probability of its own that is 0.5 or
            more; `label` has them with | between. None for other models.
        warning: What makes the prediction doubtful, such as a text of unknown words only.
    """

    text: str
    label: str | None = None
    probabilities: Mapping[str, float] = field(default_factory=dict)
    tokens: tuple[TokenPrediction, ...] = ()
    problem: str | None = None
    warning: str | None = None
    several: tuple[str, ...] | None = None

    @property
    def labels(self) -> list[str]:
        """A tagger's label of each token."""
        return [token.label for token in self.tokens]

    def to_json(self) -> dict[str, Any]:
        """A record for `json.dumps`: what is known, and `error` where the text could not be read."""
        if self.problem is not None:
            return {"text": self.text, "error": self.problem}
        record: dict[str, Any] = {"text": self.text}
        if self.tokens:
            record["tokens"] = [dict(vars(token)) for token in self.tokens]
        else:
            record |= {"label": self.label, "probabilities": self.probabilities}
            record |= {} if self.several is None else {"labels": list(self.several)}
        return record if self.warning is None else record | {"warning": self.warning}


def named(labels: Sequence[str], probabilities: np.ndarray) -> tuple[str, dict[str, float]]:
    """The likeliest label, and the probability of each, (classes,), by its name."""
    each = {label: round(float(value), 6) for label, value in zip(labels, probabilities, strict=True)}
    return labels[int(probabilities.argmax())], each
