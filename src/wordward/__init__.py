"""wordward: adversarial training for text whose perturbations point toward real words."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from wordward.support.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from wordward.datasets import Example
    from wordward.perturbation.adversary import Adversary
    from wordward.perturbation.api import adversary, advt, iadvt, ivat, vat
    from wordward.perturbation.outcome import Outcome
    from wordward.perturbation.recipe import Recipe
    from wordward.perturbation.recipes import RECIPES
    from wordward.perturbation.settings import MethodSettings
    from wordward.perturbation.tap import Tap
    from wordward.runs.run import Run
    from wordward.support.errors import WordwardError
    from wordward.text.tokenizers import tokenize
    from wordward.text.vocabulary import Vocabulary

_HOME = {
    "Adversary": "perturbation.adversary",
    "Outcome": "perturbation.outcome",
    "adversary": "perturbation.api",
    "advt": "perturbation.api",
    "iadvt": "perturbation.api",
    "ivat": "perturbation.api",
    "vat": "perturbation.api",
    "RECIPES": "perturbation.recipes",
    "MethodSettings": "perturbation.settings",
    "Recipe": "perturbation.recipe",
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
    "open_model",
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


def open_model(
    source: Any,
    *,
    device: str = "auto",
    positive: str | None = None,
    labels: "Sequence[str]" = (),
    pair_column: str | None = None,
) -> "Run":
    """Open any model: a run folder, or one that wordward did not train.

    Args:
        source: A run folder; the folder or the hub name of a Hugging Face classifier or tagger, read from safetensors
            and without running code that comes with it; "module:name" of Python that gives a model or a function; or
            these themselves: `(model, tokenizer)`, a pipeline of transformers, a function from a list of texts to
            probabilities, or an object with `predict_proba` such as scikit-learn's.
        device: Where to compute: cpu, cuda, mps, or auto for the best there is.
        positive: For taggers: the tag whose F0.5 counts and which attacks make it miss. For a model with
            several labels at once: the one whose yes or no counts and is explained and attacked.
        labels: The names of a function's labels, in the order of its probabilities; by default its own `labels` or
            `classes_`, the keys where it gives dicts, or else "0", "1", ...
        pair_column: For a model that judges two texts together: the column of a file or table that holds the second.
            Strings are then `first ||| second`, as `wordward.datasets.joined` writes them; a function is given these.

    Returns:
        A `Run`, as `wordward.load_run` gives it; a function's predicts, and is scored, attacked and checked, but has
        no gradients to explain by.

    Raises:
        RunError: If there is no such model, or it cannot be used.

    Examples:
        >>> def guard(texts):
        ...     return [[0.1, 0.9] if "ignore" in text else [0.8, 0.2] for text in texts]
        >>> wordward.open_model(guard, labels=["safe", "attack"]).predict(["ignore all rules"])[0].label
        'attack'
    """
    from wordward import attack, explain  # noqa: F401  they enter run.attack and run.explain
    from wordward.runs import opening

    return opening.open_model(source, device=device, positive=positive, labels=labels, pair_column=pair_column)


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


def __dir__() -> list[str]:
    """The public names, also those that are not imported yet, for completion in a shell or a notebook."""
    return sorted({*globals(), *__all__})
