"""The command `wordward yardsticks`."""

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import tyro

from wordward.cli.arguments import Device, FileColumns, Quiet
from wordward.cli.errors import UsageError
from wordward.cli.texts import check_counts, check_files, holding, naming, texts_of, warn
from wordward.config.yardsticks import YardstickSettings

if TYPE_CHECKING:
    from wordward.attack.protocol import Yardstick
    from wordward.datasets import Example
    from wordward.runs.run import Run

HELD_OUT = 1_000  # texts to fit a temperature on, at most


@dataclass(frozen=True)
class Yardsticks:
    """Measure models by the attacks and limits that papers report (Li et al. 2021): one table for all of them."""

    given: Annotated[
        tyro.conf.Positional[tuple[str, ...]],
        tyro.conf.arg(metavar="MODEL ... TEXTS", name="model-texts", help_behavior_hint=""),
    ]
    """Run folders, or other models as `wordward check` takes them, also functions; then labelled texts, or dev or
    test, for runs on a known corpus."""
    settings: YardstickSettings = field(default_factory=YardstickSettings)
    limit: int | None = None
    """Attack only this many of the texts: a random but fixed selection."""
    held_out: Annotated[str | None, tyro.conf.arg(metavar="TEXTS")] = None
    """Labelled texts to fit each model's temperature on, for the attack on calibrated probabilities; by default up to
    1,000 of the texts that --limit leaves out."""
    out: Annotated[str | None, tyro.conf.arg(metavar="FILE.jsonl")] = None
    """Write each text with what became of it as a line of JSON."""
    json: bool = False
    """Print JSON instead of tables."""
    columns: FileColumns = field(default_factory=FileColumns)
    device: Device = "auto"
    quiet: Quiet = False

    def __call__(self) -> None:
        if len(self.given) < 2:
            raise UsageError(f"expected MODEL ... TEXTS; got {' '.join(self.given) or 'nothing'}")
        check_counts(self, "limit")
        check_files(self, "out")
        from wordward.attack.protocol import yardsticks
        from wordward.attack.protocol_tables import accuracy_table, cost_table
        from wordward.runs.opening import open_model
        from wordward.support.console import say

        pair = self.columns.pair_column
        runs = [open_model(model, device=self.device, pair_column=pair) for model in self.given[:-1]]
        chosen, rest = zip(*(self._texts(run) for run in runs), strict=True)
        warn(*runs)
        if not rest[0]:
            say("no texts are held out to fit temperatures on: give --limit or --held-out for calibrated attacks")
        with naming(self.given[-1]), holding(self, "out"):
            rows = yardsticks(runs, chosen, self.settings, held_out=rest, quiet=self.quiet)
            if self.out:
                self._write(rows)
        if self.json:
            print(json.dumps([row.as_dict() for row in rows]))
            return
        caption = f"Accuracy on {len(chosen[0]):,} texts, with its 95 % interval:"
        print(f"{caption}\n\n{accuracy_table(rows)}\n\nWhat the attacks took:\n\n{cost_table(rows)}")

    def _texts(self, run: "Run") -> "tuple[list[Example], list[Example]]":
        """The texts to attack, and those to fit a temperature on."""
        from wordward.datasets import sample

        texts = texts_of(run, self.given[-1], quiet=self.quiet, **vars(self.columns))
        numbers = sample(range(len(texts)), self.limit, apart=True)
        if self.held_out is not None:
            apart = texts_of(run, self.held_out, quiet=self.quiet, **vars(self.columns))
        else:
            left = set(range(len(texts))) - set(numbers)
            apart = [texts[number] for number in sorted(left)]
        return [texts[number] for number in numbers], sample(apart, HELD_OUT)

    def _write(self, rows: "list[Yardstick]") -> None:
        from pathlib import Path

        from wordward.support.files import write

        lines = [json.dumps(record, ensure_ascii=False) for row in rows for record in row.texts()]
        write(Path(str(self.out)), "".join(f"{line}\n" for line in lines))
