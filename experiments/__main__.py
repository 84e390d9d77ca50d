"""The commands `python -m experiments reproduce` and `python -m experiments results`."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from wordward.cli.arguments import Device, several
from wordward.cli.program import parse, run


@dataclass(frozen=True)
class Reproduce:
    """Train the rows of one of the paper's tables, or of ours, and print them next to the paper's."""

    table: tyro.conf.Positional[Literal["imdb", "elec-rcv1-rotten", "folds", "dbpedia", "fce", "minilm"]]
    """Which table."""
    rows: Annotated[tuple[str, ...], several("ROW")] = ()
    """Only these rows, e.g. baseline advt iadvt; all by default."""
    seeds: int = 1
    """Number of runs per row, each with its own seed (in the table folds: its own fold, 1 to 10)."""
    jobs: int = 1
    """Number of rows to train in parallel."""
    preset: Literal["paper", "cpu-small"] = "paper"
    """The paper's sizes, or all sizes reduced to take minutes on two cores."""
    experiments: str = "experiments"
    """Folder of the TOML files, one per row."""
    out: str = "runs/reproduce"
    """Folder for the runs; finished ones are not trained again."""
    device: Device = "auto"
    """Where to compute."""
    quiet: bool = False
    """Say nothing but errors."""

    def __call__(self) -> None:
        from experiments.reproduce import TableError, reproduce
        from experiments.settings import Plan

        experiments, out = Path(self.experiments), Path(self.out) / self.preset
        kept = experiments / "results" if self.preset == "paper" else out
        plan = Plan(experiments, out, self.preset, self.seeds, self.device, self.jobs, self.quiet)
        try:
            print(reproduce(self.table, plan, rows=self.rows, results_folder=kept))
        except TableError as error:
            print(error.shown)
            raise


@dataclass(frozen=True)
class Results:
    """Print the page of results (docs/results.md) from the records in experiments/results."""

    folder: str = "experiments/results"
    """Folder of the JSON Lines files."""

    def __call__(self) -> None:
        from experiments.results import page

        print(page(Path(self.folder)))


@dataclass(frozen=True)
class Picture:
    """Draw what IMDB's records say (docs/img/imdb.svg): errors beside the paper's, and accuracy under attack."""

    out: tyro.conf.Positional[str]
    """File to write, .svg or .png."""
    folder: str = "experiments/results"
    """Folder of the JSON Lines files."""

    def __call__(self) -> None:
        from experiments.picture import draw
        from experiments.results import load
        from experiments.tables import IMDB

        draw(IMDB, load(Path(self.folder) / f"{IMDB.name}.jsonl"), Path(self.out))


COMMANDS: dict[str, Any] = {"reproduce": Reproduce, "results": Results, "picture": Picture}


def _parse(arguments: list[str]) -> Any:
    """The command with its settings."""
    return parse(
        arguments,
        COMMANDS,
        name="python -m experiments",
        description="The paper's tables, ours beside the paper's; in a clone of wordward.",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status."""
    return run(_parse, COMMANDS, arguments)


if __name__ == "__main__":
    sys.exit(main())
