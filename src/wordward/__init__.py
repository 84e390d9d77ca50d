"""wordward: adversarial training for text whose perturbations point toward real words."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from wordward.support.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from wordward.datasets import Example
    from wordward.perturbation.adversary import Adversary, Outcome
    from wordward.perturbation.api import adversary, advt, iadvt, ivat, vat
    from wordward.perturbation.recipes import RECIPES, MethodSettings, Recipe
    from wordward.perturbation.tap import Tap
    from wordward.runs.run import Run
    from wordward.support.errors import WordwardError
    from wordward.text.vocabulary import Vocabulary, tokenize

_HOME = {
    "Adversary": "perturbation.adversary",
    "Outcome": "perturbation.adversary",
    "adversary": "perturbation.api",
    "advt": "perturbation.api",
    "iadvt": "perturbation.api",
    "ivat": "perturbation.api",
    "vat": "perturbation.api",
    "RECIPES": "perturbation.recipes",
    "MethodSettings": "perturbation.recipes",
    "Recipe": "perturbation.recipes",
    "Tap": "perturbation.tap",
    "Run": "runs.run",
    "Example": "datasets",
    "Vocabulary": "text",
    "tokenize": "text",
    "WordwardError": "support.errors",
}

__all__ = [
    "RECIPES",
    "Adversary",
    "Example",
    "MethodSettings",
    "Outcome",
    "Recipe",
    "Run",
    "Tap",
    "Vocabulary",
    "WordwardError",
    "__version__",
    "adversary",
    "advt",
    "iadvt",
    "ivat",
    "load_run",
    "tokenize",
    "vat",
]


def load_run(path: "str | Path", *, device: str = "auto", positive: str | None = None) -> "Run":
    """Open a run folder: a model of ours, or a Hugging Face model that `wordward train` fine-tuned.

    Args:
        path: The folder that training wrote.
        device: Where to compute: cpu, cuda, mps, or auto for the best there is.
        positive: For taggers: the tag whose F0.5 counts and which attacks make it miss; by default its training's.

    Returns:
        A `Run`: `run.predict(texts)`, `run.evaluate(examples)`, `run.explain(texts)` and `run.attack(texts)`.

    Raises:
        RunError: If the folder holds no finished run, or a damaged one.

    Examples:
        >>> run = wordward.load_run("runs/mine")
        >>> run.predict(["the film was warm and funny"])[0].label
        'good'
    """
    from wordward import attack, explain  # noqa: F401  they enter run.attack and run.explain
    from wordward.runs import opening

    return opening.load_run(path, device=device, positive=positive)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `wordward --help` need not wait for torch."""
    if name in _HOME:
        return getattr(import_module(f"wordward.{_HOME[name]}"), name)
    try:
        return import_module(f"wordward.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"wordward.{name}":
            raise
        raise AttributeError(f"module 'wordward' has no attribute {name!r}") from None
