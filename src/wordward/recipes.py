"""The methods of the paper, each one line: what is to grow, where r may point, how it is chosen."""

from dataclasses import dataclass
from math import inf
from typing import Literal

Objective = Literal["label_loss", "kl"]
SpaceKind = Literal["free", "words"]
Choice = Literal["steepest", "at_random", "random_one", "best_one"]


@dataclass(frozen=True)
class Recipe:
    """The holes of the one algorithm, filled (see `wordward.method`)."""

    objective: Objective
    space: SpaceKind
    choice: Choice
    equation: str
    summary: str

    @property
    def follows_gradient(self) -> bool:
        """Whether the perturbation is chosen by a gradient (else by chance alone)."""
        return self.choice in ("steepest", "best_one")

    @property
    def forwards(self) -> int:
        """Forward passes a step costs beyond the label loss's own clean pass."""
        if self.objective == "label_loss":
            return 1
        return 3 if self.follows_gradient else 2


RECIPES: dict[str, Recipe] = {
    "random": Recipe("label_loss", "free", "at_random", "tab:result", "a random direction, label loss"),
    "random-kl": Recipe("kl", "free", "at_random", "tab:result", "a random direction, also unlabelled text"),
    "advt": Recipe("label_loss", "free", "steepest", "eq:adv_approx, eq:adv_loss", "AdvT-Text"),
    "vat": Recipe("kl", "free", "steepest", "eq:vat_approx, eq:vat_loss", "VAT-Text"),
    "iadvt": Recipe(
        "label_loss", "words", "steepest", "eq:adv_direction to eq:update_alpha_new", "iAdvT-Text"
    ),
    "ivat": Recipe("kl", "words", "steepest", "eq:update_alpha_new2, eq:ivat_loss", "iVAT-Text"),
    "iadvt-rand": Recipe(
        "label_loss", "words", "random_one", "tab:result", "toward one of the k nearest words, at random"
    ),
    "iadvt-best": Recipe(
        "label_loss", "words", "best_one", "eq:advR_seq", "toward the one nearest word of largest ascent"
    ),
    "ivat-rand": Recipe("kl", "words", "random_one", "tab:result", "iAdvT-Rand, also unlabelled text"),
    "ivat-best": Recipe("kl", "words", "best_one", "eq:advR_seq", "iAdvT-Best, also unlabelled text"),
}

KNOWN = {
    "metric": ("cosine", "euclidean"),
    "normalization": ("paper", "authors"),
    "average": ("sentences", "tokens"),
}

PAPER_EPSILON: dict[SpaceKind, float] = {"free": 5.0, "words": 15.0}


@dataclass(frozen=True)
class MethodSettings:
    """What a user may set on any method; the defaults are the paper's."""

    epsilon: float | None = None
    """Length of the perturbation; the paper's by default (5 free, 15 toward words), for a model that is not
    ours times the standard deviation of its table."""
    regularizer_weight: float = 1.0
    """lambda in eq:obj_advt."""
    k: int | None = 10
    """Nearest words a token may be pulled toward; None: the whole vocabulary."""
    xi: float = 1.0
    """Length per token of the small first step of VAT and iVAT."""
    power_iterations: int = 1
    """Refinements of VAT's and iVAT's direction, one forward and one backward each."""
    metric: Literal["cosine", "euclidean"] = "cosine"
    """What "nearest" means."""
    refresh: int | Literal["auto", "batch", "epoch"] = "auto"
    """When nearest words are searched anew: each batch (the paper), every n steps, each epoch; auto: every
    100 steps."""
    normalization: Literal["paper", "authors"] = "paper"
    """Paper: strengths at length epsilon over the sentence. Authors' code: strengths at unit length per
    token, then the perturbation at length epsilon over the sentence."""
    average: Literal["sentences", "tokens"] = "sentences"
    """For tagging: mean over sentences of the sum over tokens (the paper), or mean over tokens."""

    def __post_init__(self) -> None:
        """Refuse what no method can use."""
        positive = {
            "epsilon": self.epsilon,
            "xi": self.xi,
            "k": self.k,
            "power_iterations": self.power_iterations,
        }
        for name, value in positive.items():
            if value is not None and not 0 < value < inf:
                raise ValueError(f"{name} must be greater than 0, but is {value}")
        for name, known in KNOWN.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be {' or '.join(known)}, but is {getattr(self, name)!r}")
        if not self.regularizer_weight >= 0:
            raise ValueError(f"regularizer_weight must be 0 or more, but is {self.regularizer_weight}")
        if self.refresh not in ("auto", "batch", "epoch") and (
            not isinstance(self.refresh, int) or self.refresh < 1
        ):
            raise ValueError(
                f"refresh must be auto, batch, epoch or a number of steps, but is {self.refresh!r}"
            )


@dataclass(frozen=True)
class Method:
    """A recipe with its settings."""

    name: str
    recipe: Recipe
    settings: MethodSettings

    @property
    def per_token(self) -> bool:
        """Whether strengths are normalised per token, then r per sentence (authors' code; words only)."""
        return self.settings.normalization == "authors" and self.recipe.space == "words"


def parse_methods(names: str, settings: MethodSettings | None = None) -> tuple[Method, ...]:
    """`baseline` gives none, `iadvt` one, `iadvt+ivat` two methods whose losses add up."""
    settings = settings or MethodSettings()
    wanted = [name.strip().lower() for name in names.split("+")]
    if wanted == ["baseline"]:
        return ()
    if "baseline" in wanted:
        raise ValueError(f"baseline is the label loss that every method adds to: leave it out of {names!r}")
    for name in wanted:
        if name not in RECIPES:
            known = ", ".join(["baseline", *RECIPES])
            raise ValueError(f"unknown method {name!r}; known are {known}, and sums such as iadvt+ivat")
    if len(set(wanted)) < len(wanted):
        raise ValueError(f"{names!r} names a method twice; set regularizer_weight instead")
    return tuple(Method(name, RECIPES[name], settings) for name in wanted)
