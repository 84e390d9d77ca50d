"""wordward: adversarial training for text whose perturbations point toward real words."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from wordward.support.version import __version__

if TYPE_CHECKING:
    from wordward.perturbation.adversary import Adversary, Outcome
    from wordward.perturbation.api import adversary, advt, iadvt, ivat, vat
    from wordward.perturbation.recipes import RECIPES, MethodSettings, Recipe
    from wordward.perturbation.tap import Tap
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
    "Vocabulary": "text",
    "tokenize": "text",
    "WordwardError": "support.errors",
}

__all__ = [
    "RECIPES",
    "Adversary",
    "MethodSettings",
    "Outcome",
    "Recipe",
    "Tap",
    "Vocabulary",
    "WordwardError",
    "__version__",
    "adversary",
    "advt",
    "iadvt",
    "ivat",
    "tokenize",
    "vat",
]


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
