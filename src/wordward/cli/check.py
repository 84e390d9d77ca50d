"""The command `wordward check`."""

import json
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from wordward.cli.arguments import Device, FileColumns, Jobs, Model, Quiet, SenseFrom
from wordward.cli.texts import check_counts, check_files, holding, naming, opened, say_cut, say_learnt, texts_of, warn
from wordward.config.check import CheckSettings
from wordward.config.fields import Name

if TYPE_CHECKING:
    from wordward.attack.checked import Check as Found
    from wordward.datasets import Example
    from wordward.runs.run import Run

FALLS_SHORT = 1
FILES = ("json", "junit", "card", "html")


@dataclass(frozen=True)
class Check:
    """See what breaks a model, yours or any other, and let limits decide: for continuous integration.

    Exit status: 0, it holds (also where no limits are given); 1, it falls short of a limit or of an earlier
    check; 2, it could not be checked, or a limit could not be measured: too few words can be judged to keep the
    sense (give more labelled texts, or --sense any).
    """

    model: Model
    """Run folder; folder or hub name of a Hugging Face classifier or tagger; or module:name of Python that gives a
    model with its tokenizer, or a function from a list of texts to probabilities."""
    texts: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="TEXTS")]]
    """Labelled texts in any format that can be trained on (- is standard input); or dev or test, for a run on a known
    corpus."""
    settings: CheckSettings = field(default_factory=CheckSettings)
    group_column: Annotated[Name, tyro.conf.arg(metavar="COLUMN")] = None
    """Name of a column, such as the language: the numbers are told for each of its values, too."""
    sense_from: SenseFrom = None
    limit: int | None = None
    """Check with only this many of the texts: a random but fixed selection."""
    labels: bool = True
    """Read the true labels; without, whatever is predicted is attacked, and only the flip rate is measured."""
    positive: Annotated[Name, tyro.conf.arg(metavar="TAG")] = None
    """For taggers: the tag that is to be missed; by default the run's own. For models that give several labels at
    once: the one whose yes or no is checked; --target names it, too."""
    json: Annotated[str | None, tyro.conf.arg(metavar="FILE|-")] = None
    """Write everything as JSON, for --against of a later check; - prints it instead of tables."""
    junit: Annotated[str | None, tyro.conf.arg(metavar="FILE.xml")] = None
    """Write JUnit's XML, a test case for each limit."""
    card: Annotated[str | None, tyro.conf.arg(metavar="FILE.md")] = None
    """Write Markdown, such as ROBUSTNESS.md beside a model card."""
    html: Annotated[str | None, tyro.conf.arg(metavar="FILE.html")] = None
    """Write a self-contained page."""
    show: int = 5
    """Texts to show, the most telling first."""
    jobs: Jobs = None
    columns: FileColumns = field(default_factory=FileColumns)
    device: Device = "auto"
    quiet: Quiet = False

    COULD_NOT_RUN = 2

    def __call__(self) -> int:
        self._check()
        from wordward.attack.checking import check
        from wordward.datasets import sample
        from wordward.datasets.streams import called
        from wordward.support.workers import jobs_for

        run = opened(self, self.model)
        whole = self._examples(run)
        examples = sample(whole, self.limit, apart=True)
        warn(run)
        with naming(self.texts), holding(self, *FILES):
            say_cut(run, examples, quiet=self.quiet)
            if not self.quiet:
                say_learnt(run, examples)
            found = check(
                run,
                examples,
                self.settings,
                sense_from=self._sense_from(run, whole),
                source=called(self.texts),
                jobs=jobs_for(self.jobs, len(examples), on_cpu=run.is_on_cpu),
                quiet=self.quiet,
            )
            self._write(found)
        return 0 if found.holds else FALLS_SHORT if found.falls_short else self.COULD_NOT_RUN

    def _check(self) -> None:
        """Refuse incompatible options and files that cannot be written, before anything is read."""
        check_counts(self, "limit", "jobs")
        check_files(self, *FILES)

    def _examples(self, run: "Run") -> "list[Example]":
        examples = self._read(run, self.texts, labelled=self.labels, group_column=self.group_column)
        if not self.labels:
            examples = [replace(example, label=None, tags=None) for example in examples]
        return examples

    def _sense_from(self, run: "Run", whole: "list[Example]") -> "list[Example]":
        """The texts that edits are judged by: those given, else all of the file where only some are checked."""
        if self.sense_from:
            return self._read(run, self.sense_from)
        judging = self.limit is not None and self.labels and not (run.trained_here or run.tagging)
        return whole if judging else []

    def _read(self, run: "Run", file: str, **how: Any) -> "list[Example]":
        return texts_of(run, file, quiet=self.quiet, **how, **vars(self.columns))

    def _write(self, found: "Found") -> None:
        """Show what was found, and write the files that are asked for."""
        from wordward.cli.check_output import show
        from wordward.cli.standard import until_unread
        from wordward.report.checked import card, check_page
        from wordward.report.checked_xml import junit
        from wordward.support.console import say
        from wordward.support.files import write

        record = json.dumps(found.to_json(), ensure_ascii=False, indent=1)
        contents = {
            self.json: lambda: record + "\n",
            self.junit: lambda: junit(found),
            self.card: lambda: card(found),
            self.html: lambda: check_page(found),
        }
        written = [name for name in contents if name not in (None, "-")]
        for name in written:
            write(Path(str(name)), contents[name]())
        with until_unread():  # whoever reads it, what was found decides the exit status
            if self.json == "-":
                print(json.dumps(found.to_json()))
            else:
                show(found, self.show, told=not self.quiet and sys.stdout.isatty() and sys.stderr.isatty())
        if written:
            say(f"wrote {', '.join(map(str, written))}", quiet=self.quiet)
