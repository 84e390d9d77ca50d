"""The command `wordward attack`."""

import json
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import tyro

from wordward.cli.arguments import Device, FileColumns, Jobs, Quiet, SenseFrom, several
from wordward.cli.errors import UsageError
from wordward.cli.texts import (
    check_counts,
    check_files,
    holding,
    is_split,
    judged,
    naming,
    opened,
    say_cut,
    texts_of,
    warn,
)
from wordward.config.attack import AttackSettings
from wordward.config.fields import Name

if TYPE_CHECKING:
    from wordward.attack.attacked import Attacked
    from wordward.datasets import Example
    from wordward.runs.results_file import ResultsFile
    from wordward.runs.run import Run


@dataclass(frozen=True)
class Attack:
    """Swap words, or edit texts otherwise, until a prediction changes; every text shown is predicted again."""

    given: Annotated[
        tyro.conf.Positional[tuple[str, ...]],
        tyro.conf.arg(metavar="RUN DATA", name="run-data", help_behavior_hint=""),
    ]
    """Run folder, or another model as `wordward check` takes it, then labelled texts, read as those of the run were;
    or dev or test, for a run on a known corpus.
    With --text no DATA, with --models no RUN."""
    text: Annotated[tuple[str, ...], several("TEXT")] = ()
    """Texts to attack instead; a tagger's are split at blanks."""
    models: Annotated[tuple[str, ...], several("RUN")] = ()
    """Run folders to compare: their accuracy on the same texts by number of swaps."""
    swaps: Annotated[tuple[int, ...], tyro.conf.arg(metavar="N ...")] = (0, 1, 2, 4, 8)
    """Numbers of swaps for --models to allow."""
    guides: Annotated[tuple[str, ...], several("METHOD")] = ()
    """Methods to compare as guides of the attack on one model, e.g. advt vat iadvt ivat."""
    settings: AttackSettings = field(default_factory=AttackSettings)
    sense_from: SenseFrom = None
    limit: int | None = None
    """Attack only this many of the texts: a random but fixed selection."""
    labels: bool = True
    """Read the true labels, and attack only texts predicted correctly; without, attack whatever is predicted."""
    positive: Annotated[Name, tyro.conf.arg(metavar="TAG")] = None
    """For taggers: the tag that is to be missed; by default the run's own. For models that give several labels at
    once: the one whose yes or no is to change."""
    corrections: Annotated[str | None, tyro.conf.arg(metavar="FILE.m2")] = None
    """For taggers: corrections in M2 format, which say what a flagged token should be."""
    out: Annotated[str | None, tyro.conf.arg(metavar="FILE.jsonl")] = None
    """Write each text as a line of JSON when it is done; running the same command again continues the file."""
    csv: Annotated[str | None, tyro.conf.arg(metavar="FILE.csv")] = None
    """Write all texts as CSV with TextAttack's columns."""
    figure: Annotated[str | None, tyro.conf.arg(metavar="FILE.png|FILE.svg")] = None
    """Draw the comparison of models."""
    show: int = 10
    """Texts to show, the most telling first."""
    json: bool = False
    """Print JSON instead of tables."""
    force: bool = False
    """Overwrite --out."""
    jobs: Jobs = None
    columns: FileColumns = field(default_factory=FileColumns)
    device: Device = "auto"
    quiet: Quiet = False

    def __call__(self) -> None:
        self._check()
        from wordward.datasets import sample

        if self.models:
            runs = [opened(self, path) for path in self.models]
            if len({run.tagging for run in runs}) > 1:
                raise UsageError("expected models of one kind; got classifiers and taggers")
            whole = self._examples(runs, self.given[0])
            warn(*runs)
            with naming(self.given[0]), holding(self, "figure"):
                self._models([judged(self, run, whole) for run in runs], sample(whole, self.limit, apart=True))
            return
        run = opened(self, self.given[0])
        whole = self._examples([run], None if self.text else self.given[1])
        warn(run)
        with naming(None if self.text else self.given[1]), holding(self, "out", "csv"):
            run, examples = judged(self, run, whole), sample(whole, self.limit, apart=True)
            say_cut(run, examples, quiet=self.quiet)
            self._guides(run, examples) if self.guides else self._attack(run, examples)

    def _check(self) -> None:
        """Refuse incompatible options and files that cannot be written, before anything is read."""
        if self.models and (self.guides or self.text):
            raise UsageError("--models compares runs on a file of texts: leave out --guides and --text")
        wanted = ("DATA",) if self.models else ("RUN",) if self.text else ("RUN", "DATA")
        if len(self.given) != len(wanted):
            raise UsageError(
                f"expected {' and '.join(wanted)}; got {' '.join(self.given) or 'nothing'} "
                "(wordward attack RUN DATA; RUN --text TEXT ...; DATA --models RUN RUN ...)"
            )
        compares = self.models or self.guides
        if compares and (self.out or self.csv or self.corrections):
            raise UsageError("--out, --csv and --corrections are for an attack on one run: leave them out")
        if self.figure and not self.models:
            raise UsageError("--figure draws the comparison of --models: give the run folders there")
        if self.models and self.settings.max_swaps != AttackSettings().max_swaps:
            raise UsageError("with --models, give --swaps instead of --max-swaps")
        if self.guides and not self.settings.only_swaps:
            raise UsageError("--guides compares methods that propose swaps: leave out --edits")
        check_counts(self, "limit", "jobs")
        check_files(self, "out", "csv", "figure")

    def _examples(self, runs: Sequence["Run"], data: str | None) -> list["Example"]:
        """The texts to attack."""
        from wordward.datasets import Example, MissingError

        if data is None:
            return [Example(text) for text in self.text]
        run = runs[0]
        if is_split(run, data) and (
            other := {other_run.config.data.corpus for other_run in runs} - {run.config.data.corpus}
        ):
            raise UsageError(
                f"{data} names a split of {run.config.data.corpus}, but a run is on {other.pop() or 'files'}: "
                "give a file of texts"
            )
        try:
            examples = texts_of(run, data, labelled=self.labels, quiet=self.quiet, **vars(self.columns))
        except MissingError as error:
            hint = f"; for a text give --text {quote(data)}" if " " in data else ""
            raise MissingError(f"{error}{hint}") from None
        if not self.labels:
            examples = [replace(example, label=None, tags=None) for example in examples]
        return examples

    def _attack(self, run: "Run", examples: list["Example"]) -> None:
        """One run, text by text."""
        from wordward.attack.attacker import attack, side_by_side
        from wordward.attack.edits import not_made
        from wordward.attack.files import from_record, write_csv
        from wordward.attack.sense import few_to_judge_by, little_to_judge_by
        from wordward.attack.sense_texts import more_to_judge_by
        from wordward.attack.summary import summarise
        from wordward.attack.terminal import show, show_texts
        from wordward.datasets.m2 import read_m2
        from wordward.explain.other_languages import by_rules_for_english
        from wordward.runs.results_file import hint_to_continue
        from wordward.support.console import Output, progress, say

        judged = self.settings.sense == "kept" and "swap" in self.settings.edits
        if judged and (why := little_to_judge_by(run)):
            say(f"{why}: {more_to_judge_by(run)}", quiet=self.quiet)
        if self.settings.only_fitting and "swap" in self.settings.edits and (why := by_rules_for_english(run)):
            say(why, quiet=self.quiet)
        if why := not_made(self.settings.edits, (each.text for each in examples)):
            say(why, quiet=self.quiet)
        corrections = None if self.corrections is None else read_m2(self.corrections)
        file = self._file(run, examples)
        results: list[Attacked] = [] if file is None else list(file.records(from_record))
        before, started = len(results), time.monotonic()
        # Read again: a batch decides its texts' last digits.
        beside = before % side_by_side(run) if before < len(examples) else 0
        left = examples[before - beside :]
        attacks = attack(run, left, self.settings, corrections=corrections, jobs=self._jobs(run, left))
        with hint_to_continue(file), closing(attacks), progress(quiet=self.quiet) as bars:
            bar = bars.add_task("attack", total=len(examples), completed=before, unit="texts")
            for attacked in islice(attacks, beside, None):
                if file is not None:
                    file.append(asdict(attacked))
                results.append(attacked)
                bars.advance(bar)
        new, seconds = len(results) - before, time.monotonic() - started
        if self.csv:
            write_csv(self.csv, results)
        for path in filter(None, (self.out, self.csv)):
            say(f"wrote {path}", quiet=self.quiet)
        summary = summarise(
            results,
            edits=self.settings.edits,
            tagging=run.tagging,
            seconds=seconds,
            timed=new,
            sense=self.settings.sense,
            few=few_to_judge_by(run) is not None,
        )
        if self.json:
            print(json.dumps({"run": str(run.folder), **summary.as_dict()}))
        elif self.text:
            show_texts(results, Output(), tag=run.named_tag)
        else:
            show(results, summary, Output(), count=self.show, tag=run.named_tag)

    def _file(self, run: "Run", examples: Sequence["Example"]) -> "ResultsFile | None":
        """The file of --out, with what it holds already."""
        from wordward.attack.sense_texts import sense_fingerprint
        from wordward.runs.results_file import ResultsFile, describe, fingerprint

        if self.out is None:
            return None
        corrections = fingerprint([self.corrections] if self.corrections else [])
        settings = asdict(self.settings)
        if self.settings.only_swaps:
            del settings["edits"]  # files of versions without edits are gone on with
        by = {} if run.trained_here else {"judged_by": sense_fingerprint(run)}
        described = describe(run, examples, settings=settings, corrections=corrections, **by)
        return ResultsFile(self.out, described, command="attack", name="out", force=self.force)

    def _jobs(self, run: "Run", examples: Sequence["Example"]) -> int:
        from wordward.support.workers import jobs_for

        return jobs_for(self.jobs, len(examples), on_cpu=run.is_on_cpu)

    def _models(self, runs: Sequence["Run"], examples: list["Example"]) -> None:
        from wordward.attack.robustness import compare_models
        from wordward.attack.robustness_tables import check_plot, models_cells, models_json, plot

        if self.figure:
            check_plot(self.figure)
        jobs = self._jobs(runs[0], examples)
        rows = compare_models(runs, examples, self.settings, swaps=self.swaps, quiet=self.quiet, jobs=jobs)
        unit = "swap" if self.settings.only_swaps else "edit"
        if self.figure:
            plot(rows, self.figure, unit)
        caption = f"Accuracy on {len(examples):,} texts by number of {unit}s, with its 95 % interval:"
        print(json.dumps(models_json(rows))) if self.json else _print_table(caption, *models_cells(rows, unit))

    def _guides(self, run: "Run", examples: list["Example"]) -> None:
        from wordward.attack.robustness import compare_guides
        from wordward.attack.robustness_tables import guides_cells, guides_json

        jobs = self._jobs(run, examples)
        rows = compare_guides(run, examples, self.guides, self.settings, quiet=self.quiet, jobs=jobs)
        caption = f"Attacks on {len(examples):,} texts by each guide, with 95 % intervals:"
        print(json.dumps(guides_json(rows))) if self.json else _print_table(caption, *guides_cells(rows))


def _print_table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: fitted to the width of a terminal, in Markdown elsewhere."""
    from wordward.attack.robustness_tables import aligned, fitted
    from wordward.support.console import Output

    if sys.stdout.isatty():
        Output().print(caption, fitted(heads, rows), sep="\n\n", markup=False)
    else:
        print(f"{caption}\n\n{aligned(heads, rows)}")
