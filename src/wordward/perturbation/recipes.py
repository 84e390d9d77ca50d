"""The methods, each one line: what is to grow, where r may point, how it is chosen."""

from dataclasses import dataclass, replace

from wordward.perturbation.recipe import Recipe
from wordward.perturbation.settings import MethodSettings
from wordward.support.errors import SettingError

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
