"""What a method of the paper is: three choices, and how many passes they cost."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from wordward.support.errors import SettingError
from wordward.support.rules import COUNT, check, check_among, check_choices

Objective = Literal["label_loss", "kl"]
SpaceKind = Literal["free", "words"]
Choice = Literal["steepest", "at_random", "random_one", "best_one", "one_token", "one_word", "nothing"]
Measure = Literal["one_way", "both_ways", "entropy"]
Own = Callable[..., Any]  # a function of a researcher's own in the place of a name


@dataclass(frozen=True)
class Recipe:
    """A method: what the perturbation r is to raise, where it may point, how its strengths are chosen.

    Each of the three is one of wordward's by name, or a function of your own. A new method is used by passing its
    recipe to `wordward.adversary`, or by name everywhere (`train`, `AdversarialSettings`, `TextClassifier`) after
    `wordward.RECIPES["its name"] = recipe`.

    Args:
        objective: "label_loss", "kl", or a function `(logits, target, counted)` that returns a number to raise;
            `counted` (batch, time) is True where a token's loss counts.
        space: "free" (every direction), "words" (toward the nearest words), or a function `(ids, tap)` that returns
            a `wordward.perturbation.space.Space`; its own needs an `epsilon`, and strengths as long as the vectors
            where it has no `candidates`.
        choice: "steepest", "best_one", "random_one" and so on, or a function `(values, possible, words)` that returns
            strengths in the shape of `values` (batch, time, k), the gradient's component along each direction.
            `possible()` and `words()`, to be called where needed, are True where a direction and a token may be used.
        equation: Where the method is written down.
        summary: The method in a few words.
        reference: Who proposed it; None stands for Sato et al. 2018.
        measure: Of the objective: itself, both ways added up, or the entropy that it makes.
        steps: Steps of the ascent that finds r.
        start: Where the ascent starts: at the text, or at a random r.
        counts: Which loss counts: at the last r, or the mean over every step's.
        compares_with: What an objective of your own gets as `target`: the labels, or the clean prediction (logits),
            for methods that need no labels.

    Examples:
        A method that moves every word alike, up or down in its loss:

        >>> import torch, wordward
        >>> signs = wordward.Recipe("label_loss", "words", lambda values, possible, words: values.sign())
        >>> ids = torch.tensor([[1, 2, 3], [4, 5, 6]])
        >>> model = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Flatten(), torch.nn.Linear(12, 2))
        >>> out = wordward.adversary(model, signs, k=3)(lambda: model(ids), torch.tensor([0, 1]))
        >>> len(out.strengths.abs().unique())  # all words are pulled equally hard
        1
    """

    objective: Objective | Own
    space: SpaceKind | Own
    choice: Choice | Own
    equation: str = ""
    summary: str = ""
    reference: str | None = None
    measure: Measure = "one_way"
    steps: int = 1
    start: Literal["text", "random"] = "text"
    counts: Literal["last", "every"] = "last"
    compares_with: Literal["labels", "prediction"] = "labels"

    def __post_init__(self) -> None:
        """Refuse what is neither known by name nor a function, and what does not fit together."""
        for name, known in (("objective", Objective), ("space", SpaceKind), ("choice", Choice)):
            if not callable(getattr(self, name)):
                check_among(self, name, (*get_args(known), "a function of your own"))
        check_choices(self)
        check(self, COUNT, "steps")
        if self.measure != "one_way" and self.needs_labels:
            raise SettingError(
                "measure",
                f"measure={self.measure!r} is of a divergence between predictions, but this loss is of labels",
            )

    @property
    def needs_labels(self) -> bool:
        """Whether the loss is that of labels (else it is measured from the clean prediction)."""
        return self.objective == "label_loss" or (callable(self.objective) and self.compares_with == "labels")

    @property
    def follows_gradient(self) -> bool:
        """Whether the perturbation is chosen by a gradient (else by chance alone, or there is none)."""
        return self.choice not in ("at_random", "random_one", "nothing")

    @property
    def starts_uphill(self) -> bool:
        """Whether the first step follows the gradient at the text itself, unperturbed."""
        return self.follows_gradient and self.start == "text"

    @property
    def moves(self) -> int:
        """Steps from one r to the next: the first r is a step from the text already, or drawn."""
        return self.steps - 1 + (self.start == "random" and self.counts == "last")

    @property
    def counted(self) -> int:
        """How many perturbed passes the loss is the mean of."""
        return self.steps if self.counts == "every" else 1

    @property
    def forwards(self) -> int:
        """Forward passes a step costs beyond the label loss's own clean pass."""
        return self.backwards + (not self.needs_labels and self.choice != "nothing")  # the clean prediction

    @property
    def backwards(self) -> int:
        """Backward passes a step of our own loop costs beyond the label loss's own."""
        probe = not self.needs_labels and self.follows_gradient
        return probe + self.moves + 1
