"""The command `wordward methods`."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

ROOMY = 130  # columns that the table of methods needs


@dataclass(frozen=True)
class Methods:
    """List the methods with their equations and cost."""

    def __call__(self) -> None:
        from wordward.perturbation.recipes import RECIPES, UNMOVED, USUAL_EPSILON
        from wordward.support.console import Output

        heads = ("method", "what it is", "grows", "points", "chosen", "epsilon", "passes", "equation")
        paper: list[tuple[str, ...]] = [
            ("baseline", "the label loss alone", "-", "-", "-", "-", "1 1", "eq. of section Training")
        ]
        more: list[tuple[str, ...]] = []
        for name, recipe in (RECIPES | UNMOVED).items():
            unlabelled = "" if recipe.needs_labels else " unlab."
            extra = f"+{recipe.forwards} +{recipe.backwards}{unlabelled}"
            grows, where, chosen = map(_named, (recipe.objective, recipe.space, recipe.choice))
            grows += " 2 ways" if recipe.measure == "both_ways" else ""
            epsilon = f"{USUAL_EPSILON[where]:g}" if where in USUAL_EPSILON else "-"
            holes = (grows, {"free": "anywhere", "words": "to words"}.get(where, where), chosen, epsilon)
            row = (name, recipe.summary, *(holes if name in RECIPES else "----"), extra, recipe.equation)
            paper.append(row) if recipe.reference is None else more.append((*row, recipe.reference))
        console = Output(width=150 if not sys.stdout.isatty() else None)
        console.print("The paper's methods (Sato et al. 2018)", self._table(heads, paper, console.width), sep="\n")
        more_heads = (*heads, "reference")
        console.print("\nMore methods", self._table(more_heads, more, console.width), sep="\n")
        print(
            "\nGrows: what the perturbation makes larger, the label's loss or how far the prediction moves (kl).\n"
            "Points: where it may go. Chosen: how its direction is found.\n"
            "Epsilon: its length by default, for a text of 240 words, in distances of a word to its tenth nearest.\n"
            "Passes: forwards and backwards beyond the baseline's one of each; unlab.: also on unlabelled texts.\n"
            "Sums such as iadvt+ivat add their losses; ascent_steps sets the steps of all that climb."
        )

    def _table(self, heads: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> "Table":
        """A column for each head, or on a narrow screen the name and beside it all else in sentences."""
        from rich.table import Table

        table = Table(*(heads if width >= ROOMY else heads[:2]), box=None)
        table.columns[0].no_wrap = True
        for row in rows:
            if width < ROOMY:
                cells = (f"{head} {cell}" for head, cell in zip(heads[2:], row[2:], strict=True) if cell != "-")
                row = (row[0], f"{row[1]}\n[dim]{', '.join(cells)}[/]")
            table.add_row(*row)
        return table


def _named(part: Any) -> str:
    """A part of a recipe in words; a function by its own name."""
    return str(part if isinstance(part, str) else getattr(part, "__name__", "own")).replace("_", " ")
