"""The methods, each one line: what is to grow, where r may point, how it is chosen."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from wordward.perturbation.settings import MethodSettings
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


RECIPES: dict[str, Recipe] = {
    "random": Recipe("label_loss", "free", "at_random", "tab:result", "a random direction, label loss"),
    "random-kl": Recipe("kl", "free", "at_random", "tab:result", "a random direction, also unlabelled text"),
    "advt": Recipe("label_loss", "free", "steepest", "eq:adv_approx, eq:adv_loss", "AdvT-Text"),
    "vat": Recipe("kl", "free", "steepest", "eq:vat_approx, eq:vat_loss", "VAT-Text"),
    "iadvt": Recipe("label_loss", "words", "steepest", "eq:adv_direction to eq:update_alpha_new", "iAdvT-Text"),
    "ivat": Recipe("kl", "words", "steepest", "eq:update_alpha_new2, eq:ivat_loss", "iVAT-Text"),
    "iadvt-rand": Recipe(
        "label_loss", "words", "random_one", "tab:result", "toward one of the k nearest words, at random"
    ),
    "iadvt-best": Recipe(
        "label_loss", "words", "best_one", "eq:advR_seq", "toward the one nearest word of largest ascent"
    ),
    "ivat-rand": Recipe("kl", "words", "random_one", "tab:result", "iAdvT-Rand, also unlabelled text"),
    "ivat-best": Recipe("kl", "words", "best_one", "eq:advR_seq", "iAdvT-Best, also unlabelled text"),
    # Beyond the paper.
    "pgd": Recipe(
        "label_loss",
        "free",
        "steepest",
        "r <- P(r + eta g/|g|)",
        "several steps from a random start",
        "Madry et al. 2018",
        steps=3,
        start="random",
    ),
    "freelb": Recipe(
        "label_loss",
        "free",
        "steepest",
        "(1/K) sum_t l(X + r_t)",
        "as pgd, and the loss of every step counts",
        "Zhu et al. 2020",
        steps=3,
        start="random",
        counts="every",
    ),
    "smart": Recipe(
        "kl",
        "free",
        "steepest",
        "KL(p||q) + KL(q||p)",
        "VAT with KL both ways",
        "Jiang et al. 2020",
        measure="both_ways",
    ),
    "advt-one": Recipe("label_loss", "free", "one_token", "argmax_t |g_t|", "AdvT that moves one token", "wordward"),
    "vat-one": Recipe("kl", "free", "one_token", "argmax_t |g_t|", "VAT that moves one token", "wordward"),
    "iadvt-one": Recipe(
        "label_loss", "words", "one_word", "argmax_t,k <d_k, g>", "one token, toward one word", "wordward"
    ),
    "ivat-one": Recipe(
        "kl", "words", "one_word", "argmax_t,k <d_k, g>", "iAdvT-One, also unlabelled text", "wordward"
    ),
}

# Losses that perturb nothing, so that they can neither explain nor attack.
UNMOVED: dict[str, Recipe] = {
    "entropy": Recipe(
        "kl",
        "free",
        "nothing",
        "-sum p log p",
        "entropy of the predictions",
        "Sachan et al. 2019",
        measure="entropy",
    ),
}

# By where r may point: the paper's 5 and 15 on IMDB, in units of the distance from a word to its tenth nearest there.
USUAL_EPSILON: dict[str, float] = {"free": 0.25, "words": 0.75}


@dataclass(frozen=True)
class Method:
    """A recipe with its settings."""

    name: str
    recipe: Recipe
    settings: MethodSettings

    def __post_init__(self) -> None:
        """Refuse several steps where lengths are set token by token."""
        if self.per_token and self.recipe.moves:
            raise SettingError(
                "normalization",
                f"normalization='authors' sets lengths token by token, so {self.name} takes one step, but "
                f"ascent_steps is {self.recipe.steps}: set normalization='paper'",
            )
        if self.through_start and self.settings.first_step != "alike":
            raise SettingError(
                "first_step",
                "normalization='authors' takes the gradient through a first step toward all words alike, but "
                f"{self.name} has first_step={self.settings.first_step!r}: set normalization='paper'",
            )
        if self.through_start and self.settings.power_iterations > 1:
            raise SettingError(
                "power_iterations",
                f"normalization='authors' takes the gradient through the first step, so {self.name} takes one, but "
                f"power_iterations is {self.settings.power_iterations}: set normalization='paper'",
            )

    @property
    def per_token(self) -> bool:
        """Whether strengths are normalised per token, then r per sentence (authors' code; words only)."""
        return self.settings.normalization == "authors" and self.recipe.space == "words"

    @property
    def through_start(self) -> bool:
        """Whether the gradient passes through both normalisations of the first step (authors' iVAT).

        Their strengths start equal, at unit length per token, and make a step of unit length per token. So the
        gradient loses its part along that step, and a token's strengths lose their mean.
        """
        return self.per_token and self.recipe.objective == "kl" and self.recipe.follows_gradient


def parse_methods(names: str | Recipe, settings: MethodSettings | None = None) -> tuple[Method, ...]:
    """`baseline` gives none, `iadvt` or a recipe one, `iadvt+ivat` two methods whose losses add up."""
    settings = settings or MethodSettings()
    if isinstance(names, Recipe):
        return (Method(names.summary or "your method", _stepped(names, settings), settings),)
    wanted = [name.strip().lower() for name in names.split("+")]
    if "" in wanted:
        raise SettingError("method", f"expected the name of a method, or several with + between them; got {names!r}")
    if wanted == ["baseline"]:
        return ()
    if "baseline" in wanted:
        raise SettingError(
            "method", f"baseline is the label loss that every method adds to: leave it out of {names!r}"
        )
    every = RECIPES | UNMOVED
    for name in wanted:
        if name not in every:
            known = ", ".join(["baseline", *every])
            raise SettingError(
                "method",
                f"unknown method {name!r}; choose from {known}, or a sum such as iadvt+ivat (a method "
                "of your own: wordward.RECIPES['its name'] = its recipe)",
            )
    if len(set(wanted)) < len(wanted):
        raise SettingError("method", f"{names!r} names a method twice; set regularizer_weight instead")
    return tuple(Method(name, _stepped(every[name], settings), settings) for name in wanted)


def _stepped(recipe: Recipe, settings: MethodSettings) -> Recipe:
    """The recipe with the number of steps asked for, if it ascends at all."""
    steps = settings.ascent_steps if recipe.follows_gradient else None
    return recipe if steps is None else replace(recipe, steps=steps)


def at_text(method: Method) -> Method:
    """The method as it explains a text: by the one step that starts at the text itself, in directions not dropped."""
    if method.recipe.choice == "nothing":
        raise SettingError(
            "method",
            f"{method.name} perturbs nothing, so it explains nothing: use one of {', '.join(RECIPES)}",
        )
    recipe = replace(method.recipe, steps=1, start="text", counts="last")
    settings = replace(method.settings, step_size=None, direction_dropout=0.0, first_step="alike")
    return replace(method, recipe=recipe, settings=settings)
