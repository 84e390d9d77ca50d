"""What may be set on any method."""

from dataclasses import dataclass
from typing import Literal

from wordward.support.errors import SettingError
from wordward.support.given_settings import TracksGiven
from wordward.support.rules import ABOVE_ZERO, DROPOUT, NOT_NEGATIVE, POSITIVE, WHOLE, check, check_choices


@dataclass(frozen=True)
class MethodSettings(TracksGiven):
    """What may be set on any method; the defaults are the paper's.

    Args:
        epsilon: Length of the perturbation of a text; by default 0.25 (free) or 0.75 (toward words) of the
            distance from a word of the table to its tenth nearest, times the root of the text's length in 240 words:
            the paper's 5 and 15 on IMDB. inf: no bound, with steps as for that default unless `step_size` is given
            (FreeLB++ is freelb so, with 30 steps).
        epsilon_factor: Multiple of that default: 2 or 3 for a model that is harder to fool and may err more often.
        regularizer_weight: lambda in eq:obj_advt.
        k: Number of nearest words a token may be pulled toward; None: the whole vocabulary.
        xi: Length per token of the small first step of VAT and iVAT.
        first_step: Of iVAT and iVAT-Best: toward all k words alike (the authors' code), or with strengths drawn at
            random for each batch, as VAT draws its direction. Without effect where directions are free;
            explanations and attacks step alike.
        power_iterations: Refinements of VAT's and iVAT's direction, one forward and one backward pass each.
        ascent_steps: Steps of the ascent that finds r, each a forward and a backward pass; by default 1 (pgd and
            freelb: 3).
        step_size: Length of each step, at most epsilon; by default 2.5 epsilon / ascent_steps. With one step, the
            length of r.
        metric: What "nearest" means.
        refresh: When nearest words are searched for again: each batch (the paper), every n steps, each epoch; auto:
            every 100 steps.
        normalization: Paper: strengths at length epsilon over the sentence. Authors' code: strengths at unit length
            per token, then the perturbation at length epsilon over the sentence; iVAT's gradient goes through its
            first step.
        average: For tagging: mean over sentences of the sum over tokens (the paper), or mean over tokens.
        same_dropout: Use the same dropout masks in all passes over a batch, so that r raises the very loss it was
            found for (Miyato et al.); by default each pass draws its own, as in the authors' code.
        direction_dropout: While training, take directions between vectors of which this share of the numbers is
            dropped, for a word and for each of its k nearest a share of its own, drawn anew for each batch (the
            authors' code: 0.5); needs a k. Without effect where directions are free; explanations and attacks drop
            none.

    Raises:
        SettingError: If a value cannot be used.

    Examples:
        >>> import wordward
        >>> wordward.MethodSettings(epsilon=5.0, k=None).xi
        1.0
    """

    epsilon: float | None = None
    epsilon_factor: float = 1.0
    regularizer_weight: float = 1.0
    k: int | None = 10
    xi: float = 1.0
    first_step: Literal["alike", "random"] = "alike"
    power_iterations: int = 1
    ascent_steps: int | None = None
    step_size: float | None = None
    metric: Literal["cosine", "euclidean"] = "cosine"
    refresh: int | Literal["auto", "batch", "epoch"] = "auto"
    normalization: Literal["paper", "authors"] = "paper"
    average: Literal["sentences", "tokens"] = "sentences"
    same_dropout: bool = False
    direction_dropout: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what no method can use."""
        given = [name for name in ("epsilon", "k", "ascent_steps", "step_size") if getattr(self, name) is not None]
        check(
            self, POSITIVE, "xi", "power_iterations", "epsilon_factor", *(name for name in given if name != "epsilon")
        )
        check(self, ABOVE_ZERO, *(name for name in given if name == "epsilon"))
        check(self, WHOLE, "power_iterations", *(name for name in given if name in ("k", "ascent_steps")))
        check(self, NOT_NEGATIVE, "regularizer_weight")
        check(self, DROPOUT, "direction_dropout")
        if self.direction_dropout and self.k is None:
            raise SettingError(
                "direction_dropout",
                f"`direction_dropout` needs directions to the `k` nearest words, but it is {self.direction_dropout} "
                "and k is None, all words: set `k`, or leave `direction_dropout` at 0",
            )
        if self.epsilon is not None and self.epsilon_factor != 1.0:
            raise SettingError(
                "epsilon_factor",
                f"`epsilon_factor` multiplies the default `epsilon`, but that is given as {self.epsilon}: give one",
            )
        check_choices(self)
        if not isinstance(self.same_dropout, bool):
            raise SettingError("same_dropout", f"same_dropout must be True or False, but is {self.same_dropout!r}")
        if self.refresh not in ("auto", "batch", "epoch") and (not isinstance(self.refresh, int) or self.refresh < 1):
            raise SettingError(
                "refresh", f"refresh must be auto, batch, epoch or a number of steps, but is {self.refresh!r}"
            )
