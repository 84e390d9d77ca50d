"""Yardsticks as Markdown: accuracies, and what the attacks took."""

from collections.abc import Sequence

from wordward.attack.protocol import Yardstick
from wordward.attack.robustness_tables import aligned, percent

NAMES = {"textfooler": "TextFooler-style", "textbugger": "TextBugger-style", "bert-attack": "BERT-Attack-style"}


def accuracy_table(rows: Sequence[Yardstick]) -> str:
    """A row for each model: accuracy on the texts as they are, and under each attack, raw and calibrated."""
    kinds = list(dict.fromkeys((row.attack, row.calibrated) for row in rows))
    heads = ["model", "method", "clean", *(_name(attack, calibrated) for attack, calibrated in kinds)]
    cells = []
    for model in dict.fromkeys(row.model for row in rows):
        own = {(row.attack, row.calibrated): row for row in rows if row.model == model}
        first = next(iter(own.values()))
        cells.append(
            [model, first.method or "–", percent(first.clean), *(percent(own[kind].under_attack) for kind in kinds)]
        )
    return aligned(heads, cells)


def cost_table(rows: Sequence[Yardstick]) -> str:
    """A row for each model and attack: how many texts it flips, and what that takes."""
    heads = ["model", "attack", "temperature", "success", "words changed", "queries a text", "seconds"]
    cells = [
        [
            row.model,
            _name(row.attack, row.calibrated),
            f"{row.temperature:.2f}" if row.calibrated else "–",
            percent(row.success),
            "–" if row.changed is None else f"{row.changed.value:.1%}",
            f"{row.queries:.0f}",
            f"{row.seconds:.1f}",
        ]
        for row in rows
    ]
    return aligned(heads, cells)


def _name(attack: str, calibrated: bool) -> str:
    return f"{NAMES[attack]}{', calibrated' if calibrated else ''}"
