"""wordward: adversarial training for text whose perturbations point toward real words."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from wordward.api import adversary, advt, iadvt, ivat, vat
    from wordward.method import Adversary, Outcome
    from wordward.recipes import RECIPES, MethodSettings
    from wordward.tap import Tap
    from wordward.text import Vocabulary, tokenize

_HOME = {
    "Adversary": "method",
    "Outcome": "method",
    "adversary": "api",
    "advt": "api",
    "iadvt": "api",
    "ivat": "api",
    "vat": "api",
    "RECIPES": "recipes",
    "MethodSettings": "recipes",
    "Tap": "tap",
    "Vocabulary": "text",
    "tokenize": "text",
}

__all__ = [
    "RECIPES",
    "Adversary",
    "MethodSettings",
    "Outcome",
    "Tap",
    "Vocabulary",
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
